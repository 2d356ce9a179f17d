"""A number with its range. Ranges go through a calculation by their ends: all low ends together, all high ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Range:
    """A value and the ends of its range."""

    value: float
    low: float
    high: float

    def corners(self, *, falling: bool = False) -> npt.NDArray[np.float64]:
        """Low, value and high as an array; falling: high, value and low, for what makes a result smaller."""
        ends = (self.high, self.value, self.low) if falling else (self.low, self.value, self.high)
        return np.array(ends, dtype=np.float64)


def of_corners(corners: npt.NDArray[np.float64]) -> Range:
    """The range whose low, value and high are these three."""
    low, value, high = (float(x) for x in corners)
    return Range(value, low, high)


def point(value: float) -> Range:
    """A number that is known."""
    return Range(value, value, value)


def times(one: Range, other: Range | float) -> Range:
    """The product of a range with another or with a known number; of what is not negative."""
    by = other if isinstance(other, Range) else point(other)
    return Range(one.value * by.value, one.low * by.low, one.high * by.high)


def total(parts: Iterable[Range]) -> Range:
    """The sum of ranges, end by end."""
    many = list(parts)
    return Range(*(sum(getattr(one, end) for one in many) for end in ("value", "low", "high")))


def over(above: Range, below: Range) -> Range:
    """One range over another whose ends are not known to go together; of what is above 0."""
    return Range(above.value / below.value, above.low / below.high, above.high / below.low)
