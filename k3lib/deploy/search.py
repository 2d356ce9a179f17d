"""Every legal layout of a cluster under a load: which fit, which serve it best, and which are worth a closer look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
    """A layout under a load. reason: why it does not serve it, empty where it does. served: None where it does not."""

    candidate: Candidate
    served: Served | None
    reason: str = ""

    @property
    def layout(self) -> str:
        """The layout in short."""
        return str(self.candidate.plan.layout)


def search(space: Space, load: Load, numbers: co.Table, limits: Limits | None = None, rank: str = "output",
           most: int | None = None) -> list[Found]:  # fmt: skip
    """All layouts under a load, best first: those within the limits, those beyond, those that do not fit.

    rank: output, tpot or ttft. most: run pass by pass only so many that the steady state ranks first; the others are
    left out.
    """
    limits = limits or Limits()
    chosen = space.fitting if most is None else _promising(space, load, numbers, most)
    out = [Found(one, None, one.plan.reason) for one in space.candidates if one.passes is None]
    ran = [_run(one, load, numbers, space.options) for one in chosen]
    column = RANKS[rank]
    sign = -1 if rank == "output" else 1
    good = sorted(
        (one for one in ran if one.served),
        key=lambda one: (limits.over(one.served) > 1, sign * getattr(one.served, column)),  # type: ignore[arg-type]
    )
    return [*_simplest_first(good, limits, column), *(one for one in ran if not one.served), *out]


def _simplest_first(ranked: list[Found], limits: Limits, column: str) -> list[Found]:
    """The same, but first the simplest layout of those that cannot be told from the best."""
    if not ranked:
        return ranked

    def value(one: Found) -> float:
        return float(getattr(one.served, column))

    def beyond(one: Found) -> bool:
        return one.served is None or limits.over(one.served) > 1

    best = ranked[0]
    alike = [one for one in ranked if abs(value(one) / value(best) - 1) <= TELLS_APART and beyond(one) == beyond(best)]
    first = min(alike, key=lambda one: one.layout.count(","))
    return [first, *(one for one in ranked if one is not first)]


def _run(one: Candidate, load: Load, numbers: co.Table, options: Options) -> Found:
    settings = replace(one.plan.settings, max_model_len=load.isl + load.osl)
    try:
        plan = resized(one.plan, one.plan.layout, settings)
        return Found(replace(one, plan=plan), answer(question(plan, load, options), numbers))
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


def front(user_speed: Sequence[float], output: Sequence[float]) -> npt.NDArray[np.int64]:
    """Places of the points that no other beats in both, by falling user speed: the Pareto front."""
    order = np.lexsort((-np.asarray(output), -np.asarray(user_speed)))
    best, kept = -np.inf, []
    for place in order:
        if output[place] > best:
            kept.append(int(place))
            best = output[place]
    return np.array(kept, dtype=np.int64)
