"""Kimi K3 as others serve it: offers by host, and what one request of a workload costs there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from k3lib.cost import api
from k3lib.errors import InputError, near
from k3lib.facts.prices import Price
from k3lib.facts.workloads import Workload
from k3lib.units import MEGA

PARTS = ("input", "cached", "output")


@dataclass(frozen=True)
class Offer:
    """List prices for a million tokens. cached: None where a host names no price for cached input."""

    model: str
    host: str
    input: Price
    output: Price
    cached: Price | None

    @property
    def currency(self) -> str:
        """In which all its prices are."""
        return self.input.currency

    @property
    def as_of(self) -> str:
        """The oldest of its dates."""
        return min(price.as_of for price in self.prices)

    @property
    def prices(self) -> tuple[Price, ...]:
        """Those that it names."""
        return tuple(price for price in (self.input, self.cached, self.output) if price is not None)

    @property
    def sources(self) -> tuple[str, ...]:
        """Every source of its prices, each once."""
        return tuple(dict.fromkeys(s for price in self.prices for s in price.source_ids))


def offers(table: Mapping[str, Price] | None = None) -> tuple[Offer, ...]:
    """Every host's own list, in the order of the table; hosts that ask a share of another's are left out.

    Raises InputError where the prices of one are in different currencies.
    """
    out = []
    for one in api.offers(table).values():
        if one.share is None:
            parts = one.parts
            offer = Offer(one.model, one.host, parts["input"], parts["output"], parts.get("cached"))
            if len({price.unit for price in offer.prices}) > 1:
                raise InputError(f"data/prices.csv: api.{one.model}.{one.host} has prices in different units")
            out.append(offer)
    return tuple(out)


def offer(model: str, host: str, table: Mapping[str, Price] | None = None) -> Offer:
    """One offer. Raises InputError with the near name."""
    known = {f"{one.model}@{one.host}": one for one in offers(table)}
    name = f"{model}@{host}"
    if name not in known:
        raise InputError(f"offer '{name}' is not in data/prices.csv. {near(name, known)}")
    return known[name]


@dataclass(frozen=True)
class Charge:
    """What one request costs, in the offer's currency; low, high: with all its lengths at the cheap or the dear end."""

    value: float
    low: float
    high: float
    currency: str


def charge(one: Offer, workload: Workload) -> Charge:
    """One request of a workload at an offer's prices: what is read, what a cache serves, what is generated.

    Cached tokens cost as much as others where the host names no price for them.
    """
    value, low, high = (_at(one, workload, end) for end in ("value", "low", "high"))
    return Charge(value, low, high, one.currency)


def _at(one: Offer, workload: Workload, end: str) -> float:
    def length(quantity: str, end: str) -> float:
        row = workload.facts.get(quantity)
        if row is None:
            return 0.0
        at = {"value": row.value, "low": row.low, "high": row.high}[end]
        return row.value if at is None else at

    def money(price: Price) -> float:
        return {"value": price.default, "low": price.low, "high": price.high}[end] / MEGA

    hits = length("hit", {"value": "value", "low": "high", "high": "low"}[end])
    prompt = length("isl", end)
    answer = length("osl", end) + length("thinking", end)
    held = money(one.cached if one.cached is not None else one.input)
    return prompt * ((1 - hits) * money(one.input) + hits * held) + answer * money(one.output)
