"""Speeds as the book shows them: the scenario's plan and others under many loads, and the sources behind a number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from k3lib.calibrate.behind import main_sources, sources_of
from k3lib.calibrate.predict import Range, Speed, numbers, speed
from k3lib.deploy import constants as co
from k3lib.deploy.caches import Settings
from k3lib.deploy.inverse import largest
from k3lib.deploy.load import Load
from k3lib.deploy.named import alternative, options, scenario_cluster
from k3lib.deploy.plan import Plan, make_plan
from k3lib.deploy.speed import Options, Question, answer, question
from k3lib.engines.layout import parse_layout
from k3lib.errors import InputError
from k3lib.facts import named
from k3lib.models.model import Model
from k3lib.results import Result, record

CLIENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
FEWER_CLIENTS = (1, 8, 32, 64, 128, 256, 512)
# Requests that the scenario's own plan may run at once, as in the named plans.
MOST_RUNNING = 512
# The plan that a page shows where the scenario's own has no speed.
FALLBACK = "h20x32-tp8pp4"
UNITS = {"output_tps": "tok/s", "tpot_ms": "ms", "ttft_ms": "ms"}


@dataclass(frozen=True)
class Main:
    """The plan that a page is about. reason: why the scenario's own has no speed, empty where this is it."""

    plan: Plan
    options: Options
    reason: str = ""


@dataclass(frozen=True)
class Point:
    """One load on one plan. reason: why there is no speed, empty where there is one."""

    concurrency: int
    asked: Question | None
    speed: Speed | None
    reason: str = ""


def label(plan: Plan, experts: str = "auto") -> str:
    """A plan in a few words: layout, cluster, engine, and the kernel where it is not the usual one."""
    kernel = f", {experts}" if experts != "auto" else ""
    return f"{plan.layout} on {plan.cluster}, {plan.engine.name}{kernel}"


def main_plan(model: Model, *, cards: int, cards_per_node: int, device: str, layout: str, engine: str) -> Main:
    """The scenario's own plan, or the fallback with the reason where it has no speed.

    Raises InputError for cards that do not fill servers.
    """
    cluster = scenario_cluster(cards, cards_per_node, device)
    load = next(iter(named.loads().values()))
    try:
        settings = Settings(max_model_len=load.isl + load.osl, max_num_seqs=MOST_RUNNING)
        plan = make_plan(model, cluster, parse_layout(layout), engine, settings)
        answer(ask(plan, Options(), load.isl, load.osl, 1), numbers())
    except InputError as error:
        return Main(alternative(FALLBACK, model, load.isl + load.osl), options(FALLBACK), str(error))
    return Main(plan, Options())


def beside(main: Main, name: str) -> tuple[str, ...]:
    """The named plan as a tuple of one, empty where the page's own plan is that plan."""
    row = named.plans()[name]
    own_plan = (str(main.plan.cluster), str(main.plan.layout), main.plan.engine.name)
    return () if own_plan == (row.cluster, row.layout, row.engine) and not row.settings else (name,)


def ask(plan: Plan, how: Options, isl: int, osl: int, concurrency: int, **changed: Any) -> Question:
    """A load on a plan that is sized for it. changed: settings of the engine that differ.

    Raises InputError where the plan does not fit or not one request does.
    """
    settings = replace(plan.settings, max_model_len=isl + osl, **changed)
    sized = make_plan(plan.model, plan.cluster, plan.layout, plan.engine.name, settings)
    return question(sized, Load(isl, osl, concurrency), how)


def point(make: Callable[[], Question], concurrency: int, table: co.Table | None = None) -> Point:
    """The prediction for a question, or the reason why there is none."""
    try:
        asked = make()
        return Point(concurrency, asked, speed(asked, table))
    except InputError as error:
        return Point(concurrency, None, None, str(error))


def sweep(plan: Plan, how: Options, load_name: str, clients: Iterable[int]) -> list[Point]:
    """A named load on a plan, by clients."""
    row = named.load(load_name)
    return [point(lambda n=n: ask(plan, how, row.isl, row.osl, n), n) for n in clients]  # type: ignore[misc]


def hedged(found: Sequence[Point], instead: Sequence[Point]) -> list[Point]:
    """Points of a kernel that no table knows on this card: it may also be no faster than the one it was scaled from.

    instead: the same loads with that kernel, of as many clients or more. A range then reaches to the slower end of
    theirs.
    """
    other = {p.concurrency: p.speed for p in instead}
    return [replace(p, speed=_hedged(p.speed, other.get(p.concurrency))) for p in found]


def _hedged(mine: Speed | None, other: Speed | None) -> Speed | None:
    if mine is None or other is None:
        return mine
    out = mine.output_tps
    slower = {
        name: replace(getattr(mine, name), high=max(getattr(mine, name).high, getattr(other, name).high))
        for name in ("tpot_ms", "ttft_ms_mean", "ttft_ms_median")
    }
    return replace(mine, output_tps=replace(out, low=min(out.low, other.output_tps.low)), **slower)


def ranges(found: Speed) -> dict[str, Range]:
    """The three published figures by name."""
    return {"output_tps": found.output_tps, "tpot_ms": found.tpot_ms, "ttft_ms": found.ttft_ms_mean}


def publish(prefix: str, found: Point, basis: Result | None = None) -> dict[str, Result]:
    """Record the three figures of a point as `<prefix>.output_tps` and so on; nothing where there is no speed.

    basis: what is known of the set-up, a result that names all sources; the figures then name the main ones.
    """
    if found.speed is None or found.asked is None:
        return {}
    behind = sources_of(found.asked) if basis is None else main_sources(found.asked)
    return {
        metric: record(f"{prefix}.{metric}", r.value, unit=UNITS[metric], grade="derived", low=r.low, high=r.high,
                       sources=behind, inputs=[basis] if basis else ())
        for metric, r in ranges(found.speed).items()
    }  # fmt: skip


def publish_basis(prefix: str, found: Sequence[Point]) -> Result | None:
    """Record what is known of a set-up as `<prefix>.basis`, with every source; None where no load has a speed."""
    for one in found:
        if one.speed and one.asked:
            return record(f"{prefix}.basis", one.speed.situation, unit="", grade="derived",
                          sources=sources_of(one.asked))  # fmt: skip
    return None


def most_clients(make: Callable[[int], Question], tpot_ms: float, *, sure: bool, most: int = MOST_RUNNING) -> int:
    """The most clients whose time per output token stays within a limit; 0 where one is too many.

    sure: whether the upper end of the range must stay within it, or the middle. Times grow with the clients.
    """
    table = numbers()

    def within(clients: int) -> bool:
        asked = make(clients)
        if not sure:
            return answer(asked, table).tpot_ms <= tpot_ms
        return speed(asked, table).tpot_ms.high <= tpot_ms

    return largest(within, 1, most)
