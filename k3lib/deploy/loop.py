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

LONGEST_RUN_PASSES = 100_000


@dataclass
class Group:
    """Requests that go on alike. end: the slot's pass that ends them. first: when their first token came.

    sent: when they were sent, while their first token is still to come.
    """

    requests: int
    end: int
    first: float = 0.0
    sent: list[float] = field(default_factory=list)


@dataclass
class Slot:
    """Requests that generate together. Answers are equally long, so the group that came first ends first.

    requests: of all groups. passes: that generated so far. partial: a prompt of which some tokens are left to read.
    """

    groups: deque[Group] = field(default_factory=deque)
    requests: int = 0
    passes: int = 0
    partial: tuple[float, int] | None = None
    busy: bool = False


class Loop:
    """State of a run."""

    def __init__(self, at: Callable[[int, int], list[float]], load: Load, rules: Rules) -> None:
        self.at, self.load, self.rules = at, load, rules
        self.total, self.passes, self.hop_us = load.total, load.passes, rules.hop_us
        self.now = self.end = 0.0
        self.slots = [Slot() for _ in range(rules.slots)]
        self.stage_free = [0.0] * rules.slots
        self.flying: deque[tuple[float, Slot, bool, list[float]]] = deque()  # end, slot, generates, prompts it ends
        self.waiting: deque[float] = deque()  # when each was sent
        self.arrivals: deque[tuple[float, float]] = deque()  # when a request is here, when it was sent
        self.sent = self.done = self.running = self.steps = 0
        self.readers_free = 0.0
        self.ttft: list[float] = []
        self.tpot: list[float] = []
        if self.total * load.read > LONGEST_RUN_PASSES * rules.chunk:
            self._too_long()
        for i in range(min(load.concurrency, self.total)):
            self._send(i * rules.client_us)

    def mixing(self) -> None:
        """What is free to go on and its share of what waits goes into one pass, up to its tokens; then the next.

        With nothing to make up the engine waits for the oldest pass, and hears of no new request before it ends.
        Answers of one length end together and would come back bunched into few slots; real ones do not, so they are
        spread.
        """
        while self._goes_on():
            self._receive()
            slot = next((x for x in self.slots if not x.busy and (x.requests or x.partial)), None)
            if slot is None and self.waiting and self.running < self.rules.running:
                slot = next((x for x in self.slots if not x.busy), None)
            if slot is not None:
                room = (self.rules.running if self.rules.bunched else self._even_share()) - slot.requests
                self._join(slot, room)
                prompt, ended = self._admit(slot, max(0, self.rules.chunk - slot.requests), room)
                if slot.requests or prompt:
                    self._start(slot, prompt, ended, generates=slot.requests > 0)
                    if not prompt:
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
        turn = -1
        while self._goes_on():
            turn = (turn + 1) % self.rules.slots
            slot = self.slots[turn]
            while slot.busy:
                self._finish()
            self._receive()
            self._join(slot, share - slot.requests)
            prompt, ended = self._admit(slot, self.rules.chunk, share - slot.requests)
            if prompt or slot.requests:
                self._start(slot, prompt, ended, generates=not prompt)
                if not prompt:
                    self._jump()
            elif not self.flying and not self.waiting and self.arrivals:
                self.now = max(self.now, self.arrivals[0][0])

    def _goes_on(self) -> bool:
        self.steps += 1
        if self.steps > LONGEST_RUN_PASSES:
            self._too_long()
        return self.done < self.total

    def _too_long(self) -> None:
        raise InputError(f"a run of {self.total:,} requests of {self.load.read:,} + {self.load.osl:,} tokens takes "
                         f"more than {LONGEST_RUN_PASSES:,} passes of {self.rules.chunk:,} tokens; ask for fewer "
                         "--requests or clients, or a larger chunk")  # fmt: skip

    def _even_share(self) -> int:
        """Requests of a slot if all that are here were spread evenly."""
        return -(-min(self.running + len(self.waiting), self.rules.running) // self.rules.slots)

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

    def _join(self, slot: Slot, most: int) -> None:
        """Requests whose prompts other cards have read begin to generate; their first pass gives the first token."""
        if self.rules.apart:
            new = min(len(self.waiting), most, self.rules.running - self.running)
            if new > 0:
                self.running += new
                slot.requests += new
                sent = [self.waiting.popleft() for _ in range(new)]
                slot.groups.append(Group(new, slot.passes + 1 + max(self.passes, 1), sent=sent))

    def _admit(self, slot: Slot, budget: int, quota: int) -> tuple[int, list[float]]:
        """Prompt tokens for the slot's next pass, and when the prompts that it ends were sent."""
        prompt = 0
        ended: list[float] = []
        while budget > 0 and not self.rules.apart:
            if slot.partial is None:
                if not self.waiting or self.running >= self.rules.running or len(ended) >= quota:
                    break
                self.running += 1
                slot.partial = (self.waiting.popleft(), self.load.read)
            sent, left = slot.partial
            take = min(budget, left)
            prompt, budget = prompt + take, budget - take
            slot.partial = (sent, left - take) if take < left else None
            if slot.partial is None:
                ended.append(sent)
        return prompt, ended

    def _start(self, slot: Slot, prompt: int, ended: list[float], generates: bool) -> None:
        at, free, hop = self.now, self.stage_free, self.hop_us
        for stage, time in enumerate(self.at(slot.requests if generates else 0, prompt)):
            if free[stage] > at:
                at = free[stage]
            at += time
            free[stage] = at
            at += hop
        self.flying.append((at, slot, generates, ended))
        slot.busy = True

    def _finish(self) -> None:
        """Wait for the oldest pass in flight and take up its results."""
        at, slot, generates, ended = self.flying.popleft()
        self.now, slot.busy = max(self.now, at), False
        if generates:
            slot.passes += 1
            for group in reversed(slot.groups):  # those whose first token this was came last
                if not group.sent:
                    break
                group.first = at
                self.ttft += [at - sent for sent in group.sent]
                group.sent = []
            while slot.groups and slot.groups[0].end <= slot.passes:
                group = slot.groups.popleft()
                slot.requests -= group.requests
                self.tpot += [(at - group.first) / max(1, self.load.osl - 1)] * group.requests
                self._answered(at, group.requests)
        if not ended:
            return
        self.ttft += [at - sent for sent in ended]
        if self.passes > 0:
            slot.requests += len(ended)
            slot.groups.append(Group(len(ended), slot.passes + self.passes, at))
        else:
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
        if self.arrivals or (self.waiting and self.running < self.rules.running):
            return
        active = [slot for slot in self.slots if slot.groups]
        if any(slot.partial for slot in self.slots) or any(slot.groups[-1].sent for slot in active):
            return
        skip = min((slot.groups[0].end - slot.passes for slot in active), default=0) - 2
        if skip < 1 or any(ended for *_, ended in self.flying):
            return
        times = [self.at(slot.requests, 0) for slot in active]
        through = max(sum(row) for row in times) + self.hop_us * self.rules.slots
        period = max(through, *(sum(stage) for stage in zip(*times, strict=True)))
        for slot in active:
            slot.passes += skip
        self.now += skip * period
        self.stage_free = [at + skip * period for at in self.stage_free]
        self.flying = deque((at + skip * period, *rest) for at, *rest in self.flying)
