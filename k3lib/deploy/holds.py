"""Whether a cluster holds the model in a format at all, in whatever layout, and what is missing where it does not."""

from __future__ import annotations

from dataclasses import dataclass

from k3lib.deploy.caches import Settings
from k3lib.deploy.inverse import plans_of
from k3lib.deploy.plan import Plan, make_plan
from k3lib.engines.layout import Cluster, Layout
from k3lib.errors import InputError
from k3lib.models.model import Model, load_model
from k3lib.units import GIBI


@dataclass(frozen=True)
class Held:
    """The layout with most room, and the same of the tightest stage in GiB on a card.

    weights_gib: what the model takes. offered_gib: what the engine may use. free_gib: what is left for caches beside
    the reserve, below 0 where that much is missing. reason: the plan's own.
    """

    form: str
    cluster: str
    layout: str
    fits: bool
    reason: str
    weights_gib: float
    offered_gib: float
    free_gib: float


def best_plan(model: Model, cluster: Cluster, layout: Layout | None, engine: str, settings: Settings) -> Plan:
    """The plan in the layout, or without one the legal layout with most room on its tightest stage, fitting or not."""
    if layout is not None:
        return make_plan(model, cluster, layout, engine, settings)
    plans = list(plans_of(model, cluster, engine, settings))
    if not plans:
        raise InputError(f"{engine} has no layout of {model.name} on {cluster}")
    return max(plans, key=lambda plan: (plan.fits, plan.stages[plan.tightest].free[0]))


def held(name: str, form: str, cluster: Cluster, engine: str, settings: Settings, layout: Layout | None = None) -> Held:
    """Whether a model in a format fits a cluster, in the layout or in the best of all legal ones.

    Raises InputError for an unknown model or format.
    """
    plan = best_plan(load_model(name, form), cluster, layout, engine, settings)
    tightest = plan.stages[plan.tightest]
    return Held(form, str(cluster), str(plan.layout), plan.fits, plan.reason, tightest.weights / GIBI,
                plan.capacity * plan.utilisation / GIBI, tightest.free[0] / GIBI)  # fmt: skip
