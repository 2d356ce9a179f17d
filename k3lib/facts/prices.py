"""What owning, renting and calling cost: prices, rates and shares, the project's and a reader's own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from k3lib.errors import InputError, near
from k3lib.facts.catalog import AsOf, Sourced, checked, sources
from k3lib.facts.paths import DATA
from k3lib.facts.tables import Grade, Identifier, NonNegative, UnitName, load_rows
from k3lib.units import currency_of

ASSUMED = "k3lib_assumed"  # the source of what nobody published
OWN = "own_price"  # the source that a reader names for a quote of their own
PER_CENT = 100
# A price this many times outside the project's range was meant in another unit: a thousand, less the width of a range.
FAR = 100
IN_WORDS = {"CNY": "yuan", "USD": "dollars"}


class Price(Sourced):
    """One price, rate or share, with its range.

    unit: whole, as CNY/server; one server holds eight cards. currency: of the unit; empty for shares, rates, times and
    power. region: where it is paid. as_of: the newest figure behind the row. kind: list, a price list; street, a dealer
    or a market; analyst, an estimate; claim, stated without a ground; measured, read off a market or a meter;
    assumption, this project's own. grade: of `default`.
    """

    item_id: Identifier
    low: NonNegative
    default: NonNegative
    high: NonNegative
    unit: UnitName
    currency: Literal["CNY", "USD", ""]
    region: Literal["cn", "other", "any"]
    as_of: AsOf
    kind: Literal["list", "street", "analyst", "claim", "measured", "assumption"]
    grade: Grade
    note: str = ""

    @model_validator(mode="after")
    def _sound(self) -> Price:
        if self.low > self.default:
            raise ValueError(
                f"low {_figure(self.low)} is above default {_figure(self.default)}. Did a zero go missing?"
            )
        if self.default > self.high:
            raise ValueError(
                f"default {_figure(self.default)} is above high {_figure(self.high)}. Is there a zero too many?"
            )
        _check_currency(self)
        _check_share(self)
        if (ASSUMED in self.source_ids or self.kind in ("claim", "assumption")) and self.grade != "assumed":
            raise ValueError(
                f"grade '{self.grade}' is too good for a {self.kind} of {self.source_id}. Write 'assumed'."
            )
        return self


def _figure(value: float) -> str:
    """A figure as a message shows it: in full, with commas."""
    return f"{value:,.15g}"


def _check_currency(price: Price) -> None:
    paid_in = currency_of(price.unit)
    if paid_in != price.currency:
        named = f"currency '{price.currency}'" if price.currency else "an empty currency"
        right = f"Write {paid_in}" if paid_in else "Leave it empty"
        raise ValueError(f"unit '{price.unit}' does not go with {named}. {right}.")


def _check_share(price: Price) -> None:
    if price.currency:
        return
    if price.unit in ("%", "%/year"):
        if price.high > PER_CENT:
            raise ValueError(f"high {_figure(price.high)} is above {PER_CENT} {price.unit}")
    elif price.unit == "1":
        if price.low < 1:
            raise ValueError(f"low {_figure(price.low)} is below 1: unit 1 is for factors of 1 and more, % for shares")
    elif price.low == 0:
        raise ValueError(f"low is 0 {price.unit}. Write a value above 0.")


@lru_cache(maxsize=8)
def prices(data: Path = DATA) -> dict[str, Price]:
    """Prices by item, in the order of the table."""
    path = data / "prices.csv"
    return {row.item_id: row for row in checked(path, load_rows(path, Price, ["item_id"]), sources(data))}


def price(item_id: str, table: Mapping[str, Price] | None = None) -> Price:
    """A price by its item, out of `table` where one is given. Raises InputError with the near name."""
    table = prices() if table is None else table
    if item_id not in table:
        raise InputError(f"item '{item_id}' is not in data/prices.csv. {near(item_id, table)}")
    return table[item_id]


def prices_with(path: Path) -> dict[str, Price]:
    """The project's prices with those of a reader's own file, of the same form, in place of them.

    Raises InputError that names file, row and item: for an item or a source that is not known, an item that stands
    twice, another unit or currency than the project's, and a figure far outside the project's range.
    """
    table = prices()
    own = load_rows(path, Price, ["item_id"], check=_check_own)
    return {**table, **{row.item_id: row for row in own}}


def _check_own(own: Price) -> None:
    ours = price(own.item_id)
    if own.currency != ours.currency:
        raise ValueError(
            f"currency '{own.currency}' is not '{ours.currency}', in which the project has it. "
            f"Give it in {ours.unit}, at the rate of your quote."
        )
    if own.unit != ours.unit:
        raise ValueError(f"unit '{own.unit}' is not '{ours.unit}', in which the project has it. Give it so.")
    for name in ("low", "default", "high"):
        check_size(name, getattr(own, name), ours)
    for source_id in own.source_ids:
        if source_id not in sources():
            raise ValueError(
                f"source '{source_id}' is not in data/sources.csv. {near(source_id, sources())} "
                f"For a quote of your own write '{OWN}'."
            )


def check_size(name: str, value: float, ours: Price) -> None:
    """Raises ValueError for a figure so far from the project's range that another unit was meant; 0 is a price."""
    if value == 0 or ours.low <= value <= ours.high:
        return
    small, large = value * FAR < ours.low, value > ours.high * FAR
    share = ours.unit.startswith("%") and value < 1 and ours.low <= value * PER_CENT <= ours.high
    if not (small or large or share):
        return
    if share or not ours.currency:
        doubt = f"Was it meant in another unit than {ours.unit}?"
    else:
        words = IN_WORDS[ours.currency]
        doubt = f"Was thousand {words} or {words} meant? It is read in {ours.unit}."
    raise ValueError(
        f"{name} {_figure(value)} is far from the project's {_figure(ours.low)} to {_figure(ours.high)}. {doubt}"
    )


def in_cny(price: Price, cny_per_usd: float) -> tuple[float, float, float]:
    """Low, default and high of a price in yuan, at `cny_per_usd` yuan to the dollar, for the thing its unit names.

    Raises InputError for what is not money, and for a rate that is not above 0 and finite.
    """
    if not price.currency:
        raise InputError(f"item '{price.item_id}' is in {price.unit}, which is not money")
    if not (math.isfinite(cny_per_usd) and cny_per_usd > 0):
        raise InputError(f"cny_per_usd = {cny_per_usd}: must be above 0 and finite, as 6.7")
    rate = cny_per_usd if price.currency == "USD" else 1
    return price.low * rate, price.default * rate, price.high * rate
