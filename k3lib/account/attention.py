"""The token mixers as symbolic weight counts: grouped-query attention, MLA, its indexer, KDA, gated delta net.

Each function returns the weights of all layers that use the block. `at` is the name pattern of a layer up to its last
dot, `count` the number of such layers. Shapes are [out, in]. Sources: the models' published tensor lists.
"""

from __future__ import annotations

import sympy as sp

from k3lib.account import symbols as s
from k3lib.account.tensors import Tensor


def gqa(
    at: str,
    count: sp.Expr,
    *,
    bias: bool = False,
    out_bias: bool = False,
    qk_norm: bool = False,
    output_gate: bool = False,
    sinks: bool = False,
    group: str = "gqa",
) -> list[Tensor]:
    """Grouped-query attention. An output gate doubles the rows of the query projection; `sinks` adds one value a head.

    Source: Qwen3 (query and key norms), Qwen3-Next (output gate), gpt-oss (biases and sinks).
    """
    q_rows = s.heads * s.head_dim * (2 if output_gate else 1)
    kv_rows = s.kv_heads * s.head_dim
    out_width = s.heads * s.head_dim
    rows = {"q_proj": q_rows, "k_proj": kv_rows, "v_proj": kv_rows}
    tensors = [Tensor(f"{at}.{n}.weight", group, "attention", (r, s.hidden), count) for n, r in rows.items()]
    tensors.append(Tensor(f"{at}.o_proj.weight", group, "attention", (s.hidden, out_width), count))
    if bias:
        tensors += [Tensor(f"{at}.{n}.bias", group, "bias", (r,), count) for n, r in rows.items()]
    if out_bias:
        tensors.append(Tensor(f"{at}.o_proj.bias", group, "bias", (s.hidden,), count))
    if qk_norm:
        tensors += [Tensor(f"{at}.{n}.weight", group, "norm", (s.head_dim,), count) for n in ("q_norm", "k_norm")]
    if sinks:
        tensors.append(Tensor(f"{at}.sinks", group, "bias", (s.heads,), count))
    return tensors


def mla(
    at: str,
    count: sp.Expr,
    *,
    query_latent: bool = True,
    output_gate: bool = False,
    bias: bool = False,
    group: str = "mla",
) -> list[Tensor]:
    """Multi-head latent attention: keys and values come from one latent of R_kv features and a shared key of D_rope.

    Source: DeepSeek-V2, section 2.1; the output gate as in Kimi K3; `bias` on the two down-projections and the output
    as in DeepSeek configurations with attention_bias.
    """
    q_width = s.heads * (s.nope + s.rope)
    if query_latent:
        tensors = [
            Tensor(f"{at}.q_a_proj.weight", group, "attention", (s.latent_q, s.hidden), count),
            Tensor(f"{at}.q_a_layernorm.weight", group, "norm", (s.latent_q,), count),
            Tensor(f"{at}.q_b_proj.weight", group, "attention", (q_width, s.latent_q), count),
        ]
    else:
        tensors = [Tensor(f"{at}.q_proj.weight", group, "attention", (q_width, s.hidden), count)]
    tensors += [
        Tensor(f"{at}.kv_a_proj_with_mqa.weight", group, "attention", (s.latent_kv + s.rope, s.hidden), count),
        Tensor(f"{at}.kv_a_layernorm.weight", group, "norm", (s.latent_kv,), count),
        Tensor(f"{at}.kv_b_proj.weight", group, "attention", (s.heads * (s.nope + s.value_dim), s.latent_kv), count),
    ]
    if output_gate:
        tensors.append(Tensor(f"{at}.g_proj.weight", group, "attention", (s.heads * s.value_dim, s.hidden), count))
    tensors.append(Tensor(f"{at}.o_proj.weight", group, "attention", (s.hidden, s.heads * s.value_dim), count))
    if bias:
        if query_latent:
            tensors.append(Tensor(f"{at}.q_a_proj.bias", group, "bias", (s.latent_q,), count))
        tensors += [
            Tensor(f"{at}.kv_a_proj_with_mqa.bias", group, "bias", (s.latent_kv + s.rope,), count),
            Tensor(f"{at}.o_proj.bias", group, "bias", (s.hidden,), count),
        ]
    return tensors


def rotary_buffer(at: str, count: sp.Expr, group: str = "mla") -> list[Tensor]:
    """Rotary frequencies that some checkpoints store although they can be computed: bytes, but no parameters."""
    return [Tensor(f"{at}.rotary_emb.inv_freq", group, "buffer", (s.inv_freq,), count)]


def indexer(at: str, count: sp.Expr, group: str = "indexer") -> list[Tensor]:
    """The indexer of sparse attention: it scores past tokens and picks the ones that MLA reads.

    Source: DeepSeek-V3.2; the same four weights in GLM-5 and Kimi K3.1 Pro.
    """
    return [
        Tensor(f"{at}.indexer.wq_b.weight", group, "attention", (s.index_heads * s.index_dim, s.latent_q), count),
        Tensor(f"{at}.indexer.wk.weight", group, "attention", (s.index_dim, s.hidden), count),
        Tensor(f"{at}.indexer.weights_proj.weight", group, "small", (s.index_heads, s.hidden), count),
        Tensor(f"{at}.indexer.k_norm.weight", group, "index_norm", (s.index_dim,), count),
        Tensor(f"{at}.indexer.k_norm.bias", group, "index_norm", (s.index_dim,), count),
    ]


def kda(
    at: str, count: sp.Expr, *, full_rank_gate: bool, decay_shape: tuple[sp.Expr, ...], group: str = "kda"
) -> list[Tensor]:
    """Kimi Delta Attention: five projections, a low-rank decay gate, a step size a head and three short convolutions.

    The output gate is full rank in Kimi K3 and low rank (through one head's width) in Kimi-Linear.
    Source: Kimi-Linear technical report; tensor lists of both checkpoints.
    """
    width = s.kda_heads * s.kda_dim
    low_rank = s.kda_dim
    tensors = [Tensor(f"{at}.{n}_proj.weight", group, "attention", (width, s.hidden), count) for n in "qkv"]
    if full_rank_gate:
        tensors.append(Tensor(f"{at}.g_proj.weight", group, "attention", (width, s.hidden), count))
    tensors += [
        Tensor(f"{at}.o_proj.weight", group, "attention", (s.hidden, width), count),
        Tensor(f"{at}.f_a_proj.weight", group, "attention", (low_rank, s.hidden), count),
        Tensor(f"{at}.f_b_proj.weight", group, "attention", (width, low_rank), count),
    ]
    if not full_rank_gate:
        tensors += [
            Tensor(f"{at}.g_a_proj.weight", group, "attention", (low_rank, s.hidden), count),
            Tensor(f"{at}.g_b_proj.weight", group, "attention", (width, low_rank), count),
        ]
    tensors.append(Tensor(f"{at}.b_proj.weight", group, "attention", (s.kda_heads, s.hidden), count))
    tensors += [
        Tensor(f"{at}.{n}_conv1d.weight", group, "convolution", (width, sp.Integer(1), s.conv_taps), count)
        for n in "qkv"
    ]
    return tensors + [
        Tensor(f"{at}.A_log", group, "decay", decay_shape, count),
        Tensor(f"{at}.dt_bias", group, "decay", (width,), count),
        Tensor(f"{at}.o_norm.weight", group, "head_norm", (s.kda_dim,), count),
    ]


def gated_delta_net(at: str, count: sp.Expr, *, group: str = "gdn") -> list[Tensor]:
    """Gated delta net: query, key, value and gate, two values a head for decay and step, one convolution.

    Source: Qwen3-Next.
    """
    key_width = s.gdn_key_heads * s.gdn_key_dim
    value_width = s.gdn_value_heads * s.gdn_value_dim
    projections = {"in_proj_qkvz": 2 * key_width + 2 * value_width, "in_proj_ba": 2 * s.gdn_value_heads}
    tensors = [
        Tensor(f"{at}.{n}.weight", group, "attention", (rows, s.hidden), count) for n, rows in projections.items()
    ]
    return tensors + [
        Tensor(
            f"{at}.conv1d.weight",
            group,
            "convolution",
            (2 * key_width + value_width, sp.Integer(1), s.conv_taps),
            count,
        ),
        Tensor(f"{at}.A_log", group, "decay", (s.gdn_value_heads,), count),
        Tensor(f"{at}.dt_bias", group, "decay", (s.gdn_value_heads,), count),
        Tensor(f"{at}.norm.weight", group, "head_norm", (s.gdn_value_dim,), count),
        Tensor(f"{at}.out_proj.weight", group, "attention", (s.hidden, value_width), count),
    ]
