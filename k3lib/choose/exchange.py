"""What was measured of sending tokens to their experts' cards and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from k3lib.deploy import constants as co
from k3lib.facts.timings import exchange_times


@dataclass(frozen=True)
class Exchange:
    """Measured time in us of sending the tokens of one expert layer to their experts and back, by tokens a card."""

    us: Mapping[int, float]
    sources: tuple[str, ...]


# Steps of an exchange of tokens, and the way of doing it that a card's figures are taken from.
STEPS = {"moe_dispatch", "moe_combine", "moe_alltoall_prepare", "moe_alltoall_dispatch", "moe_alltoall_combine"}
WAYS = {"hopper": "deepep_low_latency", "blackwell": "TensorRT-LLM 1.2.0rc6 NVLink two-sided"}


def all_to_all(device: str, cards: int) -> Exchange:
    """The measured exchange of tokens among so many cards; sizes for which a step was not measured are left out."""
    way = WAYS[co.architecture(device)]
    rows = [r for r in exchange_times() if r.collective in STEPS and r.implementation == way and r.use == "yes"
            and (r.device, r.cards) == (device, cards) and r.time_us and r.tokens_per_card]  # fmt: skip
    steps = {r.collective for r in rows}
    found: dict[int, dict[str, float]] = {}
    for r in rows:
        found.setdefault(r.tokens_per_card or 0, {})[r.collective] = r.time_us or 0.0
    whole = {tokens: sum(times.values()) for tokens, times in sorted(found.items()) if set(times) == steps}
    return Exchange(whole, tuple(sorted({x for r in rows for x in r.source_ids})))
