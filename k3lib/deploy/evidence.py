"""What the ledger predicts for a row of evidence, and whether that agrees with what was printed or met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from k3lib.account import symbols as s
from k3lib.deploy import ledger as led
from k3lib.deploy.caches import Caches, Settings
from k3lib.deploy.plan import ENGINES, Plan, Stage, make_plan
from k3lib.engines.layout import Layout, parse_cluster, parse_layout
from k3lib.engines.rules import Engine, rank_width
from k3lib.errors import InputError, near
from k3lib.evaluate import exact
from k3lib.facts.catalog import devices, model_names
from k3lib.facts.evidence import Case, MemoryLog, Verdict
from k3lib.models.model import Model, load_model
from k3lib.models.weights import weight_account
from k3lib.units import GIBI, UNITS, convert

ENDS = ("bytes", "low", "high")  # a ledger line's value, its least and its most
PRINTED_GIB, PRINTED_RATIO = 0.01, 0.005  # what two printed decimals can tell, the account's own rounding included
TOLERANCE = {"GiB": PRINTED_GIB, "1": PRINTED_RATIO}

_SETTERS: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("utilisation", "state_ratio"), float),
    **dict.fromkeys(("max_model_len", "max_num_seqs", "chunk_tokens", "draft_tokens"), int),
    **dict.fromkeys(("cache_dtype", "state_dtype", "cache_strategy"), str),
    **dict.fromkeys(("prefix_caching", "graphs"), lambda text: text == "true"),
    "pp_partition": lambda text: tuple(map(int, text.split(","))),
}  # fmt: skip


def settings_of(row: MemoryLog | Case, rounding: int = 0) -> Settings:
    """The engine's settings of a row. Raises InputError for a name that is none.

    rounding: -1 or 1 for the least or the most memory that is printed as the row's kv_memory_gib, 0 for that itself.
    """
    given: dict[str, object] = {}
    for name, text in row.flags.items():
        if name == "kv_memory_gib":
            half = 0.5 * 10.0 ** -len(text.partition(".")[2])
            given["kv_memory_bytes"] = ((float(text) + rounding * half) * GIBI,)
        elif name in _SETTERS:
            given[name] = _SETTERS[name](text)
        else:
            raise InputError(f"settings '{row.settings}': {name} is not known. {near(name, _SETTERS)}")
    return replace(Settings(), **given)  # type: ignore[arg-type]


def _stage(plan: Plan, row: MemoryLog | Case) -> Stage:
    return plan.stages[plan.tightest if row.stage is None else row.stage]


def _lines(*names: str) -> Callable[[Plan, Stage, int], float]:
    """Bytes of a stage's lines of these names."""
    return lambda plan, stage, at: sum(getattr(line, ENDS[at]) for line in stage.lines if line.name in names)


def _cached(name: str) -> Callable[[Plan, Stage, int], float]:
    """A property of the caches, 0 where there are none."""

    def read(plan: Plan, stage: Stage, at: int) -> float:
        caches = _caches(plan, at)
        return float(getattr(caches, name)) if caches else 0.0

    return read


def _caches(plan: Plan, at: int) -> Caches | None:
    return (plan.caches, plan.caches_low, plan.caches_high)[at]


def _pool(tokens: int, state: int, conv: int) -> Callable[[Plan, Stage, int], float]:
    """Bytes of one of SGLang's pools; each factor switches a part on. One slot and one page are kept beside them."""

    def size(plan: Plan, stage: Stage, at: int) -> float:
        caches = _caches(plan, at)
        if not caches:
            return 0.0
        chosen = plan.settings
        values = led.engine_values(plan.engine, plan.model, plan.layout, led.CACHE_DTYPES[chosen.cache_dtype],
                                   led.STATE_DTYPES[chosen.state_dtype])  # fmt: skip
        values = {**values, s.state_bytes: values[s.state_bytes] * state, s.conv_bytes: values[s.conv_bytes] * conv}
        kinds = [plan.model.mixers[i] for i in stage.layers]
        rows = (caches.kv_tokens_physical + caches.block_tokens) * tokens
        slots = caches.state_slots + 1
        return (kinds.count("mla") * rows * led.token_bytes(plan.model, values)
                + kinds.count("kda") * slots * led.state_bytes(plan.model, values))  # fmt: skip

    return size


RUNTIME = "runtime and communicators"
EXPERT_LINES = ("routed experts", "scales of the experts", "padding of the experts")
# Read off a plan, at its value (0), its tight end (1) or its loose end (2). Sizes are in B.
OF_PLAN: dict[str, Callable[[Plan, Stage, int], float]] = {
    "fits": lambda plan, stage, at: plan.fits,
    "weights_gib": lambda plan, stage, at: stage.weights,
    "routed_gb": _lines(*EXPERT_LINES),
    "consumed_gib": lambda plan, stage, at: stage.weights + _lines(RUNTIME)(plan, stage, at),
    "activation_gib": _lines("activations", "attention-residual rows"),
    "graphs_gib": _lines("captured graphs"),
    "free_gib": lambda plan, stage, at: stage.free[at],
    "recurrent_pool_gib": _pool(0, 1, 0),
    "conv_pool_gib": _pool(0, 0, 1),
    "token_pool_gib": _pool(1, 0, 0),
    "best_concurrency": _cached("max_running_requests"),
    **{name: _cached(name) for name in ("kv_tokens", "max_concurrency", "block_tokens", "state_slots",
                                        "max_running_requests", "max_context")},
}  # fmt: skip


def _state_bytes(model: Model, layout: Layout, engine: Engine) -> float:
    values = led.engine_values(engine, model, layout, led.CACHE_DTYPES["auto"], led.STATE_DTYPES["float32"])
    return led.state_bytes(model, values)


# Read off a model and how an engine lays it out, whatever the cluster.
OF_LAYOUT: dict[str, Callable[[Model, Layout, Engine], float]] = {
    "expert_columns": lambda model, layout, engine: rank_width(engine, model.values[s.expert_width], layout),
    "expert_columns_even": lambda model, layout, engine: model.values[s.expert_width] / engine.expert_groups(layout)[1],
    "experts_held": lambda model, layout, engine: -(-model.values[s.experts] // engine.expert_groups(layout)[0]),
    "state_bytes": _state_bytes,
}
# Read off a model alone.
OF_MODEL: dict[str, Callable[[Model], float]] = {
    "checkpoint": lambda model: weight_account(model).bytes,
    "bytes_per_token": lambda model: weight_account(model).kv_bytes_per_token,
    "experts_stored": lambda model: model.values[s.experts] * model.values[s.layers_moe],
    "kda_layer_params": lambda model: float(
        exact(sum(a.params for a in model.arrays if a.group == "kda") / s.layers_kda, model.values)
    ),
}


def predicted_range(row: MemoryLog | Case) -> tuple[float, float, float] | None:
    """What the ledger gives for a row as (value, low, high) in the row's unit; None where it has no say.

    The ends are those of the ledger, or where the row gives the memory for caches, those of that print's rounding.
    """
    name, _, form = row.model.partition("+")
    if name not in model_names():
        return None
    model = load_model(name, form or None)
    if row.quantity in OF_MODEL:
        found = [float(OF_MODEL[row.quantity](model))]
    elif row.quantity in OF_LAYOUT:
        # A state is shared by heads and experts by sets in every engine; one that is not known is taken as vLLM.
        engine = ENGINES.get(row.engine, ENGINES["vllm"])
        found = [float(OF_LAYOUT[row.quantity](model, parse_layout(row.layout or "tp1"), engine))]
    elif row.quantity not in OF_PLAN or not _covered(row):
        return None
    else:
        given = "kv_memory_gib" in row.flags
        plans = [make_plan(model, parse_cluster(row.cluster), parse_layout(row.layout), row.engine,
                           settings_of(row, step if given else 0)) for step in (0, -1, 1)]  # fmt: skip
        read = OF_PLAN[row.quantity]
        found = [float(read(plan, _stage(plan, row), at)) for at, plan in enumerate(plans)]
    found = [_in_unit(value, row.unit) for value in found]
    return found[0], min(found), max(found)


def _covered(row: MemoryLog | Case) -> bool:
    """Whether engine, device, cluster and layout are stated and known."""
    known = {name for name, _ in devices()}
    return row.engine in ENGINES and bool(row.layout) and row.cluster.split("x", 2)[-1] in known


def _in_unit(value: float, unit: str) -> float:
    dimension = UNITS[unit].dimension
    base = {"bytes": "B", "bytes per token": "B/token", "parameters": "parameters"}.get(dimension)
    return convert(value, base, unit) if base else value


def predicted(row: MemoryLog | Case) -> float | bool | None:
    """What the ledger gives for a row, in the row's unit; None where it has no say."""
    found = predicted_range(row)
    if found is None:
        return None
    return bool(found[0]) if row.quantity == "fits" else found[0]


def verdict(row: MemoryLog | Case) -> Verdict:
    """Whether the row's range and the predicted one meet, within what the printed decimals can tell."""
    found = predicted_range(row)
    if found is None:
        return "outside"
    low = row.value if row.low is None else row.low
    high = row.value if row.high is None else row.high
    tolerance = TOLERANCE.get(row.unit, 0.0)
    return "agrees" if max(low, found[1]) - min(high, found[2]) <= tolerance else "misses"
