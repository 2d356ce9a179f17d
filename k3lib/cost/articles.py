"""What the two articles say things cost, beside what this project's prices make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from k3lib.cost.bill import item_input
from k3lib.cost.own import own
from k3lib.facts.prices import Price, price, prices
from k3lib.ranges import Range

COMPROMISE, SERVER = "claim.compromise", "server8.h20-96"


@dataclass(frozen=True)
class Stated:
    """A figure of an article. what: in words. stated, ours: in CNY. floor: the article says 'above', not how much."""

    item_id: str
    what: str
    stated: Range
    ours: Range
    floor: bool
    sources: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """agrees: the project's default holds with the statement; possible: part of its range does; contradicts."""
        if self.floor:
            holds, may_hold = self.ours.value >= self.stated.value, self.ours.high >= self.stated.value
        else:
            holds = self.stated.low <= self.ours.value <= self.stated.high
            may_hold = self.ours.low <= self.stated.high and self.ours.high >= self.stated.low
        return "agrees" if holds else "possible" if may_hold else "contradicts"


def _item(item_id: str) -> Callable[[Mapping[str, Price]], Range]:
    return lambda table: item_input(price(item_id, table)).range


def _servers(cluster_id: str) -> Callable[[Mapping[str, Price]], Range]:
    return lambda table: own(cluster_id, table).line("servers").cny


def _investment(cluster_id: str) -> Callable[[Mapping[str, Price]], Range]:
    return lambda table: own(cluster_id, table).capex_cny


# item -> in words, whether it is a floor, and what of this project stands beside it.
CLAIMS: dict[str, tuple[str, bool, Callable[[Mapping[str, Price]], Range]]] = {
    "claim.card.h20-96": ("one H20", False, _item("card.h20-96")),
    "claim.server8.h20-96": ("a server of eight H20", False, _item(SERVER)),
    "claim.servers.four": ("four such servers, at the upper end that the article names", True, _servers("h20x32")),
    "claim.superpod64.cards": ("64 cards of a superpod, with their hosts", True, _servers("a3x64")),
    "claim.superpod64.all": ("64 cards of a superpod with all that belongs to them", True, _investment("a3x64")),
}


def stated(table: Mapping[str, Price] | None = None) -> tuple[Stated, ...]:
    """The articles' sums beside the project's, in CNY. What owning costs at theirs: `Choice(prices="articles")`."""
    table = prices() if table is None else table
    return tuple(
        Stated(item, what, item_input(price(item, table)).range, ours(table), floor, price(item, table).source_ids)
        for item, (what, floor, ours) in CLAIMS.items()
    )


def compromise_servers(table: Mapping[str, Price] | None = None) -> Range:
    """Whole servers of eight H20 that the sum of the articles' compromise buys, with nothing beside them."""
    paid, server = (item_input(price(item, table)).range for item in (COMPROMISE, SERVER))
    return Range(paid.value // server.value, paid.low // server.high, paid.high // server.low)
