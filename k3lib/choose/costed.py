"""What the clusters of a scenario cost, bought and rented, and what a workload's tokens cost on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from k3lib.account import money_symbols as m
from k3lib.choose.bills import POWER_FROM, SERVICES, Bills, bills, may_be_had
from k3lib.choose.scene import Scene
from k3lib.choose.study import Entry, Seen
from k3lib.cost.api import Mix, Offer, mix_of, offers
from k3lib.cost.bill import GENERAL
from k3lib.cost.choice import Choice
from k3lib.cost.options import Option, cluster_option, service_option
from k3lib.cost.own import Ownership
from k3lib.cost.unit import UnitCost, unit_cost
from k3lib.errors import InputError
from k3lib.facts.clusters import NamedCluster, Region
from k3lib.facts.prices import Price, price
from k3lib.ranges import Range
from k3lib.units import convert

UTILISATION = GENERAL[m.busy_share]
# Workloads that wait for nobody, to which a service gives its price of batches.
BATCHES = ("offline-batch",)


@dataclass(frozen=True)
class Full:
    """What a cluster gives on a workload under full load.

    within: at the most clients that get what the goals ask; else, where not one does, at the workload's own number.
    """

    seen: Seen
    clients: int
    layout: str
    within: bool


def full_load(entry: Entry) -> Full | None:
    """The speed that costs are counted with; None where the workload cannot be served."""
    if entry.most is not None:
        return Full(entry.most, entry.most_clients, entry.most_layout, True)
    if entry.seen is not None:
        return Full(entry.seen, entry.clients, entry.layout, False)
    return None


@dataclass(frozen=True)
class Costs:
    """Bills of a scenario. owned: by cluster; rented: by cluster and class; a cluster without a price is in neither.

    Of a cluster that may be had in the region, the bill is of the region; of others, of where they may be had.
    utilisation: as stated, with the range that draws take it from.
    """

    scene: Scene
    region: Region
    table: Mapping[str, Price]
    choice: Choice
    utilisation: Range
    owned: Mapping[str, Ownership]
    rented: Mapping[str, Mapping[str, Ownership]]
    offers: Mapping[str, Offer]

    @property
    def services(self) -> tuple[str, str]:
        """The maker's services that stand for calling, of K3.1 Pro first."""
        return SERVICES[self.region]

    def there(self, row: NamedCluster) -> bool:
        """Whether a cluster may be had in the region, be it under a licence or announced."""
        return may_be_had(row, self.region)

    @cached_property
    def pair(self) -> tuple[NamedCluster, NamedCluster]:
        """The plan and the superpod; where one has no price or serves nothing, another that has and does.

        Raises InputError where there are not two.
        """
        able = [row for row in self.scene.clusters if row.cluster_id in self.owned and self._serves(row)]
        wanted = (self.scene.plan, self.scene.superpod)
        spare = [row for row in able if row not in wanted]
        found = [row if row in able else spare.pop(0) if spare else None for row in wanted]
        if found[0] is None or found[1] is None:
            raise InputError("not two clusters with a published price serve a workload. Choose more cards.")
        return found[0], found[1]

    def _serves(self, row: NamedCluster) -> bool:
        return any(self.full(row.cluster_id, name) for name in self.scene.workloads)

    def first(self, row: NamedCluster) -> str:
        """The workload of which a cluster gives most output."""
        outputs = {name: full.seen.output_tps.value for name in self.scene.workloads
                   if (full := self.full(row.cluster_id, name))}  # fmt: skip
        return max(outputs, key=lambda name: outputs[name])

    def full(self, cluster_id: str, workload_id: str) -> Full | None:
        """What a cluster of the scenario gives on a workload under full load."""
        row = next(row for row in self.scene.clusters if row.cluster_id == cluster_id)
        return full_load(self.scene.entry(row, workload_id))

    def mix(self, workload_id: str) -> Mix:
        """Tokens of a workload's requests."""
        return mix_of(self.scene.workloads[workload_id])

    def unit(self, held: Ownership, workload_id: str) -> UnitCost | None:
        """What a workload's tokens cost on a cluster; None where it cannot be served."""
        full = self.full(held.cluster_id, workload_id)
        return unit_cost(held, full.seen.output_tps, self.mix(workload_id)) if full else None

    def cheapest_rent(self, cluster_id: str) -> tuple[str, Ownership] | None:
        """The class of rental with the cheapest month, and its bill."""
        return Bills(None, self.rented.get(cluster_id, {})).cheapest_rent

    def options(self, workload_id: str, only: Iterable[str] | None = None) -> tuple[Option, ...]:
        """Every way to a workload's tokens, its utilisation with its range: each cluster bought and let in its
        cheapest class, and the maker's services. only: names of ways, if not all.
        """
        found = []
        for row in self.scene.clusters:
            full, name = self.full(row.cluster_id, workload_id), row.cluster_id
            if full is None:
                continue
            ways = {f"own:{name}": self.owned[name]} if name in self.owned else {}
            rent = self.cheapest_rent(name)
            if rent is not None:
                ways[f"rent:{name}:{rent[0]}"] = rent[1]
            found += [cluster_option(way, held, full.seen.output_tps) for way, held in ways.items()]
        for service in self.services:
            for batch in (False, True) if workload_id in BATCHES else (False,):
                found.append(service_option(self.offers[service], self.table, batch=batch, choice=self.choice))
        wanted = None if only is None else set(only)
        return tuple(self._ranged(one) for one in found if wanted is None or one.name in wanted)

    def option(self, name: str, workload_id: str) -> Option | None:
        """One of these ways; None where it does not exist."""
        return next(iter(self.options(workload_id, [name])), None)

    def _ranged(self, option: Option) -> Option:
        if UTILISATION not in option.inputs:
            return option
        known = replace(option.inputs[UTILISATION], range=self.utilisation)
        return replace(option, inputs=MappingProxyType({**option.inputs, UTILISATION: known}))


def costs(
    scene: Scene, table: Mapping[str, Price], utilisation: float, region: Region = "cn", prices: str = "market"
) -> Costs:
    """The bills of a scenario. utilisation: as stated, from above 0 to 1. prices: of the market or of the articles."""
    held: dict[str, Bills] = {}
    for row in scene.clusters:
        power = POWER_FROM[region] if may_be_had(row, region) else None
        held[row.cluster_id] = bills(row, table, Choice(region=power, utilisation=utilisation, prices=prices))
    owned = {name: one.owned for name, one in held.items() if one.owned}
    item = price(UTILISATION, table)
    low, high = (float(convert(end, item.unit, "1")) for end in (item.low, item.high))
    spread = Range(utilisation, min(low, utilisation), max(high, utilisation))
    found = {name: one.rented for name, one in held.items() if one.rented}
    return Costs(scene, region, table, Choice(prices=prices), spread, owned, found, offers(table))
