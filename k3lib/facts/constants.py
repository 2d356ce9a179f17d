"""Numbers of the speed model: what is measured or assumed of kernels, and what was fitted to whole runs."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

from k3lib.facts.catalog import Measure, checked, sources
from k3lib.facts.paths import DATA
from k3lib.facts.tables import Identifier, NonNegative, Positive, Row, Text, load_rows


class SpeedFact(Measure):
    """One number of the speed model.

    scope: what it holds for: a card, an engine on a card, a kernel, a network; empty for everything. low, high: one
    standard deviation on a logarithmic scale. Fitted rows are written by the fit, never by hand.
    """

    parameter: Identifier
    scope: str = ""


def read(path: Path, data: Path = DATA) -> tuple[SpeedFact, ...]:
    """The rows of one file of such numbers."""
    return checked(path, load_rows(path, SpeedFact, ["parameter", "scope"]), sources(data))


@lru_cache(maxsize=8)
def assumed(data: Path = DATA) -> tuple[SpeedFact, ...]:
    """What holds before anything was fitted to whole runs."""
    return read(data / "speed.csv", data)


class Trial(Row):
    """One measured value beside its prediction, by a fit that did not see it.

    trial: "left-out" when all runs of its deployment were left out, "two-cells" when two of them were then given.
    group: the deployment. spread: of the prediction's logarithm, from what is not known of its numbers.
    """

    trial: Literal["left-out", "two-cells"]
    group: Text
    run_id: Identifier
    metric: Literal["output_tps", "tpot_ms", "ttft_ms"]
    measured: Positive
    predicted: Positive
    spread: NonNegative


@lru_cache(maxsize=8)
def trials(path: Path) -> tuple[Trial, ...]:
    """All trials of a calibration."""
    return load_rows(path, Trial, ["trial", "run_id", "metric"])
