"""Results of long work, kept on disk by what they came from: equal inputs give equal results, so it is done once."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from k3lib.facts.paths import BUILD, DATA

MOST_FILES = 600
FOLDER = "K3_KEPT"  # where another folder is wanted


def folder() -> Path:
    """Where results are kept."""
    return Path(os.environ.get(FOLDER) or BUILD / "kept")


def digest(files: Iterable[Path], *more: Any) -> str:
    """A name for what comes from these files, other plain values, Python and all installed packages."""
    found = hashlib.sha256(f"{sys.version}\n{_packages()}\n{json.dumps(more, sort_keys=True)}\n".encode())
    for path in files:
        known = path.stat()
        found.update(f"{path.name}\0{_of_file(path, known.st_mtime_ns, known.st_size)}\n".encode())
    return found.hexdigest()


@cache
def _of_file(path: Path, mtime_ns: int, size: int) -> str:
    """The digest of a file's bytes; read again when its time or size is another."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@lru_cache(maxsize=1)
def _packages() -> str:
    """Installed packages, by the folders that say their names and versions: to read what is in them takes long."""
    folders = [Path(entry) for entry in sys.path if entry]
    return "\n".join(sorted({found.name for folder in folders for found in folder.glob("*.dist-info")}))


def find(name: str) -> Any | None:
    """What was kept under a name, or None. A file that cannot be read is as good as none."""
    path = folder() / f"{name}.json"
    try:
        found = json.loads(path.read_bytes())
        os.utime(path)
    except (OSError, ValueError, RecursionError):
        return None
    return found


def keep(name: str, value: Any) -> None:
    """Keep a value for later, and forget those that were not asked for longest. A full disk keeps nothing."""
    where = folder()
    with suppress(OSError):
        _write(where / f"{name}.json", json.dumps(value, sort_keys=True, ensure_ascii=False).encode())
        _forget(where, "*.json", MOST_FILES)


def _write(target: Path, content: bytes) -> None:
    """Put a file in its place in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=target.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        os.replace(part, target)
    finally:
        Path(part).unlink(missing_ok=True)


def _forget(where: Path, pattern: str, most: int) -> None:
    """Remove the files that were not asked for longest, down to so many."""
    by_age = sorted(where.glob(pattern), key=lambda path: path.stat().st_mtime)
    for path in by_age[:-most]:
        path.unlink(missing_ok=True)


def find_file(name: str) -> bytes | None:
    """The content of a file that was kept under a name with its ending, or None."""
    path = folder() / name
    try:
        found = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    return found


def keep_file(name: str, content: bytes, most: int) -> None:
    """Keep a file for later, and of those of its ending only so many. A full disk keeps nothing."""
    where = folder()
    with suppress(OSError):
        _write(where / name, content)
        _forget(where, f"*{Path(name).suffix}", most)


_read: set[str] = set()


def watch() -> None:
    """Note from now on which facts this process opens; a fork of it goes on noting."""
    root = f"{DATA}{os.sep}"

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(root):
            _read.add(arguments[0].removeprefix(root))

    sys.addaudithook(hook)


def reads() -> list[str]:
    """The facts that this process has opened since `watch`, as paths in the folder of data."""
    return sorted(_read)
