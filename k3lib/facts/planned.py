"""The servers of a plan as a cluster beside the named ones."""

from __future__ import annotations

from k3lib.errors import InputError
from k3lib.facts.catalog import device_fact
from k3lib.facts.clusters import SHAPE, ClusterFact, NamedCluster, cluster_fact, cluster_facts, clusters

# Network cards of servers that a reader plans, on which the rate of the speed model was measured; faster ones count as
# several.
NIC_GBIT = 400


def planned(shape: str, nics: int) -> NamedCluster:
    """Servers of a plan: the named cluster of that shape and network, or one of its own.

    shape: NODESxCARDSxDEVICE. nics: network cards of a server, of 400 Gb/s each. Raises InputError for another shape or
    an unknown card.
    """
    parts = SHAPE.fullmatch(shape)
    if parts is None:
        raise InputError(f"cluster '{shape}' is not NODESxCARDSxDEVICE, as 4x8xh20-96")
    for row in clusters().values():
        if (row.shape, row.nics, row.nic_gbit) == (shape, nics, NIC_GBIT):
            return row
    nodes, cards, device = int(parts[1]), int(parts[2]), parts[3]
    like, domain = alike(device), round(device_fact(device, "scale_up_domain").value)
    return NamedCluster(
        cluster_id=f"{device}-{nodes}x{cards}-{nics}nic",
        label=f"{nodes} servers of {cards} {device} with {nics} network cards each",
        short=f"{nodes * cards} {device.upper()}",
        shape=shape,
        kind="servers" if domain <= cards else "superpod",
        domain_cards=cards if domain <= cards else min(domain, nodes * cards),
        nics=nics,
        nic_gbit=NIC_GBIT,
        evidence=like.evidence if like else "none",
        source_id=like.source_id if like else "k3lib_assumed",
    )


def alike(device: str) -> NamedCluster | None:
    """The first named cluster of a card."""
    return next((row for row in clusters().values() if row.device == device), None)


def priced_as(row: NamedCluster) -> tuple[NamedCluster, float] | None:
    """The named cluster whose prices stand for this one, and how many of it this one is.

    None where no named cluster has such cards.
    """
    if row.cluster_id in clusters():
        return row, 1.0
    like = alike(row.device)
    return (like, row.cards / like.cards) if like else None


def fact_of(row: NamedCluster, quantity: str) -> ClusterFact | None:
    """One thing known of a cluster; of one that a reader planned, that of the same cards by their number."""
    if row.cluster_id in clusters():
        return cluster_fact(row.cluster_id, quantity)
    like = alike(row.device)
    if like is None or (like.cluster_id, quantity) not in cluster_facts():
        return None
    known, share = cluster_fact(like.cluster_id, quantity), row.cards / like.cards
    ends = {name: None if (end := getattr(known, name)) is None else end * share for name in ("low", "high")}
    return known.model_copy(
        update={"cluster": row.cluster_id, "value": known.value * share, "grade": "assumed", **ends}
    )
