"""Clusters that the book compares, by a name: what they are, what is known of each whole, and who may buy one."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from k3lib.errors import InputError, near
from k3lib.facts.catalog import AsOf, Measure, Sourced, checked, devices, sources
from k3lib.facts.paths import DATA, shown
from k3lib.facts.tables import Grade, Identifier, OptionalCount, OptionalNumber, Text, load_rows
from k3lib.units import BITS_PER_BYTE, UNITS

Region = Literal["cn", "other"]
REGIONS: tuple[Region, ...] = ("cn", "other")
SHAPE = re.compile(r"([1-9]\d*)x([1-9]\d*)x(\S+)")
# What may be known of a whole cluster, and a unit that shows its dimension.
CLUSTER_QUANTITIES = {
    "power": "kW",
    "host_memory": "TB",
    "pcie_unidirectional": "GB/s",
    "all_to_all_us": "us",
    "r1_prefill_per_card": "tok/s",
    "r1_decode_per_card": "tok/s",
    "k3_output": "tok/s",
    "k3_total": "tok/s",
    "fewest_cards": "cards",
}


class NamedCluster(Sourced):
    """A cluster that readers ask about. label, short: in words, and as a figure has it.

    shape: NODESxCARDSxDEVICE, as `k3lib.engines.layout.parse_cluster` reads it. domain_cards: cards that reach each
    other without the network. nics, nic_gbit: network cards of a node and the Gb/s of each, both empty where it is not
    public. evidence: whether K3's speed was measured on this very card, on a card that runs the same kernels, or not.
    """

    cluster_id: Identifier
    label: Text
    short: Text
    shape: Annotated[str, Field(pattern=rf"^{SHAPE.pattern}$")]
    kind: Literal["servers", "superpod", "hypothetical"]
    domain_cards: Annotated[int, Field(ge=1)]
    nics: OptionalCount = None
    nic_gbit: OptionalNumber = None
    evidence: Literal["measured", "kin", "none"]
    note: str = ""

    @model_validator(mode="after")
    def _sound(self) -> NamedCluster:
        if self.domain_cards > self.cards:
            raise ValueError(f"domain_cards {self.domain_cards} is more than the {self.cards} cards of {self.shape}")
        if self.kind == "servers" and self.domain_cards != self.cards_per_node:
            raise ValueError(f"domain_cards {self.domain_cards}: of servers it is the server, {self.cards_per_node}")
        if bool(self.nics) != bool(self.nic_gbit):
            raise ValueError("nics and nic_gbit must both be above 0, or both be empty")
        return self

    @property
    def _parts(self) -> tuple[str, str, str]:
        nodes, cards, device = SHAPE.fullmatch(self.shape).groups()  # type: ignore[union-attr]  # its pattern
        return nodes, cards, device

    @property
    def nodes(self) -> int:
        """Servers, or trays of a rack."""
        return int(self._parts[0])

    @property
    def cards_per_node(self) -> int:
        """Cards of one node."""
        return int(self._parts[1])

    @property
    def device(self) -> str:
        """The card, by its name in data/hardware.csv."""
        return self._parts[2]

    @property
    def cards(self) -> int:
        """All cards."""
        return self.nodes * self.cards_per_node

    @property
    def network_gbs(self) -> float | None:
        """A card's share of its node's network one way, in GB/s; None where it is not public."""
        if not self.nics or not self.nic_gbit:
            return None
        return self.nics * self.nic_gbit / BITS_PER_BYTE / self.cards_per_node


class ClusterFact(Measure):
    """One thing known of a whole cluster.

    power: of the computers under load, in kW; buildings and cooling apart. host_memory: of all processors together.
    pcie_unidirectional: between a card and its processor. all_to_all_us: sending the tokens of one expert layer there
    and back, 128 tokens a card, experts over all cards. r1_...: DeepSeek-R1, of one card. k3_...: Kimi K3, of the whole
    cluster. fewest_cards: of this card, on which somebody says that K3 ran.
    """

    cluster: Identifier
    quantity: Identifier

    @model_validator(mode="after")
    def _of_its_kind(self) -> ClusterFact:
        if self.quantity not in CLUSTER_QUANTITIES:
            raise ValueError(f"quantity '{self.quantity}' is not known. {near(self.quantity, CLUSTER_QUANTITIES)}")
        wanted = CLUSTER_QUANTITIES[self.quantity]
        if UNITS[self.unit].dimension != UNITS[wanted].dimension:
            raise ValueError(f"unit '{self.unit}' does not fit {self.quantity}. Write it in {wanted}.")
        return self


class Availability(Sourced):
    """Whether a cluster's cards can lawfully be had in a region. cn: mainland China; other: elsewhere.

    licence: sold only under an export licence. announced: not yet delivered.
    """

    cluster_id: Identifier
    region: Region
    status: Literal["yes", "licence", "announced", "no"]
    as_of: AsOf
    grade: Grade
    note: str = ""


@lru_cache(maxsize=8)
def clusters(data: Path = DATA) -> dict[str, NamedCluster]:
    """Named clusters by id, in the order of the table. Raises InputError for a card that data/hardware.csv lacks."""
    path = data / "clusters.csv"
    rows = checked(path, load_rows(path, NamedCluster, ["cluster_id"]), sources(data))
    known = {device for device, _ in devices(data)}
    for row in rows:
        if row.device not in known:
            raise InputError(
                f"{shown(path)} ({row.cluster_id}): device '{row.device}' is not in data/hardware.csv. "
                f"{near(row.device, known)}"
            )
    return {row.cluster_id: row for row in rows}


def cluster(name: str, data: Path = DATA) -> NamedCluster:
    """A cluster by name. Raises InputError with the near name."""
    if name not in clusters(data):
        raise InputError(f"cluster '{name}' is not known. {near(name, clusters(data))}")
    return clusters(data)[name]


def _known_cluster(path: Path, name: str, data: Path) -> None:
    if name not in clusters(data):
        raise InputError(
            f"{shown(path)} ({name}): cluster '{name}' is not in data/clusters.csv. {near(name, clusters(data))}"
        )


@lru_cache(maxsize=8)
def cluster_facts(data: Path = DATA) -> dict[tuple[str, str], ClusterFact]:
    """What is known of whole clusters, by (cluster, quantity)."""
    path = data / "cluster_facts.csv"
    rows = checked(path, load_rows(path, ClusterFact, ["cluster", "quantity"]), sources(data))
    for row in rows:
        _known_cluster(path, row.cluster, data)
    return {(row.cluster, row.quantity): row for row in rows}


def cluster_fact(name: str, quantity: str, data: Path = DATA) -> ClusterFact:
    """One thing known of a cluster. Raises InputError with the near name where it is not known."""
    table = cluster_facts(data)
    cluster(name, data)
    if (name, quantity) not in table:
        known = {q for c, q in table if c == name}
        raise InputError(f"data/cluster_facts.csv has no '{quantity}' for {name}. {near(quantity, known)}")
    return table[name, quantity]


@lru_cache(maxsize=8)
def availability(data: Path = DATA) -> dict[tuple[str, Region], Availability]:
    """Who may have which cluster, by (cluster, region). Raises InputError unless each cluster has every region."""
    path = data / "availability.csv"
    rows = checked(path, load_rows(path, Availability, ["cluster_id", "region"]), sources(data))
    for row in rows:
        _known_cluster(path, row.cluster_id, data)
    table = {(row.cluster_id, row.region): row for row in rows}
    for name in clusters(data):
        for region in REGIONS:
            if (name, region) not in table:
                raise InputError(f"{shown(path)} ({name}): region '{region}' is missing. Add its row.")
    return table
