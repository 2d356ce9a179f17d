"""The workbook of costs: every input with its source, every cost as a live formula of the library's own equations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from k3lib.account import money_symbols as m
from k3lib.choose.costed import Costs, costs
from k3lib.choose.scene import scene
from k3lib.cost.own import NOT_COUNTED
from k3lib.cost.rent import NOT_COUNTED as NOT_IN_RENT
from k3lib.cost.unit import TOKENS
from k3lib.errors import InputError
from k3lib.facts.clusters import Region
from k3lib.facts.price_parameters import current
from k3lib.facts.scenario import Scenario, in_words
from k3lib.report import workbook_bills, workbook_charts, workbook_data, workbook_inputs, workbook_results
from k3lib.report.cells import Book, Sheet
from k3lib.report.workbook_bills import Costed
from k3lib.report.workbook_data import Content
from k3lib.report.workbook_inputs import CASE, CASES, LOAD, LOADS, Switches

TITLE = "What it costs to serve Kimi K3"
WHAT = (
    "The costs of the book as live formulas: change a number and all that follows from it changes.",
    "Money is in yuan (CNY) unless a head says otherwise; a month has 730 hours.",
    "Type your own figure in a column Yours, on Inputs or Speeds: it takes the place of ours in every case. Cells that "
    "are meant to be changed are yellow.",
    "Each default has a name, as h20_server_price_cny; the cell that formulas take has the same name after used_.",
    "low and high are bounds, not likely ends: all inputs at once at the end of their ranges that makes owning "
    "cheap, or dear. Against a service or a rent, its own prices stand at their other end.",
    "Many defaults are the low end of their range, as tax, software and cooling: a bill without surprises.",
    "Formulas carry the numbers that the book has; a program that recalculates gets the same.",
)
WIDE = 5  # columns of the first sheet
SHEETS = {
    "Inputs": "every price, share and count with its range, date, grade and sources",
    "Speeds": "output of each cluster under full load by workload: predicted, with the range of nine in ten runs",
    "Bills": "every line of every cluster, bought or rented",
    "Options": "what the lines add up to: the investment and the month",
    "Services": "what hosts ask for a million tokens",
    "Results": "costs of tokens, users and energy, by option and workload",
    "Break-even": "utilisation and output above which a cluster of one's own is cheaper than the maker's service",
    "Rent or buy": "share of the hours above which owning is cheaper than renting for these hours, and payback",
    "Charts": "the month by option, and a million tokens by option and workload",
}


def write(path: Path, costs: Costs, words: str) -> None:
    """The workbook of a scenario as a file. words: what the scenario is called.

    Equal inputs give equal bytes. Raises InputError where nothing of the scenario has a price.
    """
    path.write_bytes(made(workbook_data.content(costs, words)))


def made(held: Content) -> bytes:
    """The workbook's bytes."""
    if not held.held:
        raise InputError("workbook: nobody published a price of any cluster of this scenario")
    book = Book(_date(held.newest), TITLE)
    first = book.sheet("Read me", (34, 20, 16, 20, 50), landscape=False)
    switches, row = _top(first, held)
    inputs = workbook_inputs.inputs(book, held, switches)
    speeds = workbook_inputs.speeds(book, held, switches)
    options = workbook_bills.bills(book, held, inputs)
    services = workbook_bills.services(book, held, inputs)
    outcomes = workbook_results.results(book, held, options, services, speeds, inputs)
    workbook_results.break_even(book, held, options, services, speeds, inputs)
    workbook_results.rent_or_buy(book, options)
    workbook_charts.charts(book, held, options, services, outcomes)
    _below(first, row, held, options)
    return book.content()


def _date(newest: str) -> datetime:
    """The day of the newest price: it dates the file."""
    year, month, day = (*(int(part) for part in newest.split("-")), 1, 1)[:3]
    return datetime(year, month, day)


def _top(sheet: Sheet, held: Content) -> tuple[Switches, int]:
    """Scenario and switches. Returns the next free row."""
    sheet.text(0, 0, TITLE, "title")
    sheet.file.set_row(0, 26)
    sheet.text(1, 0, "Scenario", "bold")
    sheet.text(1, 1, held.words)
    sheet.text(2, 0, "Newest price", "bold")
    sheet.text(2, 1, held.newest)
    sheet.section(4, "Choose here", WIDE)
    rows = ((5, "Case of all inputs", CASE, CASES, 1, "low: owning is cheap; high: owning is dear"),
            (6, "Speed of clusters", LOAD, LOADS, 0, "the most clients that get what the goals ask, or the "
             "workload's own clients, whether the goals are met or not"))  # fmt: skip
    numbers = []
    for row, words, name, choices, usual, note in rows:
        sheet.text(row, 0, words, "bold")
        sheet.text(row, 1, choices[usual], "input")
        sheet.file.data_validation(row, 1, row, 1, {"validate": "list", "source": list(choices)})
        sheet.book.name(name, sheet.name, f"$B${row + 1}")
        tests = "".join(f'IF({name}="{choice}",{at},' for at, choice in enumerate(choices, 1) if at != usual + 1)
        text = f"={tests}{usual + 1}{')' * (len(choices) - 1)}"
        numbers.append(sheet.formula(row, 2, text, usual + 1, "pale general", f"{name}_number"))
        sheet.text(row, 3, note, "pale after")
    return Switches(*numbers), 8


def _below(sheet: Sheet, row: int, held: Content, options: Sequence[Costed]) -> None:
    """What comes out of the scenario's own two clusters, then what to know."""
    ours = [f"own:{name}" for name in held.ours]
    sheet.head(row, ("In the chosen case", "Investment, CNY", "Month, CNY"), words=[0])
    sheet.file.set_row(row, 14)
    for one in (x for x in options if x.held.name in ours):
        row += 1
        sheet.text(row, 0, one.held.label)
        sheet.same(row, 1, one.invest, "used whole")
        sheet.same(row, 2, one.known[m.month_cost], "used whole")
    blocks = {
        "What this is": WHAT,
        "What a token is": [TOKENS],
        "Not counted in what owning costs": NOT_COUNTED,
        "Not counted in what renting costs": NOT_IN_RENT,
    }
    for title, lines in blocks.items():
        row += 2
        sheet.section(row, title, WIDE)
        for line in lines:
            row += 1
            sheet.file.merge_range(row, 0, row, WIDE - 1, "")
            sheet.text(row, 0, line, "wrap")
            sheet.file.set_row(row, 14 * (1 + len(line) // 140))
    row += 2
    sheet.section(row, "Sheets", WIDE)
    for name, words in SHEETS.items():
        row += 1
        sheet.file.write_url(row, 0, f"internal:'{name}'!A1", sheet.book.look("link"), name)
        sheet.text(row, 1, words)


def of_scenario(scenario: Scenario, target: Path) -> None:
    """Write the workbook of a scenario. Raises InputError where it has none."""
    own = {name: getattr(scenario, name) for name in ("cards", "cards_per_node", "device", "nics", "superpod", "engine",
                                                      "weights", "ttft_goal_s", "tpot_goal_ms")}  # fmt: skip
    table = current(scenario.prices, scenario.price_file)
    region: Region = "cn" if scenario.region == "cn" else "other"
    write(target, costs(scene(**own), table, scenario.utilisation, region), in_words(scenario))
