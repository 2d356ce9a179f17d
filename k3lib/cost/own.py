"""Owning a cluster: every line of the investment and of the month, each with its range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import sympy as sp

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.cost.bill import (
    GENERAL,
    POWER,
    Bill,
    BillLine,
    bill,
    line_expression,
    line_values,
    totals,
    worst,
)
from k3lib.cost.choice import Choice
from k3lib.evaluate import Array, arrays
from k3lib.facts.clusters import NamedCluster
from k3lib.facts.prices import Price
from k3lib.facts.tables import Grade
from k3lib.ranges import Range, of_corners

# What no line holds. Printed beside every table of costs.
NOT_COUNTED = (
    "what rent and hardware will cost later: today's prices hold for the whole life",
    "delays: months between paying and the first token",
    "the risk that an export rule, a warranty or a maker's support falls away",
    "insurance, land, and income tax",
    "a second site, and that a spare server shortens repairs",
    "what slower or worse answers cost their users",
    "people who would otherwise run the contract with a service",
    "outside China: pay, bandwidth and audits as in China",
)


@dataclass(frozen=True)
class Line:
    """A line of a bill. kind: capex, paid once, CNY; or monthly, CNY/month.

    cny: in its kind. monthly_cny: the same by the month; a line paid once as an annuity over its life, less what is got
    for it at the end. low and high: all inputs at their cheap or at their dear ends. expression: of cny, with its
    symbols' values in `inputs`.
    """

    name: str
    label: str
    kind: Literal["capex", "monthly"]
    cny: Range
    monthly_cny: Range
    grade: Grade
    items: tuple[str, ...]
    sources: tuple[str, ...]
    expression: sp.Expr
    inputs: Mapping[sp.Symbol, float]
    note: str


@dataclass(frozen=True)
class Ownership:
    """A cluster's cost, bought or rented.

    Ranges are bounds: every input at its cheap end, or every one at its dear end, at once. capex_cny: total investment.
    monthly_cny: capital_cny, the investment as an annuity, and running_cny. kwh_month: at the meter; None where the
    landlord pays it. availability, utilisation: shares from 0 to 1, low at the dear end.
    """

    bill: Bill
    lines: tuple[Line, ...]
    capex_cny: Range
    capital_cny: Range
    running_cny: Range
    monthly_cny: Range
    kwh_month: Range | None
    availability: Range
    utilisation: Range
    grade: Grade
    sources: tuple[str, ...]
    not_counted: tuple[str, ...] = NOT_COUNTED

    @cached_property
    def ends(self) -> Mapping[sp.Symbol, Array]:
        """The symbols that the bill gives at the cheap ends, the values and the dear ends: arrays of shape (3,)."""
        return MappingProxyType(totals(self.bill, self.bill.corners()))

    @property
    def cluster_id(self) -> str:
        """The cluster's name in data/clusters.csv."""
        return self.bill.cluster.cluster_id

    def line(self, name: str) -> Line:
        """A line by its name."""
        return next(line for line in self.lines if line.name == name)


def own(of: str | NamedCluster, table: Mapping[str, Price] | None = None, choice: Choice | None = None) -> Ownership:
    """What owning a cluster costs, line by line. of: its name, or the cluster. table: prices, if not the project's.

    Raises InputError for unknown names, NoPriceError where nobody published a price of such a cluster.
    """
    return of_bill(bill(of, table, choice))


def of_bill(held: Bill) -> Ownership:
    """A bill in figures."""
    values = held.corners()
    known = totals(held, values)
    sums = {"capex": eq.investment_cny(), "capital": eq.capital_cny(), "running": eq.running_cny(),
            "monthly": eq.monthly_cny(), "kwh": eq.energy_kwh()}  # fmt: skip
    found = {name: of_corners(array) for name, array in arrays(sums, known).items()}
    up = arrays({"up": eq.availability()}, known)["up"]
    powered = any(line.basis == POWER for line in held.lines)
    return Ownership(
        bill=held,
        lines=tuple(_line(line, held, values, known) for line in held.lines if line.basis != POWER),
        capex_cny=found["capex"],
        capital_cny=found["capital"],
        running_cny=found["running"],
        monthly_cny=found["monthly"],
        kwh_month=found["kwh"] if powered else None,
        availability=of_corners(up[::-1]),
        utilisation=held.inputs[GENERAL[m.busy_share]].range,
        grade=worst(known.grade for known in held.inputs.values()),
        sources=tuple(dict.fromkeys(s for known in held.inputs.values() for s in known.sources)),
    )


def monthly_of(basis: str, expression: sp.Expr) -> sp.Expr:
    """What a line costs each month; one that is paid once is an annuity, of which goods are sold at the end."""
    if basis not in eq.ONCE:
        return expression
    resold = expression * m.resale_share if basis == "goods" else sp.Integer(0)
    return eq.annuity(expression, resold, m.room_life if basis == "room" else m.life)


def _line(line: BillLine, held: Bill, values: Mapping[str, Array], known: Mapping[sp.Symbol, Array]) -> Line:
    expression = line_expression(line)
    monthly = monthly_of(line.basis, expression)
    at = {**known, **line_values(line, values)}
    found = arrays({"cny": expression, "monthly": monthly}, at)
    symbols = expression.free_symbols
    items = (line.item_id, *(item for symbol, item in GENERAL.items() if symbol in symbols))
    inputs = [held.inputs[key] for key in (line.count, *items)]
    return Line(
        name=line.line,
        label=line.label,
        kind="capex" if line.basis in eq.ONCE else "monthly",
        cny=of_corners(found["cny"]),
        monthly_cny=of_corners(found["monthly"]),
        grade=worst(one.grade for one in inputs),
        items=items,
        sources=tuple(dict.fromkeys(s for one in inputs for s in one.sources)),
        expression=expression,
        inputs={symbol: float(at[symbol][1]) for symbol in sorted(symbols, key=str)},
        note=line.note,
    )
