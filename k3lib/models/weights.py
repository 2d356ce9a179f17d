"""The weight account of one model in numbers: what `k3 weights` prints and the notebooks record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from k3lib.account import cache
from k3lib.account import symbols as s
from k3lib.account import tensors as t
from k3lib.evaluate import whole
from k3lib.models.model import Model

# Widths that engines use unless told otherwise: BF16 tokens and convolution memory, FP32 recurrent state.
CACHE_WIDTHS = {s.cache_bytes: 2, s.conv_bytes: 2, s.state_bytes: 4}


@dataclass(frozen=True)
class WeightAccount:
    """Sizes of a model. Bytes are tensor bytes, file headers apart.

    groups: bytes by group. scale_bytes: scales and zero points in all groups. expert_bytes: one routed expert of
    one layer, 0 without experts. kv_bytes_per_token (without the keys of an
    indexer), indexer_bytes_per_token, state_bytes_per_sequence: one replica at `CACHE_WIDTHS`.
    """

    bytes: int
    tensors: int
    params: int
    active_params: int
    routed_params: int
    routed_bytes: int
    scale_bytes: int
    expert_bytes: int
    groups: Mapping[str, int]
    kv_bytes_per_token: int
    indexer_bytes_per_token: int
    state_bytes_per_sequence: int


ROUTED_GROUPS = ("routed", "routed" + t.SCALE_GROUP_SUFFIX)


def routed_arrays(model: Model) -> tuple[t.Stored, ...]:
    """The arrays of the routed experts, scales included."""
    return tuple(a for a in model.arrays if a.group in ROUTED_GROUPS)


def cache_expressions(model: Model) -> tuple[sp.Expr, sp.Expr]:
    """Bytes a token and bytes a sequence, as the sum of the blocks that this model has."""
    v = model.values
    token, sequence = sp.Integer(0), sp.Integer(0)
    if s.layers_mla in v:
        token += cache.mla_cache_bytes_per_token()
    if s.layers_gqa in v:
        per_token = cache.gqa_cache_bytes_per_token()
        token += per_token if s.layers_window in v else per_token.subs(s.layers_window, 0)
    if s.layers_window in v:
        sequence += cache.window_cache_bytes()
    if s.layers_kda in v:
        sequence += cache.kda_state_bytes()
    if s.layers_gdn in v:
        sequence += cache.gdn_state_bytes()
    return token, sequence


def weight_account(model: Model) -> WeightAccount:
    """Evaluate the account of a model exactly."""
    values = model.values

    def value(expression: sp.Expr) -> int:
        return whole(expression, values)

    routed = routed_arrays(model)
    experts = value(s.layers_moe * s.experts) if routed else 0
    routed_bytes = value(t.total_bytes(routed))
    token, sequence = cache_expressions(model)
    widths = {**values, **CACHE_WIDTHS}
    groups = {name: value(t.total_bytes(members)) for name, members in t.by_group(model.arrays).items()}
    return WeightAccount(
        bytes=sum(groups.values()),
        tensors=value(t.total_tensors(model.arrays)),
        params=value(t.total_params(model.arrays)),
        active_params=value(t.active_params(model.arrays)),
        routed_params=value(t.total_params(routed)),
        routed_bytes=routed_bytes,
        scale_bytes=sum(b for name, b in groups.items() if name.endswith(t.SCALE_GROUP_SUFFIX)),
        expert_bytes=routed_bytes // experts if experts else 0,
        groups=groups,
        kv_bytes_per_token=whole(token, widths),
        indexer_bytes_per_token=whole(cache.indexer_cache_bytes_per_token(), widths) if s.layers_index in values else 0,
        state_bytes_per_sequence=whole(sequence, widths),
    )
