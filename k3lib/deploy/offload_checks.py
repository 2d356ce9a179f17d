"""The model of experts outside the cards beside what was measured of it: hits, and tokens a second of whole runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from k3lib.account import offload as eq
from k3lib.account import symbols as s
from k3lib.deploy import constants as co
from k3lib.deploy.offload import ENDS, Span, expert_values, hit_rate, supposed, value_of
from k3lib.facts.variants import Offload, offload
from k3lib.models.model import Model, load_model
from k3lib.units import convert

# Formats of the account that stand for what the runs were quantised to; Q4_K_M takes about 4.8 bits, INT4 4.5.
FORMS = {"MXFP4 native": None, "MXFP4 GGUF": None, "INT4 native": None, "INT4 AMX": None, "Q4_K_M": "int4"}
PERCENT = 100
US_PER_S = 1e6
COLD = "cold bytes per token"


@dataclass(frozen=True)
class Check:
    """One measured value beside the model's. error: predicted over measured, less one. source_id: of the measured one.

    from_disk: whether experts came from disks, at a measured rate. reached: share of the nominal rate that the run
    makes of the bytes it misses; None for hits.
    """

    offload_id: str
    what: str
    measured: float
    predicted: Span
    error: float
    unit: str
    source_id: str
    from_disk: bool = False
    reached: float | None = None


def skew_span(numbers: co.Table) -> Span:
    """The spread of popularity with its range."""
    known = co.pick(numbers, "skew")
    low, high = (known.value * math.exp(side * known.spread) for side in (-1, 1))
    return Span(known.value, low, high)


def hit_checks(numbers: co.Table) -> tuple[Check, ...]:
    """What the most used experts of Kimi K3 take of the routing, beside the model's.

    Saliency weighs an expert's use by what it adds, so it is near the share of uses, not the same.
    """
    skew = skew_span(numbers)
    found = []
    for row in offload().values():
        if row.model == "kimi-k3" and row.resident_pct and row.metric in ("saliency of the most used",
                                                                          "hits of a fixed set"):  # fmt: skip
            share = row.resident_pct / PERCENT
            made = Span(*(PERCENT * hit_rate(share, x) for x in (skew.value, skew.low, skew.high)))
            found.append(Check(row.offload_id, row.metric, row.value, made, made.value / row.value - 1, row.unit,
                               row.source_id))  # fmt: skip
    return tuple(found)


def run_checks(numbers: co.Table) -> tuple[Check, ...]:
    """Measured runs whose experts' rate is known, beside what reading the missing experts alone would take.

    The spread of popularity is that of Kimi K3. What the cards take is left out, so a prediction is too fast by it.
    """
    found = []
    for row in offload().values():
        if row.kind == "run" and row.metric == "decode" and row.host_rate_gbs and row.clients:
            check = _from_cache(row) if row.engine == "WASTE" else _from_account(row, numbers)
            if check:
                found.append(check)
    return tuple(found)


def _check(row: Offload, predicted: Span, missed: float, from_disk: bool) -> Check:
    rate = (row.host_rate_gbs or 0.0) * convert(1.0, "GB/s", "MB/s")
    reached = row.value / (row.clients or 1) * missed / (rate * US_PER_S)
    return Check(row.offload_id, f"{row.model} {row.quantisation}, {row.engine}", row.value, predicted,
                 predicted.value / row.value - 1, row.unit, row.source_id, from_disk, reached)  # fmt: skip


def _from_cache(row: Offload) -> Check | None:
    """A run from disk whose hits and bytes were measured beside it: the misses at the disk's rate."""
    hit = next((x for x in offload().values() if x.metric == "expert cache hit" and x.note == row.note), None)
    cold = next((x for x in offload().values() if x.metric == COLD and x.model == row.model), None)
    if hit is None or cold is None:
        return None
    missed = float(convert(cold.value, cold.unit, "B")) * (1 - hit.value / PERCENT)
    speed = (row.host_rate_gbs or 0.0) * convert(1.0, "GB/s", "MB/s") * US_PER_S / missed
    return _check(row, Span(speed, speed, speed), missed, True)


def _from_account(row: Offload, numbers: co.Table) -> Check | None:
    """A run whose experts lie in main memory, or on a disk without a cache: by the account of its model."""
    if row.quantisation not in FORMS:
        return None
    model: Model = load_model(row.model, FORMS[row.quantisation])
    disk, clients = "O_DIRECT" in row.link, row.clients or 1
    base = {
        **expert_values(model),
        s.decode_tokens: float(clients),
        s.resident_share: (row.resident_pct or 0) / PERCENT,
    }
    skew = skew_span(numbers)
    rate = (row.host_rate_gbs or 0.0) * convert(1.0, "GB/s", "MB/s")
    speeds = {}
    for end, spread in zip(ENDS, (skew.value, skew.low, skew.high), strict=True):
        host = {**supposed(end), s.host_rate: rate}
        host |= {s.host_share: 1.0, s.fetch_us: 0.0} if disk else {}
        speeds[end] = clients * US_PER_S / value_of(eq.computed_us(), {**base, **host, s.skew: spread})
    missed = value_of(eq.missed_bytes(), {**base, s.skew: skew.value})
    return _check(row, Span(speeds["value"], min(speeds.values()), max(speeds.values())), missed, disk)
