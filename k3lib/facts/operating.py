"""What is known of running an engine: metrics, alerts, panels of a dashboard, and what to do when it fails."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from k3lib.errors import InputError, near
from k3lib.facts.catalog import Sourced, check_range, checked, sources
from k3lib.facts.paths import DATA, shown
from k3lib.facts.tables import Grade, Identifier, NonNegative, OptionalNumber, Row, Text, UnitName, load_rows

# Exporters that name counters after a rule of their own.
OWN_NAMES = ("dcgm",)
LEVEL = "{level}"
Bounds = Annotated[tuple[NonNegative, ...], BeforeValidator(lambda text: tuple(str(text).split()))]
Words = Annotated[tuple[str, ...], BeforeValidator(lambda text: tuple(str(text).split()))]
# A metric in an expression: names of exporters have an underscore or a colon, or are `up`.
NAME = re.compile(r"(?<![\w:.{\"])((?:vllm|sglang):\w+|DCGM_\w+|node_\w+|up)(?![\w:(])")
ENDINGS = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}


class Metric(Sourced):
    """One metric as Prometheus scrapes it; a histogram and a summary by the name before _bucket, _sum and _count.

    labels: beside those that Prometheus adds. needs: what must be switched on, empty where it is there by default.
    buckets: bounds of a histogram that are known, in its unit.
    """

    metric: Annotated[str, Field(pattern=r"^[A-Za-z_][\w:]*$")]
    engine: Identifier
    version: str = ""
    type: Literal["counter", "gauge", "histogram", "summary"]
    labels: Words = ()
    unit: UnitName
    supports: Text
    needs: str = ""
    buckets: Bounds = ()

    @model_validator(mode="after")
    def _named_as_scraped(self) -> Metric:
        if self.type == "counter" and self.engine not in OWN_NAMES and not self.metric.endswith("_total"):
            raise ValueError(f"counter '{self.metric}': a scrape shows it as '{self.metric}_total'")
        if list(self.buckets) != sorted(self.buckets) or (self.buckets and self.type != "histogram"):
            raise ValueError("buckets: must be rising bounds of a histogram")
        return self

    @property
    def series(self) -> tuple[str, ...]:
        """The names under which it can be asked for."""
        return tuple(self.metric + end for end in ENDINGS.get(self.type, ("",)))


class Alert(Sourced):
    """One alert. part: the exporter that it needs. severity: page wakes somebody, ticket waits for the day.

    for_min: minutes for which it must hold. expr: in PromQL, with {level} where its level goes. level: the number, with
    low and high; or derived: the name of a level that follows from the plan, and share, what that one needs.
    """

    alert: Annotated[str, Field(pattern=r"^K3[A-Za-z]+$")]
    part: Literal["vllm", "sglang", "dcgm", "node-vllm", "node-sglang", "prometheus"]
    severity: Literal["page", "ticket"]
    for_min: NonNegative
    expr: Text
    level: OptionalNumber
    low: OptionalNumber
    high: OptionalNumber
    share: OptionalNumber
    derived: str = ""
    unit: UnitName
    grade: Grade
    summary: Text
    action: Text
    note: str = ""

    @model_validator(mode="after")
    def _sound(self) -> Alert:
        if (self.level is None) != bool(self.derived):
            raise ValueError("needs either a level or the name of a derived one")
        if self.level is not None:
            check_range("level", self.level, self.low, self.high)
            if LEVEL not in self.expr:
                raise ValueError(f"expr does not hold {LEVEL}")
        return self


class Panel(Row):
    """One line of a dashboard's panel; lines of one section and title share a panel. alert: whose level it shows."""

    section: Text
    title: Text
    unit: UnitName
    alert: str = ""
    expr: Text
    legend: Text


Case = Literal["load", "profiling", "pools", "service", "throughput", "network", "stages", "slots", "start"]


class Trouble(Sourced):
    """One cause of a trouble. case: when it shows. term: of a generating step that it makes longer.

    sign: what is seen. test: what tells it from the others. cuts: names of settings whose effect is computed.
    """

    trouble_id: Identifier
    case: Case
    term: str = ""
    sign: Text
    cause: Text
    test: Text
    remedy: Text
    cuts: Words = ()


@lru_cache(maxsize=8)
def metric_rows(data: Path = DATA) -> tuple[Metric, ...]:
    """All metrics, in the order of the table."""
    path = data / "metrics.csv"
    return checked(path, load_rows(path, Metric, ["metric"]), sources(data))


def metrics(data: Path = DATA) -> dict[str, Metric]:
    """Metrics by every name under which they can be asked for."""
    return {name: row for row in metric_rows(data) for name in row.series}


@lru_cache(maxsize=8)
def alerts(data: Path = DATA) -> tuple[Alert, ...]:
    """All alerts, in the order of the table. Raises InputError for one that names a metric which is not known."""
    path = data / "alerts.csv"
    rows = checked(path, load_rows(path, Alert, ["alert", "part"]), sources(data))
    for row in rows:
        _known(f"{shown(path)} ({row.alert} / {row.part})", row.expr, data)
    return rows


@lru_cache(maxsize=8)
def panels(data: Path = DATA) -> tuple[Panel, ...]:
    """All lines of the dashboard, in the order of the table. Raises InputError for a metric or alert not known."""
    path = data / "panels.csv"
    rows = load_rows(path, Panel, ["section", "title", "expr"])
    names = {row.alert for row in alerts(data)}
    for row in rows:
        where = f"{shown(path)} ({row.title})"
        _known(where, row.expr, data)
        if row.alert and row.alert not in names:
            raise InputError(f"{where}: alert '{row.alert}' is not in data/alerts.csv. {near(row.alert, names)}")
    return rows


@lru_cache(maxsize=8)
def troubles(data: Path = DATA) -> tuple[Trouble, ...]:
    """All causes of trouble, in the order of the table."""
    path = data / "troubles.csv"
    return checked(path, load_rows(path, Trouble, ["trouble_id"]), sources(data))


def named_metrics(expr: str) -> tuple[str, ...]:
    """The metrics that a PromQL expression asks for, each once."""
    return tuple(dict.fromkeys(NAME.findall(expr)))


def _known(where: str, expr: str, data: Path) -> None:
    table, asked = metrics(data), named_metrics(expr)
    if not asked:
        raise InputError(f"{where}: its expression names no metric")
    for name in asked:
        if name not in table:
            raise InputError(f"{where}: metric '{name}' is not in data/metrics.csv. {near(name, table)}")
