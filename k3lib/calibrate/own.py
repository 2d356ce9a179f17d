"""The reader's own measurements: a file of runs beside the project's, and the constants that they set."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from k3lib.errors import InputError, near
from k3lib.facts.benchmarks import Run
from k3lib.facts.constants import SpeedFact, assumed
from k3lib.facts.paths import OWN, shown
from k3lib.facts.tables import load_rows

RUNS, CONSTANTS = "benchmarks.csv", "constants.csv"
# A constant so far from what is assumed is a slip of a unit or of a digit.
FAR = 1000


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
    rows = load_rows(path, SpeedFact, ["parameter", "scope"]) if path.exists() else ()
    usual = {row.parameter: row for row in assumed()}
    for row in rows:
        where = f"{shown(path)} ({row.parameter} / {row.scope})"
        if row.parameter not in usual:
            raise InputError(f"{where}: no such parameter. {near(row.parameter, usual)}")
        expected = usual[row.parameter]
        if row.unit != expected.unit:
            raise InputError(f"{where}: unit {row.unit}: must be {expected.unit}")
        if not expected.value / FAR <= row.value <= expected.value * FAR:
            raise InputError(f"{where}: value {row.value:g} is over {FAR} times off {expected.value:g}, in {row.unit}")
    return rows


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


FORMULA = ("=", "+", "-", "@", "\t", "\r")


def harmless(value: object) -> object:
    """A cell that a spreadsheet does not take for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _write(path: Path, rows: Sequence[Run] | Sequence[SpeedFact]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(type(rows[0]).model_fields), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: harmless(value) for name, value in row.model_dump().items()} for row in rows)
    beside = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text.getvalue(), encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
