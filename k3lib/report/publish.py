"""Publishing without a moment in which there is no book: stage in a folder of one's own, then exchange."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from k3lib.errors import InputError
from k3lib.facts.paths import ROOT

STAGING_PREFIX = ".staging-"
LOCK = "lock"
ASIDE = ".old"
MARK = ".k3-book"  # says that what lies here was published by this project
PUBLISHED = ("html", "pdf", "downloads", "executed", "results.json", "results.csv")
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def staging(out: Path) -> Iterator[Path]:
    """A folder for one build, beside what it will replace; removed at the end, and after a killed build by the next.

    Raises InputError when `out` cannot be written, or holds things of a name to be published that are not ours.
    """
    _refuse_sources(out.resolve())
    try:
        out.mkdir(parents=True, exist_ok=True)
        theirs = [name for name in PUBLISHED if os.path.lexists(out / name)]
        if theirs and not (out / MARK).is_file():
            raise InputError(
                f"--out {out}: holds '{theirs[0]}', which this project did not make. Choose an empty folder."
            )
        (out / MARK).touch()
        with _locked(out / ".builds.lock"):
            _remove_abandoned(out)
            folder = Path(tempfile.mkdtemp(prefix=STAGING_PREFIX, dir=out))
            lock = (folder / LOCK).open("w")
            fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written ({error.strerror}). Choose another folder.") from None
    with lock:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _refuse_sources(out: Path) -> None:
    """A book is not published among the project's own files, nor inside another book."""
    if out.is_relative_to(ROOT) and not out.is_relative_to(ROOT / "_build"):
        raise InputError(f"--out {out}: lies among the project's own files. Choose a folder outside, or leave it out.")
    inside = next((parent for parent in out.parents if (parent / MARK).is_file()), None)
    if inside:
        raise InputError(f"--out {out}: lies inside a published book ({inside}). Choose another folder.")


def _remove_abandoned(out: Path) -> None:
    """Staging folders whose build no longer lives: nobody holds their lock."""
    for folder in out.glob(f"{STAGING_PREFIX}*"):
        try:
            with (folder / LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for aside in folder.glob(f"ready/*{ASIDE}"):  # killed between two renames: put the last book back
                    if not (out / aside.stem).exists():
                        os.rename(aside, out / aside.stem)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # its build is running


def publish(staged: Path, out: Path) -> None:
    """Put what is `PUBLISHED` from `staged` in the place of those of the same name in `out`, each in one step.

    A reader sees the old one or the new one. Two builds that end together publish one after the other.
    """
    with _locked(out / ".publish.lock"):
        for name in PUBLISHED:
            new, old = staged / name, out / name
            if old.is_dir():
                _exchange(new, old)
            else:
                os.replace(new, old)


def _exchange(a: Path, b: Path) -> None:
    """Swap two folders. In one step where the system can (Linux); elsewhere in two renames."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        rename = None
    if rename and rename(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _RENAME_EXCHANGE) == 0:
        return
    aside = a.with_name(a.name + ASIDE)
    os.rename(b, aside)
    os.rename(a, b)
