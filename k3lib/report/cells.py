"""Cells of a workbook: numbers, texts that cannot turn into formulas, and formulas that carry the number they give."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sympy as sp
import xlsxwriter
from xlsxwriter.utility import xl_rowcol_to_cell

from k3lib.errors import InputError
from k3lib.report.formulas import formula

# A text that begins so is a formula to some program, once somebody edits it or saves it in another form.
DANGEROUS = tuple("=+-@{|\uff1d\uff0b\uff0d\uff20")
UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff\ud800-\udfff]+")
LONGEST_TEXT = 32_000

HEAD_POINTS = 42
INK, PALE, INPUT, HEAD = "#222222", "#666666", "#FFF8E1", "#E8EEF4"
_BASE: Mapping[str, Any] = {"font_name": "Calibri", "font_size": 10, "font_color": INK, "valign": "top"}
# How cells look. A style is one of these words, or several with a blank between: 'input share'.
LOOKS: Mapping[str, Mapping[str, Any]] = {
    "text": {},
    "wrap": {"text_wrap": True},
    "pale": {"font_color": PALE},
    "bold": {"bold": True},
    "title": {"bold": True, "font_size": 16},
    "section": {"bold": True, "font_size": 12, "top": 1, "top_color": PALE},
    "after": {"indent": 1},
    "right": {"align": "right"},
    "head": {"bold": True, "text_wrap": True, "bg_color": HEAD, "bottom": 1, "bottom_color": PALE},
    "input": {"bg_color": INPUT, "font_color": "#0B4F8A"},
    "used": {"bold": True},
    "link": {"font_color": "#0B4F8A", "underline": 1},
    "general": {},
    "whole": {"num_format": "#,##0"},
    "tenth": {"num_format": "#,##0.0"},
    "cents": {"num_format": "#,##0.00"},
    "share": {"num_format": "0.0%"},
}


@dataclass(frozen=True)
class Cell:
    """A cell and the number that it shows. name: under which the whole workbook knows it, empty where it has none."""

    sheet: str
    address: str
    value: float
    name: str = ""

    def seen_from(self, sheet: str) -> str:
        """What a formula of a sheet calls it."""
        if self.name:
            return self.name
        return self.address if sheet == self.sheet else f"{quoted(self.sheet)}!{self.address}"


def quoted(sheet: str) -> str:
    """A sheet's name as a formula has it."""
    return sheet if re.fullmatch(r"[A-Za-z]+", sheet) else f"'{sheet}'"


def plain(text: object) -> str:
    """A text that stays one in every program: nothing unseen in it, and an apostrophe before what starts a formula."""
    shown = UNSEEN.sub(" ", str(text)).strip()[:LONGEST_TEXT]
    return f"'{shown}" if shown.startswith(DANGEROUS) else shown


@dataclass
class Book:
    """A workbook in the making. made: its date, so that equal contents are equal bytes."""

    made: datetime
    title: str
    _bytes: io.BytesIO = field(default_factory=io.BytesIO)
    _names: set[str] = field(default_factory=set)
    _formats: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.file = xlsxwriter.Workbook(self._bytes, {"in_memory": True, "strings_to_urls": False})
        self.file.set_properties({"title": plain(self.title), "created": self.made})
        self.file.set_calc_mode("auto")

    def sheet(self, name: str, widths: Sequence[float], *, landscape: bool = True) -> Sheet:
        """A new sheet. widths: of its columns, in characters."""
        made = self.file.add_worksheet(name)
        for at, width in enumerate(widths):
            made.set_column(at, at, width)
        made.hide_gridlines(2)
        made.set_paper(9)
        made.fit_to_pages(1, 0)
        if landscape:
            made.set_landscape()
        return Sheet(self, name, made)

    def look(self, style: str) -> Any:
        """The format of a style."""
        if style not in self._formats:
            parts = [LOOKS[word] for word in style.split()]
            self._formats[style] = self.file.add_format({k: v for part in (_BASE, *parts) for k, v in part.items()})
        return self._formats[style]

    def name(self, name: str, sheet: str, address: str) -> None:
        """Give a cell a name. Raises InputError for one that is taken: names differ by more than case."""
        if name.casefold() in self._names or self.file.define_name(name, f"={quoted(sheet)}!{address}"):
            raise InputError(f"workbook: two cells of the name '{name}', or no name for a cell")
        self._names.add(name.casefold())

    def content(self) -> bytes:
        """The finished file."""
        self.file.close()
        return self._bytes.getvalue()


@dataclass
class Sheet:
    """One sheet. Rows and columns are counted from 0."""

    book: Book
    name: str
    file: Any

    def text(self, row: int, column: int, text: object, style: str = "text") -> None:
        """A text, whatever it begins with."""
        self.file.write_string(row, column, plain(text), self.book.look(style))

    def texts(self, row: int, column: int, texts: Iterable[object], style: str = "text") -> None:
        """Texts side by side."""
        for at, text in enumerate(texts, column):
            self.text(row, at, text, style)

    def blank(self, row: int, column: int, style: str) -> str:
        """An empty cell that a reader may fill. Returns its address."""
        self.file.write_blank(row, column, None, self.book.look(style))
        return str(xl_rowcol_to_cell(row, column))

    def number(self, row: int, column: int, value: float, style: str = "general", name: str = "") -> Cell:
        """A number."""
        self.file.write_number(row, column, value, self.book.look(style))
        return self._cell(row, column, value, name)

    def solved(
        self, row: int, column: int, expression: sp.Expr, cells: Mapping[sp.Symbol, Cell], style: str = "general"
    ) -> Cell:
        """An equation of the library as a formula, with the cells that its symbols stand for.

        Raises InputError for a symbol without a cell.
        """
        ready = formula(expression)
        text = ready.text({symbol: cell.seen_from(self.name) for symbol, cell in cells.items()})
        value = ready.value({symbol: cell.value for symbol, cell in cells.items()})
        return self.formula(row, column, text, value, style)

    def added(self, row: int, column: int, cells: Sequence[Cell], style: str = "general") -> Cell:
        """The sum of some cells; 0 of none."""
        if not cells:
            return self.number(row, column, 0.0, style)
        text = "=" + "+".join(cell.seen_from(self.name) for cell in cells)
        return self.formula(row, column, text, sum(cell.value for cell in cells), style)

    def same(self, row: int, column: int, cell: Cell, style: str = "general") -> Cell:
        """What another cell shows."""
        return self.formula(row, column, f"={cell.seen_from(self.name)}", cell.value, style)

    def formula(self, row: int, column: int, text: str, value: float, style: str = "general", name: str = "") -> Cell:
        """A formula of this module's own making, with the number that it gives."""
        self.file.write_formula(row, column, text, self.book.look(style), value)
        return self._cell(row, column, value, name)

    def worded(self, row: int, column: int, text: str, value: str, style: str = "text") -> None:
        """A formula that gives a word."""
        self.file.write_formula(row, column, text, self.book.look(style), value)

    def head(self, row: int, texts: Sequence[str], *, words: Iterable[int]) -> None:
        """The head of a table. words: columns that hold texts; those of numbers have their heads at the right."""
        of_texts = set(words)
        for column, text in enumerate(texts):
            self.text(row, column, text, "head" if column in of_texts else "head right")
        self.file.set_row(row, HEAD_POINTS)

    def held(self, rows: int, columns: int) -> None:
        """Keep the first rows and columns in sight, and print the rows on every page."""
        self.file.freeze_panes(rows, columns)
        self.file.repeat_rows(0, rows - 1)

    def section(self, row: int, text: str, columns: int) -> None:
        """A line above a part of a sheet, and what the part is."""
        for column in range(1, columns):
            self.blank(row, column, "section")
        self.text(row, 0, text, "section")

    def filtered(self, head: int, last: int, columns: int) -> None:
        """Let a reader pick rows of a table."""
        self.file.autofilter(head, 0, max(last, head), columns - 1)

    def _cell(self, row: int, column: int, value: float, name: str) -> Cell:
        if name:
            self.book.name(name, self.name, xl_rowcol_to_cell(row, column, row_abs=True, col_abs=True))
        return Cell(self.name, str(xl_rowcol_to_cell(row, column)), float(value), name)
