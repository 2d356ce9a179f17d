"""Every legal layout of a cluster under a load: which fit, which serve it best, and which are worth a closer look."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from k3lib.deploy import constants as co
from k3lib.deploy.caches import Settings
from k3lib.deploy.inverse import SIZES, held_by_length, legal_layouts
from k3lib.deploy.load import Load, Served
from k3lib.deploy.passes import PassTimes
from k3lib.deploy.plan import Plan, make_plan, resized
from k3lib.deploy.setup import constants, no_such_nodes
from k3lib.deploy.speed import Options, answer, passes_of, question, set_up
from k3lib.deploy.steady import Loads, Steady, steady
from k3lib.engines.layout import Cluster
from k3lib.errors import InputError, NoSpeedError
from k3lib.evaluate import Array
from k3lib.facts.catalog import devices
from k3lib.models.model import Model

# A short request: whether one fits decides whether the layout fits at all.
SHORTEST_TOKENS = 2
# Values nearer than this are not told apart: the median error on deployments that a fit did not see.
TELLS_APART = 0.03
# Layouts that are run pass by pass under each load of a front. With so many it was that of all layouts to 1 % at
# prompts of 8,000 tokens, to 7 % at 32,000, on three clusters.
FOR_FRONT = 12
RANKS = {"output": "output_tps", "tpot": "tpot_ms", "ttft": "ttft_mean_ms"}


@dataclass(frozen=True)
class Candidate:
    """A layout with its plan, and the times of its passes where it fits."""

    plan: Plan
    passes: PassTimes | None

    @property
    def copies(self) -> int:
        """Groups of cards that serve requests of their own."""
        return self.plan.copies


@dataclass(frozen=True)
class Space:
    """All legal layouts of a cluster under one engine, and what the plans leave open."""

    candidates: tuple[Candidate, ...]
    options: Options

    @property
    def fitting(self) -> tuple[Candidate, ...]:
        """Those that fit."""
        return tuple(one for one in self.candidates if one.passes is not None)


def space(model: Model, cluster: Cluster, engine: str, settings: Settings | None = None,
          options: Options | None = None) -> Space:  # fmt: skip
    """Every layout that the engine accepts and that divides the cards.

    Raises InputError where the cards do not come in such nodes, NoSpeedError for a model whose passes have no time.

    settings: of the engine; lengths are set by each load.
    """
    settings = replace(settings or Settings(), max_model_len=SHORTEST_TOKENS)
    options = options or Options()
    if reason := no_such_nodes(options.hardware or devices(), cluster):
        raise InputError(f"--cluster {cluster}: {reason}")
    found: list[Candidate] = []
    for layout in legal_layouts(model, cluster.cards, engine):
        plan = make_plan(model, cluster, layout, engine, settings, options.hardware)
        for one in (plan, *_sharing_tokens(plan)):
            found.append(Candidate(one, passes_of(set_up(one, options)) if one.fits else None))
    return Space(tuple(found), options)


def _sharing_tokens(plan: Plan) -> Iterator[Plan]:
    """The plan with the tokens of a cache shared by more and more of its cards, where the engine can do that."""
    if plan.fits and plan.engine.paged:
        for dcp in SIZES[1:]:
            layout = replace(plan.layout, dcp=dcp)
            if not plan.engine.check(plan.model, layout):
                yield resized(plan, layout, plan.settings)


@dataclass(frozen=True)
class Limits:
    """What clients must get at most: time to first token, time per output token. None for no limit."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None

    def over(self, served: Served) -> float:
        """The worst share of a limit that is used: at most 1 where all are kept."""
        shares = [
            value / limit
            for value, limit in ((served.ttft_mean_ms, self.ttft_ms), (served.tpot_ms, self.tpot_ms))
            if limit is not None
        ]
        return max(shares, default=0.0)


@dataclass(frozen=True)
class Found:
    """A layout under a load. reason: why it does not serve it, empty where it does; served is None where it does not.

    candidate: its plan is that for requests of the load's length. options: what the plan leaves open.
    """

    candidate: Candidate
    served: Served | None
    reason: str = ""
    options: Options = field(default_factory=Options)

    @property
    def layout(self) -> str:
        """The layout in short."""
        return str(self.candidate.plan.layout)

    @property
    def fits(self) -> bool:
        """Whether one request of the load fits beside the weights, and the model takes one so long."""
        plan = self.candidate.plan
        runs = plan.caches is not None and plan.caches.max_running_requests >= 1
        return plan.fits and runs and plan.settings.max_model_len <= (plan.model.longest or math.inf)


def search(space: Space, load: Load, numbers: co.Table, limits: Limits | None = None, rank: str = "output",
           most: int | None = None) -> list[Found]:  # fmt: skip
    """All layouts under a load, best first: those within the limits, those beyond by how far, those that do not fit.

    rank: output, tpot or ttft. most: run pass by pass only so many that the steady state ranks first, and a few of
    those that it ranks first by another; the rest is left out. Raises NoSpeedError for answers of one token.
    """
    limits = limits or Limits()
    chosen = space.fitting if most is None else _promising(space, load, numbers, rank, most)
    out = [Found(one, None, one.plan.reason) for one in space.candidates if one.passes is None]
    ran = [_run(one, load, numbers, space.options) for one in chosen]
    column = RANKS[rank]
    sign = -1 if rank == "output" else 1

    def place(one: Found) -> tuple[bool, float]:
        """First those within the limits by what is ranked, then the others by how far they are beyond."""
        over = limits.over(one.served) if one.served else math.inf
        return (True, over) if over > 1 else (False, sign * getattr(one.served, column))

    good = sorted((one for one in ran if one.served), key=place)
    return [*_simplest_first(good, place), *(one for one in ran if not one.served), *out]


def _simplest_first(ranked: list[Found], place: Callable[[Found], tuple[bool, float]]) -> list[Found]:
    """The same, but first the simplest layout of those that cannot be told from the best."""
    if not ranked:
        return ranked
    beyond, best = place(ranked[0])
    alike = [one for one in ranked[1:] if place(one)[0] == beyond and abs(place(one)[1] / best - 1) <= TELLS_APART]
    first = min([ranked[0], *alike], key=lambda one: one.layout.count(","))
    return [first, *(one for one in ranked if one is not first)]


def _run(one: Candidate, load: Load, numbers: co.Table, options: Options) -> Found:
    plan = sized(one.plan, load)
    one, longest = replace(one, plan=plan), plan.model.longest
    if longest and load.isl + load.osl > longest:
        return Found(one, None, f"requests of {load.isl:,} + {load.osl:,} tokens: {plan.model.name} takes at most "
                                f"{longest:,}")  # fmt: skip
    if not plan.fits:
        return Found(one, None, plan.reason)
    try:
        return Found(one, answer(question(plan, load, options), numbers), options=options)
    except NoSpeedError:  # of no layout
        raise
    except InputError as error:
        return Found(one, None, str(error))


def sized(plan: Plan, load: Load) -> Plan:
    """The plan for requests of the load's length, with a prefix cache where part of the prompts comes from there."""
    settings = replace(plan.settings, max_model_len=load.isl + load.osl)
    return resized(plan, plan.layout, _warm(settings) if load.cached else settings)


def _warm(settings: Settings) -> Settings:
    return replace(settings, prefix_caching=True)


def _promising(space: Space, load: Load, numbers: co.Table, rank: str, most: int) -> tuple[Candidate, ...]:
    one = (np.array([float(x)]) for x in (load.isl, load.osl, load.concurrency, load.cached))
    return tuple(space.fitting[place] for place in _first(screen(space, *one, numbers=numbers), 0, rank, most))


def _first(found: Steady, at: int, rank: str, most: int) -> list[int]:
    """Places of the layouts that rank first under a load in the steady state, and of a few by the other rankings."""
    columns = {"output": -found.output_tps[:, at], "tpot": found.tpot_ms[:, at], "ttft": found.ttft_ms[:, at]}
    places: dict[int, None] = {}
    for name, column in columns.items():
        wanted = most if name == rank else max(1, most // 4)
        places |= dict.fromkeys(np.argsort(column, kind="stable")[:wanted].tolist())
    return list(places)


def screen(space: Space, isl: Array, osl: Array, clients: Array, cached: Array, *, numbers: co.Table) -> Steady:
    """The steady state of every fitting layout under many loads: arrays of shape (layouts, loads)."""
    lengths = (isl + osl).astype(np.int64)
    rows = []
    for one in space.fitting:
        cold, warm = (held_by_length(plan, lengths)
                      for plan in (one.plan, replace(one.plan, settings=_warm(one.plan.settings))))  # fmt: skip
        running = np.minimum(np.where(cached > 0, warm, cold), one.plan.settings.max_num_seqs)
        loads = Loads(isl, osl, clients, cached, running.astype(np.float64))
        chunk = one.plan.settings.chunk_tokens or one.plan.engine.whole("chunk_tokens")
        passes = one.passes or passes_of(set_up(one.plan, space.options))
        rows.append(steady(passes, constants(passes.setup, numbers), loads, one.copies, chunk))
    shape = (len(rows), len(isl))
    return Steady(*(np.array([getattr(row, name) for row in rows]).reshape(shape)
                    for name in ("output_tps", "tpot_ms", "ttft_ms")))  # fmt: skip


def pareto(space: Space, loads: Sequence[Load], numbers: co.Table) -> list[tuple[Found, Load]]:
    """The layouts and loads that no other beats in both a user's speed and the output of all, fastest user first.

    The steady state tells which are near the front; those are run pass by pass.
    """
    values = [
        np.array([float(getattr(one, name)) for one in loads]) for name in ("isl", "osl", "concurrency", "cached")
    ]
    steady = screen(space, *values, numbers=numbers)
    size = len(loads)
    ahead = front((1 / steady.tpot_ms).ravel(), steady.output_tps.ravel()).tolist()
    near = [row * size + at for at in range(size) for row in _first(steady, at, "output", FOR_FRONT)]
    chosen = dict.fromkeys([*ahead, *near])
    ran = [(_run(space.fitting[i // size], loads[i % size], numbers, space.options), loads[i % size]) for i in chosen]
    served = [(one, at, one.served) for one, at in ran if one.served]
    kept = front([1 / s.tpot_ms for _, _, s in served], [s.output_tps for _, _, s in served])
    return [served[i][:2] for i in kept]


def front(user_speed: npt.ArrayLike, output: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Places of the points that no other beats in both, by falling user speed: the Pareto front. Of equals the first.

    user_speed, output: shape (n,).
    """
    user_speed, output = np.asarray(user_speed, dtype=np.float64), np.asarray(output, dtype=np.float64)
    order = np.lexsort((-output, -user_speed))
    best, kept = -np.inf, []
    for place in order:
        if output[place] > best:
            kept.append(int(place))
            best = output[place]
    return np.array(kept, dtype=np.int64)
