"""Who may have a cluster in a region, and what it costs there: bought, and let in every class."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from k3lib.cost.choice import Choice
from k3lib.cost.own import Ownership, own
from k3lib.cost.rent import rentals
from k3lib.errors import NoPriceError
from k3lib.facts.clusters import Availability, NamedCluster, Region, availability, clusters
from k3lib.facts.planned import alike
from k3lib.facts.prices import Price

# Where the power of a cluster in a region comes from, if not told.
POWER_FROM: dict[Region, str] = {"cn": "coast", "other": "abroad"}
# The maker's own services, of the model that followed and of the model itself, by where they are paid.
SERVICES: dict[Region, tuple[str, str]] = {
    "cn": ("k31-pro@moonshot-cn", "k3@moonshot-cn"),
    "other": ("k31-pro@moonshot", "k3@moonshot"),
}
MAKERS = tuple(name for names in SERVICES.values() for name in names)


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


def may_be_had(row: NamedCluster, region: Region) -> bool:
    """Whether a cluster may be had in a region, be it under a licence or announced."""
    return status(row)[row.cluster_id, region].status != "no"


@dataclass(frozen=True)
class Bills:
    """A cluster bought, None where nobody published a price, and let, by class."""

    owned: Ownership | None
    rented: Mapping[str, Ownership] = field(default_factory=dict)

    @property
    def cheapest_rent(self) -> tuple[str, Ownership] | None:
        """The class of rental with the cheapest month, and its bill."""
        return min(self.rented.items(), key=lambda one: one[1].monthly_cny.value) if self.rented else None


def bills(row: NamedCluster, table: Mapping[str, Price] | None, choice: Choice) -> Bills:
    """What a cluster costs. table: prices, if not the project's. choice: where, how and how busy."""
    owned: Ownership | None = None
    let: Mapping[str, Ownership] = {}
    with suppress(NoPriceError):
        owned = own(row, table, choice)
    with suppress(NoPriceError):
        let = rentals(row, table, choice)
    return Bills(owned, let)
