"""Logical weights and the arrays that stand for them on disk; sums over them are the weight account."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import sympy as sp

from k3lib.account.storage import Format, Shape, component_bytes, stored_shape

SCALE_GROUP_SUFFIX = "_scale"


@dataclass(frozen=True)
class Tensor:
    """A logical weight, before anybody decided how to store it.

    name: pattern as in the checkpoint, with {l}, {e} or {b} for layer, expert or block.
    group: the line of the account it belongs to. role: what it is; storage and sharding rules ask for the role.
    shape: [..., out, in] or [n]. count: how many of them the checkpoint holds.
    used: the share of these weights that one token multiplies (k/E for routed experts, 0 for a look-up table).
    """

    name: str
    group: str
    role: str
    shape: Shape
    count: sp.Expr
    used: sp.Expr = sp.S.One


@dataclass(frozen=True)
class Stored:
    """An array on disk. `params`: logical parameters of all `count` of them (0 for scales, shapes and buffers)."""

    name: str
    group: str
    role: str
    shape: Shape
    dtype: str
    count: sp.Expr
    params: sp.Expr
    active_params: sp.Expr
    bytes: sp.Expr


def store(tensor: Tensor, form: Format) -> list[Stored]:
    """The arrays on disk for one logical weight in one format."""
    params = tensor.count * sp.Mul(*tensor.shape)
    arrays = []
    for c in form.components:
        payload = c.role == "payload"
        is_parameter = payload and tensor.role != "buffer"
        arrays.append(
            Stored(
                name=_array_name(tensor, c.suffix),
                group=tensor.group + (SCALE_GROUP_SUFFIX if c.role == "scale" else ""),
                role=tensor.role,
                shape=stored_shape(c, tensor.shape),
                dtype=c.dtype,
                count=tensor.count,
                params=params if is_parameter else sp.Integer(0),
                active_params=params * tensor.used if is_parameter else sp.Integer(0),
                bytes=tensor.count * component_bytes(c, tensor.shape),
            )
        )
    return arrays


def _array_name(tensor: Tensor, suffix: str) -> str:
    """`x.weight` becomes `x.weight_packed`; a fused `x_proj` becomes `x_proj_blocks`."""
    if not suffix:
        return tensor.name
    stem, dot, last = tensor.name.rpartition(".")
    return f"{stem}.{suffix}" if dot and last == "weight" else f"{tensor.name}_{suffix}"


def stored(tensors: Iterable[Tensor], format_of: Callable[[Tensor], Format]) -> tuple[Stored, ...]:
    """All arrays on disk of a model, given the rule that says which weight is stored in which format."""
    return tuple(array for tensor in tensors for array in store(tensor, format_of(tensor)))


def total_bytes(arrays: Iterable[Stored]) -> sp.Expr:
    """Bytes of the tensors; headers of the files are not counted. Unit: B."""
    return sp.Add(*(a.bytes for a in arrays))


def total_params(arrays: Iterable[Stored]) -> sp.Expr:
    """Logical parameters. Unit: parameters."""
    return sp.Add(*(a.params for a in arrays))


def active_params(arrays: Iterable[Stored]) -> sp.Expr:
    """Parameters that one text token multiplies, the token table (a look-up) not counted. Unit: parameters."""
    return sp.Add(*(a.active_params for a in arrays))


def total_tensors(arrays: Iterable[Stored]) -> sp.Expr:
    """Number of arrays in the checkpoint. Unit: tensors."""
    return sp.Add(*(a.count for a in arrays))


def by_group(arrays: Iterable[Stored]) -> dict[str, tuple[Stored, ...]]:
    """The arrays of each group, groups in order of first appearance."""
    groups: dict[str, list[Stored]] = {}
    for array in arrays:
        groups.setdefault(array.group, []).append(array)
    return {name: tuple(members) for name, members in groups.items()}


def as_mtp(tensors: Iterable[Tensor]) -> list[Tensor]:
    """The same weights as part of a multi-token-prediction head, which plain decoding does not use."""
    return [replace(t, group="mtp", used=sp.Integer(0)) for t in tensors]
