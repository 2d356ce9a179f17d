"""Costs in words: ways to serve, what is cheaper for what, and what the draws say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from k3lib.choose.costed import Costs, Full
from k3lib.cost.api import api_cost_cny
from k3lib.cost.own import Ownership
from k3lib.cost.rent import CLASSES
from k3lib.cost.sensitive import Index
from k3lib.cost.uncertain import Simulation
from k3lib.facts.clusters import NamedCluster
from k3lib.ranges import Range
from k3lib.report import advice
from k3lib.report.advice import million
from k3lib.report.compare import listed
from k3lib.units import HOURS_PER_MONTH, number

MODELS = {**advice.MODELS, "k31-pro-highspeed": "Kimi K3.1 Pro, the faster service"}
HOSTS = {**advice.HOSTS, "openrouter": "OpenRouter", "together": "Together", "baseten": "Baseten", "novita": "Novita",
         "deepinfra": "DeepInfra", "siliconflow": "SiliconFlow", "alibaba-cn": "Alibaba in China",
         "fireworks": "Fireworks", "venice": "Venice", "comet": "Comet"}  # fmt: skip
PLACES = {"coast": "the coast of China", "west": "the west of China", "abroad": "outside China"}
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
    return {part: _sum(line.monthly_cny for line in held.lines if line.name in names) for part, names in PARTS.items()}


def shares_of(held: Ownership) -> dict[str, float]:
    """Shares of the month, at the values: what is bought, people, power and place."""
    parts = {name: part.value / held.monthly_cny.value for name, part in parts_of(held).items()}
    bought = parts["the servers"] + parts["the rest of what is bought"]
    return {"bought": bought, "people": parts["people and audits"], "power": parts["power and place"]}


def card_hour_usd(held: Ownership, cny_per_usd: Range, *, people: bool) -> Range:
    """A month by the card and hour, in dollars; without people, watching and audits where `people` is false."""
    month, less = held.monthly_cny, parts_of(held)["people and audits"]
    off = Range(0.0, 0.0, 0.0) if people else less
    hours = held.bill.cluster.cards * HOURS_PER_MONTH
    return Range((month.value - off.value) / hours / cny_per_usd.value,
                 (month.low - off.low) / hours / cny_per_usd.high,
                 (month.high - off.high) / hours / cny_per_usd.low)  # fmt: skip


def _sum(parts: Iterable[Range]) -> Range:
    value = low = high = 0.0
    for one in parts:
        value, low, high = value + one.value, low + one.low, high + one.high
    return Range(value, low, high)


def load_words(full: Full | None) -> str:
    """With how many clients a cluster's full load is taken."""
    if full is None:
        return "does not fit"
    return f"{full.clients:,} clients" + ("" if full.within else ", goals missed")


def cheaper(costs: Costs, held: Ownership | None, service: str) -> list[str]:
    """Labels of the workloads whose tokens a cluster gives for less than a service asks, at the values."""
    found = []
    for name, workload in costs.scene.workloads.items():
        unit = costs.unit(held, name) if held else None
        asked = api_cost_cny(costs.mix(name), costs.offers[service])
        if unit and unit.per_mtok_output.value < asked.value:
            found.append(workload.label)
    return found


def cheaper_words(costs: Costs, row: NamedCluster, service: str) -> str:
    """One sentence: where a cluster of one's own is cheaper by the token than a service."""
    held = costs.owned.get(row.cluster_id)
    asked = service_words(service)
    if held is None:
        return f"For {row.short} nobody published a price."
    found = cheaper(costs, held, service)
    if not found:
        return f"{row.short} of one's own are cheaper by the token than {asked} for no workload."
    if len(found) == len(costs.scene.workloads):
        return f"{row.short} of one's own are cheaper by the token than {asked} for every workload."
    return f"{row.short} of one's own are cheaper by the token than {asked} for {listed(found)} alone."


def both_words(costs: Costs, rows: Sequence[NamedCluster], service: str) -> str:
    """The same of several clusters."""
    return " ".join(cheaper_words(costs, row, service) for row in rows)


def first_words(run: Simulation, clusters: Mapping[str, NamedCluster], among: Sequence[str]) -> str:
    """The way that is cheapest most often, and how often."""
    shares = run.cheapest_of(among)
    best = max(shares, key=lambda name: shares[name])
    return f"{way_words(best, clusters)} in {shares[best]:.0%} of the draws"


def indices_words(indices: Sequence[Index], most: int = 3) -> str:
    """What makes the spread of a cost, the largest parts first."""
    parts = [f"{_short(one.words)} {one.total:.0%}" for one in indices[:most]]
    return listed(parts)


def _short(words: str) -> str:
    """What stands before a colon, unless it is only what kind of input it is."""
    head, _, rest = words.partition(": ")
    return rest if head in ("price", "how much") and rest else head


def default_words(default: float, drawn: Range) -> str:
    """Where the median of the draws lies beside the default."""
    gap = drawn.value / default - 1
    side = "above" if gap > 0 else "below"
    return (f"The median of the draws is {number(drawn.value, ',.0f')} ({number(drawn.low, ',.0f')} to "
            f"{number(drawn.high, ',.0f')}) yuan, {abs(gap):.0%} {side} the default bill's "
            f"{number(default, ',.0f')}.")  # fmt: skip


def sums_words(held: Ownership) -> str:
    """What a cluster costs at once and a month."""
    paid, month = held.capex_cny, held.monthly_cny
    return (f"{million(paid.value)} ({million(paid.low)} to {million(paid.high)}) million yuan at once and "
            f"{million(month.value)} ({million(month.low)} to {million(month.high)}) million yuan a month")  # fmt: skip
