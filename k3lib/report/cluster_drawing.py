"""A plan as a picture: servers, cards, which copy and stage each card is, and what a card of each stage holds."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from matplotlib.patches import FancyBboxPatch, Rectangle

from k3lib.choose.waived import plan_on
from k3lib.deploy.plan import Plan, Stage
from k3lib.errors import InputError
from k3lib.facts.clusters import NamedCluster
from k3lib.facts.workloads import Workload
from k3lib.models.model import Model
from k3lib.report import show
from k3lib.report.looks import DARK, PARTS, SERIES
from k3lib.report.ranks import Rank, ranks
from k3lib.units import GIBI, number

PER_ROW = 8  # cards beside each other
MOST_ROWS, MOST_STAGES = 16, 8
CARD, GAP = 0.86, 0.34  # side of a card in its unit square; space between servers
ROW_INCHES, BAR_INCHES = 0.47, 0.27
WEIGHTS, REST, CACHES = PARTS["experts"], PARTS["other"], PARTS["mla"]


def letters(number_of: int) -> str:
    """A copy's name: A to Z, then AA, AB and on."""
    name = ""
    while number_of >= 0:
        number_of, last = divmod(number_of, len(string.ascii_uppercase))
        name, number_of = string.ascii_uppercase[last] + name, number_of - 1
    return name


def name_of(rank: Rank, plan: Plan) -> str:
    """What stands on a card: its stage, its copy, or both where there are several of both."""
    stage = f"{rank.stage}" if plan.layout.pp > 1 else ""
    return (letters(rank.copy) if plan.copies > 1 or not stage else "") + stage


def colour_of(rank: Rank, plan: Plan) -> str:
    """By stage; by copy where there is one stage only."""
    return SERIES[(rank.stage if plan.layout.pp > 1 else rank.copy) % len(SERIES)][0]


def draw(plan: Plan, row: NamedCluster) -> Any:
    """The picture of a plan on a cluster. Returns matplotlib's figure."""
    stages = shown_stages(plan)
    rows = rows_of(ranks(plan), plan)
    cut = rows[:MOST_ROWS]
    heights = [ROW_INCHES * len(cut) + 0.2, BAR_INCHES * len(stages) + 0.65]
    drawn, (above, below) = show.axes(sum(heights), rows=2, height_ratios=heights)
    _cards(above, cut, len(rows) - len(cut), plan, row)
    _memory(below, stages, plan)
    return drawn


def rows_of(cards: Sequence[Rank], plan: Plan) -> list[list[list[Rank]]]:
    """Rows of parts of servers: several small servers beside each other, or a large one over several rows."""
    parts: list[list[Rank]] = []
    for node in range(plan.cluster.nodes):
        mine = [rank for rank in cards if rank.node == node]
        parts += [mine[at : at + PER_ROW] for at in range(0, len(mine), PER_ROW)]
    beside = max(1, PER_ROW // plan.cluster.cards_per_node)
    return [parts[at : at + beside] for at in range(0, len(parts), beside)]


def _cards(axis: Any, rows: list[list[list[Rank]]], hidden: int, plan: Plan, row: NamedCluster) -> None:
    right = 0.0
    for at, parts in enumerate(rows):
        x = 0.0
        for part in parts:
            _server(axis, part, x, -at * (1 + GAP), plan)
            x += len(part) + GAP
        right = max(right, x - GAP)
        first, last = parts[0][0].node + 1, parts[-1][0].node + 1
        named = f"server {first}" if first == last else f"servers {first} to {last}"
        axis.text(-0.4, -at * (1 + GAP) + CARD / 2, named, ha="right", va="center", fontsize=9)
    bottom = -(len(rows) - 1) * (1 + GAP)
    _links(axis, right, bottom, len(rows), row)
    if hidden:
        axis.text(right / 2, bottom - 0.6, f"and {hidden} more rows alike", ha="center", va="center", fontsize=9)
    axis.set(xlim=(-2.9, right + 1.1), ylim=(bottom - (1.0 if hidden else 0.45), 1 + GAP + 0.6), aspect="equal")
    axis.axis("off")


def _server(axis: Any, part: list[Rank], x: float, y: float, plan: Plan) -> None:
    """Cards in a frame; those that split each weight touch each other and have a dark frame of their own."""
    pad = GAP / 3
    axis.add_patch(FancyBboxPatch((x - pad / 2, y - pad), len(part) - 1 + CARD + pad, CARD + 2 * pad,
                                  boxstyle="round,pad=0.02,rounding_size=0.1", fill=False, edgecolor="#999999",
                                  linewidth=0.8))  # fmt: skip
    start = 0
    for at, rank in enumerate(part):
        axis.add_patch(Rectangle((x + at, y), 1 if _joined(part, at) else CARD, CARD, facecolor=colour_of(rank, plan),
                                 alpha=0.35, linewidth=0))  # fmt: skip
        axis.text(x + at + CARD / 2, y + CARD / 2, name_of(rank, plan), ha="center", va="center", fontsize=9)
        if not _joined(part, at):
            axis.add_patch(Rectangle((x + start, y), at - start + CARD, CARD, fill=False, edgecolor=DARK, linewidth=1))
            start = at + 1


def _joined(part: list[Rank], at: int) -> bool:
    """Whether a card splits each weight with the next one."""
    if at + 1 == len(part):
        return False
    one, other = part[at], part[at + 1]
    return (one.copy, one.stage) == (other.copy, other.stage) and one.share < other.share


def _links(axis: Any, right: float, bottom: float, count: int, row: NamedCluster) -> None:
    """One frame where all cards reach each other as inside a server; else the network beside the servers."""
    top = CARD + GAP
    if row.domain_cards >= row.cards:
        frame = FancyBboxPatch((-0.2, bottom - 0.25), right + 0.3, top - bottom + 0.3, fill=False, edgecolor=DARK,
                               boxstyle="round,pad=0.02,rounding_size=0.2", linewidth=1.6)  # fmt: skip
        axis.add_patch(frame)
        said = f"one domain of {row.domain_cards} cards"
        axis.text(right / 2, top + 0.45, said, ha="center", va="center", fontsize=9)
        return
    place = right + 0.35
    if count > 1:
        axis.plot([place, place], [bottom + CARD / 2, CARD / 2], color=DARK, linewidth=2, solid_capstyle="butt")
    for at in range(count):
        y = -at * (1 + GAP) + CARD / 2
        axis.plot([right, place], [y, y], color=DARK, linewidth=1)
    label = f"{row.nics} × {row.nic_gbit:g} Gb/s a server" if row.nics and row.nic_gbit else "network"
    axis.text(right + 0.35, top + 0.35, label, ha="right", va="center", fontsize=9)


def shown_stages(plan: Plan) -> list[Stage]:
    """All stages, or of many the first ones, the last and the tightest."""
    stages = list(plan.stages)
    if len(stages) <= MOST_STAGES:
        return stages
    kept = {*range(MOST_STAGES - 2), plan.tightest, len(stages) - 1}
    return [stage for stage in stages if stage.number in kept]


def _memory(axis: Any, stages: list[Stage], plan: Plan) -> None:
    """Bars of what a card of each stage holds: weights, what the engine needs beside them, what is left for caches."""
    budget = plan.capacity * plan.utilisation / GIBI
    for at, stage in enumerate(stages):
        weights, left = stage.weights / GIBI, max(0.0, stage.free[0] / GIBI)
        rest = max(0.0, budget - weights - left)
        start = 0.0
        for width, colour in ((weights, WEIGHTS), (rest, REST), (left, CACHES)):
            axis.barh(-at, width, left=start, height=0.72, color=colour, alpha=0.45)
            axis.text(start + width / 2, -at, number(width, ",.0f"), ha="center", va="center", fontsize=9)
            start += width
    first = stages[0]
    for x, label in ((first.weights / 2, "weights"), (plan.capacity * plan.utilisation - first.free[0] / 2, "caches")):
        if first.free[0] > 0:
            axis.text(x / GIBI, 0.62, label, ha="center", va="center", fontsize=9)
    axis.set_yticks([-at for at in range(len(stages))], [stage_words(stage, plan) for stage in stages], fontsize=9)
    axis.axvline(plan.capacity / GIBI, color=DARK, linewidth=1, linestyle=":")
    axis.set(xlim=(0, plan.capacity / GIBI * 1.03), ylim=(0.4 - len(stages), 0.9), xlabel="memory of one card, GiB")
    axis.tick_params(axis="y", length=0)


def stage_words(stage: Stage, plan: Plan) -> str:
    """A stage's name, counted from 0 as engines do, and its layers, counted from 1."""
    layers = f"layers {stage.layers.start + 1} to {stage.layers.stop}"
    return f"stage {stage.number}, {layers}" if plan.layout.pp > 1 else f"every card, {layers}"


def words(plan: Plan) -> str:
    """How to read the picture: what the cards share, in sentences."""
    layout, width = plan.layout, plan.engine.attention_tp(plan.layout)
    sets, shares = plan.engine.expert_groups(layout)
    found = []
    if layout.pp > 1:
        found.append(f"The number on a card is its stage of {layout.pp}: it holds that stage's layers only.")
    if plan.copies > 1:
        found.append(f"The letter is its copy of {plan.copies}: each copy serves requests of its own.")
    if width > 1:
        found.append(f"A dark frame joins cards that split each weight of attention, {width} of them in a group.")
    if sets > 1:
        found.append(f"Of the experts of its layers a card holds one part in {sets}, each expert whole.")
    if shares > 1:
        found.append(f"Of every expert of its layers a card holds one slice in {shares}.")
    return " ".join(found)


def plans(row: NamedCluster, workload: Workload, layouts: Iterable[str], model: Model, engine: str) -> dict[str, Plan]:
    """The plans of some layouts of a cluster, each once; layouts that the engine refuses there are left out."""
    found = {}
    for layout in layouts:
        with suppress(InputError):
            found[layout] = plan_on(row, workload, layout, model, engine)
    return found


def caption(drawn: Mapping[str, Plan], named: Mapping[str, str]) -> str:
    """What the pictures show, from above, each layout with its name, and how to read each."""
    told = [f"{named[layout]} ({layout}). {words(plan)}" for layout, plan in drawn.items()]
    return " ".join(f"{one[0].upper()}{one[1:]}" for one in told)
