"""The rest of a decoder as symbolic weight counts: tables, norms, MLPs, experts, residuals, vision, extra heads.

Each function returns the weights of all layers that use the block. `at` is the name pattern up to its last dot,
`count` the number of layers. Shapes are [out, in]. Sources: the models' published tensor lists.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from k3lib.account import symbols as s
from k3lib.account.tensors import Tensor

ONE = sp.Integer(1)
NOT_USED_BY_TEXT = sp.Integer(0)
GATED = ("gate_proj", "up_proj", "down_proj")
W_NAMES = ("w1", "w3", "w2")


def token_tables(model: str, head: str, *, tied: bool) -> list[Tensor]:
    """Input table (a look-up: no token multiplies it) and output head; one array where the two are tied."""
    table = Tensor(
        f"{model}.embed_tokens.weight",
        "embed",
        "embedding",
        (s.vocabulary, s.hidden),
        ONE,
        ONE if tied else NOT_USED_BY_TEXT,
    )
    if tied:
        return [table]
    return [table, Tensor(f"{head}.weight", "lm_head", "head", (s.vocabulary, s.hidden), ONE)]


def final_norm(model: str) -> list[Tensor]:
    """The norm before the output head."""
    return [Tensor(f"{model}.norm.weight", "norm", "norm", (s.hidden,), ONE)]


def layer_norms(layer: str, count: sp.Expr, group: str = "norm") -> list[Tensor]:
    """The two norms of a decoder layer."""
    return [
        Tensor(f"{layer}.{n}.weight", group, "norm", (s.hidden,), count)
        for n in ("input_layernorm", "post_attention_layernorm")
    ]


def attention_residuals(layer: str, model: str, count: sp.Expr) -> list[Tensor]:
    """Attention residuals: before each half of a layer, and once at the end, a learned mix of earlier blocks' outputs.

    Source: Kimi K3's tensor list.
    """
    tensors = []
    for half in ("self_attention_res", "mlp_res"):
        tensors += [
            Tensor(f"{layer}.{half}_norm.weight", "attnres", "norm", (s.hidden,), count),
            Tensor(f"{layer}.{half}_proj.weight", "attnres", "small", (ONE, s.hidden), count),
        ]
    return tensors + [
        Tensor(f"{model}.output_attn_res_norm.weight", "attnres", "norm", (s.hidden,), ONE),
        Tensor(f"{model}.output_attn_res_proj.weight", "attnres", "small", (ONE, s.hidden), ONE),
    ]


def gated_mlp(
    at: str,
    count: sp.Expr,
    width: sp.Expr,
    *,
    group: str,
    role: str = "mlp",
    inner: sp.Expr = s.hidden,
    names: Sequence[str] = GATED,
    used: sp.Expr = ONE,
) -> list[Tensor]:
    """A gated MLP of inner `width`: gate and up read `inner` features, down gives them back."""
    gate, up, down = names
    shapes = {gate: (width, inner), up: (width, inner), down: (inner, width)}
    return [Tensor(f"{at}.{n}.weight", group, role, shape, count, used) for n, shape in shapes.items()]


def router(at: str, count: sp.Expr, *, correction_bias: str | None = None) -> list[Tensor]:
    """One score for each expert; `correction_bias`: name of the balancing bias, where the model has one."""
    tensors = [Tensor(f"{at}.weight", "router", "router", (s.experts, s.hidden), count)]
    if correction_bias:
        tensors.append(Tensor(f"{at}.{correction_bias}", "router", "router_bias", (s.experts,), count))
    return tensors


def router_vector(name: str, count: sp.Expr) -> list[Tensor]:
    """A plain bias on the router's scores. Source: gpt-oss."""
    return [Tensor(name, "router", "bias", (s.experts,), count)]


def routed_experts(at: str, count: sp.Expr, names: Sequence[str] = GATED) -> list[Tensor]:
    """E gated MLPs a layer on Z features, of which a token uses k. In a latent MoE, Z is less than the hidden width."""
    return gated_mlp(
        f"{at}.{{e}}",
        count * s.experts,
        s.expert_width,
        group="routed",
        role="expert",
        inner=s.expert_input,
        names=names,
        used=s.experts_per_token / s.experts,
    )


def fused_experts(at: str, count: sp.Expr) -> list[Tensor]:
    """The same, stored as one array a layer, gate and up together, with biases. Source: gpt-oss."""
    used = s.experts_per_token / s.experts
    return [
        Tensor(f"{at}.gate_up_proj", "routed", "expert", (s.experts, 2 * s.expert_width, s.hidden), count, used),
        Tensor(f"{at}.gate_up_proj_bias", "routed", "bias", (s.experts, 2 * s.expert_width), count, used),
        Tensor(f"{at}.down_proj", "routed", "expert", (s.experts, s.hidden, s.expert_width), count, used),
        Tensor(f"{at}.down_proj_bias", "routed", "bias", (s.experts, s.hidden), count, used),
    ]


def expert_latent(at: str, count: sp.Expr, *, norm: bool) -> list[Tensor]:
    """Projections into and out of the latent that the routed experts of Kimi K3 work on."""
    tensors = [
        Tensor(f"{at}.routed_expert_down_proj.weight", "latent", "latent", (s.expert_input, s.hidden), count),
        Tensor(f"{at}.routed_expert_up_proj.weight", "latent", "latent", (s.hidden, s.expert_input), count),
    ]
    if norm:
        tensors.append(Tensor(f"{at}.routed_expert_norm.weight", "latent", "norm", (s.expert_input,), count))
    return tensors


def shared_gate(at: str, count: sp.Expr) -> list[Tensor]:
    """A sigmoid gate on the shared expert's output. Source: Qwen2-MoE, Qwen3-Next."""
    return [Tensor(f"{at}.weight", "shared", "small", (ONE, s.hidden), count)]


def mtp_joint(at: str, count: sp.Expr, *, copies: bool) -> list[Tensor]:
    """What joins a multi-token-prediction layer to the trunk; some checkpoints repeat both token tables in it.

    Source: DeepSeek-V3, section 2.2.
    """
    tensors = [Tensor(f"{at}.eh_proj.weight", "mtp", "joint", (s.hidden, 2 * s.hidden), count)]
    tensors += [
        Tensor(f"{at}.{n}.weight", "mtp", "norm", (s.hidden,), count) for n in ("enorm", "hnorm", "shared_head.norm")
    ]
    if copies:
        tensors += [
            Tensor(f"{at}.embed_tokens.weight", "mtp", "embedding", (s.vocabulary, s.hidden), count),
            Tensor(f"{at}.shared_head.head.weight", "mtp", "head", (s.vocabulary, s.hidden), count),
        ]
    return tensors


def mtp_entry(at: str) -> list[Tensor]:
    """The joint as Qwen3-Next stores it: two norms, one projection of both inputs, a final norm."""
    return [Tensor(f"{at}.fc.weight", "mtp", "joint", (s.hidden, 2 * s.hidden), ONE)] + [
        Tensor(f"{at}.{n}.weight", "mtp", "norm", (s.hidden,), ONE)
        for n in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")
    ]


def vision_tower(tower: str, *, bias: bool) -> list[Tensor]:
    """A vision transformer on patches with a learned position grid. Source: Kimi K2.5 (biases) and K3 (none)."""
    block, width, count = f"{tower}.encoder.blocks.{{b}}", s.vision_hidden, s.vision_layers
    matrices = {
        f"{block}.wqkv": (3 * s.vision_qkv, width),
        f"{block}.wo": (width, s.vision_qkv),
        f"{block}.mlp.fc0": (s.vision_mlp, width),
        f"{block}.mlp.fc1": (width, s.vision_mlp),
    }
    tensors = [
        Tensor(f"{n}.weight", "vision", "vision", shape, count, NOT_USED_BY_TEXT) for n, shape in matrices.items()
    ]
    vectors = {
        f"{block}.norm0": (width, count),
        f"{block}.norm1": (width, count),
        f"{tower}.encoder.final_layernorm": (width, ONE),
    }
    tensors += [Tensor(f"{n}.weight", "vision", "vision", (w,), c, NOT_USED_BY_TEXT) for n, (w, c) in vectors.items()]
    tensors += [
        Tensor(
            f"{tower}.patch_embed.pos_emb.weight",
            "vision",
            "vision",
            (s.grid_height, s.grid_width, width),
            ONE,
            NOT_USED_BY_TEXT,
        ),
        Tensor(
            f"{tower}.patch_embed.proj.weight",
            "vision",
            "vision",
            (width, s.channels, s.patch, s.patch),
            ONE,
            NOT_USED_BY_TEXT,
        ),
    ]
    if bias:
        biased = {n: (shape[0], count) for n, shape in matrices.items()} | vectors
        biased[f"{tower}.patch_embed.proj"] = (width, ONE)
        tensors += [Tensor(f"{n}.bias", "vision", "vision", (w,), c, NOT_USED_BY_TEXT) for n, (w, c) in biased.items()]
    return tensors


def vision_projector(at: str, *, bias: bool, norm: str, norm_width: sp.Expr) -> list[Tensor]:
    """Merges M patches and projects them to the text width. Source: Kimi K2.5 and K3."""
    merged = s.vision_hidden * s.merge
    shapes = {f"{at}.proj.0": (merged, merged), f"{at}.proj.2": (s.hidden, merged)}
    tensors = [Tensor(f"{at}.{norm}.weight", "projector", "vision", (norm_width,), ONE, NOT_USED_BY_TEXT)]
    tensors += [
        Tensor(f"{n}.weight", "projector", "vision", shape, ONE, NOT_USED_BY_TEXT) for n, shape in shapes.items()
    ]
    if bias:
        tensors.append(Tensor(f"{at}.{norm}.bias", "projector", "vision", (norm_width,), ONE, NOT_USED_BY_TEXT))
        tensors += [
            Tensor(f"{n}.bias", "projector", "vision", (shape[0],), ONE, NOT_USED_BY_TEXT)
            for n, shape in shapes.items()
        ]
    return tensors
