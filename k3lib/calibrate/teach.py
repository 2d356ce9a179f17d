"""What a reader's runs and network tests teach: the constants of his engine on his card, and of his network."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from k3lib.calibrate import against
from k3lib.calibrate.against import Given
from k3lib.calibrate.cells import Cell, residuals, served
from k3lib.calibrate.fit import fit
from k3lib.calibrate.store import calibration, row
from k3lib.calibrate.trial import two_cells
from k3lib.deploy import constants as co
from k3lib.engines.layout import parse_cluster
from k3lib.errors import InputError
from k3lib.facts.benchmarks import Run
from k3lib.facts.constants import SpeedFact
from k3lib.reading import ExchangeReading
from k3lib.units import convert

# A measured value so far from the prediction is of another unit, or of another thing.
ABSURD = 10.0
# How well a measured network is known, as a factor to each side.
NETWORK_FACTOR = 1.1


@dataclass(frozen=True)
class Constant:
    """A constant that was set. was: its value before, in the same unit."""

    parameter: str
    scope: str
    value: float
    unit: str
    was: float


@dataclass(frozen=True)
class Taught:
    """What was learned. given: the runs that taught. others: runs beside them. before, after: median absolute errors
    of the others as shares, by metric; of those given where there are no others.
    """

    given: tuple[str, ...]
    others: int
    before: dict[str, float]
    after: dict[str, float]
    constants: tuple[Constant, ...]
    rows: tuple[SpeedFact, ...]


def teach(runs: Sequence[Run], networks: Sequence[ExchangeReading], given: Given) -> Taught:
    """What the runs and tests teach. Raises InputError where they teach nothing, or cannot be meant.

    It begins at what the project's own runs say, so that the same evidence counts once however often it is given.
    """
    table = co.table(calibration().fitted)
    rows: list[SpeedFact] = []
    chosen: Sequence[Cell] = ()
    others: Sequence[Cell] = ()
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    cells = against.cells_of([run for run in runs if run.use == "fit"])
    if cells:
        chosen = _chosen(cells, table)
        seen = {one.key for one in chosen}
        others = [one for one in cells if one.key not in seen]
        changed = fit(chosen, table, own=True).numbers
        on = max(one.run.as_of for one in cells) or date.today().isoformat()
        rows += [row(number, on, ["own"]) for number in changed.values()]
        before, after = (errors(others or chosen, t) for t in (table, {**table, **changed}))
    for test in networks:
        rows += _network(test, given)
    doubtful = [run.run_id for run in runs if run.use != "fit"]
    if not rows and doubtful:
        raise InputError(f"--calibrate: runs with a warning teach nothing: {', '.join(doubtful[:3])}")
    if not rows:
        raise InputError("--calibrate: nothing to learn from; give two runs with --cluster, --layout and --engine, "
                         "or an all-reduce test between nodes with --cluster")  # fmt: skip
    return Taught(tuple(one.run.run_id for one in chosen), len(others), before, after,
                  tuple(_constant(r, table) for r in rows), tuple(rows))  # fmt: skip


def _chosen(cells: Sequence[Cell], table: co.Table) -> Sequence[Cell]:
    """The two cells that teach: the best there are. Raises InputError where there are no two, or one is absurd."""
    if len({one.group for one in cells}) > 1:
        raise InputError("--calibrate: the runs are of several deployments; give those of one at a time")
    for one, answer in zip(cells, served(cells, table), strict=True):
        left = residuals(one, answer)
        if "tpot_ms" not in left:
            raise InputError(f"--calibrate: run {one.run.run_id} has no time per output token")
        for metric, value in left.items():
            times = math.exp(abs(value))
            if times > ABSURD:
                raise InputError(f"--calibrate: run {one.run.run_id}: {metric} is {times:,.0f} times off the "
                                 "prediction. Is it in another unit, or of another deployment?")  # fmt: skip
    best = two_cells(cells)
    distinct = list({one.key: one for one in cells}.values())
    chosen = best if len(best) == 2 else distinct[:2]
    if len(chosen) < 2:
        raise InputError("--calibrate: needs two runs with different numbers of clients; best are one alone, "
                         "and 8 to 16 with the same prompts")  # fmt: skip
    return chosen


def _network(test: ExchangeReading, given: Given) -> list[SpeedFact]:
    """Start-up and rate between nodes, of a test of two nodes or more."""
    found = against.network_of(test)
    if found is None or (test.nodes or 1) < 2 or not given.cluster:
        return []
    cluster = parse_cluster(given.cluster)
    nics = int(given.settings.get("nics", cluster.cards_per_node))
    scope = f"network@{cluster.device}"
    values = (("exchange_start_us", scope, found.start_us, "us"),
              ("nic_rate", f"{scope}@{nics}nics", found.gbs / nics, "GB/s"))  # fmt: skip
    return [
        SpeedFact(parameter=name, scope=where, value=value, low=value / NETWORK_FACTOR, high=value * NETWORK_FACTOR,
                  unit=unit, grade="measured", as_of=date.today().isoformat(), source_id="own",
                  note=f"measured by {test.operation}")
        for name, where, value, unit in values
    ]  # fmt: skip


def _constant(made: SpeedFact, table: co.Table) -> Constant:
    was = co.pick(table, made.parameter, made.scope)
    unit = co.UNIT_OF.get(made.unit, made.unit)
    return Constant(made.parameter, made.scope, made.value, made.unit, float(convert(was.value, unit, made.unit)))


def errors(cells: Sequence[Cell], table: co.Table) -> dict[str, float]:
    """Median absolute error by metric, as a share."""
    found: dict[str, list[float]] = defaultdict(list)
    for one, answer in zip(cells, served(cells, table), strict=True):
        for metric, left in residuals(one, answer).items():
            found[metric].append(abs(math.expm1(left)))
    return {metric: statistics.median(values) for metric, values in found.items()}
