"""An engine's rules: which weights it splits, how it pads, where it cuts the pipeline, which layouts it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sympy as sp

from k3lib.account import sharding
from k3lib.account import symbols as s
from k3lib.account.tensors import SCALE_GROUP_SUFFIX, Stored
from k3lib.engines.layout import Layout
from k3lib.errors import InputError, near
from k3lib.facts.catalog import EngineRule, engine_rules
from k3lib.models.model import Model
from k3lib.units import convert

# Weights that every card of a stage holds whole: small ones, the router, the projections into the experts' latent,
# MLA's down-projections (one head), KDA's low-rank gate, the vision tower. Sources: vllm_033, sglang_0523.
COPIED_GROUPS = frozenset({"router", "latent", "norm", "attnres", "vision", "projector"})
COPIED_NAMES = ("f_a_proj", "q_a_", "kv_a_", "o_norm", "q_norm", "k_norm", "indexer.w")
TABLE_GROUPS = frozenset({"embed", "lm_head"})


@dataclass(frozen=True)
class Engine:
    """name, version: as in data/engines.csv. partition: layers of each stage, unless the user says otherwise.

    expert_groups: how the cards share experts, as (cards that share the set, cards that share each one's width).
    check: reasons why a layout cannot be, empty where it can. activations_outside: whether working memory comes out of
    what the engine leaves free, not out of its own share. paged: whether states and tokens share one pool of blocks.
    mixes: whether prompts ride in the passes that generate; otherwise they have passes of their own.
    base: the engine whose rules hold where this version has none of its own.
    """

    name: str
    version: str
    partition: Callable[[int, int], list[int]]
    expert_groups: Callable[[Layout], tuple[int, int]]
    attention_tp: Callable[[Layout], int]
    cards: Callable[[Layout], int]
    check: Callable[[Model, Layout], list[str]]
    activations_outside: bool = False
    paged: bool = True
    mixes: bool = True
    base: str | None = None

    def rule(self, name: str) -> EngineRule:
        """A rule by name. Raises InputError with the near name."""
        rules = {**engine_rules().get(self.base or "", {}), **engine_rules()[self.name]}
        if name not in rules:
            raise InputError(f"data/engines.csv has no rule '{name}' for {self.name}. {near(name, rules)}")
        return rules[name]

    def whole(self, name: str) -> int:
        """A rule that is a whole number."""
        return round(self.rule(name).value)

    def in_bytes(self, name: str) -> tuple[float, float, float]:
        """A rule in B (or B/token) as (value, low, high)."""
        row = self.rule(name)
        target = "B/token" if row.unit.endswith("/token") else "B"
        low = row.value if row.low is None else row.low
        high = row.value if row.high is None else row.high
        value, low, high = (convert(x, row.unit, target) for x in (row.value, low, high))
        return value, low, high


def way(array: Stored) -> str:
    """How an engine lays a stored weight on the cards of its stage."""
    group = array.group.removesuffix(SCALE_GROUP_SUFFIX)
    if group == "routed":
        return sharding.EXPERTS
    if group in COPIED_GROUPS or any(part in array.name for part in COPIED_NAMES):
        return sharding.COPIED
    return sharding.SPLIT


def rank_width(engine: Engine, width: int, layout: Layout) -> int:
    """Columns of an expert that one card holds, padded as the engine does.

    Without expert parallelism the tensor-parallel share is raised to a floor first, then to a multiple of what the
    kernel takes; with it every card holds whole experts, which an older version raised all the same.
    """
    _, shares = engine.expert_groups(layout)
    floor = engine.whole("width_floor")
    if shares == 1:
        raised = engine.whole("floor_under_ep") and width / layout.tp < floor
        return floor * layout.tp if raised else width
    share = math.ceil(width / shares)
    if width / layout.tp < floor:
        share = max(share, floor)
    multiple = engine.whole("kernel_width_multiple")
    return math.ceil(share / multiple) * multiple


def split_values(engine: Engine, model: Model, layout: Layout) -> dict[sp.Symbol, int]:
    """Values of the layout's symbols for one model: how many experts and columns a card holds, and paddings."""
    v = model.values
    values = {s.tensor_parallel: engine.attention_tp(layout)}
    if s.experts in v:
        sets, _ = engine.expert_groups(layout)
        values[s.experts_held] = math.ceil(v[s.experts] / sets)
        values[s.width_held] = rank_width(engine, v[s.expert_width], layout)
    if s.layers_kda in v:
        rows = v[s.kda_heads] // engine.attention_tp(layout)
        values[s.projection_padding] = -rows % engine.whole("projection_row_multiple")
    return values


def stages(engine: Engine, model: Model, layout: Layout, partition: Sequence[int] | None) -> list[range]:
    """The layers of every pipeline stage. Raises InputError for a partition that does not fit."""
    total = len(model.mixers)
    sizes = list(partition) if partition else engine.partition(total, layout.pp)
    if len(sizes) != layout.pp:
        raise InputError(
            f"--pp-partition {','.join(map(str, sizes))}: has {len(sizes)} stages, the layout has {layout.pp}"
        )
    if sum(sizes) != total or min(sizes) < 1:
        raise InputError(
            f"--pp-partition {','.join(map(str, sizes))}: adds up to {sum(sizes)} layers, the model has {total}"
        )
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return [range(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def stage_counts(model: Model, layers: range) -> dict[sp.Symbol, int]:
    """Layer counts of a stage in the place of the model's."""
    mixers = [model.mixers[i] for i in layers]
    mlps = [model.mlps[i] for i in layers]
    kinds = {s.layers_mla: "mla", s.layers_kda: "kda", s.layers_gqa: "gqa", s.layers_gdn: "gdn"}
    counts = {symbol: mixers.count(kind) for symbol, kind in kinds.items()}
    counts |= {s.layers_dense: mlps.count("dense"), s.layers_moe: mlps.count("moe"), s.layers: len(layers)}
    if s.layers_index in model.values:
        counts[s.layers_index] = mixers.count("mla") * model.values[s.layers_index] // model.values[s.layers_mla]
    return {symbol: n for symbol, n in counts.items() if symbol in model.values or n}


def on_stage(array: Stored, first: bool, last: bool) -> bool:
    """Whether a stage holds an array at all: the token table is on the first, head and final norms on the last."""
    if array.count.free_symbols or array.group in ("vision", "projector"):
        return True
    if array.group == "embed":
        return first
    return last


def divides(model: Model, symbol: sp.Symbol, by: int, what: str, axis: str) -> list[str]:
    """A reason against a layout when a size of the model cannot be shared evenly."""
    size = model.values.get(symbol)
    return [f"{axis} {by} does not divide {what} {size:,}"] if size is not None and size % by else []
