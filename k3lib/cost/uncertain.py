"""How sure a cost is: many draws of all inputs at once, what comes out of them, and which option is cheapest how often.

Half of an input's draws lie on either side of its default, the rarer the farther away, none beyond low and high; where
low is the default, half of them are the default. So the median is the default, and the mean that of the usual
three-point estimate, a sixth of low, four defaults and high. Speeds are drawn from a log-normal distribution whose
middle nine tenths are their range. Inputs that options share are drawn once for all.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from scipy.special import ndtri

from k3lib.cost.api import Mix
from k3lib.cost.bill import Input
from k3lib.cost.options import SPEED, Option, cost, merged, symbols
from k3lib.errors import InputError
from k3lib.evaluate import Array, arrays
from k3lib.ranges import Range

DRAWS, SEED = 100_000, 20_261_130
PERCENTILES = (5, 25, 50, 75, 95)
HALF = 0.5
# Standard deviations from the middle of a normal distribution to the end of its middle nine tenths.
TO_THE_END = float(ndtri(0.95))


def two_triangles(share: Array, known: Range) -> Array:
    """The value below which a share of the draws lies: half of them on each side of the default."""
    up = known.low + (known.value - known.low) * np.sqrt(2 * share)
    down = known.high - (known.high - known.value) * np.sqrt(2 * (1 - share))
    return np.clip(np.where(share < HALF, up, down), known.low, known.high)


def log_normal(share: Array, known: Range) -> Array:
    """The same for a range of which 5 % lie below and 5 % above; its two sides may differ."""
    score = ndtri(share) / TO_THE_END
    side = np.where(score < 0, np.log(known.value / known.low), np.log(known.high / known.value))
    return np.asarray(known.value * np.exp(score * side), dtype=np.float64)


def at_shares(key: str, known: Input, share: Array) -> Array:
    """The values of an input at shares of its distribution, from 0 to 1."""
    return log_normal(share, known.range) if key.startswith(SPEED) else two_triangles(share, known.range)


def drawn(
    inputs: Mapping[str, Input], draws: int = DRAWS, seed: int = SEED, kept: dict[Any, Array] | None = None
) -> dict[str, Array]:
    """Draws of every input. Each has its own stream: what else is drawn does not change it.

    kept: draws of earlier calls, taken again where they are the same, and added to.
    """
    found, kept = {}, {} if kept is None else kept
    for key, known in inputs.items():
        name = key, known.range, draws, seed
        if name not in kept:
            stream = np.random.default_rng([seed, zlib.crc32(key.encode())])
            kept[name] = at_shares(key, known, inside(stream.random(draws)))
        found[key] = kept[name]
    return found


def inside(share: Array) -> Array:
    """Shares that are neither 0 nor 1, at which a log-normal distribution has no value."""
    least = np.finfo(np.float64).eps
    return np.clip(share, least, 1 - least)


@dataclass(frozen=True)
class Spread:
    """What the draws of a figure came to. percentiles: by PERCENTILES."""

    mean: float
    percentiles: Mapping[int, float]

    @property
    def range(self) -> Range:
        """The median, and the ends of the middle nine tenths."""
        return Range(self.percentiles[50], self.percentiles[5], self.percentiles[95])


def spread(values: Array) -> Spread:
    """Mean and percentiles of draws."""
    found = np.percentile(values, PERCENTILES)
    return Spread(float(values.mean()), dict(zip(PERCENTILES, map(float, found), strict=True)))


@dataclass(frozen=True)
class Simulation:
    """costs: draws of a million output tokens, by option, CNY/Mtok. cheapest: share of the draws in which it is."""

    costs: Mapping[str, Array]
    spreads: Mapping[str, Spread]
    cheapest: Mapping[str, float]

    def cheaper(self, one: str, other: str) -> float:
        """Share of the draws in which one option is cheaper than another."""
        return float(np.mean(self.costs[one] < self.costs[other]))

    def cheapest_of(self, names: Iterable[str]) -> dict[str, float]:
        """The same as cheapest, were there no options but these."""
        return _cheapest({name: self.costs[name] for name in names})


def simulate(
    compared: Sequence[Option],
    mix: Mix,
    draws: int = DRAWS,
    seed: int = SEED,
    kept: dict[Any, Array] | None = None,
) -> Simulation:
    """Many draws of what a million output tokens cost under each option. kept: as in `drawn`, for several workloads."""
    if not compared:
        raise InputError("no option is given to simulate")
    values = drawn(merged(compared), draws, seed, kept)
    costs = {option.name: cost(option, mix, values) for option in compared}
    return Simulation(costs, {name: spread(one) for name, one in costs.items()}, _cheapest(costs))


def _cheapest(costs: Mapping[str, Array]) -> dict[str, float]:
    """Share of the draws in which each is the cheapest of all that are given."""
    names = list(costs)
    first = np.argmin(np.stack([costs[name] for name in names]), axis=0)
    counts = np.bincount(first, minlength=len(names))
    return {name: float(count / first.size) for name, count in zip(names, counts, strict=True)}


def spreads_of(
    option: Option, mix: Mix, asked: Mapping[str, sp.Expr], draws: int = DRAWS, seed: int = SEED
) -> dict[str, Spread]:
    """The same of any expressions of k3lib.account.costs, as the investment and the month of a cluster."""
    values = drawn(option.inputs, draws, seed)
    return {name: spread(one) for name, one in arrays(asked, symbols(option, mix, values)).items()}
