"""The lines of vLLM's log that matter, from V0 of 2024 to 0.33, looked for anywhere: prefixes mix inside a line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from k3lib.reading.arguments import named_values
from k3lib.reading.engine_log import EngineState, whole
from k3lib.reading.records import Budget
from k3lib.reading.text import clean
from k3lib.units import GIBI

N = r"(-?\d{1,12}(?:\.\d{1,12})?)"
COUNT = r"([\d,]{1,20})"
RANK_TAG = re.compile(r"_(DP|PP|TP|EP)(\d{1,5})")
OLD_RANK = re.compile(r"VllmWorker rank=(\d{1,5})")
ARGUMENTS = (
    "model", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "decode_context_parallel_size",
    "enable_expert_parallel", "gpu_memory_utilization", "max_model_len", "max_seq_len", "max_num_seqs",
    "max_num_batched_tokens", "kv_cache_dtype", "kv_cache_memory_bytes", "quantization", "moe_backend",
    "attention_backend", "enable_prefix_caching", "enforce_eager", "nnodes", "block_size", "num_speculative_tokens",
    "load_format", "dtype", "async_scheduling", "cpu_offload_gb", "kv_offloading_size", "max_concurrent_batches",
)  # fmt: skip
Handler: TypeAlias = Callable[[EngineState, str, int], None]


def stage_of(state: EngineState, line: str, at: int) -> int | None:
    """The pipeline stage of the last worker named before the message, None where several could have printed it."""
    tags = {name: int(number) for name, number in RANK_TAG.findall(line[:at][-2000:])}
    for name, number in tags.items():
        state.rank(name, number)
    if "PP" in tags:
        return tags["PP"]
    if seen := state.ranks.get("PP"):  # the prefix was lost among those of other processes
        return next(iter(seen)) if len(seen) == 1 else None
    if old := OLD_RANK.search(line[:at][-2000:]):
        tp = whole(state.arguments.get("tensor_parallel_size")) or 0
        return int(old[1]) // tp if tp and (whole(state.arguments.get("pipeline_parallel_size")) or 1) > 1 else 0
    return 0


def _count(text: str) -> int:
    return int(text.replace(",", "") or 0)


def _take_arguments(state: EngineState, line: str, at: int) -> None:
    found = named_values(line[at:], ARGUMENTS)
    state.arguments = {**found, **state.arguments}
    state.model = state.model or str(found.get("model", ""))


def _version(state: EngineState, line: str, at: int) -> None:
    match = re.search(r"(?:version |LLM engine \(v|Launching vLLM \(v)([\w.+\-]{1,60})", line[max(0, at - 2) :])
    if match:
        state.version = state.version or match[1]


def _engine(state: EngineState, line: str, at: int) -> None:
    _version(state, line, at)
    _take_arguments(state, line, at)


def _weights(state: EngineState, line: str, at: int) -> None:
    if match := re.search(rf"(?:loading took|weights took) {N} (?:GiB|GB)", line[at:]):
        state.weights.add(stage_of(state, line, at), float(match[1]))
        state.stage = "profiling"


def _available(state: EngineState, line: str, at: int) -> None:
    if match := re.search(rf"memory: {N} GiB", line[at:]):
        state.pools.add(stage_of(state, line, at), float(match[1]))
        state.stage = "pools"


def _pinned(state: EngineState, line: str, at: int) -> None:
    if match := re.search(rf"Initial free memory {N} GiB, reserved {N} ?GiB memory for KV", line[at:]):
        stage = stage_of(state, line, at)
        pinned = state.arguments.get("kv_cache_memory_bytes")
        exact = isinstance(pinned, int) and not isinstance(pinned, bool) and pinned > 0
        state.pools.add(stage, pinned / GIBI if exact else float(match[2]))  # type: ignore[operator]
        state.numbers["free_before_load_gib"] = float(match[1])
        state.pinned, state.stage = True, "pools"


def _kv_tokens(state: EngineState, line: str, at: int) -> None:
    if match := re.search(rf"KV cache size: {COUNT} tokens", line[at:]):
        state.least("kv_tokens", _count(match[1]))
        state.stage = "graphs"
    _concurrency(state, line, at)


def _concurrency(state: EngineState, line: str, at: int) -> None:
    if match := re.search(rf"Maximum concurrency for {COUNT} tokens per request: {N}x", line[at:]):
        state.least("max_concurrency", float(match[2]))
        state.numbers["length_of_concurrency"] = _count(match[1])


def _blocks(state: EngineState, line: str, at: int) -> None:
    if match := re.search(r"# (?:GPU|cuda) blocks: (\d{1,12})", line):
        state.least("gpu_blocks", int(match[1]))
        state.stage = "graphs"


def _block(state: EngineState, line: str, at: int) -> None:
    if match := re.search(r"attention block size to (\d{1,9}) tokens", line[at:]):
        state.numbers["block_tokens"] = int(match[1])


def _page(state: EngineState, line: str, at: int) -> None:
    if match := re.search(r"block size to (\d{1,9}) for (\S{1,60}) backend", line[at:]):
        state.numbers.setdefault("kernel_block_tokens", int(match[1]))
        state.words.setdefault("attention_backend", clean(match[2], 60))


def _padding(state: EngineState, line: str, at: int) -> None:
    if match := re.search(rf"page size by {N}%", line[at:]):
        state.numbers["padding_percent"] = float(match[1])


def _graphs(state: EngineState, line: str, at: int) -> None:
    if match := re.search(rf"finished in \S+ secs?, took {N} GiB", line[at:]):
        state.graphs.add(stage_of(state, line, at), max(0.0, float(match[1])))


def _capturing(state: EngineState, line: str, at: int) -> None:
    if state.stage != "service":
        state.stage = "graphs"


def _budget(state: EngineState, line: str, at: int) -> None:
    text = line[at:]
    head = re.search(rf"\({N}/{N} GiB\) on startup\. Desired GPU memory utilization is \({N}, {N} GiB\)", text)
    if not head:
        return
    parts = {
        name: float(match[1]) if (match := re.search(pattern, text)) else None
        for name, pattern in {
            "consumed": rf"Actual usage is {N} GiB for consumed", "weight": rf"Actual usage is {N} GiB for weight",
            "other": rf"{N} GiB for non-torch", "activation": rf"{N} GiB for peak activation",
            "graphs": rf"{N} GiB for CUDAGraph", "kv": rf"kv cache memory in use is {N} GiB",
        }.items()
    }  # fmt: skip
    consumed = parts["consumed"]
    if consumed is None and parts["weight"] is not None:
        consumed = parts["weight"] + (parts["other"] or 0.0)
    free, total, utilisation, requested = (float(g) for g in head.groups())
    new = Budget(free, total, utilisation, requested, consumed, parts["activation"], parts["graphs"], parts["kv"])
    stage = stage_of(state, line, at)
    if new.kv_gib is not None:
        state.pools.add(stage, new.kv_gib)
    if state.budget is None or _held(new) > _held(state.budget):
        state.budget = new


def _held(budget: Budget) -> float:
    return (budget.consumed_gib or 0.0) + (budget.activation_gib or 0.0) + (budget.graphs_gib or 0.0)


def _old_budget(state: EngineState, line: str, at: int) -> None:
    """V0: 'model weights take X GiB; ...; the rest of the memory reserved for KV Cache is Y GiB.'"""
    stage = stage_of(state, line, at)
    if match := re.search(rf"weights take {N} ?GiB", line[at:]):
        state.weights.add(stage, float(match[1]))
    if match := re.search(rf"reserved for KV Cache is {N} ?GiB", line[at:]):
        state.pools.add(stage, float(match[1]))
        state.stage = "pools"


def _length(state: EngineState, line: str, at: int) -> None:
    if match := re.search(r"max model len (\d{1,12})", line[at:]):
        state.numbers["max_model_len"] = int(match[1])


def _chunk(state: EngineState, line: str, at: int) -> None:
    if match := re.search(r"max_num_batched_tokens=(\d{1,12})", line[at:]):
        state.numbers["chunk_tokens"] = int(match[1])


def _world(state: EngineState, line: str, at: int) -> None:
    if match := re.search(r"world_size=(\d{1,6}) rank=(\d{1,6})", line[max(0, at - 1) :]):
        state.world = max(state.world, int(match[1]))
    if state.stage == "unknown":
        state.stage = "load"


def _layers(state: EngineState, line: str, at: int) -> None:
    if match := re.search(r"partitioned: \[([\d, ]{1,400})\]", line[at:]):
        state.partition = tuple(int(n) for n in re.findall(r"\d{1,5}", match[1]))


def _moe(state: EngineState, line: str, at: int) -> None:
    if match := re.search(r"Using '?([\w ]{1,40}?)'? \w{0,20} ?MoE backend", line[max(0, at - 80) :]):
        state.words.setdefault("moe_backend", clean(match[1], 40).lower())


def _attention(state: EngineState, line: str, at: int) -> None:
    if match := re.search(r"AttentionBackendEnum\.(\w{1,40}) backend", line[at:]):
        state.words.setdefault("attention_backend", match[1])


def _architecture(state: EngineState, line: str, at: int) -> None:
    if match := re.search(r"architecture: (\w{1,80})", line[at:]):
        state.architecture = match[1]


def _checkpoint(state: EngineState, line: str, at: int) -> None:
    if match := re.search(rf"Checkpoint size: {N} GiB", line[at:]):
        state.numbers["checkpoint_gib"] = float(match[1])
    state.stage = "load" if state.stage in ("unknown", "before load") else state.stage


def _loading(state: EngineState, line: str, at: int) -> None:
    state.stage = "load" if state.stage in ("unknown", "before load") else state.stage
    if match := re.search(rf"Loading weights took {N} seconds", line[at:]):
        state.numbers["load_seconds"] = max(state.numbers.get("load_seconds", 0.0), float(match[1]))


def _ready(state: EngineState, line: str, at: int) -> None:
    state.ready, state.stage = True, "service"


def _serving(state: EngineState, line: str, at: int) -> None:
    """A line that only a running service prints."""
    state.stage = "service"


def _service(state: EngineState, line: str, at: int) -> None:
    text = line[at:]
    if not (match := re.search(rf"Avg prompt throughput: {N} tokens/s, Avg generation throughput: {N} tokens/s", text)):
        return
    state.stage = "service"
    state.service_lines += 1
    for tally, value in ((state.prompt, float(match[1])), (state.generation, float(match[2]))):
        if value > 0:
            tally.add(value)
    for name, pattern, scale in (
        ("running", r"Running: (\d{1,9}) reqs", 1.0), ("waiting", r"(?:Waiting|Pending): (\d{1,9}) reqs", 1.0),
        ("kv_usage", rf"(?:GPU|NPU|host|CPU)? ?KV cache usage: {N}%", 0.01),
        ("prefix_hits", rf"Prefix cache hit rate: (?:GPU: )?{N}%", 0.01),
    ):  # fmt: skip
        if found := re.search(pattern, text):
            state.peak(name, float(found[1]) * scale)


def _accepted(state: EngineState, line: str, at: int) -> None:
    if match := re.search(rf"Mean acceptance length: {N}", line[at:]):
        state.acceptance.add(float(match[1]))


# (mark, handler, whether the mark is vLLM's alone)
HANDLERS: tuple[tuple[str, Handler, bool], ...] = (
    ("non-default args: ", _take_arguments, True),
    ("vLLM API server version", _version, True),
    ("█  version ", _version, True),
    ("args: Namespace(", _take_arguments, False),
    ("LLM engine (v", _engine, True),
    ("Launching vLLM (v", _version, True),
    ("Using max model len ", _length, True),
    ("enabled with max_num_batched_tokens=", _chunk, True),
    ("world_size=", _world, False),
    ("were unevenly partitioned", _layers, True),
    ("MoE backend", _moe, False),
    ("AttentionBackendEnum.", _attention, True),
    ("Resolved architecture: ", _architecture, True),
    ("Checkpoint size: ", _checkpoint, True),
    ("Loading weights took ", _loading, True),
    ("Starting to load model", _loading, True),
    ("Model loading took ", _weights, True),
    ("Loading model weights took ", _weights, True),
    ("model weights take ", _old_budget, True),
    ("Setting kv cache block size to ", _page, True),
    ("Setting attention block size to ", _block, True),
    ("Padding mamba page size by ", _padding, True),
    ("Available KV cache memory: ", _available, True),
    ("Initial free memory ", _pinned, True),
    ("KV cache size: ", _kv_tokens, True),
    ("Maximum concurrency for ", _concurrency, True),
    (" blocks: ", _blocks, False),
    ("Capturing CUDA graph", _capturing, False),
    ("Graph capturing finished", _graphs, True),
    ("Free memory on device", _budget, True),
    ("Application startup complete", _ready, False),
    ("Dumping scheduler output", _serving, True),
    ("EngineCore encountered a fatal error", _serving, True),
    ('"POST /v1/', _serving, False),
    ("Avg prompt throughput: ", _service, True),
    ("SpecDecoding metrics: ", _accepted, True),
)
