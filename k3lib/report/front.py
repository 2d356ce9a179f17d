"""A figure whose points can be asked: the page shows what stands behind the one that is pointed at.

The figure is matplotlib's, set into the page itself so that a script reaches its points; the values stand in a table
below it, which is also what a reader without the script, or without sight, has.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from IPython.display import display
from matplotlib import pyplot as plt

from k3lib.ranges import Range
from k3lib.report.looks import Look
from k3lib.report.show import FONTS, table_html

POINT = "k3-point-"  # before the number of a point's row in the ids of a figure


def points(
    axis: Any, xs: Sequence[float], ys: Sequence[Range], look: Look, first: int, scale: float = 1.0, size: float = 5.0
) -> int:
    """Draw the points of one option: a line, each point with its range. Returns the row after its last.

    first: the row of the first point in the table. scale: of the values on the axis, as 1 over the number of cards.
    """
    axis.plot(xs, [y.value * scale for y in ys], color=look.colour, linestyle=look.line, linewidth=1.6)
    for row, (x, y) in enumerate(zip(xs, ys, strict=True), first):
        axis.plot([x, x], [y.low * scale, y.high * scale], color=look.colour, linewidth=0.8, alpha=0.35)
        axis.plot(x, y.value * scale, markersize=size, linestyle="none", gid=f"{POINT}{row}", **look.points)
    return first + len(xs)


def front(
    drawn: Any, header: Sequence[str], rows: Iterable[Sequence[Any]], *, label: str, alt: str, text_columns: int = 1
) -> None:
    """Show a figure whose points can be asked, and the table of its points; then close the figure.

    header, rows, text_columns: of the table, as `show.table` takes them. A point's row is the number in its id. label:
    what the table is. alt: what the figure shows.
    """
    out = io.StringIO()
    drawn.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(drawn)
    shown = "\n".join([
        f'<div class="k3-front">{inline(out.getvalue(), alt)}',
        "<details><summary>The points as a table</summary>",
        table_html(header, rows, label=label, text_columns=text_columns),
        "</details></div>",
    ])  # fmt: skip
    display({"text/html": shown, "text/plain": label}, raw=True)


def inline(svg: str, alt: str) -> str:
    """A figure of matplotlib's as an element of a page: as wide as its place, named, without a style of its own."""
    body = svg[svg.index("<svg") :].replace("'DejaVu Sans'", FONTS)
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<style[^>]*>.*?</style>", "", body, flags=re.DOTALL)
    view = re.search(r'viewBox="[^"]*"', body)
    if view is None:
        raise ValueError("a figure without a viewBox has no size")
    return re.sub(r"^<svg[^>]*>", f'<svg {view[0]} role="img" aria-label="{html.escape(alt)}">', body).strip()
