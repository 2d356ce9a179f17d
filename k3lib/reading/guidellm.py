"""GuideLLM reports: JSON or YAML of versions 1 and 2, and the CSV with three header rows (or one, in 2025)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from k3lib.errors import InputError
from k3lib.reading.doubts import doubted
from k3lib.reading.records import RunReading
from k3lib.reading.text import clean
from k3lib.reading.values import Numbers, number_in

KIND = "GuideLLM"
SECONDS = 1000.0
TIMES = {
    "ttft": ("time_to_first_token_ms", 1.0),
    "tpot": ("inter_token_latency_ms", 1.0),  # what GuideLLM calls time per output token has the TTFT inside
    "e2e": ("request_latency", SECONDS),
}
MOST_BENCHMARKS = 10_000
PROBES = ("synchronous", "throughput")
Get: TypeAlias = Callable[[str, str], float | None]  # (metric, mean | median | p99) of the successful requests


def is_report(data: Mapping[str, Any]) -> bool:
    """Whether an object is a report: it has a list of benchmarks."""
    runs = data.get("benchmarks")
    return isinstance(runs, list) and any(isinstance(r, dict) and "metrics" in r for r in runs)


def report_runs(where: str, data: Mapping[str, Any], form: str = "JSON") -> list[RunReading]:
    """Every benchmark of a report."""
    numbers = Numbers(where, data)
    meta = numbers.part("metadata")
    benchmarks = [b for b in data["benchmarks"] if isinstance(b, dict)]
    if len(benchmarks) > MOST_BENCHMARKS:
        raise InputError(f"{where}: over {MOST_BENCHMARKS:,} benchmarks in one report. Split it.")
    found = []
    for index, benchmark in enumerate(benchmarks):
        place = f"benchmark {index + 1}"
        part = Numbers(f"{where}, {place}", benchmark)
        args = part.part("config") if isinstance(benchmark.get("config"), dict) else part.part("args")
        strategy = args.part("strategy")
        if not strategy.data:
            strategy = part.part("scheduler").part("strategy")
        found.append(
            _run(
                where, place, f"{KIND} {form}", _getter(part),
                strategy=strategy.word("kind", "type_", "type"),
                streams=strategy.above("streams"), rate=strategy.get("rate"),
                counts=_counts(part), duration_s=part.get("duration"),
                model=_model(numbers, args, part.part("worker")), tool_version=meta.word("guidellm_version"),
            )
        )  # fmt: skip
    return _probes_marked(found, len(benchmarks))


def _probes_marked(found: list[RunReading], number: int) -> list[RunReading]:
    """In a sweep the runs with one stream and with all at once only find the range."""
    if number < 3:
        return found
    note = "a probe at the start of a sweep"
    return [replace(r, remarks=(*r.remarks, note)) if i < 2 and r.deployment in PROBES else r
            for i, r in enumerate(found)]  # fmt: skip


def _getter(benchmark: Numbers) -> Get:
    metrics = benchmark.part("metrics")

    def get(metric: str, statistic: str) -> float | None:
        good = metrics.part(metric).part("successful")
        if good.get("count") == 0:
            return None
        return good.part("percentiles").get(statistic) if statistic.startswith("p") else good.get(statistic)

    return get


def _counts(benchmark: Numbers) -> tuple[int | None, int | None, int | None]:
    """(successful, errored, incomplete) requests, wherever a version keeps them."""
    for part in (
        benchmark.part("metrics").part("request_totals"),
        benchmark.part("request_totals"),
        benchmark.part("run_stats").part("requests_made"),
        benchmark.part("scheduler_metrics").part("requests_made"),
    ):
        if part.data:
            return part.whole("successful"), part.whole("errored"), part.whole("incomplete")
    return None, None, None


def _model(report: Numbers, args: Numbers, worker: Numbers) -> str:
    top = report.part("config") if report.part("config").data else report.part("args")
    places = (top.part("spec").part("backend"), args.part("backend"), top, top.part("backend_kwargs"), args, worker)
    return next((name for part in places if (name := part.word("model", "backend_model"))), "")


def _run(
    where: str, place: str, kind: str, get: Get, *, strategy: str, streams: int | None, rate: float | None,
    counts: tuple[int | None, int | None, int | None], duration_s: float | None, model: str = "",
    tool_version: str = "",
) -> RunReading:  # fmt: skip
    fields: dict[str, Any] = {}
    for name, (metric, factor) in TIMES.items():
        for statistic in ("mean", "median", "p99"):
            value = get(metric, statistic)
            fields[f"{name}_{statistic}_ms"] = None if value is None else value * factor
    good, bad, unfinished = counts
    warnings = []
    if unfinished:
        warnings.append(f"{unfinished:,} requests were cut off at the end and are not counted")
    if strategy == "synchronous":
        streams = 1
    run = RunReading(
        kind, where, place, tool=KIND, tool_version=tool_version, model=model, deployment=strategy,
        completed=good, failed=bad,
        max_concurrency=streams, mean_concurrency=get("request_concurrency", "mean"), request_rate=rate,
        isl=get("prompt_token_count", "mean") or None, osl=get("output_token_count", "mean") or None,
        output_tps=get("output_tokens_per_second", "mean"), input_tps=get("prompt_tokens_per_second", "mean"),
        total_tps=get("tokens_per_second", "mean"), warnings=tuple(warnings), **fields,
    )  # fmt: skip
    # Its mean rates are those of its windows: they need not be tokens over the time, so the time is added last.
    return replace(doubted(run), duration_s=duration_s)


# ---- CSV -----------------------------------------------------------------------------------------------------------

GROUPS = frozenset({"Run Info", "Benchmark", "Timings", "Request Counts", "Server Throughput"})
# metric -> (group, name after the status); the same under names that other versions use.
CSV_COLUMNS: dict[str, tuple[tuple[str, str], ...]] = {
    "request_latency": (("request latency", "sec"),),
    "time_to_first_token_ms": (("time to first token", "ms"),),
    "inter_token_latency_ms": (("inter token latency", "ms"),),
    "request_concurrency": (("server throughput", "concurrency"),),
    "prompt_token_count": (("token metrics", "input tokens"), ("text metrics input tokens", "")),
    "output_token_count": (("token metrics", "output tokens"), ("text metrics output tokens", "")),
    "prompt_tokens_per_second": (("server throughput", "input tokens/sec"), ("token throughput", "input")),
    "output_tokens_per_second": (("server throughput", "output tokens/sec"), ("token throughput", "output")),
    "tokens_per_second": (("server throughput", "total tokens/sec"), ("token throughput", "total")),
}
P99_PLACE = 9  # of [min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]
STATUS = re.compile(r"^(successful|incomplete|errored)\s+", re.IGNORECASE)


def is_csv_header(cells: list[str]) -> bool:
    """Whether the first row of a CSV is GuideLLM's: groups in three-row files, long names in those of 2025."""
    return len(GROUPS.intersection(cells)) >= 3 or any("Successful Request latency mean" in c for c in cells)


def csv_runs(where: str, rows: list[list[str]]) -> list[RunReading]:
    """Every benchmark of a CSV; columns are found by their names, not by their places."""
    three = len(GROUPS.intersection(rows[0])) >= 3
    depth = 3 if three else 1
    if len(rows) <= depth:
        raise InputError(f"{where}: GuideLLM's header rows and no benchmark below them")
    width = len(rows[0])
    heads = [tuple(_cell(rows[r], c).strip() for r in range(depth)) for c in range(width)]
    found = []
    for number, row in enumerate(rows[depth:], start=depth + 1):
        if not any(row):
            continue
        if len(row) > width:
            raise InputError(f"{where}, row {number}: {len(row)} cells under {width} columns. Is a comma not quoted?")
        named = {head: _cell(row, c) for c, head in enumerate(heads)}
        address = f"{where}, row {number}"
        get = _csv_getter(address, named) if three else _flat_getter(address, named)
        found.append(_csv_run(where, f"row {number}", address, named, get, three))
    return _probes_marked(found, len(found))


def _cell(row: list[str], column: int) -> str:
    return row[column] if column < len(row) else ""


def _csv_run(
    where: str, place: str, address: str, named: dict[tuple[str, ...], str], get: Get, three: bool
) -> RunReading:
    def text(*heads: tuple[str, ...]) -> str:
        return next((named[h] for h in heads if named.get(h)), "")

    strategy = text(("Benchmark", "Strategy", ""), ("Name",))
    # Versions print the strategy's fields, or a name such as concurrent@32.
    kind = re.search(r"(?:kind|type_)='?(\w+)|^(\w+)", strategy)
    streams = re.search(r"streams=(\d{1,7})\b|concurrent@(\d{1,7})\b", strategy)
    rate = re.search(r"\brate=([\d.]{1,15})\b|(?:constant|poisson)@([\d.]{1,15})\b", strategy)
    counts = tuple(
        _whole(text(("Request Counts", s, ""), (f"{s} Requests",)), f"{address}, {s} requests")
        for s in ("Successful", "Errored", "Incomplete")
    )
    duration = number_in(text(("Timings", "Duration", "Sec"), ("Duration",)), f"{address}, Duration")
    backend = text(("Run Info", "Backend", ""))
    model = re.search(r'"model":\s*"([^"]{1,200})"', backend)
    return _run(
        where, place, f"{KIND} CSV", get,
        strategy=clean((kind[1] or kind[2]) if kind else "", 40),
        streams=int(streams[1] or streams[2]) if streams else None,
        rate=float(rate[1] or rate[2]) if rate and re.fullmatch(r"\d+(\.\d*)?", rate[1] or rate[2]) else None,
        counts=(counts[0], counts[1], counts[2]), duration_s=duration, model=clean(model[1]) if model else "",
    )  # fmt: skip


def _whole(text: str, address: str) -> int | None:
    value = number_in(text, address)
    return None if value is None else round(value)


def _csv_getter(address: str, named: dict[tuple[str, ...], str]) -> Get:
    folded: dict[tuple[str, str, str], str] = {}
    for head, cell in named.items():
        group, name, statistic = (part.lower() for part in head)
        status = STATUS.match(name)
        if (status and status[1].lower() != "successful") or not cell:
            continue
        folded[group, STATUS.sub("", name), statistic] = cell

    def get(metric: str, statistic: str) -> float | None:
        for group, name in CSV_COLUMNS.get(metric, ()):
            mean = folded.get((group, name, "percentiles" if statistic == "p99" else statistic))
            if mean is not None:
                where = f"{address}, {group} {statistic}"
                return _percentile(mean, where) if statistic == "p99" else number_in(mean, where)
        return None

    return get


def _flat_getter(address: str, named: dict[tuple[str, ...], str]) -> Get:
    def get(metric: str, statistic: str) -> float | None:
        label = f"Successful {metric.replace('_', ' ').capitalize()}"
        if statistic == "p99":
            cell = next((c for (h,), c in named.items() if h.startswith(f"{label} [")), "")
            return _percentile(cell, f"{address}, {metric}")
        return number_in(named.get((f"{label} {statistic}",), ""), f"{address}, {metric}")

    return get


def _percentile(cell: str, address: str) -> float | None:
    """The 99th percentile out of a list in a cell."""
    try:
        values = json.loads(cell) if cell else []
    except (ValueError, RecursionError):
        raise InputError(f"{address}: '{clean(cell, 40)}' is not a list of numbers") from None
    if not isinstance(values, list) or len(values) <= P99_PLACE:
        return None
    return number_in(values[P99_PLACE], address)
