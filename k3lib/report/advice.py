"""A choice in words: what to do, the number that decides it, the runner-up, and what would change it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from k3lib.choose.recommend import (
    DAYS_PER_MONTH,
    NONE,
    Advice,
    Flip,
    Option,
    Ranked,
    Refused,
    World,
    decide,
    output_of_month,
)
from k3lib.evaluate import Array
from k3lib.facts.clusters import NamedCluster
from k3lib.facts.decisions import Decision
from k3lib.facts.workloads import Workload
from k3lib.ranges import Range, total
from k3lib.report.compare import STATUS_WORDS
from k3lib.units import MEGA, number

MODELS = {"k3": "Kimi K3", "k31-pro": "Kimi K3.1 Pro"}
HOSTS = {"moonshot-cn": "Moonshot in China", "moonshot": "Moonshot"}
VERBS = {"own": "buy", "rent": "rent", "api": "call"}
RULE_WORDS = {
    "region": "cannot be had there",
    "data": "texts would leave the house",
    "goals": "no client gets what the goals ask",
    "price": "nobody published a price",
    "budget": "beyond the budget",
}
REGIONS = {"cn": "in China", "other": "outside China"}
FINE = 10  # below so many of a unit one more digit is shown


def option_words(option: Option, clusters: Mapping[str, NamedCluster]) -> str:
    """A way to serve in words, without its verb."""
    if option.kind == "api":
        model, _, host = option.name.partition("@")
        return f"{MODELS.get(model, model)} at {HOSTS.get(host, host)}"
    return clusters[option.name].short


def parsed(choice: str) -> Option | None:
    """The option that a choice names; None for none."""
    kind, _, name = choice.partition(":")
    return None if choice == NONE else Option(kind, name)  # type: ignore[arg-type]  # written by str(Option)


def choice_words(choice: str, clusters: Mapping[str, NamedCluster], deployments: int = 1) -> str:
    """A choice as an instruction."""
    option = parsed(choice)
    if option is None:
        return "nothing that is known"
    times = f"{deployments} times " if deployments > 1 else ""
    return f"{VERBS[option.kind]} {times}{option_words(option, clusters)}"


def million(amount: float) -> str:
    """An amount of yuan in millions, as short as it can be told apart."""
    value = amount / MEGA
    return number(value, ",.2f" if value < FINE else ",.0f")


def month(cost: Range) -> str:
    """A monthly cost with its range in millions of yuan."""
    return f"{million(cost.value)} ({million(cost.low)} to {million(cost.high)}) million yuan a month"


def why(advice: Advice, clusters: Mapping[str, NamedCluster]) -> str:
    """The number that decides: the distance to the runner-up, or the rule that leaves one way only."""
    if not advice.ranked:
        return f"No way is left: {by_rule(advice)}."
    first = advice.ranked[0]
    cost = f"It costs {month(first.monthly_cny)}"
    if len(advice.ranked) == 1:
        return f"{cost} and is the only way that the rules leave: {by_rule(advice)}."
    second = advice.ranked[1]
    less = 1 - first.monthly_cny.value / second.monthly_cny.value
    name = choice_words(str(second.option), clusters, second.deployments)
    order = "over the whole of both ranges" if advice.settled else "but the ranges overlap"
    return f"{cost}, {less:.0%} less than the runner-up ({name}), {order}."


def by_rule(advice: Advice) -> str:
    """How many ways each rule took."""
    counts: dict[str, int] = {}
    for one in advice.refused:
        counts[one.rule] = counts.get(one.rule, 0) + 1
    return "; ".join(f"{count} {RULE_WORDS[rule]}" for rule, count in counts.items())


def refusal(one: Refused, advice: Advice, world: World) -> str:
    """Why a way is ruled out, with the number that decides it."""
    if one.rule == "region":
        return f"{STATUS_WORDS[one.reason]} {REGIONS[advice.case.region]}"
    if one.rule == "goals":
        label = world.workloads[one.workload].label
        return f"{label}: {one.reason or RULE_WORDS['goals']}"
    if one.rule == "budget":
        return f"needs {million(one.needs_cny)} million yuan at once"
    return RULE_WORDS[one.rule]


def caveats(one: Ranked) -> str:
    """What a reader must know of a way that serves."""
    found = []
    if one.licence:
        found.append("needs an export licence")
    if not one.sure:
        found.append("at the slow end of the range more of them are needed")
    return "; ".join(found)


def flip_words(flip: Flip, advice: Advice, clusters: Mapping[str, NamedCluster]) -> str:
    """A change and what would then be chosen."""
    return f"{_change(flip, advice)}: {choice_words(flip.choice, clusters)}"


def _change(flip: Flip, advice: Advice) -> str:
    if flip.what == "data_stays":
        return "if texts may leave the house" if flip.to == "no" else "if texts must stay in the house"
    if flip.what == "region":
        return f"if it stands {REGIONS[str(flip.to)]}"
    if flip.what == "goals":
        return "if slower answers than the goals will do"
    if flip.what == "licences":
        return "if no export licence is granted"
    if flip.what == "budget_cny":
        return f"if {million(float(flip.to))} million yuan may be invested"
    value = float(flip.to)
    side = "above" if value > advice.case.mtok_per_day else "below"
    return f"{side} {number(value, ',.1f' if value < FINE else ',.0f')} million tokens of output a day"


def flip_rows(advice: Advice, clusters: Mapping[str, NamedCluster]) -> list[tuple[str, str]]:
    """Changes and what would then be chosen; one row that says so where there are none."""
    rows = [(_change(flip, advice), choice_words(flip.choice, clusters)) for flip in advice.flips]
    return rows or [("nothing that was tried", "the same")]


def flips_words(advice: Advice, clusters: Mapping[str, NamedCluster]) -> str:
    """All changes in one line; what is said where there is none."""
    return "; ".join(flip_words(flip, advice, clusters) for flip in advice.flips) or "nothing that was tried"


def case_words(case: Decision, workloads: Mapping[str, Workload]) -> str:
    """A situation in numbers."""
    stays = "texts must stay in the house" if case.data_stays == "yes" else "texts may leave the house"
    mix = ", ".join(f"{share:.0%} {workloads[name].label}" for name, share in case.shares.items())
    volume = number(case.mtok_per_day, ",.0f" if case.mtok_per_day >= FINE else ",.1f")
    return (f"{REGIONS[case.region]}, {stays}, {volume} million tokens of output a day, {mix}, busy "
            f"{case.utilisation:.0%} of the time, {million(case.budget_cny)} million yuan to invest")  # fmt: skip


def sources(advice: Advice, world: World) -> list[str]:
    """What a choice rests on: the situation, the speeds of its workloads, and the prices of what was ranked."""
    found = of_situation(advice.case, world)
    for one in advice.ranked:
        found += of_way(one.option, advice.case, world)
    return list(dict.fromkeys(found))


def of_situation(case: Decision, world: World) -> list[str]:
    """Sources of a situation and its workloads."""
    return [*case.source_ids, *(s for name in case.shares for s in world.workloads[name].sources)]


def of_way(option: Option, case: Decision, world: World) -> list[str]:
    """Sources of a way's price and of its speeds, in a situation in which it can be counted."""
    if option.kind == "api":
        return list(world.apis[option.name].sources)
    money = (world.owned if option.kind == "own" else world.rented)[option.name, case.region]
    return [*money.sources, *(s for name in case.shares for s in world.entries[option.name, name].sources)]


def month_by_volume(case: Decision, world: World, volumes: Array) -> dict[str, Array]:
    """What each way costs a month in CNY, by million tokens a day; ways that no volume allows are left out.

    The rules on data and budget do not count here: the figure shows what they cost.
    """
    free = case.model_copy(update={"data_stays": "no", "budget_cny": math.inf})
    found: dict[str, Array] = {}
    for at, volume in enumerate(volumes):
        for one in decide(free.model_copy(update={"mtok_per_day": float(volume)}), world).ranked:
            found.setdefault(str(one.option), np.full(len(volumes), np.nan))[at] = one.monthly_cny.value
    return found


def by_hand(case: Decision, world: World, plan: NamedCluster) -> str:
    """The chapter's check in words: the cheapest service against one deployment of the plan."""
    free = case.model_copy(update={"data_stays": "no", "budget_cny": math.inf})
    api = next(one for one in decide(free, world).ranked if one.option.kind == "api")
    money = world.owned.get((plan.cluster_id, case.region))
    asked = (f"The cheapest service asks {api.cny_per_mtok.value:,.0f} yuan for a million tokens, which makes "
             f"{million(api.monthly_cny.value)} million yuan a month.")  # fmt: skip
    if money is None:
        return f"{asked} {plan.short}: no price {REGIONS[case.region]} was published."
    own = total([money.monthly_cny, money.shared_cny])
    asked += f" {plan.short} cost {million(own.value)} million yuan a month, however little they do."
    volume = own.value / api.cny_per_mtok.value / DAYS_PER_MONTH
    if not all(world.entries[plan.cluster_id, name].most for name in case.shares):
        return f"{asked} They do not serve all of the work within its goals, so no volume makes them pay."
    most = output_of_month(case, plan.cluster_id, world, money, lambda seen: seen.output_tps.value) / DAYS_PER_MONTH
    return (f"{asked} They would pay from {volume:,.0f} million tokens a day; within the goals they give at most "
            f"{number(most, ',.0f' if most >= FINE else ',.1f')}.")  # fmt: skip


def worth_drawing(curves: Mapping[str, Array], allowed: Collection[str], always: Iterable[str]) -> list[str]:
    """Of costs by volume those that are cheapest somewhere, of all and of the allowed, and what is always drawn."""
    picked = [name for name in always if name in curves]
    for names in ([*curves], [name for name in curves if name in allowed]):
        if names:
            table = np.array([np.where(np.isnan(curves[name]), np.inf, curves[name]) for name in names])
            picked += [names[at] for at in table.argmin(axis=0)]
    return list(dict.fromkeys(picked))
