"""Costs in words: ways to serve, what is cheaper for what, and what the draws say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from k3lib.choose.bills import status
from k3lib.choose.costed import Costs, Full
from k3lib.cost.api import api_cost_cny
from k3lib.cost.options import DECLINE, SPEED
from k3lib.cost.own import Ownership
from k3lib.cost.rent import CLASSES
from k3lib.cost.sensitive import Bar, Index
from k3lib.cost.uncertain import Simulation
from k3lib.cost.worth import Worth
from k3lib.facts.clusters import NamedCluster
from k3lib.ranges import Range, point, total
from k3lib.report import advice, alternatives
from k3lib.report.compare import listed
from k3lib.report.trail import Html
from k3lib.units import HOURS_PER_MONTH, number

MODELS = {**advice.MODELS, "k31-pro-highspeed": "Kimi K3.1 Pro, the faster service"}
HOSTS = {**alternatives.HOSTS, **advice.HOSTS, "alibaba-cn": "Alibaba in China", "comet": "Comet"}
LOSS, PER_CENT = "a loss", 100
PLACES = {"coast": "China, coast", "west": "China, west", "abroad": "abroad"}
# Lines whose count is an amount rather than a number.
AMOUNTS = ("memory", "storage", "bandwidth")
# Parts of a month that readers tell apart, by line of the bill.
PARTS = {
    "the servers": ("servers",),
    "the rest of what is bought": ("network-cards", "switches", "optics", "memory", "storage", "cabinets", "spares",
                                   "freight", "tax", "integration", "cooling", "porting"),
    "power and place": ("electricity", "housing"),
    "maintenance and software": ("maintenance", "software", "bandwidth", "changes"),
    "people and audits": ("staff", "monitoring", "compliance"),
}  # fmt: skip


def service_words(name: str) -> str:
    """A service, as MODEL@HOST, in words."""
    model, _, host = name.partition("@")
    return f"{MODELS.get(model, model)} at {HOSTS.get(host, host)}"


def way_words(way: str, clusters: Mapping[str, NamedCluster]) -> str:
    """A way to get tokens in words: own:CLUSTER, rent:CLUSTER:CLASS or api:MODEL@HOST."""
    kind, name, *more = way.split(":")
    if kind == "api":
        return service_words(name) + (", in batches" if more else "")
    return f"{kind} {clusters[name].short}" + (f", {CLASSES[more[0]]}" if more else "")


def parts_of(held: Ownership) -> dict[str, Range]:
    """A month of a cluster by PARTS, in CNY."""
    return {part: total(line.monthly_cny for line in held.lines if line.name in names) for part, names in PARTS.items()}


def shares_of(held: Ownership) -> dict[str, float]:
    """Shares of the month, at the values: what is bought, people, power and place."""
    parts = {name: part.value / held.monthly_cny.value for name, part in parts_of(held).items()}
    bought = parts["the servers"] + parts["the rest of what is bought"]
    return {"bought": bought, "people": parts["people and audits"], "power": parts["power and place"]}


def operations_shares(held: Ownership) -> dict[str, float]:
    """Staff, maintenance and spares over a month of what is bought, at the values: with people and without."""
    goods = sum(line.monthly_cny.value for line in held.lines if line.kind == "capex" and line.name != "spares")
    people = sum(line.monthly_cny.value for line in held.lines if line.name in ("staff", "monitoring"))
    rest = sum(line.monthly_cny.value for line in held.lines if line.name in ("maintenance", "spares"))
    return {"all": (people + rest) / goods, "without people": rest / goods}


def card_hour_usd(held: Ownership, cny_per_usd: Range, *, people: bool) -> Range:
    """A month by the card and hour, in dollars; without people, watching and audits where `people` is false."""
    month, less = held.monthly_cny, parts_of(held)["people and audits"]
    off = point(0.0) if people else less
    hours = held.bill.cluster.cards * HOURS_PER_MONTH
    return Range((month.value - off.value) / hours / cny_per_usd.value,
                 (month.low - off.low) / hours / cny_per_usd.high,
                 (month.high - off.high) / hours / cny_per_usd.low)  # fmt: skip


def card_hour_words(held: Ownership, cny_per_usd: Range, published: float) -> str:
    """A card's hour of one's own beside a published figure that names no people, as a sentence."""
    whole, bare = (card_hour_usd(held, cny_per_usd, people=people) for people in (True, False))
    shown = [f"{number(x.value, ',.2f')} ({number(x.low, ',.2f')} to {number(x.high, ',.2f')})" for x in (whole, bare)]
    gap = number((bare.value / published - 1) * PER_CENT, "+.0f")
    return (f"Ours for {held.bill.cluster.short} is {shown[0]} with all people, and {shown[1]} without people, "
            f"watching and audits, which that figure does not name: {gap} %.")  # fmt: skip


def load_words(full: Full | None) -> str:
    """With how many clients a cluster's full load is taken."""
    if full is None:
        return "does not fit"
    return f"{full.clients:,} client{'' if full.clients == 1 else 's'}" + ("" if full.within else "*")


def cheaper(costs: Costs, held: Ownership | None, service: str) -> list[str]:
    """Labels of the workloads whose tokens a cluster gives for less than a service asks, at the values."""
    found = []
    for name, workload in costs.scene.workloads.items():
        unit = costs.unit(held, name) if held else None
        asked = api_cost_cny(costs.mix(name), costs.offers[service])
        if unit and unit.per_mtok_output.value < asked.value:
            found.append(workload.label)
    return found


def cheaper_words(costs: Costs, rows: Sequence[NamedCluster], service: str) -> str:
    """One sentence: for what clusters of one's own are cheaper by the token than a service."""
    parts: list[str] = []
    for row in rows:
        found = cheaper(costs, costs.owned.get(row.cluster_id), service)
        every = len(found) == len(costs.scene.workloads)
        what = "every workload" if every else listed(found) or "no workload"
        parts.append(f"owning {row.short} is cheaper than {'it' if parts else service_words(service)} for {what}")
    return f"By the token, {'; '.join(parts)}."


def firsts_words(runs: Mapping[str, Simulation], costs: Costs, among: Mapping[str, Sequence[str]]) -> str:
    """The way that is cheapest most often, of all that are named, with the workloads that it is this for."""
    clusters = {row.cluster_id: row for row in costs.scene.clusters}
    found: dict[str, list[str]] = {}
    for name, run in runs.items():
        shares = run.cheapest_of(among[name])
        best = max(shares, key=lambda way: shares[way])
        found.setdefault(way_words(best, clusters), []).append(costs.scene.workloads[name].label)
    return "; ".join(f"{way} for {listed(labels)}" for way, labels in found.items())


def indices_words(indices: Sequence[Index], most: int = 3) -> str:
    """What makes the spread of a cost, the largest parts first."""
    return listed([f"{short_words(one.key, one.words)} ({one.total:.0%})" for one in indices[:most]])


def short_words(key: str, words: str) -> str:
    """An input's words without what explains them."""
    if key.startswith(SPEED):
        return "speed under full load"
    if key == DECLINE:
        return "the fall of the service's price"
    head, _, rest = words.partition(": ")
    amount = "amount" if key.rpartition(".")[2] in AMOUNTS else "number"
    kinds = {"price": f"price of {rest}", "how much": f"{amount} of {rest}"}
    return kinds.get(head, head)


def unit_words(bar: Bar) -> str:
    """The unit of an input; of a bare number whether it is a share."""
    if bar.unit != "1":
        return bar.unit
    return "a share" if bar.high <= 1 else "a number"


def plain(value: float) -> str:
    """A number of any size, without an exponent."""
    return number(value, ",.0f" if abs(value) >= PER_CENT else ",.3g")


def default_words(name: str, default: float, drawn: Range) -> str:
    """Where the median of the draws of a cluster lies beside its default."""
    gap = drawn.value / default - 1
    side = "above" if gap > 0 else "below"
    return (f"On {name} the median of the draws is {number(drawn.value, ',.0f')} ({number(drawn.low, ',.0f')} to "
            f"{number(drawn.high, ',.0f')}) yuan, {abs(gap):.0%} {side} the default bill's "
            f"{number(default, ',.0f')}.")  # fmt: skip


def status_words(costs: Costs) -> str:
    """What a buyer in the region must know of clusters that can be had there only under a licence, or later."""
    parts = []
    for state, words in (("licence", "under an export licence only"), ("announced", "announced, not yet delivered")):
        names = [row.short for row in costs.scene.clusters
                 if status(row)[row.cluster_id, costs.region].status == state]  # fmt: skip
        if names:
            parts.append(f"{words}: {listed(names)}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if parts else "All of them can be had freely."


def interest_cell(found: Worth) -> Html:
    """The yearly interest that owning earns, for a table in per cent, or that it loses money."""
    ends = [
        LOSS if x is None else number(x * PER_CENT, ",.0f") for x in (found.irr_value, found.irr_low, found.irr_high)
    ]
    return Html(ends[0] if ends[0] == ends[1] == ends[2] else f"{ends[0]}<br><small>{ends[1]} to {ends[2]}</small>")
