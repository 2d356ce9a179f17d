"""What a notebook shows: equations, tables whose numbers keep their trail, figures in the book's one style."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib
import sympy as sp
from IPython.display import display
from matplotlib import pyplot as plt

from k3lib.account.symbols import REGISTRY, latex
from k3lib.report.trail import Html

# So narrow that text of 9 points stays readable where a phone shows the figure as wide as its screen.
WIDTH_INCHES = 4.6

STYLE: dict[str, Any] = {
    "figure.figsize": (WIDTH_INCHES, 3.0),
    "figure.constrained_layout.use": True,
    "savefig.transparent": True,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "hatch.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "grid.color": "#DDDDDD",
    "text.color": "#222222",
    "axes.labelcolor": "#222222",
    "axes.edgecolor": "#666666",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "svg.hashsalt": "k3",
    "svg.fonttype": "none",  # text stays text: it can be searched, read aloud and translated
}
# Verdana has the widths of DejaVu, by which matplotlib lays a figure out; the others hold Chinese.
FONTS = "'DejaVu Sans', Verdana, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"


def axes(height_inches: float = 3.0, rows: int = 1, **kwargs: Any) -> tuple[Any, Any]:
    """A figure of the book's width in its style. Returns matplotlib's figure and axes."""
    matplotlib.rcParams.update(STYLE)  # type: ignore[arg-type]
    return plt.subplots(rows, 1, figsize=(WIDTH_INCHES, height_inches), **kwargs)


def figure(drawn: Any) -> None:
    """Show a figure as SVG without a date, so that the same figure has the same bytes; then close it."""
    out = io.StringIO()
    drawn.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(drawn)
    shown = out.getvalue().replace("'DejaVu Sans'", FONTS)
    display({"image/svg+xml": shown, "text/plain": "figure"}, raw=True)


def equation(left: str, right: sp.Expr) -> None:
    """Show `left = right` as a displayed equation, broken over lines where a sum is long. `left` is LaTeX."""
    display({"text/latex": f"$$\n{_broken(left, right)}\n$$", "text/plain": f"{left} = {right}"}, raw=True)


TERMS_PER_LINE = 3


def _broken(left: str, right: sp.Expr) -> str:
    """The equation on one line, or with its longest sum over several lines."""
    factors = sp.Mul.make_args(right)
    longest = max(factors, key=lambda f: len(sp.Add.make_args(f)))
    terms = sp.Add.make_args(longest)
    if len(terms) <= TERMS_PER_LINE + 1:
        return f"{left} = {latex(right)}"
    outer = sp.Mul(*(f for f in factors if f is not longest))
    terms = sorted(terms, key=lambda term: len(latex(term)), reverse=True)
    lines = [" + ".join(latex(t) for t in terms[i : i + TERMS_PER_LINE]) for i in range(0, len(terms), TERMS_PER_LINE)]
    start, end = (f"{latex(outer)}\\,\\bigl( ", " \\bigr)") if outer != 1 else ("", "")
    return f"\\begin{{aligned}}{left} = {start}&" + " \\\\ &+ ".join(lines) + f"{end}\\end{{aligned}}"


def word(symbol: sp.Symbol) -> str:
    """What a symbol stands for, in words."""
    return REGISTRY[str(symbol)].meaning


def two_lines(first: str, second: str) -> Html:
    """A cell of words with smaller ones below them; both are escaped where they are not HTML already."""
    return Html(f"{escaped(first)}<br><small>{escaped(second)}</small>")


def breakable(name: str) -> Html:
    """A long name that may break behind an underscore or a colon, and before a capital inside it."""
    return Html(re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[_:])", "<wbr>", html.escape(name)))


def escaped(text: str) -> str:
    """Text for HTML; as it is where it is HTML already."""
    return text if isinstance(text, Html) else html.escape(text)


LONGEST = 25  # rows; above a longer table there is room for a field of words, which the page's script fills


def table(
    header: Sequence[str], rows: Iterable[Sequence[Any]], *, label: str, text_columns: int = 1, total: bool = False
) -> None:
    """Show a table. The first `text_columns` columns are words, the others numbers, set to the right.

    Cells are text, or numbers from `trail.cell`. label: what the table is, for screen readers. total: the last row is
    a sum. Raises ValueError for a row of another length than the header.
    """
    shown = table_html(header, rows, label=label, text_columns=text_columns, total=total)
    display({"text/html": shown, "text/plain": label}, raw=True)


def table_html(
    header: Sequence[str], rows: Iterable[Sequence[Any]], *, label: str, text_columns: int = 1, total: bool = False
) -> str:
    """The HTML of a table that `table` shows. Raises ValueError for a row of another length than the header."""
    body = [list(row) for row in rows]
    lines = [
        *(['<div class="k3-words"></div>'] if len(body) > LONGEST else []),
        f'<div class="k3-scroll" tabindex="0" role="region" aria-label="{html.escape(label)}">',
        f'<table class="k3-table"><caption>{html.escape(label)}</caption>',
        "<thead>",
        _line(header, text_columns, "th"),
        "</thead>",
        "<tbody>",
    ]
    for i, row in enumerate(body):
        if len(row) != len(header):
            raise ValueError(f"row {i + 1} of the table '{label}' has {len(row)} cells, the header has {len(header)}")
        last = total and i == len(body) - 1
        lines.append(_line(row, text_columns, "td", ' class="k3-total"' if last else ""))
    return "\n".join([*lines, "</tbody>", "</table>", "</div>"])


def _line(cells: Sequence[Any], text_columns: int, tag: str, attributes: str = "") -> str:
    shown = []
    for i, cell in enumerate(cells):
        text = escaped(cell if isinstance(cell, Html) else str(cell))
        kind = "" if i < text_columns else ' class="k3-right"'
        first = i == 0 and tag == "td"
        name = "th" if first else tag
        scope = ' scope="row"' if first else ' scope="col"' if tag == "th" else ""
        shown.append(f"<{name}{kind}{scope}>{text}</{name}>")
    return f"<tr{attributes}>{''.join(shown)}</tr>"


def commands(lines: str) -> None:
    """Show lines to be typed as they are."""
    display({"text/markdown": f"```text\n{lines.rstrip()}\n```", "text/plain": lines}, raw=True)


def points(sentences: Iterable[str]) -> None:
    """Show sentences as a list."""
    items = "\n".join(f"<li>{escaped(one)}</li>" for one in sentences)
    display({"text/html": f"<ul>\n{items}\n</ul>", "text/plain": "list"}, raw=True)
