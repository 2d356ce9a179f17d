"""Which part of a deployment each card is: its copy of the model, its pipeline stage, its share of each weight."""

from __future__ import annotations

from dataclasses import dataclass

from k3lib.deploy.plan import Plan


@dataclass(frozen=True)
class Rank:
    """One card, all counted from 0. copy: the group with requests of its own. share: its place among the cards that
    split each weight of attention.
    """

    card: int
    node: int
    copy: int
    stage: int
    share: int


def ranks(plan: Plan) -> tuple[Rank, ...]:
    """Every card of the cluster, in the order in which the engine numbers them.

    Tensor ranks lie next to each other. Around them come stages and then data ranks where these are groups of their
    own, as in vLLM; in SGLang they are cut out of the tensor ranks of a stage. Source: vllm_033 and sglang_0523,
    parallel_state.
    """
    layout, engine = plan.layout, plan.engine
    size, width = engine.cards(layout), engine.attention_tp(layout)
    per_deployment = size // (layout.pp * width)
    outside = width == layout.tp
    found = []
    for card in range(plan.cluster.cards):
        deployment, at = divmod(card, size)
        group, share = divmod(at, width)
        data, stage = divmod(group, layout.pp) if outside else divmod(group, per_deployment)[::-1]
        found.append(Rank(card, card // plan.cluster.cards_per_node, deployment * per_deployment + data, stage, share))
    return tuple(found)
