"""From a month to a million tokens and a user, and the points at which two options cost the same."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import sympy as sp

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.cost.api import Mix
from k3lib.cost.bill import totals
from k3lib.cost.own import Ownership
from k3lib.errors import InputError
from k3lib.evaluate import Array, arrays
from k3lib.ranges import Range, of_corners
from k3lib.units import MONTHS_PER_YEAR

# What a token is here. Printed beside every table of unit costs.
TOKENS = (
    "a million output tokens: all that are generated, thinking included, with the prompts that they answer; "
    "a million tokens in and out: prompts, cached or not, and output counted alike"
)


@dataclass(frozen=True)
class UnitCost:
    """What tokens of a mix cost on a cluster. Ranges are bounds, as in Ownership.

    mtok_month: output of a month, at the utilisation. per_mtok_output, per_mtok_all: CNY/Mtok of output, and of prompts
    and output together. users: as many as make that utilisation; per_user: CNY/user-month; both None where the mix has
    no users. kwh_per_mtok: None where the landlord pays the power. idle_cny, failure_cny: part of the month's cost that
    passes with nothing asked, and with a card being repaired.
    """

    mix: Mix
    output_tps: Range
    mtok_month: Range
    per_mtok_output: Range
    per_mtok_all: Range
    per_user: Range | None
    users: Range | None
    kwh_per_mtok: Range | None
    idle_cny: Range
    failure_cny: Range


def check_speed(output_tps: Range) -> None:
    """Raises InputError for a speed that is not above 0, or whose ends are not on their sides."""
    ends = (output_tps.low, output_tps.value, output_tps.high)
    if not (all(math.isfinite(x) for x in ends) and 0 < ends[0] <= ends[1] <= ends[2]):
        raise InputError(f"output_tps = {ends[1]:g} ({ends[0]:g} to {ends[2]:g}): must be above 0, low first")


def known_values(held: Ownership, output_tps: Range, mix: Mix) -> dict[sp.Symbol, Array | float]:
    """Values of the symbols at the cheap ends, the values and the dear ends: arrays of shape (3,).

    Raises InputError for a speed that cannot be.
    """
    check_speed(output_tps)
    known: dict[sp.Symbol, Array | float] = {**held.ends, **mix.values}
    known[m.output_rate] = output_tps.corners(falling=True)
    if mix.requests is not None:
        known[m.user_requests] = mix.requests.corners()
    return known


def unit_cost(held: Ownership, output_tps: Range, mix: Mix) -> UnitCost:
    """What tokens cost on a cluster, owned or rented. output_tps: of the whole cluster under full load, tok/s."""
    known = known_values(held, output_tps, mix)
    asked = {"unit": eq.unit_cny(), "all": eq.blended_cny(), "mtok": eq.output_mtok(), "kwh": eq.energy_per_mtok(),
             "month": eq.monthly_cny(), "up": eq.availability()}  # fmt: skip
    if mix.requests is not None:
        asked |= {"user": eq.user_cny(), "users": eq.users_served()}
    found = arrays(asked, known)
    busy = np.broadcast_to(known[m.busy_share], (3,))
    return UnitCost(
        mix=mix,
        output_tps=output_tps,
        mtok_month=_falling(found["mtok"]),
        per_mtok_output=of_corners(found["unit"]),
        per_mtok_all=of_corners(found["all"]),
        per_user=of_corners(found["user"]) if "user" in found else None,
        users=_falling(found["users"]) if "users" in found else None,
        kwh_per_mtok=of_corners(found["kwh"]) if held.kwh_month is not None else None,
        idle_cny=of_corners(found["month"] * (1 - busy) * found["up"]),
        failure_cny=of_corners(found["month"] * (1 - found["up"])),
    )


def _falling(corners: Array) -> Range:
    """A range of what is least at the dear end."""
    return of_corners(corners[::-1])


@dataclass(frozen=True)
class BreakEven:
    """Against a service. Ranges are bounds: low at the cheap ends of owning and the dear end of the service.

    utilisation: share above which owning is cheaper; above 1 it never is. mtok_month: output of a month for which the
    service asks what owning costs.
    """

    utilisation: Range
    mtok_month: Range


def break_even(held: Ownership, output_tps: Range, mix: Mix, api: Range) -> BreakEven:
    """Where a cluster and a service cost the same. api: the service's price of the mix, CNY/Mtok of output."""
    known = known_values(held, output_tps, mix)
    # A price of the whole mix is a price of output alone, with prompts free of charge.
    flat = {m.api_output: api.corners(falling=True), m.api_input: 0.0, m.api_cached: 0.0, m.api_share: 1.0}
    asked = {"u": eq.break_even_utilisation(), "mtok": eq.break_even_mtok()}
    found = arrays(asked, known | flat)
    return BreakEven(of_corners(found["u"]), of_corners(found["mtok"]))


def _rented(held: Ownership, rental: Ownership) -> dict[sp.Symbol, Array]:
    """Totals of a rental, at its dear ends where owning is at its cheap ones; what both pay is the same in both."""
    shared = held.bill.corners()
    values = {key: shared.get(key, known.corners[::-1]) for key, known in rental.bill.inputs.items()}
    return totals(rental.bill, values)


def break_even_hours(held: Ownership, rental: Ownership) -> Range:
    """Share of the hours above which owning is cheaper than a rent for these hours alone; above 1 it never is."""
    rented = _rented(held, rental)
    rent = rented[m.operations] - held.ends[m.operations]
    known = {**held.ends, m.rent: rent}
    return of_corners(arrays({"u": eq.break_even_hours()}, known)["u"])


def instead_of(
    held: Ownership, instead: Ownership | Range, known: dict[sp.Symbol, Array]
) -> tuple[Array, dict[sp.Symbol, Array]]:
    """What owning replaces, CNY a month, and the totals of owning without what is paid once either way, as porting.

    Dear ends of what is replaced stand beside cheap ends of owning.
    """
    if isinstance(instead, Range):
        return instead.corners(falling=True), known
    rented = _rented(held, instead)
    return arrays({"cny": eq.running_cny()}, rented)["cny"], known | {m.once: known[m.once] - rented[m.once]}


def pays_back_months(held: Ownership, instead: Ownership | Range, *, interest: bool = False) -> Range:
    """Months until owning has saved its investment; infinite where it never does.

    instead: a rental of the cluster, or what a service asks a month, CNY. interest: also on what is not yet paid back.
    """
    instead_cny, known = instead_of(held, instead, dict(held.ends))
    saving = instead_cny - arrays({"cny": eq.running_cny()}, known)["cny"]
    paid = arrays({"cny": eq.investment_cny()}, known)["cny"]
    least = paid * known[m.capital_rate] / MONTHS_PER_YEAR if interest else np.zeros_like(paid)
    pays = saving > least
    expression = eq.payback_with_interest_months() if interest else eq.payback_months()
    # Where it never pays any saving will do in the equation: its months are not used.
    months = arrays({"months": expression}, known | {m.saving: np.where(pays, saving, 2 * least + 1)})["months"]
    return of_corners(np.where(pays, months, math.inf))
