"""What clients of a plan will see, each figure with the range that nine in ten measured runs kept to."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from k3lib.calibrate import own
from k3lib.calibrate.spread import FORM, METRICS, changes, quantile, spreads
from k3lib.calibrate.store import calibration
from k3lib.deploy import constants as co
from k3lib.deploy.load import Load, Served
from k3lib.deploy.named import alternative, options
from k3lib.deploy.setup import constants
from k3lib.deploy.speed import Question, answer, question, step_terms
from k3lib.facts import named
from k3lib.facts.constants import Trial
from k3lib.models.model import Model
from k3lib.ranges import Range as Range  # its readers find it here too

LEVEL = 0.9
# Share of the measured deployments whose own scatter the range is wide enough for.
DEPLOYMENTS = 0.75


@dataclass(frozen=True)
class Speed:
    """What clients see. dominant_term: what takes most of a generating step. situation: what is known of the set-up."""

    output_tps: Range
    tpot_ms: Range
    ttft_ms_mean: Range
    ttft_ms_median: Range
    dominant_term: str
    situation: str


def numbers() -> dict[co.Key, co.Known]:
    """The numbers of the model that hold now: assumed, fitted, and set by the reader's own runs."""
    return co.table(calibration().fitted, own.constants())


def speed(asked: Question, table: co.Table | None = None) -> Speed:
    """The prediction for a question."""
    table = table or numbers()
    middle = answer(asked, table)
    wide = factors(asked, table, middle)
    terms = step_terms(asked, table)
    return Speed(
        output_tps=_range(middle.output_tps, wide["output_tps"]),
        tpot_ms=_range(middle.tpot_ms, wide["tpot_ms"]),
        ttft_ms_mean=_range(middle.ttft_mean_ms, wide["ttft_ms"]),
        ttft_ms_median=_range(middle.ttft_median_ms, wide["ttft_ms"]),
        dominant_term=max(terms, key=lambda name: terms[name]),
        situation=situation(asked, table),
    )


def asked_of(plan_name: str, load_name: str, concurrency: int, model: Model, nics: int | None = None) -> Question:
    """A named load on a named plan. Raises InputError for unknown names, or where not one request fits."""
    row = named.load(load_name)
    plan = alternative(plan_name, model, row.isl + row.osl)
    return question(plan, Load(row.isl, row.osl, concurrency), options(plan_name, nics))


def factors(asked: Question, table: co.Table, middle: Served) -> dict[str, float]:
    """By how much a measured value may lie above or below the predicted one, as a factor, by metric."""
    scale = scales()
    return {metric: math.exp(scale[metric] * spread) for metric, spread in spreads(asked, table, middle).items()}


def ratio(above: Question, below: Question, metric: str = "output_tps", table: co.Table | None = None) -> Range:
    """A metric of one question over that of another, with its range: what is not known of both moves both at once.

    Only what the model's form is good for is taken as independent.
    """
    table = table or numbers()
    here = [answer(one, table) for one in (above, below)]
    moved = [changes(one, table, seen) for one, seen in zip((above, below), here, strict=True)]
    total = sum(part[FORM][metric] ** 2 for part in moved)
    for name in {name for part in moved for name in part} - {FORM}:
        up, down = (part.get(name, {}).get(metric, 0.0) for part in moved)
        total += (up - down) ** 2
    column = METRICS[metric]
    return _range(getattr(here[0], column) / getattr(here[1], column), math.exp(scales()[metric] * math.sqrt(total)))


def _range(value: float, factor: float) -> Range:
    return Range(value, value / factor, value * factor)


@lru_cache(maxsize=1)
def scales() -> dict[str, float]:
    """Spreads that a range reaches to each side, by metric."""
    return width(t for t in calibration().trials if t.trial == "left-out")


def score(trial: Trial) -> float:
    """How far off a prediction was, in its own spreads."""
    return abs(math.log(trial.predicted / trial.measured)) / trial.spread


def width(rows: Iterable[Trial]) -> dict[str, float]:
    """Spreads to each side that hold nine in ten runs of a deployment, for three in four deployments, by metric."""
    scores: dict[str, dict[str, list[float]]] = {metric: defaultdict(list) for metric in METRICS}
    for row in rows:
        scores[row.metric][row.group].append(score(row))
    return {metric: _upper([quantile(part, LEVEL) for part in groups.values()]) for metric, groups in scores.items()}


def _upper(values: list[float]) -> float:
    """The value at DEPLOYMENTS of the way through them, between two on a straight line."""
    ordered = sorted(values)
    place = DEPLOYMENTS * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def covered(rows: Iterable[Trial]) -> Mapping[str, tuple[int, int]]:
    """By metric, how many runs lie in their range, of how many; the range of a deployment is made without it."""
    many = [row for row in rows if row.trial == "left-out"]
    found = {metric: [0, 0] for metric in METRICS}
    for group in {row.group for row in many}:
        wide = width(row for row in many if row.group != group)
        for row in many:
            if row.group == group:
                found[row.metric][0] += score(row) <= wide[row.metric]
                found[row.metric][1] += 1
    return {metric: (inside, of) for metric, (inside, of) in found.items()}


def situation(asked: Question, table: co.Table) -> str:
    """What of a set-up has been measured in whole runs, in words."""
    setup, known = asked.setup, constants(asked.setup, table)
    layer, device = known.values["layer_us"], setup.cluster.device
    if layer.how == "fitted":
        words = [f"engine measured on {device}"]
    elif layer.how.startswith("taken over"):
        words = [f"engine never measured on {device}, taken over from {layer.key[1].partition('@')[2]}"]
    else:
        words = [f"engine never measured on {device} nor on a card of its kind"]
    if known.values["kernel_decode"].how != "fitted":
        words.append("kernel of the experts known alone, not in an engine")
    if setup.spans_nodes and known.values["nic_rate"].how != "fitted":
        words.append("network between the nodes not measured")
    return "; ".join(words)
