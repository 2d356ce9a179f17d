"""Measured runs as questions to the model: the deployment that a row describes, and the load on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from k3lib.deploy import constants as co
from k3lib.deploy.caches import Settings
from k3lib.deploy.load import Load, Served
from k3lib.deploy.plan import ENGINES, make_plan
from k3lib.deploy.setup import unmodelled
from k3lib.deploy.speed import Options, Question, answer, question
from k3lib.engines.layout import parse_cluster, parse_layout
from k3lib.errors import InputError
from k3lib.facts.benchmarks import Run
from k3lib.facts.catalog import devices, model_names
from k3lib.models.model import Model, load_model

# How the version of the first image of Kimi K3 begins; its padding differs.
FIRST_IMAGE = "0.1.dev19262"
KERNELS = {"flashinfer": "auto"}
READERS = {"utilisation": float, "max_num_seqs": int, "chunk_tokens": int, "state_ratio": float, "state_dtype": str,
           "cache_dtype": str, "draft_tokens": int}  # fmt: skip
# All settings that a row may name.
SETTINGS = (*READERS, "experts", "all_reduce", "nics", "requests", "max_model_len", "cache_strategy", "prefix_caching",
            "graphs", "attention", "offload", "weights")  # fmt: skip
MANY = 4096
T = TypeVar("T")


@dataclass(frozen=True)
class Observed:
    """One measured quantity of a run, and which figure of the model it is to be set beside."""

    metric: str
    column: str
    value: float


@dataclass(frozen=True)
class Cell:
    """A run that the model can be asked about. group: runs of one deployment, left out together."""

    run: Run
    asked: Question
    observed: tuple[Observed, ...]

    @property
    def group(self) -> str:
        """Device, engine, layout and kernel, which no two groups share."""
        setup = self.asked.setup
        return f"{setup.cluster} {setup.layout} {co.engine_family(self.run.engine)} {setup.kernel}"

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for runs that the model cannot tell apart."""
        return (id(self.asked.passes), self.asked.load, self.asked.running, self.asked.chunk, self.asked.clients)


def engine_of(run: Run) -> str:
    """The engine whose rules hold for a run's version."""
    return "vllm-2026-07" if run.engine == "vllm" and run.version.startswith(FIRST_IMAGE) else run.engine


def outside(run: Run) -> str:
    """Why the model cannot be asked about a run, empty where it can."""
    if run.model not in model_names():
        return "the model is not known"
    if run.engine not in ENGINES:
        return "the engine's rules are not known"
    if not run.cluster or not run.layout:
        return "the layout is not stated, or is not one deployment"
    if run.device not in {device for device, _ in devices()}:
        return "the card is not known"
    if run.isl is None or run.osl is None or run.concurrency is None:
        return "prompt, answer or clients are not stated"
    if run.osl < 2:
        return "one token an answer"
    if run.serving != "aggregated":
        return "prefill and decode are apart"
    if run.speculation not in ("none", ""):
        return "with a draft model"
    if run.prompts == "trace":
        return "a trace of requests of many lengths"
    return unmodelled(_model(run.model))


@lru_cache(maxsize=16)
def _model(name: str) -> Model:
    return load_model(name)


def cell(run: Run) -> Cell:
    """The run as a question. Raises InputError where it cannot be asked, with the reason."""
    reason = outside(run)
    if reason:
        raise InputError(f"run '{run.run_id}': not covered: {reason}")
    flags = run.flags
    given = {name: _setting(run, name, read) for name, read in READERS.items() if name in flags}
    isl, osl = round(run.isl or 0), round(run.osl or 0)
    settings = Settings(**{"max_num_seqs": MANY, **given}, max_model_len=isl + osl)
    plan = make_plan(_model(run.model), parse_cluster(run.cluster), parse_layout(run.layout), engine_of(run), settings)
    experts = flags.get("experts", "auto")
    options = Options(experts=KERNELS.get(experts, experts), all_reduce=flags.get("all_reduce", "auto"),
                      nics=_setting(run, "nics", int) if "nics" in flags else None)  # fmt: skip
    requests = _setting(run, "requests", int) if "requests" in flags else None
    load = Load(isl, osl, run.concurrency or 1, requests)
    return Cell(run, question(plan, load, options), observed(run))


def _setting(run: Run, name: str, read: Callable[[str], T]) -> T:
    try:
        return read(run.flags[name])
    except ValueError:
        raise InputError(f"run '{run.run_id}': setting {name} = {run.flags[name]}: must be a number") from None


def observed(run: Run) -> tuple[Observed, ...]:
    """What a run measured that the model also gives: output, time per token, time to first token."""
    found = []
    if run.output_tps:
        found.append(Observed("output_tps", "output_tps", run.output_tps))
    if run.tpot_ms:
        found.append(Observed("tpot_ms", "tpot_ms", run.tpot_ms))
    if run.ttft_mean_ms:
        found.append(Observed("ttft_ms", "ttft_mean_ms", run.ttft_mean_ms))
    elif run.ttft_median_ms:
        found.append(Observed("ttft_ms", "ttft_median_ms", run.ttft_median_ms))
    return tuple(found)


def cells(runs: Iterable[Run]) -> list[Cell]:
    """Those of the runs that the model can be asked about and that may be used to fit it."""
    return [cell(run) for run in runs if run.use == "fit" and not outside(run)]


def residuals(one: Cell, served: Served) -> dict[str, float]:
    """The logarithm of predicted over measured, by metric."""
    return {seen.metric: math.log(getattr(served, seen.column) / seen.value) for seen in one.observed}


def served(many: Iterable[Cell], numbers: co.Table) -> list[Served]:
    """The model's answer to each cell; cells that it cannot tell apart are asked once."""
    known: dict[tuple[object, ...], Served] = {}
    answers = []
    for one in many:
        if one.key not in known:
            known[one.key] = answer(one.asked, numbers)
        answers.append(known[one.key])
    return answers
