"""Model families: how a configuration of that family becomes a sum of blocks.

A family is a function that reads fields, binds values to symbols and adds blocks. It holds no numbers of a model.
"""

from __future__ import annotations

from collections.abc import Callable

from k3lib.account import blocks as blk
from k3lib.account import symbols as s
from k3lib.facts.configs import Fields
from k3lib.models import layout, parts
from k3lib.models.reading import Reader

MODEL, HEAD = "model", "lm_head"
LAYER = "model.layers.{l}"
CORRECTION = "e_score_correction_bias"


def deepseek(r: Reader) -> None:
    """DeepSeek-V2, V3, R1, V3.2, Kimi-K2, GLM-5: MLA, dense first layers, experts, an indexer and MTP where given."""
    _mla_moe(r, MODEL, HEAD)


def _mla_moe(r: Reader, model: str, head: str) -> None:
    layer = f"{model}.layers.{{l}}"
    layers = parts.trunk(r, model, head)
    r.mixers, r.mlps = ("mla",) * layers, layout.dense_then_moe(r.config, layers)
    mixer, dense = parts.mla(r), parts.dense_mlp(r, "dense0")
    experts = parts.experts(
        r, bias=CORRECTION if r.config.word("topk_method", default="noaux_tc") == "noaux_tc" else None
    )
    parts.spread(r, layer, r.mixers, {"mla": (s.layers_mla, mixer)})
    parts.spread(r, layer, r.mlps, {"dense": (s.layers_dense, dense), "moe": (s.layers_moe, experts)})
    extra = [mixer, experts]
    if r.config.has("index_head_dim"):
        indexer = parts.indexer(r, r.config)
        parts.spread(r, layer, layout.indexers(r.config, layers), {"full": (s.layers_index, indexer)})
        extra.append(indexer)
    if number := r.config.whole("num_nextn_predict_layers", default=0, least=0):
        at = f"{model}.layers.{{m}}"
        parts.mtp(r, at, number, extra, blk.mtp_joint(at, s.layers_mtp, copies=bool(r.known.mtp_copies)))


def kimi_k25(r: Reader) -> None:
    """Kimi-K2.5 and later K2: the K2 text model beside a vision tower with biases."""
    _mla_moe(r, "language_model.model", "language_model.lm_head")


def kimi_linear(r: Reader) -> None:
    """Kimi-Linear: KDA and MLA layers mixed, experts."""
    _hybrid(r, MODEL, HEAD)


def kimi_k3(r: Reader) -> None:
    """Kimi K3: KDA and gated MLA mixed, experts in a latent, attention residuals; an indexer in K3.1 Pro."""
    model = "language_model.model"
    _hybrid(r, model, "language_model.lm_head")
    r.residual_block = r.config.whole("attn_res_block_size")
    r.add(blk.attention_residuals(f"{model}.layers.{{l}}", model, s.layers))
    if sparse := r.config.part("dsa_config"):
        parts.spread(r, f"{model}.layers.{{l}}", r.mixers, {"mla": (s.layers_index, parts.indexer(r, sparse))})


def _hybrid(r: Reader, model: str, head: str) -> None:
    layer = f"{model}.layers.{{l}}"
    layers = parts.trunk(r, model, head)
    linear = r.config.part("linear_attn_config") or Fields(f"{r.config.where}, linear_attn_config", {})
    r.mixers = layout.linear_and_full(linear, layers)
    r.mlps = layout.dense_then_moe(r.config, layers)
    parts.spread(r, layer, r.mixers, {"kda": (s.layers_kda, parts.kda(r, linear)), "mla": (s.layers_mla, parts.mla(r))})
    experts = parts.experts(r, "block_sparse_moe", bias=CORRECTION, names=blk.W_NAMES)
    parts.spread(
        r, layer, r.mlps, {"dense": (s.layers_dense, parts.dense_mlp(r, "dense0")), "moe": (s.layers_moe, experts)}
    )
    if r.config.whole("num_nextn_predict_layers", default=0, least=0):
        raise r.refuse("num_nextn_predict_layers is not 0: an MTP head of this family is not known")


def gpt_oss(r: Reader) -> None:
    """gpt-oss: grouped-query attention with biases and sinks, experts fused in one array a layer."""
    layers = parts.trunk(r, MODEL, HEAD)
    r.mixers, r.mlps = ("gqa",) * layers, ("moe",) * layers
    bias = r.config.flag("attention_bias", default=True)
    parts.spread(r, LAYER, r.mixers, {"gqa": (s.layers_gqa, parts.gqa(r, bias=bias, out_bias=bias, sinks=True))})
    parts.windows(r, layers)
    number = r.take(s.experts, "num_local_experts", "num_experts")
    if r.take(s.experts_per_token, "num_experts_per_tok", "experts_per_token") > number:
        raise r.refuse("num_experts_per_tok is more than num_local_experts")
    r.take(s.expert_width, "intermediate_size")
    r.bind(s.layers_moe, layers)
    r.add(
        blk.router(f"{LAYER}.mlp.router", s.layers_moe),
        blk.router_vector(f"{LAYER}.mlp.router.bias", s.layers_moe),
        blk.fused_experts(f"{LAYER}.mlp.experts", s.layers_moe),
    )


def qwen3_next(r: Reader) -> None:
    """Qwen3-Next: gated delta net and gated attention mixed, experts with a gated shared one, MTP where stored."""
    layers = parts.trunk(r, MODEL, HEAD)
    r.mixers = layout.interval(r.config, layers, "gqa", "gdn")
    r.mlps = layout.sparse_steps(r.config, layers)
    attention = parts.gqa(r, bias=r.config.flag("attention_bias"), qk_norm=True, output_gate=True)
    parts.spread(
        r,
        LAYER,
        r.mixers,
        {"gqa": (s.layers_gqa, attention), "gdn": (s.layers_gdn, parts.gated_delta_net(r))},
    )
    experts = parts.experts(r, bias=None)
    parts.spread(
        r, LAYER, r.mlps, {"dense": (s.layers_dense, parts.dense_mlp(r, "dense0")), "moe": (s.layers_moe, experts)}
    )
    stored = r.config.whole("num_nextn_predict_layers", "mtp_num_hidden_layers", default=r.known.mtp_layers, least=0)
    if stored:
        parts.mtp(r, "mtp.layers.{m}", stored, [attention, experts], blk.mtp_entry("mtp"))


def plain_decoder(
    *, qk_norm: bool = False, qkv_bias: bool = False, out_bias: bool = False, windowed: bool = False
) -> Callable[[Reader], None]:
    """Dense decoders with grouped-query attention: Llama, Mistral, Qwen2, Qwen3."""

    def family(r: Reader) -> None:
        layers = parts.trunk(r, MODEL, HEAD)
        r.mixers, r.mlps = ("gqa",) * layers, ("dense",) * layers
        bias = r.config.flag("attention_bias", default=qkv_bias)
        parts.windows(r, layers, everywhere=windowed)
        mixer = parts.gqa(
            r, bias=bias, out_bias=bias and out_bias, qk_norm=r.config.flag("use_qk_norm", default=qk_norm)
        )
        parts.spread(r, LAYER, r.mixers, {"gqa": (s.layers_gqa, mixer)})
        parts.spread(r, LAYER, r.mlps, {"dense": (s.layers_dense, parts.dense_mlp(r, "mlp"))})

    return family


def qwen_moe(*, qk_norm: bool, qkv_bias: bool) -> Callable[[Reader], None]:
    """Qwen2-MoE and Qwen3-MoE: grouped-query attention and experts in most layers."""

    def family(r: Reader) -> None:
        layers = parts.trunk(r, MODEL, HEAD)
        r.mixers, r.mlps = ("gqa",) * layers, layout.sparse_steps(r.config, layers)
        parts.windows(r, layers)
        bias = r.config.flag("attention_bias", default=qkv_bias)
        mixer = parts.gqa(r, bias=bias, qk_norm=r.config.flag("use_qk_norm", default=qk_norm))
        parts.spread(r, LAYER, r.mixers, {"gqa": (s.layers_gqa, mixer)})
        parts.spread(
            r,
            LAYER,
            r.mlps,
            {
                "dense": (s.layers_dense, parts.dense_mlp(r, "dense0")),
                "moe": (s.layers_moe, parts.experts(r, bias=None)),
            },
        )

    return family


def mixtral(r: Reader) -> None:
    """Mixtral: grouped-query attention, experts in every layer."""
    layers = parts.trunk(r, MODEL, HEAD)
    r.mixers, r.mlps = ("gqa",) * layers, ("moe",) * layers
    parts.windows(r, layers, everywhere=True)
    parts.spread(r, LAYER, r.mixers, {"gqa": (s.layers_gqa, parts.gqa(r))})
    experts = parts.experts(r, "block_sparse_moe", bias=None, names=blk.W_NAMES, width_field="intermediate_size")
    parts.spread(r, LAYER, r.mlps, {"moe": (s.layers_moe, experts)})


def glm4_moe(r: Reader) -> None:
    """GLM-4.5 to 4.7: grouped-query attention with biases, experts with a correction bias, an MTP layer."""
    layers = parts.trunk(r, MODEL, HEAD)
    r.mixers, r.mlps = ("gqa",) * layers, layout.dense_then_moe(r.config, layers)
    parts.windows(r, layers)
    mixer = parts.gqa(r, bias=r.config.flag("attention_bias"), qk_norm=r.config.flag("use_qk_norm"))
    experts = parts.experts(r, bias=CORRECTION)
    parts.spread(r, LAYER, r.mixers, {"gqa": (s.layers_gqa, mixer)})
    parts.spread(
        r, LAYER, r.mlps, {"dense": (s.layers_dense, parts.dense_mlp(r, "dense0")), "moe": (s.layers_moe, experts)}
    )
    if number := r.config.whole("num_nextn_predict_layers", default=0, least=0):
        at = "model.layers.{m}"
        joint = blk.mtp_joint(at, s.layers_mtp, copies=bool(r.known.mtp_copies))
        parts.mtp(r, at, number, [mixer, experts], joint)


FAMILIES: dict[str, Callable[[Reader], None]] = {
    "deepseek_v2": deepseek,
    "deepseek_v3": deepseek,
    "deepseek_v32": deepseek,
    "kimi_k2": deepseek,
    "glm_moe_dsa": deepseek,
    "glm4_moe_lite": deepseek,
    "kimi_k25": kimi_k25,
    "kimi_linear": kimi_linear,
    "kimi_k3": kimi_k3,
    "kimi_k31": kimi_k3,
    "gpt_oss": gpt_oss,
    "qwen3_next": qwen3_next,
    "glm4_moe": glm4_moe,
    "mixtral": mixtral,
    "llama": plain_decoder(out_bias=True),
    "mistral": plain_decoder(windowed=True),
    "qwen2": plain_decoder(qkv_bias=True),
    "qwen3": plain_decoder(qk_norm=True, out_bias=True),
    "qwen2_moe": qwen_moe(qk_norm=False, qkv_bias=True),
    "qwen3_moe": qwen_moe(qk_norm=True, qkv_bias=False),
}
VISION_BIAS = {"kimi_k25": True, "kimi_k3": False, "kimi_k31": False}
