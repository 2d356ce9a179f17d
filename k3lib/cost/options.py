"""What an organisation chooses between: clusters of its own, rented ones, services; each by its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import sympy as sp

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.cost.api import BATCH, FX, PARTS, Mix, Offer, api_cost_cny, batch_share, offers
from k3lib.cost.bill import LEAST_RATE, Input, item_input, totals
from k3lib.cost.choice import Choice
from k3lib.cost.own import Ownership, own
from k3lib.cost.rent import CLASSES, rentals
from k3lib.cost.unit import check_speed, unit_cost
from k3lib.errors import InputError, NoPriceError, near
from k3lib.evaluate import Array, arrays
from k3lib.facts.prices import Price, price, prices
from k3lib.ranges import Range, point

SPEED = "speed."  # before a cluster's name: its output under full load
DECLINE = "api.decline"
LATER = {m.capital_rate: "capital.cost", m.life: "life.server", m.api_decline: DECLINE}
COMPARED = ("k31-pro@moonshot-cn", "k3@moonshot-cn")


@dataclass(frozen=True)
class Option:
    """One way to get tokens. name: 'own:CLUSTER', 'rent:CLUSTER:CLASS' or 'api:MODEL@HOST'.

    inputs: all numbers that its cost rests on. of: the cluster's bill, or a host's prices. batch: whether a service is
    paid its price of batches.
    """

    name: str
    kind: Literal["own", "rent", "api"]
    label: str
    inputs: Mapping[str, Input]
    of: Ownership | Offer
    batch: bool = False


def cluster_option(name: str, held: Ownership, output_tps: Range) -> Option:
    """A cluster, owned or rented, with its output under full load in tok/s."""
    check_speed(output_tps)
    inputs = {**held.bill.inputs, SPEED + held.cluster_id: Input(output_tps, "tok/s", "derived", (), falling=True)}
    kind, _, rest = name.partition(":")
    row = held.bill.cluster
    _, _, rent_class = rest.partition(":")
    label = f"{row.label}, {CLASSES[rent_class]}" if rent_class else row.label
    return Option(name, "own" if kind == "own" else "rent", label, MappingProxyType(inputs), held)


def service_option(
    offer: Offer, table: Mapping[str, Price], *, batch: bool = False, choice: Choice | None = None
) -> Option:
    """A service, at its list price or at that of batches."""
    rows = [*offer.parts.values(), *([offer.share] if offer.share else [])]
    in_dollars = any(row.currency == "USD" for row in offer.parts.values())
    rows += [
        price(item, table) for item in (*LATER.values(), *([FX] if in_dollars else []), *([BATCH] if batch else []))
    ]
    inputs = {row.item_id: item_input(row) for row in rows}
    for item, given in (choice or Choice()).replaced().items():
        if item in inputs:
            inputs[item] = Input(given, inputs[item].unit, "assumed", inputs[item].sources, inputs[item].falling)
    name = f"api:{offer.name}" + (":batch" if batch else "")
    return Option(name, "api", offer.name, MappingProxyType(inputs), offer, batch)


def options(
    speeds: Mapping[str, Range],
    table: Mapping[str, Price] | None = None,
    choice: Choice | None = None,
    services: Iterable[str] = COMPARED,
    *,
    batch: bool = False,
) -> tuple[Option, ...]:
    """Every way to get a workload's tokens: each cluster bought and let in every class with a price, and the services.

    speeds: output under full load of each cluster that serves the workload, tok/s. Clusters without a price are left
    out of what is bought. Raises InputError for unknown names.
    """
    table, choice = prices() if table is None else table, choice or Choice()
    found: list[Option] = []
    for name, output_tps in speeds.items():
        with suppress(NoPriceError):
            found.append(cluster_option(f"own:{name}", own(name, table, choice), output_tps))
        for rent_class, let in rentals(name, table, choice).items():
            found.append(cluster_option(f"rent:{name}:{rent_class}", let, output_tps))
    known = offers(table, choice.cny_per_usd)
    for service in services:
        if service not in known:
            raise InputError(f"no price of '{service}' is published. {near(service, known)}")
        found.append(service_option(known[service], table, batch=batch, choice=choice))
    return tuple(found)


def bounds(option: Option, mix: Mix, table: Mapping[str, Price] | None = None) -> Range:
    """Cost of a million output tokens between the cheap and the dear ends of all inputs; a service at today's list."""
    if isinstance(option.of, Offer):
        return api_cost_cny(mix, option.of, batch_share(table) if option.batch else None)
    output_tps = option.inputs[SPEED + option.of.cluster_id].range
    return unit_cost(option.of, output_tps, mix).per_mtok_output


def symbols(option: Option, mix: Mix, values: Mapping[str, Array]) -> dict[sp.Symbol, Array | float]:
    """Values of the symbols of k3lib.account.costs for an option. values: an array for each of its inputs."""
    if isinstance(option.of, Offer):
        return {**_service_symbols(option.of, option.batch, values), **mix.values}
    speed = values[SPEED + option.of.cluster_id]
    return {**totals(option.of.bill, values), m.output_rate: speed, **mix.values}


def _service_symbols(offer: Offer, batch: bool, values: Mapping[str, Array]) -> dict[sp.Symbol, Array | float]:
    share = values[offer.share.item_id] if offer.share else np.ones_like(values[DECLINE])
    known: dict[sp.Symbol, Array | float] = {m.api_share: share * (values[BATCH] if batch else 1.0)}
    for part, symbol in PARTS.items():
        row = offer.parts.get(part, offer.parts["input"])
        known[symbol] = values[row.item_id] * (values[FX] if row.currency == "USD" else 1.0)
    known |= {symbol: values[item] for symbol, item in LATER.items()}
    known[m.capital_rate] = np.maximum(values[LATER[m.capital_rate]], LEAST_RATE)
    return known


def cost_expression(option: Option) -> sp.Expr:
    """Cost of a million output tokens; of a service, levelled over the life that a cluster would have."""
    return eq.api_cny() * eq.api_levelled() if isinstance(option.of, Offer) else eq.unit_cny()


def cost(option: Option, mix: Mix, values: Mapping[str, Array]) -> Array:
    """Cost of a million output tokens at every point, in CNY/Mtok. values: an array for each of its inputs."""
    return arrays({"cost": cost_expression(option)}, symbols(option, mix, values))["cost"]


def merged(compared: Iterable[Option]) -> dict[str, Input]:
    """The inputs of several options; what they share, as the price of power, is one input."""
    found: dict[str, Input] = {}
    for option in compared:
        for key, known in option.inputs.items():
            old = found.setdefault(key, known)
            if old.range != known.range:
                raise InputError(f"input '{key}' has two ranges among the options that are compared. Give it one.")
    return found


def defaults(inputs: Mapping[str, Input]) -> dict[str, Array]:
    """Every input at its value, as arrays of shape (1,)."""
    return {key: point(known.range.value).corners()[:1] for key, known in inputs.items()}
