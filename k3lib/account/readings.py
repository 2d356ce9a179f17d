"""How the two articles count, as equations, so that their figures can be derived before they are corrected."""

from __future__ import annotations

import sympy as sp

from k3lib.account import symbols as s
from k3lib.units import BITS_PER_BYTE


def nominal_bytes() -> sp.Expr:
    """All parameters at one width. Unit: B."""
    return s.nominal_params * s.nominal_bits / BITS_PER_BYTE


def nominal_scale_bytes() -> sp.Expr:
    """One 8-bit scale for each group of g parameters, over all parameters. Unit: B."""
    return s.nominal_params / s.group_size


def cluster_memory() -> sp.Expr:
    """Memory of all cards together. Unit: B."""
    return s.cards * s.card_memory


def memory_left() -> sp.Expr:
    """What the weights leave, if they filled the cards without padding or copies. Unit: B."""
    return cluster_memory() - nominal_bytes()


def nominal_bytes_per_card() -> sp.Expr:
    """Weights spread evenly over the cards. Unit: B."""
    return nominal_bytes() / s.cards


def without_latent(expression: sp.Expr) -> sp.Expr:
    """The same count for a reader who takes the hidden width for the experts' input and forgets the latent."""
    return expression.subs(s.expert_input, s.hidden)
