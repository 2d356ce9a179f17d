"""Tables with commas, tabs or semicolons: the project's own rows, exports of benchmark tools, and users' sweeps."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from k3lib.errors import InputError, near
from k3lib.facts.benchmarks import Run
from k3lib.facts.tables import problem
from k3lib.reading import bench_json, guidellm, perf
from k3lib.reading.columns import known_columns, measured, run_of
from k3lib.reading.records import MEASURES, OtherReading, Reading, RunReading
from k3lib.reading.text import clean

OWN_SOURCE = "own"
OWN, SWEEP = "project's benchmark rows", "sweep table"
METRIC_HEADS = ("metric,avg", "metric,value", "metric\tavg", "statistic,avg", "metric;avg")
MOST_ROWS = 20_000
MOST_COLUMNS = 4_000
LONGEST_HEADER = 400_000


def delimiter_of(line: str) -> str:
    """What separates the cells of a header."""
    return max("\t,;", key=line.count)


def is_table_header(line: str) -> bool:
    """Whether a line can be the header of a table that is understood."""
    mark = delimiter_of(line)
    cells = [cell.strip().strip('"') for cell in line[:LONGEST_HEADER].split(mark)]
    if not 2 <= len(cells) <= MOST_COLUMNS:
        return False
    folded = ",".join(cells).lower()
    if folded.startswith(METRIC_HEADS) or folded.startswith("endpoint,type,metric") or "run_id" in cells:
        return True
    if guidellm.is_csv_header(cells) or folded.startswith("timeslice,start_ns"):
        return True
    known = known_columns(cells)
    return sum(cell in known for cell in cells) >= 2 and measured(known) >= 1 and all(len(c) < 120 for c in cells)


def table_readings(where: str, text: str) -> list[Reading]:
    """Every run of a table. Raises InputError with file and row for a table that is damaged."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    first = next((line for line in lines if line.strip()), "")
    mark = delimiter_of(first)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        for cells in reader:
            if not (cells and cells[0].lstrip().startswith("#")):
                rows.append((reader.line_num, cells))
            if len(rows) > MOST_ROWS:
                raise InputError(f"{where}: over {MOST_ROWS:,} rows; no table of runs is so long")
    except csv.Error as error:
        raise InputError(
            f"{where}, row {reader.line_num}: not readable as a table ({error}). Is a quote left open?"
        ) from None
    filled = [(n, c) for n, c in rows if any(x.strip() for x in c)]
    header = [cell.strip() for cell in filled[0][1]]
    folded = ",".join(header).lower()
    if folded.startswith("endpoint,type,metric"):
        return [_server_metrics(where, filled)]
    if folded.startswith("timeslice,start_ns"):
        return [OtherReading("AIPerf time slices", where, "slices of a run; read profile_export_aiperf.csv of it")]
    if "run_id" in header:
        return list(_own_rows(where, filled))
    if guidellm.is_csv_header(header):
        return list(guidellm.csv_runs(where, [c for _, c in filled]))
    if folded.startswith(METRIC_HEADS):
        return [_metrics(where, rows)]
    return list(_sweep(where, filled))


def _sections(rows: Sequence[tuple[int, list[str]]]) -> list[list[list[str]]]:
    """Tables of one file, parted by empty rows or by a new header."""
    sections: list[list[list[str]]] = [[]]
    for _, cells in rows:
        empty = not any(cell.strip() for cell in cells)
        if (empty or cells[0].strip().lower() in ("metric", "statistic")) and sections[-1]:
            sections.append([])
        if not empty:
            sections[-1].append(cells)
    return [section for section in sections if section]


def _metrics(where: str, rows: Sequence[tuple[int, list[str]]]) -> RunReading:
    """A summary of AIPerf or GenAI-Perf; GPU telemetry and other sections are left alone."""
    tables = [s for s in _sections(rows) if s[0][0].strip().lower() in ("metric", "statistic")]
    header = [cell.strip().lower() for cell in tables[0][0]]
    # AIPerf's percentiles rise from left to right, GenAI-Perf's fall.
    rising = [n for n in header if re.fullmatch(r"p\d{1,3}", n)]
    aiperf = rising == sorted(rising, key=lambda n: int(n[1:])) if rising else True
    return perf.table_run(where, "", f"{perf.AIPERF if aiperf else perf.GENAI_PERF} CSV", tables)


def _server_metrics(where: str, rows: Sequence[tuple[int, list[str]]]) -> OtherReading:
    names = {cells[2] for _, cells in rows if len(cells) > 3 and cells[0] != "Endpoint"}
    engine = next((e for e in ("vllm", "sglang") if any(n.startswith(f"{e}:") for n in names)), "an engine")
    return OtherReading(
        "AIPerf server metrics", where,
        f"{len(names):,} gauges and counters of {engine}, and no run: read profile_export_aiperf.json of the same run",
    )  # fmt: skip


def _own_rows(where: str, rows: Sequence[tuple[int, list[str]]]) -> list[RunReading]:
    """Rows with the columns of `k3lib.facts.benchmarks.Run`; a user's rows need no source."""
    line, header = rows[0]
    known = set(Run.model_fields)
    for name in header:
        if name.strip() not in known:
            raise InputError(f"{where}, row {line}: column '{clean(name, 60)}' is not known. {near(name, known)}")
    header = [name.strip() for name in header]
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice:
        raise InputError(f"{where}, row {line}: column '{twice}' stands twice. Remove one.")
    for name, field in Run.model_fields.items():
        if field.is_required() and name not in header and name != "source_id":
            raise InputError(f"{where}, row {line}: column '{name}' is missing. Add it.")
    if len(rows) == 1:
        raise InputError(f"{where}: has a header but no rows")
    found, seen = [], dict[str, int]()
    for number, cells in rows[1:]:
        named = dict(zip(header, cells, strict=False))
        run_id = named.get("run_id", "").strip()
        address = f"{where}, row {number} ({clean(run_id, 60)})"
        if len(cells) != len(header):
            raise InputError(f"{address}: has {len(cells)} cells, the header has {len(header)}. Is a comma not quoted?")
        if run_id in seen:
            raise InputError(f"{address}: the same run_id as row {seen[run_id]}. Remove one.")
        seen[run_id] = number
        if not named.get("source_id", "").strip():
            named["source_id"] = OWN_SOURCE
        try:
            run = Run.model_validate(named)
        except ValidationError as error:
            raise InputError(f"{address}: {clean(problem(error), 300)}") from None
        found.append(own_reading(where, f"row {number}", run))
    return found


def own_reading(where: str, place: str, run: Run) -> RunReading:
    """One of the project's rows as a reading."""
    measures: dict[str, Any] = {name: value for name, value in run.metrics.items() if name in MEASURES}
    return RunReading(
        OWN, where, place, model=clean(run.model), engine=clean(run.engine), version=clean(run.version),
        device=run.device, deployment=clean(run.deployment or run.layout), date=run.as_of, serving=run.serving,
        prompts=run.prompts, speculation=clean(run.speculation), cards=run.cards or None,
        max_concurrency=run.concurrency, isl=run.isl, osl=run.osl, acceptance_length=run.acceptance_length,
        own=run, **measures,
    )  # fmt: skip


def _sweep(where: str, rows: Sequence[tuple[int, list[str]]]) -> list[RunReading]:
    header = [cell.strip() for cell in rows[0][1]]
    twice = next((name for name in header if name and header.count(name) > 1), None)
    if twice:
        raise InputError(f"{where}, row {rows[0][0]}: column '{clean(twice, 60)}' stands twice. Remove one.")
    if len(rows) == 1:
        raise InputError(f"{where}: has a header but no rows")
    found = []
    for number, cells in rows[1:]:
        if len(cells) > len(header):
            raise InputError(
                f"{where}, row {number}: has {len(cells)} cells, the header has {len(header)}. Is a comma not quoted?"
            )
        named = dict(zip(header, cells, strict=False))
        if kind := bench_json.kind_of(named):  # results of a client, one a row
            found.append(bench_json.bench_run(where, f"row {number}", kind, named))
            continue
        found.append(run_of(where, f"row {number}", SWEEP, {k: v for k, v in named.items() if v.strip()}))
    return found
