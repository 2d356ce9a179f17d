"""What the page knows of prices: the lines of every bill, every input with its range, and what services ask."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from k3lib.choose.bills import POWER_FROM, SERVICES, may_be_had
from k3lib.cost.api import BATCH, FX, PARTS, offers
from k3lib.cost.bill import Bill, Input, bill, item_input
from k3lib.cost.choice import Choice
from k3lib.cost.rent import rental_classes
from k3lib.errors import InputError, NoPriceError
from k3lib.facts.clusters import NamedCluster, Region, clusters
from k3lib.facts.planned import alike, planned
from k3lib.facts.prices import Price, price
from k3lib.report.cost_words import service_words

OWN = "own"
# A bill of so many nodes more tells which of its lines grow with the nodes, and which with the cards.
TRIED_NODES = 3


@dataclass(frozen=True)
class Prices:
    """Where prices come from: the table and the region."""

    table: Mapping[str, Price]
    region: Region

    def choice(self, row: NamedCluster) -> Choice:
        """How a cluster is bought, as in the rest of the book."""
        return Choice(region=POWER_FROM[self.region] if may_be_had(row, self.region) else None)


def of_clusters(rows: Iterable[NamedCluster], given: Prices) -> dict[str, Any]:
    """The bills of named clusters, bought and in every class of rental; lines that bills share stand once.

    inputs: of all bills, by item.
    """
    found: list[dict[str, Any]] = []
    lines: dict[str, int] = {}
    inputs: dict[str, Input] = {}
    for row in rows:
        ways = {}
        for way in (OWN, *rental_classes(row)):
            try:
                one = bill(row, given.table, given.choice(row), None if way == OWN else way)
            except NoPriceError:
                continue
            ways[way] = [lines.setdefault(line, len(lines)) for line in _lines(one, _grown(row, way, given))]
            _add(inputs, {key: known for key, known in one.inputs.items() if not key.startswith("count.")})
        found.append({"device": row.device, "nodes": row.nodes, "cards": row.cards, "nics": row.nics or 0,
                      "gbit": row.nic_gbit or 0, "first": alike(row.device) == row, "ways": ways})  # fmt: skip
    laid = {key: of_input(known) for key, known in sorted(inputs.items())}
    return {"bills": found, "lines": [json.loads(line) for line in lines], "inputs": laid}


def _add(inputs: dict[str, Input], more: Mapping[str, Input]) -> None:
    for key, known in more.items():
        if inputs.setdefault(key, known).range != known.range:
            raise InputError(f"input '{key}' has two ranges on the page")


def _grown(row: NamedCluster, way: str, given: Prices) -> Bill | None:
    """The bill of the same cards in more nodes; None for a cluster that no other is priced as."""
    if alike(row.device) != row:
        return None
    more = planned(f"{row.nodes * TRIED_NODES}x{row.cards // row.nodes}x{row.device}", row.nics or 1)
    if more.cluster_id in clusters():
        raise InputError(f"'{more.cluster_id}' has a bill of its own: try another number of nodes")
    return bill(more, given.table, given.choice(more), None if way == OWN else way)


def _lines(one: Bill, more: Bill | None) -> list[str]:
    """Lines in JSON, as [line, item, basis, currency, [low, value, high], times, whether it grows by nodes].

    A line grows by its count, or by what its count is taken times of.
    """
    found = []
    for at, line in enumerate(one.lines):
        known = one.inputs[line.count].range
        grows = more is not None and (
            more.inputs[more.lines[at].count].range.high * more.lines[at].times > known.high * line.times
        )
        ends = [known.low, known.value, known.high]
        found.append(json.dumps([line.line, line.item_id, line.basis, line.currency, ends, line.times, grows]))
    return found


def of_input(known: Input) -> list[Any]:
    """An input as [low, value, high, whether a cost falls when it rises, unit]."""
    return [known.range.low, known.range.value, known.range.high, known.falling, known.unit]


def of_services(given: Prices) -> dict[str, Any]:
    """What the maker's services ask: items of each part with their currency, and the price of batches."""
    table = given.table
    found: dict[str, Any] = {}
    for name in SERVICES[given.region]:
        offer = offers(table)[name]
        rows = {part: offer.parts.get(part, offer.parts["input"]) for part in PARTS}
        found[name] = {part: [*of_input(item_input(row)), row.currency] for part, row in rows.items()}
    batch, rate = (item_input(price(item, table)) for item in (BATCH, FX))
    words = {name: service_words(name) for name in found}
    return {"offers": found, "batch": of_input(batch), "fx": of_input(rate), "words": words}
