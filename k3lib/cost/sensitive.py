"""What a cost depends on: one input at a time, all at once, per cent for per cent, and two against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.account.symbols import REGISTRY
from k3lib.cost.api import Mix, Offer
from k3lib.cost.bill import GENERAL, Input
from k3lib.cost.options import SPEED, Option, cost, cost_expression, defaults, merged, symbols
from k3lib.cost.uncertain import DRAWS, PERCENTILES, SEED, at_shares, drawn, inside
from k3lib.errors import InputError, near
from k3lib.evaluate import Array, arrays
from k3lib.facts.cluster_prices import LINES

TOP = 10
ROUNDING = 1e-9  # of a cost: what arithmetic alone may make of an input without effect
POINTS = 1024  # of a Sobol sequence, times the number of inputs and two
# Numbers of the bill that come from no line of it.
WORDS = {item: REGISTRY[str(symbol)].meaning for symbol, item in GENERAL.items()} | {
    "api.decline": REGISTRY[str(m.api_decline)].meaning,
    "api.batch.share": REGISTRY[str(m.api_share)].meaning,
}


def words_of(option: Option, key: str) -> str:
    """What an input of an option is, in words."""
    if key.startswith(SPEED):
        return REGISTRY[str(m.output_rate)].meaning
    if key in WORDS:
        return WORDS[key]
    if key.startswith("count."):
        return f"how much: {LINES[key.rpartition('.')[2]]}"
    lines = () if isinstance(option.of, Offer) else option.of.bill.lines
    label = next((line.label for line in lines if line.item_id == key), "a service's price of tokens")
    return f"price: {label}"


@dataclass(frozen=True)
class Bar:
    """One input of a tornado. low, high: its ends; at_low, at_high: the cost there, all others at their values."""

    key: str
    words: str
    unit: str
    low: float
    high: float
    at_low: float
    at_high: float

    @property
    def swing(self) -> float:
        """Difference that the input's range makes."""
        return abs(self.at_high - self.at_low)


def tornado(option: Option, mix: Mix, top: int = TOP) -> tuple[Bar, ...]:
    """The inputs whose ranges move the cost of a million output tokens most, the largest swing first."""
    moved = [key for key, known in option.inputs.items() if known.range.low < known.range.high]
    values = {key: np.repeat(value, 2 * len(moved)) for key, value in defaults(option.inputs).items()}
    for at, key in enumerate(moved):
        values[key][2 * at : 2 * at + 2] = option.inputs[key].range.low, option.inputs[key].range.high
    found = cost(option, mix, values)
    bars = [_bar(option, key, found[2 * at : 2 * at + 2]) for at, key in enumerate(moved)]
    bars = [bar for bar in bars if bar.swing > ROUNDING * bar.at_low]
    return tuple(sorted(bars, key=lambda bar: -bar.swing)[:top])


def _bar(option: Option, key: str, costs: Array) -> Bar:
    known = option.inputs[key]
    ends = known.range
    return Bar(key, words_of(option, key), known.unit, ends.low, ends.high, float(costs[0]), float(costs[1]))


@dataclass(frozen=True)
class Index:
    """Part of the variance of a cost's logarithm that an input makes. first: alone; total: with all it acts together
    with. first_error, total_error: half widths of their 95 % intervals.
    """

    key: str
    words: str
    first: float
    first_error: float
    total: float
    total_error: float


def sobol(
    option: Option, mix: Mix, against: Option | None = None, points: int = POINTS, seed: int = SEED
) -> tuple[Index, ...]:
    """Sobol indices of a cost by SALib, the largest total first; of the ratio of two, where `against` is given.

    points: a power of 2; the cost is computed at points x (inputs + 2). Of the logarithm, because the cost is nearly a
    product: of the cost itself the rare dear cases would be all.
    """
    compared = (option,) if against is None else (option, against)
    inputs = merged(compared)
    moved = [key for key, known in inputs.items() if known.range.low < known.range.high]
    if points < 1 or points & (points - 1):
        raise InputError(f"points = {points}: must be a power of 2, as {POINTS}")
    shares, problem = _sample(moved, points, seed)
    values = _at(inputs, moved, shares)
    found = np.log(cost(option, mix, values))
    if against is not None:
        found = found - np.log(cost(against, mix, values))
    one = _analysed(problem, found, seed)
    whose = {key: next(o for o in compared if key in o.inputs) for key in moved}
    indices = [
        Index(key, words_of(whose[key], key), *(float(one[name][at]) for name in ("S1", "S1_conf", "ST", "ST_conf")))
        for at, key in enumerate(moved)
    ]
    return tuple(sorted(indices, key=lambda index: -index.total))


def _sample(moved: Sequence[str], points: int, seed: int) -> tuple[Array, dict[str, object]]:
    from SALib.sample import sobol as sample  # half a second, for this alone

    problem: dict[str, object] = {"num_vars": len(moved), "names": list(moved), "bounds": [[0.0, 1.0]] * len(moved)}
    return np.asarray(sample.sample(problem, points, calc_second_order=False, seed=seed)), problem


def _analysed(problem: Mapping[str, object], found: Array, seed: int) -> Mapping[str, Array]:
    from SALib.analyze import sobol as analyze

    result: Mapping[str, Array] = analyze.analyze(problem, found, calc_second_order=False, seed=seed)
    return result


def _at(inputs: Mapping[str, Input], moved: Sequence[str], shares: Array) -> dict[str, Array]:
    values = {key: np.repeat(value, len(shares)) for key, value in defaults(inputs).items()}
    for at, key in enumerate(moved):
        values[key] = at_shares(key, inputs[key], inside(shares[:, at]))
    return values


def elasticities(option: Option, mix: Mix) -> dict[sp.Symbol, float]:
    """By how many per cent a million output tokens become dearer for each per cent of a number, the largest first.

    The derivatives are symbolic. Those of all sums of money add up to 1.
    """
    expression = cost_expression(option)
    known = symbols(option, mix, defaults(option.inputs))
    used = sorted(expression.free_symbols, key=str)
    found = arrays({str(x): eq.elasticity(expression, x) for x in used}, known)
    pairs = [(x, float(found[str(x)][0])) for x in used if found[str(x)][0]]
    return dict(sorted(pairs, key=lambda pair: -abs(pair[1])))


@dataclass(frozen=True)
class Lever:
    """How far a number of the equation moves a cost. elasticity: per cent for each per cent, at the values.

    spread: what the number is at the dear end of the middle nine tenths of its draws, over the cheap end, always above
    1. effect: how many times dearer that makes the cost, others at their values.
    """

    symbol: sp.Symbol
    elasticity: float
    spread: float

    @property
    def effect(self) -> float:
        """The spread to the power of the elasticity, which the derivative alone would foretell."""
        return float(self.spread ** abs(self.elasticity))


def levers(option: Option, mix: Mix, draws: int = DRAWS, seed: int = SEED) -> tuple[Lever, ...]:
    """Derivative times spread for each number of a cost's equation, the largest effect first."""
    values = symbols(option, mix, drawn(option.inputs, draws, seed))
    found = []
    for symbol, by in elasticities(option, mix).items():
        low, high = np.percentile(np.atleast_1d(values[symbol]), (PERCENTILES[0], PERCENTILES[-1]))
        if high > low > 0:
            found.append(Lever(symbol, by, float(high / low)))
    return tuple(sorted(found, key=lambda lever: -lever.effect))


Axis = tuple[str, Sequence[float]]


def cost_map(option: Option, mix: Mix, across: Axis, up: Axis) -> Array:
    """Cost of a million output tokens for two inputs, all others at their values. across, up: an input and its values.

    Returns an array of shape (values up, values across). Raises InputError for an unknown input.
    """
    for key, _ in (across, up):
        if key not in option.inputs:
            raise InputError(f"'{key}' is no input of {option.name}. {near(key, option.inputs)}")
    grid_across, grid_up = np.meshgrid(np.asarray(across[1], float), np.asarray(up[1], float))
    values = {key: np.repeat(value, grid_up.size) for key, value in defaults(option.inputs).items()}
    values[across[0]], values[up[0]] = grid_across.ravel(), grid_up.ravel()
    return np.reshape(cost(option, mix, values), grid_up.shape)


def volume_map(
    option: Option, service: Option, mix: Mix, mtok_month: Sequence[float], price_share: Sequence[float]
) -> Array:
    """What a volume costs on whole clusters, over what the service asks for it; below 1 the clusters are cheaper.

    mtok_month: output of a month. price_share: the service's price over today's list. All other inputs at their values,
    and as many clusters as keep below the utilisation. Returns an array of shape (price shares, volumes).
    """
    if isinstance(option.of, Offer) or not isinstance(service.of, Offer):
        raise InputError(f"a map of volumes compares a cluster with a service, not {option.name} with {service.name}")
    volumes, shares = np.meshgrid(np.asarray(mtok_month, float), np.asarray(price_share, float))
    known = {**symbols(option, mix, defaults(option.inputs)), m.volume: volumes.ravel()}
    clusters = arrays({"cny": eq.volume_unit_cny()}, known)["cny"]
    asked = cost(service, mix, defaults(service.inputs))
    return np.reshape(clusters / (asked * shares.ravel()), volumes.shape)
