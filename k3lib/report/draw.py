"""Pieces that several figures share: values with their ranges, stacked bars, keys, plain numbers on axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from k3lib.ranges import Range
from k3lib.report.labels import SMALL
from k3lib.report.looks import BETTER_TO_WORSE, DARK, Look, ink_on

STEPS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 1e9)
# What the shades of a map of factors mean.
FACTORS = dict(
    zip(("below 0.25", "0.25 to 0.5", "0.5 to 1", "1 to 2", "2 to 4", "above 4"), BETTER_TO_WORSE, strict=True)
)


def ranged(axis: Any, y: float, value: Range, look: Look, width: float = 1.8, size: float = 6.0) -> None:
    """A value as its option's mark, on a line from the low to the high end of its range."""
    axis.plot([value.low, value.high], [y, y], color=look.colour, linewidth=width, linestyle="-", solid_capstyle="butt")
    ground = "none" if look.full else "white"
    axis.plot(value.value, y, marker=look.mark, markersize=size, color=look.colour, linestyle="none",
              markerfacecolor=look.colour if look.full else ground)  # fmt: skip


def numbers_on(axis: Any, which: Literal["x", "y"], values: Iterable[float]) -> None:
    """Plain numbers on a logarithmic axis: those of `values` that lie within its limits, without small ticks."""
    low, high = sorted(axis.get_xlim() if which == "x" else axis.get_ylim())
    shown = [v for v in values if low <= v <= high]
    (axis.set_xticks if which == "x" else axis.set_yticks)(
        shown, [f"{v:,g}" if v < 1e6 else f"{v:,.0f}" for v in shown]
    )
    (axis.xaxis if which == "x" else axis.yaxis).set_minor_locator(NullLocator())


def stacked(
    axis: Any, y: float, parts: Sequence[tuple[float, str]], height: float = 0.68, texts: Sequence[str] = ()
) -> float:
    """One bar of parts, each with its size and colour, and a text inside where there is one. Returns the bar's end."""
    left = 0.0
    for at, (size, colour) in enumerate(parts):
        axis.barh(y, size, left=left, color=colour, edgecolor="white", linewidth=0.6, height=height)
        if at < len(texts) and texts[at]:
            axis.text(left + size / 2, y, texts[at], ha="center", va="center", fontsize=SMALL, color=ink_on(colour))
        left += size
    return left


def key(drawn: Any, colours: Mapping[str, str], columns: int = 2, below: bool = True) -> None:
    """What the colours of bars mean, beside all panels, where parts are too small to hold their names."""
    drawn.legend(
        [Patch(color=c) for c in colours.values()], list(colours), frameon=False, fontsize=SMALL, ncols=columns,
        loc="outside lower center" if below else "outside upper center", handlelength=1.0, handleheight=0.9,
        columnspacing=1.2, handletextpad=0.5,
    )  # fmt: skip


def factors(axis: Any, x: Any, y: Any, ratio: Any) -> None:
    """A map of a cost over that of a reference: shades of a factor of two, hatched above 1, a thick line at 1.

    x, y: of the columns and the rows. ratio: rows by columns.
    """
    shades = axis.contourf(x, y, ratio, levels=STEPS, colors=BETTER_TO_WORSE, hatches=[None] * 3 + ["////"] * 3)
    shades.set_edgecolor("#7A3300")
    shades.set_linewidth(0)
    axis.contour(x, y, ratio, levels=[1], colors=[DARK], linewidths=[2.2])
