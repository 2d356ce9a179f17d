"""A long table that readers filter and sort. Without its script it is a plain table, whole and in its order."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from IPython.display import display

from k3lib.facts.benchmarks import Run
from k3lib.report.trail import Html, cell, source_links
from k3lib.results import Result
from k3lib.units import number


@dataclass(frozen=True)
class Column:
    """spec: the format of its numbers, empty for words. choose: readers choose among its values. minor: not printed."""

    name: str
    spec: str = ""
    choose: bool = False
    minor: bool = False


def browser(
    columns: Sequence[Column], rows: Iterable[Sequence[Any]], *, label: str, noun: str = "rows", example: str = ""
) -> None:
    """Show the table. A cell is text, HTML, a number or a result of its column's format, or None.

    The first names the row. example: words that a reader may look for.
    """
    shown = markup(columns, rows, label=label, noun=noun, example=example)
    display({"text/html": shown, "text/plain": label}, raw=True)


def markup(
    columns: Sequence[Column], rows: Iterable[Sequence[Any]], *, label: str, noun: str = "rows", example: str = ""
) -> str:
    """The table's HTML; every text in it is escaped. Raises ValueError for a row of another length than the columns."""
    name = html.escape(label)
    head = "".join(_head(column) for column in columns)
    lines = [
        f'<div class="k3-browser" data-noun="{html.escape(noun)}" data-example="{html.escape(example)}">',
        f'<div class="k3-scroll" tabindex="0" role="region" aria-label="{name}">',
        f'<table class="k3-table"><caption>{name}</caption>',
        f"<thead><tr>{head}</tr></thead>",
        "<tbody>",
    ]
    for i, row in enumerate(rows):
        if len(row) != len(columns):
            raise ValueError(f"row {i + 1} of the table '{label}' has {len(row)} cells, not {len(columns)}")
        shown = "".join(
            _cell(column, value, k == 0) for k, (column, value) in enumerate(zip(columns, row, strict=True))
        )
        lines.append(f"<tr>{shown}</tr>")
    return "\n".join([*lines, "</tbody>", "</table>", "</div>", "</div>"])


def _classes(column: Column) -> str:
    names = [name for name, on in (("k3-right", column.spec), ("k3-minor", column.minor)) if on]
    return f' class="{" ".join(names)}"' if names else ""


def _head(column: Column) -> str:
    choose = ' data-choose=""' if column.choose else ""
    return f'<th scope="col"{_classes(column)}{choose}>{html.escape(column.name)}</th>'


def _cell(column: Column, value: Any, first: bool) -> str:
    sort = ""
    if value is None:
        text = ""
    elif isinstance(value, str):
        text = str(value) if isinstance(value, Html) else html.escape(value)
    elif isinstance(value, Result):
        text, sort = cell(value, None, column.spec), f' data-sort="{value.value!r}"'
    else:
        text, sort = number(value, column.spec), f' data-sort="{value!r}"'
    tag, scope = ("th", ' scope="row"') if first else ("td", "")
    return f"<{tag}{scope}{_classes(column)}{sort}>{text}</{tag}>"


RUN_COLUMNS = (
    Column("Card", choose=True),
    Column("Cards", ",.0f"),
    Column("Layout"),
    Column("Engine", choose=True),
    Column("Prompt, tokens", ",.0f"),
    Column("Answer, tokens", ",.0f"),
    Column("Clients", ",.0f"),
    Column("Output, tok/s", ",.0f"),
    Column("TPOT, ms", ",.1f"),
    Column("TTFT, ms", ",.0f"),
    Column("Draft"),
    Column("Kernel of the experts", minor=True),
    Column("Version", minor=True),
    Column("Input, tok/s", ",.0f", minor=True),
    Column("A user, tok/s", ",.1f", minor=True),
    Column("Use", choose=True),
    Column("Reason"),
    Column("Source"),
)
MODEL = Column("Model", choose=True)
USES = {"fit": "fitted", "show": "shown", "out": "left out"}
SIDES = {"aggregated": "", "prefill": "prefill alone", "decode": "decode alone", "separated": "separate sides"}


def run_browser(runs: Iterable[Run], *, label: str, with_model: bool = False) -> None:
    """Measured runs as such a table. with_model: they are of several models, whose names come first."""
    rows = [[run.model, *run_cells(run)] if with_model else run_cells(run) for run in runs]
    browser(
        (MODEL, *RUN_COLUMNS) if with_model else RUN_COLUMNS, rows, label=label, noun="runs", example="tp8,pp4 sglang"
    )


def run_cells(run: Run) -> list[Any]:
    """A run's cells under RUN_COLUMNS; its sources lead to their lines on the page of sources."""
    place = "; ".join(part for part in (run.layout or run.deployment, SIDES[run.serving]) if part)
    return [
        run.device, run.cards, place, run.engine, run.isl, run.osl, run.concurrency, run.answer_tps, run.tpot_ms,
        run.ttft_ms, run.speculation or "not stated", run.flags.get("experts", ""), run.version, run.input_tps,
        run.user_speed_tps, USES[run.use], run.reason, source_links(run.source_ids),
    ]  # fmt: skip
