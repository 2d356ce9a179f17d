"""The reader's own measurements: a file of runs beside the project's, and the constants that they set."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from k3lib.facts.benchmarks import Run
from k3lib.facts.constants import SpeedFact
from k3lib.facts.paths import OWN
from k3lib.facts.tables import load_rows

RUNS, CONSTANTS = "benchmarks.csv", "constants.csv"


def folder_of_own() -> Path:
    """Where the reader's files are: own/ in the project, or where K3_OWN says."""
    return Path(os.environ.get("K3_OWN") or OWN)


def runs(folder: Path | None = None) -> tuple[Run, ...]:
    """The reader's runs, none where there is no file. Raises InputError for a bad row."""
    path = (folder or folder_of_own()) / RUNS
    return load_rows(path, Run, ["run_id"]) if path.exists() else ()


def constants(folder: Path | None = None) -> tuple[SpeedFact, ...]:
    """The constants that the reader's runs set."""
    path = (folder or folder_of_own()) / CONSTANTS
    return load_rows(path, SpeedFact, ["parameter", "scope"]) if path.exists() else ()


def add(new: Sequence[Run], folder: Path | None = None) -> int:
    """Put runs into the reader's file, in place of those of the same run_id. Returns how many are new."""
    kept = {row.run_id: row for row in runs(folder)}
    before = len(kept)
    kept |= {row.run_id: row for row in new}
    _write((folder or folder_of_own()) / RUNS, list(kept.values()))
    return len(kept) - before


def keep(rows: Iterable[SpeedFact], folder: Path | None = None) -> None:
    """Put constants into the reader's file, in place of those of the same scope."""
    kept = {(row.parameter, row.scope): row for row in constants(folder)}
    kept |= {(row.parameter, row.scope): row for row in rows}
    _write((folder or folder_of_own()) / CONSTANTS, list(kept.values()))


def _write(path: Path, rows: Sequence[Run] | Sequence[SpeedFact]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(type(rows[0]).model_fields), lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.model_dump() for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(text.getvalue(), encoding="utf-8")
    beside.replace(path)
