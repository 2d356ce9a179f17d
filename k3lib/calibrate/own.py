"""The reader's own measurements: a file of runs beside the project's, and the constants that they set."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from k3lib.calibrate.cells import Cell
from k3lib.calibrate.fit import fit
from k3lib.deploy import constants as co
from k3lib.facts.benchmarks import Run
from k3lib.facts.constants import SpeedFact
from k3lib.facts.paths import OWN
from k3lib.facts.tables import load_rows

RUNS, CONSTANTS = "benchmarks.csv", "constants.csv"


def runs(folder: Path = OWN) -> tuple[Run, ...]:
    """The reader's runs, none where there is no file. Raises InputError for a bad row."""
    path = folder / RUNS
    return load_rows(path, Run, ["run_id"]) if path.exists() else ()


def constants(folder: Path = OWN) -> tuple[SpeedFact, ...]:
    """The constants that the reader's runs set."""
    path = folder / CONSTANTS
    return load_rows(path, SpeedFact, ["parameter", "scope"]) if path.exists() else ()


def add(new: Sequence[Run], folder: Path = OWN) -> int:
    """Put runs into the reader's file, in place of those of the same run_id. Returns how many are new."""
    kept = {row.run_id: row for row in runs(folder)}
    before = len(kept)
    kept |= {row.run_id: row for row in new}
    _write(folder / RUNS, list(kept.values()))
    return len(kept) - before


def calibrated(cells: Sequence[Cell], numbers: co.Table) -> dict[co.Key, co.Known]:
    """The numbers that the reader's cells set, from as few as two of them; what they do not tell stays as it was."""
    return fit(cells, numbers).numbers


def keep(rows: Iterable[SpeedFact], folder: Path = OWN) -> None:
    """Put constants into the reader's file, in place of those of the same scope."""
    kept = {(row.parameter, row.scope): row for row in constants(folder)}
    kept |= {(row.parameter, row.scope): row for row in rows}
    _write(folder / CONSTANTS, list(kept.values()))


def _write(path: Path, rows: Sequence[Run] | Sequence[SpeedFact]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(type(rows[0]).model_fields), lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.model_dump() for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(text.getvalue(), encoding="utf-8")
    beside.replace(path)
