"""Files of JSON: one object, several one after another, a list, or one a line; each is recognised by its keys."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, BinaryIO

from k3lib.errors import InputError
from k3lib.reading import bench_json, columns, guidellm, perf, sglang_log
from k3lib.reading.records import OtherReading, Reading, RunReading, UnknownError
from k3lib.reading.text import clean, kept, lines

LARGEST_JSON = 64 * 2**20
BETWEEN = re.compile("[ \\t\\r\\n\\x1e,\\ufeff]*")
FLAT = "flat result JSON"
UNDERSTOOD = (
    "results of vLLM bench serve, SGLang bench_serving, GenAI-Perf, AIPerf, GuideLLM and InferenceX, an SGLang "
    "server's information, or flat objects with names such as mean_ttft_ms and output_throughput"
)


def _no_twice(where: str) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise InputError(f"{where}: field '{clean(twice, 60)}' stands twice in one object. Remove one.")
        return found

    return check


def json_objects(where: str, text: str) -> Iterator[tuple[int, Any]]:
    """(row, value) of the JSON values of a text, one after another.

    Raises InputError with the row for text that is no JSON, that is cut off or that is nested too deep.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_no_twice(where))
    at, row, number, length = 0, 1, 0, len(text)
    while True:
        gap = BETWEEN.match(text, at)
        end = gap.end() if gap else at
        row, at = row + text.count("\n", at, end), end
        if at >= length:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except RecursionError:
            raise InputError(f"{where}, row {row}: nested too deep to be a result") from None
        except json.JSONDecodeError as error:
            cut = error.pos >= length - 2 or "Unterminated" in error.msg
            hint = "The file is cut off: copy it again." if cut else "Is this one result a file or a line?"
            before = f" Whole objects before it: {number:,}." if number else ""
            raise InputError(
                f"{where}, row {error.lineno}: not valid JSON ({clean(error.msg)}). {hint}{before}"
            ) from None
        except InputError:
            raise
        except ValueError as error:  # a number of thousands of digits
            raise InputError(f"{where}, row {row}: not valid JSON ({clean(error)})") from None
        yield row, value
        row += text.count("\n", at, end)
        at, number = end, number + 1


def json_readings(where: str, handle: BinaryIO, encoding: str, size: int) -> list[Reading]:
    """Everything that a JSON file holds. Over 64 MiB only records of single requests, one a line, are read."""
    if size > LARGEST_JSON:
        return _streamed(where, handle, encoding)
    try:
        text = handle.read().decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8 text (byte {error.start}). Save it as UTF-8.") from None
    found: list[Reading] = []
    records = perf.Records(where)
    last = 0
    for row, value in json_objects(where, text):
        items = value if isinstance(value, list) else [value]
        behind = "" if row != last else " behind the first object"
        last = row
        for index, item in enumerate(items, start=1):
            place = f"row {row}{behind}" if len(items) == 1 else f"item {index}"
            if not isinstance(item, dict):
                raise InputError(f"{where}, {place}: is a {type(item).__name__}, not an object with named results")
            if is_record(item):
                records.add(place, item)
            else:
                for reading in object_readings(where, place, item):
                    kept(where, found, reading)
    if records.values or records.warmup or records.failed:
        found.append(records.reading())
    if len(found) == 1 and isinstance(found[0], RunReading) and found[0].place == "row 1":
        return [replace(found[0], place="")]
    if not found:
        raise InputError(f"{where}: an empty list; understood are {UNDERSTOOD}")
    return found


def is_record(data: Mapping[str, Any]) -> bool:
    """Whether an object is AIPerf's record of a single request."""
    meta = data.get("metadata")
    return isinstance(meta, dict) and "metrics" in data and ("benchmark_phase" in meta or "request_start_ns" in meta)


def _wrapped(data: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Results that a user's own object holds under some name, one or a list, with the settings that stand beside."""
    beside = {k: v for k, v in data.items() if not isinstance(v, (dict, list))}
    found = []
    for name, value in data.items():
        items = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
        for index, item in enumerate(items, start=1):
            if not isinstance(item, dict):
                break
            flat = not isinstance(value, dict) and columns.measured(columns.known_columns(list(item))) >= 2
            if bench_json.kind_of(item) or perf.is_summary(item) or flat:
                found.append((f"{clean(name, 30)} {index}" if len(items) > 1 else clean(name, 30), {**beside, **item}))
    return found


def _streamed(where: str, handle: BinaryIO, encoding: str) -> list[Reading]:
    records = perf.Records(where)
    for row, line in lines(handle, encoding):
        if not line.strip():
            continue
        value = next(json_objects(where, line), (row, None))[1] if line[:1] == "{" else None
        if not isinstance(value, dict) or not is_record(value):
            raise InputError(
                f"{where}: JSON over {LARGEST_JSON // 2**20} MiB is not read. Save the result without the single "
                "requests (no --save-detailed, no --output-details, sample size 0), or one object a file."
            )
        records.add(f"row {row}", value)
    return [records.reading()]


def object_readings(where: str, place: str, data: Mapping[str, Any]) -> list[Reading]:
    """The readings of one object. Raises InputError, with the fields that are there, for an unknown kind."""
    address = f"{where}, {place}" if place else where
    if guidellm.is_report(data):
        return list(guidellm.report_runs(where, data))
    if kind := bench_json.kind_of(data):
        return [bench_json.bench_run(where, place, kind, data)]
    if perf.is_summary(data):
        return [perf.summary_run(where, place, data)]
    if sglang_log.is_information(data):
        return [sglang_log.information_reading(where, data)]
    if "metrics" in data and ("endpoints_configured" in data or "summary" in data):
        return [OtherReading("AIPerf server metrics", where, "gauges and counters of an engine, and no run")]
    if wrapped := _wrapped(data):
        return [r for name, part in wrapped for r in object_readings(where, f"{place} {name}".strip(), part)]
    flat = columns.flat(data)
    known = columns.known_columns([k for k, v in flat.items() if not isinstance(v, bool)])
    if columns.measured(known) >= 2 or (columns.measured(known) and len(known) > 2):
        return [columns.run_of(where, place, FLAT, flat)]
    if isinstance(data.get("benchmarks"), list):
        raise InputError(f"{address}: a GuideLLM report without a benchmark that holds metrics; did the run end?")
    if "experiments" in data:
        raise InputError(f"{address}: raw times of perf_analyzer. Read profile_export_genai_perf.json of the same run.")
    if "hidden_size" in data or "text_config" in data:
        raise UnknownError(f"{address}: a model's config.json, which 'k3 weights' reads; it holds no run and no log")
    names = ", ".join(clean(name, 30) for name in list(data)[:8]) or "no field"
    raise UnknownError(f"{address}: JSON with {names}; understood are {UNDERSTOOD}")
