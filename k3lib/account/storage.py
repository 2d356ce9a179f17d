"""How one weight matrix is written to disk: its payload, its scales, their shapes and widths.

A format is a list of stored components; each says which array stands on disk for a weight of shape [..., out, in].
Sources of the layouts: data/sources.csv (checkpoint headers of each format's reference model).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sympy as sp

from k3lib.account import symbols as s
from k3lib.units import BITS_PER_BYTE

Shape = tuple[sp.Expr, ...]
Expand = Callable[[Shape, sp.Expr, sp.Expr], Shape]

# Width of one stored element. These are definitions of the data types, not facts about a model.
DTYPE_BITS = {"F32": 32, "I32": 32, "BF16": 16, "F16": 16, "F8_E4M3": 8, "F8_E8M0": 8, "U8": 8}
NIBBLES_PER_BYTE = 2
NIBBLES_PER_WORD = 8
MXFP4_GROUP = 32  # fixed by the OCP microscaling standard


@dataclass(frozen=True)
class Component:
    """One array on disk. `role`: "payload", "scale" (scales, zero points) or "shape" (bookkeeping)."""

    suffix: str
    dtype: str
    role: str
    expand: Expand


@dataclass(frozen=True)
class Format:
    """A storage format. `weight_bits`: bits of one weight's own payload, scales apart."""

    name: str
    weight_bits: int
    components: tuple[Component, ...]


def plain(dtype: str) -> Format:
    """Every element stored as `dtype`, no scales."""
    return Format(dtype, DTYPE_BITS[dtype], (Component("", dtype, "payload", lambda lead, o, i: (*lead, o, i)),))


def _blocks(lead: Shape, o: sp.Expr, i: sp.Expr) -> Shape:
    return (*lead, sp.ceiling(o / s.block_rows), sp.ceiling(i / s.block_cols))


def fp8_block(scale_dtype: str = "F32") -> Format:
    """FP8 weights, one scale for each block of b_r x b_c weights; a block that is cut by the edge has its own."""
    return Format(
        "FP8",
        8,
        (
            Component("weight", "F8_E4M3", "payload", lambda lead, o, i: (*lead, o, i)),
            Component("weight_scale_inv", scale_dtype, "scale", _blocks),
        ),
    )


def _groups(lead: Shape, o: sp.Expr, i: sp.Expr) -> Shape:
    return (*lead, o, i / s.group_size)


def int4_packed() -> Format:
    """INT4 in groups of g along a row (compressed-tensors): eight weights a word, BF16 scales, the shape beside."""
    return Format(
        "INT4",
        4,
        (
            Component("weight_packed", "I32", "payload", lambda lead, o, i: (*lead, o, i / NIBBLES_PER_WORD)),
            Component("weight_scale", "BF16", "scale", _groups),
            Component("weight_shape", "I32", "shape", lambda lead, o, i: (sp.Integer(2),)),
        ),
    )


def mxfp4() -> Format:
    """MXFP4 (OCP microscaling): two weights a byte and one E8M0 byte for each group of g along a row."""
    return Format(
        "MXFP4",
        4,
        (
            Component("weight_packed", "U8", "payload", lambda lead, o, i: (*lead, o, i / NIBBLES_PER_BYTE)),
            Component("weight_scale", "U8", "scale", _groups),
        ),
    )


def mxfp4_blocks() -> Format:
    """MXFP4 as gpt-oss stores it: the payload keeps the group as an axis of its own."""
    return Format(
        "MXFP4",
        4,
        (
            Component(
                "blocks",
                "U8",
                "payload",
                lambda lead, o, i: (*lead, o, i / s.group_size, s.group_size / NIBBLES_PER_BYTE),
            ),
            Component("scales", "U8", "scale", _groups),
        ),
    )


def nvfp4(*, input_scale: bool = False) -> Format:
    """NVFP4: two weights a byte, one FP8 scale for each group of g, one F32 scale for the tensor.

    `input_scale`: one more F32 value a tensor, stored where activations are quantised too.
    """
    components = [
        Component("weight_packed", "U8", "payload", lambda lead, o, i: (*lead, o, i / NIBBLES_PER_BYTE)),
        Component("weight_scale", "F8_E4M3", "scale", _groups),
        Component("weight_global_scale", "F32", "scale", lambda lead, o, i: (sp.Integer(1),)),
    ]
    if input_scale:
        components.append(Component("input_global_scale", "F32", "scale", lambda lead, o, i: (sp.Integer(1),)))
    return Format("NVFP4", 4, tuple(components))


def component_bytes(component: Component, shape: Shape) -> sp.Expr:
    """Bytes of one component for a weight of `shape` [..., out, in] (or [n], stored plainly)."""
    return sp.Mul(*stored_shape(component, shape)) * sp.Rational(DTYPE_BITS[component.dtype], BITS_PER_BYTE)


def stored_shape(component: Component, shape: Shape) -> Shape:
    """The shape on disk. Vectors and convolutions keep theirs; only matrices are packed or scaled."""
    if component.suffix == "":
        return shape
    *lead, out_features, in_features = shape
    return component.expand(tuple(lead), out_features, in_features)


def bits_per_weight(form: Format) -> sp.Expr:
    """Bits that one weight of a large matrix costs, scales included, per-tensor constants left out.

    Unit: bit/weight. For MXFP4 with g = 32: 4.25.
    """
    out, inner = sp.symbols("out inner", positive=True)
    total: sp.Expr = sp.Integer(0)
    for c in form.components:
        size = sp.Mul(*stored_shape(c, (out, inner))) * DTYPE_BITS[c.dtype]
        total += sp.limit(size.replace(sp.ceiling, lambda x: x) / (out * inner), out, sp.oo)
    return sp.simplify(sp.limit(total, inner, sp.oo))


# Formats by the names that users give them, with the usual size of a group or block.
NAMED: dict[str, tuple[Format, dict[sp.Symbol, int]]] = {
    "bf16": (plain("BF16"), {}),
    "fp8": (fp8_block(), {s.block_rows: 128, s.block_cols: 128}),
    "int4": (int4_packed(), {s.group_size: 32}),
    "mxfp4": (mxfp4(), {s.group_size: MXFP4_GROUP}),
    "nvfp4": (nvfp4(), {s.group_size: 16}),
}
