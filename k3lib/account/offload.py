"""Experts that do not lie on the cards: how many of them a pass misses, and what it takes to fetch or compute them.

The popularity of experts is log-normal with spread sigma, as in `k3lib.account.passes`; the most popular ones lie on
the cards. All times in us; MB/s are bytes and MFLOPS are operations in a us.
"""

from __future__ import annotations

import numpy as np
import sympy as sp

from k3lib.account import symbols as s
from k3lib.account.passes import expert_tokens

# No expert's popularity lies further from the middle, in standard deviations of its logarithm.
FURTHEST = 6
# Points of the popularity of the experts that are not on the cards.
POINTS = 24
MATRICES = 3  # gate, up and down


def least_popular_resident() -> sp.Expr:
    """Popularity of the least popular expert on the cards, in standard deviations of its logarithm.

    The quantile 1 - c of the normal distribution, within +-`FURTHEST`. Unit: 1.
    """
    cut = sp.sqrt(2) * sp.erfinv(1 - 2 * s.resident_share)
    return sp.Max(sp.Min(cut, FURTHEST, evaluate=False), -FURTHEST, evaluate=False)


def hit_rate() -> sp.Expr:
    """Share of a token's experts that it finds on the cards, where the most popular ones lie there.

    The Lorenz curve of a log-normal distribution, Phi(sigma - Phi^-1(1 - c)). Spread 0 gives c. Unit: 1.
    """
    return (1 + sp.erf((s.skew - sp.sqrt(2) * sp.erfinv(1 - 2 * s.resident_share)) / sp.sqrt(2))) / 2


def _missed_at(z: sp.Expr) -> sp.Expr:
    """Share of experts that a pass uses and whose popularity lies z standard deviations from the middle, by density."""
    share = s.experts_per_token / s.experts * sp.exp(s.skew * z - s.skew**2 / 2)
    used = 1 - (1 - sp.Min(share, 1, evaluate=False)) ** expert_tokens()
    return sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi) * used


def missed_integral() -> sp.Expr:
    """The same as `missed_experts`, as a reader sees it. Unit: experts."""
    z = sp.Symbol("z", real=True)
    cut = sp.sqrt(2) * sp.erfinv(1 - 2 * s.resident_share)
    return s.experts * sp.Integral(_missed_at(z), (z, -sp.oo, cut))


def missed_experts() -> sp.Expr:
    """Expected number of a layer's experts that a pass uses and that do not lie on the cards.

    E times the integral of 1 - (1 - p)^T over the experts less popular than those on the cards, p being k/E times their
    popularity; by Gauss-Legendre points. One token misses k (1 - h). Unit: experts.
    """
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    width = least_popular_resident() + FURTHEST
    missed = sp.Integer(0)
    for node, weight in zip(nodes, weights, strict=True):
        missed += sp.Float(weight / 2) * width * _missed_at(width * sp.Float((node + 1) / 2) - FURTHEST)
    return s.experts * missed


def missed_bytes() -> sp.Expr:
    """Bytes of the experts that a pass misses in all layers. Unit: B."""
    return s.layers_moe * missed_experts() * s.expert_bytes


def missed_work() -> sp.Expr:
    """Arithmetic of the missed experts for all tokens of a pass. Unit: FLOP, written as MFLOPS x us."""
    each = 2 * MATRICES * s.expert_input * s.expert_width
    return s.layers_moe * expert_tokens() * s.experts_per_token * (1 - hit_rate()) * each


def asking_us() -> sp.Expr:
    """What the layers take to ask for experts that they miss. Unit: us."""
    return s.layers_moe * s.fetch_us * sp.Min(missed_experts(), 1, evaluate=False)


def copied_us() -> sp.Expr:
    """Missed experts copied to the cards when a layer asks for them: over the links of a node, out of its memory.

    Unit: us.
    """
    rate = sp.Min(s.links * s.link_rate, s.copy_share * s.host_rate, evaluate=False)
    return missed_bytes() / rate + asking_us()


def computed_us() -> sp.Expr:
    """Missed experts computed by the processors where they lie: memory read, or arithmetic. Unit: us."""
    read = missed_bytes() / (s.host_share * s.host_rate)
    return sp.Max(read, missed_work() / s.host_work, evaluate=False) + asking_us()


def offloaded_us(missing: sp.Expr) -> sp.Expr:
    """A pass with its missing experts: the cards wait for them. Unit: us."""
    return s.card_us + missing
