"""What a scenario compares: its plan, its superpod, the other clusters, the workloads with its goals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from k3lib.choose.study import Entry, entry, holds_not
from k3lib.deploy.named import scenario_cluster
from k3lib.errors import InputError
from k3lib.facts.clusters import NamedCluster, cluster, clusters
from k3lib.facts.planned import planned
from k3lib.facts.workloads import Workload, with_goals, workloads
from k3lib.models.model import Model, load_model

MODEL = "kimi-k3"
RELEASED = "mxfp4"
# Clusters that the book compares beside the scenario's own two: other servers, and every superpod.
BESIDE = ("h20-141x32", "h200x32", "h200x64")


@dataclass(frozen=True)
class Scene:
    """A scenario's comparison. weights: how the quantised weights are stored.

    reason: why the scenario's own plan does not hold the model, empty where it does; then plan is another.
    """

    plan: NamedCluster
    superpod: NamedCluster
    workloads: Mapping[str, Workload]
    model: Model
    engine: str
    weights: str
    reason: str = ""

    @cached_property
    def clusters(self) -> tuple[NamedCluster, ...]:
        """All clusters that are compared: the plan, other servers, the superpods; each once."""
        pods = [row for row in clusters().values() if row.kind != "servers"]
        many = [self.plan, *(cluster(name) for name in BESIDE), self.superpod, *pods]
        return tuple({row.cluster_id: row for row in many}.values())

    def entry(self, row: NamedCluster, workload_id: str) -> Entry:
        """A workload on a cluster."""
        key = row.cluster_id, workload_id
        if key not in self._entries:
            self._entries[key] = entry(row, self.workloads[workload_id], self.model, self.engine)
        return self._entries[key]

    @cached_property
    def _entries(self) -> dict[tuple[str, str], Entry]:
        return {}


def scene(*, cards: int, cards_per_node: int, device: str, nics: int, superpod: str, engine: str, weights: str,
          ttft_goal_s: float, tpot_goal_ms: float) -> Scene:  # fmt: skip
    """A scenario's comparison, from its parameters.

    Raises InputError for cards that do not fill servers, and for a superpod that does not hold the model.
    """
    own = planned(str(scenario_cluster(cards, cards_per_node, device)), nics)
    loads = {name: with_goals(one, ttft_goal_s, tpot_goal_ms) for name, one in workloads().items()}
    model = load_model(MODEL, None if weights == RELEASED else weights)
    if reason := holds_not(cluster(superpod), model, engine):
        raise InputError(f"superpod = {superpod}: not one layout holds {model.name} as {weights}. {reason}")
    holding = (row for row in (own, *clusters().values()) if not holds_not(row, model, engine))
    plan = next(holding)
    return Scene(plan, cluster(superpod), loads, model, engine, weights,
                 "" if plan == own else f"{own.label}: {holds_not(own, model, engine)}")  # fmt: skip
