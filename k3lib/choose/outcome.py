"""One workload on one cluster: the layout that serves it best, what its clients see, and what it takes in power."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from k3lib.calibrate.predict import Speed, numbers, speed
from k3lib.choose.deployed import MOST_RUNNING, deployed, space_of
from k3lib.deploy import constants as co
from k3lib.deploy.caches import Settings
from k3lib.deploy.inverse import held_by_length
from k3lib.deploy.load import Load
from k3lib.deploy.plan import Plan, make_plan, resized
from k3lib.deploy.search import Candidate, Found, Limits, Space, screen, search
from k3lib.deploy.speed import Question, answer, question
from k3lib.engines.layout import parse_layout
from k3lib.errors import InputError
from k3lib.facts.clusters import ClusterFact, NamedCluster
from k3lib.facts.planned import fact_of
from k3lib.facts.workloads import Workload
from k3lib.models.model import Model
from k3lib.ranges import Range
from k3lib.units import MEGA

# Layouts of the steady state that are run pass by pass.
PROMISING, FEW = 8, 3
SECONDS_PER_HOUR = 3600
MS_PER_S = 1000
CLIENTS = tuple(round(2 ** (step / 2)) for step in range(25))  # 1 to 4,096, in steps of a half power of two


@dataclass(frozen=True)
class Outcome:
    """A workload on a cluster. reason: why it cannot be served, empty where it can; then speed and plan are there.

    within: whether the workload's goals are met by the values; surely: by the far ends of their ranges as well.
    sessions: requests of the workload's length that the caches of all copies hold at once. kwh_per_mtok: energy of a
    million output tokens at this load, computers alone.
    """

    cluster: NamedCluster
    workload: Workload
    layout: str
    reason: str
    plan: Plan | None = None
    asked: Question | None = None
    speed: Speed | None = None
    copies: int = 0
    kv_tokens: int = 0
    sessions: int = 0
    max_context: int = 0
    within: bool = False
    surely: bool = False
    kwh_per_mtok: Range | None = None

    @property
    def fits(self) -> bool:
        """Whether the workload can be served at all."""
        return self.speed is not None


def load_of(workload: Workload, clients: int | None = None) -> Load:
    """A named workload as a load of the closed loop."""
    return Load(workload.isl, workload.osl, clients or workload.concurrency, cached=workload.cached)


def limits_of(workload: Workload) -> Limits:
    """The workload's goals."""
    return Limits(None if workload.ttft_s is None else workload.ttft_s * MS_PER_S, workload.tpot_ms)


def outcome(cluster: str | NamedCluster, workload: Workload, model: Model, engine: str = "vllm") -> Outcome:
    """The workload on a cluster, in the layout of most output within the workload's goals.

    Raises InputError for an unknown cluster.
    """
    there, table = space_of(cluster, model, engine), numbers()
    found = search(there, load_of(workload), table, limits_of(workload), most=PROMISING)
    return of_found(cluster, workload, there, found, table)


def on_layout(cluster: str | NamedCluster, workload: Workload, layout: str, model: Model, engine: str = "vllm",
              clients: int | None = None) -> Question:  # fmt: skip
    """The workload on one layout of a cluster, as a question to the speed model.

    Raises InputError for a layout that the engine does not accept, or that does not hold one request.
    """
    one = deployed(cluster)
    settings = Settings(max_num_seqs=MOST_RUNNING, max_model_len=workload.isl + workload.osl)
    plan = make_plan(model, one.cluster, parse_layout(layout), engine, settings, one.options.hardware)
    return question(plan, load_of(workload, clients), one.options)


def of_found(
    cluster: str | NamedCluster, workload: Workload, there: Space, found: list[Found], table: co.Table
) -> Outcome:
    """The outcome of the first of the layouts that were found."""
    row, best = deployed(cluster).row, found[0]
    if best.served is None:
        return Outcome(row, workload, "", nearest_reason(found))
    plan = best.candidate.plan
    asked = question(plan, load_of(workload), there.options)
    there_speed, limits, power = speed(asked, table), limits_of(workload), fact_of(row, "power")
    return Outcome(
        row, workload, best.layout, "", plan, asked, there_speed, best.candidate.copies,
        kv_tokens=plan.caches.kv_tokens * best.candidate.copies if plan.caches else 0,
        sessions=held(best.candidate, workload.isl + workload.osl),
        max_context=plan.caches.max_context if plan.caches else 0,
        within=limits.over(best.served) <= 1, surely=_surely(there_speed, limits),
        kwh_per_mtok=energy(power, there_speed.output_tps) if power else None,
    )  # fmt: skip


def nearest_reason(found: list[Found]) -> str:
    """Why not one layout serves the load: the reason of the one that comes nearest, the most memory for caches."""
    near = max(found, key=lambda one: max((s.free[0] for s in one.candidate.plan.stages), default=0.0))
    return near.reason


def _surely(found: Speed, limits: Limits) -> bool:
    return (limits.ttft_ms is None or found.ttft_ms_mean.high <= limits.ttft_ms) and (
        limits.tpot_ms is None or found.tpot_ms.high <= limits.tpot_ms
    )


def held(candidate: Candidate, tokens: int) -> int:
    """Requests of so many tokens that the caches of all copies hold at once."""
    return int(held_by_length(candidate.plan, np.array([tokens]))[0]) * candidate.copies


def energy(power: ClusterFact, output_tps: Range) -> Range:
    """Energy of a million output tokens in kWh: all power of the cluster over its output."""
    low, value, high = (
        kilowatts * MEGA / (tps * SECONDS_PER_HOUR)
        for kilowatts, tps in (
            (power.value if power.low is None else power.low, output_tps.high),
            (power.value, output_tps.value),
            (power.value if power.high is None else power.high, output_tps.low),
        )
    )
    return Range(value, low, high)


@dataclass(frozen=True)
class Capacity:
    """The most clients of a workload that a cluster serves within the goals, and what they see. None served: 0."""

    clients: int
    layout: str
    speed: Speed | None


def capacity(cluster: str | NamedCluster, workload: Workload, model: Model, engine: str = "vllm") -> Capacity:
    """The most clients within the workload's goals, in the layout that then gives most output.

    Goals are judged on the values, not on the ends of their ranges. A workload without goals is served by as many as
    the caches hold. Numbers above 50 are found to two in a hundred, which is less than the model can tell apart.
    """
    there, table, limits = space_of(cluster, model, engine), numbers(), limits_of(workload)
    best, most_output = Capacity(0, "", None), 0.0
    for candidate, guess in _worth_a_try(there, workload, limits, table):
        clients = _most(candidate, workload, limits, there, guess)
        if clients:
            asked = question(_sized(candidate, workload), load_of(workload, clients), there.options)
            output = answer(asked, table).output_tps
            if output > most_output:
                best, most_output = Capacity(clients, str(candidate.plan.layout), speed(asked, table)), output
    return best


def _worth_a_try(there: Space, workload: Workload, limits: Limits, table: co.Table) -> list[tuple[Candidate, int]]:
    """Layouts that may serve most clients, each with a guess how many, by the steady state: those of most output within
    the goals, and those whose first token comes soonest for one client.
    """
    if not there.fitting:
        return []
    size = np.full(len(CLIENTS), 1.0)
    steady = screen(there, size * workload.isl, size * workload.osl, np.array(CLIENTS, dtype=np.float64),
                    size * workload.cached, numbers=table)  # fmt: skip
    in_tpot = steady.tpot_ms <= (limits.tpot_ms or np.inf)
    in_both = in_tpot & (steady.ttft_ms <= (limits.ttft_ms or np.inf))
    guess = [CLIENTS[int(row.nonzero()[0].max(initial=0))] for row in in_both]
    soonest = np.where(in_tpot[:, 0], steady.ttft_ms[:, 0], np.inf)
    places = [np.argsort(soonest, kind="stable")[:1]]
    for meets in (in_tpot, in_both):
        output = np.where(meets, steady.output_tps, 0.0).max(axis=1)
        places.append(np.argsort(-output, kind="stable")[:FEW])
    chosen = dict.fromkeys(np.concatenate(places).tolist())
    return [(there.fitting[place], guess[place]) for place in chosen]


def _sized(candidate: Candidate, workload: Workload) -> Plan:
    plan = candidate.plan
    return resized(plan, plan.layout, replace(plan.settings, max_model_len=workload.isl + workload.osl))


def _most(candidate: Candidate, workload: Workload, limits: Limits, there: Space, guess: int) -> int:
    """The most clients within the limits on one layout; at most what its caches hold."""
    plan, table = _sized(candidate, workload), numbers()
    top = min(held(candidate, workload.isl + workload.osl), CLIENTS[-1])

    def within(clients: int) -> bool:
        try:
            return limits.over(answer(question(plan, load_of(workload, clients), there.options), table)) <= 1
        except InputError:
            return False

    return largest(within, top, guess)


def largest(holds: Callable[[int], bool], most: int, guess: int = 1) -> int:
    """The largest number from 1 to `most` for which it holds, if it holds for all below; 0 for none.

    Above 50 to two in a hundred. guess: where to begin.
    """
    low, high = 0, most + 1
    step = max(1, min(guess, most))
    while high - low > 1 + low // 50:  # first by ever longer steps from the guess, then by halves
        low, high = (step, high) if holds(step) else (low, step)
        ahead = low + max(1, low // 2) if high > most else low + (high - low) // 2
        behind = high // 2 if low == 0 else ahead
        step = min(max(low + 1, ahead if low else behind), high - 1)
    return low
