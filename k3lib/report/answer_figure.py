"""The figure of the answer page: what a million tokens cost by volume, and where another way becomes cheaper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from k3lib.choose.recommend import Advice, Flip
from k3lib.choose.scene import Scene
from k3lib.choose.waived import Counted, cost_by_volume
from k3lib.evaluate import Array
from k3lib.facts.clusters import NamedCluster
from k3lib.report import advice as ad
from k3lib.report import show
from k3lib.report.answer import cheapest
from k3lib.report.speeds import apart
from k3lib.units import number


def crossing(ways: Sequence[Counted], volumes: Array) -> tuple[float, Counted] | None:
    """The least volume from which some way that serves costs less than the cheapest service, and that way.

    None where there is no service or no such volume.
    """
    service = cheapest(ways, "api")
    owned = [one for one in ways if one.option.kind != "api" and one.refused is None]
    if not service or not owned:
        return None
    asked = cost_by_volume(service[0], volumes)[1]
    costs = np.array([np.nan_to_num(cost_by_volume(one, volumes)[1], nan=np.inf) for one in owned])
    below = np.flatnonzero(costs.min(axis=0) < asked)
    return (float(volumes[below[0]]), owned[int(costs[:, below[0]].argmin())]) if len(below) else None


def crossing_sentence(
    found: tuple[float, Counted] | None, ways: Sequence[Counted], clusters: Mapping[str, NamedCluster], most: float
) -> str:
    """Where the cheapest service stops being cheaper than what serves under the rules."""
    service = cheapest(ways, "api")
    if not service:
        return "No price of a service is known."
    name = ad.option_words(service[0].option, clusters)
    if found is None:
        return f"Up to {number(most, ',.0f')} million tokens a day none of these ways costs less than {name}."
    volume, one = found
    way = ad.choice_words(str(one.option), clusters)
    return f"From {number(volume, ',.0f')} million tokens a day it costs less to {way} than to call {name}."


def _of_volume(advice: Advice) -> list[Flip]:
    return [flip for flip in advice.flips if flip.what == "mtok_per_day"]


def worth_showing(ways: Sequence[Counted], advice: Advice, scene: Scene) -> list[Counted]:
    """The ways of the figure: the choice, the runner-up, the plan, the superpod, the cheapest service, and what another
    volume would choose.
    """
    names = {f"own:{scene.plan.cluster_id}", f"own:{scene.superpod.cluster_id}", advice.choice}
    names |= {str(ranked.option) for ranked in advice.ranked[:2]} | {str(one.option) for one in cheapest(ways, "api")}
    names |= {flip.choice for flip in _of_volume(advice)}
    return [one for one in ways if str(one.option) in names and one.ranked]


LABELS = 13  # lines of text that the figure is high


def draw(axis: Any, ways: Sequence[Counted], advice: Advice, scene: Scene, volumes: Array) -> None:
    """Costs of a million tokens by volume: the choice with its range, ways that a rule leaves out dashed."""
    clusters = {c.cluster_id: c for c in scene.clusters}
    fixed = {f"own:{scene.plan.cluster_id}": show.COLOURS["truth"],
             f"own:{scene.superpod.cluster_id}": show.COLOURS["claim"],
             **{str(one.option): show.COLOURS["attention"] for one in cheapest(ways, "api")}}  # fmt: skip
    spare = iter((show.COLOURS["tables"], show.COLOURS["other"], show.COLOURS["shared"], show.COLOURS["scales"]))
    shown = worth_showing(ways, advice, scene)
    curves = {str(one.option): cost_by_volume(one, volumes) for one in shown}
    ends = {name: float(np.log(curve[1][~np.isnan(curve[1])][-1])) for name, curve in curves.items()}
    tallest = max(float(np.nanmax(curve[1])) for curve in curves.values())
    places = apart(ends, float(np.log(tallest) - min(ends.values())) / LABELS)
    for one in shown:
        name = str(one.option)
        low, value, high = curves[name]
        colour = fixed.get(name) or next(spare)
        axis.plot(volumes, value, color=colour, linewidth=2 if one.refused is None else 1.2,
                  linestyle="-" if one.refused is None else "--")  # fmt: skip
        if name == advice.choice:
            axis.fill_between(volumes, low, high, color=colour, alpha=0.15, linewidth=0)
        axis.annotate(ad.option_words(one.option, clusters), (volumes[-1], np.exp(ends[name])),
                      (volumes[-1] * 1.25, np.exp(places[name])), color=colour, va="center", fontsize=9,
                      arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6})  # fmt: skip
    _mark_turns(axis, ways, advice, curves, volumes)
    axis.axvline(advice.case.mtok_per_day, color=show.COLOURS["limit"], linewidth=1, linestyle=":")
    axis.set(xscale="log", yscale="log", xlim=(volumes[0], volumes[-1] * 25),
             xlabel="million tokens of output a day", ylabel="yuan for a million output tokens")  # fmt: skip
    ticks = [10.0**n for n in range(-3, 7) if volumes[0] <= 10.0**n <= volumes[-1]]
    axis.set_xticks(ticks, [f"{x:,g}" for x in ticks])
    axis.yaxis.set_major_formatter(lambda y, _: f"{y:,g}")
    axis.minorticks_off()
    axis.spines["bottom"].set_bounds(volumes[0], volumes[-1])


def _mark_turns(
    axis: Any, ways: Sequence[Counted], advice: Advice, curves: Mapping[str, Array], volumes: Array
) -> None:
    """Where another way becomes the choice, and from where the cheapest service costs more, with the volumes."""
    turns = [(float(flip.to), advice.choice) for flip in _of_volume(advice)]
    found = crossing(ways, volumes)
    if found and (service := str(cheapest(ways, "api")[0].option)) in curves:
        turns.append((found[0], service))
    for volume, name in turns:
        if volumes[0] <= volume <= volumes[-1]:
            height = float(np.interp(volume, volumes, curves[name][1]))
            axis.plot(volume, height, "o", color=show.COLOURS["limit"], markersize=4, zorder=5)
            axis.annotate(number(volume, ",.0f" if volume >= ad.FINE else ",.1f"), (volume, height), (-5, -10),
                          textcoords="offset points", ha="right", fontsize=8.5,
                          color=show.COLOURS["limit"])  # fmt: skip
