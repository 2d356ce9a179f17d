"""Column and field names that people make up for the same quantities, read into one vocabulary."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from k3lib.errors import InputError
from k3lib.reading.doubts import doubted
from k3lib.reading.records import MEASURES, RunReading
from k3lib.reading.values import Numbers

ALIASES: dict[str, str] = {
    alias: name
    for name, aliases in {
        "max_concurrency": "concurrency max_concurrency conc concurrent concurrent_requests num_concurrent users "
        "maximum_request_concurrency batch_concurrency",
        "isl": "isl input_len input_length input_tokens_mean mean_input_tokens prompt_tokens prompt_len "
        "random_input_len input_sequence_length mean_isl avg_isl",
        "osl": "osl output_len output_length output_tokens_mean mean_output_tokens completion_tokens "
        "random_output_len output_sequence_length mean_osl avg_osl",
        "output_tps": "output_tps output_tok_s output_toks output_throughput output_token_throughput "
        "output_tokens_per_s output_tokens_per_second output_tok_per_s output_token_throughput_tok_s "
        "output_tok_sec gen_tps generation_tps output_throughput_tok_s decode_tok_s out_tps",
        "input_tps": "input_tps input_tok_s input_throughput input_token_throughput prefill_tok_s "
        "prefill_tok_s_system prefill_tps prompt_tps input_tokens_per_s prompt_tok_s",
        "total_tps": "total_tps total_tok_s total_throughput total_token_throughput "
        "total_tokens_per_s tokens_per_second",
        "user_tps": "user_tps tok_s_user tps_per_user tokens_per_second_per_user output_tok_s_user interactivity "
        "intvty",
        "requests": "num_prompts requests num_requests n_requests",
        "completed": "completed successful successful_requests ok success_count",
        "failed": "failed failed_requests errors errored error_count",
        "duration_s": "elapsed_time duration duration_s duration_sec benchmark_duration benchmark_duration_s elapsed_s",
        "acceptance_length": "acceptance_length accept_length accept_len mean_acceptance_length",
        "tp": "tp tp_size tensor_parallel tensor_parallel_size",
        "pp": "pp pp_size pipeline_parallel pipeline_parallel_size",
        "ep": "ep ep_size expert_parallel_size",
        "dp": "dp dp_size data_parallel_size",
        "dcp": "dcp dcp_size",
        "cards": "cards gpus num_gpus gpu_count n_gpus",
    }.items()
    for alias in aliases.split()
}
WORDS: dict[str, tuple[str, ...]] = {
    "model": ("model", "model_id", "model_name", "model_path"),
    "engine": ("engine", "framework", "backend"),
    "version": ("engine_version", "version"),
    "device": ("device", "gpu", "hw", "hardware"),
    "date": ("date", "run_timestamp", "timestamp"),
    "deployment": ("config", "deployment", "layout", "label", "name", "tag"),
}
WHOLE = ("max_concurrency", "requests", "completed", "failed", "tp", "pp", "ep", "dp", "dcp", "cards")
METRICS = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2e", "e2el": "e2e", "latency": "e2e"}
STATISTICS = {"mean": "mean", "avg": "mean", "average": "mean", "median": "median", "p50": "median", "p99": "p99"}
UNITS = {"ms": 1.0, "msec": 1.0, "s": 1000.0, "sec": 1000.0, "secs": 1000.0, "seconds": 1000.0, "us": 0.001}
FILLER = frozenset({"latency", "time"})
SAME = 0.02


def folded(name: str) -> str:
    """A name in lower case with underscores: 'Mean TTFT (ms)' becomes mean_ttft_ms."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def time_column(name: str) -> tuple[str, float | None] | None:
    """(field, factor to ms) of a column that holds a time; the factor is None where the name does not tell the unit."""
    parts = folded(name).split("_")
    metric = next((METRICS[p] for p in parts if p in METRICS and p != "latency"), None)
    if metric is None and "latency" in parts and ("request" in parts or "e2e" in parts):
        metric = "e2e"
    if metric is None:
        return None
    rest = [p for p in parts if p not in METRICS and p not in FILLER and p != "request"]
    statistic = [STATISTICS[p] for p in rest if p in STATISTICS]
    unit = [UNITS[p] for p in rest if p in UNITS]
    if len(rest) != len(statistic) + len(unit) or len(statistic) > 1 or len(unit) > 1:
        return None
    return f"{metric}_{statistic[0] if statistic else 'mean'}_ms", unit[0] if unit else None


def known_columns(names: list[str]) -> dict[str, str]:
    """Field of a reading by column, for the columns that are understood."""
    known: dict[str, str] = {}
    for name in names:
        field = ALIASES.get(folded(name))
        timed = time_column(name)
        if field or (timed and timed[1] is not None):
            known[name] = field or timed[0]  # type: ignore[index]
    return known


def measured(columns: Mapping[str, str]) -> int:
    """How many of the understood columns hold a measured value."""
    return len({field for field in columns.values() if field in MEASURES})


def run_of(where: str, place: str, kind: str, row: Mapping[str, Any]) -> RunReading:
    """The run that one row or flat object describes. Raises InputError for a damaged number and for contradictions."""
    numbers = Numbers(f"{where}, {place}" if place else where, row)
    fields: dict[str, Any] = {}
    given: dict[str, str] = {}
    remarks = []
    for name, field in known_columns(list(row)).items():
        value = numbers.whole(name) if field in WHOLE else numbers.get(name)
        timed = time_column(name)
        if value is None:
            continue
        if timed and timed[1] is not None:
            value *= timed[1]
        if field in fields and abs(fields[field] - value) > SAME * max(fields[field], value):
            raise InputError(
                f"{numbers.where}: {given[field]} and {name} are the same time and differ ({fields[field]:g} and "
                f"{value:g} ms). Are seconds and milliseconds mixed? Keep the right one."
            )
        if field in fields:
            remarks.append(f"{given[field]} and {name} say the same in different units")
        fields[field], given[field] = value, name
    unitless = [n for n in row if (t := time_column(n)) and t[1] is None and number_like(row[n])]
    warnings = [f"{name} does not tell its unit, so it stays out: name it {name}_ms" for name in unitless]
    words: dict[str, Any] = {field: numbers.word(*names) for field, names in WORDS.items()}
    for name in ("max_concurrency", "tp", "pp", "ep", "dp", "dcp", "cards"):
        fields[name] = fields.get(name) or None
    run = RunReading(kind, where, place, warnings=tuple(warnings), remarks=tuple(remarks), **words, **fields)
    if run.failed is None and run.requests is not None and run.completed is not None:
        run = replace(run, failed=max(0, run.requests - run.completed))
    return doubted(run)


def number_like(value: Any) -> bool:
    """Whether a cell holds something."""
    return value is not None and str(value).strip() != ""


def flat(data: Mapping[str, Any], depth: int = 3) -> dict[str, Any]:
    """The scalar fields of nested objects by their last names; the outermost wins."""
    found = {name: value for name, value in data.items() if not isinstance(value, (dict, list))}
    if depth > 1:
        for value in data.values():
            if isinstance(value, dict):
                found = {**flat(value, depth - 1), **found}
    return found
