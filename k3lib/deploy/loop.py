"""The closed loop, pass by pass: clients that each wait for their answer before they ask again. Times in us.

Deterministic: no random number is drawn. Between two events (a request comes, a prompt is read, an answer ends) all
passes are alike, and the loop jumps over them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from k3lib.deploy.load import Load, Rules
from k3lib.errors import InputError

LONGEST_RUN_PASSES = 2_000_000


@dataclass
class Group:
    """Requests that go on alike. left: passes. first: when their first token came. sent: while that is not yet so."""

    requests: int
    left: int
    first: float | None
    sent: list[float] = field(default_factory=list)


class Loop:
    """State of a run. Times in us."""

    def __init__(self, at: Callable[[int, int], list[float]], load: Load, rules: Rules) -> None:
        self.at, self.load, self.rules = at, load, rules
        self.total, self.passes = load.total, max(load.passes, 0)
        self.now = self.end = 0.0
        self.arrivals: deque[tuple[float, float]] = deque()  # when a request is here, when it was sent
        self.sent, self.done, self.running, self.steps = 0, 0, 0, 0
        self.readers_free = 0.0
        for i in range(min(load.concurrency, self.total)):
            self._send(i * rules.client_us)
        self.waiting: deque[float] = deque()
        self.partial: list[list[float] | None] = [None] * rules.slots  # arrival, prompt tokens that are left
        self.groups: list[list[Group]] = [[] for _ in range(rules.slots)]
        self.flying: deque[tuple[float, int, bool, list[float]]] = deque()  # end, slot, generates, prompts it ends
        self.busy = [False] * rules.slots
        self.stage_free = [0.0] * rules.slots
        self.ttft: list[float] = []
        self.tpot: list[float] = []

    def mixing(self) -> None:
        """Whatever is free to go on and whatever waits goes into one pass, up to its tokens; then the next is made up.

        With nothing to make up the engine waits for the oldest pass, and hears of no new request before it ends.
        """
        while self._goes_on():
            self._receive()
            slot = next(
                (i for i, busy in enumerate(self.busy) if not busy and (self.groups[i] or self.partial[i])), None
            )
            if slot is None and self.waiting and self.running < self.rules.running and not all(self.busy):
                slot = self.busy.index(False)
            if slot is not None:
                self._join(slot, self._even_share() - self._requests(slot))
                mine = self._requests(slot)
                prompt, ended = self._admit(slot, max(0, self.rules.chunk - mine), self.rules.running)
                if mine or prompt:
                    self._start(slot, prompt, ended, generates=mine > 0)
                    self._jump()
                    if len(self.flying) < self.rules.slots:
                        continue
            if self.flying:
                self._finish()
            else:
                self.now = max(self.now, self.arrivals[0][0])

    def taking_turns(self) -> None:
        """Slots come round; one with waiting prompts reads them, otherwise it generates."""
        share = -(-self.rules.running // self.rules.slots)
        slot = -1
        while self._goes_on():
            slot = (slot + 1) % self.rules.slots
            while self.busy[slot]:
                self._finish()
            self._receive()
            self._join(slot, share - self._requests(slot))
            mine = self._requests(slot)
            prompt, ended = self._admit(slot, self.rules.chunk, share - mine)
            if prompt or mine:
                self._start(slot, prompt, ended, generates=not prompt)
                if not prompt:
                    self._jump()
            elif not any(self.busy) and not self.waiting and self.arrivals:
                self.now = max(self.now, self.arrivals[0][0])

    def _goes_on(self) -> bool:
        self.steps += 1
        if self.steps > LONGEST_RUN_PASSES:
            raise InputError(f"a run of {self.total:,} requests of {self.load.isl:,} + {self.load.osl:,} tokens takes "
                             f"more than {LONGEST_RUN_PASSES:,} passes; ask for fewer requests")  # fmt: skip
        return self.done < self.total

    def _requests(self, slot: int) -> int:
        return sum(group.requests for group in self.groups[slot])

    def _even_share(self) -> int:
        """Requests of a slot if all were spread evenly: what a side that only generates is taken to do."""
        here = sum(map(self._requests, range(self.rules.slots))) + len(self.waiting)
        return -(-min(here, self.rules.running) // self.rules.slots)

    def _send(self, at: float) -> None:
        """A client asks: the request is here at once, or when other cards have read its prompt."""
        here = at
        if self.rules.apart:
            start = max(at, self.readers_free)
            self.readers_free = start + self.rules.apart.spacing_us
            here = start + self.rules.apart.latency_us
        self.arrivals.append((here, at))
        self.sent += 1

    def _receive(self) -> None:
        while self.arrivals and self.arrivals[0][0] <= self.now:
            self.waiting.append(self.arrivals.popleft()[1])

    def _join(self, slot: int, most: int) -> None:
        """Requests whose prompts other cards have read begin to generate."""
        if not self.rules.apart:
            return
        new = min(len(self.waiting), most, self.rules.running - self.running)
        if new > 0:
            self.running += new
            self.groups[slot].append(
                Group(new, max(self.passes, 1), None, [self.waiting.popleft() for _ in range(new)])
            )

    def _admit(self, slot: int, budget: int, quota: int) -> tuple[int, list[float]]:
        """Prompt tokens for the slot's next pass, and the arrivals of the prompts that it ends."""
        prompt, ended = 0, []
        half = self.partial[slot]
        if half is not None:
            take = min(budget, int(half[1]))
            prompt, budget = take, budget - take
            half[1] -= take
            if half[1] == 0:
                ended.append(half[0])
                self.partial[slot] = None
        while (
            budget > 0 and quota > len(ended) and self.partial[slot] is None and self.waiting and not self.rules.apart
        ):
            if self.running >= self.rules.running:
                break
            arrival = self.waiting.popleft()
            self.running += 1
            take = min(budget, self.load.isl)
            prompt, budget = prompt + take, budget - take
            if take == self.load.isl:
                ended.append(arrival)
            else:
                self.partial[slot] = [arrival, self.load.isl - take]
        return prompt, ended

    def _start(self, slot: int, prompt: int, ended: list[float], generates: bool) -> None:
        at = self.now
        for stage, time in enumerate(self.at(self._requests(slot) if generates else 0, prompt)):
            at = max(at, self.stage_free[stage]) + time
            self.stage_free[stage] = at
            at += self.rules.hop_us
        self.flying.append((at, slot, generates, ended))
        self.busy[slot] = True

    def _finish(self) -> None:
        """Wait for the oldest pass in flight and take up its results."""
        at, slot, generates, ended = self.flying.popleft()
        self.now, self.busy[slot] = max(self.now, at), False
        if generates:
            for group in self.groups[slot]:
                if group.first is None:
                    group.first = at
                    self.ttft += [at - sent for sent in group.sent]
                    continue
                group.left -= 1
                if group.left <= 0:
                    self.tpot += [(at - group.first) / max(1, self.load.osl - 1)] * group.requests
                    self._answered(at, group.requests)
            self.groups[slot] = [group for group in self.groups[slot] if group.left > 0]
        self.ttft += [at - arrival for arrival in ended]
        if ended and self.passes > 0:
            self.groups[slot].append(Group(len(ended), self.passes, at))
        elif ended:
            self._answered(at, len(ended))

    def _answered(self, at: float, requests: int) -> None:
        self.end = at
        self.done += requests
        self.running -= requests
        for _ in range(min(requests, self.total - self.sent)):
            last = self.arrivals[-1][1] if self.arrivals else at
            self._send(max(at, last) + self.rules.client_us)

    def _jump(self) -> None:
        """Where every slot only generates and nothing can come in: on to just before the next answer ends."""
        stuck = not self.waiting or self.running >= self.rules.running
        if self.arrivals or not stuck or any(self.partial) or any(ended for *_, ended in self.flying):
            return
        active = [i for i in range(self.rules.slots) if self.groups[i]]
        if any(group.first is None for i in active for group in self.groups[i]):
            return
        skip = min((group.left for i in active for group in self.groups[i]), default=0) - 2
        if skip < 1:
            return
        times = [self.at(self._requests(i), 0) for i in active]
        through = max(sum(row) for row in times) + self.rules.hop_us * self.rules.slots
        period = max(through, *(sum(stage) for stage in zip(*times, strict=True)))
        for i in active:
            for group in self.groups[i]:
                group.left -= skip
        self.now += skip * period
        self.stage_free = [at + skip * period for at in self.stage_free]
        self.flying = deque((at + skip * period, *rest) for at, *rest in self.flying)
