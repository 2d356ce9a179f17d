"""How long a run must be, and what the step of a part of a model says of the whole."""

from __future__ import annotations

import sympy as sp

from k3lib.account import operate_symbols as o
from k3lib.account import symbols as s


def requests_for_mean() -> sp.Expr:
    """Requests whose mean lies within a share of the true one, each of its own length. Unit: requests."""
    return (o.confidence_width * o.length_variation / o.mean_share) ** 2


def scaled_us() -> sp.Expr:
    """Time of a step of the whole model, from that of one more layer and that of the rest. Unit: us."""
    return s.layers * o.part_layer_us + o.part_rest_us
