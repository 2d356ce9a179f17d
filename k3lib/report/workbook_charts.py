"""The charts of a workbook, and the numbers that they draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from k3lib.report.cells import Book, Sheet
from k3lib.report.show import SERIES
from k3lib.report.workbook_bills import PARTS_OF_MONTH, Asked, Costed
from k3lib.report.workbook_data import Content
from k3lib.report.workbook_results import Outcome
from k3lib.units import MEGA

WIDTH, HEIGHT_OF_ROW, HEIGHT_OF_REST = 900, 26, 150
FONT = {"name": "Calibri", "size": 10, "color": "#222222"}


def charts(book: Book, held: Content, options: Sequence[Costed], services: Sequence[Asked],
           outcomes: Sequence[Outcome]) -> None:  # fmt: skip
    """The sheet of charts: the month by option, and a million output tokens by option and workload."""
    sheet = book.sheet("Charts", (40, *[14] * 10))
    shown = _shown(held, options)
    after = _months(sheet, 0, shown)
    _tokens(sheet, after, held, shown, services, outcomes)


def _shown(held: Content, options: Sequence[Costed]) -> list[Costed]:
    """Every cluster of one's own, and the rents of the scenario's own two."""
    ours = (held.here.plan.cluster_id, held.here.superpod.cluster_id)
    return [x for x in options if not x.held.rented or x.held.bill.cluster.cluster_id in ours]


def _months(sheet: Sheet, top: int, shown: Sequence[Costed]) -> int:
    """The month, stacked by what it goes into. Returns the first row below."""
    sheet.texts(top, 0, ("Month, million CNY", *PARTS_OF_MONTH), "head")
    for row, one in enumerate(shown, top + 1):
        sheet.text(row, 0, one.held.label)
        for column, part in enumerate(one.parts, 1):
            sheet.formula(row, column, f"={part.seen_from(sheet.name)}/{MEGA}", part.value / MEGA, "cents")
    chart = sheet.book.file.add_chart({"type": "bar", "subtype": "stacked"})
    for column, (colour, _) in zip(range(1, len(PARTS_OF_MONTH) + 1), SERIES, strict=False):
        chart.add_series(_series(sheet, top, len(shown), column) | {"fill": {"color": colour}, "gap": 40})
    finish(chart, "What a month costs, by what it goes into", "million CNY a month", len(shown), log=False)
    below = top + len(shown) + 2
    sheet.file.insert_chart(below, 0, chart)
    return below + _rows(len(shown))


def _tokens(sheet: Sheet, top: int, held: Content, shown: Sequence[Costed], services: Sequence[Asked],
            outcomes: Sequence[Outcome]) -> None:  # fmt: skip
    """A million output tokens, by option and workload."""
    unit = {(one.option, one.workload_id): one.unit for one in outcomes}
    rows = [(x.held.name, x.held.label) for x in shown]
    rows += [(x.service.name, x.service.label) for x in services if x.service.maker]
    sheet.texts(top, 0, ("CNY per Mtok of output", *(one.label for one in held.workloads.values())), "head")
    for row, (name, label) in enumerate(rows, top + 1):
        sheet.text(row, 0, label)
        for column, workload in enumerate(held.workloads, 1):
            if (name, workload) in unit:
                sheet.same(row, column, unit[name, workload], "cents")
    chart = sheet.book.file.add_chart({"type": "bar"})
    for column, (colour, _) in zip(range(1, len(held.workloads) + 1), SERIES, strict=False):
        chart.add_series(_series(sheet, top, len(rows), column) | {"fill": {"color": colour}, "gap": 60})
    finish(chart, "What a million output tokens cost, by workload", "CNY per Mtok of output, logarithmic",
           2 * len(rows), log=True)  # fmt: skip
    sheet.file.insert_chart(top + len(rows) + 2, 0, chart)


def _series(sheet: Sheet, top: int, rows: int, column: int) -> dict[str, Any]:
    """A column of a block as a series."""
    return {
        "name": [sheet.name, top, column],
        "categories": [sheet.name, top + 1, 0, top + rows, 0],
        "values": [sheet.name, top + 1, column, top + rows, column],
    }


def finish(chart: Any, title: str, axis: str, rows: int, *, log: bool) -> None:
    """Words and size of a chart of bars; the first option stands on top."""
    chart.set_title({"name": title, "name_font": {**FONT, "size": 12}, "overlay": False})
    scale = {"log_base": 10} if log else {}
    chart.set_y_axis({"name": axis, "name_font": FONT, "num_font": FONT, "num_format": "#,##0" if log else "0.0",
                      "major_gridlines": {"visible": True, "line": {"color": "#DDDDDD"}}, **scale})  # fmt: skip
    chart.set_x_axis({"reverse": True, "num_font": FONT, "label_position": "low"})
    chart.set_legend({"position": "top", "font": FONT})
    chart.set_size({"width": WIDTH, "height": HEIGHT_OF_REST + HEIGHT_OF_ROW * rows})


def _rows(bars: int) -> int:
    """Rows of a sheet that a chart of so many bars covers, and two more."""
    return (HEIGHT_OF_REST + HEIGHT_OF_ROW * bars) // 20 + 3
