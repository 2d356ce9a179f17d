"""Engines whose commands do not follow a plan: one published set-up each, shown as it was, or no evidence at all."""

from __future__ import annotations

from typing import Any

import yaml

from k3lib.engines.layout import Cluster
from k3lib.facts.catalog import device_kin
from k3lib.facts.flags import EngineFlag, EngineStart
from k3lib.launch.commands import FIRST, OTHERS, each_once, filled, options, refusal, rows_for, started
from k3lib.launch.place import Place, bracketed
from k3lib.launch.records import Command, Launch

FILE = "k3.yaml"


def published(engine: str, place: Place | None = None, cluster: Cluster | None = None, layout: str = "") -> Launch:
    """The start that was published of an engine, or why there is none for such cards or such a layout.

    cluster, layout: of the reader's plan; left out: whatever the set-up had. Raises InputError for an unknown engine.
    """
    place, start = place or Place(), started(engine)
    rows = rows_for(engine, {"interface": "given" if place.interface else "none"})
    reason = refusal(start, rows) or _differs(start, cluster, layout)
    if reason:
        return Launch(start, None, reason)
    hosts = place.named(start.nodes or 1)
    one_starts_all = start.program.startswith("srun")
    commands = [_command(start, rows, place, hosts, node) for node in range(1 if one_starts_all else len(hosts))]
    shown = each_once(o for c in commands for o in (*c.env, *c.options, *options(rows, "file", FIRST, {})))
    return Launch(start, None, "", shown, tuple(commands),
                  tuple(r for r in rows if r.kind == "site"), tuple(r for r in rows if r.kind == "warn"),
                  nodes=len(hosts))  # fmt: skip


def _differs(start: EngineStart, cluster: Cluster | None, layout: str) -> str:
    """How the reader's plan differs from the set-up that was published, empty where it does not."""
    told = f"no evidence for {start.label} {start.version}"
    kin = device_kin().get(cluster.device) if cluster else None
    family = kin.architecture if kin else ""
    if cluster and start.family and family != start.family:
        return f"{told} on {cluster.device}: what is public of K3 is for {start.family} cards ({start.memory})"
    if cluster and start.nodes and cluster.nodes != start.nodes:
        return f"{told} on {cluster}: what is public of K3 is for {start.nodes} servers ({start.memory})"
    if layout and start.layout and layout != start.layout:
        return f"{told} in layout {layout}: what is public of K3 is {start.layout} ({start.memory})"
    return ""


def _command(start: EngineStart, rows: list[EngineFlag], place: Place, hosts: tuple[str, ...], node: int) -> Command:
    values = {"model": place.model_path or start.model, "port": str(start.port or 0), "node_rank": str(node),
              "first_host": hosts[0], "first_address": bracketed(hosts[0]), "interface": place.interface}  # fmt: skip
    role = FIRST if node == 0 else OTHERS
    lines = {o.row.name: yaml.safe_load(o.value or "") for o in options(rows, "file", role, values)}
    return Command(
        host=hosts[node], copy=0, node=node, env=options(rows, "env", role, values), before=(),
        program=tuple(filled(word, values) for word in start.program.split()),
        options=options(rows, "flag", role, values),
        file=(FILE, yaml.safe_dump(nested(lines), sort_keys=False)) if lines else None,
    )  # fmt: skip


def nested(lines: dict[str, Any]) -> dict[str, Any]:
    """Options named `part.name` as parts with their names."""
    found: dict[str, Any] = {}
    for name, value in lines.items():
        part, dot, inner = name.partition(".")
        if dot:
            found.setdefault(part, {})[inner] = value
        else:
            found[name] = value
    return found
