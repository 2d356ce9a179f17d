"""The chapters on acceptance and on the pilot: the keys that they owe, and other scenarios through them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from conftest import results_of

PLACES = ("nvme-1", "nvme-2", "nvme-4", "nvme-8", "parallel", "nfs", "memory", "nvme-4-ahead", "parallel-ahead")


def test_the_keys_that_acceptance_owes(book: Path) -> None:
    found = json.loads((book / "results.json").read_text(encoding="utf-8"))
    for place in PLACES:
        one = found[f"storage.load_seconds.{place}"]
        assert one["unit"] == "s" and 0 < one["low"] <= one["value"] <= one["high"]
    assert found["storage.bytes"]["value"] == pytest.approx(1.5609e12, rel=1e-3)  # the released files
    assert found["storage.drives.two"]["low"] <= found["storage.drives.two"]["value"] <= 2
    limits = [key for key in found if key.startswith("acceptance.") and key.endswith(".tpot_ms")]
    assert len(limits) >= 8 and all(found[key]["low"] < found[key]["high"] for key in limits)
    assert found["network.check.agree"] == found["network.check.agree"] | {"value": found["network.check.of"]["value"]}


def test_the_steps_are_those_of_the_speed_pages(book: Path) -> None:
    """One client with short prompts is asked for on two pages: the same prediction stands behind both."""
    found = json.loads((book / "results.json").read_text(encoding="utf-8"))
    for metric in ("output_tps", "tpot_ms", "ttft_ms"):
        assert found[f"acceptance.1k-1k.c1.{metric}"]["value"] == pytest.approx(
            found[f"speed.main.1k-1k.c1.{metric}"]["value"]
        )
    assert found["pilot.layers"]["value"] < found["alternatives.pilot.layers"]["value"] + 1


def test_the_pages_link_to_each_other_and_their_commands_stand_as_typed(book: Path) -> None:
    pilot = BeautifulSoup((book / "html" / "nb" / "pilot.html").read_text(encoding="utf-8"), "html.parser")
    assert any(a["href"].startswith("acceptance.html") for a in pilot.select("article a[href]"))
    text = "\n".join(block.get_text() for block in pilot.select("pre"))
    assert "k3 reduce /models/Kimi-K3 /models/Kimi-K3-38 --layers 38" in text


def test_a_card_that_holds_all_needs_no_reduced_files_and_one_without_links_no_network_limit(tmp_path: Path) -> None:
    pilot = results_of("pilot", tmp_path, device="b300", cards=64)
    assert "whole model" in str(pilot["pilot.holds"].value) and "holds the whole model" in str(
        pilot["pilot.article"].value
    )
    acceptance = results_of("acceptance", tmp_path, device="b300", cards=64)
    assert "is not known here" in str(acceptance["acceptance.network.answer"].value)


def test_a_plan_that_does_not_fit_shows_the_reason(tmp_path: Path) -> None:
    found = results_of("acceptance", tmp_path, device="h20-96", layout="tp16,pp1", engine="sglang")
    assert "does not fit" in str(found["acceptance.which"].value) or "--layout" in str(found["acceptance.which"].value)
    assert "stands in" in str(found["acceptance.load.answer"].value)
