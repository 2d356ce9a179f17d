"""A plan: one model on one cluster in one layout under one engine's settings, with its ledger and its caches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from k3lib.deploy import ledger as led
from k3lib.deploy.caches import Caches, Settings, caches
from k3lib.engines import sglang, vllm
from k3lib.engines.layout import Cluster, Hardware, Layout
from k3lib.engines.rules import Engine, stage_counts, stages
from k3lib.errors import InputError, near
from k3lib.facts.catalog import devices
from k3lib.models.model import Model
from k3lib.units import GIBI, convert

ENGINES: dict[str, Engine] = {e.name: e for e in (vllm.ENGINE, vllm.FIRST_IMAGE, sglang.ENGINE)}


@dataclass(frozen=True)
class Stage:
    """One pipeline stage: its layers, its ledger on one card, and the memory it leaves for caches in B."""

    number: int
    layers: range
    lines: tuple[led.Line, ...]
    weights: float
    free: tuple[float, float, float]


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

    @property
    def copies(self) -> int:
        """Groups of cards that serve requests of their own."""
        return self.cluster.cards // (self.layout.pp * self.engine.attention_tp(self.layout))


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
    alike: dict[object, list[led.Line]] = {}  # most stages of a long pipeline hold the same
    for number, layers in enumerate(runs):
        place = (number == 0, number == len(runs) - 1)
        kind = (*stage_counts(model, layers).items(), place)
        if kind not in alike:
            alike[kind] = led.weight_lines(engine, model, layout, layers, place, copied_mlps)
        made.append(_stage(number, layers, alike[kind], reserves, capacity * utilisation))
    if settings.kv_memory_bytes:
        made = [_with_memory(stage, settings.kv_memory_bytes) for stage in made]
    return _judged(model, cluster, layout, engine, settings, capacity, utilisation, made)


def resized(plan: Plan, layout: Layout, settings: Settings) -> Plan:
    """The plan with other caches and the same weights: another dcp, longer or more requests."""
    _check(plan.model, plan.cluster, layout, plan.engine, settings)
    return _judged(plan.model, plan.cluster, layout, plan.engine, settings, plan.capacity, plan.utilisation,
                   list(plan.stages))  # fmt: skip


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
    runs = [stage.layers for stage in made]
    held = [caches(model, layout, engine, settings, runs, [stage.free[at] for stage in made]) for at in (0, 1, 2)]
    reason = _why_not(model, cluster, layout, settings, capacity, utilisation, tightest, held[0])
    return Plan(model, cluster, layout, engine, settings, not reason, reason or _what_decides(tightest), capacity,
                utilisation, tuple(made), tightest.number, held[0], held[1], held[2])  # fmt: skip


def _why_not(model: Model, cluster: Cluster, layout: Layout, settings: Settings, capacity: float, utilisation: float,
             stage: Stage, held: Caches | None) -> str:  # fmt: skip
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
    if held is None or held.max_concurrency < 1:
        got = f"the longest request that fits has {held.max_context:,} tokens" if held else "no block fits"
        return (f"{name} does not fit: {stage.free[0] / GIBI:.2f} GiB a card of stage {stage.number} are left for "
                f"caches, too little for one request of {settings.max_model_len:,} tokens; {got}")  # fmt: skip
    return ""


def _what_decides(stage: Stage) -> str:
    return f"stage {stage.number} is the tightest: {stage.free[0] / GIBI:.2f} GiB a card are left for caches"


def weights_gib(plan: Plan) -> list[float]:
    """Weights on a card of every stage, in GiB."""
    return [stage.weights / GIBI for stage in plan.stages]
