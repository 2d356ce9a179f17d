"""The plans that the book names: the scenario's own, and the alternatives that a reader asks about first."""

from __future__ import annotations

from k3lib.deploy.caches import Settings
from k3lib.deploy.plan import Plan, make_plan
from k3lib.deploy.speed import Options
from k3lib.engines.layout import Cluster, parse_cluster, parse_layout
from k3lib.errors import InputError, near
from k3lib.facts.named import plans
from k3lib.models.model import Model


def scenario_cluster(cards: int, cards_per_node: int, device: str) -> Cluster:
    """The cluster of a scenario. Raises InputError when the cards do not fill whole servers."""
    if cards % cards_per_node:
        raise InputError(f"cards = {cards}: does not fill servers of cards_per_node = {cards_per_node}")
    return parse_cluster(f"{cards // cards_per_node}x{cards_per_node}x{device}")


def alternative(name: str, model: Model, max_model_len: int) -> Plan:
    """A plan of data/plans.csv by name. Raises InputError with the near name."""
    if name not in plans():
        raise InputError(f"plan '{name}' is not in data/plans.csv. {near(name, plans())}")
    row = plans()[name]
    settings = Settings(utilisation=row.utilisation, max_model_len=max_model_len, max_num_seqs=512,
                        state_dtype=row.flags.get("state_dtype", "float32"))  # fmt: skip
    return make_plan(model, parse_cluster(row.cluster), parse_layout(row.layout), row.engine, settings)


def options(name: str, nics: int | None = None) -> Options:
    """What a named plan says that its memory does not depend on."""
    return Options(experts=plans()[name].flags.get("experts", "auto"), nics=nics)
