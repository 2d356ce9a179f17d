"""Speeds and terms as the book shows them."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import pytest

from k3lib.calibrate.predict import asked_of, numbers, speed
from k3lib.calibrate.spread import spreads
from k3lib.deploy.setup import constants
from k3lib.deploy.speed import Question, answer, step_terms
from k3lib.errors import InputError
from k3lib.facts import named
from k3lib.facts.catalog import sources
from k3lib.models.model import Model, load_model
from k3lib.report import labels
from k3lib.report import movers as mv
from k3lib.report import speeds as sd
from k3lib.report import terms as tm

BASE = dict(cards=32, cards_per_node=8, device="h20-96", layout="tp8,pp4", engine="vllm")


@lru_cache(maxsize=1)
def k3() -> Model:
    return load_model("kimi-k3")


def main(**changed: object) -> sd.Main:
    return sd.main_plan(k3(), **{**BASE, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize("load", ["1k-1k", "8k-1k"])
def test_the_scenarios_plan_is_the_named_one(load: str) -> None:
    own, row = main(), named.load(load)
    assert own.reason == ""
    assert sd.beside(own, sd.FALLBACK) == ()
    assert sd.beside(own, "h200x32-tp8pp4") == ("h200x32-tp8pp4",)
    mine = speed(sd.ask(own.plan, own.options, row.isl, row.osl, 32))
    assert mine == speed(asked_of(sd.FALLBACK, load, 32, k3()))


@pytest.mark.parametrize(
    "changed",
    [dict(device="h20-141"), dict(engine="sglang"), dict(cards=64), dict(device="b300", cards=8, layout="tp8")],
)
def test_other_scenarios_have_a_speed(changed: dict[str, object]) -> None:
    own = main(**changed)
    assert own.reason == ""
    (point,) = sd.sweep(own.plan, own.options, "1k-1k", [8])
    assert point.speed is not None and point.speed.output_tps.value > 0


def test_a_scenario_without_a_speed_falls_back_and_says_why() -> None:
    own = main(cards=8, layout="tp8")
    assert "does not fit" in own.reason
    assert str(own.plan.layout) == named.plans()[sd.FALLBACK].layout
    with pytest.raises(InputError, match="servers"):
        main(cards=12)


def test_a_load_that_does_not_fit_has_a_reason_and_no_speed() -> None:
    own = main()
    point = sd.point(lambda: sd.ask(own.plan, own.options, 40_000_000, 1000, 1), 1)
    assert point.speed is None and point.asked is None and "fit" in point.reason
    assert sd.publish("speed.test.c1", point) == {}


def test_what_is_published_has_its_range_and_its_sources() -> None:
    (point,) = sd.sweep(main().plan, main().options, "1k-1k", [32])
    basis = sd.publish_basis("speed.test", [sd.Point(1, None, None, "no"), point])
    assert basis is not None and basis.key == "speed.test.basis"
    kept = sd.publish("speed.test.c32", point, basis)
    assert set(kept) == {"output_tps", "tpot_ms", "ttft_ms"}
    assert set(sd.publish("speed.test.c32", point)["tpot_ms"].sources) == set(basis.sources)
    for result in kept.values():
        assert basis.key in result.inputs and set(result.sources) < set(basis.sources)
        assert result.low is not None and result.high is not None and result.low < result.value < result.high
        assert {"k3_config", "aic_h20_k3", "mm_h200_runs"} <= set(result.sources) <= set(sources())


def test_a_kernel_that_is_guessed_may_be_no_faster() -> None:
    fast, slow = (
        [sd.point(lambda n=n, name=name: asked_of(name, "1k-1k", n, k3()), n) for n in (8, 64)]  # type: ignore[misc]
        for name in ("h20x32-tp8pp4-humming", "h20x32-tp8pp4")
    )
    for wide, mine, other in zip(sd.hedged(fast, slow), fast, slow, strict=True):
        assert wide.speed and mine.speed and other.speed
        assert wide.speed.output_tps.value == mine.speed.output_tps.value
        assert wide.speed.output_tps.low <= other.speed.output_tps.low
        assert wide.speed.tpot_ms.high >= other.speed.tpot_ms.high
        assert wide.speed.output_tps.high == mine.speed.output_tps.high


def test_movers_are_the_spread_of_the_prediction() -> None:
    asked = asked_of("h20x32-tp8pp4", "1k-1k", 16, k3())
    found = mv.movers(asked, "tpot_ms")
    assert math.isclose(sum(m.share for m in found), 1)
    assert [m.share for m in found] == sorted((m.share for m in found), reverse=True)
    whole = math.sqrt(sum(math.log(m.factor) ** 2 for m in found))
    assert math.isclose(whole, spreads(asked, numbers())["tpot_ms"])
    assert all(m.words for m in found)


def test_two_measured_loads_that_agree_narrow_the_range_and_keep_the_value() -> None:
    asked = [asked_of("h20x32-tp8pp4", "1k-1k", n, k3()) for n in (1, 16)]
    after = mv.told(asked)
    for one, share in zip(asked, (0.7, 0.95), strict=True):  # at 16 clients most comes from how slots fill
        assert mv.half_width(one, "tpot_ms", after) < share * mv.half_width(one, "tpot_ms", numbers())
        assert math.isclose(answer(one, after).tpot_ms, answer(one, numbers()).tpot_ms, rel_tol=0.02)


def test_the_most_clients_within_a_limit() -> None:
    def make(n: int) -> Question:
        return asked_of("h20x32-tp8pp4", "1k-1k", n, k3())

    most = sd.most_clients(make, 50.0, sure=False)
    assert answer(make(most), numbers()).tpot_ms <= 50 < answer(make(most + 1), numbers()).tpot_ms
    assert sd.most_clients(make, 50.0, sure=True) < most
    assert sd.most_clients(make, 1.0, sure=False) == 0


def test_labels_are_moved_apart_and_keep_their_order() -> None:
    places = {"a": 0.0, "b": 0.1, "c": 0.15, "d": 5.0}
    moved = labels.apart(places, 1.0)
    assert sorted(moved, key=lambda n: moved[n]) == ["a", "b", "c", "d"]
    values = sorted(moved.values())
    assert all(b - a >= 1 - 1e-9 for a, b in itertools.pairwise(values))
    assert moved["d"] == 5.0
    assert labels.apart({}, 1.0) == {}


def test_a_measured_run_stands_beside_its_prediction() -> None:
    runs = mv.tried("4x8xh200 tp8,pp4 sglang marlin", "h200-sglang-tp8pp4-")
    assert [r.clients for r in runs] == sorted(r.clients for r in runs) and len(runs) > 5
    for run in runs:
        assert set(run.measured) == set(mv.METRICS)
        assert all(r.low < r.value < r.high for r in run.predicted.values())


@pytest.mark.parametrize("name", ["h20x32-tp8pp4", "b300x8-tp8"])
def test_the_parts_of_a_step_add_up(name: str) -> None:
    asked = asked_of(name, "1k-1k", 32, k3())
    total, parts = tm.step_parts(asked)
    assert set(parts) == set(step_terms(asked, numbers()))
    assert math.isclose(sum(p.share.value for p in parts.values()), 1)
    assert math.isclose(sum(p.ms.value for p in parts.values()), total.value)
    for part in parts.values():
        assert part.ms.low <= part.ms.value <= part.ms.high
        assert 0 <= part.share.low <= part.share.value <= part.share.high <= 1
    assert set(parts) <= set(tm.TERM_COLOURS)


def test_attention_on_h20_is_computed_for_a_block_of_heads() -> None:
    asked = asked_of("h20x32-tp8pp4", "1k-1k", 1, k3())
    block = constants(asked.setup, numbers())["head_block"]
    at = tm.attention_ms(asked, 1e6)
    assert math.isclose(tm.attention_ms(asked, 2e6).value, 2 * at.value)
    assert at.value > 2 * tm.attention_ms(asked, 1e6, 1).value
    assert math.isclose(tm.attention_ms(asked, 1e6, round(block)).value, at.value)
    assert at.low < at.value < at.high


def test_weights_by_hand_and_a_faster_memory() -> None:
    asked = asked_of("h20x32-tp8pp4", "1k-1k", 1, k3())
    hand = tm.by_hand(asked)
    assert hand.ms < step_terms(asked, numbers())["dense weights"]
    quick = tm.pass_parts(tm.faster_memory(asked, 2.0), 1, 0)
    slow = tm.pass_parts(asked, 1, 0)
    assert math.isclose(2 * quick["KDA"], slow["KDA"])
    assert quick["experts"] == slow["experts"]
    assert tm.pass_ms(asked, 1, 0).value == pytest.approx(sum(slow.values()))


def test_equations_in_short_have_no_points_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    from k3lib.account import passes as eq

    tm.in_short("D_{card}", eq.busiest_card_experts())
    tm.in_short("T", eq.tokens_per_expert())
    tm.even_routing("D")
    tm.attention_equations()
    text = capsys.readouterr().out
    assert "sigma" not in text and "D" in text and "0.406" not in text
