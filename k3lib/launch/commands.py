"""From a plan to the commands that start it: the rows of data/engine_flags.csv that hold for it, filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from k3lib.deploy.plan import Plan
from k3lib.engines.layout import Hardware
from k3lib.errors import InputError, near
from k3lib.facts.flags import EngineFlag, EngineStart, engine_flags, engine_starts
from k3lib.launch.place import Place, bracketed, features_of, groups_on_node, shape_of, values_of
from k3lib.launch.records import Command, Launch, Option, Shell

VALUE = re.compile(r"@([a-z_]+)")
FIRST, OTHERS = "first", "others"


def started(engine: str) -> EngineStart:
    """How an engine is started. Raises InputError with the near name."""
    if engine not in engine_starts():
        raise InputError(f"--engine {engine}: not known. {near(engine, engine_starts())}")
    return engine_starts()[engine]


def filled(template: str, values: Mapping[str, str]) -> str:
    """A text with what the plan gives in the place of "@name". Raises InputError for a name that nothing gives."""

    def value(name: str) -> str:
        if name not in values:
            raise InputError(f"data/engine_flags.csv: '@{name}' is nothing that a plan gives. {near(name, values)}")
        return values[name]

    if whole := VALUE.fullmatch(template):
        return value(whole[1])  # as it is, so that what the shell fills in stays marked
    text = VALUE.sub(lambda m: value(m[1]), template)
    inserted = (values.get(m[1]) for m in VALUE.finditer(template))
    return Shell(text) if any(isinstance(x, Shell) for x in inserted) else text


def rows_for(engine: str, features: Mapping[str, str]) -> list[EngineFlag]:
    """The rows of an engine that hold for a plan of these features, in the order of the table."""
    return [row for row in engine_flags() if row.engine == engine and row.holds(features)]


def options(rows: Iterable[EngineFlag], kind: str, role: str, values: Mapping[str, str]) -> tuple[Option, ...]:
    """The rows of a kind for a role of node, filled in."""
    return tuple(
        Option(row, filled(row.value, values) if row.value else None)
        for row in rows
        if row.kind == kind and row.role in ("", role)
    )


def build(plan: Plan, place: Place | None = None, hardware: Hardware | None = None) -> Launch:
    """The start of a plan: commands for every node, or why there are none.

    hardware: device facts, if not those of data/hardware.csv. Raises InputError for hosts that do not match, cards that
    do not fill servers, and memory for caches that was given from a log.
    """
    place = place or Place()
    start = started(plan.engine.name)
    if start.way != "plan":
        raise InputError(f"--engine {plan.engine.name}: its commands do not follow a plan")
    if plan.settings.kv_memory_bytes:
        raise InputError("--kv-memory-gib: is for checking a log. Leave it out; the engine sizes its caches itself")
    shape = shape_of(plan)
    features = features_of(plan, place, hardware)
    rows = rows_for(start.engine, features)
    reason = plan.reason if not plan.fits else refusal(start, rows)
    if reason:
        return Launch(start, plan, reason, nodes=shape.nodes, copies=shape.copies)
    hosts, commands = place.named(shape.servers), []
    for copy in range(shape.copies):
        at = copy * shape.nodes if shape.nodes > 1 else copy // shape.per_node
        own = hosts[at : at + shape.nodes]
        commands += [node_command(plan, place, rows, features, own, copy, node) for node in range(shape.nodes)]
    shown = each_once(o for c in commands[: shape.nodes] for o in (*c.env, *c.options))
    return Launch(start, plan, "", shown, tuple(commands),
                  tuple(r for r in rows if r.kind == "site"), tuple(r for r in rows if r.kind == "warn"),
                  options(rows, "pod", FIRST, {}), shape.nodes, shape.copies)  # fmt: skip


def each_once(many: Iterable[Option]) -> tuple[Option, ...]:
    """Options without repetition; of one with several values the first."""
    found: dict[tuple[str, str], Option] = {}
    for option in many:
        found.setdefault((option.row.kind, option.row.name), option)
    return tuple(found.values())


def refusal(start: EngineStart, rows: Sequence[EngineFlag]) -> str:
    """Why no command is written, empty where one is."""
    stops = [row for row in rows if row.kind == "stop"]
    if not stops:
        return ""
    what = f"{stops[0].name}: " if stops[0].name.startswith("--") else ""
    return f"no command for {start.label} {start.version}: {what}{stops[0].reason}"


def node_command(plan: Plan, place: Place, rows: Sequence[EngineFlag], features: Mapping[str, str],
                 hosts: Sequence[str], copy: int, node: int, rank: str | None = None) -> Command:  # fmt: skip
    """What one node of a copy runs. hosts: the nodes of that copy. rank: how the node knows its number."""
    start, shape = started(plan.engine.name), shape_of(plan)
    part = copy % shape.per_node
    cards = ",".join(str(part * shape.cards + i) for i in range(shape.cards))
    values = {**values_of(plan, place), **on_node(plan, hosts[0], rank or str(node)), "cards": cards,
              "model": place.model_path or start.model, "port": str((start.port or 0) + part)}  # fmt: skip
    role = FIRST if node == 0 else OTHERS
    only_joins = features["start"] == "ray" and node > 0
    return Command(
        host=hosts[node], copy=copy, node=node,
        env=options(rows, "env", role, values),
        before=tuple((*o.row.name.split(), *(o.value or "").split()) for o in options(rows, "before", role, values)),
        program=() if only_joins else tuple(filled(word, values) for word in start.program.split()),
        options=() if only_joins else options(rows, "flag", role, values),
    )  # fmt: skip


def on_node(plan: Plan, first: str, rank: str) -> dict[str, str]:
    """What differs from node to node. first: the host that the others find. rank: the number of the node."""
    local = groups_on_node(plan)
    groups = Shell(f"$(({rank.removeprefix('$')} * {local}))") if isinstance(rank, Shell) else str(int(rank) * local)
    address = first if isinstance(first, Shell) else bracketed(first)
    return {"first_host": first, "first_address": address, "node_rank": rank, "dp_start": groups}
