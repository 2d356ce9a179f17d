"""Workloads by a name: what requests look like, how many at once, and how soon an answer is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, model_validator

from k3lib.errors import InputError, near
from k3lib.facts.catalog import Measure, checked, sources
from k3lib.facts.paths import DATA, shown
from k3lib.facts.tables import Identifier, Row, Text, load_rows
from k3lib.ranges import Range

# Every quantity of a workload and its unit.
QUANTITY_UNITS = {"isl": "tokens", "osl": "tokens", "thinking": "tokens", "hit": "1", "concurrency": "requests",
                  "user_month": "requests", "ttft": "s", "tpot": "ms"}  # fmt: skip
NEEDED = ("isl", "osl", "concurrency")
GOALS = ("ttft", "tpot")
KEY = ["workload", "quantity"]


def _known_quantity(value: str) -> str:
    if value not in QUANTITY_UNITS:
        raise ValueError(f"quantity '{value}' is not known. {near(str(value), QUANTITY_UNITS)}")
    return value


class WorkloadFact(Measure):
    """One property of a workload.

    isl: tokens of a prompt, the mean. osl: tokens of the answer that a person or a program reads. thinking: tokens that
    the model writes for itself before. hit: share of the prompt that a prefix cache serves. concurrency: requests in
    flight. user_month: requests that one user sends in a month. ttft: goal for the first token, s. tpot: goal for each
    further one, ms. low, high: what to try beside it.
    """

    workload: Identifier
    quantity: Annotated[str, BeforeValidator(_known_quantity)]

    @model_validator(mode="after")
    def _sound(self) -> WorkloadFact:
        unit = QUANTITY_UNITS[self.quantity]
        if self.unit != unit:
            raise ValueError(f"unit '{self.unit}' does not fit {self.quantity}. Write it in '{unit}'.")
        if self.quantity in NEEDED and self.value < 1:
            raise ValueError(f"{self.quantity} {self.value:g}: must be at least 1")
        if self.quantity == "user_month" and 0 in (self.value, self.low):
            raise ValueError("user_month 0: must be above 0; leave the row out where there are no users")
        if self.quantity in GOALS and self.value == 0:
            raise ValueError(f"{self.quantity} 0: a goal must be above 0; leave the row out where there is none")
        most = self.value if self.high is None else self.high
        if self.quantity == "hit" and most > 1:
            raise ValueError(f"hit {most:g}: a share must be from 0 to 1")
        return self


class WorkloadLabel(Row):
    """A few words for a workload."""

    workload_id: Identifier
    label: Text


@dataclass(frozen=True)
class Workload:
    """A load that people ask about. facts: its rows by quantity; thinking, hit and the goals may be absent."""

    workload_id: str
    label: str
    facts: Mapping[str, WorkloadFact]

    def _value(self, quantity: str) -> float:
        return self.facts[quantity].value if quantity in self.facts else 0.0

    def _goal(self, quantity: str) -> float | None:
        return self.facts[quantity].value if quantity in self.facts else None

    @property
    def isl(self) -> int:
        """Tokens of a prompt, the mean."""
        return round(self._value("isl"))

    @property
    def osl(self) -> int:
        """Tokens that are generated for a request: those that are read, and those of the thinking before them."""
        return round(self._value("osl")) + round(self._value("thinking"))

    @property
    def cached(self) -> int:
        """Tokens of a prompt that a prefix cache serves; one at least is always computed."""
        return min(round(self.isl * self._value("hit")), self.isl - 1)

    @property
    def uncached(self) -> int:
        """Tokens of a prompt that are computed."""
        return self.isl - self.cached

    @property
    def concurrency(self) -> int:
        """Requests in flight."""
        return round(self._value("concurrency"))

    @property
    def user_month(self) -> Range | None:
        """Requests that one user sends in a month, None where nobody waits for an answer."""
        row = self.facts.get("user_month")
        if row is None:
            return None
        return Range(row.value, row.value if row.low is None else row.low, row.value if row.high is None else row.high)

    @property
    def ttft_s(self) -> float | None:
        """Goal for the time to the first token in s, None without one."""
        return self._goal("ttft")

    @property
    def tpot_ms(self) -> float | None:
        """Goal for the time of each further token in ms, None without one."""
        return self._goal("tpot")

    @property
    def sources(self) -> tuple[str, ...]:
        """Every source of its figures, each once."""
        return tuple(dict.fromkeys(s for row in self.facts.values() for s in row.source_ids))


@lru_cache(maxsize=8)
def workload_facts(data: Path = DATA) -> tuple[WorkloadFact, ...]:
    """All properties of the project's workloads, in the order of the table."""
    path = data / "workloads.csv"
    return checked(path, load_rows(path, WorkloadFact, KEY), sources(data))


@lru_cache(maxsize=8)
def workload_labels(data: Path = DATA) -> tuple[WorkloadLabel, ...]:
    """Labels of the project's workloads. Raises InputError unless each workload has one and each label a workload."""
    path = data / "workload_labels.csv"
    rows = load_rows(path, WorkloadLabel, ["workload_id"])
    labelled, known = {row.workload_id for row in rows}, {row.workload for row in workload_facts(data)}
    for name in sorted(labelled - known):
        raise InputError(f"{shown(path)} ({name}): workload '{name}' is not in data/workloads.csv. {near(name, known)}")
    for name in sorted(known - labelled):
        raise InputError(f"{shown(path)}: workload '{name}' has no label. Add its row.")
    return rows


def _together(where: str, rows: Iterable[WorkloadFact], labels: Mapping[str, str]) -> dict[str, Workload]:
    """Rows put together by workload; one without a label goes by its name."""
    found: dict[str, dict[str, WorkloadFact]] = {}
    for row in rows:
        found.setdefault(row.workload, {})[row.quantity] = row
    for name, facts in found.items():
        for quantity in NEEDED:
            if quantity not in facts:
                raise InputError(
                    f"{where} ({name}): '{quantity}' is missing. Add a row of it, in {QUANTITY_UNITS[quantity]}."
                )
    return {name: Workload(name, labels.get(name, name), facts) for name, facts in found.items()}


@lru_cache(maxsize=8)
def workloads(data: Path = DATA) -> dict[str, Workload]:
    """Named workloads by id, in the order of the table."""
    labels = {row.workload_id: row.label for row in workload_labels(data)}
    return _together(shown(data / "workloads.csv"), workload_facts(data), labels)


def workloads_with(path: Path) -> dict[str, Workload]:
    """The named workloads, with those of a user's own file of the same form beside them.

    A row of a workload that the project has takes the place of its row of the same quantity; the others stand. Raises
    InputError with file and row for a bad one, and with file and workload where a new one lacks what it needs.
    """
    own = load_rows(path, WorkloadFact, KEY)
    rows = {(row.workload, row.quantity): row for row in (*workload_facts(), *own)}
    return _together(shown(path), rows.values(), {row.workload_id: row.label for row in workload_labels()})


def workload(name: str, known: Mapping[str, Workload] | None = None) -> Workload:
    """A workload by name. known: where to look, if not the project's. Raises InputError with the near name."""
    table = workloads() if known is None else known
    if name not in table:
        raise InputError(f"workload '{name}' is not known. {near(name, table)}")
    return table[name]


def with_goals(one: Workload, ttft_s: float, tpot_ms: float) -> Workload:
    """A workload under other goals; 0 leaves its own."""
    facts = dict(one.facts)
    for quantity, value in (("ttft", ttft_s), ("tpot", tpot_ms)):
        if value:
            facts[quantity] = WorkloadFact(
                workload=one.workload_id, quantity=quantity, value=value, unit=QUANTITY_UNITS[quantity],
                grade="assumed", as_of="2026-11", source_id="k3lib_assumed",
            )  # fmt: skip
    return replace(one, facts=facts)
