"""What one card holds of a stored weight, a token or a state: the theory of splitting, without any engine's habits.

A stage is a run of layers on one group of cards; its layer counts take the place of the model's.
"""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from k3lib.account import symbols as s
from k3lib.account.tensors import Stored
from k3lib.units import BITS_PER_BYTE

# How a weight lies on the cards of a stage.
COPIED, SPLIT, EXPERTS = "copied", "split", "experts"
BF16_BYTES = 16 // BITS_PER_BYTE


def weight_bytes(array: Stored, way: str) -> sp.Expr:
    """Bytes of one stored weight on one card. Unit: B.

    copied: all of it on every card. split: a share of 1/n_tp. experts: E_card experts with I_card columns each.
    Raises ValueError for another way.
    """
    if way == COPIED:
        return array.bytes
    if way == SPLIT:
        return array.bytes / s.tensor_parallel
    if way == EXPERTS:
        return array.bytes.subs({s.experts: s.experts_held, s.expert_width: s.width_held})
    raise ValueError(f"'{way}' is no way to lay a weight: {COPIED}, {SPLIT} or {EXPERTS}")


def repack_bytes(routed: Iterable[Stored]) -> sp.Expr:
    """Payload of the gate and up matrices of a stage's experts on one card: what a repack copies, layer by layer.

    Unit: B. Source: vllm_033, prepare_moe_mxfp4_layer_for_marlin.
    """
    first = [a for a in routed if ".w2." not in a.name and "down_proj" not in a.name]
    return sp.Add(*(weight_bytes(a, EXPERTS) for a in first))


def projection_padding_bytes() -> sp.Expr:
    """Rows of zeros behind the fused projection of every KDA layer of a stage. Unit: B."""
    return s.layers_kda * s.projection_padding * s.hidden * BF16_BYTES


def residual_bytes() -> sp.Expr:
    """Rows that attention residuals keep for the tokens of one pass; every card of a stage has them all. Unit: B."""
    return s.chunk_tokens * s.residual_rows * s.hidden * BF16_BYTES


def mla_token_bytes() -> sp.Expr:
    """Bytes of one token in one MLA layer on one card: the latent has one head, so every card has all of it.

    Unit: B/token.
    """
    return (s.latent_kv + s.rope) * s.cache_bytes


# Values that share a scale in the packed row, and the bytes of one scale. Source: FlashMLA's row of 656 bytes.
PACKED_GROUP, PACKED_SCALE_BYTES = 128, 4


def packed_token_bytes() -> sp.Expr:
    """Bytes of one token in one MLA layer as a packed row: FP8 latent, F32 scales, BF16 key. Unit: B/token."""
    return s.latent_kv + s.latent_kv / PACKED_GROUP * PACKED_SCALE_BYTES + s.rope * BF16_BYTES


def index_token_bytes() -> sp.Expr:
    """Bytes of one token's key for the indexer of one layer, on every card. Unit: B/token."""
    return s.index_dim * s.cache_bytes


def gqa_token_bytes() -> sp.Expr:
    """Bytes of one token in one grouped-query layer on one card; at least one key-value head stays on each.

    Unit: B/token.
    """
    return 2 * sp.ceiling(s.kv_heads / s.tensor_parallel) * s.head_dim * s.cache_bytes


def kda_state_bytes() -> sp.Expr:
    """Bytes of one sequence's state in one KDA layer on one card; heads are split over the cards. Unit: B."""
    width = s.kda_heads * s.kda_dim / s.tensor_parallel
    return width * s.kda_dim * s.state_bytes + 3 * (s.conv_taps - 1) * width * s.conv_bytes


def gdn_state_bytes() -> sp.Expr:
    """Bytes of one sequence's state in one gated-delta-net layer on one card. Unit: B."""
    channels = 2 * s.gdn_key_heads * s.gdn_key_dim + s.gdn_value_heads * s.gdn_value_dim
    matrix = s.gdn_value_heads * s.gdn_key_dim * s.gdn_value_dim
    return (matrix * s.state_bytes + (s.conv_taps - 1) * channels * s.conv_bytes) / s.tensor_parallel


def block_bytes(token_bytes: sp.Expr) -> sp.Expr:
    """Bytes of one block of the pool of an engine that pages states and tokens alike: one page for each layer of the
    largest group. Unit: B.
    """
    return s.block_tokens * token_bytes * s.group_layers
