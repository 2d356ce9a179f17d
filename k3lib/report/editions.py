"""The book in its languages: the sources of each edition, and Sphinx that makes pages of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from k3lib.errors import InputError
from k3lib.facts.learning import glossary
from k3lib.facts.paths import ROOT, shown
from k3lib.report import notebooks as nbs
from k3lib.report.phrases import PhraseBook, read_phrases
from k3lib.report.run import environment, write_log
from k3lib.report.translate import in_svg

LOCALE = ROOT / "locale"
CHINESE = "zh_CN"
# Where the Chinese edition stands beside the other pages.
FOLDER = "zh"
# What has no translation yet, listed by page beside the pages that Sphinx writes.
UNTRANSLATED = "untranslated.json"
# The grammars of a package that checks addresses take two seconds to load, and no address is checked here.
BOOK_COMMAND = "import sys; sys.modules['rfc3987_syntax'] = None; from jupyter_book.cli.main import main; main()"
SVG = "image/svg+xml"
# What extensions of Sphinx write on pages, by the name of its setting, in the words of the English edition.
WORDS_OF_SPHINX = {
    "nb_code_prompt_show": "Show code cell {type}",
    "nb_code_prompt_hide": "Hide code cell {type}",
    "togglebutton_hint": "Click to show",
    "togglebutton_hint_hide": "Click to hide",
    "math_eqref_format": "eq. {number}",
}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def phrases(language: str) -> PhraseBook | None:
    """The library's own texts in a language; None for English, in which they are written."""
    folder = LOCALE / language / "phrases"
    return read_phrases(folder) if folder.is_dir() else None


def write_editions(stage: Path, out: Path, log: Path) -> int:
    """Make pages from the sources in `stage/book`, in English and in Chinese, into `stage/ready/html`.

    out: where the list of texts without a translation is kept; log: where what Sphinx prints is. Returns how many
    texts have no translation. Raises InputError with the first of Sphinx's warnings.
    """
    chinese = stage / FOLDER
    left = lay_out_chinese(stage, chinese)
    with ThreadPoolExecutor(max_workers=2) as pool:
        made = list(pool.map(_pages, (stage, chinese)))
    write_log(log, "\n".join(text for text, _ in made))
    for _, faults in made:
        if faults:
            raise InputError(f"the book was not built: {faults[0]} ({len(faults)} faults, all in {shown(log)})")
    os.rename(_html(stage), stage / "ready" / "html")
    os.rename(_html(chinese), stage / "ready" / "html" / FOLDER)
    left |= json.loads((chinese / "sphinx" / "_build" / UNTRANSLATED).read_text(encoding="utf-8"))
    listed = json.dumps(left, indent=1, sort_keys=True, ensure_ascii=False)
    (out / UNTRANSLATED).write_text(listed + "\n", encoding="utf-8", newline="\n")
    return len(left)


def lay_out_chinese(stage: Path, target: Path) -> dict[str, str]:
    """The sources of the Chinese edition: those of the English one, with catalogues, figures, table of contents.

    Returns the phrases that have no translation, each with the first page that has it.
    """
    book = phrases(CHINESE)
    if book is None:
        raise InputError(f"{shown(LOCALE / CHINESE)}: the phrases of the Chinese edition are missing")
    shutil.copytree(stage / "book", target / "book")
    shutil.copytree(LOCALE / CHINESE / "LC_MESSAGES", target / "locale" / CHINESE / "LC_MESSAGES")
    for path in sorted((target / "book" / "nb").glob("*.ipynb")):
        notebook = nbs.read(path)
        for drawn in _figures(notebook):
            drawn[SVG] = in_svg(drawn[SVG], book)
        nbs.write(notebook, path)
    contents = target / "book" / "_toc.yml"
    toc = yaml.safe_load(contents.read_text(encoding="utf-8"))
    for part in toc["parts"]:
        part["caption"] = book.text(part["caption"])
    contents.write_text(yaml.safe_dump(toc, allow_unicode=True, sort_keys=False), encoding="utf-8")
    config = yaml.safe_load((stage / "_config.yml").read_text(encoding="utf-8"))
    config["title"], config["author"] = book.text(config["title"]), book.text(config["author"])
    settings = config["sphinx"]["config"]
    settings |= {
        "language": CHINESE,
        "locale_dirs": [str(target / "locale")],
        "html_search_options": {"dict": str(_words(target))},
    }
    settings |= {name: book.exact(settings.get(name, said)) for name, said in WORDS_OF_SPHINX.items()}
    (target / "_config.yml").write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
    return dict.fromkeys(book.missing, "figures")


def _words(target: Path) -> Path:
    """A file of the trade's own words, into which the search cuts texts beside those of its dictionary."""
    path = target / "words.txt"
    words = sorted({row.chinese for row in glossary() if row.chinese})
    path.write_text("".join(f"{word}\n" for word in words if " " not in word), encoding="utf-8")
    return path


def _figures(notebook: Any) -> list[Any]:
    outputs = (o for cell in notebook["cells"] for o in cell.get("outputs", ()))
    return [o["data"] for o in outputs if SVG in o.get("data", {})]


def _html(folder: Path) -> Path:
    return folder / "sphinx" / "_build" / "html"


def _pages(folder: Path) -> tuple[str, list[str]]:
    """Run Sphinx on one edition. Returns what it printed, and its faults."""
    command = [sys.executable, "-c", BOOK_COMMAND, "build", str(folder / "book"),
               "--config", str(folder / "_config.yml"), "--path-output", str(folder / "sphinx"),
               "-W", "-n", "--keep-going", "--all", "-q"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=folder, check=False)
    log = COLOUR.sub("", done.stdout + done.stderr).replace(str(folder) + os.sep, "")
    html = _html(folder)
    if done.returncode or not (html / "index.html").is_file():
        faults = [line.strip() for line in log.splitlines() if "WARNING" in line or "ERROR" in line or "Error" in line]
        return log, faults or [f"Sphinx ended with code {done.returncode}"]
    for leftover in (".buildinfo", "objects.inv", ".doctrees", ".nojekyll"):
        path = html / leftover
        if path.is_file():
            path.unlink()
    return log, []
