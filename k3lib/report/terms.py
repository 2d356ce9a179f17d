"""The terms of a pass as the book shows them: their colours and words, their ranges, and equations in short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp
from IPython.display import display

from k3lib.account import passes as eq
from k3lib.account import symbols as s
from k3lib.calibrate import parts
from k3lib.calibrate.parts import Part, ranged
from k3lib.calibrate.predict import numbers
from k3lib.calibrate.spread import override
from k3lib.deploy import constants as co
from k3lib.deploy import passes as ps
from k3lib.deploy.setup import constants
from k3lib.deploy.speed import Question, expert_bytes
from k3lib.ranges import Range
from k3lib.report.looks import PARTS

US_PER_MS = 1e3
# The same colour for the same term in the whole book, in the order in which bars stack them.
TERM_COLOURS = {
    ps.EXPERTS: PARTS["experts"],
    ps.DENSE: PARTS["dense"],
    ps.FIXED: PARTS["fixed"],
    ps.EXCHANGE: PARTS["exchange"],
    ps.ATTENTION: PARTS["mla"],
    ps.GROUPED: PARTS["mla"],
    ps.KDA: PARTS["kda"],
    ps.ENGINE: PARTS["engine"],
    ps.PROMPT: PARTS["prompt"],
    ps.LAUNCH: PARTS["launch"],
}
# How a reader sees the name of a term.
TERM_WORDS = {ps.FIXED: "fixed part of a layer", ps.EXCHANGE: "all-reduce", ps.ATTENTION: "MLA",
              ps.PROMPT: "rest of prompts", ps.LAUNCH: "launches"}  # fmt: skip


def words(term: str) -> str:
    """A term's name for a reader."""
    return TERM_WORDS.get(term, term)


def key(term: str) -> str:
    """A term's name as part of a result's key."""
    return term.replace(" ", "-").lower()


def step_parts(asked: Question, table: co.Table | None = None) -> tuple[Range, dict[str, Part]]:
    """A generating step through all stages in ms, and its terms in the order in which bars stack them."""
    total, found = parts.step_parts(asked, table)
    return total, {term: found[term] for term in TERM_COLOURS if term in found}


def pass_parts(asked: Question, decode: float, prompt: float, table: co.Table | None = None) -> dict[str, float]:
    """The terms of one pass through all stages in ms, for so many generated and prompt tokens."""
    known = constants(asked.setup, table or numbers())
    load = asked.load
    found = asked.passes.terms(known, np.array([decode]), np.array([prompt]), load.isl + load.osl / 2, load.isl / 2)
    return {t: float(found[t].sum()) / US_PER_MS for t in TERM_COLOURS if t in found and found[t].sum() > 0}


def pass_ms(asked: Question, decode: float, prompt: float) -> Range:
    """One pass through all stages in ms, for so many generated and prompt tokens."""
    return ranged(asked, lambda table: sum(pass_parts(asked, decode, prompt, table).values()))


def attention_ms(asked: Question, context: float, block: int | None = None) -> Range:
    """MLA's part of a generating step of one request, through all stages in ms.

    block: heads that are computed together, if not as many as the kernel does.
    """

    def value(table: co.Table) -> float:
        known = override(asked, table, "head_block", float(block)) if block is not None else table
        one = np.array([1.0])
        found = asked.passes.terms(constants(asked.setup, known), one, 0 * one, context, context / 2)
        return float(found[ps.ATTENTION].sum()) / US_PER_MS

    return ranged(asked, value)


@dataclass(frozen=True)
class ByHand:
    """What the weights of a step alone need for one request: bytes on a card and time through all stages."""

    dense_bytes: float
    experts_bytes: float
    ms: float


def by_hand(asked: Question) -> ByHand:
    """Weights that one request's step reads on one card of every stage, at the peak bandwidth."""
    stages, values = asked.passes.stages, asked.setup.model.values
    dense = sum(stage[s.stage_bytes] for stage in stages)
    layers = sum(stage[s.layers_moe] for stage in stages)
    experts = layers * float(values[s.experts_per_token]) * expert_bytes(asked.setup) / asked.setup.expert_cards
    return ByHand(dense, experts, (dense + experts) / stages[0][s.card_bandwidth] / US_PER_MS)


def faster_memory(asked: Question, factor: float) -> Question:
    """The same question with cards of so many times the memory bandwidth; the measured kernels stay as they are."""
    setup = asked.setup
    key = (setup.cluster.device, "hbm_bandwidth")
    row = setup.facts[key]
    changed = row.model_copy(update={"value": row.value * factor, "low": None, "high": None})
    return replace(asked, passes=ps.PassTimes(replace(setup, hardware={**setup.facts, key: changed})))


# Parts of the equations that have a name of their own on the page.
USED, USED_ON_CARD, USED_SHARE = sp.Symbol("D"), sp.Symbol("D_{card}"), eq.distinct_experts() / s.experts


def in_short(left: str, expression: sp.Expr) -> None:
    """Show `left = expression` with the number of used experts written as D, and T for the tokens that meet in them."""
    short = expression.subs(USED_SHARE, USED / s.experts).subs(eq.expert_tokens(), sp.Symbol("T"))
    displayed(left, short)


def even_routing(left: str) -> None:
    """Show the number of used experts where all are equally popular, with T for the tokens that meet in them."""
    share = sp.Min(1, s.experts_per_token / s.experts)
    even = eq.distinct_experts().subs(s.skew, 0).subs(share, sp.Symbol(r"\tfrac{k}{E}"))
    displayed(left, sp.nsimplify(even.subs(eq.expert_tokens(), sp.Symbol("T")), rational=True, tolerance=1e-9))


def attention_equations() -> None:
    """Show MLA's part of a generating step: the two limits, and the larger of them in every layer."""
    generating = eq.mla_us().subs(s.prompt_tokens, 0)
    larger = next(iter(generating.atoms(sp.Max)))
    read = next(x for x in larger.args if x.has(s.cache_share))
    work = next(x for x in larger.args if x.has(s.mla_share))
    names = {read: sp.Symbol("t_{read}"), work: sp.Symbol("t_{work}")}
    for limit, symbol in names.items():
        displayed(str(symbol), limit)
    displayed("t_{MLA}", generating.subs(larger, sp.Max(*names.values(), evaluate=False)))


def displayed(left: str, expression: sp.Expr) -> None:
    """Show `left = expression`, whose symbols may be short names that are declared nowhere."""
    names: Mapping[sp.Symbol, str] = {q.symbol: q.latex for q in s.REGISTRY.values()}
    text = f"$$\n{left} = {sp.latex(expression, symbol_names=dict(names))}\n$$"
    display({"text/latex": text, "text/plain": f"{left} = {expression}"}, raw=True)
