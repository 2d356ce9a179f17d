"""A worked problem: what is given, the steps to its answer, and the answers that a slip would give."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import sympy as sp

from k3lib.errors import InputError
from k3lib.evaluate import arrays, exact
from k3lib.facts.catalog import model_names
from k3lib.facts.prices import Price
from k3lib.facts.tables import Grade
from k3lib.models.model import Model, load_model
from k3lib.units import convert, quantity

Level = Literal["estimate", "derive", "decide"]
# A reader who rounds to three digits is right; one who takes GB for GiB is not.
TOLERANCE = 0.02
K3 = "kimi-k3"


@lru_cache(maxsize=16)
def model_of(name: str) -> Model:
    """A known model, read once. Raises InputError with the near name."""
    return load_model(name)


@dataclass(frozen=True)
class Given:
    """The numbers and names of one problem. prices: those of the scenario."""

    problem_id: str
    values: Mapping[str, int | float | str]
    units: Mapping[str, str]
    prices: Mapping[str, Price]

    def number(self, name: str) -> float:
        """A number in its own unit."""
        return float(self.values[name])

    def whole(self, name: str) -> int:
        """A number that must be whole. Raises InputError where it is not."""
        found = self.number(name)
        if found != int(found):
            raise InputError(f"learn_values: {self.problem_id}.{name} = {found:g}: must be a whole number")
        return int(found)

    def word(self, name: str) -> str:
        """A name."""
        return str(self.values[name])

    def to(self, name: str, unit: str) -> float:
        """A number in another unit of its dimension."""
        return float(convert(self.values[name], self.units[name], unit))  # type: ignore[arg-type]

    def said(self, name: str, unit: str = "", spec: str = "") -> str:
        """A number with its unit, as a question says it."""
        value = self.values[name]
        target = unit or self.units[name]
        return quantity(convert(value, self.units[name], target), target, spec)  # type: ignore[arg-type]

    @property
    def model(self) -> Model:
        """The model that the problem is about: the given one, else K3."""
        return model_of(str(self.values.get("model", K3)))

    @property
    def label(self) -> str:
        """That model as a reader knows it."""
        return model_names()[self.model.name].label


@dataclass(frozen=True)
class Step:
    """A line of a solution. words: what is done. value in unit. left, expression: the equation, where there is one.

    inputs: values of its symbols, in the symbols' own units. spec: how the value is printed.
    """

    words: str
    value: int | float
    unit: str
    left: str = ""
    expression: sp.Expr | None = None
    inputs: Mapping[sp.Symbol, Any] | None = None
    spec: str = ""

    @property
    def said(self) -> str:
        """The value with its unit."""
        return quantity(self.value, self.unit, self.spec)


def step(
    words: str, left: str, expression: sp.Expr, values: Mapping[sp.Symbol, Any], unit: str, shown: str = "",
    spec: str = "",
) -> Step:  # fmt: skip
    """A step whose value is that of an expression. unit: of the expression; shown: in which it is given."""
    used = {x: values[x] for x in sorted(expression.free_symbols, key=str) if x in values}
    if all(isinstance(v, int) for v in used.values()) and not expression.has(sp.Float):
        found = exact(expression, used)
        value: int | float = found if isinstance(found, int) else float(found)
    else:
        value = float(arrays({"value": expression}, used)["value"][0])
    return Step(words, convert(value, unit, shown or unit), shown or unit, left, expression, used, spec)


def plain(words: str, value: float, unit: str, spec: str = "") -> Step:
    """A step that no equation of the account stands for."""
    return Step(words, value, unit, spec=spec)


@dataclass(frozen=True)
class Slip:
    """A wrong answer with a reason, so that a reader learns which step went wrong. value: in the answer's unit."""

    value: float
    words: str


@dataclass(frozen=True)
class Worked:
    """What the function of a problem returns. The last step is the answer. meaning: what it is good for.

    low, high: range of the answer in its unit, where the facts behind it have one.
    """

    question: str
    steps: tuple[Step, ...]
    hint: str
    meaning: str
    sources: tuple[str, ...]
    slips: tuple[Slip, ...] = ()
    grade: Grade = "derived"
    low: float | None = None
    high: float | None = None
    tolerance: float = TOLERANCE


@dataclass(frozen=True)
class Problem:
    """A problem with its numbers filled in. chapter: the page that teaches it."""

    problem_id: str
    topic: str
    level: Level
    title: str
    chapter: str
    given: Mapping[str, int | float | str]
    worked: Worked

    @property
    def answer(self) -> Step:
        """The last step."""
        return self.worked.steps[-1]

    @property
    def key(self) -> str:
        """The name of the answer among the results."""
        return f"exercise.{self.problem_id}.answer"

    @property
    def trail(self) -> dict[str, Any]:
        """What `k3lib.results.make` needs beside key and value."""
        answer, worked = self.answer, self.worked
        known: dict[str, Any] = {"unit": answer.unit, "grade": worked.grade, "sources": list(worked.sources)}
        if worked.grade != "exact":
            known["low"] = answer.value if worked.low is None else worked.low
            known["high"] = answer.value if worked.high is None else worked.high
        if answer.expression is not None and answer.inputs:
            known |= {"equation": answer.expression, "inputs": answer.inputs}
        return known

    @property
    def slips(self) -> tuple[Slip, ...]:
        """The slips that can be told from the answer and from each other."""
        kept: list[Slip] = []
        for one in self.worked.slips:
            if math.isfinite(one.value) and all(
                abs(one.value - other) > 2 * self.worked.tolerance * abs(other)
                for other in (self.answer.value, *(k.value for k in kept))
            ):
                kept.append(one)
        return tuple(kept)


Make = Callable[[Given], Worked]


@dataclass(frozen=True)
class Form:
    """A problem without numbers."""

    problem_id: str
    topic: str
    level: Level
    title: str
    chapter: str
    make: Make

    def filled(self, given: Given) -> Problem:
        """The problem with these numbers."""
        return Problem(
            self.problem_id, self.topic, self.level, self.title, self.chapter, given.values, self.make(given)
        )


FORMS: dict[str, Form] = {}


def problem(problem_id: str, topic: str, level: Level, title: str, chapter: str) -> Callable[[Make], Make]:
    """Declare the function below as a problem."""

    def declare(make: Make) -> Make:
        if problem_id in FORMS:
            raise InputError(f"problem '{problem_id}' is declared twice")
        FORMS[problem_id] = Form(problem_id, topic, level, title, chapter, make)
        return make

    return declare


def unique(*many: Iterable[str]) -> tuple[str, ...]:
    """Sources of several facts, each once."""
    return tuple(dict.fromkeys(one for part in many for one in part))
