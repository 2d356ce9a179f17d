"""Where a start goes: the servers, the files, how nodes find each other; and what flags may ask of a plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from k3lib.deploy.plan import Plan
from k3lib.deploy.setup import domain
from k3lib.engines.layout import Hardware
from k3lib.errors import InputError
from k3lib.facts.catalog import device_kin, devices

HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*")
WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.,:@=^-]*")
EXECUTORS = ("native", "ray")


@dataclass(frozen=True)
class Place:
    """model_path: the files on the servers, empty for the released ones by name. hosts: names or addresses of the
    servers, none for placeholders. executor: native or ray. interface: the network interface for the first contact.
    weights: how the quantised weights are stored. experts: the kernel asked for. all_reduce: auto or nccl.

    Raises InputError for a value that no command should hold.
    """

    model_path: str = ""
    hosts: tuple[str, ...] = ()
    executor: str = "native"
    interface: str = ""
    weights: str = "mxfp4"
    experts: str = "auto"
    all_reduce: str = "auto"

    def __post_init__(self) -> None:
        for host in self.hosts:
            if not HOST.fullmatch(host):
                raise InputError(f"--hosts: '{host}' is no host name or address. Write them as 10.0.0.1,10.0.0.2")
        if len(set(self.hosts)) < len(self.hosts):
            raise InputError("--hosts: a host stands twice. Name each server once.")
        if self.interface and not WORD.fullmatch(self.interface):
            raise InputError(f"--interface {self.interface}: is no name of an interface, as eth0")
        if self.model_path.startswith("-") or not self.model_path.isprintable():
            raise InputError(f"--model-path {self.model_path!r}: is no path")
        if self.executor not in EXECUTORS:
            raise InputError(f"--executor {self.executor}: must be native or ray")

    def named(self, count: int) -> tuple[str, ...]:
        """The servers, or placeholders for so many. Raises InputError for another number of them."""
        if not self.hosts:
            return tuple(f"NODE{i}" for i in range(count))
        if len(self.hosts) != count:
            raise InputError(f"--hosts: names {len(self.hosts)}, the plan has {count} servers")
        return self.hosts


def bracketed(host: str) -> str:
    """A host as it stands before a port."""
    return f"[{host}]" if ":" in host else host


@dataclass(frozen=True)
class Shape:
    """How a plan lies on its servers. nodes: of one copy. copies: of the model. cards: of a copy on one node.
    servers: of all copies.
    """

    nodes: int
    copies: int
    cards: int
    servers: int

    @property
    def per_node(self) -> int:
        """Copies that share a node."""
        return max(1, self.copies * self.nodes // self.servers)


def shape_of(plan: Plan) -> Shape:
    """How a plan lies on its servers. Raises InputError where a copy does not take whole ones, or parts of one."""
    taken, held = plan.engine.cards(plan.layout), plan.cluster.cards_per_node
    copies = plan.cluster.cards // taken
    if taken <= held and held % taken == 0:
        return Shape(1, copies, taken, plan.cluster.nodes)
    if taken % held == 0:
        return Shape(taken // held, copies, held, plan.cluster.nodes)
    raise InputError(f"--layout {plan.layout} takes {taken} cards, which do not fill servers of {held}")


def _start(plan: Plan, shape: Shape, place: Place) -> str:
    """How the nodes of a copy find each other."""
    if shape.nodes == 1:
        return "one"
    if place.executor == "ray":
        return "ray"
    group = plan.layout.tp * plan.layout.pp
    inside = plan.engine.paged and plan.layout.dp > 1 and group <= shape.cards and shape.cards % group == 0
    return "groups" if inside else "native"


def features_of(plan: Plan, place: Place, hardware: Hardware | None = None) -> dict[str, str]:
    """What the conditions of data/engine_flags.csv ask, answered for a plan."""
    shape, layout, settings = shape_of(plan), plan.layout, plan.settings
    kin = device_kin().get(plan.cluster.device)
    joined = shape.nodes > 1 and domain(hardware or devices(), plan.cluster) > plan.cluster.cards_per_node

    def many(count: int) -> str:
        return "many" if count > 1 else "one"

    return {
        "model": plan.model.name, "weights": place.weights, "family": kin.architecture if kin else "unknown",
        "device": plan.cluster.device, "tp": str(layout.tp), "nodes": many(shape.nodes), "stages": many(layout.pp),
        "dp": many(layout.dp), "dcp": many(layout.dcp), "ep": "on" if layout.ep > 1 else "off",
        "rack": "yes" if joined else "no", "copies": "many_a_node" if shape.per_node > 1 else "one_a_node",
        "start": _start(plan, shape, place), "interface": "given" if place.interface else "none",
        "prefix": "on" if settings.prefix_caching else "off", "graphs": "on" if settings.graphs else "off",
        "drafts": "yes" if settings.draft_tokens else "no", "cache": settings.cache_dtype,
        "state": settings.state_dtype, "strategy": settings.cache_strategy, "experts": place.experts,
        "all_reduce": place.all_reduce, "files": "own" if place.model_path else "released",
    }  # fmt: skip


def groups_on_node(plan: Plan) -> int:
    """Data-parallel groups that lie on one node."""
    return max(1, shape_of(plan).cards // (plan.layout.tp * plan.layout.pp))


def values_of(plan: Plan, place: Place) -> Mapping[str, str]:
    """What the plan gives for flags on every node."""
    layout, settings, engine = plan.layout, plan.settings, plan.engine
    found = {
        "tp": layout.tp, "pp": layout.pp, "dp": layout.dp, "ep": layout.ep, "dcp": layout.dcp,
        "share": f"{plan.utilisation:g}", "max_model_len": settings.max_model_len,
        "max_num_seqs": settings.max_num_seqs, "chunk": settings.chunk_tokens or engine.whole("chunk_tokens"),
        "state": settings.state_dtype, "partition": ",".join(str(len(stage.layers)) for stage in plan.stages),
        "strategy": settings.cache_strategy, "draft_tokens": settings.draft_tokens,
        "nodes": shape_of(plan).nodes, "dp_local": groups_on_node(plan), "interface": place.interface,
    }  # fmt: skip
    if not engine.paged:
        ratio = engine.rule("state_ratio").value if settings.state_ratio is None else settings.state_ratio
        found["state_ratio"] = f"{ratio:g}"
    return {name: str(value) for name, value in found.items()}
