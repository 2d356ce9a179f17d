"""Files of unknown content as lines: in bounded memory, without colours, never a pipe, a folder or an archive."""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from k3lib.errors import InputError
from k3lib.facts.paths import shown

CHUNK_BYTES = 2**18
LONGEST_LINE = 2**20  # characters; what follows on the same line is cut
HEAD_BYTES = 2**12
LONGEST_NAME = 160
MOST_READINGS = 20_000
T = TypeVar("T")
ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|\x1b.?")

# First bytes of what is no text, and what to do about it.
MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "compressed with gzip. Unpack it first (gunzip)."),
    (b"PK\x03\x04", "a zip archive or workbook. Unpack it, or export the sheet as CSV."),
    (b"BZh", "compressed with bzip2. Unpack it first (bunzip2)."),
    (b"\xfd7zXZ", "compressed with xz. Unpack it first (unxz)."),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd. Unpack it first (unzstd)."),
    (b"7z\xbc\xaf", "a 7z archive. Unpack it first."),
    (b"PAR1", "a Parquet table. Export the JSON or CSV of the same run."),
    (b"%PDF", "a PDF. Save the tool's own text, JSON or CSV."),
    (b"\x89PNG", "a picture. Save the tool's own text, JSON or CSV."),
    (b"\xff\xd8\xff", "a picture. Save the tool's own text, JSON or CSV."),
    (b"SQLite format 3", "a database. Export the result as JSON or CSV."),
    (b"\x7fELF", "a program, not its output."),
)
MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def clean(text: object, longest: int = LONGEST_NAME) -> str:
    """Text from a file that may be shown: no colours, controls or markup, one line, at most `longest` characters."""
    plain = ANSI.sub("", str(text)[: 8 * longest])
    safe = "".join(c if c.isprintable() else " " for c in plain)
    safe = " ".join(re.sub(r"[<>&`\\]", "?", safe).split())
    return safe if len(safe) <= longest else safe[: longest - 3] + "..."


def kept(where: str, found: list[T], new: T) -> None:
    """Add a result to those of a file. Raises InputError when a file goes on giving results."""
    if len(found) >= MOST_READINGS:
        raise InputError(f"{where}: over {MOST_READINGS:,} results in one file. Split it.")
    found.append(new)


def holds(line: str, marks: tuple[str, ...]) -> bool:
    """Whether a line holds any of these marks. A plain loop: this runs for every line of a log."""
    for mark in marks:  # noqa: SIM110
        if mark in line:
            return True
    return False


def address(path: Path) -> str:
    """A file's name as messages show it."""
    try:
        return clean(shown(path))
    except (OSError, ValueError, RuntimeError):
        return clean(path.name)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file, open for reading bytes. Raises InputError for anything else; never waits for a pipe."""
    where = address(path)
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise InputError(f"{where}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{where}: cannot be read ({clean(getattr(error, 'strerror', None) or error)})") from None
    mode = os.fstat(number).st_mode
    if not stat.S_ISREG(mode):
        os.close(number)
        if stat.S_ISDIR(mode):
            raise InputError(f"{where}: is a folder. Name the files in it.")
        raise InputError(f"{where}: is a pipe or a device. Save its output to a file first.")
    with os.fdopen(number, "rb") as handle:
        try:
            yield handle
        except OSError as error:
            raise InputError(f"{where}: cannot be read ({clean(error.strerror or error)})") from None


def encoding_of(handle: BinaryIO, where: str) -> str:
    """How the file's text is stored, from its first bytes. Raises InputError for an empty or a binary file."""
    head = handle.read(HEAD_BYTES)
    handle.seek(0)
    if not head:
        raise InputError(f"{where}: the file is empty")
    for mark, name in MARKS:
        if head.startswith(mark):
            return name
    for magic, what in MAGIC:
        if head.startswith(magic):
            raise InputError(f"{where}: is {what}")
    if b"\0" in head:
        raise InputError(f"{where}: holds bytes that are no text. Save it as UTF-8 text.")
    return "utf-8-sig"


def lines(handle: BinaryIO, encoding: str) -> Iterator[tuple[int, str]]:
    """(row, text) of every line, without colours. A progress bar's carriage returns end a line, not a row.

    Memory does not depend on the file: a line is cut at LONGEST_LINE characters.
    """
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    row, rest, full = 1, "", False
    while True:
        chunk = handle.read(CHUNK_BYTES)
        text = decoder.decode(chunk, final=not chunk)
        if full:  # the rest of a line that is longer than anyone prints
            _, ended, text = text.partition("\n")
            if not ended and chunk:
                continue
            yield from _parts(row, rest)
            row, rest, full = row + 1, "", False
        pieces = (rest + text).split("\n")
        rest = pieces.pop()
        for piece in pieces:
            yield from _parts(row, piece[:LONGEST_LINE])
            row += 1
        if "\r" in rest:
            done, _, rest = rest.rpartition("\r")
            yield from _parts(row, done)
        if len(rest) > LONGEST_LINE:
            rest, full = rest[:LONGEST_LINE], True
        if not chunk:
            if rest:
                yield from _parts(row, rest)
            return


def _parts(row: int, text: str) -> Iterator[tuple[int, str]]:
    for part in text.split("\r") if "\r" in text else (text,):
        if part:
            yield row, ANSI.sub("", part) if "\x1b" in part else part
