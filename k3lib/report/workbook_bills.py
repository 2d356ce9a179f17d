"""The sheets of a workbook that hold what clusters and services cost: every line, every option, every service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sympy as sp

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.cost.api import FX, PARTS
from k3lib.cost.bill import GENERAL, POWER, RENT, SUMMED, BillLine, line_expression
from k3lib.cost.own import monthly_of
from k3lib.report import cost_words
from k3lib.report.cells import Book, Cell, Sheet
from k3lib.report.formulas import figure
from k3lib.report.workbook_data import Content, Held, Service
from k3lib.report.workbook_inputs import Used

BILL_HEAD = ("Option", "What", "Line", "How many", "Price of one, or share", "Unit of the price",
             "Together, CNY, kW or share", "At once, CNY", "Running, CNY/month", "A month with wear and interest, CNY",
             "Item", "Note")  # fmt: skip
BILL_WIDTHS = (30, 44, 30, 10, 14, 18, 16, 16, 16, 16, 28, 60)
OPTION_HEAD = ("Option", "What", "Priced for", "Cards", "Investment, CNY", "Month, CNY", "of it capital, CNY/month",
               "of it running, CNY/month", "Energy, kWh/month", "Working time, share")  # fmt: skip
OPTION_WIDTHS = (30, 44, 18, 8, *[15] * 25)
# Symbols of k3lib.account.costs that a bill's lines add up to, and what a column of them is called.
TOTALS = {
    m.rated_power: "Rated power, kW",
    m.goods: "Goods, CNY",
    m.extra_share: "On top of goods, share",
    m.once: "Paid once, not sold again, CNY",
    m.room_price: "A room, CNY/kW",
    m.power_price: "Electricity, CNY/kWh",
    m.housing_price: "A place, CNY/kW-month",
    m.upkeep_share: "Maintenance, share of goods a year",
    m.operations: "Operations and rent, CNY/month",
}
SHARES = (m.extra_share, m.upkeep_share)
RENT_OTHER = "Rent at the other end, CNY/month"
# What a month is shown as, by the lines that it takes. Each line is in one of them.
PARTS_OF_MONTH = {**cost_words.PARTS, "rent": ("rent",)}


@dataclass(frozen=True)
class Costed:
    """An option's cells. known: by symbol, those of the general inputs among them. rent_other: of what is rented, with
    the rent at the other end.
    """

    held: Held
    known: Mapping[sp.Symbol, Cell]
    invest: Cell
    running: Cell
    parts: tuple[Cell, ...]
    rent_other: Cell | None


@dataclass(frozen=True)
class Asked:
    """A service's cells by symbol: its prices now, and at the other end of their ranges."""

    service: Service
    now: Mapping[sp.Symbol, Cell]
    other: Mapping[sp.Symbol, Cell]


def bills(book: Book, held: Content, inputs: Mapping[str, Used]) -> list[Costed]:
    """The sheets of bills and of options. Returns the options' cells."""
    lines = book.sheet("Bills", BILL_WIDTHS)
    lines.head(0, BILL_HEAD, words=(0, 1, 2, 5, 10, 11))
    lines.held(1, 3)
    options = book.sheet("Options", OPTION_WIDTHS)
    head = (*OPTION_HEAD, *(f"{name}, CNY/month" for name in PARTS_OF_MONTH), *TOTALS.values(), RENT_OTHER)
    options.head(0, head, words=range(3))
    options.held(1, 2)
    found, first = [], 1
    for row, one in enumerate(held.held, 1):
        found.append(_option(options, row, lines, first, one, inputs))
        first += len(one.bill.lines)
    lines.filtered(0, first - 1, len(BILL_HEAD))
    options.filtered(0, len(held.held), len(head))
    return found


def _option(options: Sheet, row: int, lines: Sheet, first: int, one: Held, inputs: Mapping[str, Used]) -> Costed:
    """An option: its lines, what they add up to, and what that costs."""
    options.texts(row, 0, (one.name, one.label, cost_words.PLACES[one.bill.region]))
    known = {symbol: inputs[item].now for symbol, item in GENERAL.items()}
    known[m.stopping_cards] = options.number(row, 3, one.bill.cluster.cards)
    started = [_started(lines, at, one, line, inputs) for at, line in enumerate(one.bill.lines, first)]
    _total(options, row, known, m.rated_power, (x.together for x in started if x.line.basis == POWER))
    for basis, symbol in SUMMED.items():
        _total(options, row, known, symbol, (x.together for x in started if x.line.basis == basis))
    paid = [_paid(lines, x, known) for x in started if x.line.basis != POWER]
    rest = [x for x in paid if x.line.basis not in SUMMED]
    _total(options, row, known, m.once, (x.cost for x in rest if x.line.basis in eq.ONCE))
    _total(options, row, known, m.operations, (x.cost for x in rest if x.line.basis not in eq.ONCE))
    parts = tuple(
        options.added(row, at, [x.month for x in paid if x.line.line in names], "whole")
        for at, names in enumerate(PARTS_OF_MONTH.values(), len(OPTION_HEAD))
    )
    _month(options, row, one, known)
    rent = next((x.line for x in started if x.line.line == RENT), None)
    return Costed(
        held=one,
        known=known,
        invest=options.solved(row, 4, eq.investment_cny(), known, "used whole"),
        running=options.solved(row, 7, eq.running_cny(), known, "whole"),
        parts=parts,
        rent_other=None if rent is None else _rent_other(options, row, rent, inputs),
    )


def _total(options: Sheet, row: int, known: dict[sp.Symbol, Cell], symbol: sp.Symbol, cells: Iterable[Cell]) -> None:
    """What some lines add up to, in the symbol's own column."""
    column = len(OPTION_HEAD) + len(PARTS_OF_MONTH) + list(TOTALS).index(symbol)
    known[symbol] = options.added(row, column, list(cells), "share" if symbol in SHARES else "cents")


def _month(options: Sheet, row: int, one: Held, known: dict[sp.Symbol, Cell]) -> None:
    """A month's cost, what of it is capital, the energy that is paid for, and the share of the time that it works."""
    options.solved(row, 6, eq.capital_cny(), known, "whole")
    if powered(one):
        options.solved(row, 8, eq.energy_kwh(), known, "whole")
    known[m.up_share] = options.solved(row, 9, eq.availability(), known, "share")
    known[m.month_cost] = options.solved(row, 5, eq.monthly_cny(), known, "used whole")


def powered(one: Held) -> bool:
    """Whether who holds it pays the power: of what is rented the landlord does."""
    return any(line.basis == POWER for line in one.bill.lines)


@dataclass(frozen=True)
class Started:
    """A line as far as it stands alone. cells: count and price by symbol. together: one times the other."""

    line: BillLine
    row: int
    cells: Mapping[sp.Symbol, Cell]
    together: Cell


@dataclass(frozen=True)
class Paid:
    """A line's cost: at once or running, and by the month with wear and interest."""

    line: BillLine
    cost: Cell
    month: Cell


def _price(line: BillLine) -> sp.Symbol:
    return {"CNY": m.item_price, "USD": m.item_price_usd, "": m.item_share}[line.currency]


def _started(lines: Sheet, row: int, one: Held, line: BillLine, inputs: Mapping[str, Used]) -> Started:
    """How many, the price of one, and both together."""
    unit = one.bill.inputs[line.item_id].unit
    lines.texts(row, 0, (one.name, one.label, line.label))
    lines.text(row, 5, {"1": "share", "1/year": "share a year"}.get(unit, unit), "after")
    lines.text(row, 10, line.item_id, "after")
    lines.text(row, 11, line.note)
    count, style = inputs[line.count].now, "cents" if line.currency else "general"
    many = lines.formula(row, 3, f"={count.name}*{figure(line.times)}", count.value * line.times)
    price = lines.same(row, 4, inputs[line.item_id].now, style)
    cells = {m.item_count: many, _price(line): price, m.cny_per_usd: inputs[FX].now}
    return Started(line, row, cells, lines.solved(row, 6, eq.line_cny("goods", line.currency), cells, style))


def _paid(lines: Sheet, started: Started, known: Mapping[sp.Symbol, Cell]) -> Paid:
    """What a line costs: in its own kind, and by the month."""
    line, once = started.line, started.line.basis in eq.ONCE
    cost = lines.solved(started.row, 7 if once else 8, line_expression(line), {**known, **started.cells}, "whole")
    amount = sp.Symbol("amount", nonnegative=True)
    month = lines.solved(started.row, 9, monthly_of(line.basis, amount), {**known, amount: cost}, "whole")
    return Paid(line, cost, month)


def _rent_other(options: Sheet, row: int, line: BillLine, inputs: Mapping[str, Used]) -> Cell:
    """The rent of all hours with its own inputs at the other end; the rate of exchange is the tenant's own, too."""
    cells = {m.item_count: inputs[line.count].other, _price(line): inputs[line.item_id].other,
             m.cny_per_usd: inputs[FX].now}  # fmt: skip
    rent = line_expression(line).xreplace({m.item_count: m.item_count * sp.nsimplify(line.times, rational=True)})
    return options.solved(row, len(OPTION_HEAD) + len(PARTS_OF_MONTH) + len(TOTALS), rent, cells, "pale whole")


SERVICE_HEAD = ("Service", "What", "Region", "Prompt tokens, CNY/Mtok", "Cached ones, CNY/Mtok", "Output, CNY/Mtok",
                "Prompt tokens, other end", "Cached ones, other end", "Output, other end", "Lists cached ones",
                "Grade", "Items")  # fmt: skip
SERVICE_WIDTHS = (34, 44, 9, 12, 12, 12, 12, 12, 12, 12, 10, 70)


def services(book: Book, held: Content, inputs: Mapping[str, Used]) -> list[Asked]:
    """The sheet of services. Returns their cells."""
    sheet = book.sheet("Services", SERVICE_WIDTHS)
    sheet.head(0, SERVICE_HEAD, words=(0, 1, 2, 9, 10, 11))
    sheet.held(1, 2)
    found = []
    for row, one in enumerate(held.services, 1):
        sheet.texts(row, 0, (one.name, one.label, one.offer.region))
        sides = []
        for first, end, style in ((3, "now", "cents"), (6, "other", "pale cents")):
            of_end = {item: getattr(used, end) for item, used in inputs.items() if item in (*one.offer.items, FX)}
            asked = {}
            for column, (part, symbol) in enumerate(PARTS.items(), first):
                expression, cells = _asked(one, part, of_end)
                asked[symbol] = sheet.solved(row, column, expression, cells, style)
            sides.append(asked)
        sheet.text(row, 9, "yes" if one.offer.cache_listed else "no", "after")
        sheet.texts(row, 10, (one.offer.grade, ", ".join(one.offer.items)))
        found.append(Asked(one, *sides))
    sheet.filtered(0, len(held.services), len(SERVICE_HEAD))
    return found


def _asked(one: Service, part: str, of_end: Mapping[str, Cell]) -> tuple[sp.Expr, dict[sp.Symbol, Cell]]:
    """One of a service's prices in yuan; cached prompts are new ones where the host lists no price of them."""
    listed = one.offer.parts.get(part, one.offer.parts["input"])
    dollars, share = listed.currency == "USD", one.offer.share
    price = m.item_price_usd if dollars else m.item_price
    cells = {price: of_end[listed.item_id], m.cny_per_usd: of_end[FX]}
    if share is not None:
        cells[m.item_share] = of_end[share.item_id]
    return price * (m.cny_per_usd if dollars else 1) * (m.item_share if share is not None else 1), cells
