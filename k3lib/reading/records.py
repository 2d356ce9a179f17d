"""What one file can say, as frozen records. Nothing here is a prediction, and no text of a request is ever kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from k3lib.errors import InputError
from k3lib.facts.benchmarks import Run


class UnknownError(InputError):
    """A file that no reader understands. The message says what it looks like and what is understood."""


Span: TypeAlias = tuple[float, float]  # least and most among the ranks of a stage
Stage = Literal["before load", "load", "profiling", "pools", "graphs", "service", "unknown"]
FailureKind = Literal["out of memory", "refused", "crash"]


@dataclass(frozen=True)
class RunReading:
    """One benchmark run. Unknown is None or empty.

    file, place: where it was read. max_concurrency: cap of the client; mean_concurrency: what ran on average;
    peak_concurrency: the most at once. isl, osl: mean tokens of a request. Throughputs in tok/s of the whole
    deployment, times of a request in ms, user_tps in tok/s of one user. acceptance_length: tokens a step.
    warnings: why the figures need care. remarks: how they were read. own: the row, where it is one of the project's.
    """

    kind: str
    file: str
    place: str = ""
    tool: str = ""
    tool_version: str = ""
    model: str = ""
    engine: str = ""
    version: str = ""
    device: str = ""
    deployment: str = ""
    date: str = ""
    serving: str = ""
    prompts: str = ""
    speculation: str = ""
    cards: int | None = None
    tp: int | None = None
    pp: int | None = None
    ep: int | None = None
    dp: int | None = None
    dcp: int | None = None
    max_concurrency: int | None = None
    mean_concurrency: float | None = None
    peak_concurrency: float | None = None
    request_rate: float | None = None
    isl: float | None = None
    osl: float | None = None
    requests: int | None = None
    completed: int | None = None
    failed: int | None = None
    duration_s: float | None = None
    output_tps: float | None = None
    input_tps: float | None = None
    total_tps: float | None = None
    user_tps: float | None = None
    ttft_mean_ms: float | None = None
    ttft_median_ms: float | None = None
    ttft_p99_ms: float | None = None
    tpot_mean_ms: float | None = None
    tpot_median_ms: float | None = None
    tpot_p99_ms: float | None = None
    itl_mean_ms: float | None = None
    itl_median_ms: float | None = None
    itl_p99_ms: float | None = None
    e2e_mean_ms: float | None = None
    e2e_median_ms: float | None = None
    e2e_p99_ms: float | None = None
    acceptance_length: float | None = None
    steady_output_tps: float | None = None
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    own: Run | None = None


MEASURES = tuple(
    name for name in RunReading.__dataclass_fields__ if name.endswith(("_tps", "_ms")) and not name.startswith("steady")
)


@dataclass(frozen=True)
class Budget:
    """A card's memory as vLLM sums it up at the end of its start, in GiB; the rank that has most to hold.

    consumed_gib: weights and what lies outside PyTorch.
    """

    free_gib: float
    total_gib: float
    utilisation: float | None = None
    requested_gib: float | None = None
    consumed_gib: float | None = None
    activation_gib: float | None = None
    graphs_gib: float | None = None
    kv_gib: float | None = None


@dataclass(frozen=True)
class Service:
    """Lines that an engine prints while it serves. Medians are of the lines whose rate is above zero.

    lines: how many. generation_tps, prompt_tps: (most, median) in tok/s of one engine. running, waiting: most requests.
    kv_usage, state_usage, prefix_hits: highest share, 0 to 1. acceptance_length: median of what was printed.
    """

    lines: int
    generation_tps: Span | None = None
    prompt_tps: Span | None = None
    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    state_usage: float | None = None
    prefix_hits: float | None = None
    acceptance_length: float | None = None


@dataclass(frozen=True)
class Failure:
    """Why an engine did not start or stopped. row: the line of the file. Sizes in GiB where the message has them.

    consequence: the message only follows from an earlier death that this file does not show.
    """

    kind: FailureKind
    stage: Stage
    text: str
    row: int
    needed_gib: float | None = None
    available_gib: float | None = None
    total_gib: float | None = None
    possible_model_len: int | None = None
    consequence: bool = False


@dataclass(frozen=True)
class LogReading:
    """What an engine printed while it started and served. Memory in GiB; maps are by pipeline stage.

    arguments: settings as printed, only those that matter for memory and speed. weights_gib, kv_gib, graphs_gib: least
    and most among the ranks of a stage. kv_tokens, max_concurrency: as printed, the smallest where engines differ.
    state_slots: requests' states that fit (SGLang); running_limit: requests that may run at once.
    """

    kind: str
    file: str
    engine: str
    version: str = ""
    model: str = ""
    architecture: str = ""
    arguments: dict[str, str | int | float | bool] = field(default_factory=dict)
    tp: int | None = None
    pp: int | None = None
    ep: int | None = None
    dp: int | None = None
    dcp: int | None = None
    nodes: int | None = None
    partition: tuple[int, ...] = ()
    utilisation: float | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    chunk_tokens: int | None = None
    kv_dtype: str = ""
    moe_backend: str = ""
    attention_backend: str = ""
    checkpoint_gib: float | None = None
    free_before_load_gib: float | None = None
    weights_gib: dict[int, Span] = field(default_factory=dict)
    draft_weights_gib: dict[int, Span] = field(default_factory=dict)
    kv_gib: dict[int, Span] = field(default_factory=dict)
    kv_pinned: bool = False
    kv_tokens: int | None = None
    max_concurrency: float | None = None
    block_tokens: int | None = None
    padding_percent: float | None = None
    state_slots: int | None = None
    state_gib: dict[int, Span] = field(default_factory=dict)
    running_limit: int | None = None
    graphs_gib: dict[int, Span] = field(default_factory=dict)
    budget: Budget | None = None
    free_after_gib: float | None = None
    load_seconds: float | None = None
    ready: bool = False
    service: Service | None = None
    failure: Failure | None = None
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExchangeRow:
    """One measured exchange. size_bytes: message. GB/s are 1e9 B/s. wrong: values that came out wrong, None unchecked.

    name: operation (and storage) where a file measures several. network_gbs: what crosses between nodes.
    """

    name: str = ""
    size_bytes: int | None = None
    time_us: float | None = None
    algbw_gbs: float | None = None
    busbw_gbs: float | None = None
    network_gbs: float | None = None
    in_place_busbw_gbs: float | None = None
    wrong: int | None = None
    settings: str = ""


@dataclass(frozen=True)
class ExchangeReading:
    """Measured exchanges between cards. average_busbw_gbs: as printed, over all sizes; peak: of the largest ones."""

    kind: str
    file: str
    operation: str = ""
    version: str = ""
    library_version: str = ""
    ranks: int | None = None
    nodes: int | None = None
    gpu: str = ""
    shape: str = ""
    rows: tuple[ExchangeRow, ...] = ()
    average_busbw_gbs: float | None = None
    peak_busbw_gbs: float | None = None
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class OtherReading:
    """A file that is known and holds neither a run nor a log to compare. says: what it is and what it lacks."""

    kind: str
    file: str
    says: str
    values: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


Reading: TypeAlias = RunReading | LogReading | ExchangeReading | OtherReading
