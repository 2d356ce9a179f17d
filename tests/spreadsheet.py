"""A spreadsheet program for the tests: files recalculated by LibreOffice, none of their stored results believed."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
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
    with zipfile.ZipFile(source) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    book = parts["xl/workbook.xml"].decode("utf-8")
    names = dict(re.findall(r'<definedName name="(\w+)">([^<]+)</definedName>', book))
    sheets = {
        name: f"xl/worksheets/sheet{at}.xml" for at, name in enumerate(re.findall(r'<sheet name="([^"]+)"', book), 1)
    }
    for path in sheets.values():
        parts[path] = re.sub(rb"(</f>)<v>[^<]*</v>", rb"\1", parts[path])
    for name, value in cells.items():
        sheet, _, address = names.get(name, name).replace("$", "").rpartition("!")
        path = sheets[sheet.strip("'")]
        parts[path], times = re.subn(
            rf'<c r="{address}"( s="\d+")?[^>]*?(?:/>|>.*?</c>)'.encode(), _cell(address, value), parts[path]
        )
        assert times == 1, name
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return target


def _cell(address: str, value: Any) -> bytes:
    """What a cell with a word or a number is in the file."""
    if isinstance(value, str):
        return rf'<c r="{address}"\1 t="inlineStr"><is><t>{value}</t></is></c>'.encode()
    return rf'<c r="{address}"\1><v>{value!r}</v></c>'.encode()


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
