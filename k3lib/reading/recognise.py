"""A file of unknown kind, recognised by what it says, never by its name; and what it says, as records."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Protocol

from k3lib.errors import LONGEST, InputError
from k3lib.reading import json_file, other, tables
from k3lib.reading.console import ConsoleBlocks
from k3lib.reading.deepep import DeepEpTests
from k3lib.reading.engine_log import closing_words
from k3lib.reading.nccl import NcclTests
from k3lib.reading.records import LogReading, Reading, UnknownError
from k3lib.reading.sglang_log import SglangLog
from k3lib.reading.text import ANSI, HEAD_BYTES, address, clean, encoding_of, lines, opened
from k3lib.reading.vllm_log import VllmLog

LARGEST_TABLE = 16 * 2**20
HEAD_LINES = 40
LONGEST_SHOWN = 2_000
ACCESS = ' HTTP/1.1" '
KINDS = (
    "vLLM and SGLang logs and benchmark results (JSON or printed), GenAI-Perf, AIPerf, GuideLLM, InferenceX, "
    "nccl-tests, DeepEP tests, sweep tables and rows of data/benchmarks.csv"
)
CONTAINER = re.compile(r'\s*\{"log":\s*"')  # a container's log: one JSON object a line
JSON_START = re.compile(r"\s*(?:\{|\[\s*[\[{\]])")


class Collector(Protocol):
    """What gathers the results of one kind while the lines of a text pass."""

    def feed(self, row: int, line: str) -> None:
        """One line."""

    def readings(self) -> list[Reading]:
        """What was gathered."""


def read_files(paths: Iterable[str | Path]) -> list[Reading]:
    """Everything that several files say, in their order. Raises InputError for the first that cannot be used."""
    return [reading for path in paths for reading in recognise(path)]


def recognise(path: str | Path) -> list[Reading]:
    """Everything that one file says: runs, logs, exchanges, or a note that it holds none of them.

    Raises InputError (UnknownError where no reader understands the file) with one line: file, row, what, remedy.
    """
    try:
        return _recognise(Path(path))
    except InputError as error:
        raise type(error)(clean(error, LONGEST)) from None  # whatever the file holds, no message shows it raw


def _recognise(path: Path) -> list[Reading]:
    where = address(path)
    with opened(path) as handle:
        encoding = encoding_of(handle, where)
        size = os.fstat(handle.fileno()).st_size
        start = handle.read(HEAD_BYTES).decode(encoding, errors="ignore")
        handle.seek(0)
        if CONTAINER.match(start):
            return _text(where, handle, encoding, size, wrapped=True)
        if JSON_START.match(start):
            return _json_or_text(where, handle, encoding, size)
        return _text(where, handle, encoding, size)


def _json_or_text(where: str, handle: BinaryIO, encoding: str, size: int) -> list[Reading]:
    """JSON; where that fails, the text may still be a log or an answer of a server that was cut off."""
    try:
        return json_file.json_readings(where, handle, encoding, size)
    except InputError as error:
        if "not valid JSON" not in str(error) and "is not read" not in str(error):
            raise
        handle.seek(0)
        try:
            return _text(where, handle, encoding, size)
        except InputError:
            raise error from None


def _text(where: str, handle: BinaryIO, encoding: str, size: int, wrapped: bool = False) -> list[Reading]:
    collectors: tuple[Collector, ...] = (
        VllmLog(where), SglangLog(where), ConsoleBlocks(where), NcclTests(where), DeepEpTests(where),
        other.PerfTables(where), other.LlamaTimings(where),
    )  # fmt: skip
    head: list[str] = []
    for row, raw in lines(handle, encoding):
        line = unwrapped(raw) if wrapped else raw
        if len(head) < HEAD_LINES and line.strip():
            head.append(line)
            if all(h.lstrip().startswith("#") for h in head[:-1]):  # comments may stand before a table's header
                if size <= LARGEST_TABLE and not line.lstrip().startswith("#") and tables.is_table_header(line):
                    return tables.table_readings(where, _whole(handle, encoding, where))
                if tables.is_table_header(line) and size > LARGEST_TABLE:
                    raise InputError(f"{where}: a table over {LARGEST_TABLE // 2**20} MiB is not read. Split it.")
        if ACCESS in line and "GET /" in line:  # most lines of a server that is watched
            continue
        for collector in collectors:
            collector.feed(row, line)
    found = _sure([reading for collector in collectors for reading in collector.readings()])
    if found:
        return found
    if crash := _crash(where, collectors):
        return [crash]
    if other.is_yaml(where, head, size):
        found = other.yaml_readings(where, _whole(handle, encoding, where))
    if found:
        return found
    raise UnknownError(f"{where}: {_looks(head)}. Understood are {KINDS}.")


def unwrapped(line: str) -> str:
    """The text of a line that a container's log wraps in JSON."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return line
    text = data.get("log") if isinstance(data, dict) else None
    return ANSI.sub("", text).rstrip("\r\n") if isinstance(text, str) else line


def _crash(where: str, collectors: Iterable[Collector]) -> LogReading | None:
    """The end of a log that shows neither engine's words, only that a process ran out of memory or lost another."""
    failures = [f for c in collectors if isinstance(c, VllmLog) and (f := c.unclaimed)]
    if not failures or (failures[0].kind == "crash" and not failures[0].consequence):
        return None
    reading = LogReading("crash report", where, "", failure=failures[0])
    return replace(reading, warnings=closing_words(reading))


def _whole(handle: BinaryIO, encoding: str, where: str) -> str:
    handle.seek(0)
    try:
        return handle.read().decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8 text (byte {error.start}). Save it as UTF-8.") from None


def _sure(found: list[Reading]) -> list[Reading]:
    """Where both engines' readers found something, a mere error is left to the one that knows its log."""
    logs = [r for r in found if isinstance(r, LogReading)]
    bare = [r for r in logs if not (r.weights_gib or r.kv_tokens is not None or r.arguments or r.service or r.version)]
    if len(bare) < len(logs):
        return [r for r in found if r not in bare or r.engine in {x.engine for x in logs if x not in bare}]
    return [r for r in found if r not in bare[1:]]


def _looks(head: list[str]) -> str:
    """What an unknown text looks like."""
    if not head:
        return "only empty lines"
    first = head[0].strip()
    if first.startswith(("# HELP", "# TYPE")):
        return "the metrics page of a server: it holds no run and no start-up log"
    if first.startswith("<"):
        return "looks like a web page. Save the tool's own text, JSON or CSV"
    rows = list(csv.reader((line[:LONGEST_SHOWN] for line in head[:2]), delimiter=tables.delimiter_of(first)))
    cells = rows[0] if rows else []
    if len(cells) >= 3 and len(rows) > 1 and len(rows[1]) == len(cells):
        names = ", ".join(clean(c, 25) for c in cells[:6])
        return f"looks like a table with the columns {names}, of which none is a known rate or time"
    return f"text that begins '{clean(first, 60)}' and holds no line of a known tool"
