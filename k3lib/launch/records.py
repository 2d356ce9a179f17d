"""What a start consists of: its flags, a command for every node, the memory that it will use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from k3lib.deploy.plan import Plan
from k3lib.facts.flags import EngineFlag, EngineStart
from k3lib.ranges import Range
from k3lib.units import GIBI


class Shell(str):
    """Text that the shell of a node fills in, as the number of a pod; everything else is quoted."""


@dataclass(frozen=True)
class Option:
    """A row of data/engine_flags.csv with its value filled in, None for a switch."""

    row: EngineFlag
    value: str | None

    @property
    def words(self) -> tuple[str, ...]:
        """As it stands on the command line."""
        return (self.row.name,) if self.value is None else (self.row.name, self.value)


@dataclass(frozen=True)
class Command:
    """What runs on one node. copy: which copy of the model it belongs to. node: its place in that copy.

    before: programs that run first. options: flags in order. program: empty where the node only joins.
    file: name and text of a file of options.
    """

    host: str
    copy: int
    node: int
    env: tuple[Option, ...]
    before: tuple[tuple[str, ...], ...]
    program: tuple[str, ...]
    options: tuple[Option, ...]
    file: tuple[str, str] | None = None

    @property
    def argv(self) -> tuple[str, ...]:
        """The program with all its words."""
        return (*self.program, *(word for option in self.options for word in option.words))


@dataclass(frozen=True)
class StageMemory:
    """One card of a stage, in GiB. used: weights and all working memory, without the caches."""

    stage: int
    layers: int
    weights_gib: float
    used_gib: Range
    left_gib: Range


@dataclass(frozen=True)
class Launch:
    """The start of a deployment under an engine.

    plan: None for a set-up that was published and is not ours to vary. reason: why there are no commands, empty where
    there are. options: all that the commands hold, each once. nodes: of one copy. site: what only the site can know.
    warnings: what is to be said.
    """

    start: EngineStart
    plan: Plan | None
    reason: str
    options: tuple[Option, ...] = ()
    commands: tuple[Command, ...] = ()
    site: tuple[EngineFlag, ...] = ()
    warnings: tuple[EngineFlag, ...] = ()
    pods: tuple[Option, ...] = ()
    nodes: int = 1
    copies: int = 1

    @property
    def name(self) -> str:
        """What is started, by which engine."""
        engine = f"{self.start.label} {self.start.version}"
        if self.plan is None:
            return f"{engine}, as published: {self.start.memory}" if self.start.memory else engine
        return f"{self.plan.model.name} on {self.plan.cluster} as {self.plan.layout}, {engine}"

    @property
    def sources(self) -> tuple[str, ...]:
        """All sources behind it."""
        rows: Sequence[EngineFlag] = [*(o.row for o in (*self.options, *self.pods)), *self.site, *self.warnings]
        return tuple(dict.fromkeys([*self.start.source_ids, *(i for row in rows for i in row.source_ids)]))


def memory(plan: Plan) -> tuple[StageMemory, ...]:
    """What a card of every stage holds, from the plan's ledger."""
    found = []
    for stage in plan.stages:
        lines = [line for line in stage.lines if not line.passing]
        used = (sum(getattr(line, name) for line in lines) / GIBI for name in ("bytes", "low", "high"))
        left = (max(0.0, free) / GIBI for free in stage.free)
        found.append(StageMemory(stage.number, len(stage.layers), stage.weights / GIBI, Range(*used), Range(*left)))
    return tuple(found)
