"""One workload on one cluster: the layout that serves it best, what its clients see, and what it takes in power."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from k3lib.account import costs
from k3lib.account import money_symbols as m
from k3lib.calibrate.predict import Speed, numbers, speed
from k3lib.choose.deployed import MOST_RUNNING, deployed, space_of
from k3lib.deploy import constants as co
from k3lib.deploy.caches import Settings
from k3lib.deploy.inverse import held_by_length, largest
from k3lib.deploy.load import Load, Served
from k3lib.deploy.plan import Plan, make_plan
from k3lib.deploy.search import TELLS_APART, Found, Limits, Space, screen, search, sized
from k3lib.deploy.speed import Question, answer, question
from k3lib.deploy.steady import Steady
from k3lib.engines.layout import parse_layout
from k3lib.errors import InputError
from k3lib.evaluate import Array, arrays
from k3lib.facts.clusters import ClusterFact, NamedCluster
from k3lib.facts.planned import fact_of
from k3lib.facts.workloads import Workload
from k3lib.models.model import Model
from k3lib.ranges import Range, of_corners

# Layouts of the steady state that are run pass by pass.
PROMISING = 8
# A layout is left aside where the steady state is further from a goal, or from the best output, than this. With these
# shares what is found was within 4 % of the best of all layouts, each tried, on four clusters.
TPOT_MAY_BE, TTFT_MAY_BE, OUTPUT_MAY_BE = 1.4, 4.0, 0.8
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
    at_once = workload.concurrency if clients is None else clients
    return Load(workload.isl, workload.osl, at_once, cached=workload.cached)


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
        sessions=held(plan, workload.isl + workload.osl),
        max_context=plan.caches.max_context if plan.caches else 0,
        within=limits.over(best.served) <= 1, surely=_surely(there_speed, limits),
        kwh_per_mtok=energy(power, there_speed.output_tps) if power else None,
    )  # fmt: skip


def nearest_reason(found: list[Found]) -> str:
    """Why not one layout serves the load: the reason of the one that comes nearest.

    That is the one that holds the longest request, or that has the most memory for caches on its tightest card.
    """

    def room(one: Found) -> tuple[int, float]:
        plan = one.candidate.plan
        return (plan.caches.max_context if plan.caches else 0, plan.stages[plan.tightest].free[0])

    return max(found, key=room).reason


def _surely(found: Speed, limits: Limits) -> bool:
    return (limits.ttft_ms is None or found.ttft_ms_mean.high <= limits.ttft_ms) and (
        limits.tpot_ms is None or found.tpot_ms.high <= limits.tpot_ms
    )


def held(plan: Plan, tokens: int) -> int:
    """Requests of so many tokens that the caches of all copies hold at once."""
    return int(held_by_length(plan, np.array([tokens]))[0]) * plan.copies


def energy(power: ClusterFact, output_tps: Range) -> Range:
    """Energy of a million output tokens in kWh: the power of the computers alone, always busy, over their output."""
    known = {m.rated_power: power.range_in("kW").corners(), m.output_rate: output_tps.corners(falling=True)}
    always = dict.fromkeys((m.load_share, m.pue, m.busy_share, m.up_share), 1.0)
    return of_corners(arrays({"kwh": costs.energy_of_mtok()}, {**known, **always})["kwh"])


@dataclass(frozen=True)
class Capacity:
    """The clients of a workload that a cluster serves within the goals, and what they see. None served: 0."""

    clients: int
    layout: str
    speed: Speed | None


def capacity(cluster: str | NamedCluster, workload: Workload, model: Model, engine: str = "vllm") -> Capacity:
    """The most clients within the workload's goals, in the layout that then gives most output.

    Goals are judged on the values, not on the ends of their ranges. Those of a workload without goals are as many as
    the caches hold; nobody is followed beyond the last of CLIENTS.
    """
    there, table, limits = space_of(cluster, model, engine), numbers(), limits_of(workload)
    if not there.fitting:
        return Capacity(0, "", None)
    size = np.full(len(CLIENTS), 1.0)
    steady = screen(there, size * workload.isl, size * workload.osl, np.array(CLIENTS, dtype=np.float64),
                    size * workload.cached, numbers=table)  # fmt: skip
    likely, hoped = _most_output(steady, limits), _most_output(steady, limits, TPOT_MAY_BE, TTFT_MAY_BE)
    hoped = np.maximum(hoped, steady.output_tps[:, 0])  # one client alone is always tried
    best, output = Capacity(0, "", None), 0.0
    for place in np.lexsort((-hoped, -likely)):
        if hoped[place] > OUTPUT_MAY_BE * output:
            plan = sized(there.fitting[place].plan, load_of(workload))
            run = _runs(plan, workload, there, table)
            clients = _most(plan, workload, run, steady.output_tps[place], output)
            served = run(clients) if clients else None
            if served and served.output_tps > output:
                asked = question(plan, load_of(workload, clients), there.options)
                best, output = Capacity(clients, str(plan.layout), speed(asked, table)), served.output_tps
    return best


def _most_output(steady: Steady, limits: Limits, tpot_share: float = 1.0, ttft_share: float = 1.0) -> Array:
    """The most output of each layout in the steady state within so many times the limits."""
    tpot, ttft = (np.inf if limit is None else limit for limit in (limits.tpot_ms, limits.ttft_ms))
    within = (steady.tpot_ms <= tpot_share * tpot) & (steady.ttft_ms <= ttft_share * ttft)
    return np.asarray(np.where(within, steady.output_tps, 0.0).max(axis=1))


def _runs(plan: Plan, workload: Workload, there: Space, table: co.Table) -> Callable[[int], Served | None]:
    """What so many clients see, pass by pass, each number run once; None where it cannot be told."""

    @cache
    def run(clients: int) -> Served | None:
        try:
            return answer(question(plan, load_of(workload, clients), there.options), table)
        except InputError:
            return None

    return run


def _most(plan: Plan, workload: Workload, run: Callable[[int], Served | None], curve: Array, to_beat: float) -> int:
    """The most clients within the goals on one layout; 0 where it would not then give more than an output.

    curve: its output in the steady state at each of CLIENTS. First so many clients are tried as must be served to beat
    the output, then, with what was learnt, once more: most layouts go no further.
    """
    limits, top = limits_of(workload), min(held(plan, workload.isl + workload.osl), CLIENTS[-1])
    rising = np.maximum.accumulate(curve)

    def within(clients: int) -> bool:
        served = run(clients)
        return served is not None and limits.over(served) <= 1

    def clients_for(output: float) -> int:
        return max(1, min(top, int(np.interp(output, rising, CLIENTS))))

    least = clients_for(OUTPUT_MAY_BE * to_beat)
    served = run(least) if top and within(least) else None
    if served is None:
        return 0
    wanted = (1 - TELLS_APART) * to_beat * float(np.interp(least, CLIENTS, rising)) / served.output_tps
    if wanted > rising[-1]:
        return 0
    if limits == Limits():
        return top
    return largest(within, max(least, clients_for(wanted)), top)
