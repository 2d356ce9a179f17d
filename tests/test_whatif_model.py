"""The script of the what-if page beside Python: equations, plans, the closed loop step by step, speeds and costs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sympy as sp
from playwright.sync_api import Browser, Page

from k3lib.calibrate.predict import numbers, speed
from k3lib.choose.deployed import MOST_RUNNING, deployed
from k3lib.cost.api import Mix, api_cost_cny, offers
from k3lib.cost.choice import Choice
from k3lib.cost.own import own
from k3lib.cost.rent import rentals
from k3lib.cost.unit import break_even, unit_cost
from k3lib.deploy import loop
from k3lib.deploy import speed as deployed_speed
from k3lib.deploy.caches import Settings
from k3lib.deploy.inverse import legal_layouts
from k3lib.deploy.load import Apart, Load, Rules
from k3lib.deploy.loop import Loop
from k3lib.deploy.plan import make_plan
from k3lib.deploy.speed import answer, question, step_terms
from k3lib.engines.layout import parse_layout
from k3lib.errors import InputError
from k3lib.evaluate import prepared
from k3lib.facts.planned import planned
from k3lib.facts.price_parameters import current
from k3lib.models.model import load_model
from k3lib.ranges import Range
from k3lib.report.whatif import expressions, model, translate
from k3lib.report.whatif.start import _lines

K3 = load_model("kimi-k3")
CLOSE = 1e-12
POINTS = 10_000
# Ends between which the symbols of an equation are drawn; others from 0.5 to 20.
DRAWN = {
    "decode_tokens": (0, 4096), "prompt_tokens": (0, 16_384), "context_tokens": (1, 1e6), "seen_tokens": (1, 1e6),
    "skew": (0, 2), "experts_held": (1, 896), "width_held": (128, 3072), "expert_floor_us": (0.1, 60),
    "card_bandwidth": (1e6, 1e7), "card_rate": (1e8, 3e9), "cache_rate": (1e8, 3e9), "stage_bytes": (1e9, 1e11),
    "stage_work": (1e9, 1e11), "tensor_parallel": (1, 64), "head_block": (1, 64), "capital_rate": (0.01, 0.3),
    "api_decline": (0.01, 0.6), "busy_share": (0.01, 1), "up_share": (0.5, 1), "goods": (1e5, 1e8),
    "output_rate": (10, 1e5), "life": (1, 10), "room_life": (1, 30), "repair_hours": (0, 100), "hop_rate": (1e3, 1e5),
}  # fmt: skip
# The same numbers on both sides: fractions of steps that never meet, exact in double precision.
DRAW = """(names, ends, at) => names.map((name, j) => {
  const step = (at + 1) * 0.6180339887498949 + (j + 1) * 0.7548776662466927;
  const [low, high] = ends[name] || [0.5, 20];
  return low + (high - low) * (step % 1);
})"""


@pytest.fixture(scope="module")
def page(browser: Browser, book: Path) -> Iterator[Page]:
    """An empty page with the shipped script in it."""
    opened = browser.new_page()
    opened.add_script_tag(path=str(book / "html" / "_static" / "k3-whatif-model.js"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def facts(page: Page) -> dict[str, Any]:
    return dict(page.evaluate("K3WhatIf.facts"))


def functions(facts: dict[str, Any]) -> list[expressions.Function]:
    return [*expressions.of_model(K3), *expressions.of_costs(_lines(facts["prices"]["lines"]))]


def test_every_equation_of_the_shipped_file_is_that_of_python(page: Page, facts: dict[str, Any]) -> None:
    """At ten thousand points each, to twelve figures."""
    many = functions(facts)
    assert {f.name for f in many} == set(page.evaluate("Object.keys(K3WhatIf.equations)"))
    for f in many:
        names = [str(x) for x in f.symbols]
        text = page.evaluate(
            f"""([name, names, ends, points]) => {{
              const draw = {DRAW};
              const of = K3WhatIf.equations[name];
              return JSON.stringify(Array.from({{ length: points }}, (_, at) => {{
                const drawn = draw(names, ends, at);
                return of(Object.fromEntries(names.map((x, j) => [x, drawn[j]])));
              }}));
            }}""", [f.name, names, DRAWN, POINTS],
        )  # fmt: skip
        found = np.array(json.loads(text), dtype=np.float64).reshape(POINTS, len(f.expressions))
        at = np.arange(POINTS, dtype=np.float64)
        columns = []
        for j, name in enumerate(names):
            low, high = DRAWN.get(name, (0.5, 20))
            step = (at + 1) * 0.6180339887498949 + (j + 1) * 0.7548776662466927
            columns.append(low + (high - low) * (step % 1))
        used, function = prepared(f.expressions)
        assert [str(x) for x in used] == names
        for k, expected in enumerate(function(*columns)):
            np.testing.assert_allclose(found[:, k], np.broadcast_to(expected, POINTS), rtol=CLOSE, err_msg=f.name)


def asked_at_random(draw: Random, facts: dict[str, Any], *, long: bool = True) -> dict[str, Any]:
    """Settings as the page has them, on a layout that the engine accepts."""
    device = draw.choice(sorted(facts["cards"]))
    engine = draw.choice(("vllm", "sglang"))
    nodes = draw.choice((1, 2, 3, 4, 6, 8, 16))
    cards = nodes * facts["cards"][device]["cards_per_node"]
    layouts = [str(x) for x in legal_layouts(K3, cards, engine) if x.pp <= 16]
    isl, osl = draw.choice((100, 1000, 4096, 12_035)), draw.choice((2, 64, 343, 1024))
    return {
        "device": device, "nodes": nodes, "nics": draw.randint(1, 16), "engine": engine, "layout": draw.choice(layouts),
        "memory_share": draw.choice((0.85, 0.9, 0.97)), "isl": isl, "osl": osl,
        "cached": draw.choice((0, 0, isl // 2)), "concurrency": draw.choice((1, 3, 16, 60, 128)),
        "max_model_len": isl + osl + draw.choice((0, 30_000)) * long, "prices": {},
    }  # fmt: skip


def plan_of(asked: dict[str, Any], facts: dict[str, Any]) -> Any:
    """The same plan by the library."""
    size = facts["cards"][asked["device"]]["cards_per_node"]
    one = deployed(planned(f"{asked['nodes']}x{size}x{asked['device']}", asked["nics"]))
    settings = Settings(utilisation=asked["memory_share"], max_model_len=asked["max_model_len"],
                        max_num_seqs=MOST_RUNNING, prefix_caching=asked["cached"] > 0)  # fmt: skip
    plan = make_plan(K3, one.cluster, parse_layout(asked["layout"]), asked["engine"], settings, one.options.hardware)
    return SimpleNamespace(plan=plan, options=one.options)


def question_of(asked: dict[str, Any], facts: dict[str, Any]) -> Any:
    there = plan_of(asked, facts)
    wanted = Load(asked["isl"], asked["osl"], asked["concurrency"], cached=asked["cached"])
    return question(there.plan, wanted, there.options)


PLANNED = """(asked) => JSON.stringify(asked.map((one) => {
  const plan = K3WhatIf.plan_of(one);
  return { fits: plan.fits, reason: plan.reason, tightest: plan.tightest, copies: plan.copies,
    caches: plan.caches && { ...plan.caches }, low: plan.caches_low && { ...plan.caches_low },
    stages: plan.stages.map((s) => ({ weights: s.weights, free: s.free,
      lines: s.lines.map((x) => [x.name, x.bytes, x.low, x.high, x.outside, x.passing, x.grade]) })) };
}))"""


def test_plans_are_those_of_python_to_the_last_byte(page: Page, facts: dict[str, Any]) -> None:
    """Fit, reason, every line of every stage, and what the caches hold."""
    draw = Random(7)  # noqa: S311 - not for secrets
    many = [asked_at_random(draw, facts) for _ in range(150)]
    found = json.loads(page.evaluate(PLANNED, many))
    fitting = 0
    for asked, one in zip(many, found, strict=True):
        plan = plan_of(asked, facts).plan
        fitting += plan.fits
        assert (one["fits"], one["reason"], one["tightest"], one["copies"]) == (
            plan.fits, plan.reason, plan.tightest, plan.copies), asked  # fmt: skip
        for stage, mine in zip(plan.stages, one["stages"], strict=True):
            lines = [[x.name, x.bytes, x.low, x.high, x.outside, x.passing, x.grade] for x in stage.lines]
            assert [x[0] for x in mine["lines"]] == [x[0] for x in lines], asked
            for x, y in zip(mine["lines"], lines, strict=True):
                assert x[1:4] == pytest.approx(y[1:4], rel=CLOSE) and x[4:] == y[4:], (asked, x, y)
            assert mine["free"] == pytest.approx(list(stage.free), rel=1e-11)
        for key, held in (("caches", plan.caches), ("low", plan.caches_low)):
            assert (one[key] is None) == (held is None)
            assert held is None or one[key] == pytest.approx(vars(held), rel=CLOSE), asked
    assert 30 < fitting < 130


def test_layouts_are_those_that_python_accepts(page: Page, facts: dict[str, Any]) -> None:
    for device, nodes in (("h20-96", 4), ("h200", 3), ("gb200", 16), ("a3-910c", 8)):
        for engine in ("vllm", "sglang"):
            cards = nodes * facts["cards"][device]["cards_per_node"]
            found = page.evaluate("(a) => K3WhatIf.layouts_of(a)", {"device": device, "nodes": nodes, "engine": engine})
            plain = [x for x in found if "dcp" not in x]
            assert plain == [str(x) for x in legal_layouts(K3, cards, engine)]
            assert engine == "sglang" or any("dcp" in x for x in found)


def _state(run: Any) -> list[float]:
    slots = [float(x) for slot in run.slots for x in (slot.requests, slot.passes, slot.busy, len(slot.groups))]
    return [run.now, run.end, run.sent, run.done, run.running, len(run.waiting), len(run.flying), len(run.arrivals),
            *run.stage_free, *slots]  # fmt: skip


LOOPED = """(runs) => JSON.stringify(runs.map((run) => {
  const w = K3WhatIf;
  const at = (decode, prompt) => run.times.map(([a, b, c]) => a + b * decode + c * prompt);
  const apart = run.apart && { latency_us: run.apart[0], spacing_us: run.apart[1] };
  const rules = new w.Rules(run.slots, run.chunk, run.running, run.mixes, run.client_us, run.hop_us, apart,
    run.bunched);
  class Stepped extends w.Loop {
    _goes_on() {
      this.states = this.states || [];
      const slots = this.slots.flatMap((s) => [s.requests, s.passes, Number(s.busy), s.groups.length]);
      this.states.push([this.now, this.end, this.sent, this.done, this.running, this.waiting.length,
        this.flying.length, this.arrivals.length, ...this.stage_free, ...slots]);
      return super._goes_on();
    }
  }
  const loop = new Stepped(at, new w.Load(...run.load), rules);
  if (run.mixes) { loop.mixing(); } else { loop.taking_turns(); }
  return { states: loop.states, ttft: loop.ttft, tpot: loop.tpot };
}))"""


class Stepped(Loop):
    """A run that keeps its state before every pass."""

    def _goes_on(self) -> bool:
        if not hasattr(self, "states"):
            self.states: list[list[float]] = []
        self.states.append(_state(self))
        return super()._goes_on()


def test_the_closed_loop_goes_step_by_step_as_in_python(page: Page) -> None:
    """The state before every pass, of hundreds of loads under all kinds of rules."""
    draw = Random(11)  # noqa: S311 - not for secrets
    runs = []
    for _ in range(250):
        slots = draw.randint(1, 4)
        isl = draw.randint(1, 3000)
        runs.append({
            "load": [isl, draw.randint(1, 40), draw.randint(1, 20), draw.choice((None, draw.randint(1, 60))),
                     draw.choice((1, 1, 2.3)), draw.randint(0, isl - 1)],
            "slots": slots, "chunk": draw.choice((64, 512, 2048)), "running": draw.randint(1, 30),
            "mixes": draw.random() < 0.6, "client_us": draw.uniform(0, 5000), "hop_us": draw.uniform(0, 900),
            "bunched": draw.random() < 0.3, "times": [[draw.uniform(50, 900), draw.uniform(0, 90), draw.uniform(0, 3)]
                                                      for _ in range(slots)],
            "apart": [draw.uniform(10, 9e4), draw.uniform(10, 9e3)] if draw.random() < 0.2 else None,
        })  # fmt: skip
    found = json.loads(page.evaluate(LOOPED, runs))
    steps = 0
    for run, mine in zip(runs, found, strict=True):

        def at(decode: int, prompt: int, times: Any = run["times"]) -> list[float]:
            return [a + b * decode + c * prompt for a, b, c in times]

        isl, osl, concurrency, requests, acceptance, cached = run["load"]
        rules = Rules(run["slots"], run["chunk"], run["running"], run["mixes"], run["client_us"], run["hop_us"],
                      Apart(*run["apart"]) if run["apart"] else None, run["bunched"])  # fmt: skip
        theirs = Stepped(at, Load(isl, osl, concurrency, requests, acceptance, cached), rules)
        (theirs.mixing if rules.mixes else theirs.taking_turns)()
        assert len(mine["states"]) == len(theirs.states), run
        np.testing.assert_allclose(mine["states"], theirs.states, rtol=CLOSE, err_msg=str(run))
        np.testing.assert_allclose(mine["ttft"], theirs.ttft, rtol=1e-11)
        np.testing.assert_allclose(mine["tpot"], theirs.tpot, rtol=1e-11)
        steps += len(theirs.states)
    assert steps > 10_000


SPED = """(asked) => asked.map((one) => {
  const w = K3WhatIf;
  try {
    const question = w.question_of(w.plan_of(one), one);
    const served = w.answer(question, {});
    const steps = w.ranges_of(question, served);
    let next = steps.next();
    while (!next.done) { next = steps.next(); }
    return { served: { ...served }, ranges: next.value, terms: w.step_terms(question) };
  } catch (error) {
    if (!(error instanceof w.py.Refused)) { throw error; }
    return { refused: error.message };
  }
})"""


def test_speeds_and_their_ranges_are_those_of_python(page: Page, facts: dict[str, Any]) -> None:
    draw = Random(23)  # noqa: S311 - not for secrets
    many = []
    while len(many) < 24:
        asked = asked_at_random(draw, facts, long=False)
        if plan_of(asked, facts).plan.fits or draw.random() < 0.04:
            many.append(asked)
    table = numbers()
    served = 0
    for asked, mine in zip(many, page.evaluate(SPED, many), strict=True):
        try:
            theirs = question_of(asked, facts)
            expected = speed(theirs, table)
        except InputError as error:
            assert mine["refused"] == str(error), asked
            continue
        served += 1
        assert mine["served"] == pytest.approx(vars(answer(theirs, table)), rel=1e-11), asked
        for metric, r in (("output_tps", expected.output_tps), ("tpot_ms", expected.tpot_ms),
                          ("ttft_ms", expected.ttft_ms_mean)):  # fmt: skip
            assert mine["ranges"][metric] == pytest.approx(vars(r), rel=1e-9), (asked, metric)
        terms = {name: ms for name, ms in mine["terms"] if ms > 0}
        assert terms == pytest.approx(step_terms(theirs, table), rel=1e-9), asked
        assert max(terms, key=lambda name: terms[name]) == expected.dominant_term
    assert served >= 15


COSTED = """(asked) => asked.map((one) => {
  const w = K3WhatIf;
  const mix = w.mix_of(one);
  const found = { own: w.cost_of(one, "own", one.tps, mix), rented: {}, services: {} };
  w.rental_classes(one).forEach((way) => { found.rented[way] = w.cost_of(one, way, one.tps, mix); });
  Object.keys(w.facts.services.offers).forEach((name) => {
    found.services[name] = w.service_of(one, name, mix, false);
  });
  if (found.own) { found.even = w.break_even(found.own, found.services[one.service]); delete found.own.known; }
  Object.values(found.rented).forEach((way) => { if (way) { delete way.known; } });
  return found;
})"""


def test_costs_and_break_even_are_those_of_python(page: Page, facts: dict[str, Any]) -> None:
    draw = Random(5)  # noqa: S311 - not for secrets
    many = []
    for _ in range(40):
        asked = asked_at_random(draw, facts)
        value = draw.uniform(50, 20_000)
        prices = {item: draw.uniform(0.5, 2) * facts["prices"]["inputs"][item][1]
                  for item in ("fx.cny_per_usd", "electricity.coast", "life.server", "capital.cost",
                               "server8.h20-96", "rent.h20-96.bare_metal") if draw.random() < 0.5}  # fmt: skip
        many.append({**asked, "prices": {**prices, "utilisation": draw.uniform(0.05, 1)},
                     "tps": {"value": value, "low": value * 0.7, "high": value * 1.4},
                     "service": draw.choice(sorted(facts["services"]["offers"]))})  # fmt: skip
    for asked, mine in zip(many, page.evaluate(COSTED, many), strict=True):
        _same_costs(asked, mine, facts)


def _same_costs(asked: dict[str, Any], mine: dict[str, Any], facts: dict[str, Any]) -> None:
    from k3lib.choose.bills import POWER_FROM, may_be_had

    table = dict(current("", ""))
    for item, value in asked["prices"].items():
        if item in ("electricity.coast", "server8.h20-96", "rent.h20-96.bare_metal"):
            table[item] = table[item].model_copy(update={"low": value, "default": value, "high": value})
    chosen = {"fx.cny_per_usd": "cny_per_usd", "life.server": "life_years", "capital.cost": "capital_cost",
              "utilisation": "utilisation"}  # fmt: skip
    decided = {chosen[item]: value for item, value in asked["prices"].items() if item in chosen}
    size = facts["cards"][asked["device"]]["cards_per_node"]
    row = planned(f"{asked['nodes']}x{size}x{asked['device']}", asked["nics"])
    choice = Choice(region=POWER_FROM["cn"] if may_be_had(row, "cn") else None, **decided)
    mix = Mix("own", asked["isl"] - asked["cached"], asked["cached"], asked["osl"])
    tps = Range(asked["tps"]["value"], asked["tps"]["low"], asked["tps"]["high"])

    def same(mine: dict[str, float], theirs: Range) -> None:
        assert mine == pytest.approx(vars(theirs), rel=1e-11), asked

    held = own(row, table, choice)
    unit = unit_cost(held, tps, mix)
    same(mine["own"]["investment"], held.capex_cny)
    same(mine["own"]["month"], held.monthly_cny)
    same(mine["own"]["unit"], unit.per_mtok_output)
    same(mine["own"]["all"], unit.per_mtok_all)
    same(mine["own"]["mtok"], unit.mtok_month)
    let = rentals(row, table, choice)
    assert {way for way, one in mine["rented"].items() if one} == set(let)
    for way, rented in let.items():
        same(mine["rented"][way]["month"], rented.monthly_cny)
        same(mine["rented"][way]["unit"], unit_cost(rented, tps, mix).per_mtok_output)
    for name, one in mine["services"].items():
        same(one["unit"], api_cost_cny(mix, offers(table)[name]))
    expected = break_even(held, tps, mix, api_cost_cny(mix, offers(table)[asked["service"]]))
    same(mine["even"]["utilisation"], expected.utilisation)
    same(mine["even"]["mtok_month"], expected.mtok_month)


def test_what_the_translator_does_not_know_is_refused_by_name_and_line() -> None:
    with pytest.raises(InputError, match=r"deploy/speed.py, line \d+: 'InputError|deploy/speed.py, line \d+"):
        translate.script({deployed_speed: ("set_up",)}, {})
    with pytest.raises(InputError, match="has no 'nowhere' to translate"):
        translate.script({loop: ("nowhere",)}, {})


def test_an_equation_that_scripts_lack_stops_the_build() -> None:
    x = sp.Symbol("x", positive=True)
    for bad in (sp.erf(x), sp.Piecewise((x, x > 1)), sp.Mod(x, 3)):
        with pytest.raises(InputError, match="has no translation"):
            expressions.Function("bad", (bad,)).text()
    assert "Math.ceil" in expressions.Function("good", (sp.ceiling(x / 3),)).text()


def test_the_script_is_the_same_every_time(facts: dict[str, Any], book: Path) -> None:
    """And ends every step: a missing sign once joined two functions unseen."""
    made = translate.script(model.CHOSEN, {f"given.{name}": value for name, value in model.GIVEN.items()})
    shipped = (book / "html" / "_static" / "k3-whatif-model.js").read_text(encoding="utf-8")
    assert made in shipped and expressions.script(functions(facts)) in shipped
    assert "NaN" not in json.dumps(facts) and math.isfinite(len(shipped))


def test_the_script_rounds_cuts_and_writes_as_python_does(page: Page) -> None:
    draw = Random(3)  # noqa: S311 - not for secrets
    values = [*(draw.uniform(-1e6, 1e6) for _ in range(300)), *(k / 2 for k in range(-40, 40)), 0.0, 1e-7, 123456.5]
    specs = (",", ",.0f", ",.1f", ".2f", "g")

    def plain(text: str) -> str:
        """Nought has no sign in the script."""
        return text.removeprefix("-") if set(text) <= set("-0.") else text

    found = page.evaluate(
        """([values, specs]) => values.map((x) => [K3WhatIf.py.round(x), K3WhatIf.py.mod(x, 7),
          ...specs.map((s) => K3WhatIf.py.format(s === ',' ? Math.trunc(x) + 0 : x, s))])""",
        [values, specs],
    )
    for x, (rounded, rest, *texts) in zip(values, found, strict=True):
        assert rounded == round(x) and rest == pytest.approx(x % 7, abs=1e-9)
        assert [plain(text) for text in texts] == [plain(format(int(x) if s == "," else x, s)) for s in specs], x
    row = sorted(values)
    at = [draw.uniform(-1.2e6, 1.2e6) for _ in range(200)]
    left, right, level = page.evaluate(
        """([row, at]) => [at.map((x) => K3WhatIf.py.bisect_left(row, x)),
          at.map((x) => K3WhatIf.py.bisect_right(row, x)), K3WhatIf.py.percentile(row, 99)]""",
        [row, at],
    )
    assert left == np.searchsorted(row, at).tolist() and right == np.searchsorted(row, at, side="right").tolist()
    assert level == pytest.approx(np.percentile(row, 99), rel=CLOSE)
