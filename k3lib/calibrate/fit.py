"""Constants fitted to measured runs: least squares on logarithms, each deployment weighed alike, with weak priors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from k3lib.calibrate.cells import Cell, residuals
from k3lib.deploy import constants as co
from k3lib.deploy.serve import Served
from k3lib.deploy.setup import OF_NETWORK, constants, network_scope, scopes
from k3lib.deploy.speed import answer
from k3lib.evaluate import Array

# Weights of the three metrics: output follows from the two times, and the first token depends on the client's luck.
WEIGHT = {"tpot_ms": 1.0, "output_tps": 0.6, "ttft_ms": 0.35}
# What the model is trusted to: the spread of a logarithm that counts as one.
MODEL_SPREAD = 0.05
STEP = 0.02
MOST_ROUNDS = 12
# How far a reader's deployment may be from the measured ones: its host, image and network are others.
OWN_SPREAD = {"layer_us": co.KIN_SPREAD, "launch_us": co.KIN_SPREAD, "kernel_decode": co.KERNEL_KIN_SPREAD,
              "kernel_prompt": co.KERNEL_KIN_SPREAD, "exchange_start_us": co.KIN_SPREAD,
              "nic_rate": co.KIN_SPREAD}  # fmt: skip
PARAMETERS = (
    "layer_us",
    "launch_us",
    "kernel_decode",
    "kernel_prompt",
    "prompt_us",
    "skew",
    "exchange_start_us",
    "nic_rate",
)


def keys_of(one: Cell, own: bool = False) -> dict[str, co.Key]:
    """Where a fit to a cell keeps each number: by the thing that it is a property of, on all cards that share it.

    own: of the very card alone, so that a reader's runs change nothing that is said of other cards.
    """
    setup = one.asked.setup
    if own:
        names = [name for name in PARAMETERS if setup.spans_nodes or name not in OF_NETWORK]
        return {name: (name, scopes(setup, name)[0]) for name in names}
    engine = co.engine_scope(setup.engine.name, setup.cluster.device)
    arch = co.architecture(setup.cluster.device)
    kernel = f"{setup.kernel}@{arch}"
    found = {"layer_us": engine, "launch_us": engine, "kernel_decode": kernel, "kernel_prompt": kernel,
              "prompt_us": arch, "skew": ""}  # fmt: skip
    if setup.spans_nodes:
        network = network_scope(setup)
        found |= {"exchange_start_us": network, "nic_rate": f"{network}@{setup.nics}nics"}
    return {name: (name, scope) for name, scope in found.items()}


def start(many: Sequence[Cell], numbers: co.Table, own: bool = False) -> dict[co.Key, co.Known]:
    """Every number that the cells can tell something about, as it is known before."""
    found: dict[co.Key, co.Known] = {}
    for one in many:
        before = constants(one.asked.setup, numbers).values
        if own:
            before = {**before, **{name: co.widened(before[name], more) for name, more in OWN_SPREAD.items()}}
        for name, key in keys_of(one, own).items():
            found.setdefault(key, co.Known(before[name].value, before[name].spread, key, before[name].how))
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class Fit:
    """numbers: the fitted ones, with what is left of their spread. cost: half the sum of squares of the residuals."""

    numbers: dict[co.Key, co.Known]
    rounds: int
    cost: float


class _Problem:
    """Residuals of all cells as a function of the logarithms of the numbers, in units of their prior spread."""

    def __init__(self, many: Sequence[Cell], numbers: co.Table, before: dict[co.Key, co.Known], own: bool) -> None:
        self.cells, self.base, self.before = many, numbers, before
        self.keys = list(before)
        sizes = Counter(one.group for one in many)
        mean = sum(sizes.values()) / len(sizes)
        self.weights = [math.sqrt(mean / sizes[one.group]) for one in many]
        self.unique: dict[tuple[object, ...], Cell] = {}
        for one in many:
            self.unique.setdefault(one.key, one)
        self.touched = {
            key: {k for k, one in self.unique.items() if key in keys_of(one, own).values()} for key in self.keys
        }

    def table(self, x: Array) -> dict[co.Key, co.Known]:
        moved = {
            key: co.Known(was.value * math.exp(v * was.spread), was.spread, key, was.how)
            for (key, was), v in zip(self.before.items(), x, strict=True)
        }
        return {**self.base, **moved}

    def served(self, x: Array, which: set[tuple[object, ...]] | None = None) -> dict[tuple[object, ...], Served]:
        table = self.table(x)
        return {k: answer(one.asked, table) for k, one in self.unique.items() if which is None or k in which}

    def vector(self, known: dict[tuple[object, ...], Served], x: Array) -> Array:
        rows = []
        for one, weight in zip(self.cells, self.weights, strict=True):
            left = residuals(one, known[one.key])
            rows += [weight * WEIGHT[name] * value / MODEL_SPREAD for name, value in left.items()]
        return np.array([*rows, *x])

    def residuals(self, x: Array) -> Array:
        self.known = self.served(x)
        self.at = x.copy()
        return self.vector(self.known, x)

    def jacobian(self, x: Array) -> Array:
        if not np.array_equal(x, self.at):
            self.residuals(x)
        here = self.vector(self.known, x)
        columns = []
        for i, key in enumerate(self.keys):
            moved = x.copy()
            step = STEP / max(self.before[key].spread, STEP)
            moved[i] += step
            known = {**self.known, **self.served(moved, self.touched[key])}
            columns.append((self.vector(known, moved) - here) / step)
        return np.array(columns).T


def fit(many: Sequence[Cell], numbers: co.Table, near: co.Table | None = None, own: bool = False) -> Fit:
    """The numbers that the cells say most for.

    near: an answer to begin at, of another fit; it holds nothing fast. own: as in `keys_of`.
    """
    before = start(many, numbers, own)
    problem = _Problem(many, numbers, before, own)
    first = [
        math.log(near[key].value / was.value) / was.spread if near and key in near else 0.0
        for key, was in before.items()
    ]
    found = least_squares(problem.residuals, np.array(first), jac=problem.jacobian, loss="soft_l1",
                          max_nfev=MOST_ROUNDS, xtol=1e-3, ftol=1e-4)  # fmt: skip
    informed = np.linalg.inv(found.jac.T @ found.jac)
    # A residual scatter above one means that the model is trusted too much; the spreads grow with it.
    scatter = max(1.0, math.sqrt(2 * found.cost / max(1, len(found.fun) - 2 * len(before))))
    left = np.minimum(np.sqrt(np.diag(informed)) * scatter, 1.0)
    fitted = {
        key: co.Known(was.value * math.exp(v * was.spread), was.spread * float(part), key, "fitted")
        for (key, was), v, part in zip(before.items(), found.x, left, strict=True)
    }
    return Fit(fitted, int(found.nfev), float(found.cost))
