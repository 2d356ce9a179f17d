"""The page of prices: what kind of thing each is, where two prices of one thing differ, and what nobody published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from k3lib.cost.articles import Stated
from k3lib.facts.catalog import sources
from k3lib.facts.prices import ASSUMED, Price, in_cny, price
from k3lib.ranges import Range
from k3lib.report.browser import Column
from k3lib.report.trail import source_links
from k3lib.results import Result

# What kind of thing an item is, by the first part of its name.
GROUPS = {
    "fx": "money", "capital": "money", "tax": "money", "residual": "money", "life": "money",
    "card": "cards and servers", "module8": "cards and servers", "server8": "cards and servers",
    "superpod384": "cards and servers", "superpod64": "cards and servers", "rack72": "cards and servers",
    "spares": "cards and servers", "freight": "cards and servers", "integration": "cards and servers",
    "switch": "network", "optics": "network", "nic": "network", "bandwidth": "network",
    "dram": "memory and storage", "ssd": "memory and storage", "storage": "memory and storage",
    "cabinet": "power and place", "cooling": "power and place", "power": "power and place", "pue": "power and place",
    "load_factor": "power and place", "electricity": "power and place", "facility": "power and place",
    "colocation": "power and place",
    "maintenance": "running", "software": "running", "security": "running", "staff": "running", "failure": "running",
    "utilisation": "running", "upgrade": "running",
    "rent": "rents", "api": "services", "claim": "the articles", "check": "checks",
}  # fmt: skip
COLUMNS = (
    Column("Item"),
    Column("Of", choose=True),
    Column("Default", ",.10g"),
    Column("Low", ",.10g"),
    Column("High", ",.10g"),
    Column("Unit"),
    Column("Grade", choose=True),
    Column("Kind", choose=True),
    Column("As of"),
    Column("Source"),
    Column("Note"),
)


def group_of(item_id: str) -> str:
    """What kind of thing an item of data/prices.csv is."""
    return GROUPS[item_id.partition(".")[0]]


def price_cells(row: Price, result: Result) -> list[Any]:
    """A price's cells under COLUMNS. result: its default, as recorded."""
    return [row.item_id, group_of(row.item_id), result, row.low, row.high, row.unit, row.grade, row.kind, row.as_of,
            source_links(row.source_ids, titled=True), row.note]  # fmt: skip


@dataclass(frozen=True)
class Conflict:
    """Two prices of one thing. times: how many times the smaller the larger is. what: in words. kept: what is done."""

    what: str
    one: Price
    other: Price
    times: Range
    kept: str


# What, two items, and what is made of their difference.
PAIRS = (
    ("H20 rented by the month: bare metal, and a public cloud", "rent.h20-96.bare_metal", "rent.h20-96.cloud_month",
     "classes of rent, each with its own break-even"),
    ("main memory: by contract, and on the spot market", "dram.contract", "dram.spot",
     "a range over both, from contract upwards"),
    ("storage: before the rise of prices, and drives after it", "storage.before_rise", "ssd.tlc",
     "today's; the older one for comparison only"),
    ("a rack of GB200: abroad, and in a post from China", "rack72.gb200", "rack72.gb200.cn",
     "priced abroad, since it is under export control"),
    ("eight H100: a list abroad, and the grey market in China", "server8.h100.abroad", "server8.h100",
     "the low end of the price in China is the one abroad"),
    ("H100 by the hour: the market, and one large cloud", "rent.h100.abroad", "rent.h100.azure",
     "classes of rent, each by itself"),
    ("output of Kimi K3: its maker, and the cheapest route", "api.k3.moonshot.output", "api.k3.openrouter.output",
     "compared with the maker; the route is no promise"),
    ("Kimi K3 and the model after it, at their maker", "api.k3.moonshot-cn.output", "api.k31-pro.moonshot-cn.output",
     "both; the newer one first"),
)  # fmt: skip


def conflicts(table: Mapping[str, Price], cny_per_usd: float) -> tuple[Conflict, ...]:
    """Prices that differ for what is nearly the same thing."""
    found = []
    for what, one, other, kept in PAIRS:
        rows = price(one, table), price(other, table)
        (a_low, a, a_high), (b_low, b, b_high) = (in_cny(row, cny_per_usd) for row in rows)
        up = b >= a
        times = Range(b / a, b_low / a_high, b_high / a_low) if up else Range(a / b, a_low / b_high, a_high / b_low)
        found.append(Conflict(what, *rows, times, kept))
    return tuple(found)


def unpublished(table: Mapping[str, Price]) -> tuple[Price, ...]:
    """Prices that this project had to assume, wholly or at one end, because nobody publishes them."""
    return tuple(row for row in table.values() if ASSUMED in row.source_ids)


def titles(source_ids: Iterable[str]) -> str:
    """Sources by their titles."""
    return "; ".join(sources()[s].title for s in source_ids)


def verdict_words(one: Stated) -> str:
    """What becomes of an article's figure."""
    return {"agrees": "agrees with the default", "possible": "within the range only",
            "contradicts": "outside the range"}[one.verdict]  # fmt: skip
