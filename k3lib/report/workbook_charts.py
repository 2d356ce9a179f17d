"""The charts of a workbook, and the numbers that they draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from k3lib.report.cells import Book, Sheet
from k3lib.report.looks import SERIES, SPENDING
from k3lib.report.workbook_bills import PARTS_OF_MONTH, Asked, Costed
from k3lib.report.workbook_data import Content
from k3lib.report.workbook_results import Outcome
from k3lib.units import MEGA

WIDTH, HEIGHT = 1000, 560
ROW_PIXELS = 20
MARKS = {"o": "circle", "s": "square", "^": "triangle", "D": "diamond", "v": "x", "P": "plus", "X": "star"}
FONT = {"name": "Calibri", "size": 10, "color": "#222222"}
SCALE = {"name_font": FONT, "num_font": FONT, "major_gridlines": {"visible": True, "line": {"color": "#DDDDDD"}}}


def charts(book: Book, held: Content, options: Sequence[Costed], services: Sequence[Asked],
           outcomes: Sequence[Outcome]) -> None:  # fmt: skip
    """The sheet of charts: the month by option, and a million output tokens by option and workload."""
    sheet = book.sheet("Charts", (44, *[14] * 10))
    shown = _shown(held, options)
    after = _months(sheet, 0, shown)
    _tokens(sheet, after, held, shown, services, outcomes)


def _shown(held: Content, options: Sequence[Costed]) -> list[Costed]:
    """Every cluster of one's own, and the rents of the scenario's own two."""
    return [x for x in options if not x.held.rented or x.held.bill.cluster.cluster_id in held.ours]


def _months(sheet: Sheet, top: int, shown: Sequence[Costed]) -> int:
    """The month, stacked by what it goes into. Returns the first row below."""
    sheet.head(top, ("Month, million CNY", *PARTS_OF_MONTH), words=[0])
    for row, one in enumerate(shown, top + 1):
        sheet.text(row, 0, one.held.label)
        for column, part in enumerate(one.parts, 1):
            sheet.formula(row, column, f"={part.seen_from(sheet.name)}/{MEGA}", part.value / MEGA, "cents")
    chart = sheet.book.file.add_chart({"type": "bar", "subtype": "stacked"})
    for column, colour in zip(range(1, len(PARTS_OF_MONTH) + 1), SPENDING, strict=True):
        chart.add_series(_series(sheet, top, len(shown), column) | {"fill": {"color": colour}, "gap": 40})
    _finish(chart, "What a month costs, by what it goes into")
    chart.set_x_axis({**SCALE, "name": "million CNY a month", "num_format": "0.0", "label_position": "high"})
    chart.set_y_axis({"num_font": FONT, "reverse": True, "label_position": "low"})
    return _placed(sheet, top + len(shown) + 2, chart)


def _tokens(sheet: Sheet, top: int, held: Content, shown: Sequence[Costed], services: Sequence[Asked],
            outcomes: Sequence[Outcome]) -> None:  # fmt: skip
    """A million output tokens, by option and workload: a mark for each, as the axis is logarithmic."""
    unit = {(one.option, one.workload_id): one.unit for one in outcomes}
    rows = [(x.held.name, x.held.label) for x in shown]
    rows += [(x.service.name, x.service.label) for x in services if x.service.maker]
    sheet.head(top, ("CNY per Mtok of output", *(one.label for one in held.workloads.values())), words=[0])
    for row, (name, label) in enumerate(rows, top + 1):
        sheet.text(row, 0, label)
        for column, workload in enumerate(held.workloads, 1):
            if (name, workload) in unit:
                sheet.same(row, column, unit[name, workload], "cents")
    chart = sheet.book.file.add_chart({"type": "line"})
    for column, (colour, mark) in zip(range(1, len(held.workloads) + 1), SERIES, strict=False):
        shape = {"type": MARKS[mark], "size": 8, "fill": {"color": colour}, "border": {"color": colour}}
        chart.add_series(_series(sheet, top, len(rows), column) | {"line": {"none": True}, "marker": shape})
    _finish(chart, "What a million output tokens cost, by workload")
    chart.set_x_axis({"num_font": {**FONT, "rotation": -45}, "label_position": "low"})
    chart.set_y_axis({**SCALE, "name": "CNY per Mtok of output, logarithmic", "num_format": "#,##0", "log_base": 10})
    _placed(sheet, top + len(rows) + 2, chart)


def _series(sheet: Sheet, top: int, rows: int, column: int) -> dict[str, Any]:
    """A column of a block as a series."""
    return {
        "name": [sheet.name, top, column],
        "categories": [sheet.name, top + 1, 0, top + rows, 0],
        "values": [sheet.name, top + 1, column, top + rows, column],
    }


def _finish(chart: Any, title: str) -> None:
    """Title, legend and size."""
    chart.set_title({"name": title, "name_font": {**FONT, "size": 12}, "overlay": False})
    chart.set_legend({"position": "top", "font": FONT})
    chart.set_size({"width": WIDTH, "height": HEIGHT})


def _placed(sheet: Sheet, row: int, chart: Any) -> int:
    """A chart at a row. Returns the first row below it."""
    sheet.file.insert_chart(row, 0, chart)
    return row + HEIGHT // ROW_PIXELS + 2
