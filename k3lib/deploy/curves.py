"""Measured times as curves: an expert by the tokens it gets, KDA by its heads, an all-reduce by its bytes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from k3lib.errors import InputError, near
from k3lib.evaluate import Array
from k3lib.facts.catalog import DeviceFact, device_kin, devices
from k3lib.facts.timings import KernelTime, exchange_times, kernel_times
from k3lib.units import convert

Hardware = Mapping[tuple[str, str], DeviceFact]

# The layer whose experts the kernel tables measure.
TABLE_MODEL = "kimi-k3"
TABLE_EXPERTS, TABLE_TOPK, TABLE_INPUT, TABLE_WIDTH = 896, 16, 3584, 3072
# Rows whose experts get hardly more than one token: there the time is a start and a price for each expert.
FEW_TOKENS = 1.2
# Of a family of kernels: how its name begins in the table, and the data type.
FAMILIES = {
    "marlin": ("marlin", "w4a16 mxfp4"),
    "trtllm": ("trtllm-gen", "w4a16 mxfp4"),
    "trtllm-w4a8": ("trtllm-gen", "w4a8 mxfp4 x mxfp8"),
}
# Kernels that are known by what they do to a whole run, not by a table of their own: the table they are scaled from.
SCALED = {"humming": "marlin"}
# Architectures that a kernel runs on, where it does not run on all.
RUNS_ON = {"humming": ("hopper",), "trtllm": ("blackwell",), "trtllm-w4a8": ("blackwell",),
           "marlin": ("hopper", "blackwell")}  # fmt: skip
ROOFLINE = "roofline"
DEFAULT_FAMILY = {"hopper": "marlin", "blackwell": "trtllm-w4a8"}


@dataclass(frozen=True)
class Curve:
    """A time in us by a size, read between its points on logarithmic axes; beyond the last in proportion."""

    size: Array
    us: Array

    def at(self, size: Array) -> Array:
        """Time at each size, in us. Below the first point the first time stands."""
        x = np.maximum(size, self.size[0])
        inside = np.exp(np.interp(np.log(x), np.log(self.size), np.log(self.us)))
        beyond = self.us[-1] * x / self.size[-1]
        return np.asarray(np.where(x > self.size[-1], beyond, inside), dtype=np.float64)

    def size_at(self, us: Array) -> Array:
        """The size at each time; between points of one time the larger; beyond the last in proportion."""
        rising = np.maximum.accumulate(self.us)
        inside = np.exp(np.interp(np.log(us), np.log(rising), np.log(self.size)))
        return np.asarray(np.where(us > rising[-1], self.size[-1] * us / rising[-1], inside), dtype=np.float64)


def _mean_curve(points: Iterable[tuple[float, float]]) -> Curve:
    """A curve through points; times of one size are averaged."""
    groups: dict[float, list[float]] = defaultdict(list)
    for size, us in points:
        groups[round(size, 3)].append(us)
    sizes = sorted(groups)
    return Curve(np.array(sizes), np.array([float(np.mean(groups[x])) for x in sizes]))


def fact(hardware: Hardware, device: str, quantity: str, unit: str) -> float | None:
    """A device's property in the unit asked for, or None where data/hardware.csv has none."""
    row = hardware.get((device, quantity))
    return None if row is None else float(convert(row.value, row.unit, unit))


@lru_cache(maxsize=8)
def _rows(family: str) -> tuple[KernelTime, ...]:
    """Rows of K3's experts with even routing. Raises InputError for an unknown family of kernels."""
    if family not in FAMILIES:
        raise InputError(f"data/kernels.csv has no experts of kernel '{family}'. {near(family, FAMILIES)}")
    start, dtype = FAMILIES[family]
    return tuple(
        row for row in kernel_times()
        if row.kernel == "experts" and row.model == TABLE_MODEL and row.routing == "balanced" and row.use == "yes"
        and row.implementation.startswith(start) and row.dtype == dtype and row.time_us
    )  # fmt: skip


@lru_cache(maxsize=8)
def _tables(family: str) -> dict[tuple[str, int, int], tuple[KernelTime, ...]]:
    """The rows by (device, tp, ep). Where several engines measured a card, the one with most rows of it is taken."""
    engines: dict[str, Counter[str]] = defaultdict(Counter)
    for row in _rows(family):
        engines[row.device][row.implementation] += 1
    tables: dict[tuple[str, int, int], list[KernelTime]] = defaultdict(list)
    for row in _rows(family):
        if row.implementation == engines[row.device].most_common(1)[0][0]:
            tables[row.device, row.tp or 1, row.ep or 1].append(row)
    return {key: tuple(part) for key, part in tables.items()}


def _hit(row: KernelTime) -> tuple[float, float]:
    """Experts that a row's tokens use on one card, and the tokens that each gets. Routing is even in these rows."""
    pairs = TABLE_TOPK * (row.tokens or 1) / (row.ep or 1)
    experts = min(pairs, TABLE_EXPERTS / (row.ep or 1))
    return experts, pairs / experts


@lru_cache(maxsize=8)
def kernel_start_us(family: str) -> float:
    """Time that a call of the experts' kernel takes beside that of its experts, in us.

    A straight line through the rows in which every expert gets about one token, each row weighed by its time; the
    mean over cards and engines that have a row with no more experts than one token uses.
    """
    groups: dict[tuple[str, str, bool], list[tuple[float, float]]] = defaultdict(list)
    for row in _rows(family):
        experts, tokens = _hit(row)
        if tokens <= FEW_TOKENS and row.tp == 1:
            groups[row.device, row.implementation, row.ep == 1].append((experts, row.time_us or 0.0))
            if row.ep == 1:
                groups[row.device, row.implementation, False].append((experts, row.time_us or 0.0))
    low = {key: part for key, part in groups.items() if min(e for e, _ in part) <= TABLE_TOPK and len(part) > 1}
    unsplit = {key: part for key, part in low.items() if key[2]}
    return float(np.mean([_intercept(part) for part in (unsplit or low).values()]))


def _intercept(points: Sequence[tuple[float, float]]) -> float:
    us = np.array([t for _, t in points])
    sides = np.array([[1.0, experts] for experts, _ in points]) / us[:, None]
    return float(np.linalg.lstsq(sides, np.ones(len(us)), rcond=None)[0][0])


def _expert_rows(family: str, device: str, tp: int, ep: int) -> Curve | None:
    rows = _tables(family).get((device, tp, ep))
    if rows is None:
        return None
    start = kernel_start_us(family)
    return _mean_curve((hit[1], ((r.time_us or 0.0) - start) / hit[0]) for r in rows if (hit := _hit(r)))


def _times(curve: Curve, factor: Array | float) -> Curve:
    return Curve(curve.size, np.asarray(curve.us * factor, dtype=np.float64))


@lru_cache(maxsize=64)
def _whole_expert(family: str, device: str) -> Curve:
    """An expert of K3 held whole: measured on the device or on its kin, and then scaled by the number of processors.

    Weight-only 4-bit kernels follow the processors that unpack the weights, not the memory: measured on H100 and H200.
    """
    like = device_kin()[device].kernels_like if device in device_kin() else ""
    curve = _expert_rows(family, device, 1, 1)
    if curve is not None:
        return curve
    for other in (like, *sorted({d for d, _, _ in _tables(family)})):
        curve = _expert_rows(family, other, 1, 1)
        if curve is not None:
            mine, theirs = (fact(devices(), d, "sm_count", "SMs") for d in (device, other))
            return _times(curve, theirs / mine if mine and theirs else 1.0)
    raise InputError(f"data/kernels.csv has no experts of kernel '{family}'. {near(family, FAMILIES)}")


@lru_cache(maxsize=32)
def _shares(family: str) -> tuple[tuple[float, Curve], ...]:
    """By the share of an expert's columns on a card: its time over that of the whole expert, by tokens.

    Taken from the card on which several widths were measured; a family without such a card is taken in proportion.
    """
    for device in sorted({d for d, _, _ in _tables(family)}):
        widths = sorted(tp for d, tp, ep in _tables(family) if (d, ep) == (device, 1))
        if len(widths) > 1:
            whole = _expert_rows(family, device, 1, 1)
            curves = []
            for tp in widths:
                part = _expert_rows(family, device, tp, 1)
                if part is not None and whole is not None:
                    share = _padded(TABLE_WIDTH / tp) / TABLE_WIDTH
                    curves.append((share, Curve(part.size, part.us / whole.at(part.size))))
            return tuple(sorted(curves, key=lambda pair: pair[0]))
    return ()


def _padded(columns: float, multiple: int = 128) -> float:
    """Columns as the tables' kernel pads them."""
    return float(-(-columns // multiple) * multiple)


def _share(family: str, share: float, tokens: Array) -> Array:
    """Time of a share of an expert over that of the whole, at each number of tokens."""
    known = _shares(family)
    if not known:
        return np.full_like(tokens, share)
    over = np.array([curve.at(tokens) / part for part, curve in known])
    at = np.array([part for part, _ in known])
    place = float(np.clip(np.interp(np.log(share), np.log(at), np.arange(len(at))), 0, len(at) - 1))
    low = int(place)
    high = min(low + 1, len(at) - 1)
    return np.asarray(share * (over[low] ** (1 - place + low) * over[high] ** (place - low)), dtype=np.float64)


@lru_cache(maxsize=64)
def _filled(family: str, sets: int) -> Curve | None:
    """Under expert parallelism over `sets` cards: the tokens that an expert seems to get, by those that it gets.

    The kernel chooses the rows that it fills up by the tokens of all cards. Measured where there are rows for the
    nearest number of cards, and carried over to other cards as rows, not as time.
    """
    known = [(d, ep) for d, tp, ep in _tables(family) if tp == 1 and ep > 1]
    if sets == 1 or not known:
        return None
    device, ep = min(known, key=lambda pair: (abs(np.log(pair[1] / sets)), pair[0]))
    split, whole = _expert_rows(family, device, 1, ep), _expert_rows(family, device, 1, 1)
    if split is None or whole is None:
        return None
    return Curve(split.size, np.maximum(whole.size_at(split.us), 1.0))


@dataclass(frozen=True)
class ExpertTime:
    """Time of one used expert on one card. share: of its columns that the card holds. sets: cards that share the set.

    scale: weights of this model's expert over those of the measured one.
    """

    family: str
    device: str
    share: float
    sets: int
    scale: float

    def at(self, tokens: Array) -> Array:
        """Time in us by the tokens that the expert gets."""
        tokens = np.maximum(tokens, 1.0)
        filled = _filled(self.family, self.sets)
        rows = tokens if filled is None else filled.at(tokens)
        whole = _whole_expert(self.family, self.device).at(rows)
        return whole if self.share == 1 and self.scale == 1 else whole * self.scale * _share(
            self.family, self.share, rows
        )  # fmt: skip


@lru_cache(maxsize=64)
def kda_prompt_us(device: str, heads: int) -> float | None:
    """KDA's time for one prompt token in one layer with that many heads on the card, in us; None without a table.

    The fastest kernel of the nearest card, long prompts; between the measured numbers of heads in proportion.
    """
    kin = device_kin().get(device)
    rows = [r for r in kernel_times() if r.kernel == "kda_prefill" and r.time_us and r.tokens]
    near_cards = (device, kin.kernels_like if kin else "", "h200")
    like = next(d for d in near_cards if any(r.device == d for r in rows))
    best: dict[int, float] = {}
    for heads_measured in {r.heads or 0 for r in rows if r.device == like}:
        longest: dict[str, tuple[int, float]] = {}
        for r in rows:
            if r.device == like and r.heads == heads_measured and r.tokens and r.time_us:
                longest[r.implementation] = max(longest.get(r.implementation, (0, 0.0)), (r.tokens, r.time_us))
        best[heads_measured] = min(us / tokens for tokens, us in longest.values())
    at = sorted(best)
    return float(np.interp(heads, at, [best[x] for x in at])) if at else None


@lru_cache(maxsize=16)
def exchange_curve(implementation: str) -> Curve:
    """An all-reduce of eight cards in one node by its bytes. implementation: how its name begins in the table."""
    rows = [x for x in exchange_times() if x.collective == "all_reduce" and x.use == "yes" and x.message_bytes
            and x.time_us and x.nodes == 1 and x.implementation.startswith(implementation)]  # fmt: skip
    if not rows:
        raise InputError(f"data/interconnect.csv has no all-reduce of '{implementation}'")
    return _mean_curve((float(x.message_bytes or 0), x.time_us or 0.0) for x in rows)
