"""Claims on sums of money and on what must be bought: set beside the prices of the scenario."""

from __future__ import annotations

from k3lib.claims.verdict import (
    CONFIRMED,
    CORRECTED,
    REFUTED,
    Part,
    Verdict,
    between,
    ceiling,
    decided,
    floor,
    number,
)
from k3lib.claims.words import shown
from k3lib.claims.world import DEVICE, Check, World
from k3lib.cost.articles import COMPROMISE, Stated, stated
from k3lib.cost.own import own
from k3lib.facts.claims import Claim
from k3lib.facts.cluster_prices import ClusterPrice, cluster_prices
from k3lib.facts.planned import planned
from k3lib.facts.prices import price
from k3lib.ranges import Range
from k3lib.units import MEGA, TERA
from k3lib.units import number as printed

PRICED = {
    "A16": "claim.card.h20-96",
    "A17": "claim.server8.h20-96",
    "A18": "claim.servers.four",
    "B20": "claim.superpod64.cards",
    "B21": "claim.superpod64.all",
    "B30": "claim.superpod64.all",
}
OF_PRICE: dict[str, Verdict] = {"agrees": CONFIRMED, "possible": CORRECTED, "contradicts": REFUTED}


def _sum(found: Range) -> str:
    """A sum of money in million yuan with its range."""
    low, high = (printed(end / MEGA, ",.2f") for end in (found.low, found.high))
    return f"{shown(found.value / MEGA, 'million CNY', ',.2f')} ({low} to {high})"


def stated_sum(w: World, item: str) -> Stated:
    """A sum that an article states, with what this project's prices make of it."""
    return next(one for one in stated(w.table) if one.item_id == item)


def _priced(w: World, claim_id: str, *, core: bool = True, words: str = "") -> Part:
    """A sum that an article states, judged as on the page of prices."""
    one = stated_sum(w, PRICED[claim_id])
    said = floor(one.stated.value) if one.floor else one.stated
    says = words or f"By the prices of this book {one.what}: {_sum(one.ours)}."
    return Part(says, OF_PRICE[one.verdict], one.sources, core, said, one.ours, "CNY", "assumed")


def stated_price(w: World, c: Claim) -> tuple[Part, ...]:
    """A sum of an article, by the rule of the page of prices."""
    return (_priced(w, c.claim_id),)


def four_servers(w: World, c: Claim) -> tuple[Part, ...]:
    """The servers' sum between both ends of what is said; the upper end for itself; and what was left out."""
    held = own(w.row, w.table)
    servers = held.line("servers").cny
    said = between(w.said("A18.servers_low", "CNY"), price(PRICED["A18"], w.table).default)
    first = f"Four servers cost {_sum(servers)}; with network, storage and all else {_sum(held.capex_cny)}."
    inside = stated_sum(w, PRICED["A18"]).verdict != "contradicts"
    return (
        number(c, first, said, servers, "CNY", held.sources, grade="assumed"),
        _priced(
            w, "A18", core=False, words=f"The upper end alone lies {'in' if inside else 'above'} the servers' range."
        ),
    )


def storage_line() -> ClusterPrice:
    """What the bills of this book count of storage."""
    return next(row for row in cluster_prices() if (row.line, row.cluster) == ("storage", "any"))


def storage_needed(w: World, c: Claim) -> tuple[Part, ...]:
    """Storage that the bill of this book counts with."""
    row = storage_line()
    found = Range(row.count, row.count if row.low is None else row.low, row.count if row.high is None else row.high)
    says = (
        f"The released files take {shown(w.account.bytes / TERA, 'TB', ',.2f')}; three models in two formats "
        "with logs are "
        f"counted here as {shown(found.value, 'TB')} ({found.low:.0f} to {found.high:.0f})."
    )
    said = floor(w.said("B19.file_system", "TB"))
    return (number(c, says, said, found, "TB", [*w.k3.sources, *row.source_ids], grade="assumed"),)


def compromise_price(w: World, c: Claim) -> tuple[Part, ...]:
    """What the servers of the three compromises cost with all that belongs to them."""
    said = ceiling(price(COMPROMISE, w.table).default)
    per_server = w.cluster.cards_per_node
    sizes = {"One server, for fewer experts or main memory,": per_server, "What three bits need": w.bits_cards}
    parts = []
    for words, cards in sizes.items():
        shape = f"{max(1, cards // per_server)}x{per_server}x{DEVICE}"
        held = own(planned(shape, w.row.nics or per_server), w.table)
        says = f"{words} costs {_sum(held.capex_cny)} with all that belongs to it."
        parts.append(number(c, says, said, held.capex_cny, "CNY", held.sources, grade="assumed"))
    return tuple(parts)


def production_price(w: World, c: Claim) -> tuple[Part, ...]:
    """The superpod's sum, and what the plan of 32 cards costs."""
    held, said = own(w.row, w.table), price(PRICED["B30"], w.table).default
    says = f"That is a superpod; the plan of {w.cluster.cards} H20 serves K3 for {_sum(held.capex_cny)}."
    return _priced(w, c.claim_id), decided(says, held.capex_cny.value >= said, held.sources)


CHECKS: dict[str, Check] = {
    check.__name__: check for check in (stated_price, four_servers, storage_needed, compromise_price, production_price)
}
