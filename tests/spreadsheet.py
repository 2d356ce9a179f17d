"""A spreadsheet program for the tests: files recalculated by LibreOffice, none of their stored results believed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import openpyxl

TIMEOUT_S = 180
# Without this LibreOffice shows what a file says that its formulas give.
ALWAYS_RECALCULATE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop>
</item>
</oor:items>
"""


def changed(source: Path, target: Path, cells: Mapping[str, Any]) -> Path:
    """A copy without stored results, in which named cells, or those of an address as 'Inputs!C5', hold other values."""
    book = openpyxl.load_workbook(source)
    for name, value in cells.items():
        sheet, _, address = name.rpartition("!")
        if not sheet:
            ((sheet, address),) = book.defined_names[name].destinations
        book[sheet][address.replace("$", "")] = value
    book.save(target)
    return target


def recalculated(files: Iterable[Path], folder: Path) -> dict[str, Path]:
    """The files as LibreOffice saves them after calculating every cell, by name. Its absence is a failure."""
    command = shutil.which("soffice")
    assert command, "no LibreOffice on this machine: run 'make test' as root, or install libreoffice-calc"
    profile = folder / "profile" / "user"
    profile.mkdir(parents=True)
    (profile / "registrymodifications.xcu").write_text(ALWAYS_RECALCULATE, encoding="utf-8")
    out = folder / "recalculated"
    many = list(files)
    done = subprocess.run(
        [command, f"-env:UserInstallation={profile.parent.as_uri()}", "--headless", "--convert-to", "xlsx", "--outdir",
         str(out), *map(str, many)],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    found = {path.stem: out / f"{path.stem}.xlsx" for path in many}
    assert all(path.is_file() for path in found.values()), done.stderr
    return found


@lru_cache(maxsize=16)
def opened(path: Path, *, shown: bool) -> Any:
    """A file that will not change any more; shown: with the results of formulas in their place."""
    return openpyxl.load_workbook(path, data_only=shown)


def values(path: Path) -> dict[str, dict[str, Any]]:
    """What every cell of a file shows, by sheet and address."""
    return {sheet.title: {c.coordinate: c.value for row in sheet.iter_rows() for c in row if c.value is not None}
            for sheet in opened(path, shown=True)}  # fmt: skip


def formulas(path: Path) -> dict[tuple[str, str], str]:
    """Every formula of a file by sheet and address."""
    cells = ((sheet.title, c) for sheet in opened(path, shown=False) for row in sheet.iter_rows() for c in row)
    return {(sheet, c.coordinate): str(c.value) for sheet, c in cells if c.data_type == "f"}


def table(path: Path, sheet: str) -> list[dict[str, Any]]:
    """The rows of a sheet below its head, by column."""
    rows = opened(path, shown=True)[sheet].iter_rows(values_only=True)
    head = [str(x) for x in next(rows)]
    return [dict(zip(head, row, strict=True)) for row in rows]
