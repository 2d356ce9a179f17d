"""Uneven stages: how layers lie by default, and how they lie best."""

from __future__ import annotations

from dataclasses import replace

from k3lib.deploy.plan import Plan, make_plan


def sizes(plan: Plan) -> tuple[int, ...]:
    """Layers of every stage."""
    return tuple(len(stage.layers) for stage in plan.stages)


def repartitioned(plan: Plan, layers: tuple[int, ...]) -> Plan:
    """The plan with other numbers of layers on its stages."""
    return make_plan(plan.model, plan.cluster, plan.layout, plan.engine.name,
                     replace(plan.settings, pp_partition=layers))  # fmt: skip


def evened(plan: Plan) -> Plan:
    """The plan with its layers moved, one at a time, from the tightest stage to the one with most room.

    It ends where a move no longer leaves more memory for caches on the tightest stage. The plan itself where none does.
    """
    while plan.layout.pp > 1:
        room = [stage.free[0] for stage in plan.stages]
        now = sizes(plan)
        source, target = room.index(min(room)), room.index(max(room))
        if now[source] == 1 or source == target:
            break
        after = repartitioned(plan, tuple(n - (i == source) + (i == target) for i, n in enumerate(now)))
        if after.stages[after.tightest].free[0] <= min(room):
            break
        plan = after
    return plan
