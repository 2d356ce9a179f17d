"""Ways to serve other than one large deployment, at the speed that the calibrated model tells.

A draft model beside the large one, prompts read on cards of their own, and experts in main memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from k3lib.calibrate.predict import Range, numbers, speed
from k3lib.deploy import constants as co
from k3lib.deploy.caches import Settings
from k3lib.deploy.holds import best_plan
from k3lib.deploy.load import Load
from k3lib.deploy.offload import Case, Offloaded, Way, offloaded
from k3lib.deploy.plan import Plan, make_plan
from k3lib.deploy.speed import Options, answer, question
from k3lib.engines.layout import Cluster, Layout, parse_cluster, parse_layout
from k3lib.errors import InputError
from k3lib.facts.benchmarks import Observation, observations
from k3lib.models.model import Model

ACCEPTANCE = "acceptance_length"


def acceptances(model: str, draft_tokens: int) -> tuple[Observation, ...]:
    """Measured tokens that a pass yields with a draft of so many tokens, in the order of the table.

    Raises InputError where none was measured.
    """
    found = tuple(row for row in observations() if row.model == model and row.quantity == ACCEPTANCE
                  and row.speculation == f"dspark {draft_tokens}")  # fmt: skip
    if not found:
        raise InputError(f"data/observations.csv has no {ACCEPTANCE} of {model} with a draft of {draft_tokens} tokens")
    return found


@dataclass(frozen=True)
class Drafted:
    """A load with a draft model and without. acceptance: tokens that a pass yields.

    gain: time per token without the draft over that with it, at the middle; low and high over what a draft's token
    takes. break_even: acceptance at which both are equal. clients_held: requests that fit beside the draft's cache.
    """

    plan: str
    clients: int
    acceptance: float
    tpot_ms: Range
    tpot_drafted_ms: Range
    gain: Range
    break_even: float
    output_tps: Range
    output_drafted_tps: Range
    clients_held: int


def speculation(model: Model, cluster: Cluster, layout: Layout, engine: str, settings: Settings, load: Load,
                draft_tokens: int, acceptance: float, options: Options | None = None) -> Drafted:  # fmt: skip
    """What a draft model gains on a deployment. load: its acceptance does not matter.

    Raises InputError for pipeline stages, with which no engine runs a draft, a plan that does not fit, or an acceptance
    outside 1 to draft_tokens + 1.
    """
    if draft_tokens < 1:
        raise InputError(f"draft_tokens = {draft_tokens}: must be at least 1")
    if not 1 <= acceptance <= draft_tokens + 1:
        raise InputError(f"acceptance = {acceptance}: a draft of {draft_tokens} tokens yields 1 to {draft_tokens + 1}")
    settings = replace(settings, max_model_len=load.isl + load.osl)
    plain = question(make_plan(model, cluster, layout, engine, replace(settings, draft_tokens=0)),
                     replace(load, acceptance=1.0), options)  # fmt: skip
    drafted = question(make_plan(model, cluster, layout, engine, replace(settings, draft_tokens=draft_tokens)),
                       replace(load, acceptance=acceptance), options)  # fmt: skip
    table = numbers()
    before, after = speed(plain, table), speed(drafted, table)
    gains = [answer(plain, t).tpot_ms / answer(drafted, t).tpot_ms for t in (table, *_draft_ends(table))]
    return Drafted(
        f"{cluster} {layout} {engine}", load.concurrency, acceptance, before.tpot_ms, after.tpot_ms,
        Range(gains[0], min(gains), max(gains)), acceptance / gains[0], before.output_tps, after.output_tps,
        drafted.running * drafted.copies,
    )  # fmt: skip


def _draft_ends(table: co.Table) -> tuple[co.Table, co.Table]:
    """The numbers with what a draft's token takes at either end of its range."""
    key = ("draft_us", "")
    known = table[key]
    factor = math.exp(known.spread)
    return ({**table, key: replace(known, value=known.value * factor)},
            {**table, key: replace(known, value=known.value / factor)})  # fmt: skip


@dataclass(frozen=True)
class Separated:
    """Prompts on one group of cards and generation on another.

    fits_prompts, fits_tokens: whether each half holds the model; reason: of the first that does not, else empty. Times
    and output: None where one does not. together_*: the same load on one deployment without separation, `together`,
    empty where that does not fit or was not asked for. cards, together_cards: of both groups, and of the one.
    """

    prompts: str
    tokens: str
    cards: int
    fits_prompts: bool
    fits_tokens: bool
    reason: str
    tpot_ms: Range | None = None
    ttft_ms: Range | None = None
    output_tps: Range | None = None
    together: str = ""
    together_cards: int = 0
    together_tpot_ms: Range | None = None
    together_ttft_ms: Range | None = None
    together_output_tps: Range | None = None


def separated(model: Model, prompts: tuple[str, str], tokens: tuple[str, str], engine: str, settings: Settings,
              load: Load, together: tuple[str, str] | None = None) -> Separated:  # fmt: skip
    """A load on two groups of cards.

    prompts, tokens, together: cluster and layout in their short forms; an empty layout takes the one with most room.
    """
    settings = replace(settings, max_model_len=load.isl + load.osl)

    def plan(place: tuple[str, str]) -> Plan:
        layout = parse_layout(place[1]) if place[1] else None
        return best_plan(model, parse_cluster(place[0]), layout, engine, settings)

    reader, writer = plan(prompts), plan(tokens)
    name = [f"{p.cluster} {p.layout}" for p in (reader, writer)]
    reason = next((p.reason for p in (reader, writer) if not p.fits), "")
    found = Separated(name[0], name[1], reader.cluster.cards + writer.cluster.cards, reader.fits, writer.fits, reason)
    if not reason:
        asked = replace(question(writer, load), prompts=question(reader, load))
        apart = speed(asked)
        found = replace(found, tpot_ms=apart.tpot_ms, ttft_ms=apart.ttft_ms_mean, output_tps=apart.output_tps)
    if together:
        whole = plan(together)
        if whole.fits:
            one = speed(question(whole, load))
            found = replace(found, together=f"{whole.cluster} {whole.layout}",
                            together_cards=whole.cluster.cards, together_tpot_ms=one.tpot_ms,
                            together_ttft_ms=one.ttft_ms_mean, together_output_tps=one.output_tps)  # fmt: skip
    return found


def offload_points(case: Case, clients: Sequence[int], way: Way) -> tuple[Offloaded, ...]:
    """A case at several numbers of clients, by the numbers of the model that hold now."""
    table = numbers()
    return tuple(offloaded(case, n, way, table) for n in clients)
