"""How sure a prediction is: what is not known of its numbers, carried through, and how far it was off before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from k3lib.deploy import constants as co
from k3lib.deploy.serve import Served
from k3lib.deploy.setup import constants, scopes
from k3lib.deploy.speed import Question, answer

METRICS = {"output_tps": "output_tps", "tpot_ms": "tpot_ms", "ttft_ms": "ttft_mean_ms"}
# How the names of numbers end that make a pass faster when they are larger.
FASTER = ("_rate", "_share")
# What the model's form itself is good for, as the spread of a logarithm.
FORM, SLOTS = "form", "slots"
FORM_SPREAD = {"output_tps": 0.05, "tpot_ms": 0.05, "ttft_ms": 0.15}


def changes(asked: Question, numbers: co.Table, here: Served | None = None) -> dict[str, dict[str, float]]:
    """What is not known, by name, and by how much it moves the logarithm of each metric.

    Every number is moved by its own spread in turn, to the slower side. FORM: what the model's form is good for.
    SLOTS: half the way between slots that are spread and slots that are bunched, as answers of one length would leave
    them. here: the answer by the numbers as they are, where it is known.
    """
    middle = here or answer(asked, numbers)

    def change(other: Served) -> dict[str, float]:
        return {m: math.log(getattr(other, column) / getattr(middle, column)) for m, column in METRICS.items()}

    found = {FORM: dict(FORM_SPREAD)}
    for name, was in constants(asked.setup, numbers).values.items():
        if was.spread:
            slower = was.value * math.exp(-was.spread if name.endswith(FASTER) else was.spread)
            found[name] = change(answer(asked, override(asked, numbers, name, slower)))
    setup = asked.setup
    if setup.engine.mixes and setup.layout.pp > 1 and asked.prompts is None:
        bunched = change(answer(replace(asked, bunched=True), numbers))
        found[SLOTS] = {metric: value / 2 for metric, value in bunched.items()}
    return found


def spreads(asked: Question, numbers: co.Table, here: Served | None = None) -> dict[str, float]:
    """Spread of the logarithm of each metric."""
    found = changes(asked, numbers, here).values()
    return {metric: math.sqrt(sum(change[metric] ** 2 for change in found)) for metric in METRICS}


def override(asked: Question, numbers: co.Table, name: str, value: float) -> co.Table:
    """The numbers with one of them set for this question, at the scope that it is looked up first."""
    key = (name, scopes(asked.setup, name)[0])
    was = constants(asked.setup, numbers).values[name]
    return {**numbers, key: replace(was, value=value)}


def quantile(scores: Sequence[float], level: float) -> float:
    """The level of the scores that a new one stays below with that probability: split conformal prediction.

    The smallest score with at least level (n + 1) of n below or at it; the largest where n is too small for that.
    """
    ordered = sorted(scores)
    return ordered[min(len(ordered), math.ceil(level * (len(ordered) + 1))) - 1]


DIGITS = 5


def rounded(value: float) -> float:
    """To as many figures as are worth storing, and as agree from one machine to another."""
    return float(f"{value:.{DIGITS}g}")
