"""vLLM's log as records, one for every start that it shows; whole logs, excerpts and crash reports."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from k3lib.reading.engine_log import EngineState, closing_words, share, whole
from k3lib.reading.records import Failure, LogReading, Reading
from k3lib.reading.text import clean, holds, kept
from k3lib.reading.vllm_lines import HANDLERS, stage_of

KIND = "vLLM log"
DEFAULT_BLOCK = 16  # tokens of a block in V0 unless an argument says otherwise
# Words of a line that show vLLM where no message above is left, as in a crash report.
TRACES = ("/vllm/v1/", "/vllm/engine/", "/vllm/worker/", "(EngineCore", "vllm.v1.", "/vllm/entrypoints/",
          "/vllm/model_executor/models/", "/vllm/executor/", "vLLM")  # fmt: skip
ERROR_LEVEL = re.compile(r"\bERROR \d\d-\d\d \d\d:\d\d:\d\d")


@dataclass
class VllmLog:
    """Gathers vLLM's messages while lines pass; a new start in the same file is a reading of its own."""

    where: str
    state: EngineState = field(default_factory=EngineState)
    traces: int = 0
    unclaimed: Failure | None = None
    found: list[Reading] = field(default_factory=list)

    def feed(self, row: int, line: str) -> None:
        """One line of the log."""
        for mark, handler, own in HANDLERS:
            if mark in line:
                at = line.find(mark)
                begins = mark in ("non-default args: ", "█  version ") and bool(self.state.weights.values)
                if begins or (mark == "█  version " and self.state.failure):
                    self._close()
                self.state.evidence += own
                handler(self.state, line, at)
        if line.startswith("(Worker_"):
            self.traces += 1
            stage_of(self.state, line, 60)
        elif not self.traces and holds(line, TRACES):
            self.traces = 1
        self.state.watch(row, line)
        if self.state.failure is None and "ERROR" in line and ERROR_LEVEL.search(line):
            self.state.words.setdefault("first_error", clean(line.rpartition("] ")[2] or line))

    def _close(self) -> None:
        state, self.state = self.state, EngineState()
        state.settle()
        if state.evidence or (self.traces and state.failure):
            kept(self.where, self.found, _reading(self.where, state))
        else:
            self.unclaimed = self.unclaimed or state.failure
        self.traces = 0

    def readings(self) -> list[Reading]:
        """Every start that the log shows."""
        self._close()
        return self.found


def _reading(where: str, state: EngineState) -> LogReading:
    """The record of one start."""
    arguments, numbers = state.arguments, state.numbers
    tp, pp, dp, dcp = (
        whole(arguments.get(name))
        for name in (
            "tensor_parallel_size",
            "pipeline_parallel_size",
            "data_parallel_size",
            "decode_context_parallel_size",
        )
    )
    remarks = list(state.remarks)
    if tp is None and (tp := state.size("TP")):
        dp = dp or state.size("DP")
        stages = max(state.ranks.get("PP", {0})) + 1
        pp = max(stages, state.world // (tp * (dp or 1))) if dp or "DP" not in state.ranks else None
        remarks.append("layout taken from the workers' names: the arguments are not in this file")
    told = bool(arguments)
    tp, pp, dp = (value or (1 if told else None) for value in (tp, pp, dp))
    ep = tp * (dp or 1) if arguments.get("enable_expert_parallel") is True and tp else 1 if told else None
    block = whole(numbers.get("block_tokens")) or whole(arguments.get("block_size"))
    kv_tokens = whole(numbers.get("kv_tokens"), 0)
    if kv_tokens is None and "gpu_blocks" in numbers:
        block = block or DEFAULT_BLOCK
        kv_tokens = int(numbers["gpu_blocks"]) * block
        remarks.append(f"KV tokens are blocks times {block} tokens")
    utilisation = share(arguments.get("gpu_memory_utilization"))
    if utilisation is None and state.budget:
        utilisation = state.budget.utilisation
    length = numbers.get("max_model_len") or numbers.get("length_of_concurrency")
    if "first_error" in state.words and state.failure is None:
        state.note(state.warnings, f"an error was logged: {state.words['first_error']}")
    dtype = arguments.get("kv_cache_dtype")
    reading = LogReading(
        KIND, where, "vllm", state.version, state.model, state.architecture, dict(sorted(arguments.items())),
        tp=tp, pp=pp, ep=ep, dp=dp, dcp=dcp or (1 if told else None),
        nodes=whole(arguments.get("nnodes")), partition=state.partition, utilisation=utilisation,
        max_model_len=whole(length) or whole(arguments.get("max_model_len")) or whole(arguments.get("max_seq_len")),
        max_num_seqs=whole(arguments.get("max_num_seqs")),
        chunk_tokens=whole(numbers.get("chunk_tokens")) or whole(arguments.get("max_num_batched_tokens")),
        kv_dtype=str(dtype) if dtype else "",
        moe_backend=state.words.get("moe_backend", "") or str(arguments.get("moe_backend", "")),
        attention_backend=state.words.get("attention_backend", "") or str(arguments.get("attention_backend", "")),
        checkpoint_gib=numbers.get("checkpoint_gib"), free_before_load_gib=numbers.get("free_before_load_gib"),
        weights_gib=state.weights.sorted(), kv_gib=state.pools.sorted(), kv_pinned=state.pinned, kv_tokens=kv_tokens,
        max_concurrency=numbers.get("max_concurrency"), block_tokens=block,
        padding_percent=numbers.get("padding_percent"), graphs_gib=state.graphs.sorted(), budget=state.budget,
        running_limit=whole(arguments.get("max_num_seqs")), load_seconds=numbers.get("load_seconds"),
        ready=state.ready or state.service_lines > 0, service=state.service(), failure=state.failure,
        warnings=tuple(state.warnings), remarks=tuple(remarks),
    )  # fmt: skip
    if reading.kv_gib and kv_tokens is None and state.ranks and not reading.failure:
        remarks.append("no KV token line: a node without an API server prints none")
    return replace(reading, warnings=closing_words(reading), remarks=tuple(remarks))
