"""The model tried on runs that its fit did not see: a whole deployment left out, then two of its cells given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from k3lib.calibrate.cells import Cell, served
from k3lib.calibrate.fit import fit
from k3lib.calibrate.spread import rounded, spreads
from k3lib.deploy import constants as co
from k3lib.facts.constants import Trial

# Clients of the second cell of a calibration by two.
SECOND = range(8, 17)


def two_cells(many: Sequence[Cell]) -> list[Cell]:
    """One client alone, and eight to sixteen of them with the same prompts; fewer where there are no such runs."""
    alone = [one for one in many if one.run.concurrency == 1][:1]
    prompts = alone[0].asked.load.isl if alone else 0
    second = [one for one in many if one.run.concurrency in SECOND]
    second.sort(key=lambda one: (abs(one.asked.load.isl - prompts), one.run.concurrency or 0))
    return alone + second[:1]


def trials(many: Sequence[Cell], numbers: co.Table, near: co.Table) -> list[Trial]:
    """Every deployment left out in turn. near: the fit to all of them, where the search for each begins."""
    rows: list[Trial] = []
    for group in dict.fromkeys(one.group for one in many):
        inside = [one for one in many if one.group == group]
        outside = [one for one in many if one.group != group]
        without = {**numbers, **fit(outside, numbers, near).numbers}
        rows += _rows("left-out", inside, without)
        given = two_cells(inside)
        told = {**without, **fit(given, without, own=True).numbers}
        seen = {one.key for one in given}
        rows += _rows("two-cells", [one for one in inside if one.key not in seen], told)
    return rows


def _rows(trial: str, many: Sequence[Cell], numbers: co.Table) -> Iterable[Trial]:
    known: dict[tuple[object, ...], dict[str, float]] = {}
    for one, answer in zip(many, served(many, numbers), strict=True):
        if one.key not in known:
            known[one.key] = spreads(one.asked, numbers, answer)
        for seen in one.observed:
            yield Trial.model_validate({
                "trial": trial, "group": one.group, "run_id": one.run.run_id, "metric": seen.metric,
                "measured": seen.value, "predicted": rounded(getattr(answer, seen.column)),
                "spread": rounded(known[one.key][seen.metric]),
            })  # fmt: skip
