"""The figure of the answer page: what a million tokens cost by volume, and where another way becomes cheaper."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from k3lib.choose.recommend import Advice, Flip
from k3lib.choose.scene import Scene
from k3lib.choose.waived import Counted, cost_by_volume
from k3lib.evaluate import Array
from k3lib.facts.clusters import NamedCluster
from k3lib.report import advice as ad
from k3lib.report import looks
from k3lib.report.answer import cheapest
from k3lib.report.draw import numbers_on
from k3lib.report.labels import SMALL, names_at_ends
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


NAME_WIDTH = 18  # characters of a line of a name


def draw(axis: Any, ways: Sequence[Counted], advice: Advice, scene: Scene, volumes: Array) -> None:
    """Costs of a million tokens by volume: the choice with its range, ways that a rule leaves out dashed."""
    clusters = {c.cluster_id: c for c in scene.clusters}
    curves = {str(one.option): cost_by_volume(one, volumes) for one in worth_showing(ways, advice, scene)}
    axis.set(xscale="log", yscale="log", xlim=(volumes[0], volumes[-1]), xlabel="million tokens of output a day",
             ylabel="yuan for a million output tokens")  # fmt: skip
    ends = {}
    for one in worth_showing(ways, advice, scene):
        name, look = str(one.option), looks.of_way(str(one.option), clusters)
        low, value, high = curves[name]
        known = ~np.isnan(value)
        axis.plot(volumes, value, linewidth=2 if one.refused is None else 1.2, markevery=(5, 20), markersize=5,
                  linestyle="-" if one.refused is None else "--", **look.points)  # fmt: skip
        if name == advice.choice:
            axis.fill_between(volumes, low, high, color=look.colour, alpha=0.15, linewidth=0)
        words = ad.option_words(one.option, clusters).replace(" GB", "\u00a0GB")
        ends[textwrap.fill(words, NAME_WIDTH)] = (volumes[known][-1], value[known][-1], look.colour)
    _mark_turns(axis, ways, advice, curves, volumes)
    axis.axvline(advice.case.mtok_per_day, color=looks.DARK, linewidth=1, linestyle=":")
    powers = [10.0**n for n in range(-3, 7)]
    numbers_on(axis, "x", powers)
    numbers_on(axis, "y", powers)
    names_at_ends(axis, ends)


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
            axis.plot(volume, height, "o", color=looks.DARK, markersize=4, zorder=5)
            axis.annotate(number(volume, ",.0f" if volume >= ad.FINE else ",.1f"), (volume, height), (-5, -10),
                          textcoords="offset points", ha="right", fontsize=SMALL,
                          color=looks.DARK)  # fmt: skip
