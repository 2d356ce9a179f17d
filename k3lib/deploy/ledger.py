"""The ledger of one stage's cards: named lines, each an expression with a grade, a range and a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from k3lib.account import sharding
from k3lib.account import symbols as s
from k3lib.account.storage import DTYPE_BITS
from k3lib.account.tensors import SCALE_GROUP_SUFFIX, Stored
from k3lib.engines.layout import Layout
from k3lib.engines.rules import TABLE_GROUPS, Engine, on_stage, split_values, stage_counts, way
from k3lib.evaluate import exact
from k3lib.facts.tables import Grade
from k3lib.models.model import Model
from k3lib.units import GIBI

ROUTED, SCALES = "routed", "routed" + SCALE_GROUP_SUFFIX


@dataclass(frozen=True)
class Line:
    """name: what the bytes are. bytes, low, high: on one card of the stage. expression: how they follow, where they do.

    outside: beside the share of the card that the engine manages. passing: only while the weights load.
    """

    name: str
    bytes: float
    low: float
    high: float
    grade: Grade
    why: str
    expression: sp.Expr | None = None
    outside: bool = False
    passing: bool = False

    @property
    def gib(self) -> float:
        """The bytes in GiB."""
        return self.bytes / GIBI


def weight_lines(engine: Engine, model: Model, layout: Layout, layers: range, place: tuple[bool, bool],
                 copied_mlps: bool) -> list[Line]:  # fmt: skip
    """The lines of a stage's weights.

    place: whether the stage is the first and the last. copied_mlps: whether
    shared experts and dense MLPs are held whole (sequence parallelism beside expert parallelism).
    """
    split = split_values(engine, model, layout)
    values = {**model.values, **split, **stage_counts(model, layers)}
    present = [a for a in model.arrays if on_stage(a, *place) and not _absent(a, values)]
    lines: list[Line] = []

    def add(name: str, arrays: Sequence[Stored], why: str, expression: sp.Expr | None = None) -> float:
        formula = sp.Add(*(sharding.weight_bytes(a, way(a)) for a in arrays)) if expression is None else expression
        size = float(exact(formula, values))
        if size:
            lines.append(Line(name, size, size, size, "exact", why, formula))
        return size

    routed = [a for a in present if a.group == ROUTED]
    scales = [a for a in present if a.group == SCALES]
    if routed:
        unpadded = _unpadded_share(model, split, engine.expert_groups(layout)[1])
        held = sp.Add(*(sharding.weight_bytes(a, sharding.EXPERTS) for a in routed + scales))
        even = {name: sp.Add(*(a.bytes for a in part)) * unpadded for name, part in (("p", routed), ("s", scales))}
        add("routed experts", routed, "this card's share of the routed experts", even["p"])
        add("scales of the experts", scales, "one scale for each group of weights", even["s"])
        add("padding of the experts", routed, "columns and experts that only fill up", held - even["p"] - even["s"])
    rest = [a for a in present if a.group not in (ROUTED, SCALES)]
    split_up = [a for a in rest if way(a) == sharding.SPLIT]
    if copied_mlps:
        mlps = [a for a in split_up if a.group.removesuffix(SCALE_GROUP_SUFFIX) in ("shared", "dense0")]
        split_up = [a for a in split_up if a not in mlps]
        size = float(exact(sp.Add(*(a.bytes for a in mlps)), values))
        share = size / values[s.tensor_parallel]
        lines.append(Line("shared experts and dense MLPs", size, share, size, "derived",
                          "held whole under sequence parallelism; split where the engine is told so"))  # fmt: skip
    tables = [a for a in split_up if a.group in TABLE_GROUPS]
    add("split weights", [a for a in split_up if a not in tables], "attention and shared experts, a share on each card")
    add("token tables", tables, "a share of the vocabulary")
    add("copied weights", [a for a in rest if way(a) == sharding.COPIED], "held whole by every card of the stage")
    if values.get(s.projection_padding) and values.get(s.layers_kda):
        add(
            "padding of projections",
            [],
            "rows that fill up the fused KDA projection",
            sharding.projection_padding_bytes(),
        )
    if routed:
        peak = sharding.repack_bytes(routed)
        size = float(exact(peak, values)) / values[s.layers_moe]
        lines.append(Line("load-time peak", size, size, size, "derived",
                          "a second copy of one layer's gate and up matrices while they are repacked",
                          peak / s.layers_moe, passing=True))  # fmt: skip
    return lines


def _absent(array: Stored, values: Mapping[sp.Symbol, int]) -> bool:
    """Whether a stage has no layer of the array's kind, or the array is an extra layer that serving does not load."""
    return array.group.startswith("mtp") or any(values.get(x) == 0 for x in array.count.free_symbols)


def _unpadded_share(model: Model, split: Mapping[sp.Symbol, int], shares: int) -> sp.Rational:
    """The even share of all experts: what one card would hold without padding."""
    return sp.Rational(1, -(-model.values[s.experts] // split[s.experts_held]) * shares)


def reserve_lines(engine: Engine, model: Model, chunk_tokens: int, graphs: bool) -> list[Line]:
    """The lines that are not weights and not caches: runtime, activations, residual rows, graphs, workspace."""
    lines = []
    beyond = max(0, chunk_tokens - engine.whole("runtime_chunk_tokens"))
    growth = engine.in_bytes("runtime_bytes_per_token")
    value, low, high = (b + beyond * t for b, t in zip(engine.in_bytes("runtime_bytes"), growth, strict=True))
    lines.append(Line("runtime and communicators", value, low, high, engine.rule("runtime_bytes").grade,
                      "context, buffers and allocator, from start-up logs"))  # fmt: skip
    base, per_token = engine.in_bytes("activation_bytes"), engine.in_bytes("activation_bytes_per_token")
    value, low, high = (b + chunk_tokens * t for b, t in zip(base, per_token, strict=True))
    lines.append(Line("activations", value, low, high, engine.rule("activation_bytes").grade,
                      f"working memory of a pass of {chunk_tokens:,} tokens",
                      outside=engine.activations_outside))  # fmt: skip
    if any(a.group == "attnres" for a in model.arrays):
        rows = residual_rows(model)
        values = {**model.values, s.chunk_tokens: chunk_tokens, s.residual_rows: rows}
        size = float(exact(sharding.residual_bytes(), values))
        lines.append(Line("attention-residual rows", size, size, size, "derived",
                          "earlier blocks' outputs of each token of a pass, on every card",
                          sharding.residual_bytes(), engine.activations_outside))  # fmt: skip
    if graphs:
        lines.append(Line("captured graphs", *engine.in_bytes("graph_bytes"), engine.rule("graph_bytes").grade,
                          "outside the engine's share", outside=True))  # fmt: skip
    lines.append(Line("kernel workspace", *engine.in_bytes("workspace_bytes"), engine.rule("workspace_bytes").grade,
                      "taken at the first pass, outside the engine's share", outside=True))  # fmt: skip
    return lines


# Beside the stored block outputs: the running sum and the change that a layer adds.
RUNNING_ROWS = 2


def residual_rows(model: Model) -> int:
    """Rows that attention residuals keep for each token: one a finished block, and the running ones.

    Source: vllm_033, KimiLinearModel.forward.
    """
    return -(-len(model.mixers) // model.residual_block) + RUNNING_ROWS


def token_bytes(model: Model, values: Mapping[sp.Symbol, int], packed: bool = False) -> int:
    """Bytes of one token in one layer that caches tokens, on one card; 0 for a model without such layers.

    packed: MLA's row as FP8 with its scales and a BF16 key.
    """
    if s.layers_mla in model.values and packed:
        return round(float(exact(sharding.packed_token_bytes(), values)))
    if s.layers_mla in model.values:
        indexed = sharding.index_token_bytes() if s.layers_index in model.values else sp.Integer(0)
        return round(float(exact(sharding.mla_token_bytes() + indexed, values)))
    if s.layers_gqa in model.values:
        return round(float(exact(sharding.gqa_token_bytes(), values)))
    return 0


def state_bytes(model: Model, values: Mapping[sp.Symbol, int]) -> int:
    """Bytes of one sequence's state in one layer that keeps one, on one card; 0 for a model without such layers."""
    if s.layers_kda in model.values:
        return round(float(exact(sharding.kda_state_bytes(), values)))
    if s.layers_gdn in model.values:
        return round(float(exact(sharding.gdn_state_bytes(), values)))
    return 0


PACKED = "fp8_ds_mla"
CACHE_DTYPES = {
    PACKED: "F8_E4M3",
    "auto": "BF16",
    "bf16": "BF16",
    "bfloat16": "BF16",
    "fp8": "F8_E4M3",
    "fp8_e4m3": "F8_E4M3",
}
STATE_DTYPES = {"float32": "F32", "bfloat16": "BF16"}


def width_bytes(dtype: str) -> int:
    """Bytes of one element."""
    return DTYPE_BITS[dtype] // 8


def engine_values(engine: Engine, model: Model, layout: Layout, cache: str, state: str) -> dict[sp.Symbol, int]:
    """All values that cache expressions need on one card."""
    split = split_values(engine, model, layout)
    widths = {s.cache_bytes: width_bytes(cache), s.state_bytes: width_bytes(state), s.conv_bytes: width_bytes("BF16")}
    return {**model.values, **split, **widths}
