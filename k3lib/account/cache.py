"""What generation keeps: bytes that each token adds, and bytes that each sequence holds whatever its length.

One replica, before any sharding: how engines split, pad and pool these is another room's business.
"""

from __future__ import annotations

import sympy as sp

from k3lib.account import symbols as s


def mla_cache_bytes_per_token() -> sp.Expr:
    """Bytes that one token adds in the MLA layers: the latent and the shared key, once, whatever the heads.

    Unit: B/token. Source: DeepSeek-V2, section 2.1; both engines cache D_rope even where no rotation is applied.
    """
    return s.layers_mla * (s.latent_kv + s.rope) * s.cache_bytes


def indexer_cache_bytes_per_token() -> sp.Expr:
    """Bytes that one token adds as keys of the indexers, beside the cache proper.

    Unit: B/token. Source: DeepSeek-V3.2.
    """
    return s.layers_index * s.index_dim * s.cache_bytes


def gqa_cache_bytes_per_token() -> sp.Expr:
    """Bytes that one token adds in full grouped-query layers: a key and a value for each key-value head.

    Unit: B/token.
    """
    return (s.layers_gqa - s.layers_window) * 2 * s.kv_heads * s.head_dim * s.cache_bytes


def window_cache_bytes() -> sp.Expr:
    """Bytes that one sequence holds in sliding-window layers once it is longer than the window. Unit: B."""
    return s.layers_window * s.window * 2 * s.kv_heads * s.head_dim * s.cache_bytes


def kda_state_bytes() -> sp.Expr:
    """Bytes of one sequence's KDA state: a square matrix a head, and the convolutions' last C-1 inputs for q, k, v.

    Unit: B. Source: Kimi-Linear technical report; state shapes as both engines allocate them.
    """
    width = s.kda_heads * s.kda_dim
    return s.layers_kda * (width * s.kda_dim * s.state_bytes + 3 * (s.conv_taps - 1) * width * s.conv_bytes)


def gdn_state_bytes() -> sp.Expr:
    """Bytes of one sequence's gated-delta-net state: a key-by-value matrix a value head, and the convolution's memory.

    Unit: B.
    """
    channels = 2 * s.gdn_key_heads * s.gdn_key_dim + s.gdn_value_heads * s.gdn_value_dim
    matrix = s.gdn_value_heads * s.gdn_key_dim * s.gdn_value_dim
    return s.layers_gdn * (matrix * s.state_bytes + (s.conv_taps - 1) * channels * s.conv_bytes)
