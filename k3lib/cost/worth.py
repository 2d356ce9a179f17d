"""Owning as an investment: cash month by month, what it is worth today, and the interest it earns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy_financial as npf
import sympy as sp

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.cost.own import Ownership
from k3lib.cost.unit import instead_of
from k3lib.errors import InputError
from k3lib.evaluate import Array, arrays
from k3lib.ranges import Range
from k3lib.units import MONTHS_PER_YEAR


@dataclass(frozen=True)
class Worth:
    """Ranges are bounds: high at the cheap ends of owning and the dear ends of what it replaces.

    npv_cny: of all payments at the cost of capital, today. irr_low, irr_value, irr_high: the effective yearly rate at
    which that would be 0; None where the payments do not add up to the investment. flows_cny: payment of each month,
    the first at the start, with all at their values.
    """

    npv_cny: Range
    irr_low: float | None
    irr_value: float | None
    irr_high: float | None
    flows_cny: Array


def worth(held: Ownership, instead: Ownership | Range, decline: float = 0.0) -> Worth:
    """What owning is worth beside a rental of the cluster, or beside what a service asks a month, CNY.

    decline: by how much of it what is replaced becomes cheaper each year, from 0 to below 1. A hall of one's own is
    charged by the month, since it outlives the servers. Months are whole.
    """
    if not 0 <= decline < 1:
        raise InputError(f"decline = {decline}: must be from 0 to below 1 a year")
    instead_cny, known = instead_of(held, instead, dict(held.ends))
    room = eq.annuity(eq.room_cny(), sp.Integer(0), m.room_life)
    asked = {"paid": eq.kept_cny(), "back": m.goods * m.resale_share, "month": eq.running_cny() + room}
    found = arrays(asked, known)
    flows = [
        _flows(paid, instead_month - month, back, instead_month, decline, round(years * MONTHS_PER_YEAR))
        for paid, back, month, instead_month, years in zip(
            found["paid"], found["back"], found["month"], instead_cny, known[m.life], strict=True
        )
    ]
    rates = known[m.capital_rate] / MONTHS_PER_YEAR
    cheap, value, dear = (float(npf.npv(rate, one)) for rate, one in zip(rates, flows, strict=True))
    best, middle, worst = (irr_year(one) for one in flows)
    return Worth(Range(value, dear, cheap), worst, middle, best, flows[1])


def _flows(paid: float, saving: float, back: float, instead: float, decline: float, months: int) -> Array:
    """Payments of each month: the investment, then what is saved, and at the end what the goods still fetch."""
    month = np.arange(1, months + 1)
    saved = saving - instead * (1 - (1 - decline) ** (month / MONTHS_PER_YEAR))
    saved[-1] += back
    return np.concatenate(([-paid], saved))


def irr_year(flows: Sequence[float] | Array) -> float | None:
    """Effective yearly rate at which monthly payments are worth nothing today; None where they add up to a loss."""
    payments = np.asarray(flows)
    if payments.sum() < 0:
        return None
    found = float(npf.irr(payments))
    return (1 + found) ** MONTHS_PER_YEAR - 1 if np.isfinite(found) else None
