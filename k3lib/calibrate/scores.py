"""How far off the speed model is, where, and why: trials by deployment, what runs can tell, runs it never saw."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy.optimize import brentq

from k3lib.calibrate import summary
from k3lib.calibrate.cells import Cell, cell, outside, residuals, served
from k3lib.calibrate.fit import keys_of, start
from k3lib.calibrate.spread import override
from k3lib.deploy import constants as co
from k3lib.deploy.passes import constants
from k3lib.deploy.speed import answer
from k3lib.errors import InputError
from k3lib.facts.benchmarks import Run
from k3lib.facts.catalog import device_fact
from k3lib.facts.constants import SpeedFact, Trial
from k3lib.facts.timings import kernel_times
from k3lib.units import convert

METRICS = ("output_tps", "tpot_ms", "ttft_ms")
# What the numbers of the speed model are, in words.
WORDS = {
    "layer_us": "engine, each layer",
    "launch_us": "engine, each pass with prompts",
    "kernel_decode": "expert kernel, answers",
    "kernel_prompt": "expert kernel, prompts",
    "prompt_us": "other work on prompts",
    "skew": "skew of the routing",
    "exchange_start_us": "start of an all-reduce between nodes",
    "nic_rate": "rate of an all-reduce between nodes",
}


NAMES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm-w4a8": "TRT-LLM kernel", "trtllm": "TRT-LLM kernel"}


def _name(word: str) -> str:
    """A word of a scope or a deployment as it is written: cards in capitals, engines and kernels as their makers do."""
    return NAMES.get(word) or (word.upper() if any(c.isdigit() for c in word) else word.capitalize())


def deployment_name(group: str) -> str:
    """A deployment of the trials in words: "2x8xh200 tp16 vllm marlin" is "16 H200 TP16, vLLM, Marlin"."""
    cluster, layout, engine, kernel = group.split()
    nodes, cards, device = cluster.split("x", 2)
    count, split = int(nodes) * int(cards), layout.upper().replace(",", " ")
    return f"{count} {device.upper()} {split}, {_name(engine)}, {_name(kernel)}"


def scope_name(scope: str) -> str:
    """What a number holds for, in words: "sglang@b200" is "SGLang on B200"."""
    first, *rest = scope.split("@")
    if first == "network":
        cards = rest[1].removesuffix("nics") if len(rest) > 1 else ""
        many = f", {cards} network card{'s' if cards != '1' else ''} a server" if cards else ""
        return f"two servers of {_name(rest[0])} cards{many}"
    return " on ".join(_name(part) for part in (first, *rest)) if scope else "everything"


def mean_error(rows: Iterable[Trial], metric: str) -> float:
    """Mean of the absolute errors of one metric, as a share."""
    return statistics.mean(abs(summary.error(row)) for row in rows if row.metric == metric)


def only_here(many: Sequence[Cell]) -> dict[str, tuple[co.Key, ...]]:
    """By deployment, the fitted numbers that no other deployment tells anything about: with it left out they are
    taken from kin or assumed."""
    told: dict[co.Key, set[str]] = defaultdict(set)
    for one in many:
        for key in keys_of(one).values():
            told[key].add(one.group)
    return {
        group: tuple(sorted(key for key, groups in told.items() if groups == {group}))
        for group in dict.fromkeys(one.group for one in many)
    }


@dataclass(frozen=True)
class Moved:
    """A fitted number, and what was known of it before, in its unit: value and one standard deviation to each side.

    left: what remains of that spread; 1 where the runs tell nothing.
    """

    after: SpeedFact
    value: float
    low: float
    high: float
    left: float


def moved(fitted: Iterable[SpeedFact], many: Sequence[Cell]) -> list[Moved]:
    """Every fitted number with what was known before; many: the cells that it was fitted to."""
    before = start(many, co.table())
    found = []
    for row in fitted:
        was = before[row.parameter, row.scope]
        value, low, high = (
            convert(was.value * math.exp(side * was.spread), co.UNIT_OF.get(row.unit, row.unit), row.unit)
            for side in (0, -1, 1)
        )
        found.append(Moved(row, value, low, high, co.known(row, "").spread / was.spread))
    return found


@dataclass(frozen=True)
class Trade:
    """One number of the model changed by a factor, and another that makes up for it.

    other: the factor of that one. alone, left: the largest change of the metric over all cells, as a share, without
    and with making up.
    """

    other: float
    alone: float
    left: float


def trade(many: Sequence[Cell], numbers: co.Table, first: str, second: str, factor: float, metric: str) -> Trade:
    """How well `second` can stand in for `first`: the factor of it that keeps the mean of the metric's logarithm.

    Raises ValueError where no factor from 1/8 to 8 does.
    """
    columns = {"output_tps": "output_tps", "tpot_ms": "tpot_ms", "ttft_ms": "ttft_mean_ms"}
    distinct = list({one.key: one for one in many}.values())

    def changes(by: dict[str, float]) -> list[float]:
        shifts = []
        for one, before in zip(distinct, here, strict=True):
            table = numbers
            for name, times in by.items():
                table = override(one.asked, table, name, constants(one.asked.setup, numbers).values[name].value * times)
            after = answer(one.asked, table)
            shifts.append(math.log(getattr(after, columns[metric]) / getattr(before, columns[metric])))
        return shifts

    here = served(distinct, numbers)
    alone = changes({first: factor})
    log_factor = brentq(
        lambda x: statistics.mean(changes({first: factor, second: math.exp(x)})), -math.log(8), math.log(8), xtol=1e-3
    )
    made_up = changes({first: factor, second: math.exp(log_factor)})
    return Trade(math.exp(log_factor), *(max(abs(math.expm1(x)) for x in part) for part in (alone, made_up)))


@dataclass(frozen=True)
class Beside:
    """A run, and by metric predicted over measured, less one. why: the reason where the model cannot be asked."""

    run: Run
    errors: dict[str, float]
    why: str = ""


def beside(runs: Iterable[Run], numbers: co.Table) -> list[Beside]:
    """Runs beside the model's answers by these numbers, which are not fitted to them here."""
    found = []
    for run in runs:
        try:
            one = cell(run)
            left = residuals(one, served([one], numbers)[0])
            found.append(Beside(run, {metric: math.expm1(value) for metric, value in left.items()}))
        except InputError as error:
            found.append(Beside(run, {}, outside(run) or str(error)))
    return found


@dataclass(frozen=True)
class KernelPair:
    """The experts' kernel on two cards: tokens, time on each in us, one over the other."""

    tokens: int
    us: float
    other_us: float

    @property
    def ratio(self) -> float:
        """Time over that on the other card."""
        return self.us / self.other_us


def kernel_pairs(device: str, other: str, implementation: str) -> list[KernelPair]:
    """Measured times of one layer's experts, held whole, by one kernel and one engine on two cards."""
    times: dict[str, dict[int, float]] = {device: {}, other: {}}
    for row in kernel_times():
        whole = (row.kernel, row.model, row.routing, row.tp, row.ep) == ("experts", "kimi-k3", "balanced", 1, 1)
        known = row.use == "yes" and row.implementation == implementation and row.device in times
        if whole and known and row.tokens and row.time_us:
            times[row.device][row.tokens] = row.time_us
    both = sorted(set(times[device]) & set(times[other]))
    return [KernelPair(tokens, times[device][tokens], times[other][tokens]) for tokens in both]


def expected_ratio(device: str, other: str, quantity: str) -> float:
    """Time over that on the other card, if it went with the inverse of a property of the cards."""
    return device_fact(other, quantity).value / device_fact(device, quantity).value
