"""The book and the brief on paper: printed by the Chromium of this machine, where there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from k3lib import kept
from k3lib.errors import InputError
from k3lib.report import printed
from k3lib.report.editions import FOLDER
from k3lib.report.printed import Edition

REPORT, BRIEF = "k3-report.pdf", "k3-brief.pdf"
# Folders of editions in the folder of pages, and what the names of their PDFs end with.
EDITIONS = {"": "", FOLDER: f"-{FOLDER}"}
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
STYLE, SCRIPT = "print.css", "print.js"
# It prints pages of this build alone, which ask nothing of the network. As root its sandbox would not start.
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND",
         "--no-pdf-header-footer", "--generate-pdf-document-outline", "--virtual-time-budget=600000")  # fmt: skip
LONGEST_S = 300
KEPT_FILES = 8
_DATE = re.compile(rb"(?<=Date \(D:)\d{14}(?=[+Z-])")
_NODE = re.compile(rb"\(node(\d{8})\)")  # names of table headings, numbered from wherever the browser is at
_PAGE = re.compile(rb"^(\d+) 0 obj\n<</Type /Page$", flags=re.MULTILINE)
_PLACE = re.compile(rb"/([\w.-]+) \[(\d+) 0 R /XYZ")


def program() -> str | None:
    """The browser that prints; None where the machine has none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def add(ready: Path, sources: Path, *, date: str, fresh: bool = False) -> None:
    """Put the PDFs of every edition into `ready/pdf` and among the downloads of its pages in `ready/html`.

    sources: the folder of the style and the script for print. date: of the facts, as YYYY, YYYY-MM or YYYY-MM-DD; the
    PDFs bear it, so that the same facts give the same bytes. fresh: print also what was printed before from the same
    pages. Raises InputError with one line that says why there is no PDF; then none is there.
    """
    browser = program()
    if browser is None:
        raise InputError(f"no PDF was made: none of {', '.join(PROGRAMS[:3])} is on this machine")
    editions = [name for name in EDITIONS if (ready / "html" / name / f"{printed.HOME}.html").is_file()]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        made = list(pool.map(lambda name: _edition(browser, ready, sources, name, date, fresh), editions))
    for name, files in zip(editions, made, strict=True):
        downloads = ready / "html" / name / "_downloads"
        downloads.mkdir(exist_ok=True)
        for file, content in files.items():
            (downloads / file).write_bytes(content)
            (ready / "pdf" / f"{Path(file).stem}{EDITIONS[name]}.pdf").write_bytes(content)


def _edition(browser: str, ready: Path, sources: Path, name: str, date: str, fresh: bool) -> dict[str, bytes]:
    """The PDFs of one edition by their names; those of the same pages, style and browser are not printed again."""
    edition = Edition(ready / "html" / name, f"../html/{name}".rstrip("/"))
    work = ready / f"print{EDITIONS[name]}"
    shutil.copytree(sources, work)
    code = [Path(__file__), Path(printed.__file__), work / STYLE, work / SCRIPT]
    version = subprocess.run([browser, "--version"], capture_output=True, text=True, check=False).stdout
    known = kept.digest([*code, *printed.inputs_of(edition)], version, date)
    found = {file: None if fresh else kept.find_file(f"{known}-{file}") for file in (BRIEF, REPORT)}
    made = {file: content for file, content in found.items() if content is not None}
    if len(made) < len(found):
        made = {BRIEF: _brief(browser, edition, work, date), REPORT: _report(browser, edition, work, date)}
        for file, content in made.items():
            kept.keep_file(f"{known}-{file}", content, KEPT_FILES)
    return made


def _brief(browser: str, edition: Edition, work: Path, date: str) -> bytes:
    return _print(browser, printed.single(edition, printed.BRIEF, STYLE, SCRIPT), work / "brief.html", date)


def _report(browser: str, edition: Edition, work: Path, date: str) -> bytes:
    """Printed twice: the contents name pages, which the first print tells."""
    text = printed.report(edition, STYLE, SCRIPT)
    first = _print(browser, text, work / "report.html", date)
    return _print(browser, printed.numbered(text, pages_of(first)), work / "report.html", date)


def _print(browser: str, text: str, page: Path, date: str) -> bytes:
    """The PDF of a document. Raises InputError for a browser that fails, takes too long, or prints too soon."""
    page.write_text(text, encoding="utf-8", newline="\n")
    target = page.with_suffix(".pdf")
    target.unlink(missing_ok=True)
    profile = f"--user-data-dir={page.parent / 'profile'}"
    command = [browser, *FLAGS, profile, f"--print-to-pdf={target}", page.as_uri()]
    try:
        done = subprocess.run(command, capture_output=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(f"no PDF was made: {Path(browser).name} took longer than {LONGEST_S} s") from None
    content = target.read_bytes() if target.is_file() else b""
    if done.returncode or not content.rstrip().endswith(b"%%EOF"):
        raise InputError(f"no PDF was made: {Path(browser).name} ended with code {done.returncode}")
    if f"/Title ({printed.UNFINISHED})".encode() in content:
        raise InputError("no PDF was made: equations or tables were not set before the page was printed")
    return settled(content, date)


def settled(content: bytes, date: str) -> bytes:
    """A PDF without what differs from print to print: another date of making, names by their order, as long."""
    year, month, day = (*date.split("-"), "01", "01")[:3]
    order = {name: at for at, name in enumerate(sorted(set(_NODE.findall(content))))}
    named = _NODE.sub(lambda found: b"(node%08d)" % order[found[1]], content)
    return _DATE.sub(f"{year}{month}{day}000000".encode(), named)


def pages_of(content: bytes) -> Mapping[str, int]:
    """The page, from 1, on which each target of a link stands in a PDF that Chromium wrote."""
    order = {found[1]: at for at, found in enumerate(_PAGE.finditer(content), start=1)}
    return {found[1].decode(): order[found[2]] for found in _PLACE.finditer(content) if found[2] in order}
