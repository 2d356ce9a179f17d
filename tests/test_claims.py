"""The two articles' claims: none left out, verdicts by one rule, and a changed number that changes its verdict."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from k3lib.claims import checks_settings
from k3lib.claims.corrections import ALL, TEN, corrections
from k3lib.claims.ledger import CHECKS, by_topic, counted, finding, findings
from k3lib.claims.verdict import (
    CONFIRMED,
    CORRECTED,
    OPEN,
    REFUTED,
    VERDICTS,
    Finding,
    Part,
    ceiling,
    decided,
    floor,
    number,
    of_number,
    together,
)
from k3lib.claims.world import World
from k3lib.cost.articles import stated
from k3lib.errors import InputError
from k3lib.facts import claims as facts
from k3lib.facts.catalog import article_figures, device_fact, sources
from k3lib.facts.claims import claims, known_of
from k3lib.facts.paths import DATA, ROOT
from k3lib.facts.price_parameters import with_parameters
from k3lib.ranges import Range, point

# What of a world does not depend on the articles' figures or on prices.
KEPT = ("ranked", "numbers", "k3", "account", "fp8")
IDS = [f"A{n:02d}" for n in range(1, 56)] + [f"B{n:02d}" for n in range(1, 31)]


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def found(world: World) -> dict[str, Finding]:
    return findings(world)


def stating(world: World, **figures: float) -> World:
    """The world with other figures in the articles; a double underscore stands for the dot of a key."""
    made = {key.replace("__", "."): value for key, value in figures.items()}
    assert set(made) <= set(world.figures)
    changed = {key: world.figures[key].model_copy(update={"value": value}) for key, value in made.items()}
    other = World({**world.figures, **changed}, world.table)
    other.__dict__.update(
        {k: v for k, v in world.__dict__.items() if k in ("ranked", "numbers", "k3", "account", "fp8")}
    )
    return other


# All claims


def test_no_claim_is_left_out(found: dict[str, Finding]) -> None:
    assert list(claims()) == IDS == list(found)
    for one in found.values():
        article = f"article_{one.claim.article.lower()}"
        assert one.claim.check in CHECKS and one.verdict in VERDICTS and one.parts and one.says
        assert set(one.sources) <= set(sources()) and one.claim.source_ids[0] == article
        assert one.says.endswith(".")
        assert (ROOT / "notebooks" / f"{one.claim.page}.ipynb").is_file()


def test_no_check_is_left_over() -> None:
    assert {row.check for row in claims().values()} == set(CHECKS)


def test_summaries_add_up(found: dict[str, Finding]) -> None:
    whole, topics = counted(found.values()), by_topic(found)
    assert sum(whole.values()) == len(IDS)
    assert {v: sum(row[v] for row in topics.values()) for v in VERDICTS} == whole
    assert set(topics) == {row.topic for row in claims().values()}


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [("A02", CONFIRMED), ("A03", CONFIRMED), ("A04", CONFIRMED), ("A06", CONFIRMED), ("A09", CONFIRMED),
     ("A12", REFUTED), ("A14", CONFIRMED), ("A16", REFUTED), ("A20", REFUTED), ("A22", CORRECTED),
     ("A23", CORRECTED), ("A27", REFUTED), ("A34", REFUTED), ("A38", REFUTED), ("A42", CONFIRMED),
     ("A43", REFUTED), ("A48", CONFIRMED), ("B01", CONFIRMED), ("B02", CONFIRMED), ("B05", CONFIRMED),
     ("B09", CORRECTED), ("B10", CONFIRMED), ("B16", CONFIRMED), ("B19", REFUTED), ("B22", OPEN), ("B23", OPEN)],
)  # fmt: skip
def test_clear_ones(claim: str, verdict: str, found: dict[str, Finding]) -> None:
    assert found[claim].verdict == verdict, found[claim].says


def test_figures_are_those_of_the_sources(found: dict[str, Finding], world: World) -> None:
    def of(name: str) -> float:
        part = found[name].figure
        assert part is not None and part.found is not None
        return part.found.value

    assert of("A02") == device_fact("h20-96", "hbm_bandwidth").value / 1000
    assert of("B01") == pytest.approx(2.779931837184) and of("B09") == pytest.approx(1560.860324864)
    assert of("A22") == pytest.approx(50.45 * 1.073741824, rel=1e-3) and of("B08") == pytest.approx(85.085650944)
    assert of("A17") == next(one for one in stated(world.table) if one.item_id == "claim.server8.h20-96").ours.value
    assert found["A22"].difference == "+23.8\u00a0%" and found["A24"].difference == "within"
    assert found["A43"].difference == "does not hold" and found["A42"].difference == "holds"
    assert found["A35"].difference == "1 of 2 parts hold"
    assert found["A36"].difference == "holds; what goes with it does not"


# A changed number


@pytest.mark.parametrize(
    ("claim", "figures", "verdict"),
    [
        ("A02", {"A02__hbm_bandwidth": 5.0}, REFUTED),
        ("A05", {"A05__total_memory": 2000}, REFUTED),
        ("A06", {"A06__fp16_weights": 5.1}, CORRECTED),
        ("A08", {"A08__int4_weights": 1.56, "A08__int4_left": 1.72}, CONFIRMED),
        ("A12", {"A12__fp16_checkpoint_at_least": 1.5}, CONFIRMED),
        ("A22", {"A22__int4_per_card": 54.0}, CONFIRMED),
        ("A22", {"A22__int4_per_card": 30.0}, REFUTED),
        ("A27", {"A27__tokens_high": 2.5e6}, CONFIRMED),
        ("A36", {"A36__longer": 32768 * 1024}, CONFIRMED),
        ("A39", {"A39__requests_high": 512}, CONFIRMED),
        ("A47", {"A47__nvlink_measured": 300}, CONFIRMED),
        ("A48", {"A48__one_way_low": 60, "A48__one_way_high": 70}, REFUTED),
        ("B01", {"B01__total_params": 3.5}, REFUTED),
        ("B02", {"B02__experts": 512}, CORRECTED),
        ("B08", {"B08__scales": 85.0}, CONFIRMED),
        ("B16", {"B16__fewest_cards": 128}, REFUTED),
        ("B18", {"B18__cards": 16, "B18__total_memory": 1.2}, CONFIRMED),
        ("B19", {"B19__file_system": 20}, CONFIRMED),
    ],
)
def test_a_changed_number_changes_the_verdict(
    claim: str, figures: dict[str, float], verdict: str, world: World, found: dict[str, Finding]
) -> None:
    after = finding(claims()[claim], stating(world, **figures))
    assert found[claim].verdict != after.verdict == verdict, after.says


def test_a_changed_price_changes_verdicts_on_money(world: World, found: dict[str, Finding]) -> None:
    assert found["A17"].verdict == CORRECTED
    dear = World(table=with_parameters({"h20_server_price_cny": 2.75e6}))
    cheap = World(table=with_parameters({"h20_server_price_cny": 0.9e6}))
    assert finding(claims()["A17"], dear).verdict == CONFIRMED and finding(claims()["A17"], cheap).verdict == REFUTED
    assert found["B25"].verdict == CORRECTED and finding(claims()["B25"], cheap).verdict == CONFIRMED
    assert finding(claims()["A02"], dear).says == found["A02"].says


def test_a_changed_option_changes_the_verdict(
    world: World, found: dict[str, Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found["A38"].verdict == REFUTED

    for look_up in (known_of, facts.option_of):
        monkeypatch.setattr(
            checks_settings, look_up.__name__,
            lambda holder, item, real=look_up: real(holder, item).model_copy(update={"state": "present"}),
        )  # fmt: skip
    assert finding(claims()["A38"], world).verdict == CONFIRMED
    assert finding(claims()["A34"], world).verdict == CONFIRMED


def test_a_tolerance_decides(world: World, found: dict[str, Finding]) -> None:
    claim = claims()["A22"]
    assert found["A22"].verdict == CORRECTED
    assert finding(claim.model_copy(update={"tolerance": 11, "bearable": 15}), world).verdict == CONFIRMED
    assert finding(claim.model_copy(update={"tolerance": 1, "bearable": 5}), world).verdict == REFUTED


# The rule

values = st.floats(-1e6, 1e6, allow_nan=False)


@given(values, values, values, st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_wider_tolerance_never_makes_it_worse(
    low: float, width: float, value: float, tolerance: float, more: float, spread: float
) -> None:
    said = Range(low, low, low + abs(width))
    what = Range(value, value - spread, value + spread)
    order = (REFUTED, CORRECTED, CONFIRMED)
    narrow = of_number(said, what, tolerance, tolerance)
    wide = of_number(said, what, tolerance + more, tolerance + more)
    assert order.index(wide) >= order.index(narrow)
    if said.low <= value <= said.high:
        assert narrow == CONFIRMED


@given(values, st.floats(0, 1e6))
def test_floors_and_ceilings(value: float, above: float) -> None:
    assert of_number(floor(value), point(value + above), 0, 0) == CONFIRMED
    assert of_number(ceiling(value), point(value - above), 0, 0) == CONFIRMED
    if above > 1:
        assert of_number(floor(value), point(value - above), 0, 0) == REFUTED
        assert of_number(floor(value), Range(value - above, value - above, value + 1), 0, 0) == CORRECTED
    assert of_number(floor(value), None, 0, 0) == OPEN and math.isinf(floor(value).high)


verdicts = st.sampled_from(VERDICTS)


@given(st.lists(verdicts, min_size=1, max_size=5), st.lists(verdicts, max_size=4))
def test_parts_together(core: list[str], beside: list[str]) -> None:
    whole = together(core, beside)  # type: ignore[arg-type]
    assert whole == together(core[::-1], beside[::-1])  # type: ignore[arg-type]
    assert (whole == REFUTED) == (set(core) == {REFUTED})
    assert (whole == OPEN) == (OPEN in core)
    assert (whole == CONFIRMED) == (set(core) == {CONFIRMED} and set(beside) <= {CONFIRMED, OPEN})
    if whole not in (REFUTED, OPEN):
        assert together(core, [*beside, REFUTED]) == CORRECTED  # type: ignore[arg-type]


def test_a_claim_without_a_core_or_a_tolerance_is_refused() -> None:
    with pytest.raises(ValueError, match="core"):
        together([], [CONFIRMED])
    with pytest.raises(ValueError, match="no tolerance"):
        number(claims()["A42"], "Says.", point(1), point(1), "1", ["article_a"])
    assert decided("Says.", None, ["article_a"]).verdict == OPEN
    assert Finding(claims()["A42"], (Part("Says.", CONFIRMED, ("article_a",)),)).verdict == CONFIRMED


# Corrections


def test_corrections_are_ranked_by_money_and_only_where_something_is_wrong(
    world: World, found: dict[str, Finding]
) -> None:
    ranked = corrections(world, found)
    assert TEN <= len(ranked) == len(ALL) and len({one.name for one in ranked}) == len(ranked)
    assert [one.cny.value for one in ranked] == sorted((one.cny.value for one in ranked), reverse=True)
    for one in ranked:
        assert 0 <= one.cny.low <= one.cny.value <= one.cny.high and set(one.sources) <= set(sources())
        assert any(found[name].verdict != CONFIRMED for name in one.claims)
    sound = {**found, "A20": replace(found["A20"], parts=(Part("So.", CONFIRMED, ("article_a",)),))}
    assert "ep" not in {one.name for one in corrections(world, sound)}


def test_what_corrections_are_worth(world: World, found: dict[str, Finding]) -> None:
    by = {one.name: one for one in corrections(world, found)}
    server = next(one for one in stated() if one.item_id == "claim.server8.h20-96")
    assert by["server-price"].cny.value == 4 * (server.stated.value - server.ours.value)
    assert by["scales"].gib == pytest.approx(50.45 - 43.75 / 1.073741824, abs=0.01)
    assert by["separation"].cards == 24 and by["fp8"].cards == 16
    dear = World(table=with_parameters({"h20_server_price_cny": 2.4e6}))
    again = {one.name: one for one in corrections(dear, found)}
    assert again["server-price"].cny.value < by["server-price"].cny.value
    assert again["separation"].cny.value > by["separation"].cny.value


# The tables


def tables(folder: Path, name: str, old: str, new: str) -> Path:
    for table in ("sources.csv", "claims.csv", "article_claims.csv", "claim_evidence.csv"):
        shutil.copy(DATA / table, folder / table)
    text = (folder / name).read_text(encoding="utf-8")
    assert text.count(old) == 1, old
    (folder / name).write_text(text.replace(old, new), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (",device_figure,1,5,%,sources differ", ",device_figure,1,,%,sources differ", ["A02", "all three or none"]),
        (",device_figure,1,5,%,sources differ", ",device_figure,9,5,%,sources differ", ["A02", "above bearable"]),
        (",device_figure,1,5,%,sources differ", ",device_figure,1,5,GBs,sources differ", ["A02", "'GBs'"]),
        ("A55,6,method", "A05,6,method", ["A05", "same claim_id"]),
        ("evidence,official_advice", "opinion,official_advice", ["A55", "kind"]),
    ],
)
def test_a_bad_row_is_named(old: str, new: str, words: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"article_claims\.csv") as caught:
        facts.claims(tables(tmp_path, "article_claims.csv", old, new))
    assert all(word in str(caught.value) for word in words), caught.value


def test_figures_of_a_claim_that_is_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="claim 'B99'"):
        facts.claims(tables(tmp_path, "claims.csv", "B19,storage,file_system", "B99,storage,file_system"))
    with pytest.raises(InputError, match="Did you mean '--nnodes'"):
        known_of("vllm", "--nnode")
    with pytest.raises(InputError, match="no check 'devce_figure'"):
        finding(claims()["A02"].model_copy(update={"check": "devce_figure"}), World())


def test_every_figure_that_existed_is_still_there() -> None:
    assert {"A05.total_memory", "A20.ep", "A27.tokens_high", "B22.low_bits", "A53.pilot_cards"} <= set(
        article_figures()
    )


# The page


def test_the_page_has_every_claim_with_its_verdict(book: Path, found: dict[str, Finding]) -> None:
    results = json.loads((book / "results.json").read_text(encoding="utf-8"))
    page = BeautifulSoup((book / "html/nb/two-articles.html").read_text(encoding="utf-8"), "html.parser")
    for name, one in found.items():
        key = f"claims.{name.lower()}.verdict"
        assert results[key]["value"] == one.verdict and results[key]["sources"]
        assert page.find(id=f"claim-{name.lower()}") and page.find("a", attrs={"data-key": key})
    assert sum(results[f"claims.summary.{v.replace(' ', '_')}"]["value"] for v in VERDICTS) == len(IDS)
    assert [results[f"claims.correction.c{n}.cny"]["unit"] for n in range(1, TEN + 1)] == ["CNY"] * TEN
