"""The chapters on evidence: measured runs in order, errors of the model with their reasons, the table to filter."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from k3lib.calibrate import measured, predict, scores
from k3lib.calibrate.cells import Cell, cells
from k3lib.calibrate.store import calibration
from k3lib.deploy.constants import Table
from k3lib.errors import InputError
from k3lib.facts.benchmarks import Run, observations, runs
from k3lib.facts.paths import DATA, ROOT
from k3lib.facts.peers import peer_errors
from k3lib.report import browser as table
from k3lib.report import looks
from k3lib.report.trail import Html

EVERY = runs()
K3 = [r for r in EVERY if r.model == "kimi-k3"]


def run(run_id: str) -> Run:
    (row,) = [r for r in EVERY if r.run_id == run_id]
    return row


@pytest.fixture(scope="module")
def fitted() -> list[Cell]:
    return cells(EVERY)


@pytest.fixture(scope="module")
def numbers() -> Table:
    return predict.numbers()


def of(many: list[Cell], group: str) -> list[Cell]:
    return [one for one in many if one.group == group]


def test_a_run_tells_its_rate_and_speed_in_one_way() -> None:
    row = run("b300-sglang-tp8-c1")
    assert row.output_tps is None
    assert row.answer_tps == pytest.approx(1016 * 1024 / (8192 + 1024))
    assert row.user_speed_tps == pytest.approx(1000 / 8.51)
    alone = run("gb300-vllm-tp16-c1")
    assert (alone.user_speed_tps, alone.answer_tps, alone.closed_loop_tps) == (118, None, None)
    loop = run("h200-vllm-tp8pp2-marlin-a-c32")
    assert loop.closed_loop_tps == pytest.approx(loop.output_tps, rel=0.005)
    assert loop.ttft_ms == loop.ttft_mean_ms


def test_the_rate_is_no_third_measurement() -> None:
    apart = measured.closed_loop_differences(EVERY)
    assert len(apart) > 80
    assert max(abs(x) for x in apart.values()) < 0.01


def test_every_run_that_is_not_used_has_its_reason() -> None:
    for use in ("show", "out"):
        rows = measured.reasons(EVERY, use)  # type: ignore[arg-type]
        assert sum(row.runs for row in rows) == sum(r.use == use for r in EVERY)
        assert all(row.reason and row.sets and row.devices for row in rows)
    assert [row.reason for row in measured.reasons(EVERY, "fit")] == [""]


def test_curves_of_speed_hold_plain_runs_only() -> None:
    curves = measured.speed_curves(EVERY, 1000)
    assert {c.device for c in measured.speed_curves(EVERY, 8000)} | {c.device for c in curves} <= set(looks.CARDS)
    for c in curves:
        assert [p[0] for p in c.points] == sorted({p[0] for p in c.points})
    (pp2,) = [c for c in curves if (c.layout, c.engine, c.kernel) == ("tp8,pp2", "vllm", "")]
    assert max(p[0] for p in pp2.points) == 256  # 512 is above the server's cap
    assert {c.device for c in measured.speed_curves(EVERY, 8000)} == {"b200", "b300"}


def test_drafts_on_made_up_prompts_are_never_taken_for_real_ones() -> None:
    found = measured.acceptances(EVERY, observations())
    b200 = {
        real: [a.tokens for a in found if a.real == real and "gcp_k3_runs" in a.source_ids] for real in (True, False)
    }
    assert max(b200[True]) < 3 < 6 < min(b200[False])
    assert max(a.tokens for a in found if a.real) < 5
    assert (measured.draft_length("dspark 7"), measured.draft_length("dspark"), measured.draft_length("none")) == (
        7,
        0,
        0,
    )


def test_repeated_runs_agree() -> None:
    apart = measured.repeats(EVERY)
    assert len(apart) > 10
    assert max(apart) < 0.03


def test_what_only_one_deployment_tells_is_why_its_prediction_fails(fitted: list[Cell]) -> None:
    alone = scores.only_here(fitted)
    assert {name for name, _ in alone["2x8xh200 tp8,pp2 vllm humming"]} == {"kernel_decode", "kernel_prompt"}
    assert ("layer_us", "sglang@b300") in alone["1x8xb300 tp8 sglang trtllm-w4a8"]
    assert alone["2x8xh200 tp8,pp2 vllm marlin"] == ()
    assert {name for keys in alone.values() for name, _ in keys} <= set(scores.WORDS)


def test_a_fit_never_makes_a_number_less_sure(fitted: list[Cell]) -> None:
    rows = scores.moved(calibration().fitted, fitted)
    assert len(rows) == len(calibration().fitted)
    for row in rows:
        assert 0 < row.left <= 1.001, row
        assert row.low < row.value < row.high


def test_numbers_that_cannot_be_told_apart_stand_in_for_each_other(fitted: list[Cell], numbers: Table) -> None:
    tied = scores.trade(of(fitted, "2x8xb200 tp16,ep16 sglang trtllm-w4a8"), numbers, "layer_us", "exchange_start_us",
                        0.7, "tpot_ms")  # fmt: skip
    assert tied.other > 1
    assert tied.left < tied.alone / 20
    apart = scores.trade(
        of(fitted, "2x8xh200 tp8,pp2 vllm marlin"), numbers, "layer_us", "kernel_decode", 1.3, "tpot_ms"
    )
    assert apart.left > apart.alone / 2


def test_expert_time_goes_with_processors() -> None:
    h20 = scores.kernel_pairs("h20-141", "h200", "marlin, SGLang 0.5.14")
    few = [p.ratio for p in h20 if 16 <= p.tokens <= 128]
    assert few == pytest.approx([scores.expected_ratio("h20-141", "h200", "sm_count")] * len(few), rel=0.02)
    h100 = scores.kernel_pairs("h100", "h200", "marlin, vLLM 0.24.0")
    assert len(h100) > 3
    assert all(abs(p.ratio - 1) < 0.03 for p in h100)
    assert scores.expected_ratio("h100", "h200", "hbm_bandwidth") > 1.4


def test_runs_beside_the_model_or_a_reason(numbers: Table) -> None:
    strangers = scores.beside([r for r in EVERY if r.model in ("kimi-k2.5", "deepseek-r1")], numbers)
    assert all(bool(b.errors) != bool(b.why) for b in strangers)
    assert {b.run.model for b in strangers if b.errors} == {"kimi-k2.5", "deepseek-r1"}


def test_names_in_words() -> None:
    assert scores.deployment_name("2x8xh200 tp8,pp2 vllm humming") == "16 H200 TP8 PP2, vLLM, Humming"
    assert scores.scope_name("sglang@b200") == "SGLang on B200"
    assert scores.scope_name("network@hopper@1nics") == "two servers of Hopper cards, 1 network card a server"
    assert (scores.scope_name("hopper"), scores.scope_name("")) == ("Hopper", "everything")


PEER = "blis-e2e-median,BLIS,0.7.9,e2e,median,6.7,,36,"


@pytest.mark.parametrize(
    ("new", "word"),
    [
        (PEER.replace("6.7,,", "-6.7,,"), "a median of absolute errors is not below 0"),
        (PEER.replace("6.7,,", "6.7,5,"), "error_pct 6.7 is above error_high_pct 5"),
        (PEER.replace("6.7", "nan"), "finite"),
        (PEER.replace("e2e,", "speed,"), "metric = 'speed'"),
    ],
)
def test_a_bad_error_of_a_peer_is_named(new: str, word: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(DATA, data)
    text = (data / "peers.csv").read_text(encoding="utf-8")
    assert PEER in text
    (data / "peers.csv").write_text(text.replace(PEER, new), encoding="utf-8")
    with pytest.raises(InputError, match="blis-e2e-median") as caught:
        peer_errors(data)
    assert word in str(caught.value)


HOSTILE = "<img src=x onerror=\"document.title='ran'\"><script>document.title='ran'</script>"
COLUMNS = (table.Column("Name", choose=True), table.Column("Size", ",.1f"), table.Column("Note & more"))
ROWS = (["b", 10.0, "second"], ["a", 9.5, HOSTILE], [HOSTILE, None, "no size"], ["a", 100.0, "large"])


def test_every_text_of_the_table_is_escaped() -> None:
    text = table.markup(COLUMNS, ROWS, label=HOSTILE, noun=HOSTILE)
    assert "<img" not in text and "<script" not in text
    assert "Note &amp; more" in text
    assert 'data-sort="9.5"' in text
    assert '<a href="x">y</a>' in table.markup(COLUMNS[:1], [[Html('<a href="x">y</a>')]], label="")
    with pytest.raises(ValueError, match=r"row 1 .* has 2 cells, not 3"):
        table.markup(COLUMNS, [["a", 1.0]], label="short")


def test_a_run_fills_its_columns() -> None:
    for row in EVERY:
        assert len(table.run_cells(row)) == len(table.RUN_COLUMNS)
    shown = dict(
        zip((c.name for c in table.RUN_COLUMNS), table.run_cells(run("gb200-sglang-prefill-pp16-c32")), strict=True)
    )
    assert (shown["Layout"], shown["Use"], shown["Input, tok/s"]) == ("pp16; prefill alone", "shown", 4550 * 16)
    assert "../sources.html#s-" in shown["Source"]


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Page:
    """A page that holds the table alone, with the book's script."""
    script = (ROOT / "book" / "_assets" / "k3-browser.js").read_text(encoding="utf-8")
    body = table.markup(COLUMNS, ROWS, label="Things", noun="things")
    file = tmp_path / "page.html"
    file.write_text(
        f'<!doctype html><html lang="en"><title>fine</title>{body}<script>{script}</script>', encoding="utf-8"
    )
    opened = browser.new_context().new_page()
    opened.goto(file.as_uri())
    return opened


def column(page: Page, number: int) -> list[str]:
    return page.locator(f"tbody tr:visible > :nth-child({number})").all_inner_texts()


def test_a_reader_filters_and_sorts(page: Page) -> None:
    count = page.get_by_role("status")
    assert (count.inner_text(), count.get_attribute("aria-live")) == ("4 of 4 things", "polite")
    page.get_by_label("Rows with all these words").fill("A large")
    assert count.inner_text() == "1 of 4 things"
    page.get_by_label("Rows with all these words").fill("")
    page.get_by_label("Name").select_option("a")
    assert column(page, 2) == ["9.5", "100.0"]
    page.get_by_label("Name").select_option("all")
    size = page.get_by_role("button", name="Size")
    size.focus()
    up, first = ["9.5", "10.0", "100.0", ""], ["10.0", "9.5", "", "100.0"]
    for key, order, state in (
        ("Enter", up, "ascending"),
        ("Space", [*up[2::-1], ""], "descending"),
        ("Enter", first, None),
    ):
        page.keyboard.press(key)
        assert column(page, 2) == order
        assert page.locator("th", has=size).get_attribute("aria-sort") == state
    page.context.close()


def test_a_hostile_name_is_only_a_text(page: Page) -> None:
    page.get_by_label("Name").select_option(HOSTILE)
    assert column(page, 3) == ["no size"]
    assert page.locator("img").count() == 0
    page.wait_for_timeout(100)
    assert page.title() == "fine"
    page.context.close()
