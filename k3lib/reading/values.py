"""Numbers out of files that anyone may have written: finite, not negative, of a size that something can have."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from k3lib.errors import InputError
from k3lib.reading.text import clean

LARGEST = 1e15
NOTHING = frozenset({"", "n/a", "na", "none", "null", "nan", "-", "–", "—"})
NUMBER = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d*)?([eE][+-]?\d{1,3})?")
ENDLESS = frozenset({"inf", "+inf", "infinity", "+infinity"})


def number_in(value: Any, address: str, largest: float = LARGEST) -> float | None:
    """A number, or None where there is none (null, NaN, an empty cell).

    Text is accepted where it spells a number, with or without thousands separators. Raises InputError with the address
    for a negative or endless number, one above `largest`, and anything else.
    """
    if value is None:
        return None
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in NOTHING:
            return None
        if text.lower() in ENDLESS:
            value = math.inf
        elif len(text) > 40 or not NUMBER.fullmatch(text) or not re.search(r"\d", text):
            raise InputError(f"{address} = '{clean(value, 40)}': must be a number")
        else:
            value = float(text.replace(",", ""))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{address} = {clean(value, 40)}: must be a number")
    if isinstance(value, float) and math.isnan(value):
        return None
    if value < 0:
        raise InputError(f"{address} = {clean(value, 40)}: below zero; this cannot be measured. Is the file damaged?")
    if value > largest:
        raise InputError(f"{address} = {clean(value, 40)}: above {largest:g}. Is the file damaged?")
    return float(value)


class Numbers:
    """The fields of one object, with its address for messages; gathers what was passed over."""

    def __init__(self, where: str, data: Mapping[str, Any]) -> None:
        self.where = where
        self.data = data
        self.passed: list[str] = []

    def get(self, *names: str) -> float | None:
        """The first of these fields that is there and is a number."""
        for name in names:
            if self.data.get(name) is not None:
                value = number_in(self.data[name], f"{self.where}, {clean(name, 40)}")
                if value is not None:
                    return value
                self.passed.append(name)
        return None

    def whole(self, *names: str) -> int | None:
        """The same as a whole number. Raises InputError for a fraction."""
        value = self.get(*names)
        if value is not None and value != int(value):
            raise InputError(f"{self.where}, {clean(names[0], 40)} = {value}: must be a whole number")
        return None if value is None else int(value)

    def above(self, *names: str) -> int | None:
        """A whole number above zero; zero counts as not stated."""
        return self.whole(*names) or None

    def word(self, *names: str) -> str:
        """The first of these fields that is a string, fit to be shown; else empty."""
        return next((clean(v) for name in names if isinstance(v := self.data.get(name), str) and v.strip()), "")

    def part(self, name: str) -> Numbers:
        """A nested object; an empty one where there is none."""
        value = self.data.get(name)
        return Numbers(f"{self.where}, {clean(name, 40)}", value if isinstance(value, dict) else {})

    def flag(self, name: str) -> bool:
        """Whether a field says yes, as JSON or as text."""
        value = self.data.get(name)
        return value is True or (isinstance(value, str) and value.strip().lower() in ("true", "1", "yes"))
