"""AIPerf and GenAI-Perf: one vocabulary of metrics in JSON, CSV, console tables and records of single requests."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from k3lib.errors import InputError
from k3lib.reading.doubts import doubted
from k3lib.reading.records import OtherReading, Reading, RunReading
from k3lib.reading.text import clean
from k3lib.reading.values import Numbers, number_in

TO_MS = {"ms": 1.0, "s": 1000.0, "sec": 1000.0, "seconds": 1000.0, "us": 0.001, "ns": 1e-6}
STATISTICS = {"mean": ("avg",), "median": ("p50",), "p99": ("p99",)}
TIMES = {
    "ttft": "time_to_first_token",
    "tpot": "inter_token_latency",
    "itl": "inter_chunk_latency",
    "e2e": "request_latency",
}
# metric -> (unit, statistic -> value)
Metrics: TypeAlias = Mapping[str, tuple[str, Mapping[str, float | None]]]
LABEL = re.compile(r"\s*(?P<name>.*?)\s*(?:\((?P<unit>[^()]*)\)\s*)?")
MOST_VALUES = 2_000_000
LARGEST_NS = 2.0**63  # nanoseconds since 1970
AIPERF, GENAI_PERF = "AIPerf", "GenAI-Perf"


def metric_name(label: str) -> tuple[str, str]:
    """(metric, unit) of a label: 'Time to First Token (ms)' is time_to_first_token in ms."""
    match = LABEL.fullmatch(label[:200])
    name, unit = (match["name"], match["unit"] or "") if match else (label, "")
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_"), unit.strip().lower()


def run_of(where: str, place: str, kind: str, metrics: Metrics, **more: Any) -> RunReading:
    """The run that a table of metrics describes."""

    def get(metric: str, statistic: str = "avg") -> float | None:
        return metrics.get(metric, ("", {}))[1].get(statistic)

    def count(metric: str) -> int | None:
        value = get(metric)
        return None if value is None else round(value)

    fields: dict[str, Any] = {}
    for name, metric in TIMES.items():
        unit, values = metrics.get(metric, ("ms", {}))
        if values and unit not in TO_MS:
            raise InputError(f"{where}: {metric} is in '{clean(unit, 20)}'. Known units of time: {', '.join(TO_MS)}.")
        for statistic, keys in STATISTICS.items():
            value = next((v for k in keys if (v := values.get(k)) is not None), None)
            fields[f"{name}_{statistic}_ms"] = None if value is None else value * TO_MS[unit]
    unit, _ = metrics.get("benchmark_duration", ("sec", {}))
    duration = get("benchmark_duration")
    good, bad = count("request_count"), count("error_request_count")
    first, shown = get("time_to_first_token"), get("time_to_first_output_token")
    warnings = list(more.pop("warnings", ()))
    if first and shown and shown > 1.2 * first:
        warnings.append("the first token is one of reasoning; what the user sees comes later")
    if bad and good is not None and bad > good:
        warnings.append("more requests failed than succeeded: the rates say nothing of the deployment")
    run = RunReading(
        kind, where, place,
        tool=AIPERF if kind.startswith(AIPERF) else GENAI_PERF,
        completed=good, failed=bad,
        requests=None if good is None or bad is None else good + bad,
        duration_s=None if duration is None else duration * TO_MS.get(unit, 1000.0) / 1000.0,
        isl=get("input_sequence_length") or None, osl=get("output_sequence_length") or None,
        mean_concurrency=get("effective_concurrency"),
        output_tps=get("output_token_throughput"), input_tps=get("input_token_throughput"),
        total_tps=get("total_token_throughput"),
        user_tps=get("output_token_throughput_per_user"),
        acceptance_length=get("spec_decode_acceptance_length"),
        warnings=tuple(warnings), **fields, **more,
    )  # fmt: skip
    return doubted(run)


def is_summary(data: Mapping[str, Any]) -> bool:
    """Whether an object is a summary of AIPerf or GenAI-Perf: metrics with a unit and an average."""
    inner = data.get("records")
    places = (data, inner if isinstance(inner, dict) else {})
    names = ("request_latency", "request_throughput")
    return any(isinstance(v := place.get(name), dict) and "avg" in v for place in places for name in names)


def summary_run(where: str, place: str, data: Mapping[str, Any]) -> RunReading:
    """The run of a summary JSON."""
    numbers = Numbers(where, data)
    metrics: dict[str, tuple[str, dict[str, float | None]]] = {}
    if isinstance(data.get("records"), dict):  # the layout of AIPerf's first versions
        data = {**data["records"], **data}
        numbers = Numbers(where, data)
    for name, value in data.items():
        if isinstance(value, dict) and "unit" in value:
            part = numbers.part(name)
            metrics[name] = (str(value["unit"]).lower(), {k: part.get(k) for k in value if k != "unit"})
    config = data.get("input_config")
    config = config if isinstance(config, dict) else {}
    aiperf = "aiperf_version" in data or any("p5" in values for _, values in metrics.values()) or "run_info" in data
    warnings = []
    if data.get("was_cancelled") is True:
        warnings.append("the run was cancelled")
    return run_of(
        where, place, f"{AIPERF if aiperf else GENAI_PERF} JSON", metrics,
        tool_version=numbers.word("aiperf_version"), model=_model(where, config),
        date=numbers.word("start_time"), max_concurrency=_concurrency(where, config), warnings=warnings,
        prompts="trace" if "trace" in str(data.get("metadata", ""))[:2000] else "",
    )  # fmt: skip


def _model(where: str, config: Mapping[str, Any]) -> str:
    models = config.get("models")
    items = models.get("items") if isinstance(models, dict) else None
    if isinstance(items, list) and items and isinstance(items[0], dict):
        return Numbers(where, items[0]).word("name")
    endpoint = config.get("endpoint")
    for part in (endpoint if isinstance(endpoint, dict) else {}, config):
        names = part.get("model_names")
        if isinstance(names, list) and names:
            return Numbers(where, {"name": names[0]}).word("name")
    return Numbers(where, config).word("model", "model_name")


def _concurrency(where: str, config: Mapping[str, Any]) -> int | None:
    """The cap on concurrency, wherever a version keeps it."""
    phases = config.get("phases")
    places = [p for p in phases if isinstance(p, dict) and p.get("kind", "profiling") == "profiling"] if isinstance(
        phases, list) else []  # fmt: skip
    for name in ("loadgen", "load_generator", "perf_analyzer"):
        part = config.get(name)
        if isinstance(part, dict):
            stimulus = part.get("stimulus")
            places += [part, *([stimulus] if isinstance(stimulus, dict) else [])]
    found = (Numbers(where, place).above("concurrency") for place in [*places, config] if place.get("concurrency"))
    return next((value for value in found if value), None)


def table_run(where: str, place: str, kind: str, tables: Iterable[list[list[str]]]) -> RunReading:
    """The run of CSV or console tables: each has a header row whose first cell names the metrics' column."""
    metrics: dict[str, tuple[str, dict[str, float | None]]] = {}
    for header, *rows in tables:
        names = [{"value": "avg"}.get(cell.strip().lower(), cell.strip().lower()) for cell in header]
        for row in rows:
            name, unit = metric_name(row[0])
            if not name or "error_adjusted" in name:
                continue
            cells = dict(zip(names[1:], row[1:], strict=False))
            metrics[name] = (
                unit, {k: number_in(v, f"{where}, {name} {k}") for k, v in cells.items() if k}
            )  # fmt: skip
    return run_of(where, place, kind, metrics)


@dataclass
class Records:
    """Sums up the records of single requests while they pass. Warm-up and failed requests are counted and dropped."""

    where: str
    values: dict[str, array[float]] = field(default_factory=dict)
    warmup: int = 0
    failed: int = 0
    first_ns: float = math.inf
    last_ns: float = 0.0

    def add(self, place: str, record: Mapping[str, Any]) -> None:
        """One record."""
        numbers = Numbers(f"{self.where}, {place}", record)
        meta, metrics = numbers.part("metadata"), numbers.part("metrics")
        if meta.data.get("benchmark_phase") == "warmup":
            self.warmup += 1
            return
        if record.get("error") or meta.flag("was_cancelled"):
            self.failed += 1
            return
        for name in (*TIMES.values(), "input_sequence_length", "output_sequence_length"):
            metric = metrics.part(name)
            given = metric.data.get("value")
            scale = TO_MS.get(str(metric.data.get("unit")).lower(), 1.0) if name in TIMES.values() else 1.0
            kept = self.values.setdefault(name, array("d"))
            for value in given if isinstance(given, list) else [given]:  # gaps between chunks come as a list
                number = number_in(value, f"{metric.where}, value")
                if number is not None and len(kept) < MOST_VALUES:
                    kept.append(number * scale)
        start, end = (
            number_in(meta.data.get(name), f"{meta.where}, {name}", LARGEST_NS)
            for name in ("request_start_ns", "request_end_ns")
        )
        if start and end:
            self.first_ns, self.last_ns = min(self.first_ns, start), max(self.last_ns, end)

    def reading(self) -> Reading:
        """The run that the records add up to."""
        lengths = self.values.get("output_sequence_length", array("d"))
        if not lengths:
            return OtherReading(
                "AIPerf records", self.where,
                f"{self.warmup:,} warm-up and {self.failed:,} failed requests, none that was measured",
            )  # fmt: skip
        metrics: dict[str, tuple[str, dict[str, float | None]]] = {}
        for name, values in self.values.items():
            if not values:
                continue
            ordered = sorted(values)
            metrics[name] = ("ms", {"avg": math.fsum(ordered) / len(ordered), "p50": _rank(ordered, 0.5),
                                    "p99": _rank(ordered, 0.99)})  # fmt: skip
        seconds = (self.last_ns - self.first_ns) / 1e9
        totals = {"request_count": float(len(lengths)), "error_request_count": float(self.failed)}
        if seconds > 0:
            made, read = math.fsum(lengths), math.fsum(self.values.get("input_sequence_length", ()))
            totals["benchmark_duration"] = seconds
            totals |= {
                "output_token_throughput": made / seconds,
                "input_token_throughput": read / seconds,
                "total_token_throughput": (made + read) / seconds,
            }
        metrics |= {name: ("sec" if name == "benchmark_duration" else "", {"avg": v}) for name, v in totals.items()}
        note = f"added up here from {len(lengths):,} requests; {self.warmup:,} of the warm-up were dropped"
        return run_of(self.where, "", "AIPerf records", metrics, remarks=(note,))


def _rank(ordered: list[float], share: float) -> float:
    """A percentile by linear interpolation."""
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
