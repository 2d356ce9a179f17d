"""The lines of a bill and the numbers they are made of, at one point or at many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import sympy as sp

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.account.symbols import REGISTRY
from k3lib.cost.choice import Choice, as_range
from k3lib.errors import InputError, NoPriceError, near
from k3lib.evaluate import Array, arrays
from k3lib.facts.cluster_prices import LINES, ClusterPrice, lines_of
from k3lib.facts.clusters import NamedCluster, Region, availability, cluster
from k3lib.facts.planned import priced_as
from k3lib.facts.prices import Price, price, prices
from k3lib.facts.tables import GRADES, Grade
from k3lib.ranges import Range
from k3lib.units import convert

# By what a price's unit names, the basis of its line in k3lib.account.costs; goods where it is not here.
BASIS = {"": "once", "kW": "fitting", "kW-month": "place", "kWh": "energy", "person-year": "staff", "year": "year",
         "card-year": "year", "Mbps-month": "month", "card-hour": "card-hour"}  # fmt: skip
IN_REGION: dict[str, Region] = {"coast": "cn", "abroad": "other"}
POWER, HOUSING, RENT, SERVERS = "power", "housing", "rent", "servers"
# Lines that do not grow with the number of deployments, and bases whose price is of what other lines add up to.
SHARED = ("porting", "staff", "monitoring", "compliance", "changes")
OF_OTHERS = ("share", "fitting", "room", "upkeep", "place", "energy")
# Symbols that belong to no line, and the item that gives each.
GENERAL = {
    m.cny_per_usd: "fx.cny_per_usd",
    m.load_share: "load_factor",
    m.pue: "pue",
    m.on_costs: "staff.on_costs",
    m.capital_rate: "capital.cost",
    m.life: "life.server",
    m.room_life: "life.facility",
    m.resale_share: "residual.share",
    m.busy_share: "utilisation",
    m.card_life: "failure.card_time",
    m.repair_hours: "failure.repair",
}
# What makes a cost smaller when it is larger.
FALLING = ("life.server", "life.facility", "residual.share", "utilisation", "failure.card_time")
NEVER_ZERO = ("utilisation", "load_factor")
# In place of no interest at all, where the annuity is nought over nought; it moves no digit that is shown.
LEAST_RATE = 1e-7


@dataclass(frozen=True)
class Input:
    """A number that a bill rests on, in `unit`; falling: whether the cost falls when it rises."""

    range: Range
    unit: str
    grade: Grade
    sources: tuple[str, ...]
    falling: bool = False

    @property
    def corners(self) -> Array:
        """Its cheap end, its value and its dear end."""
        return self.range.corners(falling=self.falling)


@dataclass(frozen=True)
class BillLine:
    """One line. basis: as in k3lib.account.costs. times: nodes or cards that `count` is for each of."""

    line: str
    item_id: str
    basis: str
    currency: str
    count: str
    times: int
    note: str

    @property
    def label(self) -> str:
        """What a reader's table calls it."""
        return LINES[self.line]


@dataclass(frozen=True)
class Bill:
    """A cluster's lines under a choice. inputs: by item of data/prices.csv, or 'count.CLUSTER.LINE'."""

    cluster: NamedCluster
    region: str
    lines: tuple[BillLine, ...]
    inputs: Mapping[str, Input]

    def corners(self) -> dict[str, Array]:
        """Every input at its cheap end, its value and its dear end, as arrays of shape (3,)."""
        return {key: known.corners for key, known in self.inputs.items()}


def worst(grades: Iterable[Grade]) -> Grade:
    """The weakest of several grades."""
    return max(grades, key=GRADES.index)


def bill(
    of: str | NamedCluster,
    table: Mapping[str, Price] | None = None,
    choice: Choice | None = None,
    rent: str | None = None,
) -> Bill:
    """The bill of a cluster, bought, or rented in a class of data/cluster_prices.csv.

    of: its name, or the cluster itself. One that a reader planned has the lines of the same cards, as many times as it
    has more of them. Raises InputError for an unknown name, NoPriceError where nobody published a price.
    """
    table, choice = prices() if table is None else table, choice or Choice()
    row, like, share = stands_for(of)
    cluster_id = like.cluster_id
    held = lines_of(cluster_id)
    region = choice.region or default_region(cluster_id, choice, rent)
    options = choice.options(region) | ({"class": rent} if rent else {})
    wanted = [line for line in held if (line in RENTED if rent else line != RENT)]
    chosen = [_one(cluster_id, line, held[line], options) for line in wanted]
    if share != 1:
        chosen = [_grown(found, price(found.item_id, table), row, share) for found in chosen]
    lines = tuple(_line(found, table, row) for found in chosen)
    return Bill(row, region, lines, MappingProxyType(_inputs(chosen, table, choice)))


def stands_for(of: str | NamedCluster) -> tuple[NamedCluster, NamedCluster, float]:
    """A cluster, the one whose prices stand for it, and how many of that one it is.

    Raises NoPriceError where no cluster with a price has such cards.
    """
    row = cluster(of) if isinstance(of, str) else of
    found = priced_as(row)
    if found is None:
        raise NoPriceError(f"{row.cluster_id} has no published price: no cluster with one is made of {row.device}.")
    return row, *found


def _grown(row: ClusterPrice, item: Price, of: NamedCluster, share: float) -> ClusterPrice:
    """A row of a cluster as of one that is so many of it."""
    if row.per != "cluster" or row.line in SHARED or _basis(row, item) in OF_OTHERS:
        return row
    ends = {name: None if (end := getattr(row, name)) is None else end * share for name in ("low", "high")}
    return row.model_copy(update={"cluster": of.cluster_id, "count": row.count * share, **ends})


# Lines that who rents pays as well.
RENTED = (RENT, "porting", "software", "bandwidth", "staff", "monitoring", "compliance", "changes")


def default_region(cluster_id: str, choice: Choice, rent: str | None = None) -> str:
    """Coast or abroad: where the cluster has a price and may lawfully be bought, else where it has a price.

    Raises NoPriceError where there is no price at all.
    """
    rows = lines_of(cluster_id).get(RENT if rent else SERVERS, [])
    priced = []
    for region in ("coast", "abroad"):
        options = choice.options(region) | ({"class": rent} if rent else {})
        if any(_holds(row, options) for row in rows):
            priced.append(region)
    if not priced:
        what = f"in rental class '{rent}'" if rent else f"for prices = '{choice.prices}'"
        raise NoPriceError(f"{cluster_id} has no published price {what}. {_remedy(rows)}")
    lawful = [region for region in priced if availability()[cluster_id, IN_REGION[region]].status != "no"]
    return priced[0] if rent or not lawful else lawful[0]


def _remedy(rows: list[ClusterPrice]) -> str:
    return f"There is one for: {', '.join(row.option or 'any choice' for row in rows)}." if rows else "There is none."


def _holds(row: ClusterPrice, options: Mapping[str, str]) -> bool:
    return all(options.get(name) == value for name, value in row.options.items())


def _one(cluster_id: str, line: str, rows: list[ClusterPrice], options: Mapping[str, str]) -> ClusterPrice:
    """The row of a line that holds under the options."""
    found = [row for row in rows if _holds(row, options)]
    if len(found) > 1:
        raise InputError(
            f"data/cluster_prices.csv ({cluster_id} / {line}): two rows hold at once. Give each an option."
        )
    if not found:
        asked = ", ".join(f"{name}={options.get(name)}" for name in dict.fromkeys(n for r in rows for n in r.options))
        raise NoPriceError(f"{cluster_id} has no price of {LINES[line]} for {asked}. {_remedy(rows)}")
    return found[0]


def _basis(row: ClusterPrice, item: Price) -> str:
    if row.line == POWER:
        return POWER
    if not item.currency:
        return {"%": "share", "%/year": "upkeep"}[item.unit]
    _, _, thing = item.unit.partition("/")
    basis = BASIS.get(thing, "goods")
    return "room" if row.line == HOUSING and basis == "fitting" else basis


def _count_key(row: ClusterPrice) -> str:
    return f"count.{row.cluster}.{row.line}"


def _line(row: ClusterPrice, table: Mapping[str, Price], of: NamedCluster) -> BillLine:
    item = price(row.item_id, table)
    times = {"cluster": 1, "node": of.nodes, "card": of.cards}[row.per]
    return BillLine(row.line, row.item_id, _basis(row, item), item.currency, _count_key(row), times, row.note)


def _inputs(rows: list[ClusterPrice], table: Mapping[str, Price], choice: Choice) -> dict[str, Input]:
    decided = choice.replaced()
    units = {item: REGISTRY[str(symbol)].unit for symbol, item in GENERAL.items()}
    found = {}
    for item_id in dict.fromkeys((*(row.item_id for row in rows), *GENERAL.values())):
        found[item_id] = item_input(price(item_id, table), units.get(item_id))
    for item_id, given in decided.items():
        if item_id in found:
            old = found[item_id]
            found[item_id] = Input(given, old.unit, "assumed", old.sources, old.falling)
    for item_id in NEVER_ZERO:
        if found[item_id].range.low == 0:
            raise InputError(f"item '{item_id}': low is 0. Nothing is served then: write a share above 0.")
    for row in rows:
        counted = choice.counts.get(row.line)
        known = row.counted if counted is None else as_range(counted)
        grade: Grade = row.grade if counted is None else "assumed"
        found[_count_key(row)] = Input(known, "1", grade, row.source_ids)
    missing = [line for line in choice.counts if line not in {row.line for row in rows}]
    if missing:
        raise InputError(f"counts: this bill has no line '{missing[0]}'. {near(missing[0], [r.line for r in rows])}")
    return found


SHARE_UNITS = {"%": "1", "%/year": "1/year"}


def item_input(item: Price, unit: str | None = None) -> Input:
    """A price as an input: in its own currency, a share from 0 to 1."""
    unit = unit or SHARE_UNITS.get(item.unit, item.unit)
    low, value, high = (float(convert(x, item.unit, unit)) for x in (item.low, item.default, item.high))
    return Input(Range(value, low, high), unit, item.grade, item.source_ids, item.item_id in FALLING)


def line_expression(line: BillLine) -> sp.Expr:
    """What a line costs, in CNY or CNY/month."""
    return eq.line_cny(line.basis, line.currency)


def line_values(line: BillLine, values: Mapping[str, Array]) -> dict[sp.Symbol, Array]:
    """Count and price of a line."""
    symbol = {"CNY": m.item_price, "USD": m.item_price_usd, "": m.item_share}[line.currency]
    return {m.item_count: values[line.count] * line.times, symbol: values[line.item_id]}


# Bases whose lines add up to a symbol of their own; all others add up to what is paid once, or to operations.
SUMMED = {"goods": m.goods, "share": m.extra_share, "room": m.room_price, "place": m.housing_price,
          "energy": m.power_price, "upkeep": m.upkeep_share}  # fmt: skip


def totals(bill: Bill, values: Mapping[str, Array]) -> dict[sp.Symbol, Array]:
    """The symbols of k3lib.account.costs that a bill's inputs give.

    values: an array for each input, all of one length n. Returns arrays of shape (n,).
    """
    known = {symbol: values[item] for symbol, item in GENERAL.items()}
    known[m.capital_rate] = np.maximum(known[m.capital_rate], LEAST_RATE)
    none = np.zeros_like(known[m.life])
    known[m.stopping_cards] = none + bill.cluster.cards
    known |= dict.fromkeys((*SUMMED.values(), m.once, m.operations, m.rated_power), none)
    for line in bill.lines:
        if line.basis == POWER:
            known[m.rated_power] = known[m.rated_power] + values[line.count] * line.times * values[line.item_id]
    for line in bill.lines:
        if line.basis == POWER:
            continue
        summed = SUMMED.get(line.basis)
        expression = line_expression(line) if summed is None else eq.line_cny("goods", line.currency)
        amount = arrays({"sum": expression}, known | line_values(line, values))["sum"]
        total = summed or (m.once if line.basis in eq.ONCE else m.operations)
        known[total] = known[total] + amount
    return known
