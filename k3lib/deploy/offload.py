"""A deployment whose cards hold only the most used experts of every layer; the others lie in main memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import sympy as sp

from k3lib.account import offload as eq
from k3lib.account import symbols as s
from k3lib.account.tensors import Stored
from k3lib.deploy import constants as co
from k3lib.deploy.caches import Settings
from k3lib.deploy.pilot import resident_experts
from k3lib.deploy.plan import Plan, make_plan
from k3lib.deploy.setup import constants
from k3lib.deploy.speed import US_PER_MS, Options, passes_of, set_up
from k3lib.deploy.variants import with_experts
from k3lib.engines.layout import Cluster, Layout, parse_cluster, parse_layout
from k3lib.errors import InputError
from k3lib.evaluate import whole
from k3lib.facts.variants import parameter
from k3lib.models.model import Model
from k3lib.models.weights import weight_account
from k3lib.units import GIBI, convert

Way = Literal["copied", "computed"]
End = Literal["value", "low", "high"]
ENDS: tuple[End, ...] = ("value", "low", "high")
MS_PER_S = 1e3
MISSING = {"copied": eq.copied_us(), "computed": eq.computed_us()}
MISSED, MISSED_BYTES, HITS = eq.missed_experts(), eq.missed_bytes(), eq.hit_rate()
# Values by the symbol that the equations know them by, and their unit there.
SUPPOSED = {s.link_rate: ("link_rate", "MB/s"), s.links: ("links", "cards"), s.host_rate: ("host_rate", "MB/s"),
            s.copy_share: ("copy_share", "1"), s.host_share: ("host_share", "1"), s.host_work: ("host_work", "MFLOPS"),
            s.fetch_us: ("fetch_start", "us")}  # fmt: skip
OF_SERVER = (s.links, s.host_rate, s.host_work)


@dataclass(frozen=True)
class Span:
    """A value and the ends of its range."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Case:
    """A cluster whose servers have main memory, each stage on whole servers of its own.

    host_bytes: of one server, in B. context: tokens of a request.
    """

    model: Model
    cluster: Cluster
    layout: Layout
    engine: str
    host_bytes: float
    settings: Settings
    context: int

    def __post_init__(self) -> None:
        """Raises InputError for a memory or a context that cannot be."""
        if not (math.isfinite(self.host_bytes) and self.host_bytes > 0):
            raise InputError(f"host_bytes = {self.host_bytes}: must be finite and above 0")
        if self.context < 1:
            raise InputError(f"context = {self.context}: must be at least 1 token")
        if s.experts not in self.model.values:
            raise InputError(f"{self.model.name} has no routed experts to put into main memory")
        if self.cluster.nodes % self.layout.pp or self.layout.dp > 1:
            raise InputError(f"--layout {self.layout}: experts in main memory are modelled with every stage on whole "
                             f"servers and without dp; {self.cluster} has {self.cluster.nodes} servers")  # fmt: skip

    @property
    def servers(self) -> int:
        """Servers of one stage, whose memories and links work at once."""
        return self.cluster.nodes // self.layout.pp


def case_of(model: Model, cluster: str, layout: str, host_gib: float, context: int, settings: Settings,
            engine: str = "vllm") -> Case:  # fmt: skip
    """A case in short forms. host_gib: main memory of one server; modules of 1 TB hold 1,024 GiB.

    Raises InputError for a cluster, a layout or a memory that cannot be.
    """
    return Case(model, parse_cluster(cluster), parse_layout(layout), engine, host_gib * GIBI, settings, context)


@dataclass(frozen=True)
class Offloaded:
    """What so many clients see. resident: experts of a layer on the cards. host_needed, host_usable: B of all servers.

    hit_rate: of one token. missed_experts, missed_bytes: of one pass, in a layer and in all. card_ms: the pass if all
    experts lay on the cards. tpot_ms, output_tps: low to high over what is supposed of the host. prompt_ms: a pass that
    reads `prompt_tokens` of one prompt, through all stages.
    """

    clients: int
    way: Way
    resident: int
    experts: int
    host_needed: float
    host_usable: Span
    fits_host: bool
    hit_rate: Span
    missed_experts: float
    missed_bytes: float
    card_ms: float
    tpot_ms: Span
    output_tps: Span
    prompt_tokens: int
    prompt_ms: Span


@lru_cache(maxsize=16)
def _compiled(expression: sp.Expr) -> tuple[tuple[sp.Symbol, ...], Any]:
    """Arguments and function; the error function is SciPy's."""
    used = tuple(sorted(expression.free_symbols, key=str))
    return used, sp.lambdify(used, expression, modules=["scipy", "numpy"], cse=True)


def value_of(expression: sp.Expr, values: Mapping[sp.Symbol, float]) -> float:
    """One equation at one point. Raises InputError for a missing value, or one that its symbol cannot have."""
    used, function = _compiled(expression)
    for symbol in used:
        if symbol not in values:
            raise InputError(f"no value for: {symbol}")
        given = values[symbol]
        if not math.isfinite(given) or given < 0 or (given == 0 and symbol.is_positive):
            least = "above" if symbol.is_positive else "at least"
            raise InputError(f"{symbol} = {given}: must be finite and {least} 0")
    if s.resident_share in used and values[s.resident_share] > 1:
        raise InputError(f"resident_share = {values[s.resident_share]}: must be from 0 to 1")
    return float(function(*(values[x] for x in used)))


def hit_rate(resident_share: float, skew: float) -> float:
    """Share of a token's experts that it finds on the cards. Raises InputError for a share outside 0 to 1."""
    return value_of(HITS, {s.resident_share: resident_share, s.skew: skew})


def supposed(end: End = "value", servers: int = 1) -> dict[sp.Symbol, float]:
    """What is supposed of so many servers' memory, links and processors; low and high are the slow and the fast end."""
    found = {}
    for symbol, (name, unit) in SUPPOSED.items():
        row = parameter(name)
        slow_is_high = name == "fetch_start"
        at = {"value": 0, "low": 2 if slow_is_high else 1, "high": 1 if slow_is_high else 2}[end]
        found[symbol] = float(convert(row.span[at], row.unit, unit)) * (servers if symbol in OF_SERVER else 1)
    return found


def with_resident(model: Model, resident: int) -> Model:
    """The model with so many experts a layer on its cards; its routers still know them all."""
    part = with_experts(model, resident)
    full = {s.experts: sp.Integer(model.values[s.experts])}

    def kept(array: Stored) -> Stored:
        return replace(array, shape=tuple(sp.sympify(x).subs(full) for x in array.shape), bytes=array.bytes.subs(full),
                       params=array.params.subs(full))  # fmt: skip

    arrays = tuple(kept(a) if a.group == "router" else a for a in model.arrays)
    return replace(part, arrays=arrays)


# Plans by case and experts on the cards; each entry holds the case's model, so that the id stays its own.
_PARTS: dict[tuple[object, ...], tuple[Model, Plan]] = {}


def _plan(case: Case, experts: int) -> Plan:
    """The plan with so many experts of every layer on the cards."""
    key = (id(case.model), case.cluster, case.layout, case.engine, case.settings, case.context, experts)
    if key not in _PARTS:
        settings = replace(case.settings, max_model_len=case.context)
        part = with_resident(case.model, experts)
        _PARTS[key] = case.model, make_plan(part, case.cluster, case.layout, case.engine, settings)
    return _PARTS[key][1]


def resident(case: Case, clients: int) -> int:
    """Experts of every layer that fit on the cards beside the caches of all clients, 0 where too few do."""
    values = case.model.values
    if clients < 1:
        raise InputError(f"clients = {clients}: must be at least 1")
    return resident_experts(lambda experts: _plan(case, experts), values[s.experts], values[s.experts_per_token],
                            clients, case.context)  # fmt: skip


def expert_values(model: Model) -> dict[sp.Symbol, float]:
    """Sizes of the model's experts, as the equations of this module take them."""
    v = model.values
    width = v.get(s.expert_input, v[s.hidden])
    return {s.experts: v[s.experts], s.experts_per_token: v[s.experts_per_token], s.layers_moe: v[s.layers_moe],
            s.expert_bytes: weight_account(model).expert_bytes, s.expert_input: width,
            s.expert_width: v[s.expert_width], s.drafted_tokens: 0.0, s.prompt_tokens: 0.0,
            s.token_groups: 1}  # fmt: skip


def offloaded(case: Case, clients: int, way: Way, numbers: co.Table, options: Options | None = None) -> Offloaded:
    """So many clients on a case, by the given numbers of the speed model.

    Generating passes read no prompts. Stages over servers work at once on passes of their share of the clients. Raises
    InputError where not even the experts of one token fit on the cards, or for a way that is not known.
    """
    if way not in MISSING:
        raise InputError(f"way = {way}: experts are 'copied' to the cards or 'computed' where they lie")
    on_cards = resident(case, clients)
    if not on_cards:
        raise InputError(f"{case.model.name} on {case.cluster} as {case.layout}: beside the caches of {clients} "
                         "requests the cards do not hold the experts of one token")  # fmt: skip
    plan = _plan(case, case.model.values[s.experts])
    setup = set_up(plan, options or Options())
    passes, known = passes_of(setup), constants(setup, numbers)
    chunk = min(case.settings.chunk_tokens or plan.engine.whole("chunk_tokens"), case.context)
    total = eq.offloaded_us(MISSING[way])

    def points(decode: float, prompt: float) -> dict[End, dict[sp.Symbol, float]]:
        """Values of all symbols at the middle and at both ends, for a pass of so many tokens."""
        one = passes.times(known, np.array([decode]), np.array([prompt]), case.context, case.context / 2)
        hops = (case.layout.pp - 1) * passes.hop_us(known, decode + prompt)
        base = {**expert_values(case.model), s.decode_tokens: decode, s.prompt_tokens: prompt,
                s.card_us: float(one.sum()) + hops,
                s.resident_share: on_cards / case.model.values[s.experts]}  # fmt: skip
        skew = known.values["skew"]
        return {end: {**base, **supposed(end, case.servers), s.skew: skew.value * math.exp(side * skew.spread)}
                for end, side in zip(ENDS, (0, -1, 1), strict=True)}  # fmt: skip

    generating, reading = points(max(1.0, clients / case.layout.pp), 0.0), points(0.0, float(chunk))
    middle = generating["value"]
    tpot = _span(total, generating, US_PER_MS)
    needed, usable = _host(case, on_cards)
    return Offloaded(
        clients, way, on_cards, case.model.values[s.experts], needed, usable, needed <= usable.value,
        _span(HITS, generating, 1.0), value_of(MISSED, middle), value_of(MISSED_BYTES, middle),
        middle[s.card_us] / US_PER_MS, tpot,
        Span(*(clients * MS_PER_S / x for x in (tpot.value, tpot.high, tpot.low))),
        chunk, _span(total, reading, US_PER_MS),
    )  # fmt: skip


def _span(expression: sp.Expr, points: Mapping[End, Mapping[sp.Symbol, float]], unit: float) -> Span:
    """An equation at the middle and over the ends, in so many of its units."""
    found = {end: value_of(expression, at) / unit for end, at in points.items()}
    return Span(found["value"], min(found.values()), max(found.values()))


def _host(case: Case, on_cards: int) -> tuple[float, Span]:
    """Bytes of experts in main memory of all servers, and what weights can take of it."""
    v = case.model.values
    needed = whole(s.layers_moe * (s.experts - on_cards), v) * weight_account(case.model).expert_bytes
    usable = (case.cluster.nodes * case.host_bytes * share for share in parameter("usable_host").span)
    return float(needed), Span(*usable)


@dataclass(frozen=True)
class Verdict:
    """Most clients whose time per token keeps to a limit, at the middle and at the ends of the range; 0 for none.

    Only points count whose missing experts main memory holds. offline_only: whether fewer clients than a service needs
    keep to it at the middle of the range. fits_host: whether main memory holds what the cards do not, for any point.
    """

    limit_ms: float
    clients: int
    clients_low: int
    clients_high: int
    offline_only: bool
    fits_host: bool


def verdict(points: Sequence[Offloaded], limit_ms: float, least_clients: int = 1) -> Verdict:
    """Which of the points keep to a limit of time per token. Raises InputError without points or a limit.

    least_clients: at once, below which a service is none.
    """
    if not points:
        raise InputError("no points to judge")
    if not (math.isfinite(limit_ms) and limit_ms > 0):
        raise InputError(f"limit_ms = {limit_ms}: must be finite and above 0")

    held = [p for p in points if p.fits_host]

    def most(end: str) -> int:
        return max((p.clients for p in held if getattr(p.tpot_ms, end) <= limit_ms), default=0)

    middle = most("value")
    return Verdict(limit_ms, middle, most("high"), most("low"), middle < least_clients, bool(held))
