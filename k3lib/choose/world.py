"""All that a choice rests on, for a scenario: results of every workload, who may buy what, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from k3lib.choose.recommend import Money, World
from k3lib.choose.scene import Scene
from k3lib.cost.api import offers
from k3lib.cost.bill import SHARED
from k3lib.cost.choice import Choice
from k3lib.cost.own import Ownership, own
from k3lib.cost.rent import rentals
from k3lib.errors import NoPriceError
from k3lib.facts.clusters import Availability, NamedCluster, Region, availability, clusters
from k3lib.facts.planned import alike
from k3lib.facts.prices import Price
from k3lib.ranges import Range, point

# Where the power of a cluster in a region comes from, if not told.
POWER_FROM: dict[Region, str] = {"cn": "coast", "other": "abroad"}
# Services that stand for calling: the maker's own, of the model and of the one that followed it.
MAKERS = ("k3@moonshot-cn", "k31-pro@moonshot-cn", "k3@moonshot", "k31-pro@moonshot")


def world(scene: Scene, prices: Mapping[str, Price] | None = None) -> World:
    """The world of a scenario. prices: if not the project's."""
    owned: dict[tuple[str, Region], Money] = {}
    rented: dict[tuple[str, Region], Money] = {}
    for row in scene.clusters:
        for region, power in POWER_FROM.items():
            if status(row)[row.cluster_id, region].status == "no":
                continue
            choice = Choice(region=power)
            try:
                owned[row.cluster_id, region] = _money(own(row, prices, choice))
            except NoPriceError:
                continue
            let = [_money(one) for one in rentals(row, prices, choice).values()]
            if let:
                rented[row.cluster_id, region] = min(let, key=lambda money: money.monthly_cny.value)
    known = {key: value for row in scene.clusters for key, value in status(row).items()}
    makers = {name: one for name, one in offers(prices).items() if name in MAKERS}
    entries = {(row.cluster_id, name): scene.entry(row, name) for row in scene.clusters for name in scene.workloads}
    return World(entries, scene.workloads, known, owned, rented, makers)


def status(row: NamedCluster) -> dict[tuple[str, Region], Availability]:
    """Who may have a cluster, by (cluster, region); of one that a reader planned, as of the same cards."""
    if row.cluster_id in clusters():
        return {key: value for key, value in availability().items() if key[0] == row.cluster_id}
    like = alike(row.device)
    found: dict[tuple[str, Region], Availability] = {}
    for region in POWER_FROM:
        known = availability()[like.cluster_id, region] if like else _unknown(row, region)
        found[row.cluster_id, region] = known.model_copy(update={"cluster_id": row.cluster_id})
    return found


def _unknown(row: NamedCluster, region: Region) -> Availability:
    return Availability(cluster_id=row.cluster_id, region=region, status="no", as_of="2026-11", grade="assumed",
                        source_id="k3lib_assumed", note="not looked into")  # fmt: skip


def _money(held: Ownership) -> Money:
    shared = _sum(line.monthly_cny for line in held.lines if line.name in SHARED)
    rest = Range(*(getattr(held.monthly_cny, end) - getattr(shared, end) for end in ("value", "low", "high")))
    return Money(held.capex_cny, rest, shared, held.sources)


def _sum(parts: Iterable[Range]) -> Range:
    total = point(0.0)
    for one in parts:
        total = Range(total.value + one.value, total.low + one.low, total.high + one.high)
    return total
