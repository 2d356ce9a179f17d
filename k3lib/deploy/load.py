"""A load, how an engine runs passes, and what clients see: the words that the closed loop is told in."""

from __future__ import annotations

import math
from dataclasses import dataclass

from k3lib.errors import InputError

# Requests of a run, where not told: as the measured runs do, fewer for each client where clients are many.
MANY_REQUESTS, MOST_ROUNDS, LEAST_ROUNDS = 256, 7, 2
MOST_CLIENTS = 8192
# Tokens of a prompt or an answer beyond which a number is a slip: a thousand times the longest context there is.
MOST_TOKENS = 10**9


@dataclass(frozen=True)
class Load:
    """isl, osl: prompt and output tokens of each request. concurrency: clients. requests: in all.

    acceptance: tokens that a pass yields for a request with a draft model, 1 without. cached: tokens of each prompt
    that a prefix cache holds already: they are attended to, and not read again.
    """

    isl: int
    osl: int
    concurrency: int
    requests: int | None = None
    acceptance: float = 1.0
    cached: int = 0

    def __post_init__(self) -> None:
        """Raises InputError for a load that cannot be."""
        for name in ("isl", "osl", "concurrency"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name} {getattr(self, name)}: must be at least 1")
        for name in ("isl", "osl"):
            if getattr(self, name) > MOST_TOKENS:
                raise InputError(f"--{name} {getattr(self, name)}: must be at most {MOST_TOKENS:,} tokens")
        if self.concurrency > MOST_CLIENTS:
            raise InputError(f"--concurrency {self.concurrency}: at most {MOST_CLIENTS:,} clients are followed")
        if not 1 <= self.acceptance < math.inf:
            raise InputError(f"--acceptance-length {self.acceptance:g}: must be at least 1 token a pass")
        if not 0 <= self.cached < self.isl:
            raise InputError(f"{self.cached:,} tokens of a prompt from the prefix cache: must be from 0 to below its "
                             f"{self.isl:,} tokens")  # fmt: skip
        if self.requests is not None and self.requests < 1:
            raise InputError(f"--requests {self.requests}: must be at least 1")

    @property
    def read(self) -> int:
        """Tokens of each prompt that are read."""
        return self.isl - self.cached

    @property
    def seen(self) -> float:
        """Tokens that a token of the prompt attends to, on average."""
        return self.cached + self.read / 2

    @property
    def total(self) -> int:
        """Requests of the run."""
        rounds = max(LEAST_ROUNDS, min(MOST_ROUNDS, MANY_REQUESTS // self.concurrency))
        return self.requests or rounds * self.concurrency

    @property
    def passes(self) -> int:
        """Passes after the first token that yield the answer of one request."""
        return round((self.osl - 1) / self.acceptance)


@dataclass(frozen=True)
class Served:
    """What clients see: output of all in tok/s, time per output token and time to first token in ms."""

    output_tps: float
    tpot_ms: float
    ttft_mean_ms: float
    ttft_median_ms: float
    ttft_p99_ms: float


@dataclass(frozen=True)
class Apart:
    """Prompts that other cards read. latency_us: of one prompt until its cache has arrived. spacing_us: between two."""

    latency_us: float
    spacing_us: float


@dataclass(frozen=True)
class Rules:
    """How an engine runs passes. slots: passes in flight, one for each pipeline stage. chunk: tokens of a pass.

    running: requests that may run at once. mixes: prompts ride with generation; otherwise slots take turns and read
    prompts in passes of their own. apart: other cards read the prompts.
    bunched: whatever waits goes into the next pass, and slots may stay empty; otherwise requests are spread over slots.
    """

    slots: int
    chunk: int
    running: int
    mixes: bool
    client_us: float
    hop_us: float
    apart: Apart | None = None
    bunched: bool = False
