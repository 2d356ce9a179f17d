"""All that a choice rests on, for a scenario: results of every workload, who may buy what, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping

from k3lib.choose.bills import MAKERS, POWER_FROM, bills, may_be_had, status
from k3lib.choose.recommend import Money, World
from k3lib.choose.scene import Scene
from k3lib.cost.api import offers
from k3lib.cost.bill import SHARED
from k3lib.cost.choice import Choice
from k3lib.cost.own import Ownership
from k3lib.facts.clusters import Region
from k3lib.facts.prices import Price
from k3lib.ranges import total


def world(scene: Scene, prices: Mapping[str, Price] | None = None) -> World:
    """The world of a scenario. prices: if not the project's."""
    owned: dict[tuple[str, Region], Money] = {}
    rented: dict[tuple[str, Region], Money] = {}
    for row in scene.clusters:
        for region, power in POWER_FROM.items():
            if not may_be_had(row, region):
                continue
            found = bills(row, prices, Choice(region=power))
            if found.owned:
                owned[row.cluster_id, region] = _money(found.owned)
            if found.cheapest_rent:
                rented[row.cluster_id, region] = _money(found.cheapest_rent[1])
    known = {key: value for row in scene.clusters for key, value in status(row).items()}
    apis = {name: one for name, one in offers(prices).items() if name in MAKERS}
    entries = {(row.cluster_id, name): scene.entry(row, name) for row in scene.clusters for name in scene.workloads}
    return World(entries, scene.workloads, known, owned, rented, apis)


def _money(held: Ownership) -> Money:
    shared = total(line.monthly_cny for line in held.lines if line.name in SHARED)
    rest = total(line.monthly_cny for line in held.lines if line.name not in SHARED)
    return Money(held.capex_cny, rest, shared, held.availability.value, held.sources)
