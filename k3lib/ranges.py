"""A number with its range. Ranges go through a calculation by their ends: all low ends together, all high ones."""

from __future__ import annotations

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


def times(one: Range, other: Range) -> Range:
    """The product of two ranges of what is not negative."""
    return Range(one.value * other.value, one.low * other.low, one.high * other.high)
