"""When a draft model pays: the tokens that a pass must yield before it is faster than one without."""

from __future__ import annotations

from dataclasses import dataclass, replace

from k3lib.calibrate.predict import ratio
from k3lib.choose.outcome import load_of
from k3lib.deploy.inverse import legal_layouts
from k3lib.deploy.plan import Plan, make_plan
from k3lib.deploy.speed import Question, question
from k3lib.errors import InputError
from k3lib.operate.watched import Watched
from k3lib.ranges import Range


@dataclass(frozen=True)
class BreakEven:
    """length: tokens of a pass at which a draft neither costs nor gives. drafts: tokens proposed a pass."""

    layout: str
    drafts: int
    clients: int
    length: Range


def break_even(one: Watched, drafts: int, clients: int | None = None) -> BreakEven | None:
    """The break-even of so many proposed tokens under the workload, or with other clients.

    None where no layout of the cards holds a draft model.

    Neither engine runs one with pipeline stages, so a plan that has them is judged by the layout of the same cards
    without stages that holds most. With one token a pass, the time per token is the time of a pass.
    """
    plans = _with_draft(one, drafts)
    if plans is None:
        return None
    plain, drafting = plans
    load = load_of(one.workload, clients)
    try:
        with_it, without = (question(plan, load, one.options) for plan in (drafting, plain))
        return BreakEven(str(plain.layout), drafts, load.concurrency, _times(with_it, without))
    except InputError:
        return None


def _times(with_it: Question, without: Question) -> Range:
    """How many times as long a pass takes, where both run as many requests at once as the narrower one holds."""
    running = min(with_it.running, without.running)
    return ratio(replace(with_it, running=running), replace(without, running=running), "tpot_ms")


def _with_draft(one: Watched, drafts: int) -> tuple[Plan, Plan] | None:
    """A plan without stages and the same with a draft model."""
    plan = one.plan
    settings = replace(plan.settings, pp_partition=None)
    if plan.layout.pp == 1:
        layouts = [plan.layout]
    else:
        layouts = [x for x in legal_layouts(plan.model, plan.cluster.cards, plan.engine.name)
                   if x.pp == 1 and plan.engine.cards(x) == plan.cluster.cards]  # fmt: skip
    found = []
    for layout in layouts:
        both = [make_plan(plan.model, plan.cluster, layout, plan.engine.name, replace(settings, draft_tokens=n))
                for n in (0, drafts)]  # fmt: skip
        if all(made.fits and made.caches for made in both):
            found.append((both[0], both[1]))
    return max(found, key=lambda pair: pair[1].caches.kv_tokens * pair[1].copies if pair[1].caches else 0, default=None)
