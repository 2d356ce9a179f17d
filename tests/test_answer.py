"""The answer page: every way counted beside the others, its sentences, its figure, the state of the facts behind it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup
from conftest import changed_data
from test_recommend import LARGE, LOADS, SMALL, case, money, small_world

from k3lib.choose import waived as wv
from k3lib.choose.recommend import DAYS_PER_MONTH, advise, decide, output_of_mix
from k3lib.choose.scene import Scene
from k3lib.facts import version
from k3lib.facts.clusters import cluster
from k3lib.facts.decisions import Decision
from k3lib.models.model import load_model
from k3lib.ranges import Range
from k3lib.report import answer as an
from k3lib.report import answer_figure as fig
from k3lib.report import cluster_drawing as cd
from k3lib.report import show
from k3lib.report.ranks import ranks
from k3lib.report.shown_page import outputs

SCENE = Scene(cluster(SMALL), cluster(LARGE), LOADS, load_model("kimi-k3"), "vllm", "mxfp4")
CLUSTERS = {c.cluster_id: c for c in SCENE.clusters}


def ways(**changed: object) -> dict[str, wv.Counted]:
    return {str(one.option): one for one in wv.counted(case(**changed), small_world(), SCENE)}


def test_ways_that_serve_come_first_with_the_money_of_the_ranking() -> None:
    found = ways(data_stays="no")
    ranked = decide(case(data_stays="no"), small_world()).ranked
    assert list(found)[: len(ranked)] == [str(one.option) for one in ranked]
    for one in ranked:
        assert found[str(one.option)].ranked == one
        assert found[str(one.option)].refused is None


def test_a_way_that_a_rule_leaves_out_is_counted_as_if_the_rule_were_waived() -> None:
    found = ways()
    service = found["api:k3@moonshot-cn"]
    assert service.refused and service.refused.rule == "data"
    free = {str(one.option): one for one in decide(case(data_stays="no"), small_world()).ranked}
    assert service.ranked == free["api:k3@moonshot-cn"]
    assert service.output_tps is None and service.left_gib is None and service.confidence == "high"
    assert "api:k3@moonshot" not in found  # another region's


def test_goals_and_budget_are_waived_one_after_the_other() -> None:
    found = ways(mix="online-chat:100", budget_cny=1e6)
    own = found[f"own:{SMALL}"]
    assert own.refused and own.refused.rule == "goals"
    assert own.ranked and own.ranked.invest_cny.value > 1e6
    assert own.world.goals is False and own.case.budget_cny == float("inf")


def test_a_cluster_without_a_price_is_not_counted() -> None:
    world = small_world(owned={(SMALL, "cn"): money(6e6, 2e5)})
    found = {str(one.option): one for one in wv.counted(case(), world, SCENE)}
    assert found[f"own:{LARGE}"].ranked is None
    refused = found[f"own:{LARGE}"].refused
    assert refused and refused.rule == "price"


def test_output_of_a_mix_takes_each_part_at_its_own_speed() -> None:
    mixed = case(mix="offline-batch:60;online-chat:40")
    value = output_of_mix(mixed, LARGE, small_world(), lambda seen: seen.output_tps.value)
    assert value == pytest.approx(1 / (0.6 / 5000 + 0.4 / 4000), rel=1e-12)
    found = {str(one.option): one for one in wv.counted(mixed, small_world(), SCENE)}[f"own:{LARGE}"]
    assert found.output_tps == Range(value, pytest.approx(value / 2), pytest.approx(value * 2))  # type: ignore[arg-type]


def test_costs_by_volume_are_those_of_the_ranking_and_forget_the_budget() -> None:
    one = ways(budget_cny=7e6)[f"own:{SMALL}"]
    volumes = np.array([10.0, 1000.0])
    low, value, high = wv.cost_by_volume(one, volumes)
    assert one.ranked and value[0] == one.ranked.cny_per_mtok.value
    assert (low < value).all() and (value < high).all()
    assert not np.isnan(value[1])


def said(situation: Decision) -> tuple[str, str, str]:
    world = small_world()
    advice = advise(situation, world)
    found = wv.counted(situation, world, SCENE)
    return (an.choice_sentence(advice, CLUSTERS), an.margin_sentence(advice, CLUSTERS),
            an.others_sentence(found, advice, SCENE))  # fmt: skip


def test_the_sentences_name_the_choice_the_margin_and_what_was_not_chosen() -> None:
    first, second, third = said(case())
    assert first.startswith("Buy 32 H20 96 GB (needs an export licence): that does the scenario's work for ")
    assert "and takes 6.00 million yuan at once." in first
    assert second == ("That is 60% less than the runner-up, which is to buy 64 Ascend 910C; the ranges overlap, so a "
                      "quote decides.")  # fmt: skip
    assert "buy 64 Ascend 910C (0.50 million yuan a month)" in third
    assert "call Kimi K3 at Moonshot in China (texts would leave the house; else " in third
    assert "32 H20" not in third


def test_the_sentences_of_a_service_and_of_no_way_at_all() -> None:
    first, _, third = said(case(data_stays="no", mtok_per_day=0.1))
    assert first.startswith("Call Kimi K3 at Moonshot in China: ") and first.endswith("takes nothing at once.")
    assert "call Kimi" not in third and "buy 32 H20 96 GB" in third
    first, second, _ = said(case(budget_cny=1.0))
    assert first.startswith("Nothing that is known does the scenario's work: ")
    assert second == "A rule must give way before anything serves."


def test_the_short_table_has_the_choice_the_runner_up_the_plan_and_the_services() -> None:
    found = wv.counted(case(), small_world(), SCENE)
    names = [str(one.option) for one in wv.shortlist(found, SCENE)]
    assert names == [f"own:{SMALL}", f"own:{LARGE}", "api:k3@moonshot-cn", f"rent:{SMALL}"]


def test_the_crossing_is_where_the_cheapest_way_meets_the_service() -> None:
    found = wv.counted(case(), small_world(), SCENE)
    volumes = np.geomspace(1, 1000, 2000)
    crossed = fig.crossing(found, volumes)
    asked = wv.cost_by_volume(an.cheapest(found, "api")[0], volumes)[1][0]
    assert crossed
    assert crossed[0] == pytest.approx(2e5 / asked / DAYS_PER_MONTH, rel=0.01)
    assert str(crossed[1].option) == f"own:{SMALL}"
    assert "it costs less to buy 32 H20 96 GB" in fig.crossing_sentence(crossed, found, CLUSTERS, volumes[-1])
    assert fig.crossing(found, volumes[:10]) is None
    assert fig.crossing_sentence(None, found, CLUSTERS, 9.0).startswith("Up to 9 million tokens a day none")


def test_the_figure_draws_refused_ways_dashed() -> None:
    world = small_world()
    advice = advise(case(), world)
    found = wv.counted(case(), world, SCENE)
    drawn, axis = show.axes(3.8)
    fig.draw(axis, found, advice, SCENE, np.geomspace(1, 100, 30))
    shown = [" ".join(text.get_text().split()) for text in axis.texts if not text.get_text().isdigit()]
    assert shown == ["32 H20 96 GB", "64 Ascend 910C", "Kimi K3 at Moonshot in China"]
    assert [line.get_linestyle() for line in axis.lines[: len(shown)]] == ["-", "-", "--"]
    show.plt.close(drawn)


def test_what_is_open_names_the_evidence_of_each_and_the_width_of_the_ranges() -> None:
    world = small_world()
    told = an.unknown(advise(case(), world), wv.counted(case(), world, SCENE), SCENE)
    assert told[0].startswith("32 H20 96 GB: K3 measured on a card of its kind.")
    assert any("the cost of a month grows 4.0 times, the output 4.0 times" in one or
               "the output grows 4.0 times, the cost of a month 4.0 times" in one for one in told)  # fmt: skip


def test_the_version_of_the_facts_changes_with_any_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = version.version()
    assert len(before) == version.DIGITS
    assert version.version() == before
    assert version.newest() >= "2026-11-09"
    monkeypatch.setattr(version, "DATA", changed_data(tmp_path, "sources.csv", ",2026-11-09,", ",2027-01-02,"))
    assert version.version() != before
    assert version.newest() == "2027-01-02"


@pytest.mark.parametrize(("engine", "layout"), [("vllm", "tp8,pp4,ep8"), ("vllm", "tp4,pp4,dp2"), ("vllm", "tp8,pp2"),
                                                ("sglang", "tp8,pp4"), ("sglang", "tp16,pp2,dp2")])  # fmt: skip
def test_every_card_has_one_place_and_groups_lie_together(engine: str, layout: str) -> None:
    plan = wv.plan_on(cluster(SMALL), LOADS["offline-batch"], layout, SCENE.model, engine)
    found = ranks(plan)
    width = plan.engine.attention_tp(plan.layout)
    groups: dict[tuple[int, int], list[int]] = {}
    for rank in found:
        groups.setdefault((rank.copy, rank.stage), []).append(rank.card)
    assert set(groups) == {(copy, stage) for copy in range(plan.copies) for stage in range(plan.layout.pp)}
    for cards in groups.values():
        assert cards == list(range(cards[0], cards[0] + width))
    assert [rank.card for rank in found] == list(range(32))
    if engine == "sglang":  # all copies of a stage come before the next stage
        assert [rank.stage for rank in found] == sorted(rank.stage for rank in found)


def test_the_picture_of_a_plan_names_each_card_and_each_stage() -> None:
    plan = wv.plan_on(cluster(SMALL), LOADS["offline-batch"], "tp4,pp4,dp2", SCENE.model, "vllm")
    drawn = cd.draw(plan, cluster(SMALL))
    above, below = drawn.axes
    names = [text.get_text() for text in above.texts]
    for name in ("A0", "A3", "B0", "B3"):
        assert names.count(name) == 4
    assert {"server 1", "server 4", "8 × 400 Gb/s a server"} <= set(names)
    assert [label.get_text() for label in below.get_yticklabels()][-1].startswith("stage 3, layers ")
    assert sum(bar.get_width() for bar in below.patches) == pytest.approx(
        4 * plan.capacity * plan.utilisation / 1024**3, rel=1e-9)  # fmt: skip
    show.plt.close(drawn)


def test_many_servers_are_cut_and_a_domain_is_one_frame() -> None:
    row = cluster("gb200-nvl72-64")
    plan = wv.plan_on(row, LOADS["offline-batch"], "tp8,dp8,ep64", SCENE.model, "vllm")
    drawn = cd.draw(plan, row)
    names = [text.get_text() for text in drawn.axes[0].texts]
    assert "servers 1 to 2" in names and "one domain of 64 cards" in names
    show.plt.close(drawn)
    assert cd.letters(0) == "A" and cd.letters(25) == "Z" and cd.letters(26) == "AA" and cd.letters(52) == "BA"


def test_layouts_that_the_engine_refuses_are_not_drawn() -> None:
    found = cd.plans(cluster(SMALL), LOADS["offline-batch"], ("tp8,pp4,ep8", "tp7"), SCENE.model, "vllm")
    assert list(found) == ["tp8,pp4,ep8"]
    assert "one part in 8" in cd.words(found["tp8,pp4,ep8"])


def test_what_a_notebook_showed_is_found_by_its_tag() -> None:
    made = {"cells": [{"metadata": {"tags": ["a"]}, "outputs": [{"data": {"text/html": ["<p>", "x</p>"]}}, {}]},
                      {"metadata": {}, "outputs": [{"data": {"text/html": "<p>y</p>"}}]}]}  # fmt: skip
    assert outputs(made, "a") == [{"text/html": "<p>x</p>"}]
    assert outputs(made, "b") == []


def test_the_first_page_holds_the_answer(book: Path) -> None:
    page = BeautifulSoup((book / "html" / "index.html").read_text(encoding="utf-8"), "html.parser")
    results = json.loads((book / "results.json").read_text(encoding="utf-8"))
    text = page.get_text().replace("\u2019", "'")
    for key in ("sentence1", "sentence2", "sentence3", "work", "crossing"):
        assert results[f"answer.{key}"]["value"] in text, key
    for key in ("scenario.data_newest", "scenario.data_version", "scenario.name"):
        assert page.select_one(f'a.k3-number[data-key="{key}"]'), key
    rows = page.select(".k3-options tbody tr")
    verdicts = [str(row.find("small").get_text()) for row in rows]  # type: ignore[union-attr]
    assert verdicts[0].startswith("the choice") and any(one.startswith("runner-up") for one in verdicts)
    assert len(rows) >= 6
    figure = page.select_one(".k3-figure img")
    assert figure and figure["alt"] and str(figure["src"]).endswith(".svg")
    assert len(page.select(".k3-changes tbody tr")) >= 1
    assert len(page.select(".k3-unknown li")) >= 4
    doors = page.select(".k3-door")
    assert [door.p.get_text() for door in doors] == ["I decide", "I build", "I train"]  # type: ignore[union-attr]
    assert all(3 <= len(door.select("li")) <= 5 for door in doors)


def test_a_cluster_of_which_nothing_more_is_known_ends_with_one_full_stop() -> None:
    row = cluster(SMALL)
    assert an.evidence_of(row).endswith(f"{row.note[1:]}.")
    bare = an.evidence_of(row.model_copy(update={"note": ""}))
    assert bare.endswith(".")
    assert not bare.endswith((" .", ". ."))
