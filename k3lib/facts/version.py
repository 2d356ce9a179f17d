"""Which state of the facts a book was made from."""

from __future__ import annotations

import csv
import hashlib
import io
import re

from k3lib.facts.paths import DATA
from k3lib.facts.tables import read_text

# As tables write it: a year, a month or a day.
AS_OF = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
DIGITS = 12


def newest() -> str:
    """The latest date that any row of a table bears in its column as_of."""
    dates = {date for path in DATA.rglob("*.csv") for date in _dates(read_text(path))}
    return max(dates)


def _dates(text: str) -> set[str]:
    return {row["as_of"] for row in csv.DictReader(io.StringIO(text)) if AS_OF.fullmatch(row.get("as_of") or "")}


def version() -> str:
    """A short name for all files of data together: another byte in one of them gives another name."""
    found = hashlib.sha256()
    for path in sorted(p for p in DATA.rglob("*") if p.is_file()):
        found.update(f"{path.relative_to(DATA).as_posix()}\0{read_text(path)}\0".encode())
    return found.hexdigest()[:DIGITS]
