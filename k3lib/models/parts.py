"""Parts of a model: each reads its fields once, binds symbols, and returns the block for any set of layers.

A block takes the name pattern of a layer and the number of such layers, so that the same part serves the trunk and
the extra layers of multi-token prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy as sp

from k3lib.account import attention as att
from k3lib.account import blocks as blk
from k3lib.account import symbols as s
from k3lib.account.tensors import Tensor, as_mtp
from k3lib.facts.configs import Fields
from k3lib.models import layout
from k3lib.models.layout import Kinds
from k3lib.models.reading import Reader

MOST_LAYERS = 10_000
Block = Callable[[str, sp.Expr], list[Tensor]]


def trunk(r: Reader, model: str, head: str) -> int:
    """Tables, norms and the layer count, which every decoder has. Returns the number of layers."""
    r.take(s.hidden, "hidden_size")
    r.take(s.vocabulary, "vocab_size")
    layers = r.bind(s.layers, r.config.whole("num_hidden_layers", most=MOST_LAYERS))
    r.longest = r.config.whole("max_position_embeddings", "model_max_length", default=0, least=0)
    r.add(
        blk.token_tables(model, head, tied=r.config.flag("tie_word_embeddings")),
        blk.layer_norms(f"{model}.layers.{{l}}", s.layers),
        blk.final_norm(model),
    )
    return layers


def spread(r: Reader, layer: str, kinds: Kinds, blocks: dict[str, tuple[sp.Symbol, Block]]) -> None:
    """Add each block for the layers of its kind; a kind that no layer has adds nothing."""
    for kind, (symbol, block) in blocks.items():
        if number := kinds.count(kind):
            r.bind(symbol, number)
            r.add(block(layer, symbol))


def mla(r: Reader) -> Block:
    """Multi-head latent attention with what the configuration and the storage table say of gate, bias and buffers."""
    r.take(s.heads, "num_attention_heads")
    query_latent = r.config.has("q_lora_rank")
    if query_latent:
        r.take(s.latent_q, "q_lora_rank")
    for symbol, name in (
        (s.latent_kv, "kv_lora_rank"),
        (s.nope, "qk_nope_head_dim"),
        (s.rope, "qk_rope_head_dim"),
        (s.value_dim, "v_head_dim"),
    ):
        r.take(symbol, name)
    r.config.skip("q_lora_rank", "num_key_value_heads", "head_dim", "mla_use_nope")
    gate, bias = r.config.flag("mla_use_output_gate"), r.config.flag("attention_bias")
    buffer = r.known.inv_freq > 0
    if buffer:
        r.bind(s.inv_freq, r.known.inv_freq)

    def block(layer: str, count: sp.Expr) -> list[Tensor]:
        at = f"{layer}.self_attn"
        return att.mla(at, count, query_latent=query_latent, output_gate=gate, bias=bias) + (
            att.rotary_buffer(at, count) if buffer else []
        )

    return block


def indexer(r: Reader, config: Fields) -> Block:
    """The indexer of sparse attention."""
    r.take(s.index_heads, "index_n_heads", config=config)
    r.take(s.index_dim, "index_head_dim", config=config)
    return lambda layer, count: att.indexer(f"{layer}.self_attn", count)


def gqa(
    r: Reader,
    *,
    bias: bool = False,
    out_bias: bool = False,
    qk_norm: bool = False,
    output_gate: bool = False,
    sinks: bool = False,
) -> Block:
    """Grouped-query attention; the head width is hidden / heads where the configuration gives none."""
    heads = r.take(s.heads, "num_attention_heads")
    kv_heads = r.take(s.kv_heads, "num_key_value_heads", default=heads)
    if heads % kv_heads:
        raise r.refuse(f"num_key_value_heads = {kv_heads} does not divide num_attention_heads = {heads}")
    hidden = r.values[s.hidden]
    if not r.config.has("head_dim") and hidden % heads:
        raise r.refuse(f"num_attention_heads = {heads} does not divide hidden_size = {hidden} and head_dim is missing")
    r.bind(s.head_dim, r.config.whole("head_dim", default=hidden // heads))
    return lambda layer, count: att.gqa(
        f"{layer}.self_attn", count, bias=bias, out_bias=out_bias, qk_norm=qk_norm, output_gate=output_gate, sinks=sinks
    )


def windows(r: Reader, layers: int, *, everywhere: bool = False) -> None:
    """Layers that keep only a window of tokens: those of `layer_types`, or all of them where a family does so."""
    number = layout.windows(r.config, layers)
    if number is None:
        number = layers if everywhere and r.config.has("sliding_window") else 0
    if number:
        r.bind(s.layers_window, number)
        r.take(s.window, "sliding_window")


def kda(r: Reader, config: Fields) -> Block:
    """Kimi Delta Attention from the `linear_attn_config` entry."""
    r.take(s.kda_heads, "num_heads", config=config)
    r.take(s.kda_dim, "head_dim", config=config)
    r.take(s.conv_taps, "short_conv_kernel_size", config=config)
    full_rank = config.flag("use_full_rank_gate")
    one = sp.Integer(1)
    decay_shape: tuple[sp.Expr, ...] = (one, one, s.kda_heads, one)
    if r.known.decay_entries:
        r.bind(s.decay_entries, r.known.decay_entries)
        decay_shape = (s.decay_entries,)
    return lambda layer, count: att.kda(f"{layer}.self_attn", count, full_rank_gate=full_rank, decay_shape=decay_shape)


def gated_delta_net(r: Reader) -> Block:
    """Gated delta net from the `linear_*` fields."""
    keys = r.take(s.gdn_key_heads, "linear_num_key_heads")
    values = r.take(s.gdn_value_heads, "linear_num_value_heads")
    if values % keys:
        raise r.refuse(f"linear_num_key_heads = {keys} does not divide linear_num_value_heads = {values}")
    r.take(s.gdn_key_dim, "linear_key_head_dim")
    r.take(s.gdn_value_dim, "linear_value_head_dim")
    r.take(s.conv_taps, "linear_conv_kernel_dim")
    return lambda layer, count: att.gated_delta_net(f"{layer}.linear_attn", count)


def dense_mlp(r: Reader, group: str) -> Block:
    """The gated MLP of layers without experts."""
    if r.config.has("intermediate_size"):
        r.take(s.dense_width, "intermediate_size")
    if r.config.flag("mlp_bias"):
        raise r.refuse("mlp_bias = true: biases of dense MLPs are not known here")

    def block(layer: str, count: sp.Expr) -> list[Tensor]:
        if s.dense_width not in r.values:
            raise r.refuse("field 'intermediate_size' is missing, and there are dense layers")
        return blk.gated_mlp(f"{layer}.mlp", count, s.dense_width, group=group)

    return block


def experts(
    r: Reader,
    moe: str = "mlp",
    *,
    bias: str | None,
    names: tuple[str, ...] = blk.GATED,
    width_field: str = "moe_intermediate_size",
) -> Block:
    """Router, routed experts (in a latent where the configuration gives one) and shared experts of every layer."""
    number = r.take(s.experts, "n_routed_experts", "num_experts", "num_local_experts")
    chosen = r.take(s.experts_per_token, "num_experts_per_tok", "num_experts_per_token")
    if chosen > number:
        raise r.refuse(f"num_experts_per_tok = {chosen} is more than the {number} experts there are")
    width = r.take(s.expert_width, width_field)
    latent = r.config.has("routed_expert_hidden_size")
    r.bind(s.expert_input, r.config.whole("routed_expert_hidden_size", default=r.values[s.hidden]))
    norm = r.config.flag("latent_moe_use_norm")
    shared, gated = _shared_width(r, width)

    def block(layer: str, count: sp.Expr) -> list[Tensor]:
        at = f"{layer}.{moe}"
        tensors = blk.router(f"{at}.gate", count, correction_bias=bias)
        if latent:
            tensors += blk.expert_latent(at, count, norm=norm)
        tensors += blk.routed_experts(f"{at}.experts", count, names)
        if shared:
            name = "shared_expert" if gated else "shared_experts"
            tensors += blk.gated_mlp(f"{at}.{name}", count, s.shared_width, group="shared", role="shared")
        return tensors + (blk.shared_gate(f"{at}.shared_expert_gate", count) if gated else [])

    return block


def _shared_width(r: Reader, expert_width: int) -> tuple[int, bool]:
    """Inner width of the shared experts together, and whether a gate stands before them (Qwen's way)."""
    if r.config.has("shared_expert_intermediate_size"):
        width = r.config.whole("shared_expert_intermediate_size", least=0)
        return (r.bind(s.shared_width, width), True) if width else (0, False)
    number = r.config.whole("n_shared_experts", "num_shared_experts", default=0, least=0)
    return (r.bind(s.shared_width, number * expert_width), False) if number else (0, False)


def vision(
    r: Reader, part: Fields, *, bias: bool, tower: str = "vision_tower", projector: str = "mm_projector"
) -> None:
    """The Kimi vision tower and its projector. `bias`: K2.5 stores biases and norms before merging, K3 neither."""
    r.take(s.vision_layers, "vt_num_hidden_layers", config=part)
    width = r.take(s.vision_hidden, "vt_hidden_size", config=part)
    r.take(s.vision_mlp, "vt_intermediate_size", config=part)
    r.take(s.vision_qkv, "qkv_hidden_size", config=part, default=width)
    r.take(s.patch, "patch_size", config=part)
    r.take(s.channels, "num_channels", config=part, default=3)
    r.take(s.grid_height, "init_pos_emb_height", config=part)
    r.take(s.grid_width, "init_pos_emb_width", config=part)
    merge = part.listed("merge_kernel_size")
    if not merge or not all(isinstance(m, int) and m > 0 for m in merge):
        raise r.refuse(f"vision_config, merge_kernel_size = {merge}: must be a list of whole numbers, as [2, 2]")
    r.bind(s.merge, int(sp.prod(merge)))
    text = part.whole("text_hidden_size", default=r.values[s.hidden])
    if text != r.values[s.hidden]:
        raise r.refuse(f"vision_config, text_hidden_size = {text} contradicts hidden_size = {r.values[s.hidden]}")
    part.skip("vt_num_attention_heads", "init_pos_emb_time", "mm_hidden_size", "video_attn_type")
    norm, norm_width = ("pre_norm", s.vision_hidden) if bias else ("post_norm", s.hidden)
    r.add(
        blk.vision_tower(tower, bias=bias), blk.vision_projector(projector, bias=bias, norm=norm, norm_width=norm_width)
    )


def mtp(r: Reader, at: str, number: int, blocks: Sequence[Block], joint: list[Tensor]) -> None:
    """Extra layers for multi-token prediction: each is a layer of the given blocks with its norms, and the joint."""
    r.bind(s.layers_mtp, number)
    layer = [tensor for block in blocks for tensor in block(at, s.layers_mtp)]
    r.add(as_mtp(layer + blk.layer_norms(at, s.layers_mtp)), as_mtp(joint))
