"""Names in figures, beside what they name: none over another, in the line's own colour, dark enough to read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from k3lib.report.looks import DARK, readable

SMALL = 9.0  # points: the least that a phone's reader can read in a figure of the book's width
LINE_SPACING = 1.25
AWAY = (5.0, 14.0, 26.0)  # pixels between a name and its line: as near as it can stand
INSIDE = 4.0  # how much worse a name stands at the middle of a line than at an end
Box = tuple[float, float, float, float]  # left, foot, right, top, in pixels


def apart(places: Mapping[str, float], gap: float) -> dict[str, float]:
    """Places of labels along an axis, moved so that none is nearer than `gap` to the next; their order is kept."""
    names = sorted(places, key=lambda name: places[name])
    clusters: list[tuple[list[str], float]] = []  # names, place of the middle
    for name in names:
        clusters.append(([name], places[name]))
        while len(clusters) > 1:
            (left, a), (right, b) = clusters[-2:]
            if b - a >= gap * (len(left) + len(right)) / 2 - 1e-12:
                break
            both = left + right
            clusters[-2:] = [(both, sum(places[n] for n in both) / len(both))]
    return {
        name: middle + gap * (at - (len(members) - 1) / 2)
        for members, middle in clusters
        for at, name in enumerate(members)
    }


def names_at_ends(
    axis: Any,
    ends: Mapping[str, tuple[float, float, str]],
    side: Literal["left", "right"] = "right",
    size: float = SMALL,
) -> None:
    """Write names beside an axis, each led to its point and none over another.

    ends: by name the x and y of the point in data, and its line's colour. Call it when the limits of the axis stand.
    """
    if not ends:
        return
    axis.figure.draw_without_rendering()
    height = axis.get_window_extent().height / axis.figure.dpi * 72
    fractions = {n: axis.transAxes.inverted().transform(axis.transData.transform((x, y)))[1]
                 for n, (x, y, _) in ends.items()}  # fmt: skip
    lines = max(name.count("\n") + 1 for name in ends)
    places = apart(fractions, size * LINE_SPACING * lines / height)
    beside, align = (1.04, "left") if side == "right" else (-0.02, "right")
    for name, (x, y, colour) in ends.items():
        axis.annotate(
            name, (x, y), (beside, places[name]), textcoords="axes fraction", color=readable(colour), va="center",
            ha=align, fontsize=size, annotation_clip=False, linespacing=1.0,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 1, "shrinkB": 3},
        )  # fmt: skip


def names_above(
    axis: Any, names: Mapping[float, str], lift: float = 0.2, colours: Mapping[float, str] | None = None
) -> None:
    """Write the names of rows above them instead of beside them, since long ones would leave no room for the data.

    names: by the row's y. lift: from the row to the foot of its name, in data. colours: of names, by y.
    """
    for y, name in names.items():
        colour = readable((colours or {}).get(y, DARK))
        axis.text(0.0, y + lift, name, transform=axis.get_yaxis_transform(), va="bottom", fontsize=SMALL, color=colour)
    axis.set_yticks([])


@dataclass(frozen=True)
class _Place:
    """A place for a name: its box, the point of the line that it belongs to, and how far it is away, in pixels."""

    box: Box
    point: tuple[float, float]
    away: float
    at_end: bool


def names_on_lines(
    axis: Any, lines: Mapping[str, tuple[Sequence[float], Sequence[float], str]], size: float = SMALL
) -> None:
    """Write names beside lines, each where it hides least: over no other name, and over as little of lines as can be.

    lines: by name its x, its y and its colour. Call it when the limits of the axis stand.
    """
    axis.figure.draw_without_rendering()
    corners = {name: axis.transData.transform(np.column_stack([xs, ys])) for name, (xs, ys, _) in lines.items()}
    drawn = {name: _between(points) for name, points in corners.items()}
    taken: list[Box] = []
    for name, (_, _, colour) in lines.items():
        text = axis.text(0, 0, name, fontsize=size, color=readable(colour), ha="left", va="bottom", linespacing=1.0)
        measured = text.get_window_extent()
        others = np.vstack([p for n, p in drawn.items() if n != name] or [np.empty((0, 2))])
        best = min(
            _places(corners[name], (measured.width, measured.height), axis.get_window_extent().extents),
            key=lambda p: _badness(p, taken, drawn[name], others),  # used in this turn only
        )
        taken.append(best.box)
        text.set_position(axis.transData.inverted().transform(best.box[:2]))
        if best.away > AWAY[0]:
            ends = axis.transData.inverted().transform([best.point, _nearest(best.box, best.point)])
            axis.plot(ends[:, 0], ends[:, 1], color=colour, linewidth=0.6, scalex=False, scaley=False)


def _between(points: Any, steps: int = 12) -> Any:
    """Points of a line in pixels and points between them."""
    if len(points) < 2:
        return points
    shares = np.linspace(0, 1, steps, endpoint=False)[:, None]
    return np.vstack([*(a + shares * (b - a) for a, b in itertools.pairwise(points)), points[-1:]])


def _places(points: Any, size: tuple[float, float], inside: Any) -> list[_Place]:
    """Places beside a line that lie inside the axes; the line's first point where none does."""
    along = _between(points, 4)
    found = [
        _Place(box, (x, y), away, at in (0, len(along) - 1))
        for away in AWAY
        for at, (x, y) in enumerate(along)
        for box in _around(x, y, size, away)
        if box[0] >= inside[0] and box[1] >= inside[1] and box[2] <= inside[2] and box[3] <= inside[3]
    ]
    x, y = along[0]
    return found or [_Place((x, y, x + size[0], y + size[1]), (x, y), AWAY[0], True)]


def _around(x: float, y: float, size: tuple[float, float], away: float) -> Iterator[Box]:
    """Boxes beside a point: right, left, above, below, and the corners."""
    width, height = size
    lefts = {"after": x + away, "before": x - away - width, "at": x - width / 2}
    feet = {"after": y + away, "before": y - away - height, "at": y - height / 2}
    for across, up in itertools.product(lefts, feet):
        if (across, up) != ("at", "at"):
            yield lefts[across], feet[up], lefts[across] + width, feet[up] + height


def _badness(place: _Place, taken: Sequence[Box], own: Any, others: Any) -> float:
    """How bad a place is: a name below it counts most, then other lines in it and near it, then its own line."""
    box, near = place.box, 2 * AWAY[0]
    wider = (box[0] - near, box[1] - near, box[2] + near, box[3] + near)
    over = any(min(box[2], b[2]) > max(box[0], b[0]) and min(box[3], b[3]) > max(box[1], b[1]) for b in taken)
    hidden = 3 * _within(box, others) + 0.7 * _within(wider, others) + 2 * _within(box, own)
    return 100 * over + hidden + place.away / AWAY[0] + (0 if place.at_end else INSIDE)


def _within(box: Box, points: Any) -> int:
    inside = (points[:, 0] > box[0]) & (points[:, 0] < box[2]) & (points[:, 1] > box[1]) & (points[:, 1] < box[3])
    return int(np.count_nonzero(inside))


def _nearest(box: Box, point: tuple[float, float]) -> tuple[float, float]:
    """The point of a box that is nearest to another."""
    return min(max(point[0], box[0]), box[2]), min(max(point[1], box[1]), box[3])
