"""Result objects of the clients of vLLM, SGLang and InferenceX: one family of keys, with different traps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from k3lib.reading.doubts import doubted
from k3lib.reading.records import RunReading
from k3lib.reading.text import clean
from k3lib.reading.values import Numbers

VLLM, SGLANG, INFERENCEX = "vLLM bench JSON", "SGLang bench JSON", "InferenceX result"
SGLANG_KEYS = ("total_output_tokens_retokenized", "mean_e2e_latency_ms", "server_info", "random_range_ratio")
TIMES = {"ttft": ("ttft",), "tpot": ("tpot",), "itl": ("itl",), "e2e": ("e2el", "e2e_latency", "e2e")}
STATISTICS = ("mean", "median", "p99")
MILLI = 1000.0
TOKENS_TOLERATED = 0.1
PARALLEL = {
    "tp": ("tensor_parallel_size", "tp_size", "tp"),
    "pp": ("pipeline_parallel_size", "pp_size", "pp"),
    "dp": ("data_parallel_size", "dp_size", "dp"),
    "ep": ("expert_parallel_size", "ep_size", "ep"),
    "dcp": ("decode_context_parallel_size", "dcp_size", "dcp"),
}


def kind_of(data: Mapping[str, Any]) -> str:
    """Which of the clients wrote an object, empty for none of them."""
    if "tput_per_gpu" in data:
        return INFERENCEX
    if "completed" in data and any(key in data for key in SGLANG_KEYS):
        return SGLANG
    if "completed" in data and ("output_throughput" in data or "total_token_throughput" in data):
        return VLLM
    return ""


def bench_run(where: str, place: str, kind: str, data: Mapping[str, Any]) -> RunReading:
    """The run that a result object describes. Raises InputError with address and field for a damaged number."""
    numbers = Numbers(f"{where}, {place}" if place else where, data)
    fields = _times(numbers)
    server = numbers.part("server_info")
    for name, keys in PARALLEL.items():
        fields[name] = numbers.above(*keys) or server.above(*keys)
    fields |= _inferencex(numbers) if kind == INFERENCEX else _client(numbers, kind)
    warnings, remarks = list(fields.pop("warnings", ())), list(fields.pop("remarks", ()))
    if fields.pop("in_seconds"):
        remarks.append("times without a unit in their names are seconds")
    if numbers.passed:
        warnings.append(f"no finite number, so left out: {', '.join(sorted(set(numbers.passed)))}")
    run = RunReading(
        kind, where, place, date=numbers.word("date"), warnings=tuple(warnings), remarks=tuple(remarks), **fields
    )
    return doubted(run)


def _times(numbers: Numbers) -> dict[str, Any]:
    fields: dict[str, Any] = {"in_seconds": False}
    for metric, names in TIMES.items():
        for statistic in STATISTICS:
            value = numbers.get(*(f"{statistic}_{name}_ms" for name in names))
            if value is None:
                seconds = numbers.get(*(f"{statistic}_{name}" for name in names))
                value = None if seconds is None else seconds * MILLI
                fields["in_seconds"] |= seconds is not None
            fields[f"{metric}_{statistic}_ms"] = value
    return fields


def _per_request(numbers: Numbers, total: str, completed: int | None) -> float | None:
    tokens = numbers.get(total)
    return tokens / completed if tokens and completed else None


def _client(numbers: Numbers, kind: str) -> dict[str, Any]:
    """Fields of a result as vLLM's or SGLang's client writes it."""
    sglang = kind == SGLANG
    completed = numbers.whole("completed")
    server = numbers.part("server_info")
    warnings, remarks = [], []
    fields: dict[str, Any] = {
        "tool": "sglang.bench_serving" if sglang else "vllm bench serve",
        "model": numbers.word("model_id", "model", "model_path") or server.word("model_path", "served_model_name"),
        "deployment": numbers.word("label", "tag"),
        "engine": _engine(numbers.word("backend"), sglang),
        "version": server.word("version"),
        "completed": completed,
        "requests": numbers.whole("num_prompts"),
        "failed": numbers.whole("failed"),
        "duration_s": numbers.get("duration"),
        "max_concurrency": numbers.above("max_concurrency"),
        "mean_concurrency": numbers.get("concurrency") if sglang else None,
        "peak_concurrency": numbers.get("max_concurrent_requests"),
        "request_rate": _rate(numbers),
        "isl": _per_request(numbers, "total_input_tokens", completed),
        "osl": _per_request(numbers, "total_output_tokens", completed),
        "output_tps": numbers.get("output_throughput"),
        "input_tps": numbers.get("input_throughput"),
        "total_tps": numbers.get("total_token_throughput", "total_throughput"),
        "acceptance_length": numbers.get("spec_decode_acceptance_length", "accept_length"),
        "prompts": _prompts(numbers.word("dataset_name")),
    }
    if fields["failed"] is None and isinstance(errors := numbers.data.get("errors"), list):
        fields["failed"] = sum(1 for error in errors if error)
    if fields["failed"] is None and fields["requests"] and completed is not None:
        fields["failed"] = max(0, fields["requests"] - completed)
    if sglang:
        warnings += _sglang_traps(numbers)
        if fields["failed"] is None:
            remarks.append("the file does not count failed requests: compare with --num-prompts of the command")
    if "output_throughput" not in numbers.data:
        warnings.append("an embedding or pooling run: it has no output tokens")
    steady = numbers.part("steady_state")
    if steady.data:
        fields["steady_output_tps"] = steady.get("output_throughput")
        remarks.append("the client's steady state is kept apart from the whole run")
    return {**fields, "warnings": warnings, "remarks": remarks}


def _sglang_traps(numbers: Numbers) -> list[str]:
    found = []
    ratio, length = numbers.get("random_range_ratio"), numbers.get("random_input_len")
    if ratio is not None and ratio < 1 and length and numbers.word("dataset_name").startswith("random"):
        found.append(
            f"random_range_ratio {ratio:g}: lengths are drawn from {ratio:g} x to 1 x the asked ones, so "
            f"random_input_len {length:,.0f} is not the mean input"
        )
    counted, again = numbers.get("total_output_tokens"), numbers.get("total_output_tokens_retokenized")
    if counted and again and abs(again / counted - 1) > TOKENS_TOLERATED:
        found.append(
            f"{counted:,.0f} output tokens were counted, {again:,.0f} when cut into tokens again: the server did not "
            "report what it made"
        )
    return found


def _rate(numbers: Numbers) -> float | None:
    """Requests offered per second; None for all at once (inf) and for a recorded trace."""
    value = numbers.data.get("request_rate")
    if value == float("inf") or (isinstance(value, str) and not re.fullmatch(r"\s*[\d.]+\s*", value)):
        return None
    return numbers.get("request_rate")


def _engine(backend: str, sglang: bool) -> str:
    """The engine behind a client's backend name; a generic one (openai) tells nothing."""
    name = backend.lower()
    return next((e for e in ("sglang", "vllm", "trt", "lmdeploy") if name.startswith(e)), "sglang" if sglang else "")


def _prompts(dataset: str) -> str:
    """The kind of prompts, in the words of `k3lib.facts.benchmarks`."""
    name = dataset.lower()
    if "shared-prefix" in name or "prefix" in name:
        return "shared-prefix"
    if name.startswith("random"):
        return "random"
    if "trace" in name or "mooncake" in name:
        return "trace"
    return "natural" if name else ""


def _inferencex(numbers: Numbers) -> dict[str, Any]:
    """Fields of an aggregated InferenceX row; its rates are per card, and of different cards when disaggregated."""
    separated = numbers.flag("disagg")
    prefill, decode = numbers.above("num_prefill_gpu"), numbers.above("num_decode_gpu")
    remarks, warnings = ["isl and osl are the nominal lengths"], []
    if separated and prefill and decode:
        cards, output_cards, input_cards = prefill + decode, decode, prefill
        remarks.append(f"output rate is per decode card ({decode}), input rate per prefill card ({prefill})")
    else:
        tp = numbers.above(*PARALLEL["tp"]) or 0
        cards = numbers.above("num_gpus", "num_gpu") or tp * (numbers.above(*PARALLEL["pp"]) or 1) * (
            numbers.above("pcp_size") or 1
        )
        output_cards = input_cards = cards
        if separated:
            warnings.append("disaggregated, and the cards of each side are not stated: rates stay out")
            cards = output_cards = input_cards = 0
        elif not cards:
            warnings.append("the number of cards is not stated: rates per card stay out")
    rates = {
        name: None if value is None or not count else value * count
        for name, value, count in (
            ("total_tps", numbers.get("tput_per_gpu"), cards),
            ("output_tps", numbers.get("output_tput_per_gpu"), output_cards),
            ("input_tps", numbers.get("input_tput_per_gpu"), input_cards),
        )
    }
    speculation = numbers.word("spec_decoding")
    return {
        "tool": "InferenceX",
        "model": numbers.word("model", "infmax_model_prefix"),
        "engine": numbers.word("framework"),
        "version": clean(numbers.word("image"), 80),
        "device": numbers.word("hw"),
        "cards": cards or None,
        "serving": "separated" if separated else "aggregated",
        "speculation": speculation,
        "max_concurrency": numbers.above("conc", "max_concurrency"),
        "isl": numbers.get("isl"),
        "osl": numbers.get("osl"),
        "user_tps": numbers.get("mean_intvty", "median_intvty"),
        "acceptance_length": numbers.get("spec_decode_acceptance_length", "accept_length"),
        **rates,
        "warnings": warnings,
        "remarks": remarks,
    }
