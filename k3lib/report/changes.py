"""Two scenarios beside each other: the inputs that differ, the results that moved, and whether the choices did."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from k3lib.facts.price_parameters import parsed
from k3lib.results import Result, Value

# A result that moved by less than this did not move for a reader.
MOVED = 1e-9
CHOICE, CASE = ".choice", "recommend."


@dataclass(frozen=True)
class Input:
    """An input that differs: a parameter, or a price."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Moved:
    """A result that differs. change: after over before, less one; None where one of them is no number, or 0."""

    key: str
    unit: str
    before: Value | None
    after: Value | None
    change: float | None


@dataclass(frozen=True)
class Changes:
    """All differences. moved: largest change first, then results that are no numbers or stand in one only. choices:
    recommendations among them.
    """

    inputs: tuple[Input, ...]
    moved: tuple[Moved, ...]
    choices: tuple[Moved, ...]
    same: int

    def as_json(self) -> dict[str, Any]:
        """For other programs."""
        return asdict(self)


def inputs(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Input, ...]:
    """Parameters of two scenarios that differ; prices one by one."""
    ours, theirs = (_flat(values) for values in (before, after))
    names = dict.fromkeys([*ours, *theirs])
    return tuple(Input(n, ours.get(n), theirs.get(n)) for n in names if ours.get(n) != theirs.get(n))


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in values.items() if name != "prices"}
    return plain | parsed(str(values.get("prices", "")))


def compare(before: Mapping[str, Result], after: Mapping[str, Result], differing: tuple[Input, ...] = ()) -> Changes:
    """Results of two scenarios."""
    moved = [found for key in sorted({*before, *after}) if (found := _moved(key, before.get(key), after.get(key)))]
    moved.sort(key=lambda one: (one.change is None, -abs(one.change or 0.0), one.key))
    choices = tuple(one for one in moved if one.key.startswith(CASE) and one.key.endswith(CHOICE))
    return Changes(differing, tuple(moved), choices, len({*before, *after}) - len(moved))


def _moved(key: str, before: Result | None, after: Result | None) -> Moved | None:
    a, b = (one.value if one else None for one in (before, after))
    unit = (after or before).unit  # type: ignore[union-attr]  # a key is of one of them
    numbers = [x for x in (a, b) if isinstance(x, (int, float)) and not isinstance(x, bool)]
    if len(numbers) == 2 and before and after and before.unit == after.unit:
        if math.isclose(numbers[0], numbers[1], rel_tol=MOVED, abs_tol=0.0):
            return None
        return Moved(key, unit, a, b, numbers[1] / numbers[0] - 1 if numbers[0] else None)
    return None if a == b else Moved(key, unit, a, b, None)
