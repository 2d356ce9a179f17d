"""The numbers that exercises are set with: what each is by itself, and what other sets draw it from."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

from pydantic import model_validator

from k3lib.errors import InputError, near
from k3lib.facts.paths import DATA
from k3lib.facts.tables import Identifier, Row, Text, load_rows
from k3lib.units import UNITS

# Where a value may come from, beside standing in the row: `scenario.cards`, `kimi-k3.latent_kv`, `price.pue`,
# `claim.B01.total_params`.
SOURCES = ("scenario", "kimi-k3", "price", "claim")
MOST_SETS = 9999


class ProblemNumber(Row):
    """A number or a name that a problem gives its reader.

    value: of set 0, or where it comes from. choices: what other sets draw it from, separated by ';'. unit: of numbers;
    empty for names. Choices of an exercise are no facts, so a row names no source.
    """

    problem: Identifier
    parameter: Identifier
    value: Text
    choices: Text
    unit: str = ""
    note: str = ""

    @property
    def key(self) -> str:
        """The name by which a trainer sets it."""
        return f"{self.problem}.{self.parameter}"

    @property
    def drawn(self) -> tuple[str, ...]:
        """The choices, one by one."""
        return tuple(part.strip() for part in self.choices.split(";"))

    @property
    def origin(self) -> tuple[str, str] | None:
        """Where the value comes from and under which name; None where it stands in the row."""
        kind, _, name = self.value.partition(".")
        return (kind, name) if kind in SOURCES and name else None

    @model_validator(mode="after")
    def _sound(self) -> ProblemNumber:
        if self.unit and self.unit not in UNITS:
            raise ValueError(f"unit '{self.unit}' is not known. {near(self.unit, UNITS)}")
        if not all(self.drawn):
            raise ValueError("choices: one is empty. Separate them by ';', with none at the end.")
        if self.unit:
            for text in self.drawn if self.origin else (self.value, *self.drawn):
                self.number(text)
        return self

    def number(self, text: str) -> int | float:
        """A text as a number of this row. Raises ValueError unless it is finite and above 0."""
        try:
            found = float(text)
        except ValueError:
            raise ValueError(f"'{text}' is not a number") from None
        if not (math.isfinite(found) and found > 0):
            raise ValueError(f"'{text}' must be finite and above 0")
        return int(found) if found == int(found) and "." not in text else found


@lru_cache(maxsize=8)
def problem_numbers(data: Path = DATA) -> dict[str, ProblemNumber]:
    """The numbers of all problems by `problem.parameter`, in the order of the table."""
    return {row.key: row for row in load_rows(data / "problems.csv", ProblemNumber, ["problem", "parameter"])}


def set_by_hand(text: str, where: str = "learn_values") -> dict[str, str]:
    """Numbers of problems from `kv-per-token.cache_bytes:1;...`. Raises InputError for another form or a bad value."""
    found: dict[str, str] = {}
    known = problem_numbers()
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, colon, value = (piece.strip() for piece in part.partition(":"))
        if not (colon and value):
            raise InputError(f"{where}: '{part}' is not NAME:VALUE, as kv-per-token.cache_bytes:1")
        if name not in known:
            raise InputError(f"{where}: no problem has a number '{name}'. {near(name, known)}")
        if name in found:
            raise InputError(f"{where}: '{name}' stands twice")
        row = known[name]
        try:
            if row.unit:
                row.number(value)
        except ValueError as error:
            raise InputError(f"{where}: {name}: {error}. Write it in {row.unit}, as {row.drawn[0]}.") from None
        found[name] = value
    return found
