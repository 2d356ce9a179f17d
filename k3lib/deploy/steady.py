"""The closed loop in its steady state, by arithmetic over arrays: fast enough for every layout under every load.

A round is the time in which every request of a copy is answered once. In it each slot reads the prompts of its
requests and generates their answers. The pass-by-pass run of `k3lib.deploy.loop` is the judge; this ranks what is worth
running.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from k3lib.deploy.passes import Constants, PassTimes
from k3lib.deploy.serve import US_PER_MS, US_PER_S
from k3lib.evaluate import Array


@dataclass(frozen=True)
class Loads:
    """Loads side by side, each an array of shape (n,). running: requests that one copy can hold at once, 0 for none."""

    isl: Array
    osl: Array
    clients: Array
    cached: Array
    running: Array


@dataclass(frozen=True)
class Steady:
    """Estimates of shape (n,); output is 0 and times are infinite where not one request fits."""

    output_tps: Array
    tpot_ms: Array
    ttft_ms: Array


def steady(passes: PassTimes, known: Constants, loads: Loads, copies: int, chunk: int) -> Steady:
    """What clients of all copies see, by load."""
    slots = passes.setup.layout.pp
    fits = loads.running >= 1
    clients = np.ceil(loads.clients / copies)
    held = np.maximum(1.0, np.minimum(clients, loads.running))
    each = np.maximum(1.0, held / slots)
    used = np.minimum(slots, held)
    read = loads.isl - loads.cached
    context, seen = loads.isl + loads.osl / 2, loads.cached + read / 2
    room = np.maximum(chunk - each, chunk / 2) if passes.setup.engine.mixes else np.full_like(each, chunk)
    many = np.minimum(room, each * read)
    hop = passes.hops_us(known, each)
    generate = _period(passes.times(known, each, np.zeros_like(each), context, seen), used, hop)
    prompts = _period(passes.times(known, np.zeros_like(each), many, context, seen), used, hop)
    reading = prompts * np.ceil(each * read / many)
    # A prompt that rides in a generating pass costs what the pass takes longer: about what it takes alone.
    whole = loads.osl * generate + reading
    first = reading * (0.5 + 0.5 / each) + (clients / held - 1) * whole
    rate = np.minimum(copies, loads.clients) * held * loads.osl / (whole / US_PER_S)
    tpot = (whole - reading * (0.5 + 0.5 / each)) / loads.osl
    return Steady(
        np.where(fits, rate, 0.0),
        np.where(fits, tpot / US_PER_MS, np.inf),
        np.where(fits, first / US_PER_MS, np.inf),
    )


def _period(times: Array, used: Array, hop_us: Array) -> Array:
    """From one pass of a slot to its next, of stage times of shape (stages, n): through all stages, or behind the
    other slots in the slowest one.
    """
    through = times.sum(axis=0) + hop_us * len(times)
    return np.asarray(np.maximum(through, used * times.max(axis=0)))
