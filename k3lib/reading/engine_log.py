"""What the logs of both engines have in common: the state of one start, gathered line by line in bounded memory."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from statistics import median

from k3lib.reading.arguments import Value
from k3lib.reading.failures import failure_in, first_failure, looks_like_failure, stage_of_frame
from k3lib.reading.records import Budget, Failure, LogReading, Service, Span, Stage

MOST_RANKS = 4096
MOST_VALUES = 2**14
NEAR_ROWS = 1000
LINES_OF_A_LIFE = 3
NEAR_FRAME_ROWS = 300  # a traceback names the stage better than what other ranks have reached


@dataclass
class Tally:
    """Count, most and median of a stream of values. Beyond 16,384 values every second, fourth... one is kept."""

    count: int = 0
    most: float = 0.0
    kept: array[float] = field(default_factory=lambda: array("d"))
    step: int = 1

    def add(self, value: float) -> None:
        """One value."""
        if self.count % self.step == 0:
            self.kept.append(value)
            if len(self.kept) >= MOST_VALUES:
                self.kept, self.step = self.kept[::2], self.step * 2
        self.count += 1
        self.most = max(self.most, value)

    @property
    def span(self) -> Span | None:
        """(most, median), None without values."""
        return (self.most, median(self.kept)) if self.count else None


@dataclass
class Spans:
    """Least and most by pipeline stage."""

    values: dict[int, Span] = field(default_factory=dict)

    def add(self, stage: int | None, value: float) -> None:
        """One rank's value in GiB; a line that does not tell its stage is passed over."""
        if stage is not None and (len(self.values) < MOST_RANKS or stage in self.values):
            low, high = self.values.get(stage, (value, value))
            self.values[stage] = (min(low, value), max(high, value))

    def sorted(self) -> dict[int, Span]:
        """By stage in rising order."""
        return dict(sorted(self.values.items()))


@dataclass
class EngineState:
    """One start of an engine while its log is read."""

    evidence: int = 0
    version: str = ""
    model: str = ""
    architecture: str = ""
    arguments: dict[str, Value] = field(default_factory=dict)
    partition: tuple[int, ...] = ()
    world: int = 0
    ranks: dict[str, set[int]] = field(default_factory=dict)  # numbers seen of TP, PP, DP, EP
    numbers: dict[str, float] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    weights: Spans = field(default_factory=Spans)
    drafts: Spans = field(default_factory=Spans)
    pools: Spans = field(default_factory=Spans)
    states: Spans = field(default_factory=Spans)
    graphs: Spans = field(default_factory=Spans)
    pinned: bool = False
    budget: Budget | None = None
    stage: Stage = "unknown"
    ready: bool = False
    failure: Failure | None = None
    generation: Tally = field(default_factory=Tally)
    prompt: Tally = field(default_factory=Tally)
    acceptance: Tally = field(default_factory=Tally)
    service_lines: int = 0
    most: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    frame: Stage | None = None
    frame_row: int = 0
    ready_then: bool = False  # when the failure was logged
    lines_then: int = 0

    def rank(self, name: str, number: int) -> None:
        """A rank that speaks."""
        seen = self.ranks.setdefault(name, set())
        if len(seen) < MOST_RANKS:
            seen.add(number)

    def size(self, name: str) -> int | None:
        """How many ranks of a kind there are, where those that speak leave no doubt: over half of a power of two."""
        seen = self.ranks.get(name)
        size = max(seen) + 1 if seen else 0
        return size if size and size & (size - 1) == 0 and 2 * len(seen or ()) > size else None

    def least(self, name: str, value: float) -> None:
        """Keep the smallest of a printed number; note where engines differ."""
        old = self.numbers.get(name)
        if old is not None and abs(old - value) > 0.01 * max(old, value):
            self.note(self.remarks, f"{name} differs between the engines of this log; the smallest is kept")
        self.numbers[name] = value if old is None else min(old, value)

    def peak(self, name: str, value: float) -> None:
        """Keep the highest of a printed number."""
        self.most[name] = max(self.most.get(name, 0.0), value)

    def note(self, where: list[str], text: str) -> None:
        """Say a thing once."""
        if text not in where and len(where) < 20:
            where.append(text)

    def watch(self, row: int, line: str) -> None:
        """Keep the first failure that the log tells and that the engine did not live through."""
        if "line " in line and (frame := stage_of_frame(line)):
            self.frame, self.frame_row = frame, row
        self.settle()
        known = self.failure
        if known is not None and not known.consequence and row > known.row + NEAR_ROWS:
            return  # what comes so much later follows from it
        if looks_like_failure(line):
            near = self.frame is not None and row - self.frame_row < NEAR_FRAME_ROWS
            stage = self.frame if near and self.frame else self.stage
            self.failure = first_failure(known, failure_in(row, line, stage))
            if self.failure is not known:
                self.ready_then, self.lines_then = self.ready, self.service_lines

    def settle(self) -> None:
        """Turn an error into a warning once the engine has gone on: it became ready, or served for a while."""
        failure = self.failure
        if failure is None or failure.kind != "crash":
            return
        if self.service_lines >= self.lines_then + LINES_OF_A_LIFE or (self.ready and not self.ready_then):
            self.note(
                self.warnings, f"an error was logged (row {failure.row:,}) and the engine went on: {failure.text}"
            )
            self.failure = None

    def service(self) -> Service | None:
        """The lines of the service, summed up."""
        if not self.service_lines:
            return None
        most = self.most
        accepted = self.acceptance.span
        return Service(
            self.service_lines, self.generation.span, self.prompt.span,
            running=round(most["running"]) if "running" in most else None,
            waiting=round(most["waiting"]) if "waiting" in most else None,
            kv_usage=most.get("kv_usage"), state_usage=most.get("state_usage"), prefix_hits=most.get("prefix_hits"),
            acceptance_length=accepted[1] if accepted else None,
        )  # fmt: skip


def whole(value: object, least: int = 1) -> int | None:
    """An argument or a number as a whole number, None where it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or abs(value) > 1e15:
        return None
    return int(value) if value == int(value) and value >= least else None


def share(value: object) -> float | None:
    """An argument as a share from 0 to 1."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1
    return float(value) if good else None  # type: ignore[arg-type]


def closing_words(reading: LogReading) -> tuple[str, ...]:
    """Warnings that hold for the log of either engine."""
    found = list(reading.warnings)
    usage = reading.service.kv_usage if reading.service else None
    if usage is not None and usage >= 0.99 and reading.service and reading.service.waiting:
        found.append("the KV pool was full while requests waited")
    least = min((low for low, _ in reading.kv_gib.values()), default=None)
    if least is not None and least <= 0:
        found.append(f"nothing is left for caches ({least:.2f} GiB)")
    if reading.failure and reading.failure.consequence:
        found.append("the error shown only follows from an earlier one that this file does not hold: look in the log "
                     "of the first rank that died")  # fmt: skip
    return tuple(found)
