"""SGLang's log and its server information, 2024 to 0.5.23. What it prints as GB is 2^30 B."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from k3lib.reading.arguments import named_values, plain_value
from k3lib.reading.engine_log import MOST_RANKS, EngineState, closing_words, share, whole
from k3lib.reading.records import LogReading, Reading
from k3lib.reading.text import clean, holds, kept

KIND = "SGLang log"
N = r"(-?\d{1,12}(?:\.\d{1,12})?)"
TAGS = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d((?: (?:DP|PP|TP|EP|CP|ATTN_TP|MOE_EP)\d{1,5})+)\]")
ARGUMENTS = (
    "model_path", "served_model_name", "tp_size", "pp_size", "dp_size", "ep_size", "dcp_size", "nnodes",
    "mem_fraction_static", "context_length", "max_running_requests", "max_total_tokens", "chunked_prefill_size",
    "max_prefill_tokens", "kv_cache_dtype", "quantization", "moe_runner_backend", "attention_backend",
    "moe_a2a_backend", "enable_dp_attention", "disable_radix_cache", "disable_cuda_graph", "cuda_graph_max_bs",
    "mamba_full_memory_ratio",
    "mamba_radix_cache_strategy", "mamba_scheduler_strategy", "mamba_ssm_dtype", "max_mamba_cache_size",
    "speculative_algorithm", "speculative_num_draft_tokens", "speculative_num_steps", "disaggregation_mode",
    "page_size", "dtype", "version", "max_total_num_tokens", "max_req_input_len", "device",
)  # fmt: skip
# A line of pretty-printed server information: "name": value, at most once a name.
JSON_LINE = re.compile(r'^\s{0,40}"(\w{1,60})":\s+("(?:[^"\\]|\\.){0,400}"|[\w.+\-]{1,40}),?\s*$')
Handler: TypeAlias = Callable[[EngineState, str, int], None]


def _stage(state: EngineState, line: str, at: int) -> tuple[int, str]:
    """(pipeline stage, all tags) of the last bracket before the message."""
    tags = ""
    for match in TAGS.finditer(line, 0, at):
        tags = match[1].strip()
    stage = 0
    for name, number in re.findall(r"\b(DP|PP|TP|EP)(\d+)", tags):
        state.rank(name, int(number))
        stage = int(number) if name == "PP" else stage
    return stage, tags


def _take_arguments(state: EngineState, line: str, at: int) -> None:
    state.arguments = {**named_values(line[at:], ARGUMENTS), **state.arguments}


def _load_begins(state: EngineState, line: str, at: int) -> None:
    if match := re.search(rf"avail mem={N} GB", line[at:]):
        old = state.numbers.get("free_before_load_gib")
        state.numbers["free_before_load_gib"] = float(match[1]) if old is None else min(old, float(match[1]))
    _stage(state, line, at)
    state.stage = "load"


def _load_ends(state: EngineState, line: str, at: int) -> None:
    match = re.search(rf"mem usage={N} GB", line[at:])
    kind = re.search(r"type=(\w{1,80})", line[at:])
    stage, _ = _stage(state, line, at)
    name = kind[1] if kind else ""
    main = not state.architecture or name in ("", state.architecture)
    if match:
        (state.weights if main else state.drafts).add(stage, float(match[1]))
    if main:
        state.architecture = state.architecture or name
        if seconds := re.search(rf"elapsed={N} s", line[at:]):
            state.numbers["load_seconds"] = max(state.numbers.get("load_seconds", 0.0), float(seconds[1]))
    state.stage = "pools"


def _states(state: EngineState, line: str, at: int) -> None:
    text = line[at:]
    if not (slots := re.search(r"max_mamba_cache_size: (\d{1,12})", text)):
        return
    state.least("state_slots", int(slots[1]))
    sizes = re.findall(rf"(?:conv_state|ssm_state) size: {N} ?GB", text)
    stage, _ = _stage(state, line, at)
    if sizes:
        state.states.add(stage, sum(float(size) for size in sizes))
    if extra := re.findall(rf"intermediate_\w+ size: {N} ?GB", text):
        state.note(state.remarks, f"states kept for speculation take {sum(map(float, extra)):.2f} GiB more")


def _tokens(state: EngineState, line: str, at: int) -> None:
    text = line[at:]
    if not (match := re.search(r"#tokens: (\d{1,15})", text)):
        return
    stage, tags = _stage(state, line, at)
    sizes = re.findall(rf"\b(?:KV|K|V) size: {N} GB", text)
    if dtype := re.search(r"dtype: (?:torch\.)?(\w{1,40})", text):
        state.words.setdefault("kv_dtype", dtype[1])
    if "VA upper bound" in text:
        state.note(state.remarks, "the pool's size was reserved first and set after the graphs were captured")
        return
    key = f"pool {tags}"
    if sizes and key in state.words and "Post-capture" not in line:
        state.note(state.remarks, f"a draft model's KV pool takes {sum(map(float, sizes)):.2f} GiB more")
        return
    if len(state.words) < MOST_RANKS:
        state.words[key] = "seen"
    state.least("kv_tokens", int(match[1]))
    if sizes:
        state.pools.add(stage, sum(map(float, sizes)))


def _pool_ends(state: EngineState, line: str, at: int) -> None:
    state.stage = "graphs"


def _capture(state: EngineState, line: str, at: int) -> None:
    text = line[at:]
    if re.search(r"graph end", text, re.IGNORECASE) and (match := re.search(rf"mem usage={N} GB", text)):
        stage, tags = _stage(state, line, at)
        key = f"graphs {stage} {tags}"
        if len(state.numbers) < MOST_RANKS:
            state.numbers[key] = state.numbers.get(key, 0.0) + max(0.0, float(match[1]))
    state.stage = "graphs" if state.stage != "service" else "service"


def _limits(state: EngineState, line: str, at: int) -> None:
    found = named_values(line[max(0, at) :], ("max_total_num_tokens", "chunked_prefill_size", "max_running_requests",
                                              "context_len", "available_gpu_mem"))  # fmt: skip
    for name, value in found.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            state.least(name, value)


def _capped(state: EngineState, line: str, at: int) -> None:
    if match := re.search(r"capped to (\d{1,9})", line[at:]):
        state.least("max_running_requests", int(match[1]))
        state.note(state.remarks, f"the pool of states caps the running requests at {int(match[1]):,}")


def _ready(state: EngineState, line: str, at: int) -> None:
    state.ready, state.stage = True, "service"


def _service(state: EngineState, line: str, at: int) -> None:
    text = line[at:]
    if "#running-req" not in text and "#new-token" not in text:
        return
    state.stage = "service"
    state.service_lines += 1
    _stage(state, line, at)
    for pattern, tally in ((rf"gen throughput \(token/s\): {N}", state.generation),
                           (rf"input throughput \(token/s\): {N}", state.prompt),
                           (rf"accept len: {N}", state.acceptance)):  # fmt: skip
        if (match := re.search(pattern, text)) and float(match[1]) > 0:
            tally.add(float(match[1]))
    for name, pattern in (
        ("running", r"#running-req: (\d{1,9})"), ("waiting", r"#queue-req: (\d{1,9})"),
        ("kv_usage", rf"(?:full )?token usage: {N}"), ("state_usage", rf"mamba usage: {N}"),
    ):  # fmt: skip
        if match := re.search(pattern, text):
            state.peak(name, float(match[1]))


# (mark, handler, whether the mark is SGLang's alone)
HANDLERS: tuple[tuple[str, Handler, bool], ...] = (
    ("server_args=", _take_arguments, True),
    ("Load weight begin.", _load_begins, True),
    ("Load weight end.", _load_ends, True),
    ("Mamba Cache is allocated", _states, True),
    ("KV Cache is allocated", _tokens, True),
    ("KV Cache VA upper bound", _tokens, True),
    ("KV cache allocated. dtype", _tokens, True),
    ("Memory pool end.", _pool_ends, True),
    ("apture", _capture, False),
    ("max_total_num_tokens=", _limits, True),
    ("max_running_requests is capped", _capped, True),
    ("fired up and ready to roll", _ready, True),
    ("Prefill batch", _service, True),
    ("Decode batch", _service, True),
)
TRACES = ("/sglang/srt/", "sglang.launch_server", "sglang::", "SGLang", "[sglang")


@dataclass
class SglangLog:
    """Gathers SGLang's messages while lines pass; a new start in the same file is a reading of its own."""

    where: str
    state: EngineState = field(default_factory=EngineState)
    traces: int = 0
    information: bool = False
    found: list[Reading] = field(default_factory=list)

    def feed(self, row: int, line: str) -> None:
        """One line of the log."""
        for mark, handler, own in HANDLERS:
            if mark in line:
                at = line.find(mark)
                if mark == "server_args=" and self.state.weights.values:
                    self._close()
                self.state.evidence += own
                handler(self.state, line, at)
        if '": ' in line and len(line) < 600 and (match := JSON_LINE.match(line)):
            self._information(match)
        if not self.traces and holds(line, TRACES):
            self.traces = 1
        if line[:1] == "[" and line[20:21] == " ":
            _stage(self.state, line, 80)
        self.state.watch(row, line)

    def _information(self, match: re.Match[str]) -> None:
        """A line of pretty-printed server information. Inner states repeat the arguments: the first value stays."""
        name, text = match.groups()
        if name not in ARGUMENTS or name in self.state.arguments:
            return
        value = clean(text[1:-1]) if text.startswith('"') else plain_value(text)
        if value is not None:
            self.state.arguments[name] = value
        if name == "mem_fraction_static":
            self.information = True

    def _close(self) -> None:
        state, self.state = self.state, EngineState()
        state.settle()
        if state.evidence or self.information or (self.traces and state.failure):
            kind = "SGLang server information" if self.information and not state.weights.values else KIND
            kept(self.where, self.found, _reading(self.where, state, kind))
        self.traces, self.information = 0, False

    def readings(self) -> list[Reading]:
        """Every start that the log shows."""
        self._close()
        return self.found


def is_information(data: Mapping[str, Any]) -> bool:
    """Whether a JSON object is the answer of /get_server_info."""
    return "mem_fraction_static" in data and ("model_path" in data or "max_total_num_tokens" in data)


def information_reading(where: str, data: Mapping[str, Any]) -> LogReading:
    """The record of a server's information."""
    state = EngineState()
    for name in ARGUMENTS:
        value = data.get(name)
        if isinstance(value, str):
            state.arguments[name] = clean(value)
        elif isinstance(value, (bool, int, float)):
            state.arguments[name] = value
    return _reading(where, state, "SGLang server information")


def _reading(where: str, state: EngineState, kind: str) -> LogReading:
    """The record of one start."""
    arguments, numbers, remarks = state.arguments, state.numbers, list(state.remarks)
    tp, pp, dp, ep, dcp = (whole(arguments.get(f"{name}_size")) for name in ("tp", "pp", "dp", "ep", "dcp"))
    if tp is None and (tp := state.size("TP")):
        dp, ep, pp = (state.size(name) for name in ("DP", "EP", "PP"))
        remarks.append("layout counted from the ranks that speak: the arguments are not in this file")
    for key, value in numbers.items():
        if key.startswith("graphs "):
            state.graphs.add(int(key.split()[1]), value)
    kv_tokens = whole(numbers.get("max_total_num_tokens")) or whole(numbers.get("kv_tokens"), 0)
    kv_tokens = kv_tokens or whole(arguments.get("max_total_num_tokens"))
    dtype = arguments.get("kv_cache_dtype")
    prefill = arguments.get("disaggregation_mode")
    if isinstance(prefill, str) and prefill not in ("null", "None", ""):
        remarks.append(f"one side of a separated deployment: {prefill}")
    reading = LogReading(
        kind, where, "sglang", str(arguments.get("version", "")), str(arguments.get("model_path", "")),
        state.architecture, dict(sorted(arguments.items())),
        tp=tp, pp=pp, ep=ep, dp=dp, dcp=dcp, nodes=whole(arguments.get("nnodes")),
        utilisation=share(arguments.get("mem_fraction_static")),
        max_model_len=whole(numbers.get("context_len")) or whole(arguments.get("context_length")),
        max_num_seqs=whole(arguments.get("max_running_requests")),
        chunk_tokens=whole(numbers.get("chunked_prefill_size")) or whole(arguments.get("chunked_prefill_size")),
        kv_dtype=state.words.get("kv_dtype", "") or (str(dtype) if dtype else ""),
        moe_backend=str(arguments.get("moe_runner_backend", "")),
        attention_backend=str(arguments.get("attention_backend", "")),
        free_before_load_gib=numbers.get("free_before_load_gib"),
        weights_gib=state.weights.sorted(), draft_weights_gib=state.drafts.sorted(), kv_gib=state.pools.sorted(),
        kv_tokens=kv_tokens, state_slots=whole(numbers.get("state_slots")), state_gib=state.states.sorted(),
        running_limit=whole(numbers.get("max_running_requests")) or whole(arguments.get("max_running_requests")),
        graphs_gib=state.graphs.sorted(), load_seconds=numbers.get("load_seconds"),
        free_after_gib=numbers.get("available_gpu_mem"),
        ready=state.ready or state.service_lines > 0, service=state.service(), failure=state.failure,
        warnings=tuple(state.warnings), remarks=tuple(remarks),
    )  # fmt: skip
    return replace(reading, warnings=closing_words(reading))
