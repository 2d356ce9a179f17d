"""What a cluster costs is made of: for each line of the bill, the item of data/prices.csv and how many of it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from k3lib.errors import InputError, near
from k3lib.facts.catalog import Sourced, check_range, checked, sources
from k3lib.facts.clusters import clusters
from k3lib.facts.paths import DATA, shown
from k3lib.facts.prices import prices
from k3lib.facts.tables import Grade, Identifier, NonNegative, OptionalNumber, load_rows
from k3lib.ranges import Range

ANY = "any"  # a line that every cluster has, unless it has its own
# Lines of a bill in the order of a reader's table, and what they are called there.
LINES = {
    "servers": "servers with their cards",
    "network-cards": "network cards",
    "switches": "switches",
    "optics": "optics and cables",
    "memory": "main memory beyond the servers' own",
    "storage": "storage and file system",
    "cabinets": "cabinets and power strips",
    "spares": "spares",
    "freight": "freight",
    "tax": "tax on top",
    "integration": "integration and acceptance",
    "cooling": "cooling",
    "porting": "porting",
    "power": "rated power",
    "electricity": "electricity",
    "housing": "colocation or room",
    "maintenance": "maintenance",
    "software": "software support",
    "bandwidth": "internet bandwidth",
    "staff": "engineers",
    "monitoring": "watching around the clock",
    "compliance": "audits and security",
    "changes": "replacing the model by the next",
    "rent": "rent",
}
# What a row may depend on. place: mainland China or elsewhere. region: where the power comes from. prices: today's, or
# those that the articles state. class: of a rent.
OPTIONS = {
    "place": ("cn", "abroad"),
    "region": ("coast", "west", "abroad"),
    "housing": ("colocation", "room"),
    "fabric": ("ib", "roce"),
    "prices": ("market", "articles"),
    "class": ("bare_metal", "market", "reserved", "cloud_month", "cloud_hour"),
}
OptionText = Annotated[str, Field(pattern=r"^([a-z]+=[a-z_]+(;[a-z]+=[a-z_]+)*)?$")]


class ClusterPrice(Sourced):
    """One line of a cluster's bill.

    cluster: by its name in data/clusters.csv, or 'any'. count, low, high: how many, in what the unit of the item names
    (servers, GB, persons), of the whole cluster or of each node or card of it; 1 of an item that is a share, a power or
    a price of either. option: what must be chosen for the row to hold, as 'place=cn;housing=room'.
    """

    cluster: Identifier
    line: Identifier
    item_id: Identifier
    count: NonNegative
    low: OptionalNumber = None
    high: OptionalNumber = None
    per: Literal["cluster", "node", "card"]
    option: OptionText = ""
    grade: Grade
    note: str = ""

    @model_validator(mode="after")
    def _sound(self) -> ClusterPrice:
        check_range("count", self.count, self.low, self.high)
        if self.line not in LINES:
            raise ValueError(f"line '{self.line}' is not known. {near(self.line, LINES)}")
        for name, value in self.options.items():
            if name not in OPTIONS:
                raise ValueError(f"option '{name}' is not known. {near(name, OPTIONS)}")
            if value not in OPTIONS[name]:
                raise ValueError(f"option {name} = '{value}' is not known. {near(value, OPTIONS[name])}")
        return self

    @property
    def options(self) -> dict[str, str]:
        """What must be chosen, by name."""
        return dict(part.split("=", 1) for part in self.option.split(";") if part)

    @property
    def counted(self) -> Range:
        """How many, with the range."""
        low = self.count if self.low is None else self.low
        return Range(self.count, low, self.count if self.high is None else self.high)


@lru_cache(maxsize=8)
def cluster_prices(data: Path = DATA) -> tuple[ClusterPrice, ...]:
    """Every row. Raises InputError for a cluster or an item that its own table lacks."""
    path = data / "cluster_prices.csv"
    rows = checked(path, load_rows(path, ClusterPrice, ["cluster", "line", "item_id", "option"]), sources(data))
    known = {ANY, *clusters(data)}
    for row in rows:
        if row.cluster not in known:
            raise InputError(
                f"{shown(path)} ({row.cluster} / {row.line}): cluster '{row.cluster}' is not in data/clusters.csv. "
                f"{near(row.cluster, known)}"
            )
        if row.item_id not in prices(data):
            raise InputError(
                f"{shown(path)} ({row.cluster} / {row.line}): item '{row.item_id}' is not in data/prices.csv. "
                f"{near(row.item_id, prices(data))}"
            )
    return rows


def lines_of(cluster_id: str, data: Path = DATA) -> dict[str, list[ClusterPrice]]:
    """The rows of a cluster by line, in the order of LINES; its own rows of a line take the place of everyone's."""
    rows = cluster_prices(data)
    own = [row for row in rows if row.cluster == cluster_id]
    lines = {row.line for row in own}
    held = [*own, *(row for row in rows if row.cluster == ANY and row.line not in lines)]
    return {line: found for line in LINES if (found := [row for row in held if row.line == line])}
