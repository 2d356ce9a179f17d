"""What the time of a pass depends on beside its tokens: the set-up, its numbers, and what each stage holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import sympy as sp

from k3lib.account import sharding
from k3lib.account import symbols as s
from k3lib.account.storage import DTYPE_BITS
from k3lib.account.tensors import SCALE_GROUP_SUFFIX
from k3lib.deploy import constants as co
from k3lib.deploy import curves as cv
from k3lib.deploy import ledger as led
from k3lib.engines.layout import Cluster, Hardware, Layout
from k3lib.engines.rules import Engine, on_stage, split_values, stage_counts, stages, way
from k3lib.errors import NoSpeedError
from k3lib.evaluate import exact
from k3lib.facts.catalog import devices
from k3lib.models.model import Model

# Groups of weights that a pass of text does not read, or that have a term of their own.
NOT_STREAMED = {led.ROUTED, led.SCALES, "vision", "projector", "embed"}
DEFAULT_NICS = 8
# Cards of a usual server; a card that reaches more of them has links between servers.
SERVER_CARDS = 8


@dataclass(frozen=True)
class SetUp:
    """What the time of a pass depends on, beside its tokens.

    experts: kernel of the routed experts, "auto" for the usual one. all_reduce: "custom" or "nccl" within a node.
    nics: network cards of a node that an exchange uses. graphs: whether decode passes are captured. drafts: tokens
    that a draft model proposes for each generated one. hardware: device facts, if not those of data/hardware.csv.
    """

    model: Model
    cluster: Cluster
    layout: Layout
    engine: Engine
    experts: str = "auto"
    all_reduce: str = "auto"
    nics: int = DEFAULT_NICS
    cache_dtype: str = "auto"
    state_dtype: str = "float32"
    graphs: bool = True
    drafts: int = 0
    pp_partition: tuple[int, ...] | None = None
    hardware: Hardware | None = None

    @property
    def facts(self) -> Hardware:
        """Device facts: the reader's, or those of the project."""
        return self.hardware or devices()

    @property
    def kernel(self) -> str:
        """The kernel of the experts by its name in the tables, or the limits of memory and arithmetic."""
        arch = co.architecture(self.cluster.device)
        if self.experts != "auto":
            return self.experts
        packed = any(a.group == led.ROUTED and a.dtype == "U8" for a in self.model.arrays)
        return cv.DEFAULT_FAMILY.get(arch, cv.ROOFLINE) if packed else cv.ROOFLINE

    @property
    def domain(self) -> int:
        """Cards that reach each other without the network."""
        return domain(self.facts, self.cluster)

    @property
    def expert_cards(self) -> int:
        """Cards that exchange tokens after the MLP."""
        return self.attention_cards * self.token_groups

    @property
    def attention_cards(self) -> int:
        """Cards that share the heads of a request."""
        return self.engine.attention_tp(self.layout)

    @property
    def spans_nodes(self) -> bool:
        """Whether an exchange goes between nodes."""
        return self.expert_cards > self.domain

    @property
    def token_groups(self) -> int:
        """Groups of requests whose tokens meet in the same experts: those within the cards that share the experts."""
        sets, shares = self.engine.expert_groups(self.layout)
        return max(1, sets * shares // self.attention_cards) if s.experts in self.model.values else 1


def domain(facts: Hardware, cluster: Cluster) -> int:
    """Cards of a cluster that reach each other without the network."""
    reach = int(cv.fact(facts, cluster.device, "scale_up_domain", "cards") or 0)
    if reach > SERVER_CARDS:  # a rack in which the nodes are linked too
        return min(reach, cluster.cards)
    return min(cluster.cards_per_node, reach or cluster.cards_per_node)


def no_such_nodes(facts: Hardware, cluster: Cluster) -> str:
    """Why the cards do not come in nodes of this size, empty where they do: links join all cards, or whole nodes."""
    size, device = cluster.cards_per_node, cluster.device
    linked = int(cv.fact(facts, device, "scale_up_domain", "cards") or 0)
    if not linked or domain(facts, cluster) >= cluster.cards or linked % size == 0 or size % linked == 0:
        return ""
    sizes = ", ".join(str(n) for n in range(1, min(linked, SERVER_CARDS) + 1) if linked % n == 0)
    example = replace(cluster, nodes=-(-cluster.cards // SERVER_CARDS), cards_per_node=SERVER_CARDS)
    return f"links join {linked} {device}, and nodes of {size} do not divide that. Take nodes of {sizes}: {example}"


def unmodelled(model: Model) -> str:
    """Why the time of this model's passes is not modelled, empty where it is."""
    if s.layers_gdn in model.values:
        return "its gated delta net has no measured kernel"
    if s.layers_index in model.values:
        return "its sparse attention has no measured kernel"
    return ""


@dataclass(frozen=True)
class Constants:
    """The numbers of the model for one set-up, by the name of its equation's symbol, and how each is known."""

    values: Mapping[str, co.Known]

    def __getitem__(self, name: str) -> float:
        return self.values[name].value


PER_CARD = ("stream_share", "matrix_share", "state_share", "cache_share", "mla_share", "flash_share")
OF_CARD = (
    *PER_CARD,
    "head_block",
    "step_us",
    "draft_us",
    "hop_start_us",
    "hop_rate",
    "skew",
    "exchange_scale",
    "client_us",
)
OF_ENGINE = ("layer_us", "launch_us")
OF_KERNEL = ("kernel_decode", "kernel_prompt")
OF_NETWORK = ("exchange_start_us", "nic_rate")
NAMES = (*OF_CARD, *OF_ENGINE, *OF_KERNEL, "prompt_us", *OF_NETWORK)


def scopes(setup: SetUp, name: str) -> tuple[str, ...]:
    """Where a number of the model is looked up for a set-up, the narrowest scope first."""
    device, arch = setup.cluster.device, co.architecture(setup.cluster.device)
    if name in OF_ENGINE:
        return (co.engine_scope(setup.engine.name, device),)
    if name in OF_KERNEL:
        return f"{setup.kernel}@{device}", f"{setup.kernel}@{arch}", setup.kernel
    if name in OF_NETWORK:
        here, kind = f"network@{device}", network_scope(setup)
        both = [f"{here}@{setup.nics}nics", f"{kind}@{setup.nics}nics"] if name == "nic_rate" else []
        return *both, here, kind
    return device, arch


def constants(setup: SetUp, numbers: co.Table) -> Constants:
    """The numbers that hold for a set-up."""
    found = {name: co.pick(numbers, name, *scopes(setup, name)) for name in NAMES if name not in OF_ENGINE}
    for name in OF_ENGINE:
        found[name] = co.of_engine(numbers, name, setup.engine.name, setup.cluster.device)
    if found["nic_rate"].key[1] in ("", network_scope(setup)):
        found["nic_rate"] = co.of_nics(numbers, network_scope(setup), setup.nics)
    if not co.measured(numbers, setup.cluster.device):
        for name in OF_KERNEL:
            found[name] = co.widened(found[name], co.KERNEL_KIN_SPREAD)
    return Constants(found)


def network_scope(setup: SetUp) -> str:
    """The scope of the network between nodes."""
    return f"network@{co.architecture(setup.cluster.device)}"


def stage_values(setup: SetUp) -> list[dict[sp.Symbol, float]]:
    """Values of every symbol that the layout decides, stage by stage."""
    model, layout, engine = setup.model, setup.layout, setup.engine
    runs = stages(engine, model, layout, setup.pp_partition)
    split = split_values(engine, model, layout)
    rate, base = _rates(setup)
    widths = {s.cache_bytes: led.width_bytes(led.CACHE_DTYPES[setup.cache_dtype]),
              s.state_bytes: led.width_bytes(led.STATE_DTYPES[setup.state_dtype])}  # fmt: skip
    out: list[dict[sp.Symbol, float]] = []
    alike: dict[object, dict[sp.Symbol, float]] = {}  # most stages of a long pipeline hold the same
    for number, run in enumerate(runs):
        place = (number == 0, number == len(runs) - 1)
        kind = (*stage_counts(model, run).items(), place)
        if kind in alike:
            out.append(alike[kind])
            continue
        values = {**model.values, **split, **widths, **stage_counts(model, run)}
        streamed = [
            a for a in model.arrays
            if a.group not in NOT_STREAMED and not a.group.startswith("mtp") and on_stage(a, *place)
            and not any(values.get(x) == 0 for x in a.count.free_symbols)
        ]  # fmt: skip
        held = sp.Add(*(sharding.weight_bytes(a, way(a)) for a in streamed))
        used = sp.Add(*(sharding.weight_bytes(replace(a, bytes=a.params), way(a)) for a in streamed))
        alike[kind] = {
            **{k: float(v) for k, v in values.items()},
            s.stage_bytes: float(exact(held, values)), s.stage_work: 2 * float(exact(used, values)),
            s.card_bandwidth: base, s.card_rate: rate, s.cache_rate: _rate(setup, "bf16_dense"),
            s.residual_rows: float(_rows(model)),
        }  # fmt: skip
        out.append(alike[kind])
    return out


def _rows(model: Model) -> int:
    return led.residual_rows(model) if any(a.group == "attnres" for a in model.arrays) else 1


def _rate(setup: SetUp, quantity: str) -> float:
    device = setup.cluster.device
    rate = cv.fact(setup.facts, device, quantity, "MFLOPS")
    if not rate:
        raise NoSpeedError(f"data/hardware.csv has no '{quantity}' for {device}, so its speed cannot be told")
    return rate


def _rates(setup: SetUp) -> tuple[float, float]:
    """Arithmetic for the data type of the dense weights, in MFLOPS, and memory bandwidth, in MB/s."""
    device = setup.cluster.device
    bandwidth = cv.fact(setup.facts, device, "hbm_bandwidth", "MB/s")
    if not bandwidth:
        raise NoSpeedError(f"data/hardware.csv has no 'hbm_bandwidth' for {device}, so its speed cannot be told")
    dense = [a for a in setup.model.arrays if a.group not in NOT_STREAMED and not a.group.endswith(SCALE_GROUP_SUFFIX)]
    eight = sum(1 for a in dense if DTYPE_BITS.get(a.dtype) == 8) > len(dense) / 4
    return _rate(setup, "fp8_dense" if eight else "bf16_dense"), bandwidth
