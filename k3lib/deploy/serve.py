"""A load on a deployment: the times of all passes that it can lead to, and the closed loop over them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from k3lib.deploy.load import Apart, Load, Rules, Served
from k3lib.deploy.loop import Loop
from k3lib.deploy.passes import Constants, PassTimes

__all__ = ["Apart", "Grid", "Load", "Rules", "Served", "grid", "serve"]

# Sizes at which passes are timed; between them times are read on straight lines.
DECODE_GRID = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096)
PROMPT_GRID = (1, 64, 128, 256, 512, 768, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 7000, 8000)
US_PER_MS, US_PER_S = 1e3, 1e6


@dataclass
class Grid:
    """Stage times of passes in us, by generated and prompt tokens."""

    decode: list[list[float]]
    mixed: list[list[list[float]]]
    requests: list[int]
    prompts: list[float]
    known: dict[tuple[int, int], list[float]] = field(default_factory=dict)

    def at(self, decode: int, prompt: int) -> list[float]:
        """Time of each stage."""
        key = (decode, prompt)
        if key not in self.known:
            low, high, share = _place(self.requests, decode)
            if prompt == 0:
                self.known[key] = [row[low] * (1 - share) + row[high] * share for row in self.decode]
            else:
                left, right, part = _place(self.prompts, prompt)
                self.known[key] = [
                    (row[low][left] * (1 - part) + row[low][right] * part) * (1 - share)
                    + (row[high][left] * (1 - part) + row[high][right] * part) * share
                    for row in self.mixed
                ]
        return self.known[key]


def _place(points: Sequence[float], value: float) -> tuple[int, int, float]:
    low = max(0, min(bisect_right(points, value) - 1, len(points) - 2))
    share = (value - points[low]) / (points[low + 1] - points[low])
    return low, low + 1, max(0.0, share)


def grid(passes: PassTimes, constants: Constants, load: Load, chunk: int) -> Grid:
    """Stage times of all passes that the load can lead to."""
    context, seen = load.isl + load.osl / 2, load.seen
    prompts = sorted({float(p) for p in PROMPT_GRID if p < chunk} | {chunk * k / 8 for k in range(1, 9) if chunk >= 64})
    prompts = [p for p in prompts if p <= chunk] or [1.0]
    if len(prompts) == 1:
        prompts = [prompts[0], prompts[0] + 1]
    needed = bisect_left(DECODE_GRID, load.concurrency) + 1
    requests = list(DECODE_GRID[: max(2, needed)])
    both = [(b, 0.0) for b in requests[1:]] + [(b, p) for b in requests for p in prompts]
    decode, prompt = np.array(both, dtype=np.float64).T
    times = passes.times(constants, decode, prompt, context, seen)
    first = len(requests) - 1
    return Grid(
        [[0.0, *row[:first].tolist()] for row in times],
        [row[first:].reshape(len(requests), len(prompts)).tolist() for row in times],
        requests,
        prompts,
    )


def serve(grid: Grid, load: Load, rules: Rules) -> Served:
    """What the load's clients see under the engine's rules. Raises InputError where a run would not end in time."""
    loop = Loop(grid.at, load, rules)
    (loop.mixing if rules.mixes else loop.taking_turns)()
    ttft, tpot = np.array(loop.ttft), np.array(loop.tpot or [0.0])
    return Served(
        output_tps=load.total * load.osl / (loop.end / US_PER_S),
        tpot_ms=float(tpot.mean()) / US_PER_MS,
        ttft_mean_ms=float(ttft.mean()) / US_PER_MS,
        ttft_median_ms=float(np.median(ttft)) / US_PER_MS,
        ttft_p99_ms=float(np.percentile(ttft, 99)) / US_PER_MS,
    )
