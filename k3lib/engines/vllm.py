"""vLLM 0.33: splitting, stages, legal layouts, and one pool of blocks that states and tokens share."""

from __future__ import annotations

import math
from dataclasses import replace

from k3lib.account import symbols as s
from k3lib.engines.layout import Layout
from k3lib.engines.rules import Engine, divides
from k3lib.models.model import Model


def _partition(layers: int, count: int) -> list[int]:
    """Layers of each stage; what is left over goes to the stages before the last. Source: vllm_033, get_pp_indices."""
    sizes = [layers // count] * count
    for i in range(layers % count):
        sizes[count - 2 - i if count > 1 else 0] += 1
    return sizes


def _expert_groups(layout: Layout) -> tuple[int, int]:
    """With expert parallelism all cards of a stage share the set; without it they share each expert's width."""
    together = layout.tp * layout.dp
    return (together, 1) if layout.ep > 1 else (1, together)


def _check(model: Model, layout: Layout) -> list[str]:
    reasons = []
    for symbol, what in ((s.heads, "attention heads"), (s.kda_heads, "KDA heads"), (s.vocabulary, "vocabulary")):
        reasons += divides(model, symbol, layout.tp, what, "tp")
    if layout.ep > 1:
        if s.experts not in model.values:
            reasons.append("ep needs a model with routed experts")
        if layout.ep != layout.tp * layout.dp:
            reasons.append(f"ep {layout.ep} must be tp x dp = {layout.tp * layout.dp} in vLLM")
    if layout.tp % layout.dcp:
        reasons.append(f"dcp {layout.dcp} does not divide tp {layout.tp}")
    if layout.pp > len(model.mixers):
        reasons.append(f"pp {layout.pp} is more than the {len(model.mixers)} layers there are")
    return reasons


ENGINE = Engine(
    name="vllm",
    version="0.33.0",
    partition=_partition,
    expert_groups=_expert_groups,
    attention_tp=lambda layout: layout.tp,
    cards=lambda layout: layout.tp * layout.pp * layout.dp,
    check=_check,
)


# The image of the first days of Kimi K3; most logs are its.
FIRST_IMAGE = replace(ENGINE, name="vllm-2026-07", version="2026-07", base="vllm")


def block_length(token_bytes: int, state_bytes: int, multiple: int, plain: int) -> int:
    """Tokens of a block: stretched until a block holds a whole state. Source: vllm_033, _align_hybrid_block_size."""
    if state_bytes == 0:
        return plain
    return multiple * math.ceil(state_bytes / (multiple * token_bytes))


def layer_groups(mixers: tuple[str, ...], stage_layers: list[range], slack: float) -> tuple[int, tuple[int, ...]]:
    """Groups of state layers, and the largest group of every stage.

    Layers of each kind are dealt out in turn to groups of one size, formed over the whole model and then cut to the
    stages. Source: vllm_033, _get_kv_cache_groups_uniform_page_size.
    """
    kinds = {"token": [i for i, m in enumerate(mixers) if m in ("mla", "gqa")],
             "state": [i for i, m in enumerate(mixers) if m in ("kda", "gdn")]}  # fmt: skip
    counts = [len(layers) for layers in kinds.values() if layers]
    size = max(counts) if max(counts) < slack * min(counts) else min(counts)
    groups, states = [], 0
    for kind, layers in kinds.items():
        number = math.ceil(len(layers) / size)
        states += number if kind == "state" else 0
        groups += [layers[i::number] for i in range(number)]
    return states, tuple(max(sum(layer in stage for layer in group) for group in groups) for stage in stage_layers)


def blocks_of_request(
    tokens: int, block_tokens: int, dcp: int, state_groups: int, prefix_caching: bool, drafts: int = 0
) -> int:
    """Blocks that one request of `tokens` takes: its tokens', and for each state group one, or with prefix caching two
    and one more for each draft token.

    Source: vllm_033; the six logged token counts of mm_h200_logs.
    """
    return math.ceil(tokens / (block_tokens * dcp)) + state_groups * (2 + drafts if prefix_caching else 1)
