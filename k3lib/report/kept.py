"""Executed notebooks, kept by what they came from: equal inputs give equal bytes, so that a run is done only once."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from k3lib.facts.paths import ROOT
from k3lib.report import notebooks as nbs

FOLDER = ROOT / "_build" / "kept"
MOST_FILES = 120


def name_of(files: Iterable[Path], parameters: Mapping[str, Any]) -> str:
    """The name of a run: a digest of every file it reads, its parameters, Python and all installed packages."""
    digest = hashlib.sha256(f"{sys.version}\n{_packages()}\n{json.dumps(parameters, sort_keys=True)}\n".encode())
    for path in files:
        digest.update(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _packages() -> str:
    return "\n".join(sorted(f"{d.name} {d.version}" for d in metadata.distributions()))


def find(name: str) -> Any | None:
    """The notebook of that run, or None. A file that cannot be read is as good as none."""
    path = FOLDER / f"{name}.ipynb"
    try:
        notebook = nbs.read(path)
        os.utime(path)
    except Exception:  # whatever a library makes of half a file
        return None
    return notebook


def keep(name: str, notebook: Any) -> None:
    """Keep a run for later builds, and forget those that were not asked for longest. A full disk keeps nothing."""
    with suppress(OSError):
        FOLDER.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=FOLDER, suffix=".part")
        os.close(handle)
        try:
            nbs.write(notebook, Path(part))
            os.replace(part, FOLDER / f"{name}.ipynb")
        finally:
            Path(part).unlink(missing_ok=True)
        by_age = sorted(FOLDER.glob("*.ipynb"), key=lambda path: path.stat().st_mtime)
        for path in by_age[:-MOST_FILES]:
            path.unlink(missing_ok=True)
