"""A run that is slower than predicted: which term of a step would have to be how much longer to explain it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from k3lib.calibrate.against import Compared
from k3lib.calibrate.parts import NINE_IN_TEN, Part, step_parts
from k3lib.calibrate.spread import FORM_SPREAD
from k3lib.deploy import constants as co
from k3lib.deploy.speed import Question
from k3lib.facts.operating import Trouble, troubles

NAMED = 3


@dataclass(frozen=True)
class Suspect:
    """One term of a step. times: how many times as long as predicted it would be if it alone explained the run.

    reach: up to how many times its range goes. look: what to test first.
    """

    term: str
    part: Part
    times: float
    reach: float
    look: Trouble | None

    @property
    def within(self) -> bool:
        """Whether its range alone explains the run."""
        return self.times <= self.reach


def suspects(asked: Question, slower: float, table: co.Table | None = None) -> list[Suspect]:
    """Terms of a generating step, in the order in which to suspect them of making a run so many times slower.

    First those whose own range explains the run, the least stretched first; then the others, the one first that would
    have to be the fewest times as long. slower: measured time per token over predicted, above 1. No range is narrower
    than what the form of the model is good for. Raises ValueError for a run that is not slower.
    """
    if not slower > 1:
        raise ValueError(f"a run {slower:g} times as slow is not slower than predicted")
    total, parts = step_parts(asked, table)
    missing = (slower - 1) * total.value
    looks = {row.term: row for row in troubles() if row.term}
    least = math.exp(NINE_IN_TEN * FORM_SPREAD["tpot_ms"])
    found = []
    for term, part in parts.items():
        times = (part.ms.value + missing) / part.ms.value
        found.append(Suspect(term, part, times, max(part.ms.high / part.ms.value, least), looks.get(term)))
    return sorted(found, key=_place)


def _place(one: Suspect) -> tuple[bool, float]:
    stretched = math.log(one.times)
    return not one.within, stretched / math.log(one.reach) if one.within else stretched


def output_left(share: float, times: float) -> float:
    """Output over that as predicted, when a term that takes this share of a step takes so many times as long."""
    return 1 / (1 + (times - 1) * share)


def slower_by(compared: Iterable[Compared]) -> float:
    """How many times slower than predicted a run is where it lies beyond the slow end of a range; 1 where it does not.

    By the time per token where it was measured, else by the output.
    """
    by = {row.what: row for row in compared}
    tpot, output = by.get("time per output token"), by.get("output")
    if tpot is not None:
        return tpot.measured / tpot.predicted if tpot.high is not None and tpot.measured > tpot.high else 1.0
    if output is not None and output.low is not None and output.measured < output.low:
        return output.predicted / output.measured
    return 1.0


def slower_line(asked: Question, compared: Iterable[Compared]) -> str:
    """One line for a terminal: by how much a run is slower, what would explain it, what to look at first.

    Empty where the run does not lie beyond the slow end of its range.
    """
    slower = slower_by(compared)
    if slower <= 1:
        return ""
    found = suspects(asked, slower)
    words = ", ".join(f"{one.term} {one.times:.1f} (range to {one.reach:.1f})" for one in found[:NAMED])
    look = next((one.look for one in found if one.look), None)
    first = f"; first look at {look.test}" if look else ""
    return (f"slower than predicted by {slower:.2f} times; one term alone would have to take so many times as long: "
            f"{words}{first}")  # fmt: skip
