"""How much of a model one small cluster holds: some of its layers, or some of the experts of all layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from k3lib.account import symbols as s
from k3lib.deploy.caches import Settings
from k3lib.deploy.inverse import largest, largest_concurrency
from k3lib.deploy.plan import Plan, make_plan
from k3lib.deploy.variants import with_experts, with_layers
from k3lib.engines.layout import Cluster, Layout
from k3lib.errors import InputError
from k3lib.models.model import Model
from k3lib.models.weights import weight_account
from k3lib.units import GIBI

Make = Callable[[int], Model]
STATE_MIXERS = ("kda", "gdn")


@dataclass(frozen=True)
class Pilot:
    """What a cluster holds in one layout. layers: of those that the model has, with all experts.

    experts: of a layer, in all layers. 0 where nothing fits. share_*: of the model's weights, in bytes. free_*: memory
    that is left for caches on a card of the tightest stage, in GiB.
    """

    cluster: str
    layout: str
    layers: int
    of_layers: int
    share_with_layers: float
    free_with_layers_gib: float
    experts: int
    of_experts: int
    share_with_experts: float
    free_with_experts_gib: float


def pilot(model: Model, cluster: Cluster, layout: Layout, engine: str, settings: Settings) -> Pilot:
    """How many layers with all experts fit, and how many experts of all layers, by the ledger.

    Raises InputError for a model without experts, or a layout that cannot be.
    """
    if s.experts not in model.values:
        raise InputError(f"{model.name} has no routed experts")

    def plan(part: Model) -> Plan:
        return make_plan(part, cluster, layout, engine, settings)

    def layers_of(n: int) -> Model:
        return with_layers(model, n)

    def experts_of(n: int) -> Model:
        return with_experts(model, n)

    total = weight_account(model).bytes
    all_layers, all_experts = len(model.mixers), model.values[s.experts]
    # A part without a layer that keeps tokens would hold requests without end.
    shortest = next((i + 1 for i, mixer in enumerate(model.mixers) if mixer not in STATE_MIXERS), 1)
    layers = largest(lambda n: plan(layers_of(n)).fits, max(shortest, layout.pp), all_layers)
    experts = largest(lambda n: plan(experts_of(n)).fits, model.values[s.experts_per_token], all_experts)

    def held(make: Make, n: int) -> tuple[float, float]:
        if not n:
            return 0.0, 0.0
        made = plan(make(n))
        return weight_account(make(n)).bytes / total, made.stages[made.tightest].free[0] / GIBI

    return Pilot(str(cluster), str(layout), layers, all_layers, *held(layers_of, layers), experts, all_experts,
                 *held(experts_of, experts))  # fmt: skip


def resident_experts(plan: Callable[[int], Plan], most: int, least: int, clients: int, context: int) -> int:
    """Experts of every layer that fit on the cards beside the caches of so many requests of `context` tokens.

    plan: by experts.
    """

    def holds(experts: int) -> bool:
        made = plan(experts)
        return made.fits and largest_concurrency(made, context) * made.copies >= clients

    return largest(holds, least, most)
