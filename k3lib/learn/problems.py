"""All problems, with the numbers of a set: set 0 has the scenario's own, every other one is drawn from choices."""

from __future__ import annotations

import random
from collections.abc import Mapping

from k3lib.errors import InputError, near
from k3lib.facts.catalog import article_figures
from k3lib.facts.price_parameters import current
from k3lib.facts.prices import Price, price
from k3lib.facts.problems import MOST_SETS, ProblemNumber, problem_numbers, set_by_hand
from k3lib.facts.scenario import Scenario
from k3lib.learn import caches, costs, plans, speed, weights
from k3lib.learn.problem import FORMS, K3, Given, Problem, model_of
from k3lib.units import convert

# Topics in the order of the book.
TOPICS = {
    weights.TOPIC: "Weights",
    caches.TOPIC: "Caches",
    plans.TOPIC: "Plans",
    speed.TOPIC: "Speed",
    costs.TOPIC: "Costs",
}


def problem_set(scenario: Scenario) -> tuple[Problem, ...]:
    """Every problem with the numbers of the scenario's set, in the order of the topics.

    Raises InputError for a set that is none, a number that no problem has, and what a problem refuses.
    """
    table = current(scenario.prices, scenario.price_file)
    by_hand = set_by_hand(scenario.learn_values)
    problems = [form.filled(_given(name, scenario, table, by_hand)) for name, form in FORMS.items()]
    return tuple(sorted(problems, key=lambda p: list(TOPICS).index(p.topic)))


def of_topic(problems: tuple[Problem, ...], topic: str) -> tuple[Problem, ...]:
    """The problems of one topic. Raises InputError with the near name."""
    if topic not in TOPICS:
        raise InputError(f"topic '{topic}' is not known. {near(topic, TOPICS)}")
    return tuple(p for p in problems if p.topic == topic)


def _given(problem_id: str, scenario: Scenario, table: Mapping[str, Price], by_hand: Mapping[str, str]) -> Given:
    rows = [row for row in problem_numbers().values() if row.problem == problem_id]
    values: dict[str, int | float | str] = {}
    for row in rows:
        if row.key in by_hand:
            values[row.parameter] = _read(row, by_hand[row.key])
        elif scenario.learn_set:
            values[row.parameter] = _read(row, drawn(row, scenario.learn_set))
        else:
            values[row.parameter] = _origin(row, scenario, table) if row.origin else _read(row, row.value)
    return Given(problem_id, values, {row.parameter: row.unit for row in rows}, table)


def drawn(row: ProblemNumber, learn_set: int) -> str:
    """The choice of a set: the same in every process and on every machine."""
    if not 1 <= learn_set <= MOST_SETS:
        raise InputError(f"learn_set = {learn_set}: must be from 0 to {MOST_SETS:,}")
    return random.Random(f"{learn_set}/{row.key}").choice(row.drawn)  # noqa: S311 - exercises are no secrets


def _read(row: ProblemNumber, text: str) -> int | float | str:
    return row.number(text) if row.unit else text


def _origin(row: ProblemNumber, scenario: Scenario, table: Mapping[str, Price]) -> int | float | str:
    """A value that comes from the scenario or from a fact, in the unit of the row."""
    kind, name = row.origin or ("", "")
    if kind == "scenario":
        return _of_scenario(name, scenario)
    if kind == "price":
        found = price(name, table)
        return convert(found.default, found.unit, row.unit)
    if kind == "claim":
        figure = article_figures()[name]
        return convert(figure.value, figure.unit, row.unit)
    sizes = {str(symbol): value for symbol, value in model_of(K3).values.items()}
    if name not in sizes:
        raise InputError(f"data/problems.csv ({row.key}): K3 has no size '{name}'. {near(name, sizes)}")
    return sizes[name]


def _of_scenario(name: str, scenario: Scenario) -> int | float | str:
    if name == "plan":
        nodes = scenario.cards // scenario.cards_per_node
        return f"{nodes}x{scenario.cards_per_node}x{scenario.device} {scenario.layout}"
    return getattr(scenario, name)  # type: ignore[no-any-return]


def set_words(scenario: Scenario) -> str:
    """Which numbers the problems have, in words."""
    words = f"set {scenario.learn_set}" if scenario.learn_set else "those of the scenario"
    return f"{words}, with {scenario.learn_values}" if scenario.learn_values else words
