"""How good the predictions are, in the few numbers that a reader asks for."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from k3lib.deploy import constants as co
from k3lib.facts.constants import Trial


def error(row: Trial) -> float:
    """Predicted over measured, less one."""
    return row.predicted / row.measured - 1


def device_of(row: Trial) -> str:
    """The card of a trial's deployment."""
    return row.group.split()[0].split("x", 2)[2]


def select(rows: Iterable[Trial], trial: str, architecture: str | None = None) -> list[Trial]:
    """The rows of one kind of trial, on one architecture of cards if named."""
    return [
        row for row in rows
        if row.trial == trial and architecture in (None, co.architecture(device_of(row)))
    ]  # fmt: skip


def median_error(rows: Iterable[Trial], metric: str) -> float:
    """Median of the absolute errors of one metric, as a share. Raises ValueError where there is no row."""
    return statistics.median(abs(error(row)) for row in rows if row.metric == metric)


@dataclass(frozen=True)
class GroupError:
    """A deployment: its runs, and by metric the median absolute error and the median error, as shares."""

    group: str
    runs: int
    absolute: dict[str, float]
    signed: dict[str, float]


def by_group(rows: Sequence[Trial]) -> list[GroupError]:
    """Errors of each deployment, in the order of the rows."""
    groups: dict[str, list[Trial]] = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    return [
        GroupError(
            group, len({row.run_id for row in part}),
            {m: median_error(part, m) for m in sorted({row.metric for row in part})},
            {m: statistics.median(error(row) for row in part if row.metric == m)
             for m in sorted({row.metric for row in part})},
        )
        for group, part in groups.items()
    ]  # fmt: skip


def worst(rows: Iterable[Trial], metric: str, count: int) -> list[Trial]:
    """The rows that were furthest off, the worst first."""
    return sorted((row for row in rows if row.metric == metric), key=lambda row: -abs(error(row)))[:count]
