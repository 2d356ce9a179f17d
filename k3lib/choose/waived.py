"""Every way to serve one situation beside the others: those that a rule leaves out are counted as if it were waived."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from k3lib.choose.deployed import MOST_RUNNING, deployed
from k3lib.choose.recommend import Option, Ranked, Refused, World, output_of_mix, tried
from k3lib.choose.scene import Scene
from k3lib.deploy.caches import Settings
from k3lib.deploy.plan import Plan, make_plan
from k3lib.engines.layout import parse_layout
from k3lib.evaluate import Array
from k3lib.facts.clusters import NamedCluster
from k3lib.facts.decisions import Decision
from k3lib.facts.workloads import Workload
from k3lib.models.model import Model
from k3lib.ranges import Range
from k3lib.units import GIBI

Confidence = Literal["high", "medium", "low", "none"]
# How far the speed and the cost of a cluster may be believed, by what was measured of K3 on its cards.
OF_EVIDENCE: Mapping[str, Confidence] = {"measured": "medium", "kin": "low", "none": "none"}
OF_SERVICE: Confidence = "high"  # a listed price; nothing of it is predicted

# Clusters of the short table beside the scenario's own two, by their names in data/clusters.csv.
SHORT = ("h20-141x32", "h200x32", "gb200-nvl72-64")


@dataclass(frozen=True)
class Counted:
    """A way to serve, and what was waived to count it. refused: the first rule against it, None where it serves.

    ranked: its money; None where it cannot be counted whatever is waived. case, world: the situation and the world with
    all that was waived. output_tps: of one deployment that is always busy, on the situation's mix; None for a service.
    left_gib: memory left for caches on the tightest card, on the layout of the mix's largest workload.
    """

    option: Option
    refused: Refused | None
    ranked: Ranked | None
    case: Decision
    world: World
    output_tps: Range | None
    left_gib: Range | None
    confidence: Confidence


def counted(case: Decision, world: World, scene: Scene) -> tuple[Counted, ...]:
    """Every way of the situation's region: those that serve by what they cost a month, then the others likewise."""
    found = [one for option in world.options if (one := _counted(case, option, world, scene)) is not None]
    return tuple(sorted(found, key=lambda one: (one.refused is not None, _month(one))))


def _month(one: Counted) -> float:
    return one.ranked.monthly_cny.value if one.ranked else math.inf


def _counted(case: Decision, option: Option, world: World, scene: Scene) -> Counted | None:
    found = tried(case, option, world)
    if found is None:
        return None
    first = found if isinstance(found, Refused) else None
    waived: set[str] = set()
    while isinstance(found, Refused) and found.rule not in waived:
        waived.add(found.rule)
        case, world = _without(found.rule, case, world)
        found = tried(case, option, world)
    ranked = found if isinstance(found, Ranked) else None
    if option.kind == "api":
        return Counted(option, first, ranked, case, world, None, None, OF_SERVICE)
    row = next(row for row in scene.clusters if row.cluster_id == option.name)
    output = None
    if ranked:
        output = Range(output_of_mix(case, option.name, world, lambda seen: seen.output_tps.value),
                       output_of_mix(case, option.name, world, lambda seen: seen.output_tps.low),
                       output_of_mix(case, option.name, world, lambda seen: seen.output_tps.high))  # fmt: skip
    return Counted(option, first, ranked, case, world, output, _left(case, row, world, scene),
                   OF_EVIDENCE[row.evidence])  # fmt: skip


def _without(rule: str, case: Decision, world: World) -> tuple[Decision, World]:
    """The situation and the world as if a rule did not count; of the region, as if it stood in the other one."""
    changes: dict[str, dict[str, object]] = {
        "data": {"data_stays": "no"},
        "budget": {"budget_cny": math.inf},
        "region": {"region": "other" if case.region == "cn" else "cn"},
    }
    if rule == "goals":
        return case, replace(world, goals=False)
    return case.model_copy(update=changes.get(rule, {})), world


def _left(case: Decision, row: NamedCluster, world: World, scene: Scene) -> Range | None:
    """Memory left for caches on the tightest card in GiB; None where the workload does not fit."""
    largest = max(case.shares, key=lambda name: case.shares[name])
    one = world.entries[row.cluster_id, largest]
    layout = one.most_layout or one.layout
    if not layout:
        return None
    plan = plan_on(row, scene.workloads[largest], layout, scene.model, scene.engine)
    value, low, high = (free / GIBI for free in plan.stages[plan.tightest].free)
    return Range(value, low, high)


def plan_on(row: NamedCluster, workload: Workload, layout: str, model: Model, engine: str) -> Plan:
    """The plan of a layout of a cluster for requests of a workload's length. Raises InputError as `make_plan` does."""
    there = deployed(row)
    settings = Settings(max_num_seqs=MOST_RUNNING, max_model_len=workload.isl + workload.osl)
    return make_plan(model, there.cluster, parse_layout(layout), engine, settings, there.options.hardware)


def cost_by_volume(one: Counted, volumes: Array) -> Array:
    """What a million output tokens cost by million tokens a day, in CNY: low, value and high, of shape (3, volumes).

    With what was waived for the way, and however much may be invested; nan where it cannot be counted.
    """
    found = np.full((3, len(volumes)), np.nan)
    free = one.case.model_copy(update={"budget_cny": math.inf})
    for at, volume in enumerate(volumes):
        there = tried(free.model_copy(update={"mtok_per_day": float(volume)}), one.option, one.world)
        if isinstance(there, Ranked):
            found[:, at] = there.cny_per_mtok.corners()
    return found


def shortlist(all_ways: tuple[Counted, ...], scene: Scene) -> tuple[Counted, ...]:
    """The ways that a decision is between: the first two; the plan and the superpod; the servers and the rack that
    stand beside them; the cheapest rent; the services.
    """
    names = {scene.plan.cluster_id, scene.superpod.cluster_id, *SHORT}
    rents = [one for one in all_ways if one.option.kind == "rent" and one.ranked]
    serving = [one for one in rents if one.refused is None or one.refused.rule != "goals"]
    rent = min(serving or rents, key=_month, default=None)
    firsts = [one for one in all_ways if one.refused is None][:2]
    return tuple(one for one in all_ways if one in firsts or one is rent or one.option.kind == "api"
                 or (one.option.kind == "own" and one.option.name in names))  # fmt: skip
