"""The plans that the book names: the scenario's own, and the alternatives that a reader asks about first."""

from __future__ import annotations

from k3lib.deploy.caches import Settings
from k3lib.deploy.plan import Plan, make_plan
from k3lib.engines.layout import Cluster, parse_cluster, parse_layout
from k3lib.errors import InputError
from k3lib.models.model import Model

# name -> cluster, layout, share of the card. The shares are those that each layout ran or was listed with.
ALTERNATIVES: dict[str, tuple[str, str, float]] = {
    "h20x32-tp8pp4ep8": ("4x8xh20-96", "tp8,pp4,ep8", 0.90),
    "h20x32-tp32ep32": ("4x8xh20-96", "tp32,ep32", 0.90),
    "h20x32-tp16pp2": ("4x8xh20-96", "tp16,pp2", 0.90),
    "h20x16-tp16ep16": ("2x8xh20-96", "tp16,ep16", 0.97),
    "h20-141x16-tp8pp2": ("2x8xh20-141", "tp8,pp2", 0.90),
    "h100x32-tp32": ("4x8xh100", "tp32", 0.90),
    "h100x32-tp8pp4": ("4x8xh100", "tp8,pp4", 0.90),
    "h200x8-tp8": ("1x8xh200", "tp8", 0.97),
    "h200x16-tp16": ("2x8xh200", "tp16", 0.97),
    "h200x16-tp8pp2": ("2x8xh200", "tp8,pp2", 0.90),
}


def scenario_cluster(cards: int, cards_per_node: int, device: str) -> Cluster:
    """The cluster of a scenario. Raises InputError when the cards do not fill whole servers."""
    if cards % cards_per_node:
        raise InputError(f"cards = {cards}: does not fill servers of cards_per_node = {cards_per_node}")
    return parse_cluster(f"{cards // cards_per_node}x{cards_per_node}x{device}")


def alternative(name: str, model: Model, max_model_len: int) -> Plan:
    """One of the named alternatives under vLLM."""
    cluster, layout, share = ALTERNATIVES[name]
    settings = Settings(utilisation=share, max_model_len=max_model_len)
    return make_plan(model, parse_cluster(cluster), parse_layout(layout), "vllm", settings)
