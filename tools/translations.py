"""Bring the catalogues of the Chinese edition up to date, and say what has no translation yet.

    .venv/bin/python tools/translations.py            # after a build: new texts come in with an empty translation
    .venv/bin/python tools/translations.py --check    # say what is missing, change nothing; exit code 1 if anything is

The prose of pages and notebooks goes through Sphinx's catalogues, one a page, in `locale/zh_CN/LC_MESSAGES/`. What the
library makes (tables, figures, sentences that it fills) goes through the phrases in `locale/zh_CN/phrases/`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from k3lib.facts.paths import BUILD, DATA, ROOT
from k3lib.report import notebooks as nbs
from k3lib.report.editions import BOOK_COMMAND, CHINESE, LOCALE, UNTRANSLATED
from k3lib.report.run import environment

MESSAGES, PHRASES = LOCALE / CHINESE / "LC_MESSAGES", LOCALE / CHINESE / "phrases"
NEW = PHRASES / "new.po"


def main() -> int:
    """Update or check. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        prose = _prose(extracted(Path(folder)), check)
    phrases = _phrases(check)
    for text, where in [*prose, *phrases]:
        print(f"{where}: {text}")
    print(f"{len(prose)} texts of pages and {len(phrases)} phrases have no translation.")
    return 1 if check and (prose or phrases) else 0


def extracted(stage: Path) -> Path:
    """The folder of Sphinx's templates of all pages, made from the last build's notebooks without their outputs."""
    book = stage / "book"
    shutil.copytree(ROOT / "book", book)
    shutil.copytree(DATA, book / "_data")
    shutil.copy(ROOT / "_config.yml", stage)
    shutil.copytree(BUILD / "downloads", book / "_generated")
    (book / "_generated" / "changes.json").write_text("null", encoding="utf-8")
    (book / "nb").mkdir()
    for path in sorted((BUILD / "executed").glob("*.ipynb")):
        notebook = nbs.page(nbs.read(path))
        for cell in notebook["cells"]:  # a figure's output stays, so that its caption is read
            if "outputs" in cell:
                cell["outputs"] = [o for o in cell["outputs"] if "image/svg+xml" in o.get("data", {})]
        nbs.write(notebook, book / "nb" / path.name)
    command = [sys.executable, "-c", BOOK_COMMAND, "build", str(book), "--config", str(stage / "_config.yml"),
               "--path-output", str(stage / "out"), "--builder", "custom", "--custom-builder", "gettext", "--all",
               "-q"]  # fmt: skip
    subprocess.run(command, check=True, env=environment(), cwd=stage, stdout=subprocess.DEVNULL)
    return stage / "out" / "_build" / "gettext"


def _prose(templates: Path, check: bool) -> list[tuple[str, str]]:
    """Bring each page's catalogue up to date. Returns the messages without a translation, with their catalogue."""
    missing = []
    for template in sorted(templates.rglob("*.pot")):
        name = template.relative_to(templates).with_suffix(".po")
        target = MESSAGES / name
        found = _read(target)
        for message in _read(template):
            text = str(message.id)
            if not text:
                continue
            before = found.get(text)
            if before is None and not check:
                found.add(text)
            if not (before and before.string):
                missing.append((text, str(name)))
        wanted = {str(m.id) for m in _read(template)}
        for gone in [m.id for m in found if m.id and str(m.id) not in wanted]:
            found.delete(gone)
        if not check:
            _write(found, target)
    return missing


def _phrases(check: bool) -> list[tuple[str, str]]:
    """Add the phrases that the last build lacked to `new.po`. Returns them with the first page that has each."""
    left = json.loads((BUILD / UNTRANSLATED).read_text(encoding="utf-8"))
    prose = {_plain(str(m.id)) for path in MESSAGES.rglob("*.po") for m in _read(path)}
    known = {str(m.id): str(m.string) for path in sorted(PHRASES.glob("*.po")) for m in _read(path)}
    new = _read(NEW)
    missing = [(text, page) for text, page in left.items() if _plain(text) not in prose and not known.get(text)]
    for text, page in missing:
        if text not in known:
            new.add(text, auto_comments=[page])
    if not check:
        _write(new, NEW)
    return missing


def _plain(text: str) -> str:
    """A text of a page before its quotation marks were curled and its blanks drawn together."""
    for curled, straight in (("\u2018", "'"), ("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"')):
        text = text.replace(curled, straight)
    return " ".join(text.split())


def _read(path: Path) -> Catalog:
    if not path.is_file():
        return Catalog(locale=CHINESE, fuzzy=False)
    with path.open("rb") as file:
        return read_po(file, locale=CHINESE)


def _write(catalogue: Catalog, path: Path) -> None:
    """Write without dates and line numbers, which would change in every file at every update."""
    path.parent.mkdir(parents=True, exist_ok=True)
    catalogue.header_comment = ""
    with path.open("wb") as file:
        write_po(file, catalogue, width=0, no_location=True, omit_header=True)


if __name__ == "__main__":
    sys.exit(main())
