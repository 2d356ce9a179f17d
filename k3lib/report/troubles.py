"""Tables of the page on trouble: causes of each case, and what cuts, terms, networks and pools come to on a plan."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from k3lib.calibrate.against import TOKENS_COMPARED, row_bytes
from k3lib.calibrate.behind import main_sources
from k3lib.calibrate.parts import ranged
from k3lib.calibrate.predict import numbers
from k3lib.deploy.cuts import Cut
from k3lib.deploy.inverse import legal_layouts
from k3lib.deploy.plan import Plan, make_plan
from k3lib.deploy.setup import constants
from k3lib.deploy.speed import Question, answer, question
from k3lib.errors import InputError
from k3lib.facts.operating import Case
from k3lib.operate import bandwidth as bw
from k3lib.operate import diagnose, trouble, uneven
from k3lib.operate.slots import BEST, Held
from k3lib.operate.watched import Watched
from k3lib.report import show
from k3lib.report import terms as tm
from k3lib.report.compare import in_range
from k3lib.report.trail import Html, cell, source_links
from k3lib.results import Result, record
from k3lib.units import GIBI

NONE = "–"
SIGNS = 2
TWICE = 2.0
# Networks that are worse than they should be: what is wrong, share of the bandwidth, start-ups so many times as long.
NETWORKS = (("sound", 1.0, 1.0), ("half the bandwidth", 0.5, 1.0), ("a tenth of the bandwidth", 0.1, 1.0),
            ("start-ups ten times as long", 1.0, 10.0))  # fmt: skip


def anchor(case: Case) -> str:
    """The address of a case's section on its page."""
    return re.sub(r"[^a-z0-9]+", "-", trouble.CASES[case].lower())


def overview() -> None:
    """Show what is seen, and the section that says what to do."""
    rows = []
    for case, name in trouble.CASES.items():
        signs = "; ".join(row.sign for row in trouble.causes(case)[:SIGNS])
        rows.append([Html(f'<a href="#{anchor(case)}">{name}</a>'), signs])
    show.table(["Section", "What is seen, for example"], rows, label="From what is seen to what to do", text_columns=2)


def decision_table(case: Case) -> None:
    """Show the causes of a case: sign, cause, the test that tells it from the others, remedy, sources."""
    rows = [[show.two_lines(show.breakable(row.sign), show.breakable(f"Cause: {row.cause}")), show.breakable(row.test),
             show.two_lines(show.breakable(row.remedy), source_links(row.source_ids))]
            for row in trouble.causes(case)]  # fmt: skip
    show.table(["What is seen, and its cause", "Test", "Remedy, and sources"], rows,
               label=f"{trouble.CASES[case]}: causes and tests", text_columns=3)  # fmt: skip


def known(key: str, value: float, unit: str, sources: Sequence[str]) -> Result:
    """Record a number that follows from the ledger or a prediction without a range of its own."""
    return record(f"trouble.{key}", value, unit=unit, grade="derived", low=value, high=value, sources=list(sources))


def cut_table(case: Case, one: Watched, sources: Sequence[str]) -> list[Cut]:
    """Show what each cut of a case gives back on the plan, and what it leaves of the output. Returns the cuts."""
    before = answer(one.asked, numbers()).output_tps
    found = trouble.helpful(one.plan, case)
    rows = []
    for cut in found:
        at = f"cut.{case}.{cut.key}"
        gives, beside = (known(f"{at}.{name}", gib, "GiB", sources) for name, gib in
                         (("gives", cut.gives_gib), ("beside", cut.beside_gib)))  # fmt: skip
        held = known(f"{at}.requests", cut.concurrency, "requests", sources)
        after = _output(one, cut)
        left = NONE if after is None else cell(known(f"{at}.output", after / before, "1", sources), "%", ",.0f")
        rows.append([cut.what, cell(gives, "GiB", "+,.1f"), cell(beside, "GiB", "+,.1f"),
                     cell(held, "requests", ",.0f"), left])  # fmt: skip
    show.table(["Cut", "For caches, GiB", "Beside the share, GiB", "Longest requests at once", "Output then, %"], rows,
               label=f"{trouble.CASES[case]}: what each cut gives back on a card")  # fmt: skip
    return found


def _output(one: Watched, cut: Cut) -> float | None:
    """Output of the watched load after a cut, None where its requests no longer fit."""
    plan = one.plan
    if cut.settings.max_model_len < one.tokens:
        return None
    try:
        after = make_plan(plan.model, plan.cluster, plan.layout, plan.engine.name, cut.settings)
        return answer(question(after, one.asked.load, one.options), numbers()).output_tps
    except InputError:
        return None


def load_table(plan: Plan, sources: Sequence[str]) -> list[str]:
    """Show the plan while it loads, and the layouts of the same cards that hold less. Returns their names."""
    rows, lighter = [], trouble.lighter(plan)
    for at, one in enumerate((trouble.at_load(plan), *lighter)):
        cells = [known(f"load.l{at}.{name}", gib, "GiB", sources) for name, gib in
                 (("weights", one.weights_gib), ("peak", one.peak_gib), ("room", one.room_gib))]  # fmt: skip
        what = f"{one.layout}, the plan" if at == 0 else one.layout
        rows.append([what, "yes" if one.fits else "no", *(cell(r, "GiB", ",.1f") for r in cells)])
    show.table(["Layout", "Fits in service", "Weights, GiB", "Peak while loading, GiB", "Left then, GiB"], rows,
               label="The fullest card while the weights load", text_columns=2)  # fmt: skip
    return [one.layout for one in lighter]


def term_table(one: Watched, sources: Sequence[str]) -> str:
    """Show the terms of a step: what each takes, and what stays of the output if it takes twice as long.

    Returns the name of the largest one.
    """
    suspects = diagnose.suspects(one.asked, TWICE)
    rows = []
    for found in sorted(suspects, key=lambda s: -s.part.ms.value):
        ms, share, key = found.part.ms, found.part.share, tm.key(found.term)
        took = record(f"trouble.term.{key}.ms", ms.value, unit="ms", grade="derived", low=ms.low, high=ms.high,
                      sources=list(sources))  # fmt: skip
        left = [diagnose.output_left(x, TWICE) for x in (share.value, share.high, share.low)]
        kept = record(f"trouble.term.{key}.left", left[0], unit="1", grade="derived", low=left[1], high=left[2],
                      sources=list(sources))  # fmt: skip
        times = known(f"term.{key}.times", found.times, "1", sources)
        look = show.breakable(found.look.test) if found.look else ""
        rows.append([tm.words(found.term), look, in_range(took, ",.1f"), in_range(kept, ",.0f", "%"),
                     cell(times, "1", ",.1f")])  # fmt: skip
    show.table(["Term", "Look at", "Takes, ms", "Output if twice as long, %", "Times as long to halve it"], rows,
               label=f"One generating step under {one.asked.clients:,} clients, by term", text_columns=2)  # fmt: skip
    return max(suspects, key=lambda s: s.part.ms.value).term


def wide_question(one: Watched) -> Question | None:
    """The same load on the layout without stages that spans most servers, None where the plan is one or none fits."""
    plan = one.plan
    if plan.layout.pp == 1 or plan.cluster.nodes == 1:
        return None
    found = []
    for layout in legal_layouts(plan.model, plan.cluster.cards, plan.engine.name):
        if layout.pp > 1 or layout.dp > 1 or plan.engine.cards(layout) != plan.cluster.cards:
            continue
        made = make_plan(plan.model, plan.cluster, layout, plan.engine.name, plan.settings)
        try:
            found.append(question(made, one.asked.load, one.options))
        except InputError:
            continue
    return max(found, key=lambda asked: asked.running, default=None)


def network_table(one: Watched, sources: Sequence[str]) -> None:
    """Show the output, also of a layout that exchanges between servers in every layer, as the network fails."""
    both = {"plan": one.asked}
    if wide := wide_question(one):
        both["wide"] = wide
    cases = [(what, {name: bw.slower_network(asked, bandwidth, latency) for name, asked in both.items()})
             for what, bandwidth, latency in NETWORKS]  # fmt: skip
    if one.asked.setup.nics > 1:
        sound = {name: seen.output_tps for name, seen in cases[0][1].items()}
        ones = {name: answer(bw.one_network_card(asked), numbers()).output_tps for name, asked in both.items()}
        cases.append(("one network card of each server", {n: bw.Slower(x, x / sound[n]) for n, x in ones.items()}))
    rows = []
    for at, (what, seen) in enumerate(cases):
        row: list[str] = [what]
        for name, slower in seen.items():
            tps = known(f"network.n{at}.{name}.output_tps", slower.output_tps, "tok/s", sources)
            left = known(f"network.n{at}.{name}.left", slower.share, "1", sources)
            row += [cell(tps, "tok/s", ",.0f"), cell(left, "%", ",.0f")]
        rows.append(row)
    header = ["Network"]
    for asked in both.values():
        header += [f"{asked.setup.layout}, tok/s", "of the sound one, %"]
    show.table(header, rows, label=f"Output under {one.asked.clients:,} clients as the network between servers fails")


def exchange_table(one: Watched) -> None:
    """Show what an all-reduce over all cards should take, to be set beside nccl-tests."""
    asked = one.asked
    cards = one.plan.cluster.cards
    rows = []
    for tokens in TOKENS_COMPARED:
        size = tokens * row_bytes()
        at = ranged(asked, lambda table, size=size: float(  # type: ignore[misc]
            asked.passes.exchange_us(cards, np.array([float(size)]), constants(asked.setup, table))[0]))  # fmt: skip
        took = record(f"trouble.exchange.t{tokens}_us", at.value, unit="us", grade="derived", low=at.low, high=at.high,
                      sources=main_sources(asked))  # fmt: skip
        rows.append([f"{tokens:,}", f"{size:,}", in_range(took, ",.0f")])
    show.table(["Tokens of a pass", "Bytes", "Time, µs"], rows, text_columns=0,
               label=f"One all-reduce over {cards} cards, as predictions count with it")  # fmt: skip


def pool_table(found: Sequence[Held], context: int, sources: Sequence[str]) -> None:
    """Show the requests of so many tokens that two pools hold, by ratio and by setting."""
    rows = []
    for at, held in enumerate(found):
        both = [known(f"slots.s{at}.{name}", value, "requests", sources) for name, value in
                (("states", held.by_states), ("tokens", held.by_tokens), ("requests", held.requests))]  # fmt: skip
        rows.append([held.what, held.limit, f"{held.ratio:.2f}", *(cell(r, "requests", ",d") for r in both)])
    show.table(["Setting", "Limit", "Ratio", "By states", "By tokens", "Requests at once"], rows, text_columns=2,
               label=f"Under SGLang: requests of {context:,} tokens that the pools of one copy hold")  # fmt: skip


def service_words(least_beside_gib: float) -> str:
    """What the ledger says of a death under load. least_beside_gib: what is left beside the share at its far end."""
    if least_beside_gib > 0:
        return (f"The ledger's far end leaves {least_beside_gib:.1f} GiB a card, so a death under load has another "
                "cause than the plan.")  # fmt: skip
    return f"The ledger's far end lacks {-least_beside_gib:.1f} GiB a card, so the first pass may be the last."


def stage_words(plan: Plan, even: Plan, output_ratio: float) -> str:
    """What moving layers does for a plan. even: the plan with them moved. output_ratio: its output over the plan's."""
    if plan.layout.pp == 1:
        return "there is one stage, so nothing to even."
    if even is plan or not (plan.caches and even.caches):
        return "no layer moved makes more room."
    room = (even.stages[even.tightest].free[0] - plan.stages[plan.tightest].free[0]) / GIBI
    requests = even.caches.max_concurrency / plan.caches.max_concurrency
    return (f"moved to {partition(even)}, the tightest card has {room:.1f} GiB more for caches, which hold "
            f"{requests:.2f} times as many requests, and the output is {output_ratio:.2f} times as much.")  # fmt: skip


def partition(plan: Plan) -> str:
    """Layers of every stage, as the engines write them."""
    return ",".join(map(str, uneven.sizes(plan)))


def slot_words(two: Plan | None, why: str, held: Sequence[Held], context: int) -> str:
    """What the default ratio of SGLang's pools holds, and what the best one would.

    two: the plan under SGLang, None with the reason why there is none.
    """
    if two is None:
        return f"Under SGLang this layout has no pools: {why}."
    usual = next(x for x in held if x.ratio == two.engine.rule("state_ratio").value)
    best = next(x for x in held if x.what == BEST)
    return (f"Under SGLang the default ratio of {usual.ratio:g} holds {usual.requests:,} requests of {context:,} "
            f"tokens, and {usual.limit} set the limit; at {best.ratio:.2f} both pools end together, at "
            f"{best.requests:,}.")  # fmt: skip
