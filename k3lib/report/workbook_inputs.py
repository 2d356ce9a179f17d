"""The sheets of a workbook that hold what goes in: prices, counts, workloads, speeds; each with its range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from k3lib.choose.study import Entry, Seen
from k3lib.facts.catalog import sources
from k3lib.ranges import Range
from k3lib.report.cells import Book, Cell, Sheet
from k3lib.report.formulas import figure
from k3lib.report.workbook_data import Content, Given, mix_rows

CASES = ("low", "default", "high")
LOADS = ("within the goals", "its own clients")
CASE, LOAD = "case", "speed_load"  # names of the cells that choose
USED = "used_"  # before the name of a default: the cell that formulas refer to
HEAD = ("Name of the default cell", "What", "Yours", "Low", "Default", "High", "Used now", "At the other end", "Unit",
        "Currency", "Date", "Kind", "Grade", "Sources", "Note")  # fmt: skip
WIDTHS = (34, 40, 12, 12, 12, 12, 12, 12, 18, 9, 11, 11, 10, 60, 70)
YOURS, LOW, USED_AT, OTHER = 2, 3, 6, 7
THOUSAND = 1000


@dataclass(frozen=True)
class Used:
    """An input's cells. now: what formulas take; other: its value at the other end of the range, for break-evens."""

    now: Cell
    other: Cell


@dataclass(frozen=True)
class Switches:
    """The cells that choose for the whole workbook. case, load: numbers, counted from 1."""

    case: Cell
    load: Cell


def inputs(book: Book, held: Content, switches: Switches) -> dict[str, Used]:
    """The sheet of inputs. Returns the cells of each by its key."""
    sheet = book.sheet("Inputs", WIDTHS)
    sheet.head(0, HEAD, words=(0, 1, *range(OTHER + 1, len(HEAD))))
    sheet.held(1, 2)
    found: dict[str, Used] = {}
    row = 1
    workloads = [given for one in held.workloads.values() for given in mix_rows(one)]
    for title, rows in (
        ("Prices, rates and shares", held.prices),
        ("How many of each", held.counts),
        ("Workloads: tokens of a mean request", workloads),
        ("Prices that no option of this scenario uses", held.spare),
    ):
        if rows:
            sheet.section(row, title, len(HEAD))
            row += 1
        for given in rows:
            _described(sheet, row, given)
            if rows is not held.spare:
                found[given.key] = _used(sheet, row, given, switches)
            row += 1
    return found


def _described(sheet: Sheet, row: int, given: Given) -> None:
    """A row without its formulas. The default's cell has a name."""
    style = number_style(given)
    sheet.text(row, 0, given.name)
    sheet.text(row, 1, given.what)
    for at, value in enumerate((given.range.low, given.range.value, given.range.high)):
        sheet.number(row, LOW + at, value, f"input {style}", given.name if at == 1 else "")
    shown = {"1": "share" if style == "share" else "number", "1/year": "share a year"}.get(given.unit, given.unit)
    sheet.text(row, OTHER + 1, shown, "after")
    words = (given.currency, given.as_of, given.kind, given.grade, given.sources, given.note)
    sheet.texts(row, OTHER + 2, words)


def _used(sheet: Sheet, row: int, given: Given, switches: Switches) -> Used:
    """The cells that choose between a reader's value and the ends of the range."""
    style = number_style(given)
    yours = sheet.blank(row, YOURS, f"input {style}")
    ends = [f"{column}{row + 1}" for column in "DEF"]
    cheap_first = ends[::-1] if given.falling else ends
    now = choose(yours, switches.case, cheap_first, given.least)
    other = choose(yours, switches.case, cheap_first[::-1], given.least)
    value = max(given.range.value, given.least)
    return Used(
        sheet.formula(row, USED_AT, now, value, f"used {style}", USED + given.name),
        sheet.formula(row, OTHER, other, value, f"pale {style}"),
    )


def choose(yours: str, case: Cell, cells: Iterable[str], least: float = 0.0) -> str:
    """A formula for a reader's value where there is one, else the cell of the case; least: below which nothing goes."""
    chosen = f"IF(ISNUMBER({yours}),{yours},CHOOSE({case.name},{','.join(cells)}))"
    return f"=MAX({chosen},{figure(least)})" if least else f"={chosen}"


def number_style(given: Given) -> str:
    """How an input's numbers look."""
    if given.unit in ("1", "1/year") and not given.key.startswith("count.") and given.range.high <= 1:
        return "share"
    return "whole" if given.range.high >= THOUSAND else "general"


SPEED_HEAD = ("Cluster", "Workload", "Name", "Cards", "Yours, tok/s", "Used now, tok/s",
              "Within the goals: clients", "Layout", "Low, tok/s", "Default, tok/s", "High, tok/s",
              "Its own clients", "Layout", "Low, tok/s", "Default, tok/s", "High, tok/s", "Goals met by them",
              "Grade", "How far it was measured", "Sources")  # fmt: skip
SPEED_WIDTHS = (24, 22, 34, 8, 12, 12, 10, 18, 10, 10, 10, 10, 18, 10, 10, 10, 10, 10, 40, 60)


def speeds(book: Book, held: Content, switches: Switches) -> dict[tuple[str, str], Cell]:
    """The sheet of speeds: output of a whole cluster under full load. Returns the cell used by (cluster, workload)."""
    sheet = book.sheet("Speeds", SPEED_WIDTHS)
    sheet.head(0, SPEED_HEAD, words=(0, 1, 2, 7, 12, *range(16, len(SPEED_HEAD))))
    sheet.held(1, 2)
    found: dict[tuple[str, str], Cell] = {}
    for row, (key, entry) in enumerate(held.entries.items(), 1):
        cluster, workload = held.clusters[key[0]], held.workloads[key[1]]
        sheet.texts(row, 0, (cluster.short, workload.label, f"{key[0]} / {key[1]}"))
        sheet.number(row, 3, cluster.cards)
        found[key] = _speed(sheet, row, entry, switches)
        sheet.text(row, 16, "yes" if entry.within else "no", "after")
        sheet.texts(row, 17, ("derived", entry_words(entry), _titles(entry)))
    sheet.filtered(0, len(held.entries), len(SPEED_HEAD))
    return found


def _speed(sheet: Sheet, row: int, entry: Entry, switches: Switches) -> Cell:
    """A row of speeds. Where no client gets what the goals ask, the workload's own clients stand for it."""
    yours = sheet.blank(row, 4, "input tenth")
    own, most = _three(sheet, row, 13, entry.seen), _three(sheet, row, 8, entry.most)
    sheet.number(row, 6, entry.most_clients)
    sheet.text(row, 7, entry.most_layout or "none: goals missed", "after")
    sheet.number(row, 11, entry.clients)
    sheet.text(row, 12, entry.layout, "after")
    goals, mine = (
        f"CHOOSE({switches.case.name},{','.join(cell.address for cell in cells[::-1])})" for cells in (most or own, own)
    )
    text = f"=IF(ISNUMBER({yours}),{yours},IF({switches.load.name}=1,{goals},{mine}))"
    return sheet.formula(row, 5, text, (most or own)[1].value, "used tenth")


def _three(sheet: Sheet, row: int, column: int, seen: Seen | None) -> list[Cell]:
    """Low, default and high output of a load."""
    if seen is None:
        return []
    r: Range = seen.output_tps
    return [sheet.number(row, column + at, value, "input tenth") for at, value in enumerate((r.low, r.value, r.high))]


def entry_words(entry: Entry) -> str:
    """What of a set-up was measured."""
    seen = entry.most or entry.seen
    return seen.situation if seen else ""


def _titles(entry: Entry) -> str:
    known: Mapping[str, str] = {name: one.title for name, one in sources().items()}
    return "; ".join(known[name] for name in entry.sources)
