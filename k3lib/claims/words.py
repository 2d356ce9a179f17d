"""What words of the articles are taken to mean, and how a sentence shows a number."""

from __future__ import annotations

from k3lib.facts.variants import Quality
from k3lib.units import quantity

# Cards are called busy from this share of their output under the workload's full load on.
BUSY = 0.9
# A cost or a gain is called small up to this share.
SMALL = 0.1
# A service is called halted, and a part of a step the bottleneck, from one half on.
HALF = 0.5
# What would allow more than twice the output does not set it.
SETS = 2.0
# A model that keeps this share of its score has lost little.
LITTLE = 0.98
# Clients that are called few and many.
FEW, MANY = 8, 256


def shown(value: float, unit: str, spec: str = ",.0f") -> str:
    """A number with its unit, for a sentence."""
    return quantity(value, unit, spec)


def kept_of(row: Quality) -> float:
    """What a changed model keeps of the whole one's score, 0 where that is not known."""
    return row.score / row.baseline if row.baseline else 0.0
