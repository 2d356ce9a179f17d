"""A reader's file beside the model: runs beside speed, logs beside the ledger, exchanges beside the network."""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from k3lib.account import symbols as s
from k3lib.account.passes import BF16_BYTES
from k3lib.calibrate.cells import Cell, cell, outside
from k3lib.calibrate.predict import factors
from k3lib.deploy import constants as co
from k3lib.deploy.caches import Settings
from k3lib.deploy.curves import exchange_curve
from k3lib.deploy.plan import ENGINES, Plan, make_plan
from k3lib.deploy.speed import answer
from k3lib.engines.layout import Layout, parse_cluster, parse_layout
from k3lib.errors import InputError
from k3lib.facts.benchmarks import Run
from k3lib.facts.catalog import model_names
from k3lib.models.model import load_model
from k3lib.reading import ExchangeReading, LogReading, RunReading, as_run
from k3lib.units import GIBI

# Tokens of a pass whose messages are compared: one, a few, and a chunk of prompts.
TOKENS_COMPARED = (1, 8, 8192)
LARGE_BYTES = 2**20


@dataclass(frozen=True)
class Given:
    """What the reader says beside the file; empty where the file is to say it. settings: as in data/benchmarks.csv."""

    model: str = ""
    cluster: str = ""
    layout: str = ""
    engine: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    isl: int | None = None
    osl: int | None = None


@dataclass(frozen=True)
class Compared:
    """A measured value beside the predicted one with its range. low, high: None where the prediction has no range."""

    what: str
    unit: str
    measured: float
    predicted: float
    low: float | None = None
    high: float | None = None

    @property
    def difference(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted / self.measured - 1 if self.measured else float("inf")


def known_model(text: str) -> str:
    """A model's name in the project for the name or folder that an engine was given; empty where it is none."""
    name = text.rstrip("/").rpartition("/")[2].lower()
    return model_names()[name].model_id if name in model_names() else ""


def with_log(given: Given, logs: Iterable[LogReading]) -> Given:
    """What the reader says, and where that is nothing, what a log beside the runs says."""
    for log in logs:
        settings = {
            name: str(value)
            for name, value in (("utilisation", log.utilisation), ("max_num_seqs", log.max_num_seqs),
                                ("chunk_tokens", log.chunk_tokens))
            if value is not None
        }  # fmt: skip
        if log.moe_backend.lower() in ("marlin", "humming"):
            settings["experts"] = log.moe_backend.lower()
        given = replace(
            given, model=given.model or known_model(log.model), engine=given.engine or log.engine,
            layout=given.layout or layout_of(log), settings={**settings, **given.settings},
        )  # fmt: skip
    return given


def layout_of(log: LogReading) -> str:
    """The layout that a log shows, empty where it shows none."""
    sizes = {name: getattr(log, name) or 1 for name in ("tp", "pp", "ep", "dp", "dcp")}
    return str(Layout(**sizes)) if log.tp else ""


def row(reading: RunReading, given: Given) -> Run:
    """A run that was read as a row like the project's own. Raises InputError for what is missing or wrong."""
    cluster = parse_cluster(given.cluster) if given.cluster else None
    requests = {"requests": str(reading.completed)} if reading.completed else {}
    settings = {**requests, **given.settings}
    known = {
        "model": given.model or known_model(reading.model) or reading.model or None,
        "engine": given.engine or reading.engine or None,
        "cluster": given.cluster or None, "layout": given.layout or None,
        "device": cluster.device if cluster else None, "cards": cluster.cards if cluster else None,
        "settings": ";".join(f"{k}={v}" for k, v in settings.items()) or None,
        "isl": reading.isl or given.isl, "osl": reading.osl or given.osl,
    }  # fmt: skip
    if reading.own is not None:
        return reading.own
    made = as_run(reading, **known)
    figures = json.dumps([made.metrics, made.isl, made.osl, made.concurrency, made.as_of, made.settings], default=str)
    mark = hashlib.sha256(figures.encode()).hexdigest()[:8]  # files of one name in several folders are several runs
    return made.model_copy(update={"run_id": f"{made.run_id[-100:].lstrip('-_.')}-{mark}"})


def missing(run: Run) -> str:
    """Why a run cannot be compared, empty where it can; in the reader's words where he can mend it."""
    reason = outside(run)
    if reason == "the layout is not stated, or is not one deployment":
        return "to compare it with a prediction, name --cluster and --layout"
    if reason == "the engine's rules are not known":
        return f"to compare it with a prediction, name --engine ({', '.join(ENGINES)})"
    if reason == "the model is not known":
        return "to compare it with a prediction, name --model"
    if reason == "prompt, answer or clients are not stated":
        return "to compare it with a prediction, name --isl and --osl; the file must tell the clients"
    return f"no prediction: {reason}" if reason else ""


def speed_of(one: Cell, numbers: co.Table) -> list[Compared]:
    """What a run measured beside the prediction."""
    found = answer(one.asked, numbers)
    wide = factors(one.asked, numbers, found)
    units = {"output_tps": ("output", "tok/s"), "tpot_ms": ("time per output token", "ms"),
             "ttft_ms": ("time to first token", "ms")}  # fmt: skip
    rows = []
    for seen in one.observed:
        value = getattr(found, seen.column)
        what, unit = units[seen.metric]
        rows.append(Compared(what, unit, seen.value, value, value / wide[seen.metric], value * wide[seen.metric]))
    return rows


def memory_of(log: LogReading, given: Given) -> list[Compared]:
    """What a log printed beside the ledger. Raises InputError where the set-up is not known."""
    plan = plan_of(log, given)
    rows = []
    for stage, (_, most) in sorted(log.weights_gib.items()):
        if stage < len(plan.stages):
            predicted = plan.stages[stage].weights / GIBI
            rows.append(Compared(f"weights, stage {stage}", "GiB", most, predicted))
    for stage, (least, _) in sorted(log.kv_gib.items()):
        if stage < len(plan.stages) and not log.kv_pinned and plan.engine.paged:
            free = plan.stages[stage].free
            rows.append(Compared(f"memory for caches, stage {stage}", "GiB", least, free[0] / GIBI,
                                 free[1] / GIBI, free[2] / GIBI))  # fmt: skip
    if plan.caches:
        low, high = plan.caches_low, plan.caches_high
        for what, unit, seen, name in (("KV tokens", "tokens", log.kv_tokens, "kv_tokens"),
                                       ("requests of the longest length", "1", log.max_concurrency, "max_concurrency"),
                                       ("block", "tokens", log.block_tokens, "block_tokens"),
                                       ("state slots", "1", log.state_slots if not plan.engine.paged else None,
                                        "state_slots")):  # fmt: skip
            if seen:
                ends = [float(getattr(c, name)) for c in (low, high) if c]
                rows.append(Compared(what, unit, float(seen), float(getattr(plan.caches, name)),
                                     min(ends, default=None), max(ends, default=None)))  # fmt: skip
    return rows


def plan_of(log: LogReading, given: Given) -> Plan:
    """The plan that a log belongs to. Raises InputError for what neither the log nor the reader says."""
    given = with_log(given, [log])
    for name, value in (("model", given.model), ("cluster", given.cluster), ("layout", given.layout)):
        if not value:
            raise InputError(f"to compare the log with the ledger, name --{name}")
    engine = given.engine or log.engine
    if engine == "vllm" and log.version.startswith("0.1.dev19262"):
        engine = "vllm-2026-07"
    settings = Settings(
        utilisation=log.utilisation, max_model_len=log.max_model_len or 32_768, max_num_seqs=log.max_num_seqs or 256,
        chunk_tokens=log.chunk_tokens, pp_partition=log.partition or None,
    )  # fmt: skip
    if log.kv_pinned and log.kv_gib:
        settings = replace(settings, kv_memory_bytes=tuple(low * GIBI for _, (low, _) in sorted(log.kv_gib.items())))
    return make_plan(
        load_model(given.model), parse_cluster(given.cluster), parse_layout(given.layout), engine, settings
    )


@dataclass(frozen=True)
class Network:
    """An all-reduce between nodes as two numbers. start_us: of a small message. gbs: of a large one, 1e9 B/s."""

    start_us: float
    gbs: float


def row_bytes() -> int:
    """What one token of Kimi K3 adds to an exchange, in B."""
    return load_model("kimi-k3").values[s.hidden] * BF16_BYTES


def network_of(reading: ExchangeReading) -> Network | None:
    """Start-up and rate of measured all-reduces, None where they are too few or of one size."""
    if "all_reduce" not in reading.operation.replace("-", "_"):
        return None
    rows = [r for r in reading.rows if r.size_bytes and r.time_us]
    small = [r.time_us for r in rows if r.size_bytes and r.size_bytes <= 2 * row_bytes() and r.time_us]
    large = max(rows, key=lambda r: r.size_bytes or 0, default=None)
    if not small or large is None or not large.size_bytes or not large.time_us or large.size_bytes < LARGE_BYTES:
        return None
    start = statistics.median(small)
    return Network(start, large.size_bytes / max(large.time_us - start, 1e-3) / 1e3)


def exchanges_of(reading: ExchangeReading, numbers: co.Table) -> list[Compared]:
    """Measured all-reduces at the sizes that K3 sends, beside those that the model counts with."""
    if "all_reduce" not in reading.operation.replace("-", "_") or not reading.ranks:
        return []
    rows = sorted((r for r in reading.rows if r.size_bytes and r.time_us), key=lambda r: r.size_bytes or 0)
    found = []
    for size in (tokens * row_bytes() for tokens in TOKENS_COMPARED):
        near = min(rows, key=lambda r: abs((r.size_bytes or 0) - size), default=None)
        if near is None or not near.size_bytes or not near.time_us or not 0.5 < near.size_bytes / size < 2:
            continue
        if (reading.nodes or 1) > 1:
            start, rate = (co.pick(numbers, n, "network@hopper@8nics", "network@hopper") for n in
                           ("exchange_start_us", "nic_rate"))  # fmt: skip
            predicted = start.value + near.size_bytes / (8 * rate.value)
        else:
            predicted = float(exchange_curve("nccl").at(np.array([float(near.size_bytes)]))[0])
        found.append(Compared(f"all-reduce of {near.size_bytes:,} B", "us", near.time_us, predicted))
    return found


def cells_of(runs: Sequence[Run]) -> list[Cell]:
    """Those of the runs that can be compared, whatever their use."""
    return [cell(run) for run in runs if not outside(run)]
