"""What a reader decides about a cluster's cost; what is left open comes from data/prices.csv."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from k3lib.errors import InputError, near
from k3lib.facts.cluster_prices import LINES, OPTIONS
from k3lib.ranges import Range, point

Given = float | Range | None
# The item of data/prices.csv whose place a decision takes.
SHARES = {"utilisation": "utilisation", "capital_cost": "capital.cost", "residual": "residual.share",
          "tax": "tax.on_top", "spares": "spares.share", "load_factor": "load_factor"}  # fmt: skip
YEARS = {"life_years": "life.server"}
FACTORS = {"pue": "pue", "cny_per_usd": "fx.cny_per_usd"}
NEVER_ZERO = ("utilisation", "load_factor", "life_years", "cny_per_usd")


@dataclass(frozen=True)
class Choice:
    """A way to buy and house a cluster.

    region: where the power comes from, the coast or the west of China or abroad; by default the coast where the cluster
    has a price and may be bought, else abroad. prices: of today's market, or of the articles. Shares are from 0 to 1.
    utilisation: output asked for over output under full load. capital_cost: a year. tax, spares: over what is bought.
    counts: how many, by line of data/cluster_prices.csv and in its unit, as {"staff": 2}. None: as in data/prices.csv,
    with its range; a number is taken as known.
    """

    region: str | None = None
    housing: str = "colocation"
    fabric: str = "ib"
    prices: str = "market"
    utilisation: Given = None
    life_years: Given = None
    capital_cost: Given = None
    residual: Given = None
    tax: Given = None
    spares: Given = None
    load_factor: Given = None
    pue: Given = None
    cny_per_usd: Given = None
    counts: Mapping[str, float | Range] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for name in ("region", "housing", "fabric", "prices"):
            value = getattr(self, name)
            if value is not None and value not in OPTIONS[name]:
                raise InputError(f"{name} = '{value}' is not known. {near(str(value), OPTIONS[name])}")
        for line in self.counts:
            if line not in LINES:
                raise InputError(f"counts: line '{line}' is not known. {near(line, LINES)}")
        for name, given in {**self._given(), **self.counts}.items():
            _check(name, given)

    def _given(self) -> dict[str, float | Range]:
        numbers = (*SHARES, *YEARS, *FACTORS)
        known = {f.name: getattr(self, f.name) for f in fields(self) if f.name in numbers}
        return {name: value for name, value in known.items() if value is not None}

    def options(self, region: str) -> dict[str, str]:
        """What rows of data/cluster_prices.csv may depend on, with the region that was found."""
        place = "abroad" if region == "abroad" else "cn"
        return {"place": place, "region": region, "housing": self.housing, "fabric": self.fabric, "prices": self.prices}

    def replaced(self) -> dict[str, Range]:
        """What is decided, by the item of data/prices.csv whose place it takes; shares from 0 to 1."""
        items = SHARES | YEARS | FACTORS
        return {items[name]: as_range(value) for name, value in self._given().items()}


def as_range(given: float | Range) -> Range:
    """A number as a range without width."""
    return given if isinstance(given, Range) else point(float(given))


def _check(name: str, given: float | Range) -> None:
    found = as_range(given)
    shown = f"{name} = {found.value:g}" if found.low == found.high else f"{name} = {found.low:g} to {found.high:g}"
    if not all(math.isfinite(x) for x in (found.low, found.value, found.high)):
        raise InputError(f"{shown}: must be finite")
    if not found.low <= found.value <= found.high:
        raise InputError(f"{shown}: {found.value:g} is not between them")
    if found.low < 0 or (name in NEVER_ZERO and found.low == 0):
        raise InputError(f"{shown}: must be {'above' if name in NEVER_ZERO else 'at least'} 0")
    if name in SHARES and found.high > 1:
        raise InputError(f"{shown}: is a share, from 0 to 1. Were per cent meant?")
    if name == "pue" and found.low < 1:
        raise InputError(f"{shown}: must be at least 1")
