"""Levels of alerts that follow from a plan: from its ledger, from its predicted speed, from its workload's goals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from k3lib.account import servers
from k3lib.account import symbols as s
from k3lib.calibrate.parts import step_parts
from k3lib.calibrate.predict import speed
from k3lib.deploy.caches import Caches
from k3lib.deploy.cuts import beside_gib
from k3lib.deploy.inverse import state_blocks
from k3lib.deploy.ledger import residual_rows
from k3lib.deploy.load import Load
from k3lib.deploy.passes import EXPERTS
from k3lib.deploy.plan import Plan
from k3lib.deploy.speed import question
from k3lib.engines import sglang
from k3lib.errors import InputError
from k3lib.evaluate import whole
from k3lib.facts.operating import Alert, metrics, named_metrics
from k3lib.facts.workloads import Workload
from k3lib.operate.draft import break_even
from k3lib.operate.watched import Watched
from k3lib.ranges import Range, point
from k3lib.units import convert

MS_PER_S = 1e3


class NoLevelError(InputError):
    """An alert has no level on this plan, and why."""


@dataclass(frozen=True)
class Level:
    """A level with its range, and where it comes from in one sentence."""

    at: Range
    why: str


def level(alert: Alert, one: Watched) -> Level:
    """The derived level of an alert. Raises NoLevelError where the plan gives none, with the reason."""
    return LEVELS[alert.derived](alert, one)


def _ends(plan: Plan, read: Callable[[Caches], float]) -> Range:
    """A figure of the caches at the ledger's value and at its ends."""
    found = [read(caches) for caches in (plan.caches, plan.caches_low, plan.caches_high) if caches]
    return Range(found[0], min(found), max(found))


def _above_zero(at: Range, what: str) -> Range:
    if at.value <= 0:
        raise NoLevelError(f"{what} hold one request of the workload and no more")
    return Range(at.value, max(0.0, at.low), at.high)


def _blocks(plan: Plan, tokens: float) -> int:
    """Blocks that a request of so many tokens takes in vLLM's pool."""
    block = plan.caches.block_tokens if plan.caches else 1
    return math.ceil(tokens / (block * plan.layout.dcp)) + state_blocks(plan)


def _cache_last_request(alert: Alert, one: Watched) -> Level:
    plan, needed = one.plan, _blocks(one.plan, one.tokens)
    at = _ends(plan, lambda c: 1 - needed * c.block_tokens * plan.layout.dcp / c.kv_tokens_physical)
    return Level(_above_zero(at, "the caches"), f"above it no further request of {one.tokens:,} tokens fits")


def _cache_growth(alert: Alert, one: Watched) -> Level:
    if one.plan.engine.paged:
        share = _blocks(one.plan, one.mean_tokens) / _blocks(one.plan, one.tokens)
    else:
        share = one.mean_tokens / one.tokens
    return Level(point(share), f"requests in the middle of their answers will need all of it at {one.tokens:,} tokens")


def _tokens_last_request(alert: Alert, one: Watched) -> Level:
    at = _ends(one.plan, lambda c: 1 - one.tokens / c.kv_tokens)
    return Level(_above_zero(at, "the caches"), f"above it no further request of {one.tokens:,} tokens fits")


def _states_last_request(alert: Alert, one: Watched) -> Level:
    plan = one.plan
    if not plan.caches or not plan.caches.state_slots:
        raise NoLevelError("the model keeps no states")
    slots = slots_of(plan)
    at = _ends(plan, lambda c: 1 - slots / c.state_slots)
    return Level(
        _above_zero(at, "the states"), f"a running request takes {slots} slots; above it none are left for one"
    )


def slots_of(plan: Plan) -> int:
    """Slots of states that a running request takes under SGLang."""
    settings = plan.settings
    return sglang.slots_per_request(settings.cache_strategy, plan.layout.pp > 1) + settings.draft_tokens


def _pools_last_request(alert: Alert, one: Watched) -> Level:
    both = (_tokens_last_request(alert, one), _states_last_request(alert, one))
    return min(both, key=lambda found: found.at.value)


def _preemption_rate(alert: Alert, one: Watched) -> Level:
    again = speed(question(one.plan, Load(round(one.mean_tokens), 2, 1), one.options)).ttft_ms_mean
    share = (alert.share or 0.0) * MS_PER_S
    at = Range(share / again.value, share / again.high, share / again.low)
    return Level(at, f"doing them again then takes {alert.share:.0%} of the time")


def _longest_prompt(alert: Alert, one: Watched) -> Level:
    longest = one.plan.settings.max_model_len - 2
    found = speed(question(one.plan, Load(max(1, longest), 2, 1), one.options)).ttft_ms_mean
    ends = (convert(x, "ms", "min") for x in (found.value, found.low, found.high))
    return Level(Range(*ends), f"reading a prompt of {longest:,} tokens alone takes that long")


def _goal(name: str, read: Callable[[Workload], float | None]) -> Callable[[Alert, Watched], Level]:
    def found(alert: Alert, one: Watched) -> Level:
        goal = read(one.workload)
        if goal is None:
            raise NoLevelError(f"{one.workload.label} has no goal for {name}")
        known = [b for metric in named_metrics(alert.expr) for b in metrics()[metric].buckets]
        below, above = (max((b for b in known if b <= goal), default=goal), min((b for b in known if b >= goal),
                                                                                default=goal))  # fmt: skip
        between = f"; the histogram cannot tell values from {below:g} to {above:g} s apart" if below < above else ""
        return Level(Range(goal, below, above), f"the goal of {one.workload.label}{between}")

    return found


def _tpot_high(alert: Alert, one: Watched) -> Level:
    found = speed(one.asked).tpot_ms
    at = Range(found.high / MS_PER_S, found.value / MS_PER_S, found.high / MS_PER_S)
    return Level(at, f"far end of the prediction for {one.asked.clients:,} clients of {one.workload.label}")


def _break_even(alert: Alert, one: Watched) -> Level:
    found = break_even(one, round(alert.share or 0.0))
    if found is None:
        raise NoLevelError("no layout of these cards without stages holds a draft model")
    return Level(found.length, f"a pass with {found.drafts} proposed tokens takes so many times one without, "
                 f"as {found.layout} with {found.clients:,} clients")  # fmt: skip


def _pool_low(alert: Alert, one: Watched) -> Level:
    at = _ends(one.plan, lambda c: c.kv_tokens)
    return Level(Range(at.low, at.low, at.high), f"the far end of the ledger; its value is {at.value:,.0f} tokens")


def _balance(alert: Alert, one: Watched) -> Level:
    if one.asked.passes.sets == 1:
        raise NoLevelError("each card holds a slice of every expert, so none is busier than others")
    part = step_parts(one.asked)[1][EXPERTS].share
    longer = alert.share or 0.0
    ends = (1 / (1 + longer / x) for x in (part.value, part.low, part.high))
    return Level(Range(*ends), f"below it a step takes {longer:.0%} longer than with even cards; "
                 f"the experts are {part.value:.0%} of it")  # fmt: skip


def network_bytes(plan: Plan) -> int:
    """What a generated token sends from server to server at least, in B; 0 where all cards reach each other."""
    stage = plan.engine.cards(plan.layout) // plan.layout.pp
    per = plan.cluster.cards_per_node
    starts = [number * stage // per for number in range(plan.layout.pp)]
    ends = [(number * stage + stage - 1) // per for number in range(plan.layout.pp)]
    hops = sum(end != start for end, start in zip(ends, starts[1:], strict=False))
    rows = residual_rows(plan.model) if any(a.group == "attnres" for a in plan.model.arrays) else 1
    wide = max(1, math.ceil(plan.engine.attention_tp(plan.layout) / per))
    values = {**plan.model.values, s.residual_rows: rows, servers.node_hops: hops, servers.group_nodes: wide}
    return whole(servers.network_bytes_per_token(), values)


def _network(alert: Alert, one: Watched) -> Level:
    if one.asked.setup.domain >= one.plan.cluster.cards:
        raise NoLevelError("all cards reach each other without the network")
    needed = network_bytes(one.plan)
    if not needed:
        raise NoLevelError("no copy spans two servers")
    share = alert.share or 0.0
    return Level(point(share * needed), f"{share:.0%} of the {needed:,} B that a token sends at least")


def _free_memory(alert: Alert, one: Watched) -> Level:
    value, low, high = beside_gib(one.plan)
    if low <= 0:
        raise NoLevelError("the ledger leaves nothing for certain beside the engine's share")
    share = alert.share or 0.0
    at = Range(*(share * convert(x, "GiB", "MiB") for x in (low, low, max(low, value, high))))
    return Level(at, f"{share:.0%} of the {low:.1f} GiB that the ledger leaves for certain")


LEVELS: dict[str, Callable[[Alert, Watched], Level]] = {
    "cache_last_request": _cache_last_request,
    "cache_growth": _cache_growth,
    "tokens_last_request": _tokens_last_request,
    "states_last_request": _states_last_request,
    "pools_last_request": _pools_last_request,
    "preemption_rate": _preemption_rate,
    "longest_prompt": _longest_prompt,
    "ttft_goal": _goal("the first token", lambda w: w.ttft_s),
    "tpot_goal": _goal("further tokens", lambda w: None if w.tpot_ms is None else w.tpot_ms / MS_PER_S),
    "tpot_high": _tpot_high,
    "break_even": _break_even,
    "pool_low": _pool_low,
    "balance": _balance,
    "network_bytes": _network,
    "free_memory": _free_memory,
}
