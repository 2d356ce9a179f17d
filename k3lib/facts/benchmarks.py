"""Measured runs: one row is one run of a load on one deployment, with what came out. A user's rows look the same.

What was measured beside a serving run is an observation: load times, memory, acceptance of drafts, shares.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from k3lib.facts.catalog import AsOf, Measure, Sourced, checked, sources
from k3lib.facts.evidence import SettingsText
from k3lib.facts.paths import DATA
from k3lib.facts.tables import Grade, Identifier, OptionalCount, OptionalNumber, Text, load_rows
from k3lib.units import KILO

# fit: trusted, used to fit and to score. show: measured and shown, not used. out: a cell of a trusted set left out.
Use = Literal["fit", "show", "out"]
# How requests are served: by one engine, or by its prefill or its decode side, or by both sides together.
Serving = Literal["aggregated", "prefill", "decode", "separated"]
Prompts = Literal["random", "shared-prefix", "repeated", "natural", "trace", "unknown"]


class Run(Sourced):
    """One measured run.

    set_id: the series that a run belongs to: one deployment, one client, one day. use, reason: whether a fit may use
    it, and why not. cluster, layout: short forms of `k3lib.engines.layout`, empty where they cannot say it; deployment
    says it then in words. version: of the engine, as the source prints it. settings: `name=value;...`, names as in
    `k3lib.deploy.caches.Settings`, and experts (kernel), nics (a node), all_reduce (custom or nccl), requests, weights
    (format, where the model's name does not tell it), attention (kernel), offload (of caches).
    speculation: draft and its length, "none" without, empty where not stated; acceptance_length: tokens a step.
    isl, osl: mean prompt and output tokens; concurrency: cap of the client. Throughputs are of the whole deployment in
    tok/s, counted as the name says; user_tps: tokens a second that one user sees. Times are those of a request, in ms.
    """

    run_id: Identifier
    set_id: Identifier
    use: Use
    reason: str = ""
    as_of: Annotated[AsOf | Literal[""], Field()] = ""
    model: Text
    device: Identifier
    cards: OptionalCount = None
    cluster: str = ""
    layout: str = ""
    deployment: str = ""
    engine: Text
    version: str = ""
    settings: SettingsText = ""
    speculation: str = ""
    acceptance_length: OptionalNumber = None
    serving: Serving = "aggregated"
    prompts: Prompts = "unknown"
    isl: OptionalNumber = None
    osl: OptionalNumber = None
    concurrency: OptionalCount = None
    output_tps: OptionalNumber = None
    input_tps: OptionalNumber = None
    total_tps: OptionalNumber = None
    user_tps: OptionalNumber = None
    ttft_mean_ms: OptionalNumber = None
    ttft_median_ms: OptionalNumber = None
    ttft_p99_ms: OptionalNumber = None
    tpot_mean_ms: OptionalNumber = None
    tpot_median_ms: OptionalNumber = None
    tpot_p99_ms: OptionalNumber = None
    itl_mean_ms: OptionalNumber = None
    itl_median_ms: OptionalNumber = None
    e2e_mean_ms: OptionalNumber = None
    e2e_median_ms: OptionalNumber = None
    grade: Grade
    note: str = ""

    @property
    def flags(self) -> dict[str, str]:
        """The settings by name."""
        return dict(part.split("=", 1) for part in self.settings.split(";") if part)

    @property
    def metrics(self) -> dict[str, float]:
        """What was measured, by column."""
        return {name: value for name in METRICS if (value := getattr(self, name)) is not None}

    @property
    def tpot_ms(self) -> float | None:
        """Time per output token: the mean where it is given, else the median, else that of the gaps."""
        return next((v for v in (self.tpot_mean_ms, self.tpot_median_ms, self.itl_mean_ms) if v is not None), None)

    @property
    def ttft_ms(self) -> float | None:
        """Time to the first token: the mean where it is given, else the median."""
        return self.ttft_median_ms if self.ttft_mean_ms is None else self.ttft_mean_ms

    @property
    def answer_tps(self) -> float | None:
        """Output of all clients in tok/s: as measured, else the answers' share of a measured rate of all tokens."""
        if self.output_tps is not None or self.total_tps is None or self.isl is None or self.osl is None:
            return self.output_tps
        return self.total_tps * self.osl / (self.isl + self.osl)

    @property
    def user_speed_tps(self) -> float | None:
        """What one user sees in tok/s: 1000 / TPOT, or as the source prints it where it gives no time per token."""
        return KILO / self.tpot_ms if self.tpot_ms else self.user_tps

    @property
    def closed_loop_tps(self) -> float | None:
        """Output in tok/s that follows from the two times, where each client sends a request when its last one ends.

        concurrency x osl / (TTFT + (osl - 1) x TPOT); None where one of the four is not known.
        """
        if self.concurrency is None or self.osl is None or self.ttft_ms is None or self.tpot_ms is None:
            return None
        return self.concurrency * self.osl * KILO / (self.ttft_ms + (self.osl - 1) * self.tpot_ms)

    @property
    def system(self) -> tuple[str, ...]:
        """What runs of one deployment share: model, cards, layout, engine, kernel, draft, and the side that serves."""
        return (self.model, self.device, str(self.cards or ""), self.layout or self.deployment, self.engine,
                self.flags.get("experts", ""), self.speculation, self.serving)  # fmt: skip

    @model_validator(mode="after")
    def _sound(self) -> Run:
        if self.use != "fit" and not self.reason:
            raise ValueError(f"use '{self.use}' needs a reason in the column 'reason'")
        if not self.metrics:
            raise ValueError(f"no measured value in any of: {', '.join(METRICS)}")
        for name in ("isl", "osl", "concurrency"):
            if getattr(self, name) == 0:
                raise ValueError(f"{name} 0: must be above 0, or empty where it is not known")
        return self


class Observation(Measure):
    """One measured value that is no figure of a serving run.

    quantity: what it is, "..._per_card" where it is of one card; note says of what else. deployment, load: in words.
    """

    observation_id: Identifier
    quantity: Identifier
    model: Text
    device: Identifier
    cards: OptionalCount = None
    deployment: str = ""
    engine: str = ""
    speculation: str = ""
    load: str = ""


METRICS = tuple(name for name in Run.model_fields if name.endswith(("_tps", "_ms")))


@lru_cache(maxsize=8)
def runs(data: Path = DATA) -> tuple[Run, ...]:
    """All measured runs of the project, in the order of the table."""
    path = data / "benchmarks.csv"
    return checked(path, load_rows(path, Run, ["run_id"]), sources(data))


@lru_cache(maxsize=8)
def observations(data: Path = DATA) -> tuple[Observation, ...]:
    """Single measured values beside the runs, in the order of the table."""
    path = data / "observations.csv"
    return checked(path, load_rows(path, Observation, ["observation_id"]), sources(data))
