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
from k3lib.deploy.setup import constants
from k3lib.deploy.speed import Options, answer, passes_of, question, set_up
from k3lib.deploy.steady import Loads, Steady, steady
from k3lib.engines.layout import Cluster
from k3lib.errors import InputError
from k3lib.evaluate import Array
from k3lib.models.model import Model

# A short request: whether one fits decides whether the layout fits at all.
SHORTEST_TOKENS = 2
# Values nearer than this are not told apart: the median error on deployments that a fit did not see.
TELLS_APART = 0.03
# Share of the best output in the steady state from which a layout is run pass by pass for the front.
NEAR_BEST = 0.97
RANKS = {"output": "output_tps", "tpot": "tpot_ms", "ttft": "ttft_mean_ms"}


@dataclass(frozen=True)
class Candidate:
    """A layout with its plan, and the times of its passes where it fits."""

    plan: Plan
    passes: PassTimes | None

    @property
    def copies(self) -> int:
        """Groups of cards that serve requests of their own."""
        return self.plan.cluster.cards // (self.plan.layout.pp * self.plan.engine.attention_tp(self.plan.layout))


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
    """Every layout that the engine accepts and that divides the cards. Raises InputError where there is none.

    settings: of the engine; lengths are set by each load.
    """
    settings = replace(settings or Settings(), max_model_len=SHORTEST_TOKENS)
    options = options or Options()
    found: list[Candidate] = []
    for layout in legal_layouts(model, cluster.cards, engine):
        plan = make_plan(model, cluster, layout, engine, settings, options.hardware)
        for one in (plan, *_sharing_tokens(plan)):
            found.append(Candidate(one, passes_of(set_up(one, options)) if one.fits else None))
    if not found:
        raise InputError(f"{engine} accepts no layout of {model.name} on {cluster}")
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

    options: what the plan leaves open.
    """

    candidate: Candidate
    served: Served | None
    reason: str = ""
    options: Options = field(default_factory=Options)

    @property
    def layout(self) -> str:
        """The layout in short."""
        return str(self.candidate.plan.layout)


def search(space: Space, load: Load, numbers: co.Table, limits: Limits | None = None, rank: str = "output",
           most: int | None = None) -> list[Found]:  # fmt: skip
    """All layouts under a load, best first: those within the limits, those beyond by how far, those that do not fit.

    rank: output, tpot or ttft. most: run pass by pass only so many that the steady state ranks first; the others are
    left out.
    """
    limits = limits or Limits()
    chosen = space.fitting if most is None or not space.fitting else _promising(space, load, numbers, most)
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
    alike = [one for one in ranked if place(one)[0] == beyond and abs(place(one)[1] / best - 1) <= TELLS_APART]
    first = min(alike, key=lambda one: one.layout.count(","))
    return [first, *(one for one in ranked if one is not first)]


def _run(one: Candidate, load: Load, numbers: co.Table, options: Options) -> Found:
    settings = replace(one.plan.settings, max_model_len=load.isl + load.osl)
    try:
        plan = resized(one.plan, one.plan.layout, settings)
        return Found(replace(one, plan=plan), answer(question(plan, load, options), numbers), options=options)
    except InputError as error:
        return Found(one, None, str(error))


def _promising(space: Space, load: Load, numbers: co.Table, most: int) -> tuple[Candidate, ...]:
    """The layouts of most output in the steady state, and of the shortest times per token."""
    one = (np.array([float(x)]) for x in (load.isl, load.osl, load.concurrency, load.cached))
    found = screen(space, *one, numbers=numbers)
    by_output = np.argsort(-found.output_tps[:, 0], kind="stable")
    by_tpot = np.argsort(found.tpot_ms[:, 0], kind="stable")
    places = dict.fromkeys([*by_output[:most].tolist(), *by_tpot[: max(1, most // 4)].tolist()])
    return tuple(space.fitting[place] for place in places)


def screen(space: Space, isl: Array, osl: Array, clients: Array, cached: Array, *, numbers: co.Table) -> Steady:
    """The steady state of every fitting layout under many loads: arrays of shape (layouts, loads)."""
    lengths = (isl + osl).astype(np.int64)
    rows = []
    for one in space.fitting:
        running = np.minimum(held_by_length(one.plan, lengths), one.plan.settings.max_num_seqs)
        loads = Loads(isl, osl, clients, cached, running.astype(np.float64))
        chunk = one.plan.settings.chunk_tokens or one.plan.engine.whole("chunk_tokens")
        passes = one.passes or passes_of(set_up(one.plan, space.options))
        rows.append(steady(passes, constants(passes.setup, numbers), loads, one.copies, chunk))
    return Steady(*(np.stack([getattr(row, name) for row in rows]) for name in ("output_tps", "tpot_ms", "ttft_ms")))


def pareto(space: Space, loads: Sequence[Load], numbers: co.Table) -> list[tuple[Found, Load]]:
    """The layouts and loads that no other beats in both a user's speed and the output of all, fastest user first.

    The steady state tells which are near the front; those are run pass by pass.
    """
    values = [
        np.array([float(getattr(one, name)) for one in loads]) for name in ("isl", "osl", "concurrency", "cached")
    ]
    steady = screen(space, *values, numbers=numbers)
    fits = np.argwhere(steady.output_tps > 0)
    best = {int(at): float(steady.output_tps[:, at].max(initial=0.0)) for at in range(len(loads))}
    near = [(int(row), int(at)) for row, at in fits if steady.output_tps[row, at] >= NEAR_BEST * best[int(at)]]
    fast = front([1 / steady.tpot_ms[row, at] for row, at in fits], [steady.output_tps[row, at] for row, at in fits])
    chosen = dict.fromkeys([*near, *((int(fits[i][0]), int(fits[i][1])) for i in fast)])
    ran = [(_run(space.fitting[row], loads[at], numbers, space.options), loads[at]) for row, at in chosen]
    served = [(one, at, one.served) for one, at in ran if one.served]
    kept = front([1 / s.tpot_ms for _, _, s in served], [s.output_tps for _, _, s in served])
    return [served[i][:2] for i in kept]


def front(user_speed: Sequence[float], output: Sequence[float]) -> npt.NDArray[np.int64]:
    """Places of the points that no other beats in both, by falling user speed: the Pareto front."""
    order = np.lexsort((-np.asarray(output), -np.asarray(user_speed)))
    best, kept = -np.inf, []
    for place in order:
        if output[place] > best:
            kept.append(int(place))
            best = output[place]
    return np.array(kept, dtype=np.int64)
