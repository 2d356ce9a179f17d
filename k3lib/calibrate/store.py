"""The calibration that holds: the one stored with the project where its inputs are still the same, else made anew.

`python -m k3lib.calibrate` writes the stored one; about a minute. Another one is kept by the contents of its inputs.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from k3lib.calibrate.spread import rounded
from k3lib.deploy import constants as co
from k3lib.facts import constants as facts
from k3lib.facts.benchmarks import runs
from k3lib.facts.constants import SpeedFact, Trial
from k3lib.facts.paths import BUILD, DATA, ROOT
from k3lib.units import convert

STORED = DATA / "calibration"
KEPT = BUILD / "calibration"
CONSTANTS, TRIALS, INPUTS = "constants.csv", "trials.csv", "inputs.sha256"
# Tables and code that a fit depends on.
TABLES = ("benchmarks.csv", "kernels.csv", "interconnect.csv", "hardware.csv", "devices.csv", "engines.csv",
          "speed.csv", "models/kimi-k3.config.json", "models/storage.csv")  # fmt: skip
CODE = (*(f"account/{name}" for name in (
            "__init__", "attention", "blocks", "cache", "offload", "passes", "readings", "sharding", "storage",
            "symbols", "tensors")),
        "models/*", "engines/*", *(f"deploy/{name}" for name in (
            "apart", "caches", "constants", "curves", "ledger", "load", "loop", "passes", "plan", "serve", "setup",
            "speed")),
        *(f"calibrate/{name}" for name in ("cells", "fit", "spread", "trial")))  # fmt: skip


@dataclass(frozen=True)
class Calibration:
    """fitted: the constants. trials: every prediction of a run that its fit did not see."""

    fitted: tuple[SpeedFact, ...]
    trials: tuple[Trial, ...]


def fingerprint(data: Path = DATA) -> str:
    """A digest of everything that the fit depends on."""
    digest = hashlib.sha256()
    for path in inputs(data):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def inputs(data: Path = DATA) -> list[Path]:
    """Every file that the fit depends on."""
    code = [path for part in CODE for path in sorted((ROOT / "k3lib").glob(f"{part}.py"))]
    return [*(data / name for name in TABLES), *code]


@lru_cache(maxsize=1)
def calibration() -> Calibration:
    """The calibration of the project's data as they are now."""
    now = fingerprint()
    for folder in (STORED, KEPT / now[:16]):
        if _inputs(folder) == now:
            return _read(folder)
    print("measurements or the model changed: fitting the speed model again, about a minute", file=sys.stderr)
    made = make()
    write(made, KEPT / now[:16], now)
    return made


def make() -> Calibration:
    """Fit to all runs that may be used, and try the model on each deployment left out."""
    from k3lib.calibrate.cells import cells
    from k3lib.calibrate.fit import fit, keys_of  # SciPy: only who fits needs it
    from k3lib.calibrate.trial import trials

    many = cells(runs())
    before = co.table()
    found = fit(many, before)
    newest = max(one.run.as_of for one in many)
    sources = {key: set[str]() for key in found.numbers}
    for one in many:
        for key in keys_of(one).values():
            sources[key] |= set(one.run.source_ids)
    return Calibration(
        tuple(row(number, newest, sources[key]) for key, number in found.numbers.items()),
        tuple(trials(many, before, found.numbers)),
    )


def row(number: co.Known, as_of: str, sources: Iterable[str]) -> SpeedFact:
    """A fitted number as a row, in the unit of the assumed one."""
    parameter, scope = number.key
    unit = next(row.unit for row in facts.assumed() if row.parameter == parameter)
    value, low, high = (
        rounded(float(convert(number.value * math.exp(side), co.UNIT_OF.get(unit, unit), unit)))
        for side in (0.0, -number.spread, number.spread)
    )
    return SpeedFact(parameter=parameter, scope=scope, value=value, low=low, high=high, unit=unit, grade="derived",
                     as_of=as_of, source_id=" ".join(sorted(sources)), note="fitted to whole runs")  # fmt: skip


def write(made: Calibration, folder: Path, inputs: str) -> None:
    """Put a calibration into a folder; the digest last, so that a half-written one is never taken."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / INPUTS).unlink(missing_ok=True)
    for name, rows in ((CONSTANTS, made.fitted), (TRIALS, made.trials)):
        text = io.StringIO()
        writer = csv.DictWriter(text, list(type(rows[0]).model_fields), lineterminator="\n")
        writer.writeheader()
        writer.writerows(row.model_dump() for row in rows)
        (folder / name).write_text(text.getvalue(), encoding="utf-8")
    (folder / INPUTS).write_text(inputs + "\n", encoding="utf-8")


def _inputs(folder: Path) -> str:
    path = folder / INPUTS
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def _read(folder: Path) -> Calibration:
    return Calibration(facts.read(folder / CONSTANTS), facts.trials(folder / TRIALS))
