"""What becomes of a claim: the one rule for figures, the one for statements, and how both go together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from k3lib.facts.claims import OF_STATED, Claim
from k3lib.facts.tables import Grade
from k3lib.facts.variants import PER_CENT
from k3lib.ranges import Range
from k3lib.units import convert

Verdict = Literal["confirmed", "confirmed with correction", "refuted", "not decidable"]
CONFIRMED: Verdict = "confirmed"
CORRECTED: Verdict = "confirmed with correction"
REFUTED: Verdict = "refuted"
OPEN: Verdict = "not decidable"
VERDICTS: tuple[Verdict, ...] = (CONFIRMED, CORRECTED, REFUTED, OPEN)


def outside(value: float, stated: Range) -> float:
    """How far a value lies outside what is stated, 0 within."""
    return max(0.0, stated.low - value, value - stated.high)


def of_number(stated: Range, found: Range | None, tolerance: float, bearable: float) -> Verdict:
    """The verdict on a figure; all in one unit.

    stated: from low to high as the article has it, both the same for a plain number; high is infinite for a floor, low
    is minus infinite for a ceiling. Confirmed where the found value is at most `tolerance` outside; with correction
    where it is at most `bearable` outside, or where a part of its range lies within; else refuted.
    """
    if found is None:
        return OPEN
    gap = outside(found.value, stated)
    if gap <= tolerance:
        return CONFIRMED
    meet = found.low <= stated.high and stated.low <= found.high
    return CORRECTED if gap <= bearable or meet else REFUTED


def of_test(holds: bool | None) -> Verdict:
    """The verdict on a statement that a test decides; None where nothing decides it."""
    return OPEN if holds is None else CONFIRMED if holds else REFUTED


def together(core: Sequence[Verdict], beside: Sequence[Verdict] = ()) -> Verdict:
    """The verdict on a claim from those on its parts.

    core: what is claimed. Refuted where all of it is; not decidable where a part is open; confirmed where all is; else
    one part holds and another does not, which is a correction. beside: what the claim implies or gives as a reason; it
    can turn a confirmation into a correction, no more. Raises ValueError without a core.
    """
    if not core:
        raise ValueError("a claim needs a part that is at its core")
    if all(v == REFUTED for v in core):
        return REFUTED
    if OPEN in core:
        return OPEN
    sound = all(v == CONFIRMED for v in core) and all(v in (CONFIRMED, OPEN) for v in beside)
    return CONFIRMED if sound else CORRECTED


@dataclass(frozen=True)
class Part:
    """One thing that a claim holds. says: what derivation or evidence says of it, in a sentence.

    core: whether it is claimed, or only implied. stated, found: in `unit`, where it is a figure.
    """

    says: str
    verdict: Verdict
    sources: tuple[str, ...]
    core: bool = True
    stated: Range | None = None
    found: Range | None = None
    unit: str = ""
    grade: Grade = "derived"


def number(
    claim: Claim,
    says: str,
    stated: Range,
    found: Range | None,
    unit: str,
    sources: Iterable[str],
    *,
    core: bool = True,
    grade: Grade = "derived",
) -> Part:
    """A part that is a figure, judged by the claim's own tolerances. Raises ValueError for a claim without any."""
    if claim.tolerance is None or claim.bearable is None:
        raise ValueError(f"{claim.claim_id}: a figure is checked, and the claim has no tolerance")
    nearest = stated.low if math.isfinite(stated.low) else stated.high
    limits = [
        nearest * end / PER_CENT if claim.tolerance_unit == OF_STATED else convert(end, claim.tolerance_unit, unit)
        for end in (claim.tolerance, claim.bearable)
    ]
    return Part(says, of_number(stated, found, *limits), _once(sources), core, stated, found, unit, grade)


def decided(says: str, holds: bool | None, sources: Iterable[str], *, core: bool = True) -> Part:
    """A part that a test decides."""
    return Part(says, of_test(holds), _once(sources), core)


def floor(value: float) -> Range:
    """Stated as 'at least' or 'more than'."""
    return Range(value, value, math.inf)


def ceiling(value: float) -> Range:
    """Stated as 'less than' or 'at most'."""
    return Range(value, -math.inf, value)


def between(low: float, high: float) -> Range:
    """Stated as a range; the middle stands for it."""
    return Range((low + high) / 2, low, high)


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True)
class Finding:
    """A claim with all that was found."""

    claim: Claim
    parts: tuple[Part, ...]

    @property
    def verdict(self) -> Verdict:
        """What becomes of it."""
        return together([p.verdict for p in self.parts if p.core], [p.verdict for p in self.parts if not p.core])

    @property
    def says(self) -> str:
        """What derivation or evidence says, part by part."""
        return " ".join(part.says for part in self.parts)

    @property
    def figure(self) -> Part | None:
        """The figure that decides: the first that is not plainly confirmed, else the first."""
        figures = [part for part in self.parts if part.stated is not None]
        return next((part for part in figures if part.verdict != CONFIRMED), figures[0] if figures else None)

    @property
    def sources(self) -> tuple[str, ...]:
        """All sources, the article's last."""
        return _once(s for names in (*(p.sources for p in self.parts), self.claim.source_ids) for s in names)

    @property
    def difference(self) -> str:
        """How far the figure that decides lies from the stated one; of a statement, how many of its parts hold."""
        part = self.figure
        if part is None or part.stated is None or part.found is None:
            return self._holding()
        stated, found = part.stated, part.found.value
        if stated.low != stated.high and not outside(found, stated):
            return "within"
        end = stated.low if found < stated.low or stated.low == stated.high else stated.high
        return f"{PER_CENT * (found / end - 1):+.1f}\u00a0%".replace("-", "\u2212")

    def _holding(self) -> str:
        """How much of a statement holds, and whether what goes with it does."""
        core = [part.verdict for part in self.parts if part.core]
        held = core.count(CONFIRMED)
        if len(core) == 1:
            words = "holds" if held else "open" if core[0] == OPEN else "does not hold"
        else:
            words = f"{held} of {len(core)} parts hold"
        failing = any(part.verdict in (CORRECTED, REFUTED) for part in self.parts if not part.core)
        return f"{words}; what goes with it does not" if failing and held else words
