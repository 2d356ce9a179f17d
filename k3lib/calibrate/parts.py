"""The terms of a generating step, and any function of the model's numbers, with what is not known carried through."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from k3lib.calibrate.predict import numbers
from k3lib.calibrate.spread import override
from k3lib.deploy import constants as co
from k3lib.deploy.setup import constants
from k3lib.deploy.speed import Question, step_terms
from k3lib.ranges import Range

# From a spread to the half of a range that holds nine in ten of a normal distribution.
NINE_IN_TEN = 1.645


@dataclass(frozen=True)
class Part:
    """One term of a step: its time in ms and its share of the step, each with its range."""

    ms: Range
    share: Range


def step_parts(asked: Question, table: co.Table | None = None) -> tuple[Range, dict[str, Part]]:
    """A generating step through all stages in ms, and its terms; every number moved by its own spread in turn."""
    table = table or numbers()
    middle = step_terms(asked, table)
    total = sum(middle.values())
    all_of, times, shares = 0.0, dict.fromkeys(middle, 0.0), dict.fromkeys(middle, 0.0)
    for name, was in constants(asked.setup, table).values.items():
        if not was.spread:
            continue
        moved = step_terms(asked, override(asked, table, name, was.value * math.exp(was.spread)))
        now = sum(moved.values())
        all_of += math.log(now / total) ** 2
        for term, ms in middle.items():
            times[term] += math.log(moved[term] / ms) ** 2
            shares[term] += (moved[term] / now - ms / total) ** 2
    parts = {}
    for term, ms in middle.items():
        share, wide = ms / total, NINE_IN_TEN * math.sqrt(shares[term])
        parts[term] = Part(_around(ms, times[term]), Range(share, max(0.0, share - wide), min(1.0, share + wide)))
    return _around(total, all_of), parts


def _around(value: float, variance: float) -> Range:
    wide = math.exp(NINE_IN_TEN * math.sqrt(variance))
    return Range(value, value / wide, value * wide)


def ranged(asked: Question, value: Callable[[co.Table], float], table: co.Table | None = None) -> Range:
    """What a function of the model's numbers gives for a question; every number moved by its own spread in turn."""
    table = table or numbers()
    middle = value(table)
    variance = sum(
        math.log(value(override(asked, table, name, was.value * math.exp(was.spread))) / middle) ** 2
        for name, was in constants(asked.setup, table).values.items()
        if was.spread
    )
    return _around(middle, variance)
