"""What clients of a plan see: its passes, its engine's rules and its memory put together."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import numpy as np

from k3lib.account import symbols as s
from k3lib.deploy import constants as co
from k3lib.deploy import curves as cv
from k3lib.deploy import ledger as led
from k3lib.deploy.apart import prompts_apart
from k3lib.deploy.caches import caches
from k3lib.deploy.load import Load, Rules, Served
from k3lib.deploy.passes import TERMS, PassTimes
from k3lib.deploy.plan import Plan
from k3lib.deploy.serve import grid, serve
from k3lib.deploy.setup import SetUp, constants
from k3lib.engines.layout import Hardware
from k3lib.errors import InputError, NoSpeedError
from k3lib.evaluate import exact
from k3lib.units import MEGA

US_PER_MS = 1e3
MOST_NICS = 64


@dataclass(frozen=True)
class Options:
    """What a plan leaves open. experts, all_reduce, nics: as in `k3lib.deploy.passes.SetUp`."""

    experts: str = "auto"
    all_reduce: str = "auto"
    nics: int | None = None
    hardware: Hardware | None = None


@dataclass(frozen=True)
class Question:
    """A load on a plan. copies: groups of cards that serve requests of their own, each a share of the clients.

    load: that of the copies with most clients; clients: of all. running: requests that one copy can hold at once.
    prompts: another deployment that reads the prompts, where this one only generates. bunched: as in `Rules`.
    """

    passes: PassTimes
    load: Load
    copies: int
    running: int
    chunk: int
    clients: int
    prompts: Question | None = None
    bunched: bool = False

    @property
    def setup(self) -> SetUp:
        """What the time of a pass depends on."""
        return self.passes.setup


def set_up(plan: Plan, options: Options) -> SetUp:
    """A plan as the time of its passes sees it. Raises InputError for an option that cannot be."""
    nics = options.nics if options.nics is not None else min(plan.cluster.cards_per_node, MOST_NICS)
    if not 1 <= nics <= MOST_NICS:
        raise InputError(f"--nics {nics}: must be from 1 to {MOST_NICS} network cards a node")
    arch = co.architecture(plan.cluster.device)
    runs_on = cv.RUNS_ON.get(options.experts)
    if runs_on is not None and arch not in runs_on:
        raise InputError(f"--moe-backend {options.experts}: does not run on {arch} cards such as {plan.cluster.device}")
    return SetUp(
        model=plan.model, cluster=plan.cluster, layout=plan.layout, engine=plan.engine, experts=options.experts,
        all_reduce=options.all_reduce, nics=nics, cache_dtype=plan.settings.cache_dtype,
        state_dtype=plan.settings.state_dtype, graphs=plan.settings.graphs, drafts=plan.settings.draft_tokens,
        pp_partition=plan.settings.pp_partition, hardware=options.hardware,
    )  # fmt: skip


_PASSES: dict[tuple[object, ...], PassTimes] = {}


def passes_of(setup: SetUp) -> PassTimes:
    """The passes of a set-up, kept for equal set-ups. Each holds its model, so that the id stays its own."""
    key = (id(setup.model), *(str(getattr(setup, f.name)) for f in fields(setup) if f.name not in ("model", "engine")),
           setup.engine.name)  # fmt: skip
    if key not in _PASSES:
        _PASSES[key] = PassTimes(setup)
    return _PASSES[key]


def held_at_once(plan: Plan, load: Load) -> int:
    """Requests of the load that one copy's caches hold at once. Raises InputError where not one fits."""
    settings = replace(plan.settings, max_model_len=load.isl + load.osl)
    runs, free = [stage.layers for stage in plan.stages], [stage.free[0] for stage in plan.stages]
    held = caches(plan.model, plan.layout, plan.engine, settings, runs, free)
    most = min(held.max_running_requests, math.floor(held.max_concurrency)) if held else 0
    if most < 1:
        raise InputError(f"{plan.model.name} on {plan.cluster} as {plan.layout}: no request of {load.isl:,} + "
                         f"{load.osl:,} tokens fits beside the weights")  # fmt: skip
    return most


def question(plan: Plan, load: Load, options: Options | None = None) -> Question:
    """The load on the plan. Raises InputError for a plan that does not fit, or whose model has no modelled speed."""
    if not plan.fits:
        raise InputError(f"no speed without a fit: {plan.reason}")
    if load.osl < 2:
        raise NoSpeedError("an answer of one token has no time per output token; ask for --osl 2 or more")
    setup = set_up(plan, options or Options())
    copies = plan.copies
    longest = plan.model.longest
    if longest and load.isl + load.osl > longest:
        raise InputError(f"requests of {load.isl:,} + {load.osl:,} tokens: {plan.model.name} takes at most {longest:,}")
    share = replace(load, concurrency=math.ceil(load.concurrency / copies),
                    requests=None if load.requests is None else math.ceil(load.requests / copies))  # fmt: skip
    chunk = plan.settings.chunk_tokens or plan.engine.whole("chunk_tokens")
    return Question(passes_of(setup), share, copies, held_at_once(plan, load), chunk, load.concurrency)


def rules_of(asked: Question, numbers: co.Table) -> Rules:
    """How the engine of a question runs its passes."""
    known = constants(asked.setup, numbers)
    apart = None
    if asked.prompts is not None:
        reader = asked.prompts
        one = prompts_apart(reader.passes, constants(reader.setup, numbers), asked.load, reader.chunk)
        apart = replace(one, spacing_us=one.spacing_us * asked.copies / reader.copies)
    return Rules(slots=asked.setup.layout.pp, chunk=asked.chunk, running=asked.running, mixes=asked.setup.engine.mixes,
                 client_us=known["client_us"],
                 hop_us=asked.passes.hop_us(known, min(asked.load.concurrency, asked.running)),
                 apart=apart, bunched=asked.bunched)  # fmt: skip


def answer(asked: Question, numbers: co.Table) -> Served:
    """What clients see, by the given numbers. Copies that have a client fewer are asked for themselves."""
    fewer, more = divmod(asked.clients, asked.copies)
    if not more or not fewer:
        one = _answer_of_one(asked, numbers)
        return replace(one, output_tps=one.output_tps * min(asked.copies, asked.clients))
    parts = [(more, _answer_of_one(asked, numbers)), (asked.copies - more, _answer_of_one(
        replace(asked, load=replace(asked.load, concurrency=fewer)), numbers))]  # fmt: skip
    shares = [more * (fewer + 1) / asked.clients, (asked.copies - more) * fewer / asked.clients]
    met = {f.name: sum(share * getattr(one, f.name) for share, (_, one) in zip(shares, parts, strict=True))
           for f in fields(Served)}  # fmt: skip
    return replace(Served(**met), output_tps=sum(copies * one.output_tps for copies, one in parts))


def _answer_of_one(asked: Question, numbers: co.Table) -> Served:
    known = constants(asked.setup, numbers)
    return serve(grid(asked.passes, known, asked.load, asked.chunk), asked.load, rules_of(asked, numbers))


def step_terms(asked: Question, numbers: co.Table) -> dict[str, float]:
    """Where the time of a generating step goes, through all stages, by term, in ms: requests spread over the slots."""
    known = constants(asked.setup, numbers)
    running = min(asked.load.concurrency, asked.running)
    slots = asked.setup.layout.pp
    each = max(1.0, running / slots)
    context = asked.load.isl + asked.load.osl / 2
    terms = asked.passes.terms(known, np.array([each]), np.array([0.0]), context, asked.load.seen)
    return {name: float(terms[name].sum()) / US_PER_MS for name in TERMS if terms[name].sum() > 0}


def roofline_tps(asked: Question) -> float:
    """Output of all clients in tok/s if every weight that a step uses came at the peak bandwidth.

    What a rule of thumb says: no start-up, no exchange, no kernel that falls short. Stages work at once.
    """
    running = min(asked.load.concurrency, asked.running)
    each = max(1.0, running / asked.setup.layout.pp)
    first = asked.passes.stages[0]
    values = asked.setup.model.values
    bytes_of_all = 0.0
    for stage in asked.passes.stages:
        held = stage[s.stage_bytes]
        if asked.passes.moe:
            share = values[s.experts_per_token] / values[s.experts]
            used = values[s.experts] * (1 - (1 - share) ** each)
            held += stage[s.layers_moe] * used * expert_bytes(asked.setup) / asked.passes.setup.expert_cards
        bytes_of_all += held
    seconds = bytes_of_all / (first[s.card_bandwidth] * MEGA)
    slots = min(asked.setup.layout.pp, running)
    return each * slots / seconds * min(asked.copies, asked.clients) if seconds else 0.0


def expert_bytes(setup: SetUp) -> float:
    """Stored bytes of one routed expert of one layer, its scales included."""
    values = setup.model.values
    stored = [a.bytes for a in setup.model.arrays if a.group in (led.ROUTED, led.SCALES)]
    total = float(exact(sum(stored[1:], stored[0]), values))
    return total / (values[s.experts] * values[s.layers_moe])
