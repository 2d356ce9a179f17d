"""What to do in a situation: rules over computed results, a ranking of what they leave, and what would change it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.choose.study import Entry, Seen
from k3lib.cost.api import Offer, api_cost_cny, mix_of
from k3lib.evaluate import prepared
from k3lib.facts.clusters import Availability, Region
from k3lib.facts.decisions import Decision
from k3lib.facts.workloads import Workload
from k3lib.ranges import Range, point, times, total
from k3lib.units import HOURS_PER_DAY, HOURS_PER_YEAR, MONTHS_PER_YEAR

DAYS_PER_MONTH = HOURS_PER_YEAR / MONTHS_PER_YEAR / HOURS_PER_DAY
NONE = "none"
# How far a volume is moved to see what would change: a thousandth to a thousandfold, then to one part in a hundred.
FARTHEST, STEP, NEAR = 1000.0, 1.1, 1.01


@dataclass(frozen=True)
class Money:
    """What one deployment takes: at once, and each month with that spread over its life. In CNY.

    shared_cny: of a month, for people and audits, however many deployments there are. availability: share of the time
    that one is not being repaired.
    """

    invest_cny: Range
    monthly_cny: Range
    shared_cny: Range
    availability: float = 1.0
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    """A way to serve. name: a cluster, or MODEL@HOST of an API."""

    kind: Literal["own", "rent", "api"]
    name: str

    def __str__(self) -> str:
        """As results name it."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True)
class World:
    """All that a choice rests on. entries: by (cluster, workload). owned, rented: by (cluster, region), where somebody
    published a price. apis: by MODEL@HOST. goals: whether the workloads' goals count. licences: whether export licences
    are granted.
    """

    entries: Mapping[tuple[str, str], Entry]
    workloads: Mapping[str, Workload]
    status: Mapping[tuple[str, Region], Availability]
    owned: Mapping[tuple[str, Region], Money]
    rented: Mapping[tuple[str, Region], Money]
    apis: Mapping[str, Offer]
    goals: bool = True
    licences: bool = True

    @property
    def options(self) -> Iterator[Option]:
        """Every way to serve, in the order of the tables."""
        names = dict.fromkeys(cluster for cluster, _ in self.entries)
        yield from (Option("own", name) for name in names)
        yield from (Option("rent", name) for name in names)
        yield from (Option("api", name) for name in self.apis)


@dataclass(frozen=True)
class Refused:
    """A way that a rule rules out. workload: the one that fails, where the rule is goals. needs_cny: where budget."""

    option: Option
    rule: str
    workload: str = ""
    reason: str = ""
    needs_cny: float = 0.0


@dataclass(frozen=True)
class Ranked:
    """A way that serves. deployments: how many of the cluster, 0 for an API. licence: whether it may be had under an
    export licence only. sure: whether the number of deployments holds at the low end of the speed as well.
    """

    option: Option
    deployments: int
    invest_cny: Range
    monthly_cny: Range
    cny_per_mtok: Range
    licence: bool = False
    sure: bool = True


@dataclass(frozen=True)
class Flip:
    """A change of the situation and what would then be chosen. what: the rule or figure; to: its new value."""

    what: str
    to: str | float
    choice: str


@dataclass(frozen=True)
class Advice:
    """Ranked ways to serve, cheapest first, those that rules refuse, and what would change the choice."""

    case: Decision
    ranked: tuple[Ranked, ...]
    refused: tuple[Refused, ...]
    flips: tuple[Flip, ...] = field(default=())

    @property
    def choice(self) -> str:
        """The first way, `none` where no way is left."""
        return str(self.ranked[0].option) if self.ranked else NONE

    @property
    def settled(self) -> bool:
        """Whether the first is cheaper than the second over the whole of both ranges; true where there is no second."""
        if len(self.ranked) < 2:
            return bool(self.ranked)
        first, second = self.ranked[:2]
        return first.monthly_cny.high < second.monthly_cny.low


def advise(case: Decision, world: World) -> Advice:
    """The ranking for a situation, and the changes that would give another choice."""
    plain = decide(case, world)
    return replace(plain, flips=tuple(_flips(plain, world)))


def decide(case: Decision, world: World) -> Advice:
    """The ranking for a situation: what the rules leave, by what it costs a month."""
    ranked: list[Ranked] = []
    refused: list[Refused] = []
    for option in world.options:
        found = tried(case, option, world)
        if isinstance(found, Ranked):
            ranked.append(found)
        elif found is not None:
            refused.append(found)
    return Advice(case, tuple(sorted(ranked, key=lambda one: one.monthly_cny.value)), tuple(refused))


def tried(case: Decision, option: Option, world: World) -> Ranked | Refused | None:
    """One way under every rule; None for an API that is of another region."""
    if option.kind == "api":
        return _by_api(case, option, world)
    status = world.status[option.name, case.region].status
    if status not in (("yes", "licence") if world.licences else ("yes",)):
        return Refused(option, "region", reason=status)
    if option.kind == "rent" and case.data_stays == "yes":
        return Refused(option, "data")
    for name in case.shares:
        entry = world.entries[option.name, name]
        if _speed(entry, world) is None:
            return Refused(option, "goals", name, entry.reason)
    money = (world.owned if option.kind == "own" else world.rented).get((option.name, case.region))
    if money is None:
        return Refused(option, "price")
    count = _deployments(case, option, world, money, lambda seen: seen.output_tps.value)
    sure = _deployments(case, option, world, money, lambda seen: seen.output_tps.low)
    invest, monthly = times(money.invest_cny, count), _month(money, count)
    if invest.value > case.budget_cny:
        return Refused(option, "budget", needs_cny=invest.value)
    return Ranked(option, count, invest, monthly, _per_mtok(monthly, case), status == "licence", sure == count)


def _by_api(case: Decision, option: Option, world: World) -> Ranked | Refused | None:
    if world.apis[option.name].region != case.region:
        return None
    if case.data_stays == "yes":
        return Refused(option, "data")
    one = _asked(case.shares, world, world.apis[option.name])
    monthly = times(one, case.mtok_per_day * DAYS_PER_MONTH)
    return Ranked(option, 0, point(0), monthly, one)


def _asked(shares: Mapping[str, float], world: World, offer: Offer) -> Range:
    """What an API asks for a million tokens of output with the input that belongs to them, in CNY."""
    return total(times(api_cost_cny(mix_of(world.workloads[name]), offer), share) for name, share in shares.items())


def _speed(entry: Entry, world: World) -> Seen | None:
    """What clients see where the workload fills the cluster within the goals; without goals the load of more output."""
    if world.goals or entry.seen is None:
        return entry.most
    return max((one for one in (entry.most, entry.seen) if one), key=lambda one: one.output_tps.value)


def _deployments(case: Decision, option: Option, world: World, money: Money, output: Callable[[Seen], float]) -> int:
    """How many deployments the volume needs, each busy for its share of the time that it is up."""
    given = output_of_month(case, option.name, world, money, output)
    return max(1, math.ceil(case.mtok_per_day * DAYS_PER_MONTH / given - 1e-9))


def output_of_month(
    case: Decision, cluster_id: str, world: World, money: Money, output: Callable[[Seen], float]
) -> float:
    """Million tokens that one deployment gives in a month of the situation's mix, all of which it serves."""
    used, function = prepared((eq.output_of_up(),))
    known = {m.output_rate: output_of_mix(case, cluster_id, world, output), m.busy_share: case.utilisation,
             m.up_share: money.availability}  # fmt: skip
    return float(function(*(known[symbol] for symbol in used))[0])


def output_of_mix(case: Decision, cluster_id: str, world: World, output: Callable[[Seen], float]) -> float:
    """What one deployment that is always busy gives of the situation's mix, all of which it serves. Unit: tok/s."""
    return 1 / sum(share / output(seen) for name, share in case.shares.items()
                   if (seen := _speed(world.entries[cluster_id, name], world)))  # fmt: skip


def _month(money: Money, count: int) -> Range:
    return total([times(money.monthly_cny, count), money.shared_cny])


def _per_mtok(monthly: Range, case: Decision) -> Range:
    return times(monthly, 1 / (case.mtok_per_day * DAYS_PER_MONTH))


def alike(choice: str, other: str) -> bool:
    """Whether two choices are one for a reader: the same model is called, wherever its host stands."""
    return choice.partition("@")[0] == other.partition("@")[0]


def _flips(plain: Advice, world: World) -> Iterator[Flip]:
    """Changes of one thing each that give another choice."""
    case = plain.case
    changes: list[tuple[str, str | float, Decision, World]] = [
        ("data_stays", other := "no" if case.data_stays == "yes" else "yes",
         case.model_copy(update={"data_stays": other}), world),
        ("region", there := "other" if case.region == "cn" else "cn",
         case.model_copy(update={"region": there}), world),
        ("goals", "none", case, replace(world, goals=False)),
        ("licences", "none", case, replace(world, licences=False)),
        *(("budget_cny", one.needs_cny, case.model_copy(update={"budget_cny": one.needs_cny}), world)
          for one in sorted(plain.refused, key=lambda one: one.needs_cny) if one.rule == "budget"),
    ]  # fmt: skip
    seen: set[tuple[str, str]] = set()
    for what, to, changed, there_world in changes:
        choice = decide(changed, there_world).choice
        if choice != NONE and not alike(choice, plain.choice) and (what, choice) not in seen:
            seen.add((what, choice))
            yield Flip(what, to, choice)
    for way in (1 / STEP, STEP):
        flip = _volume(plain, world, way)
        if flip:
            yield flip


def _volume(plain: Advice, world: World, way: float) -> Flip | None:
    """The nearest volume, above or below, at which another way is chosen."""

    def choice(volume: float) -> str:
        return decide(plain.case.model_copy(update={"mtok_per_day": volume}), world).choice

    start = plain.case.mtok_per_day
    same, other = start, start * way
    while alike(choice(other), plain.choice):
        same, other = other, other * way
        if not start / FARTHEST < other < start * FARTHEST:
            return None
    while max(same, other) / min(same, other) > NEAR:
        middle = math.sqrt(same * other)
        same, other = (middle, other) if alike(choice(middle), plain.choice) else (same, middle)
    found = choice(other)
    return None if found == NONE else Flip("mtok_per_day", other, found)
