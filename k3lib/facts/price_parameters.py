"""Prices that a reader sets by a parameter's name, as h20_server_price_cny=1.5e6."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from k3lib.errors import InputError, near
from k3lib.facts.paths import DATA, shown
from k3lib.facts.prices import OWN, Price, check_size, prices, prices_with
from k3lib.facts.tables import Identifier, Row, Text, UnitName, load_rows, problem
from k3lib.units import UNITS, convert

# Where a build says that the reader's file of prices is; its name alone goes into the book.
PRICES_FILE = "K3_PRICES"


class PriceParameter(Row):
    """A parameter that sets an item of data/prices.csv. unit: in which it is given; shares from 0 to 1."""

    parameter: Identifier
    item_id: Identifier
    unit: UnitName
    note: Text


@lru_cache(maxsize=8)
def _rows(data: Path) -> tuple[PriceParameter, ...]:
    return tuple(load_rows(data / "price_parameters.csv", PriceParameter, ["parameter"]))


def price_parameter_names(data: Path = DATA) -> list[str]:
    """Names of the parameters, without a look at the prices: what sets none does not depend on them."""
    return [row.parameter for row in _rows(data)]


@lru_cache(maxsize=8)
def price_parameters(data: Path = DATA) -> dict[str, PriceParameter]:
    """Parameters by name. Raises InputError for an item that is not known, or a unit that is not one of its kind."""
    path, rows = data / "price_parameters.csv", _rows(data)
    for row in rows:
        if row.item_id not in prices(data):
            raise InputError(
                f"{shown(path)} ({row.parameter}): item '{row.item_id}' is not in data/prices.csv. "
                f"{near(row.item_id, prices(data))}"
            )
        item = prices(data)[row.item_id]
        if UNITS[row.unit].dimension != UNITS[item.unit].dimension:
            raise InputError(f"{shown(path)} ({row.parameter}): unit '{row.unit}' does not convert into {item.unit}")
    return {row.parameter: row for row in rows}


def parsed(text: str, where: str = "prices") -> dict[str, str]:
    """Parameters of prices from `h20_server_price_cny:1.5e6;cny_per_usd:6.9`. Raises InputError for another form."""
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, colon, value = part.partition(":")
        if not colon:
            raise InputError(f"{where}: '{part}' is not NAME:VALUE, as cny_per_usd:6.9")
        if name in found:
            raise InputError(f"{where}: parameter '{name}' stands twice")
        found[name] = value
    return found


def current(given: str = "", price_file: str = "") -> dict[str, Price]:
    """The prices of a scenario: the project's, those of a reader's file in their place, and single ones on top.

    given: as `parsed` reads it. price_file: a path, or only its name where the environment says in K3_PRICES where the
    file is. Raises InputError as `prices_with` and `with_parameters` do.
    """
    path = (os.environ.get(PRICES_FILE) or price_file) if price_file else ""
    return with_parameters(parsed(given), prices_with(Path(path)) if path else None, where="prices")


def with_parameters(
    values: Mapping[str, float | str], table: Mapping[str, Price] | None = None, where: str = "-p"
) -> dict[str, Price]:
    """Prices with those that parameters set, each taken as known. table: prices, if not the project's.

    where: what a message calls the parameters. Raises InputError for an unknown name, what is no number, not finite or
    negative, a share above 1, and a figure so far from the project's range that another unit was meant.
    """
    found = dict(prices() if table is None else table)
    for name, given in values.items():
        known = price_parameters()
        if name not in known:
            raise InputError(f"{where}: parameter '{name}' is not known. {near(name, known)}")
        found[known[name].item_id] = _set(known[name], given, where)
    return found


def _set(row: PriceParameter, given: float | str, where: str) -> Price:
    ours = prices()[row.item_id]
    address = f"{where}: {row.parameter} = {given}"
    try:
        value = math.nan if isinstance(given, bool) else float(given)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{address}: must be a finite number, in {row.unit}")
    if value < 0:
        raise InputError(f"{address}: must not be negative")
    if ours.unit.startswith("%") and value > 1:
        raise InputError(f"{address}: is a share, from 0 to 1. Were per cent meant?")
    figure = float(convert(value, row.unit, ours.unit))
    fields = ours.model_dump() | {"low": figure, "default": figure, "high": figure, "kind": "assumption",
                                  "grade": "assumed", "source_id": OWN, "note": f"set by {row.parameter}"}  # fmt: skip
    try:
        check_size(row.parameter, figure, ours)
        return Price.model_validate(fields)
    except ValidationError as error:
        raise InputError(f"{address}: {problem(error)}") from None
    except ValueError as error:
        raise InputError(f"{address}: {error}") from None
