"""Readings for people and for programs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import BaseModel

from k3lib.reading.records import ExchangeReading, LogReading, OtherReading, Reading, RunReading, Span
from k3lib.reading.text import clean

NAMES: tuple[tuple[type, str], ...] = (
    (RunReading, "run"), (LogReading, "log"), (ExchangeReading, "exchange"), (OtherReading, "other"),
)  # fmt: skip
ROWS_SHOWN = 6


def as_json(readings: Iterable[Reading]) -> list[dict[str, Any]]:
    """The readings as plain data; `record` says which kind, unknown values are null."""
    return [{"record": next(n for t, n in NAMES if isinstance(r, t)), **_plain(r)} for r in readings]


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def describe(readings: Iterable[Reading]) -> str:
    """What was understood: one block a record, a unit with every figure, warnings last."""
    return "\n\n".join("\n".join(_block(reading)) for reading in readings)


def _block(reading: Reading) -> list[str]:
    place = f", {reading.place}" if isinstance(reading, RunReading) and reading.place else ""
    lines = [f"{reading.file}{place}: {reading.kind}"]
    if isinstance(reading, RunReading):
        lines += _run(reading)
    elif isinstance(reading, LogReading):
        lines += _log(reading)
    elif isinstance(reading, ExchangeReading):
        lines += _exchange(reading)
    else:
        lines.append(f"  {reading.says}")
    lines += [f"  warning: {clean(w, 400)}" for w in reading.warnings]
    lines += [f"  note: {clean(r, 400)}" for r in getattr(reading, "remarks", ())]
    return lines


def _n(value: float | int | None, unit: str, digits: str = ",.4g") -> str:
    if value is None:
        return ""
    text = f"{value:,}" if isinstance(value, int) else format(value, ",.0f" if value >= 1000 else digits)
    return f"{text} {unit}".rstrip()


def _line(name: str, *parts: object) -> list[str]:
    """A line with those parts that are words; none where none is."""
    said = [part for part in parts if isinstance(part, str) and part]
    return [f"  {name + ' ':<14}{', '.join(said)}"] if said else []


def _layout(r: RunReading | LogReading) -> str:
    sizes = [(n, getattr(r, n)) for n in ("tp", "pp", "ep", "dp", "dcp")]
    return ",".join(f"{n}{v}" for n, v in sizes if v and v > 1) or ("tp1" if r.tp == 1 else "")


def _run(r: RunReading) -> list[str]:
    def times(metric: str) -> str:
        parts = [f"{s} {_n(v, 'ms')}" for s in ("mean", "median", "p99")
                 if (v := getattr(r, f"{metric}_{s}_ms")) is not None]  # fmt: skip
        return ", ".join(parts)

    return [
        *_line("what", r.model, r.engine and f"engine {r.engine} {r.version}".strip(), r.device, _layout(r),
               _n(r.cards, "cards"), r.deployment, r.serving if r.serving == "separated" else "", r.date),
        *_line("client", r.tool and f"{r.tool} {r.tool_version}".strip(), r.prompts and f"{r.prompts} prompts"),
        *_line("load", r.max_concurrency and f"at most {r.max_concurrency:,} requests at once",
               f"{r.mean_concurrency:.4g} on average" if r.mean_concurrency is not None else "",
               r.request_rate and f"{r.request_rate:g} requests/s offered",
               _n(r.isl, "input tokens"), _n(r.osl, "output tokens")),
        *_line("requests", _n(r.completed, "completed"), _n(r.failed, "failed"), _n(r.duration_s, "s")),
        *_line("rates", r.output_tps is not None and f"output {_n(r.output_tps, 'tok/s')}",
               r.input_tps is not None and f"input {_n(r.input_tps, 'tok/s')}",
               r.total_tps is not None and f"total {_n(r.total_tps, 'tok/s')}",
               r.user_tps is not None and f"one user {_n(r.user_tps, 'tok/s')}",
               r.steady_output_tps is not None and f"output in steady state {_n(r.steady_output_tps, 'tok/s')}"),
        *_line("TTFT", times("ttft")), *_line("TPOT", times("tpot")), *_line("ITL", times("itl")),
        *_line("request", times("e2e")),
        *_line("speculation", r.speculation if r.speculation not in ("", "none") else "",
               r.acceptance_length is not None and f"{r.acceptance_length:.4g} tokens a step"),
    ]  # fmt: skip


def _spans(values: dict[int, Span]) -> str:
    def one(span: Span) -> str:
        low, high = span
        return f"{low:.2f} GiB" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f} GiB"

    if len(values) == 1 and 0 in values:
        return one(values[0])
    return "; ".join(f"stage {stage}: {one(span)}" for stage, span in values.items())


def _log(r: LogReading) -> list[str]:
    lines = [
        *_line("what", r.model or r.architecture, f"{r.engine} {r.version}".strip(), _layout(r), _n(r.nodes, "nodes"),
               r.partition and f"layers {'+'.join(map(str, r.partition))}"),
        *_line("settings", r.utilisation is not None and f"utilisation {r.utilisation:g}",
               r.max_model_len and f"max length {r.max_model_len:,} tokens",
               r.max_num_seqs and f"max {r.max_num_seqs:,} requests",
               r.chunk_tokens and f"chunk {r.chunk_tokens:,} tokens", r.kv_dtype and f"KV {r.kv_dtype}",
               r.moe_backend and f"experts {r.moe_backend}"),
        *_line("weights", _spans(r.weights_gib), r.draft_weights_gib and f"draft {_spans(r.draft_weights_gib)}",
               r.load_seconds is not None and f"loaded in {r.load_seconds:,.0f} s"),
        *_line("KV memory", _spans(r.kv_gib), r.kv_gib and r.kv_pinned and "pinned by a setting"),
        *_line("KV pool", _n(r.kv_tokens, "tokens"),
               r.max_concurrency is not None and f"{r.max_concurrency:g} requests of max length",
               r.block_tokens and f"block of {r.block_tokens:,} tokens"),
        *_line("states", _n(r.state_slots, "slots"), _spans(r.state_gib)),
        *_line("limit", r.running_limit and f"{r.running_limit:,} requests run at once"),
        *_line("graphs", _spans(r.graphs_gib)),
    ]  # fmt: skip
    if b := r.budget:
        lines += _line(
            "budget", f"{b.free_gib:g} of {b.total_gib:g} GiB free at start",
            b.consumed_gib is not None and f"weights and others {b.consumed_gib:.2f} GiB",
            b.activation_gib is not None and f"activations {b.activation_gib:.2f} GiB",
            b.graphs_gib is not None and f"graphs {b.graphs_gib:.2f} GiB",
        )  # fmt: skip
    if s := r.service:
        lines += _line(
            "service", f"{s.lines:,} lines",
            s.generation_tps and f"output at most {_n(s.generation_tps[0], 'tok/s')}",
            s.generation_tps and f"median {_n(s.generation_tps[1], 'tok/s')}",
            s.running is not None and f"at most {s.running:,} requests running",
            s.waiting is not None and f"{s.waiting:,} waiting",
            s.kv_usage is not None and f"KV used up to {s.kv_usage:.0%}",
            s.acceptance_length is not None and f"{s.acceptance_length:.2f} tokens a step",
        )  # fmt: skip
    if f := r.failure:
        lines += _line(
            "failed", f"{f.kind}, stage: {f.stage} (row {f.row:,}): {f.text}",
            f.needed_gib is not None and f"needed {f.needed_gib:.2f} GiB",
            f.available_gib is not None and f"available {f.available_gib:.2f} GiB",
            f.possible_model_len is not None and f"length that would fit {f.possible_model_len:,} tokens",
        )  # fmt: skip
    else:
        lines += _line("state", "serving" if r.ready else "")
    return lines


def _exchange(r: ExchangeReading) -> list[str]:
    lines = _line("what", r.operation, _n(r.ranks, "ranks"), _n(r.nodes, "nodes"), r.gpu,
                  r.version and f"version {r.version}",
                  r.library_version and f"NCCL {r.library_version}", r.shape)  # fmt: skip
    lines += _line(
        "bus bandwidth",
        r.peak_busbw_gbs is not None and f"{_n(r.peak_busbw_gbs, 'GB/s')} for the largest messages",
        r.average_busbw_gbs is not None and f"printed average {_n(r.average_busbw_gbs, 'GB/s')}",
    )  # fmt: skip
    shown = r.rows if len(r.rows) <= 2 * ROWS_SHOWN else r.rows[-ROWS_SHOWN:]
    if len(shown) < len(r.rows):
        lines.append(f"  {len(r.rows):,} sizes, the largest {len(shown)}:")
    for row in shown:
        lines += _line(
            row.name or _n(row.size_bytes, "B"), _n(row.time_us, "us"),
            row.busbw_gbs is not None and f"bus {_n(row.busbw_gbs, 'GB/s')}",
            row.network_gbs is not None and f"network {_n(row.network_gbs, 'GB/s')}",
            row.algbw_gbs is not None and f"{_n(row.algbw_gbs, 'GB/s')}", row.settings,
        )  # fmt: skip
    return lines
