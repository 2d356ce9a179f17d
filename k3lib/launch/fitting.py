"""A plan that does not fit, with the nearest that does."""

from __future__ import annotations

from dataclasses import replace

from k3lib.deploy.inverse import nearest
from k3lib.deploy.plan import Plan, weights_gib
from k3lib.engines.layout import Hardware


def with_nearest(plan: Plan, hardware: Hardware | None = None) -> Plan:
    """The plan, and where it does not fit its reason with the nearest plan that does.

    hardware: device facts, if not those of data/hardware.csv.
    """
    other = None if plan.fits else nearest(plan, hardware)
    if other is None:
        return plan
    low, high = min(weights_gib(other)), max(weights_gib(other))
    return replace(plan, reason=f"{plan.reason}. Nearest that fits: {other.layout} on {other.cluster} "
                                f"({low:.1f} to {high:.1f} GiB of weights a card)")  # fmt: skip
