"""How long one pass of one pipeline stage takes: a sum of named terms. All times in us.

A stage is a run of layers on one group of cards; its layer counts take the place of the model's. A pass reads P_t
prompt tokens and generates B tokens, or B(1 + d) with a draft. Rates are in MB/s and MFLOPS, which are bytes and
operations in a us.
"""

from __future__ import annotations

import numpy as np
import sympy as sp

from k3lib.account import symbols as s

# How sharply a term turns from one limit to the other: 1 adds the limits, infinity takes the larger.
CORNER = 3
# Beside a launch that is slow, the card works on: sharper than two limits of one kernel.
LAUNCH_CORNER = 4
# Points of the popularity of experts that stand for all of them.
POPULARITY_POINTS = 9
BF16_BYTES = 2


def _either(one: sp.Expr, other: sp.Expr, corner: int) -> sp.Expr:
    """The larger of two limits, rounded off where they meet."""
    return (one**corner + other**corner) ** sp.Rational(1, corner)


def pass_tokens() -> sp.Expr:
    """Tokens of a pass. Unit: tokens."""
    return s.decode_tokens * (1 + s.drafted_tokens) + s.prompt_tokens


def expert_tokens() -> sp.Expr:
    """Tokens that meet in the experts of a layer: those of all groups that share them. Unit: tokens."""
    return s.token_groups * pass_tokens()


def dense_us() -> sp.Expr:
    """Weights that every token uses: streamed from memory, or computed with where tokens are many. Unit: us."""
    stream = s.stage_bytes / (s.card_bandwidth * s.stream_share)
    return _either(stream, s.stage_work * pass_tokens() / (s.card_rate * s.matrix_share), CORNER)


def distinct_experts() -> sp.Expr:
    """Expected number of a layer's experts that at least one token of a pass uses.

    The sum over experts of 1 - (1 - p)^T. An expert's p is k/E times its popularity, which is log-normal with spread
    sigma; Gauss-Hermite points stand for the experts. Spread 0 gives E (1 - (1 - k/E)^T). Unit: experts.
    """
    points, weights = np.polynomial.hermite_e.hermegauss(POPULARITY_POINTS)
    total = float(sum(weights))
    unused = sp.Integer(0)
    for point, weight in zip(points, weights, strict=True):
        popularity = sp.exp(s.skew * sp.Float(point) - s.skew**2 / 2)
        share = sp.Min(s.experts_per_token / s.experts * popularity, 1, evaluate=False)
        unused += sp.Float(weight / total) * (1 - share) ** expert_tokens()
    return s.experts * (1 - unused)


def busiest_card_experts() -> sp.Expr:
    """Experts that are used on the card that has most of them. Without expert parallelism every card has all.

    With it a card holds E_card of E; the largest of several random loads lies z standard deviations above their mean.
    Unit: experts.
    """
    mean = distinct_experts() * s.experts_held / s.experts
    busiest = mean + s.most_over_mean * sp.sqrt(mean)
    return sp.Min(busiest, s.experts_held, distinct_experts(), evaluate=False)  # to compare them takes a second


def tokens_per_expert() -> sp.Expr:
    """Tokens that an expert gets which gets any. Unit: tokens."""
    return expert_tokens() * s.experts_per_token / distinct_experts()


def experts_us() -> sp.Expr:
    """Routed experts of a stage: f is measured, at `tokens_per_expert`; no kernel beats the memory. Unit: us."""
    one = sp.Max(s.expert_scale * s.expert_us, s.expert_floor_us, evaluate=False)
    return s.layers_moe * one * busiest_card_experts()


def kda_us() -> sp.Expr:
    """KDA: each generated token reads and writes the states of its request; prompts take a measured time. Unit: us."""
    state = s.kda_heads * s.kda_dim**2 * s.state_bytes / s.tensor_parallel
    decode = s.decode_tokens * 2 * state / (s.card_bandwidth * s.state_share)
    return s.layers_kda * (decode + s.prompt_tokens * s.kda_prompt_us)


def mla_us() -> sp.Expr:
    """MLA: the cache is read whole, and computed with for blocks of heads; prompts attend to what came before them.

    Cards that share the tokens of a cache each take all of their heads, and exchange queries and results.

    Unit: us.  Source: DeepSeek-V2, section 2.1, absorbed form; the blocks of heads as measured on H20.
    """
    heads = s.heads / s.tensor_parallel
    tokens = s.decode_tokens * s.context_tokens / s.context_shares
    read = tokens * (s.latent_kv + s.rope) * s.cache_bytes / (s.card_bandwidth * s.cache_share)
    padded = s.head_block * sp.ceiling(heads * s.context_shares / s.head_block)
    work = tokens * (1 + s.drafted_tokens) * padded * 2 * (2 * s.latent_kv + s.rope) / (s.cache_rate * s.mla_share)
    prompt = (
        heads * 2 * (s.nope + s.rope + s.value_dim) * s.prompt_tokens * s.seen_tokens / (s.cache_rate * s.flash_share)
    )
    return s.layers_mla * (sp.Max(read, work) + prompt + s.cache_exchange_us)


def gqa_us() -> sp.Expr:
    """Grouped-query attention: the cache is read whole; prompts attend to what came before them. Unit: us."""
    heads = s.heads / s.tensor_parallel
    cached = sp.Max(s.kv_heads / s.tensor_parallel, 1) * 2 * s.head_dim * s.cache_bytes
    read = s.decode_tokens * s.context_tokens / s.context_shares * cached / (s.card_bandwidth * s.cache_share)
    return s.layers_gqa * (
        read + heads * 4 * s.head_dim * s.prompt_tokens * s.seen_tokens / (s.cache_rate * s.flash_share)
    )


def exchange_bytes() -> sp.Expr:
    """What one all-reduce adds up: a row of the residual stream for each token of a pass. Unit: B."""
    return pass_tokens() * s.hidden * BF16_BYTES


def exchange_between_nodes_us() -> sp.Expr:
    """One all-reduce over several nodes: a start-up, and bytes over the network cards of a node. Unit: us."""
    return s.exchange_start_us + exchange_bytes() / (s.nics * s.nic_rate)


def exchanges_us() -> sp.Expr:
    """The exchanges of a stage: one after attention and one after the MLP of every layer. Unit: us."""
    return s.layers * (s.exchange_us + s.experts_exchange_us)


def hop_us() -> sp.Expr:
    """Handing a pass to the next stage, with the rows that attention residuals keep. Unit: us."""
    return s.hop_start_us + exchange_bytes() * s.residual_rows / s.hop_rate


def decode_fixed_us() -> sp.Expr:
    """What a stage takes however few bytes it moves. Unit: us."""
    return s.layers * s.layer_us


def other_prompt_us() -> sp.Expr:
    """What else grows with the prompt tokens of a pass: residual rows, norms, activations. Unit: us."""
    return s.layers * s.prompt_tokens * s.prompt_us


def engine_us() -> sp.Expr:
    """The engine itself, and its draft model. Unit: us."""
    return s.step_us + s.drafted_tokens * s.draft_us


def launched_us(work: sp.Expr) -> sp.Expr:
    """A pass without a captured graph: the launches of its kernels, or its work, whichever is longer. Unit: us."""
    return _either(work, s.layers * s.launch_us, LAUNCH_CORNER)
