"""SGLang 0.5.23: splitting, stages, legal layouts, and two pools, one of state slots and one of tokens."""

from __future__ import annotations

from k3lib.account import symbols as s
from k3lib.engines.layout import Layout
from k3lib.engines.rules import Engine, divides
from k3lib.errors import InputError, near
from k3lib.models.model import Model

STRATEGIES = {"radix_off": "slots_radix_off", "no_buffer": "slots_no_buffer", "extra_buffer": "slots_extra_buffer",
              "extra_buffer_lazy": "slots_extra_buffer_lazy"}  # fmt: skip


def _partition(layers: int, count: int) -> list[int]:
    """Layers of each stage; what is left over goes to the last stages. Source: sglang_0523, distributed/utils."""
    extra = layers % count
    return [layers // count + (i >= count - extra) for i in range(count)]


def _expert_groups(layout: Layout) -> tuple[int, int]:
    """Expert-parallel groups share the set; the rest of the tensor-parallel width shares each expert."""
    return layout.ep, layout.tp // layout.ep


def _check(model: Model, layout: Layout) -> list[str]:
    reasons = []
    if layout.tp % layout.dp:
        reasons.append(f"dp {layout.dp} does not divide tp {layout.tp}: SGLang's dp is attention within tp")
        return reasons
    attention = layout.tp // layout.dp
    for symbol, what in ((s.heads, "attention heads"), (s.kda_heads, "KDA heads")):
        reasons += divides(model, symbol, attention, what, "tp / dp =")
    reasons += divides(model, s.experts, layout.ep, "experts", "ep")
    if layout.tp % layout.ep:
        reasons.append(f"ep {layout.ep} does not divide tp {layout.tp}")
    if layout.dcp > 1:
        reasons.append("dcp is not modelled for SGLang: its decode kernel is one that Hopper does not have")
    if layout.pp > len(model.mixers):
        reasons.append(f"pp {layout.pp} is more than the {len(model.mixers)} layers there are")
    return reasons


ENGINE = Engine(
    name="sglang",
    version="0.5.23",
    partition=_partition,
    expert_groups=_expert_groups,
    attention_tp=lambda layout: layout.tp // layout.dp,
    cards=lambda layout: layout.tp * layout.pp,
    check=_check,
    activations_outside=True,
    paged=False,
    mixes=False,
)


def slots_per_request(strategy: str, pipeline: bool) -> int:
    """State slots that a running request takes under a cache strategy. Source: sglang_k3_cookbook."""
    if strategy not in STRATEGIES:
        raise InputError(f"--mamba-radix-cache-strategy {strategy}: not known. {near(strategy, STRATEGIES)}")
    slots = ENGINE.whole(STRATEGIES[strategy])
    return slots - 1 if strategy == "extra_buffer" and pipeline else slots
