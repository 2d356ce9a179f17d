"""Workloads on clusters, all of them: each answered once, in plain numbers, and kept on disk by what it came from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from k3lib import kept
from k3lib.calibrate import own, store
from k3lib.calibrate.behind import main_sources
from k3lib.calibrate.predict import Speed
from k3lib.choose.deployed import space_of
from k3lib.choose.outcome import MS_PER_S, capacity, energy, outcome
from k3lib.deploy.speed import Question
from k3lib.facts.clusters import NamedCluster
from k3lib.facts.paths import DATA, ROOT
from k3lib.facts.planned import fact_of
from k3lib.facts.workloads import Workload
from k3lib.models.model import Model
from k3lib.ranges import Range

# What an answer depends on besides the cluster, the workload and what the calibration depends on.
CODE = ("account/*", "calibrate/*", "choose/deployed", "choose/outcome", "choose/study", "deploy/*", "engines/*",
        "evaluate", "facts/clusters", "facts/planned", "models/*", "ranges")  # fmt: skip
TABLES = ("calibration/constants.csv", "calibration/trials.csv", "cluster_facts.csv", "clusters.csv")


@dataclass(frozen=True)
class Seen:
    """What clients see. term: what takes most of a step. situation: what of the set-up was measured."""

    output_tps: Range
    tpot_ms: Range
    ttft_ms: Range
    term: str
    situation: str

    @property
    def user_tps(self) -> Range:
        """Tokens that one client gets in a second once its answer has begun."""
        t = self.tpot_ms
        return Range(MS_PER_S / t.value, MS_PER_S / t.high, MS_PER_S / t.low)


@dataclass(frozen=True)
class Entry:
    """A workload on a cluster: at its own number of clients, and at the most clients within its goals.

    reason: why it cannot be served, empty where it can. within, surely: whether the goals are met by the values, by the
    far ends of their ranges. most_clients: 0 where not even one client gets what the goals ask; most is then None.
    sources: ids in data/sources.csv.
    """

    cluster_id: str
    workload_id: str
    cards: int
    clients: int
    layout: str
    reason: str
    seen: Seen | None
    copies: int
    kv_tokens: int
    sessions: int
    max_context: int
    within: bool
    surely: bool
    most_clients: int
    most_layout: str
    most: Seen | None
    sources: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether the workload can be served at all."""
        return self.seen is not None


def energy_of(cluster: NamedCluster, seen: Seen) -> Range | None:
    """Energy of a million output tokens in kWh, computers alone; None where the cluster's power is not known."""
    power = fact_of(cluster, "power")
    return None if power is None else energy(power, seen.output_tps)


def entry(cluster: NamedCluster, workload: Workload, model: Model, engine: str = "vllm") -> Entry:
    """One workload on one cluster; from the disk where nothing that it comes from has changed."""
    name = _name(cluster, _plain(workload), model, engine)
    found = _read(kept.find(name))
    if found is None:
        found = _entry(cluster, workload, model, engine)
        kept.keep(name, asdict(found))
    return found


def holds_not(cluster: NamedCluster, model: Model, engine: str = "vllm") -> str:
    """Why not one layout of a cluster holds the model, empty where one does; from the disk like an entry."""
    name = _name(cluster, [], model, engine)
    found = kept.find(name)
    if not isinstance(found, str):
        found = _holds_not(cluster, model, engine)
        kept.keep(name, found)
    return found


def _holds_not(cluster: NamedCluster, model: Model, engine: str) -> str:
    there = space_of(cluster, model, engine)
    if there.fitting:
        return ""
    if not there.candidates:
        return f"{engine} accepts no layout on {cluster.shape}"
    return max(there.candidates, key=lambda one: one.plan.stages[one.plan.tightest].free[0]).plan.reason


def _name(cluster: NamedCluster, asked: list[Any], model: Model, engine: str) -> str:
    """A name for what is asked of a model on a cluster, and all that the answer comes from."""
    where = cluster.model_dump(mode="json", exclude={"label", "short", "note", "evidence"})
    return kept.digest(_files(), where, asked, model.name, _stored(model), engine)


_STORED: dict[int, tuple[Model, list[str]]] = {}


def _stored(model: Model) -> list[str]:
    """What of a model stands on disk, as text; written out once, since it is long."""
    if id(model) not in _STORED:
        _STORED[id(model)] = model, [str(one) for one in model.arrays]
    return _STORED[id(model)][1]


def _files() -> list[Path]:
    code = [path for name in CODE for path in sorted((ROOT / "k3lib").glob(f"{name}.py"))]
    mine = [p for p in (own.folder_of_own() / own.RUNS, own.folder_of_own() / own.CONSTANTS) if p.is_file()]
    return [*store.inputs(), *code, *(DATA / name for name in TABLES), *mine]


def _plain(workload: Workload) -> list[Any]:
    return [workload.workload_id, workload.isl, workload.osl, workload.cached, workload.concurrency, workload.ttft_s,
            workload.tpot_ms]  # fmt: skip


def _entry(cluster: NamedCluster, workload: Workload, model: Model, engine: str) -> Entry:
    one = outcome(cluster, workload, model, engine)
    most = capacity(cluster, workload, model, engine)
    return Entry(
        cluster.cluster_id, workload.workload_id, cluster.cards, workload.concurrency, one.layout, one.reason,
        _seen(one.speed), one.copies, one.kv_tokens, one.sessions, one.max_context, one.within, one.surely,
        most.clients, most.layout, _seen(most.speed), _sources(one.asked, cluster, workload),
    )  # fmt: skip


def _seen(found: Speed | None) -> Seen | None:
    if found is None:
        return None
    return Seen(found.output_tps, found.tpot_ms, found.ttft_ms_mean, found.dominant_term, found.situation)


def _sources(asked: Question | None, cluster: NamedCluster, workload: Workload) -> tuple[str, ...]:
    """Where a prediction comes from: its main sources, the cluster's and the workload's."""
    of_speed = main_sources(asked) if asked else []
    return tuple(dict.fromkeys([*of_speed, *cluster.source_ids, *workload.sources]))


_ENTRY = TypeAdapter(Entry)


def _read(found: Any) -> Entry | None:
    """An entry from the disk; None for what is none."""
    if found is None:
        return None
    try:
        return _ENTRY.validate_python(found)
    except ValidationError:
        return None
