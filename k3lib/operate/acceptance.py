"""What a deployment must show before it serves: load steps with limits, memory, and how long to measure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from k3lib.account import acceptance as eq
from k3lib.account import operate_symbols as o
from k3lib.calibrate.against import Compared
from k3lib.calibrate.predict import Speed, numbers, speed
from k3lib.deploy import constants as co
from k3lib.deploy.load import Load
from k3lib.deploy.plan import Plan
from k3lib.deploy.search import sized
from k3lib.deploy.speed import Options, Question, answer, question
from k3lib.errors import InputError
from k3lib.evaluate import arrays
from k3lib.facts import acceptance as facts
from k3lib.ranges import Range, of_corners
from k3lib.units import GIBI

# What is better when it is more, and when it is less, as `k3 read` calls it.
MORE = ("output", "memory for caches", "KV tokens", "requests of the longest length", "state slots")
LESS = ("time per output token", "time to first token")
# Rounds of requests of every client after which a run of the closed loop is taken to be the truth.
MANY_ROUNDS = 30


@dataclass(frozen=True)
class Judgement:
    """Whether measured values lie in their ranges or on the better side of them. why: in a sentence."""

    word: Literal["pass", "fail"]
    why: str
    checks: tuple[str, ...] = ()


def judged(compared: Sequence[Compared]) -> Judgement | None:
    """The verdict on values beside their predictions; None where none has a range."""
    ranged = [c for c in compared if c.low is not None and c.high is not None and c.what.startswith((*MORE, *LESS))]
    if not ranged:
        return None
    worse = [text for c in ranged if (text := _worse(c))]
    if not worse:
        return Judgement("pass", "every value lies in its range or on the better side of it")
    more = "a plan of other settings, or a fault: see the page on trouble-shooting"
    return Judgement("fail", "; ".join(worse), (more,))


def _worse(c: Compared) -> str:
    """How a value lies on the worse side of its range, empty where it does not."""
    unit = "" if c.unit == "1" else f" {c.unit}"
    if c.what.startswith(MORE) and c.low is not None and c.measured < c.low:
        return f"{c.what} of {c.measured:,.4g}{unit} is below {c.low:,.4g}{unit}"
    if c.what.startswith(LESS) and c.high is not None and c.measured > c.high:
        return f"{c.what} of {c.measured:,.4g}{unit} is above {c.high:,.4g}{unit}"
    return ""


@dataclass(frozen=True)
class Step:
    """One step of the ramp. speed: what is predicted of a run of so many requests; None with the reason.

    rounds: requests of each client. minutes: that the run takes.
    """

    load: Load
    rounds: int = 0
    requests: int = 0
    minutes: Range | None = None
    asked: Question | None = None
    speed: Speed | None = None
    reason: str = ""


def rounds_needed(asked: Question, share: float, table: co.Table) -> int:
    """Fewest requests of each client after which the mean output of a run lies within a share of that of a long one.

    Clients all begin at once and none goes on at the end: a short run tells too little output.
    """
    clients = asked.load.concurrency

    def output(rounds: int) -> float:
        return answer(replace(asked, load=replace(asked.load, requests=rounds * clients)), table).output_tps

    long = output(MANY_ROUNDS)
    return next((n for n in range(1, MANY_ROUNDS) if abs(output(n) / long - 1) <= share), MANY_ROUNDS)


def step(plan: Plan, how: Options, load: Load, share: float | None = None, table: co.Table | None = None) -> Step:
    """A step of the ramp on a plan: at least the requests that measured runs had, and as many as the share takes.

    share: how near the mean must be to that of a long run; that of data/acceptance.csv if None.
    """
    share, table = facts.parameter("mean_share").value if share is None else share, table or numbers()
    try:
        asked = question(sized(plan, load), load, how)
        rounds = max(rounds_needed(asked, share, table), math.ceil(load.total / load.concurrency))
        run = replace(load, requests=rounds * load.concurrency)
        asked = question(sized(plan, run), run, how)
        found = speed(asked, table)
    except InputError as error:
        return Step(load, reason=str(error))
    tokens = rounds * load.concurrency * load.osl
    minutes = of_corners(tokens / found.output_tps.corners(falling=True) / SECONDS_PER_MINUTE)
    return Step(load, rounds, rounds * load.concurrency, minutes, asked, found)


SECONDS_PER_MINUTE = 60


def ramp(plan: Plan, how: Options, loads: Iterable[Load]) -> list[Step]:
    """Steps of the ramp, each measured to the share that data/acceptance.csv asks for."""
    table = numbers()
    return [step(plan, how, load, table=table) for load in loads]


def requests_for_mean() -> Range:
    """Requests of one's own texts, each of its own length, whose mean is good to the share. Fewest, value, most."""
    known = {symbol: facts.parameter(str(symbol)).range_in("1")
             for symbol in (o.confidence_width, o.length_variation, o.mean_share)}  # fmt: skip
    values = {symbol: np.array([r.value]) for symbol, r in known.items()}
    one = float(arrays({"n": eq.requests_for_mean()}, values)["n"][0])
    ends = []
    for at in (known[o.length_variation].low, known[o.length_variation].high):
        ends.append(float(arrays({"n": eq.requests_for_mean()}, {**values, o.length_variation: at})["n"][0]))
    return Range(math.ceil(one), math.ceil(ends[0]), math.ceil(ends[1]))


@dataclass(frozen=True)
class MemoryLine:
    """What a start-up log should say: in words, its unit, the value and its range. The low end is the limit."""

    what: str
    unit: str
    expected: Range


def memory(plan: Plan) -> list[MemoryLine]:
    """What the log of a plan that fits should print, by the ledger; empty for one that does not."""
    if not plan.fits or plan.caches is None:
        return []
    found = []
    for stage in plan.stages:
        weights = stage.weights / GIBI
        found.append(MemoryLine(f"weights, stage {stage.number}", "GiB", Range(weights, weights, weights)))
        if plan.engine.paged:
            free = (x / GIBI for x in stage.free)
            found.append(MemoryLine(f"memory for caches, stage {stage.number}", "GiB", Range(*free)))
    for what, unit, name in (("KV tokens", "tokens", "kv_tokens"),
                             ("requests of the longest length", "1", "max_concurrency"),
                             ("state slots", "1", "state_slots")):  # fmt: skip
        if name != "state_slots" or not plan.engine.paged:
            ends = [float(getattr(c, name)) for c in (plan.caches, plan.caches_low, plan.caches_high) if c]
            found.append(MemoryLine(what, unit, Range(ends[0], min(ends), max(ends))))
    return found
