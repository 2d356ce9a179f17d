"""What a prediction depends on most, what a measurement would settle, and runs beside what was predicted of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from k3lib.account.symbols import REGISTRY
from k3lib.calibrate.cells import Cell, Observed
from k3lib.calibrate.fit import fit
from k3lib.calibrate.predict import Range, factors, numbers, scales
from k3lib.calibrate.spread import FORM, METRICS, SLOTS, changes
from k3lib.calibrate.store import calibration
from k3lib.deploy import constants as co
from k3lib.deploy.setup import constants
from k3lib.deploy.speed import Question, answer
from k3lib.facts.benchmarks import runs

# Numbers of the speed model that are no symbol of an equation.
WORDS = {
    "kernel_decode": "kernel of the experts in an engine, generating",
    "kernel_prompt": "kernel of the experts in an engine, reading prompts",
    "exchange_scale": "all-reduce inside a node",
    "client_us": "time from one request of a client to the next",
    FORM: "the form of the model itself",
    SLOTS: "how evenly requests fill the slots of the pipeline",
}
HOW = {FORM: "as tried on runs", SLOTS: "between the two extremes"}


@dataclass(frozen=True)
class Mover:
    """A number of the model. factor: by how much a metric changes when it moves by its own spread to the slower side.
    share: of the variance of the prediction that comes from it.
    """

    name: str
    words: str
    how: str
    factor: float
    share: float


def words_of(name: str) -> str:
    """What a number of the speed model stands for."""
    return WORDS.get(name) or REGISTRY[name].meaning


def movers(asked: Question, metric: str, table: co.Table | None = None) -> list[Mover]:
    """The numbers that a prediction depends on, the one that moves it most first, the model's own form among them.

    metric: output_tps, tpot_ms or ttft_ms.
    """
    table = table or numbers()
    known = constants(asked.setup, table).values
    moved = [
        (name, words_of(name), HOW[name] if name in HOW else known[name].how, change[metric])
        for name, change in changes(asked, table).items()
    ]
    total = sum(change**2 for *_, change in moved)
    found = [Mover(name, words, how, math.exp(change), change**2 / total) for name, words, how, change in moved]
    return sorted(found, key=lambda m: -m.share)


def told(asked: Sequence[Question], table: co.Table | None = None) -> dict[co.Key, co.Known]:
    """The numbers as they would be known after these loads were measured and came out as predicted."""
    table = table or numbers()
    form = next(run for run in runs() if run.use == "fit")
    cells = []
    for at, one in enumerate(asked):
        seen = answer(one, table)
        run = form.model_copy(
            update={"run_id": f"would-be-{at}", "concurrency": one.load.concurrency, "engine": one.setup.engine.name}
        )
        observed = tuple(Observed(m, column, getattr(seen, column)) for m, column in METRICS.items())
        cells.append(Cell(run, one, observed))
    return {**table, **fit(cells, table).numbers}


def half_width(asked: Question, metric: str, table: co.Table) -> float:
    """Factor from a predicted value to the upper end of its range, less one."""
    return factors(asked, table, answer(asked, table))[metric] - 1


@dataclass(frozen=True)
class Tried:
    """A measured run beside its prediction by a fit that did not see its deployment, with the prediction's range."""

    run_id: str
    clients: int
    measured: dict[str, float]
    predicted: dict[str, Range]


def tried(group: str, series: str) -> list[Tried]:
    """The runs of a deployment whose id begins with `series`, by clients, as predicted with the deployment left out."""
    clients = {run.run_id: run.concurrency or 0 for run in runs()}
    found: dict[str, Tried] = {}
    for row in calibration().trials:
        if row.trial == "left-out" and row.group == group and row.run_id.startswith(series):
            one = found.setdefault(row.run_id, Tried(row.run_id, clients[row.run_id], {}, {}))
            wide = math.exp(scales()[row.metric] * row.spread)
            one.measured[row.metric] = row.measured
            one.predicted[row.metric] = Range(row.predicted, row.predicted / wide, row.predicted * wide)
    return sorted(found.values(), key=lambda one: one.clients)
