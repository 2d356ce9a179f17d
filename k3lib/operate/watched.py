"""What is watched: a plan, sized for a workload of the scenario, and the load that the workload puts on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from k3lib.choose.outcome import load_of
from k3lib.deploy.plan import Plan, make_plan
from k3lib.deploy.speed import Options, Question, question
from k3lib.errors import InputError
from k3lib.facts import named
from k3lib.facts.decisions import parse_mix
from k3lib.facts.workloads import QUANTITY_UNITS, Workload, WorkloadFact, with_goals, workloads


@dataclass(frozen=True)
class Watched:
    """plan: sized for its longest request. workload: whose goals are watched. asked: its load on the plan."""

    plan: Plan
    options: Options
    workload: Workload
    asked: Question

    @property
    def tokens(self) -> int:
        """Tokens of a request of the workload when it ends."""
        return self.workload.isl + self.workload.osl

    @property
    def mean_tokens(self) -> float:
        """Tokens of a request in the middle of its answer."""
        return self.workload.isl + self.workload.osl / 2


def watched(plan: Plan, options: Options, mix: str, max_model_len: int, ttft_goal_s: float = 0.0,
            tpot_goal_ms: float = 0.0) -> Watched:  # fmt: skip
    """The plan with the workload whose goals are watched: the largest of the mix that has goals and fits the plan.

    mix: shares of the output, as online-chat:70;rag:30. max_model_len: longest request in tokens; the plan is sized for
    it, or for the workload alone where that is longer or is all that fits. Goals: 0 for each workload's own.
    Raises InputError where the plan holds not even the shortest load that the project names.
    """
    reason = ""
    for workload in _candidates(parse_mix(mix), max_model_len, ttft_goal_s, tpot_goal_ms):
        load = load_of(workload)
        needed = workload.isl + workload.osl
        for length in dict.fromkeys((max(max_model_len, needed), needed)):
            try:
                sized = resized_to(plan, length)
                return Watched(sized, options, workload, question(sized, load, options))
            except InputError as error:
                reason = str(error)
    raise InputError(f"nothing to watch: {reason}")


def resized_to(plan: Plan, length: int, **changed: object) -> Plan:
    """The plan for requests of at most so many tokens, with its other settings or with changed ones."""
    settings = replace(plan.settings, max_model_len=length, **changed)  # type: ignore[arg-type]
    return make_plan(plan.model, plan.cluster, plan.layout, plan.engine.name, settings)


def under(other: str, one: Watched) -> Watched | None:
    """The same under another engine, None where that engine refuses the layout or holds nothing."""
    plan = one.plan
    try:
        made = make_plan(plan.model, plan.cluster, plan.layout, other, plan.settings)
        return replace(one, plan=made, asked=question(made, load_of(one.workload), one.options))
    except InputError:
        return None


def _candidates(shares: dict[str, float], most: int, ttft_s: float, tpot_ms: float) -> Iterator[Workload]:
    """Workloads in the order in which they are tried: of the mix and short enough, those with goals first."""
    known = {name: with_goals(one, ttft_s, tpot_ms) for name, one in workloads().items()}

    def place(name: str) -> tuple[bool, bool, bool, float]:
        one = known[name]
        without_goals = one.ttft_s is None and one.tpot_ms is None
        return one.isl + one.osl > most, name not in shares, without_goals, -shares.get(name, 0.0)

    yield from (known[name] for name in sorted(known, key=place))
    yield _of_load(next(iter(named.loads().values())), ttft_s, tpot_ms)


def _of_load(load: named.NamedLoad, ttft_s: float, tpot_ms: float) -> Workload:
    """A named load of one client as a workload."""
    figures = {"isl": load.isl, "osl": load.osl, "concurrency": 1}
    facts = {
        quantity: WorkloadFact(workload=load.load_id, quantity=quantity, value=value, unit=QUANTITY_UNITS[quantity],
                               grade="assumed", as_of="2026-11", source_id="k3lib_assumed")
        for quantity, value in figures.items()
    }  # fmt: skip
    return with_goals(Workload(load.load_id, load.label, facts), ttft_s, tpot_ms)
