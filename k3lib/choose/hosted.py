"""Kimi K3 as others serve it: offers by host, and what one request of a workload costs there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from k3lib.cost.api import Offer, offers
from k3lib.errors import InputError
from k3lib.facts.prices import Price
from k3lib.facts.workloads import Workload
from k3lib.units import MEGA

PARTS = ("input", "cached", "output")


def own_lists(table: Mapping[str, Price] | None = None) -> tuple[Offer, ...]:
    """Offers of hosts that have a list of their own, in the order of the table.

    Raises InputError where the prices of one are in different units.
    """
    found = tuple(one for one in offers(table).values() if one.share is None)
    for one in found:
        if len({price.unit for price in one.parts.values()}) > 1:
            raise InputError(f"data/prices.csv: api.{one.model}.{one.host} has prices in different units")
    return found


def currency(one: Offer) -> str:
    """In which a host's list is."""
    return one.parts["output"].currency


def as_of(one: Offer) -> str:
    """The oldest date of a host's list."""
    return min(price.as_of for price in one.parts.values())


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
    return Charge(value, low, high, currency(one))


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
    held = money(one.parts["cached" if one.cache_listed else "input"])
    return prompt * ((1 - hits) * money(one.parts["input"]) + hits * held) + answer * money(one.parts["output"])
