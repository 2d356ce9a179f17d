"""The chapters of the two plans: the keys that they owe, and other scenarios through the same notebooks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from conftest import results_of

from k3lib.facts.clusters import clusters
from k3lib.facts.decisions import decisions
from k3lib.facts.scenario import load_scenario
from k3lib.facts.workloads import workloads

FIGURES = ("output_tps", "tps_per_user", "ttft_ms", "max_context", "max_concurrency", "kwh_per_mtok")
COMPARED = ("h20x32", "h20-141x32", "h200x32", "h200x64", "a3x64", "gb200-nvl72-64", "gb300-nvl72-64", "atlas950x64",
            "floor80x64")  # fmt: skip


def test_the_keys_that_the_comparison_owes(book: Path) -> None:
    found = json.loads((book / "results.json").read_text(encoding="utf-8"))
    for load in workloads():
        for name in COMPARED:
            assert found[f"compare.{load}.{name}.fits"]["value"] is True, (load, name)
            for figure in FIGURES:
                one = found[f"compare.{load}.{name}.{figure}"]
                assert one["low"] <= one["value"] <= one["high"], (load, name, figure)
            assert found[f"search.{name}.{load}.best_layout"]["value"].startswith(("tp", "pp", "dp", "ep"))
    for case in ("yours", *decisions()):
        assert found[f"recommend.{case}.choice"]["value"].partition(":")[0] in ("own", "rent", "api", "none")


def test_every_cluster_that_is_compared_uses_no_more_than_it_has(book: Path) -> None:
    found = json.loads((book / "results.json").read_text(encoding="utf-8"))
    for load in workloads().values():
        for name in COMPARED:
            at = f"compare.{load.workload_id}.{name}"
            length = load.isl + load.osl
            assert found[f"{at}.max_concurrency"]["value"] * length <= found[f"{at}.kv_tokens"]["value"] * 1.02
            rate, cards = found[f"{at}.output_tps"]["value"], clusters()[name].cards
            assert found[f"{at}.output_tps_per_card"]["value"] == pytest.approx(rate / cards)
            seen = found[f"{at}.tps_per_user"]["value"] * load.concurrency
            assert rate <= seen * 1.05  # a client also waits for its first token


def test_pages_name_the_scenario_and_the_home_page_the_choice(book: Path) -> None:
    for page in ("the-32-card-plan", "the-64-card-superpod", "side-by-side", "what-we-recommend"):
        text = (book / "html" / "nb" / f"{page}.html").read_text(encoding="utf-8")
        assert "the base scenario" in BeautifulSoup(text, "html.parser").find("main").get_text(), page  # type: ignore[union-attr]
    found = json.loads((book / "results.json").read_text(encoding="utf-8"))
    home = BeautifulSoup((book / "html" / "index.html").read_text(encoding="utf-8"), "html.parser").get_text()
    assert found["recommend.private-batch.choice_words"]["value"] in home


def test_another_superpod_is_another_page(tmp_path: Path) -> None:
    found = results_of("the-64-card-superpod", tmp_path, superpod="gb200-nvl72-64")
    assert found["pod.name"].value == clusters()["gb200-nvl72-64"].label
    assert (found["pod.status.cn"].value, found["pod.status.other"].value) == ("not to be had", "to be had")
    assert found["pod.first.output_tps"].value > 0


def test_another_situation_is_another_choice(tmp_path: Path) -> None:
    base = load_scenario()
    found = results_of("what-we-recommend", tmp_path, region="other", data_stays="no")
    assert str(found["recommend.yours.choice"].value).startswith("api:")
    assert "outside China, texts may leave the house" in str(found["recommend.yours.words"].value)
    assert f"{base.mtok_per_day:,.0f} million tokens" in str(found["recommend.yours.words"].value)
    assert found["recommend.private-batch.choice"].value == "own:h20x32"


def test_a_plan_that_holds_nothing_says_so_and_has_another_in_its_place(tmp_path: Path) -> None:
    found = results_of("the-32-card-plan", tmp_path, cards=8)
    assert "does not hold the model" in str(found["plan32.which"].value)
    assert found["plan32.name"].value == clusters()["h20x32"].label
