"""The sheets of a workbook that hold what comes out: unit costs of every option, and where two cost the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.choose.costed import BATCHES
from k3lib.choose.study import Entry
from k3lib.cost.api import BATCH
from k3lib.facts.workloads import Workload
from k3lib.report.cells import Book, Cell, Sheet
from k3lib.report.formulas import formula
from k3lib.report.workbook_bills import Asked, Costed, powered
from k3lib.report.workbook_data import Content
from k3lib.report.workbook_inputs import LOAD, Used

HEAD = ("Option", "Workload", "What", "Kind", "Work", "Goals met", "Output under full load, tok/s",
        "Output of a month, Mtok", "Investment, CNY", "Month, CNY", "CNY per Mtok of output",
        "CNY per Mtok in and out", "CNY per user and month", "Users", "kWh per Mtok of output")  # fmt: skip
WIDTHS = (34, 18, 44, 9, 24, 8, *[14] * 9)
NEVER = "never"
# Cells between, in place of parts of longer equations.
ASKED, PAID, RUNNING = sp.symbols("asked paid running", positive=True)


@dataclass(frozen=True)
class Outcome:
    """A row of results. unit: CNY per Mtok of output."""

    option: str
    workload_id: str
    unit: Cell


@lru_cache(maxsize=1)
def _unit_equations() -> dict[int, sp.Expr]:
    """Equations of a cluster's row by column, with the cost of the month and the availability in cells."""
    unit, output = eq.unit_of_month(), eq.output_of_up()
    return {7: output, 10: unit, 11: unit / eq.tokens_per_answer_token(), 12: unit * eq.user_mtok(),
            13: output / eq.user_mtok(), 14: eq.energy_kwh() / output}  # fmt: skip


@lru_cache(maxsize=1)
def _asked_equations() -> dict[int, sp.Expr]:
    """Equations of a service's row by column."""
    return {10: eq.api_cny(), 11: eq.api_cny() / eq.tokens_per_answer_token(), 12: eq.api_cny() * eq.user_mtok()}


STYLES = {7: "cents", 10: "used cents", 11: "cents", 12: "cents", 13: "whole", 14: "cents"}
OF_USERS = (12, 13)


def mix_cells(workload: Workload, inputs: Mapping[str, Used]) -> dict[sp.Symbol, Cell]:
    """The cells of a workload's tokens."""
    parts = {"new": m.prompt_new, "cached": m.prompt_cached, "answer": m.answer_tokens, "requests": m.user_requests}
    keys = {symbol: f"{workload.workload_id}.{part}" for part, symbol in parts.items()}
    return {symbol: inputs[key].now for symbol, key in keys.items() if key in inputs}


def results(book: Book, held: Content, options: Sequence[Costed], services: Sequence[Asked],
            speeds: Mapping[tuple[str, str], Cell], inputs: Mapping[str, Used]) -> list[Outcome]:  # fmt: skip
    """The sheet of results: every option with every workload that it serves. Returns what a token costs in each."""
    sheet = book.sheet("Results", WIDTHS)
    sheet.head(0, HEAD, words=range(6))
    sheet.held(1, 3)
    found: list[Outcome] = []
    for one in options:
        for name, workload in held.workloads.items():
            key = (one.held.bill.cluster.cluster_id, name)
            if key in speeds:
                known = {**one.known, **mix_cells(workload, inputs), m.output_rate: speeds[key]}
                row = len(found) + 1
                _words(sheet, row, one.held.name, one.held.label, workload)
                _goals(sheet, row, held.entries[key])
                unit = _cluster(sheet, row, one, known)
                found.append(Outcome(one.held.name, name, unit))
    for label, service, known in _offered(services, inputs):
        for name in held.workloads if m.api_share not in known else BATCHES:
            row, workload = len(found) + 1, held.workloads[name]
            option = service.service.name + (":batch" if m.api_share in known else "")
            _words(sheet, row, option, label, workload)
            sheet.text(row, 5, "not known")
            unit = _service(sheet, row, known | mix_cells(workload, inputs))
            found.append(Outcome(option, name, unit))
    sheet.filtered(0, len(found), len(HEAD))
    return found


def _offered(
    services: Sequence[Asked], inputs: Mapping[str, Used]
) -> Iterator[tuple[str, Asked, dict[sp.Symbol, Cell]]]:
    """Every service at its list price, then those of the maker at that of batches."""
    for one in services:
        yield one.service.label, one, dict(one.now)
    for one in services:
        if one.service.maker:
            yield f"{one.service.label}, in batches", one, {**one.now, m.api_share: inputs[BATCH].now}


def _goals(sheet: Sheet, row: int, entry: Entry) -> None:
    """Whether the goals are met by the speed that is used."""
    most, own = ("yes" if met else "no" for met in (entry.within or entry.most, entry.within))
    sheet.worded(row, 5, f'=IF({LOAD}_number=1,"{most}","{own}")', most)


def _words(sheet: Sheet, row: int, option: str, label: str, workload: Workload) -> None:
    sheet.texts(row, 0, (option, workload.workload_id, label, option.split(":")[0], workload.label))


def _cluster(sheet: Sheet, row: int, one: Costed, known: Mapping[sp.Symbol, Cell]) -> Cell:
    """The numbers of a cluster's row. Returns what a million output tokens cost."""
    cells = {**known, m.month_cost: sheet.same(row, 9, known[m.month_cost], "whole")}
    cells[m.output_rate] = sheet.same(row, 6, known[m.output_rate], "tenth")
    sheet.same(row, 8, one.invest, "whole")
    made = {}
    for column, expression in _unit_equations().items():
        if (column in OF_USERS and m.user_requests not in known) or (column == len(HEAD) - 1 and not powered(one.held)):
            continue
        made[column] = sheet.solved(row, column, expression, cells, STYLES[column])
    return made[10]


def _service(sheet: Sheet, row: int, known: Mapping[sp.Symbol, Cell]) -> Cell:
    """The numbers of a service's row. Returns what a million output tokens cost."""
    made = {}
    for column, expression in _asked_equations().items():
        if column in OF_USERS and m.user_requests not in known:
            continue
        listed = expression if m.api_share in known else expression.subs(m.api_share, 1)
        made[column] = sheet.solved(row, column, listed, known, STYLES[column])
    return made[10]


EVEN_HEAD = ("Option", "Workload", "Service", "What", "Work", "Instead of", "Month, CNY",
             "Service asks at the other end, CNY per Mtok of output", "Break-even utilisation, share",
             "Break-even output, Mtok/month", "Utilisation used, share", "Cheaper at that")  # fmt: skip
EVEN_WIDTHS = (24, 18, 30, 34, 24, 40, 14, 16, 14, 14, 12, 12)


@lru_cache(maxsize=1)
def _even_equations() -> tuple[sp.Expr, sp.Expr]:
    """Utilisation and output at which a cluster and a service cost the same, with both costs in cells.

    A price of the whole mix is a price of output alone, with prompts free of charge.
    """
    flat = {m.api_input: 0, m.api_cached: 0, m.api_share: 1, m.api_output: ASKED}
    utilisation, output = (
        expression.subs(flat)
        for expression in (eq.break_even_of_month(), eq.break_even_mtok().xreplace({eq.monthly_cny(): m.month_cost}))
    )
    return utilisation, output


def break_even(book: Book, held: Content, options: Sequence[Costed], services: Sequence[Asked],
               speeds: Mapping[tuple[str, str], Cell], inputs: Mapping[str, Used]) -> None:  # fmt: skip
    """The sheet of break-evens: clusters of one's own against the maker's services."""
    sheet = book.sheet("Break-even", EVEN_WIDTHS)
    sheet.head(0, EVEN_HEAD, words=(*range(6), 11))
    sheet.held(1, 3)
    utilisation, output = _even_equations()
    row = 1
    for one in (x for x in options if not x.held.rented):
        for name, workload in held.workloads.items():
            key = (one.held.bill.cluster.cluster_id, name)
            for service in (x for x in services if x.service.maker and key in speeds):
                words = (one.held.name, name, service.service.name, one.held.label, workload.label)
                sheet.texts(row, 0, (*words, service.service.label))
                mix = mix_cells(workload, inputs)
                asked = eq.api_cny().subs(m.api_share, 1)
                cells = {**one.known, **mix, m.output_rate: speeds[key]}
                cells[m.month_cost] = sheet.same(row, 6, cells[m.month_cost], "whole")
                cells[ASKED] = sheet.solved(row, 7, asked, mix | dict(service.other), "cents")
                least = sheet.solved(row, 8, utilisation, cells, "used share")
                sheet.solved(row, 9, output, cells, "used cents")
                busy = sheet.same(row, 10, cells[m.busy_share], "share")
                owning = "own" if busy.value > least.value else "service"
                sheet.worded(row, 11, f'=IF({busy.address}>{least.address},"own","service")', owning, "after")
                row += 1
    sheet.filtered(0, row - 1, len(EVEN_HEAD))


RENT_HEAD = ("Option", "Rent", "What", "Instead of", "Month of owning, CNY",
             "Rent of all hours at the other end, CNY/month",
             "Break-even hours, share of all", "Saved in a month by owning, CNY", "Invested for it, CNY",
             "Paid back after, months")  # fmt: skip
RENT_WIDTHS = (24, 36, 34, 44, 14, 18, 14, 16, 16, 14)


def rent_or_buy(book: Book, options: Sequence[Costed]) -> None:
    """The sheet of clusters of one's own against the same ones rented."""
    sheet = book.sheet("Rent or buy", RENT_WIDTHS)
    sheet.head(0, RENT_HEAD, words=range(4))
    sheet.held(1, 2)
    owned = {x.held.bill.cluster.cluster_id: x for x in options if not x.held.rented}
    row = 1
    for let in options:
        own = owned.get(let.held.bill.cluster.cluster_id)
        if own is None or let.rent_other is None:
            continue
        sheet.texts(row, 0, (own.held.name, let.held.name, own.held.label, let.held.label))
        _rented(sheet, row, own, let, let.rent_other)
        row += 1
    sheet.filtered(0, row - 1, len(RENT_HEAD))


def _rented(sheet: Sheet, row: int, own: Costed, let: Costed, rent: Cell) -> None:
    """Hours and months. What both pay, as people and porting, counts for neither."""
    hours = eq.break_even_hours().xreplace({eq.monthly_cny() - m.operations: m.month_cost - m.operations})
    cells = {m.operations: own.known[m.operations], RUNNING: own.running}
    cells[m.month_cost] = sheet.same(row, 4, own.known[m.month_cost], "whole")
    cells[m.rent] = sheet.same(row, 5, rent, "whole")
    sheet.solved(row, 6, hours, cells, "used share")
    saved = sheet.solved(row, 7, m.rent + m.operations - RUNNING, cells, "whole")
    paid = sheet.solved(row, 8, PAID - m.once, {PAID: own.invest, m.once: let.known[m.once]}, "whole")
    months = formula(eq.payback_months().xreplace({eq.investment_cny(): PAID}))
    text = months.text({PAID: paid.address, m.saving: saved.address}).removeprefix("=")
    text = f'=IF({saved.address}>0,{text},"{NEVER}")'
    if saved.value > 0:
        sheet.formula(row, 9, text, months.value({PAID: paid.value, m.saving: saved.value}), "used tenth right")
    else:
        sheet.worded(row, 9, text, NEVER, "used tenth right")
