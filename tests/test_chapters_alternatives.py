"""The chapter on alternatives: verdicts by rules, what is known of answers, other ways to run, offers of hosts."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import run_notebook

from k3lib.calibrate.predict import Range
from k3lib.choose import alternatives as ch
from k3lib.choose import hosted
from k3lib.choose import ways as wy
from k3lib.cost.api import offer
from k3lib.deploy import variants as var
from k3lib.deploy.caches import Settings
from k3lib.deploy.load import Load
from k3lib.deploy.offload import Verdict
from k3lib.engines.layout import Layout, parse_cluster
from k3lib.errors import InputError
from k3lib.facts import variants as facts
from k3lib.facts.paths import DATA
from k3lib.facts.prices import Price, price, prices
from k3lib.facts.workloads import workload, workloads
from k3lib.models.model import load_model
from k3lib.report import alternatives as ra
from k3lib.report.trail import in_prose
from k3lib.results import Result, collect

K3 = load_model("kimi-k3")


def place(cluster: str = "4x8xh20-96", engine: str = "vllm") -> ch.Place:
    settings = Settings(max_num_seqs=512)
    return ch.Place(K3, parse_cluster(cluster), engine, settings, 1000, 1000, (1, 32))


PLAN = place()


# What is known of answers


@pytest.mark.parametrize(
    ("name", "level"),
    [("mxfp4", "released"), ("bf16", "released"), ("fp8", "none"), ("nvfp4", "task"), ("w4a16-rtn", "proxy"),
     ("gguf-q2", "proxy"), ("gguf-q1", "none"), ("reap-448", "kin"), ("reap-256", "none"), ("reap-242", "proxy")],
)  # fmt: skip
def test_how_much_is_known_of_answers(name: str, level: str) -> None:
    assert ch.answers(name).level == level


def test_other_models_count_only_where_they_lost_as_much() -> None:
    assert {q.kept_pct for q in ch.answers("reap-448").kin} == {50}
    assert not ch.answers("reap-256").kin and not ch.answers("nvfp4").kin
    for q in ch.pruned_kin():
        assert (q.method, q.nature) == ("REAP", "task") and q.baseline and q.model != "kimi-k3"
    assert len(ch.pruned_kin("frequency")) == 32


def test_no_task_is_known_of_a_pruned_k3() -> None:
    rows = [q for q in facts.quality() if q.kind == "pruning" and q.model == "kimi-k3"]
    assert len(rows) == 9 and all(q.nature == "proxy" for q in rows)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("GPQA-Diamond,task,,,0.939", "GPQA-Diamond,tasks,,,0.939", ["nature", "task"]),
        ("GPQA-Diamond,task,,,0.939", "GPQA-Diamond,task,REAP,,0.939", ["method 'REAP'", "kind format"]),
        ("proxy,REAP,75,93.03", "proxy,,75,93.03", ["method ''", "kind pruning"]),
        ("proxy,REAP,75,93.03", "proxy,REAP,175,93.03", ["kept_pct 175", "at most 100"]),
        ("proxy,REAP,75,93.03", "proxy,REAP,0,93.03", ["kept_pct 0"]),
        ("GPQA-Diamond,task,,,0.939", "GPQA-Diamond,task,,50,0.939", ["kept_pct 50", "pruned models only"]),
    ],
)
def test_a_bad_row_of_quality_is_named(old: str, new: str, words: list[str], tmp_path: Path) -> None:
    for name in ("variants.csv", "quality.csv", "sources.csv"):
        shutil.copy(DATA / name, tmp_path / name)
    text = (tmp_path / "quality.csv").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / "quality.csv").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=r"quality\.csv") as caught:
        facts.quality(tmp_path)
    assert all(word in str(caught.value) for word in words), caught.value


# Verdicts


@pytest.mark.parametrize(
    ("cards", "saved", "level", "words"),
    [
        (None, 0, "released", "does not fit"),
        (40, 0, "none", "does not fit"),
        (32, 0, "released", "fits"),
        (24, 0, "released", "fits, 8 cards fewer"),
        (24, 0, "task", "fits, saves no card"),
        (16, 8, "task", "saves 8 cards"),
        (16, 8, "kin", "saves 8 cards, unproven"),
        (8, 16, "proxy", "saves 16 cards, unproven"),
        (8, 16, "none", "saves 16 cards, no evidence"),
    ],
)
def test_a_verdict_follows_from_rules(cards: int | None, saved: int, level: ch.Level, words: str) -> None:
    assert ch.verdict(cards, 32, saved, level) == words


@pytest.mark.parametrize(
    ("name", "cards", "saved", "bound"),
    [("mxfp4", 24, 0, False), ("bf16", 72, 0, False), ("fp8", 40, 0, False), ("nvfp4", 24, 0, False),
     ("gguf-q2", 16, 8, True), ("gguf-iq2", 8, 16, True), ("reap-448", 16, 8, False), ("reap-256", 8, 16, False)],
)  # fmt: skip
def test_what_a_form_needs(name: str, cards: int, saved: int, bound: bool) -> None:
    need = ch.variant_need(PLAN, name)
    assert (need.cards, need.saved, need.bound) == (cards, saved, bound)
    known = var.model_of(facts.variant(name)) is not None
    assert (need.one is not None, need.many is not None) == (known, known)
    if need.one and need.many:
        assert need.one.low < need.one.value < need.one.high < need.many.value
        assert need.layout == f"tp8,pp{cards // 8}" if cards > 8 else "tp8"


def test_speeds_without_a_measured_kernel_are_marked() -> None:
    assert ch.variant_need(PLAN, "mxfp4").speed == ch.variant_need(PLAN, "nvfp4").speed == ch.PREDICTED
    assert ch.variant_need(PLAN, "fp8").speed == ch.device_need(PLAN, "l20", "").speed == ch.BY_LIMITS
    assert ch.variant_need(PLAN, "gguf-q2").speed == ch.NOT_KNOWN


def test_three_bits_are_no_file() -> None:
    need = ch.bits_need(PLAN, 3, "3 bits a weight")
    assert (need.cards, need.verdict, need.one) == (16, "no such file", None)
    bits = [var.size(n).bits_per_weight for n, row in facts.variants().items() if row.kind != "pruned"]
    assert not [b for b in bits if 2.6 < b < 3.9]


def test_other_cards_are_counted_in_their_own() -> None:
    large = ch.device_need(PLAN, "h20-141", "")
    assert (large.cards, large.verdict, large.saved, large.layout) == (16, "fits 16 cards", 0, "tp8,pp2")
    none = ch.device_need(replace(PLAN, settings=Settings(utilisation=0.05)), "h20-141", "")
    assert (none.cards, none.verdict, none.one) == (None, "does not fit", None)


def test_a_plan_that_does_not_fit_has_no_speed() -> None:
    fits, not_ = ch.plan_need(PLAN, "tp8,pp4"), ch.plan_need(place("1x8xh20-96"), "tp8")
    assert fits.verdict == "the plan" and fits.one and fits.one.value == pytest.approx(47.07, abs=0.01)
    assert not_.one is None and "does not fit" in not_.verdict
    assert ch.plan_need(PLAN, "tp3").one is None


# Other ways to run


def verdict_of(low: int, high: int, fits_host: bool = True) -> Verdict:
    return Verdict(50.0, low, low, high, False, fits_host)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(0, 16, "offline only"), (4, 32, "open, 4 to 32 in time"), (18, 64, "18 to 64 in time")],
)
def test_a_service_needs_both_ends_of_the_range(low: int, high: int, words: str) -> None:
    found = wy.in_memory(PLAN, 1, 1024, "mxfp4", (1,), 50.0, 18)
    made = replace(found, verdicts=dict.fromkeys(found.verdicts, verdict_of(low, high)))
    assert wy.in_memory_verdict(made, 18) == words
    assert wy.in_memory_verdict(replace(made, verdicts=dict.fromkeys(found.verdicts, verdict_of(0, 0, False))), 18) == (
        "does not fit its memory"
    )


def test_one_server_with_main_memory_is_for_work_that_waits() -> None:
    clients = (1, 4, 18, 32)
    found = {n: wy.in_memory(PLAN, n, gib, "mxfp4", clients, 50.0, 18) for n, gib in ((1, 1024), (2, 512), (3, 512))}
    assert [wy.in_memory_verdict(found[n], 18) for n in (1, 2, 3)] == ["offline only"] * 2 + ["needs no main memory"]
    one, two, three = (wy.in_memory_need(PLAN, found[n], 18) for n in (1, 2, 3))
    assert (one.cards, two.cards, three.cards) == (8, 16, 24)
    assert one.many and two.many and one.many.value < two.many.value
    assert three.many is None and (one.speed, three.speed) == (ch.BY_HOST, ch.NOT_KNOWN)
    assert found[1].best == "copied"
    small = wy.in_memory(PLAN, 1, 256, "mxfp4", clients, 50.0, 18)
    assert wy.in_memory_verdict(small, 18) == "does not fit its memory"
    assert wy.in_memory_need(PLAN, small, 18).one is None
    assert "does not know this form" in wy.in_memory(PLAN, 1, 256, "gguf-q2", clients, 50.0, 18).reason


def test_halves_take_the_memory_twice() -> None:
    load = Load(8000, 1000, 2)
    found = {one.key: one.found for one in wy.halves(PLAN, "l20", "h20-141", load)}
    assert list(found) == ["halved", "twice", "prompts", "tokens"]
    assert found["halved"].output_tps is None and found["halved"].cards == 32
    assert [found[key].cards for key in ("twice", "prompts", "tokens")] == [48, 72, 40]
    assert "tokens" not in {one.key for one in wy.halves(place("3x8xh20-141"), "l20", "h20-141", load)}
    need = wy.halves_need(PLAN)
    assert (need.cards, need.verdict) == (48, "does not fit") and need.many


@pytest.mark.parametrize(
    ("with_draft", "plan", "words"),
    [((60, 900), (50, 700), "faster than the plan"), ((40, 600), (50, 700), "slower than the plan"),
     ((60, 600), (50, 700), "faster for few clients only"), ((40, 900), (50, 700), "faster for many clients only"),
     ((None, None), (50, 700), "does not fit without stages"), ((60, 900), (None, None), "the plan has no speed")],
)  # fmt: skip
def test_a_draft_is_judged_for_few_and_for_many(with_draft: Any, plan: Any, words: str) -> None:
    one, other = ([None if x is None else Range(x, x, x) for x in values] for values in (with_draft, plan))
    assert wy.draft_verdict(one, other).endswith(words)


def test_a_draft_needs_a_layout_without_stages() -> None:
    layout = wy.draft_layout(PLAN, 7, 2.28)
    assert layout and layout.pp == 1
    plan = ch.plan_need(PLAN, "tp8,pp4")
    gains = [wy.draft_need(PLAN, layout, 7, tokens, plan).many for tokens in (1.18, 2.28, 4.73)]
    values = [at.value for at in gains if at]
    assert len(values) == 3 and values == sorted(values)
    assert wy.draft_layout(place("3x8xh20-96"), 7, 2.28) is None
    assert wy.draft_need(PLAN, None, 7, 2.28, plan).verdict == "does not fit without stages"
    assert wy.drafted(PLAN, Layout(tp=8, pp=4), 7, 2.28, 1) is None


@pytest.mark.parametrize(
    ("cluster", "engine", "words"),
    [("4x8xh20-96", "vllm", "holds 39 of 93 layers"), ("4x8xh20-96", "sglang", "holds 38 of 93 layers"),
     ("1x8xb300", "vllm", "holds the whole model"), ("1x1xl20", "vllm", "does not fit")],
)  # fmt: skip
def test_a_pilot_on_one_server(cluster: str, engine: str, words: str) -> None:
    found = wy.one_server(place(cluster, engine))
    assert wy.pilot_verdict(found) == words
    assert wy.pilot_need(place(cluster, engine), found).answers == ("released" if "whole" in words else "none")


# Offers of hosts


def test_offers_have_a_price_for_input_and_one_for_output() -> None:
    found = hosted.own_lists()
    assert len(found) == 16 and len({(o.model, o.host) for o in found}) == 16
    assert {o.host for o in found} <= set(ra.HOSTS) and {o.model for o in found} <= set(ra.MODELS)
    assert not offer("k3", "baseten").cache_listed
    assert hosted.as_of(offer("k3", "moonshot-cn")) == "2026-11-01"


def test_a_request_costs_what_is_read_cached_and_generated() -> None:
    chat, home = workload("online-chat"), offer("k3", "moonshot-cn")
    by_hand = (chat.uncached * 20 + chat.cached * 2 + chat.osl * 100) / 1e6
    found = hosted.charge(home, chat)
    assert found.value == pytest.approx(by_hand, rel=1e-4) and found.currency == "CNY"
    assert found.low == pytest.approx((6909 * (0.44 * 20 + 0.56 * 2) + 211 * 100) / 1e6)
    assert found.high == pytest.approx((27367 * (0.63 * 20 + 0.37 * 2) + (597 + 25700) * 100) / 1e6)
    all_read = hosted.charge(offer("k3", "baseten"), chat)
    assert all_read.value == pytest.approx((chat.isl * 3 + chat.osl * 15) / 1e6)
    for load in workloads().values():
        at = hosted.charge(home, load)
        assert 0 < at.low <= at.value <= at.high


def changed(item: str, **fields: object) -> dict[str, Price]:
    return {**prices(), item: price(item).model_copy(update=fields)}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: offer("k3", "moonshot-ch"), "Did you mean 'k3@moonshot-cn'"),
        (lambda: ch.answers("mxfp5"), "Did you mean 'mxfp4'"),
        (lambda: ch.variant_need(PLAN, "reap-241"), "Did you mean 'reap-242'"),
        (lambda: ch.device_need(PLAN, "l21", ""), "l21"),
        (lambda: hosted.own_lists({k: v for k, v in prices().items() if k != "api.k3.novita.output"}),
         "item 'api.k3.novita.output' is not in data/prices.csv"),
        (lambda: hosted.own_lists(changed("api.k3.novita.cached", unit="CNY/Mtok", currency="CNY")), "different units"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        call()


# What a reader sees


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a notebook displays."""
    found: list[Any] = []
    monkeypatch.setattr("IPython.display.display", lambda data, **_: found.append(data))
    monkeypatch.setattr("k3lib.report.terms.display", lambda data, **_: found.append(data))
    return found


def test_a_line_of_the_overview(shown: list[Any]) -> None:
    line = ra.need_row(ch.variant_need(PLAN, "fp8"), K3, "vllm", (1, 32))
    assert line[:3] == ["FP8 in blocks", "does not fit", "not measured"]
    assert "40" in line[3] and line[4].startswith("*\u00a0<a") and "<small>" in line[5]
    bound = ra.need_row(ch.variant_need(PLAN, "gguf-q2"), K3, "vllm", (1, 32))
    assert bound[3].startswith("\u2265") and bound[4:] == [ra.DASH, ra.DASH]
    assert ra.need_row(wy.hosted_need(PLAN), K3, "vllm", (1, 32))[3] == ra.DASH


def test_sizes_say_how_they_are_known(shown: list[Any]) -> None:
    assert ra.size_label("bf16").endswith("(computed)") and ra.size_label("reap-448").endswith("(estimate)")
    assert ra.size_label("nvfp4") == "NVFP4"
    assert "\u22120.3</a>" in ra.size_cells("gguf-q8")[2]  # not a zero with a sign
    assert len(ra.measured_rows("nvfp4")) == 2 and ra.measured_rows("gguf-q1") == []


def test_the_equations_are_short_enough_to_read(shown: list[Any]) -> None:
    ra.memory_equations()
    texts = [data["text/latex"] for data in shown]
    assert len(texts) == 4 and all(len(text) < 400 for text in texts)
    assert texts[0].count("operatorname{erf}") == 1 and r"\int" in texts[1]
    assert "M" in texts[2] and "(1 - h)" in texts[3].replace("\\left", "").replace("\\right", "")


VAL = re.compile(r"\{val\}`(?P<key>[^\s:`]+)(?: in (?P<unit>[^:`]+?))?(?::(?P<spec>[^`]+))?`")


def test_every_sentence_holds_where_nothing_fits(tmp_path: Path) -> None:
    notebook = run_notebook("the-alternatives", tmp_path, cards=8, layout="tp8", engine="sglang")
    results: dict[str, Result] = {r.key: r for r in collect("the-alternatives", notebook)}
    captions = [c["metadata"].get("mystnb", {}).get("figure", {}).get("caption", "") for c in notebook["cells"]]
    prose = [c["source"] for c in notebook["cells"] if c["cell_type"] == "markdown"]
    found = [match for text in [*prose, *captions] for match in VAL.finditer(text)]
    assert len(found) > 50
    for match in found:
        assert in_prose(results[match["key"]], match["unit"], match["spec"] or ""), match
    assert json.dumps([r.value for r in results.values()]).count("NaN") == 0
