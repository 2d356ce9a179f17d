"""A plan: one model on one cluster in one layout under one engine's settings, with its ledger and its caches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from k3lib.deploy import ledger as led
from k3lib.engines import sglang, vllm
from k3lib.engines.layout import Cluster, Hardware, Layout
from k3lib.engines.rules import Engine, stages
from k3lib.errors import InputError, near
from k3lib.facts.catalog import devices
from k3lib.models.model import Model
from k3lib.units import GIBI, convert

ENGINES: dict[str, Engine] = {e.name: e for e in (vllm.ENGINE, vllm.FIRST_IMAGE, sglang.ENGINE)}


@dataclass(frozen=True)
class Settings:
    """What an operator sets; None is the engine's default.

    utilisation: share of a card that the engine manages. max_model_len: longest request. chunk_tokens: tokens of a
    prefill pass. draft_tokens: tokens that a draft model proposes at a time. cache_dtype, state_dtype: as the engines
    name them. kv_memory_bytes: memory for caches, one value a stage or one for all, in place of what the ledger leaves.
    """

    utilisation: float | None = None
    max_model_len: int = 32_768
    max_num_seqs: int = 256
    chunk_tokens: int | None = None
    cache_dtype: str = "auto"
    state_dtype: str = "float32"
    prefix_caching: bool = False
    graphs: bool = True
    state_ratio: float | None = None
    cache_strategy: str = "extra_buffer"
    draft_tokens: int = 0
    pp_partition: tuple[int, ...] | None = None
    kv_memory_bytes: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Stage:
    """One pipeline stage: its layers, its ledger on one card, and the memory it leaves for caches in B."""

    number: int
    layers: range
    lines: tuple[led.Line, ...]
    weights: float
    free: tuple[float, float, float]


@dataclass(frozen=True)
class Caches:
    """What the caches hold. kv_tokens, max_concurrency: as the engine prints them. kv_tokens_physical: tokens that
    the pool could hold if all of it held tokens. max_context: longest single request in tokens.
    """

    kv_tokens: int
    kv_tokens_physical: int
    max_concurrency: float
    state_slots: int
    max_running_requests: int
    block_tokens: int
    max_context: int


@dataclass(frozen=True)
class Plan:
    """fits: whether it can run. reason: why not, or what decides. capacity: memory of a card as the engine sees it, B.
    caches: None where nothing is left for them; caches_low, caches_high: at the ends of the ledger's range.
    """

    model: Model
    cluster: Cluster
    layout: Layout
    engine: Engine
    settings: Settings
    fits: bool
    reason: str
    capacity: float
    utilisation: float
    stages: tuple[Stage, ...]
    tightest: int
    caches: Caches | None
    caches_low: Caches | None = field(default=None)
    caches_high: Caches | None = field(default=None)


def capacity_bytes(device: str, hardware: Hardware | None = None) -> float:
    """Memory of a card as an engine sees it, else as the driver shows it. Unit: B. Raises InputError without either."""
    table = hardware or devices()
    for quantity in ("memory_visible", "memory_shown"):
        if (device, quantity) in table:
            fact = table[device, quantity]
            return convert(fact.value, fact.unit, "B")
    raise InputError(f"data/hardware.csv does not say what memory the driver shows for {device}")


def make_plan(model: Model, cluster: Cluster, layout: Layout, engine_name: str, settings: Settings,
              hardware: Hardware | None = None) -> Plan:  # fmt: skip
    """The plan, fitting or not. Raises InputError for settings or a layout that cannot be.

    hardware: device facts, if not those of data/hardware.csv.
    """
    if engine_name not in ENGINES:
        raise InputError(f"--engine {engine_name}: not known. {near(engine_name, ENGINES)}")
    engine = ENGINES[engine_name]
    _check(model, cluster, layout, engine, settings)
    utilisation = engine.rule("utilisation").value if settings.utilisation is None else settings.utilisation
    if settings.kv_memory_bytes:
        utilisation = 1.0  # the share only sizes the caches, and their size is given
    capacity = capacity_bytes(cluster.device, hardware)
    chunk = settings.chunk_tokens or engine.whole("chunk_tokens")
    reserves = led.reserve_lines(engine, model, chunk, settings.graphs)
    copied_mlps = engine.paged and layout.ep > 1 and layout.dp > 1 and layout.tp > 1 and layout.pp == 1
    runs = stages(engine, model, layout, settings.pp_partition)
    made = []
    for number, layers in enumerate(runs):
        place = (number == 0, number == len(runs) - 1)
        weights = led.weight_lines(engine, model, layout, layers, place, copied_mlps)
        made.append(_stage(number, layers, weights, reserves, capacity * utilisation))
    if settings.kv_memory_bytes:
        made = [_with_memory(stage, settings.kv_memory_bytes) for stage in made]
    return _judged(model, cluster, layout, engine, settings, capacity, utilisation, made)


def _check(model: Model, cluster: Cluster, layout: Layout, engine: Engine, settings: Settings) -> None:
    reasons = engine.check(model, layout)
    if reasons:
        raise InputError(f"--layout {layout}: {reasons[0]}")
    cards = engine.cards(layout)
    if cards > cluster.cards or cluster.cards % cards:
        raise InputError(
            f"--layout {layout} takes {cards} cards; {cluster} has {cluster.cards}, not a multiple of that"
        )
    u = settings.utilisation
    if u is not None and not 0 < u <= 1:
        raise InputError(f"--gpu-memory-utilization / --mem-fraction-static {u}: must be above 0 and at most 1")
    for name, value in (("--max-model-len", settings.max_model_len), ("--max-num-seqs", settings.max_num_seqs),
                        ("--max-num-batched-tokens", settings.chunk_tokens or 1)):  # fmt: skip
        if value < 1:
            raise InputError(f"{name} {value}: must be at least 1")
    if settings.draft_tokens < 0:
        raise InputError(f"--draft-tokens {settings.draft_tokens}: must be at least 0")
    if settings.draft_tokens and layout.pp > 1:
        raise InputError(
            f"--draft-tokens {settings.draft_tokens}: neither engine runs a draft model with pipeline stages"
        )
    _known("--kv-cache-dtype", settings.cache_dtype, led.CACHE_DTYPES)
    _known("--mamba-ssm-dtype", settings.state_dtype, led.STATE_DTYPES)


def _known(flag: str, value: str, names: Mapping[str, str]) -> None:
    if value not in names:
        raise InputError(f"{flag} {value}: not known. {near(value, names)}")


def _stage(number: int, layers: range, weights: list[led.Line], reserves: list[led.Line], budget: float) -> Stage:
    inside = [line for line in (*weights, *reserves) if not (line.outside or line.passing)]
    used, low, high = (sum(getattr(line, name) for line in inside) for name in ("bytes", "low", "high"))
    held = sum(line.bytes for line in weights if not line.passing)
    return Stage(number, layers, (*weights, *reserves), held,
                 (budget - used, budget - high, budget - low))  # fmt: skip


def _with_memory(stage: Stage, memory: Sequence[float]) -> Stage:
    if stage.number >= len(memory) and len(memory) != 1:
        raise InputError(f"--kv-memory-gib: gives {len(memory)} values, there is a stage {stage.number + 1}")
    free = memory[0] if len(memory) == 1 else memory[stage.number]
    if not (math.isfinite(free) and free > 0):
        raise InputError(f"--kv-memory-gib {free / GIBI:g}: must be above 0")
    return Stage(stage.number, stage.layers, stage.lines, stage.weights, (free, free, free))


def _judged(model: Model, cluster: Cluster, layout: Layout, engine: Engine, settings: Settings, capacity: float,
            utilisation: float, made: list[Stage]) -> Plan:  # fmt: skip
    tightest = min(made, key=lambda stage: stage.free[0])
    caches = [_caches(model, layout, engine, settings, made, at) for at in (0, 1, 2)]
    reason = _why_not(model, cluster, layout, settings, capacity, utilisation, tightest, caches[0])
    return Plan(model, cluster, layout, engine, settings, not reason, reason or _what_decides(tightest), capacity,
                utilisation, tuple(made), tightest.number, caches[0], caches[1], caches[2])  # fmt: skip


def _why_not(model: Model, cluster: Cluster, layout: Layout, settings: Settings, capacity: float, utilisation: float,
             stage: Stage, caches: Caches | None) -> str:  # fmt: skip
    offered = f"{capacity * utilisation / GIBI:.1f} GiB ({capacity / GIBI:.1f} GiB x {utilisation:g})"
    name = f"{model.name} on {cluster} as {layout}"
    if stage.weights > capacity * utilisation:
        return (f"{name} does not fit: weights need {stage.weights / GIBI:.1f} GiB on a card of stage {stage.number}, "
                f"a card offers {offered}")  # fmt: skip
    peak = next((line.bytes for line in stage.lines if line.passing), 0.0)
    if stage.weights + peak > capacity:
        return (f"{name} does not fit: while the weights load a card of stage {stage.number} needs "
                f"{(stage.weights + peak) / GIBI:.1f} GiB of {capacity / GIBI:.1f} GiB")  # fmt: skip
    if stage.free[0] <= 0:
        broke, total = "", 0.0
        for line in stage.lines:
            total += 0 if line.outside or line.passing else line.bytes
            if total > capacity * utilisation:
                broke = line.name
                break
        return (f"{name} does not fit: '{broke}' is the line that goes beyond {offered} on a card of stage "
                f"{stage.number}; {-stage.free[0] / GIBI:.1f} GiB are missing")  # fmt: skip
    least = sum(line.low for line in stage.lines if not line.passing) + (
        stage.free[0] if settings.kv_memory_bytes else 0
    )
    if settings.kv_memory_bytes and least > capacity:
        return (f"{name} does not fit: with {stage.free[0] / GIBI:.1f} GiB for caches a card of stage {stage.number} "
                f"needs at least {least / GIBI:.1f} GiB of {capacity / GIBI:.1f} GiB")  # fmt: skip
    beside, left = sum(line.low for line in stage.lines if line.outside), capacity * (1 - utilisation)
    if not settings.kv_memory_bytes and beside > left:
        names = " and ".join(f"'{line.name}'" for line in stage.lines if line.outside)
        return (f"{name} does not fit: {names} need at least {beside / GIBI:.1f} GiB beside the engine's share, which "
                f"leaves {left / GIBI:.1f} GiB; lower the share")  # fmt: skip
    if caches is None or caches.max_concurrency < 1:
        got = f"the longest request that fits has {caches.max_context:,} tokens" if caches else "no block fits"
        return (f"{name} does not fit: {stage.free[0] / GIBI:.2f} GiB a card of stage {stage.number} are left for "
                f"caches, too little for one request of {settings.max_model_len:,} tokens; {got}")  # fmt: skip
    return ""


def _what_decides(stage: Stage) -> str:
    return f"stage {stage.number} is the tightest: {stage.free[0] / GIBI:.2f} GiB a card are left for caches"


def _caches(model: Model, layout: Layout, engine: Engine, settings: Settings, made: Sequence[Stage],
            at: int) -> Caches | None:  # fmt: skip
    """The caches at the ledger's value (0), its tight end (1) or its loose end (2); None where nothing fits."""
    if any(stage.free[at] <= 0 for stage in made):
        return None
    cache, state = led.CACHE_DTYPES[settings.cache_dtype], led.STATE_DTYPES[settings.state_dtype]
    values = led.engine_values(engine, model, layout, cache, state)
    packed = settings.cache_dtype == led.PACKED
    token, kept = led.token_bytes(model, values, packed), led.state_bytes(model, values)
    free = [stage.free[at] for stage in made]
    if engine.paged:
        return _paged(model, layout, engine, settings, made, free, token, kept)
    return _pooled(model, layout, engine, settings, made, free, token, kept)


def _paged(model: Model, layout: Layout, engine: Engine, settings: Settings, made: Sequence[Stage],
           free: Sequence[float], token: int, kept: int) -> Caches | None:  # fmt: skip
    """vLLM: one pool of blocks; a request takes blocks for its tokens and for each group of state layers."""
    plain, multiple = engine.whole("plain_block_tokens"), engine.whole("block_token_multiple")
    length = vllm.block_length(token, kept, multiple, plain)
    groups, largest = vllm.layer_groups(model.mixers, [st.layers for st in made], engine.rule("group_slack").value)
    page = length * token
    blocks = min(math.floor(f / (page * n)) for f, n in zip(free, largest, strict=True) if n)
    each = vllm.blocks_of_request(
        settings.max_model_len, length, layout.dcp, groups, settings.prefix_caching, settings.draft_tokens
    )
    states = vllm.blocks_of_request(0, length, layout.dcp, groups, settings.prefix_caching, settings.draft_tokens)
    concurrency = blocks / each
    longest = max(0, blocks - 1 - states) * length * layout.dcp  # one block is kept empty
    longest = min(longest, model.longest or longest)
    if blocks < 1:
        return None
    return Caches(
        kv_tokens=math.floor(concurrency * settings.max_model_len),
        kv_tokens_physical=blocks * length * layout.dcp,
        max_concurrency=concurrency,
        state_slots=blocks // states if states else 0,
        max_running_requests=min(settings.max_num_seqs, math.floor(concurrency)),
        block_tokens=length,
        max_context=longest,
    )


def _pooled(model: Model, layout: Layout, engine: Engine, settings: Settings, made: Sequence[Stage],
            free: Sequence[float], token: int, kept: int) -> Caches | None:  # fmt: skip
    """SGLang: state slots and tokens in two pools whose sizes stand in a set ratio."""
    ratio = engine.rule("state_ratio").value if settings.state_ratio is None else settings.state_ratio
    if not 0 < ratio < math.inf:
        raise InputError(f"--mamba-full-memory-ratio {ratio}: must be above 0")
    page = engine.whole("plain_block_tokens")
    slots, tokens = math.inf, math.inf
    for stage, left in zip(made, free, strict=True):
        mixers = [model.mixers[i] for i in stage.layers]
        states = sum(m in ("kda", "gdn") for m in mixers) * kept
        draft = engine.in_bytes("draft_bytes_per_token")[0] if settings.draft_tokens else 0.0
        cell = draft + (len(mixers) - sum(m in ("kda", "gdn") for m in mixers)) * token
        for_states = left * ratio / (1 + ratio) if states else 0.0
        if states:
            slots = min(slots, math.floor(for_states / states) - 1)  # one slot beyond those that requests use
        if cell:
            tokens = min(tokens, (math.floor((left - for_states) / cell) - page) // page * page)
    if tokens < 1 or slots < 1:
        return None
    per_request = sglang.slots_per_request(settings.cache_strategy, layout.pp > 1) + settings.draft_tokens
    running = math.floor(slots / per_request) if math.isfinite(slots) else settings.max_num_seqs
    tokens = int(tokens)
    return Caches(
        kv_tokens=tokens,
        kv_tokens_physical=tokens,
        max_concurrency=tokens / settings.max_model_len,
        state_slots=int(slots) if math.isfinite(slots) else 0,
        max_running_requests=min(settings.max_num_seqs, running),
        block_tokens=page,
        max_context=min(tokens, model.longest or tokens),
    )


def weights_gib(plan: Plan) -> list[float]:
    """Weights on a card of every stage, in GiB."""
    return [stage.weights / GIBI for stage in plan.stages]
