"""The what-if page in a real browser: its numbers, its address, its guards, its keys, its print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Page

from k3lib.calibrate.predict import numbers, speed
from k3lib.choose.deployed import MOST_RUNNING, deployed
from k3lib.cost.api import Mix
from k3lib.cost.choice import Choice
from k3lib.cost.own import own
from k3lib.cost.unit import unit_cost
from k3lib.deploy.caches import Settings
from k3lib.deploy.load import Load
from k3lib.deploy.plan import make_plan
from k3lib.deploy.speed import question
from k3lib.engines.layout import parse_layout
from k3lib.facts.planned import planned
from k3lib.models.model import load_model
from k3lib.ranges import Range
from k3lib.report.whatif import form

READY = "#k3-whatif[data-ready]"
NEVER = re.compile(r"NaN|Infinity|undefined|null|\[object|\{\d\}")
SETTINGS = [
    dict(device="h20-96", nodes=4, nics=8, engine="vllm", layout="tp8,pp4", memory_share=0.9, max_model_len=32_768,
         isl=1000, cached=0, osl=1000, concurrency=32, busy=0.4),
    dict(device="h200", nodes=4, nics=4, engine="sglang", layout="tp8,pp4", memory_share=0.85, max_model_len=9000,
         isl=4000, cached=1000, osl=500, concurrency=24, busy=0.7),
    dict(device="gb200", nodes=4, nics=4, engine="vllm", layout="tp16,dcp2", memory_share=0.9, max_model_len=40_000,
         isl=12_035, cached=0, osl=343, concurrency=40, busy=0.25),
]  # fmt: skip
NOT_FITTING = dict(SETTINGS[0], device="h200", nodes=1, layout="tp8")


def address(settings: dict[str, Any], **more: object) -> str:
    return "#" + "&".join(f"{name}={value}" for name, value in {"workload": "own", **settings, **more}.items())


def shown(x: float) -> str:
    """A number as the page writes it."""
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:,.1f}" if abs(x) >= 10 else f"{x:,.2f}"


def spanned(r: Range) -> str:
    return f"{shown(r.low)}\u2013{shown(r.high)}"


@pytest.fixture
def page(browser: Browser, book: Path) -> Iterator[Page]:
    """The page as it opens; no error may be met, and no word of a program shown."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    opened = context.new_page()
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.goto((book / "html" / "what-if.html").as_uri())
    opened.wait_for_selector(READY)
    yield opened
    assert not faults
    assert not NEVER.search(opened.inner_text("#k3-whatif"))
    context.close()


def at(page: Page, hash_: str) -> Page:
    """The page at an address."""
    page.evaluate("document.getElementById('k3-whatif').removeAttribute('data-ready')")
    page.evaluate("(hash) => { location.hash = hash; }", hash_)
    page.wait_for_selector(READY)
    return page


def change(page: Page, name: str, value: str) -> None:
    """A value in a field, and the answer to it."""
    field = page.locator(f'[data-name="{name}"]')
    if field.evaluate("e => e.tagName") == "SELECT":
        field.select_option(value)
    else:
        field.fill(value)
    page.wait_for_selector(READY)


def cells(page: Page, part: str) -> dict[str, list[str]]:
    """A table of the results by the first cell of its rows."""
    found = page.evaluate(
        """(part) => [...document.querySelectorAll(`[data-out='${part}'] tbody tr`)]
        .map((row) => [...row.cells].map((cell) => cell.innerText))""",
        part,
    )
    return {first: rest for first, *rest in found}


def test_it_opens_with_the_books_own_numbers(page: Page, book: Path) -> None:
    results = json.loads((book / "results.json").read_text(encoding="utf-8"))
    output = results["plan32.first.output_tps"]
    speeds = cells(page, "speed")["Output of all clients, tok/s"]
    assert speeds[:2] == [shown(output["value"]), spanned(Range(output["value"], output["low"], output["high"]))]
    costs = cells(page, "costs")
    month, unit = (results[f"cost.h20x32.{key}"] for key in ("monthly_cny", "cny_per_mtok_own_clients.offline-batch"))
    bounds = spanned(Range(unit["value"], unit["low"], unit["high"]))
    assert costs["your own servers"][:3] == [shown(month["value"]), shown(unit["value"]), bounds]
    assert page.input_value('[data-name="layout"]') == results["plan32.first.layout"]["value"]
    said = page.inner_text('[data-out="said"]')
    assert shown(output["value"]) in said and shown(unit["value"]) in said
    cheapest = min(costs, key=lambda way: float(costs[way][1].replace(",", "")))
    assert f"cheapest: {cheapest}, {costs[cheapest][1]} CNY" in said


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: f"{s['device']}-{s['layout']}")
def test_displayed_numbers_are_those_of_python(page: Page, settings: dict[str, Any]) -> None:
    at(page, address(settings))
    size = {"gb200": 4}.get(settings["device"], 8)
    row = planned(f"{settings['nodes']}x{size}x{settings['device']}", settings["nics"])
    there = deployed(row)
    made = make_plan(
        load_model("kimi-k3"), there.cluster, parse_layout(settings["layout"]), settings["engine"],
        Settings(utilisation=settings["memory_share"], max_model_len=settings["max_model_len"],
                 max_num_seqs=MOST_RUNNING, prefix_caching=settings["cached"] > 0), there.options.hardware,
    )  # fmt: skip
    assert (page.inner_text('[data-out="verdict"]'), page.inner_text('[data-out="reason"]')) == ("Fits.", made.reason)
    held = page.inner_text('[data-out="held"]')
    assert made.caches and f"{made.caches.kv_tokens:,} tokens" in held
    load = Load(settings["isl"], settings["osl"], settings["concurrency"], cached=settings["cached"])
    seen = speed(question(made, load, there.options), numbers())
    found = cells(page, "speed")
    first = Range(*(getattr(seen.ttft_ms_mean, end) / 1000 for end in ("value", "low", "high")))
    for line, r in (("Output of all clients, tok/s", seen.output_tps), ("Time of a token, ms", seen.tpot_ms),
                    ("First token, mean, s", first)):  # fmt: skip
        assert found[line][:2] == [shown(r.value), spanned(r)]
    assert seen.dominant_term in page.inner_text('[data-out="terms"]')
    assert seen.situation.split(";")[0] in page.inner_text('[data-out="situation"]')
    bought = own(row, None, Choice(region="coast" if settings["device"] != "gb200" else None,
                                   utilisation=settings["busy"]))  # fmt: skip
    mix = Mix("own", settings["isl"] - settings["cached"], settings["cached"], settings["osl"])
    unit = unit_cost(bought, seen.output_tps, mix).per_mtok_output
    assert cells(page, "costs")["your own servers"][:3] == [
        shown(bought.monthly_cny.value), shown(unit.value), spanned(unit)]  # fmt: skip


def test_a_plan_that_does_not_fit_says_which_line_breaks(page: Page) -> None:
    at(page, address(NOT_FITTING))
    assert page.inner_text('[data-out="verdict"]') == "Does not fit."
    assert "weights need 191.8 GiB on a card of stage 0" in page.inner_text('[data-out="reason"]')
    assert "GiB missing" in page.inner_text('[data-out="ledger"]')
    assert not cells(page, "speed") and "No speed" in page.inner_text('[data-out="speed"]')
    assert cells(page, "costs")["your own servers"][1] == "\u2013"
    at(page, address(dict(SETTINGS[0], memory_share=0.54)))
    assert "is the line that goes beyond" in page.inner_text('[data-out="reason"]')


def test_a_change_is_answered_at_once(page: Page) -> None:
    """Results stand within a moment; ranges follow without the page going to sleep."""
    before = cells(page, "speed")["Output of all clients, tok/s"][0]
    took = page.evaluate("""() => new Promise((done) => {
      const field = document.querySelector('[data-name="concurrency"]');
      const speed = document.querySelector('[data-out="speed"]');
      let longest = 0, last = performance.now(), ready = 0;
      const start = last;
      new MutationObserver(() => { ready = ready || performance.now() - start; }).observe(speed, { childList: true });
      const tick = () => {
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
        const all = document.querySelector('#k3-whatif[data-ready]') && ready;
        if (all) { done({ ready, longest }); } else { setTimeout(tick, 0); }
      };
      field.value = 64;
      field.dispatchEvent(new Event('input', { bubbles: true }));
      setTimeout(tick, 0);
    })""")
    assert cells(page, "speed")["Output of all clients, tok/s"][0] != before
    assert took["ready"] < 1500 and took["longest"] < 1000, took


def test_the_address_holds_all_settings_and_leads_back(page: Page) -> None:
    change(page, "nodes", "6")
    change(page, "memory_share", "0.92")
    change(page, "workload", "rag")
    change(page, "servers", "1500000")
    change(page, "fx", "7.1")
    change(page, "service", "k3@moonshot-cn")
    link, told = page.url, page.inner_text(".k3-whatif-results")
    assert "price.server8.h20-96=1500000" in link and "nodes=6" in link
    page.click('[data-do="reset"]')
    page.wait_for_timeout(300)
    page.wait_for_selector(READY)
    assert page.inner_text(".k3-whatif-results") != told and "#" not in page.url
    assert page.input_value('[data-name="nodes"]') == "4"
    at(page, "#" + link.split("#")[1])
    assert page.inner_text(".k3-whatif-results") == told
    assert page.input_value('[data-name="servers"]') == "1500000"


@pytest.mark.parametrize("bad", [
    "#nodes=NaN&nics=-3&isl=1e99&busy=Infinity&memory_share=", "#%%%&&&==&a",
    "#layout=<script>alert(1)</script>&nodes=abc",
    "#__proto__=1&constructor=name&toString=1&price.__proto__=4", "#device=toString&engine=constructor&rent=__proto__",
    "#price.server8.h20-96=-5&price.dram=1&price.fx.cny_per_usd=0", "#" + "nodes=9" * 4000, "#layout=tp7,pp9",
    "#cached=5000&isl=10&max_model_len=2", "#concurrency=8193&osl=1",
])  # fmt: skip
def test_a_hostile_address_is_refused(page: Page, bad: str) -> None:
    at(page, bad)
    assert not NEVER.search(page.inner_text("#k3-whatif"))
    assert page.locator("#k3-whatif script").count() == 0
    assert page.inner_text('[data-out="verdict"]') in ("Fits.", "Does not fit.")
    if "layout=tp7" in bad:
        assert "tp7,pp9: tp 7 does not divide" in page.inner_text('[data-out="note"]')
    elif not bad.startswith("#cached"):
        assert "Not used from the address" in page.inner_text('[data-out="note"]')


def test_bad_input_is_told_beside_its_field_and_keeps_the_last_answer(page: Page) -> None:
    told = page.inner_text(".k3-whatif-results")
    for name, value, words in (("nodes", "", "Write a number."), ("nodes", "2.5", "Must be a whole number."),
                               ("memory_share", "1.5", "Must be from 0.05 to 1."), ("isl", "0", "Must be from 1 to"),
                               ("osl", "900000", "Requests have"),
                               ("cached", "4096", "Must be less than the prompt")):  # fmt: skip
        before = page.input_value(f'[data-name="{name}"]')
        field = page.locator(f'[data-name="{name}"]')
        field.fill(value)
        page.wait_for_timeout(250)
        fault = "max_model_len" if name == "osl" else name
        assert words in page.inner_text(f'[data-fault="{fault}"]'), name
        assert page.locator(f'[data-name="{fault}"]').get_attribute("aria-invalid") == "true"
        assert page.locator("#k3-whatif.k3-stale").count() == 1
        assert page.inner_text(".k3-whatif-results") == told
        change(page, name, before)
        assert page.locator("#k3-whatif.k3-stale").count() == 0
    assert page.inner_text(".k3-fault >> nth=0") == ""


def test_only_legal_layouts_are_offered_and_another_is_chosen_where_one_is_not(page: Page) -> None:
    offered = page.locator('[data-name="layout"] option').all_inner_texts()
    assert "tp8,pp4" in offered and "tp8,pp4,ep8" in offered and len(offered) > 60
    change(page, "nodes", "1")
    assert "tp4,pp4,dp2 takes 32 cards" in page.inner_text('[data-out="note"]')
    offered = page.locator('[data-name="layout"] option').all_inner_texts()
    assert page.input_value('[data-name="layout"]') in offered and "tp8,pp4" not in offered
    change(page, "device", "h200")
    change(page, "engine", "sglang")
    assert page.input_value('[data-name="memory_share"]') == "0.85"


def test_every_control_has_a_label_and_is_reached_by_keys(page: Page) -> None:
    unnamed = page.evaluate("""() => [...document.querySelectorAll('#k3-whatif :is(input, select, button)')]
      .filter((e) => !(e.labels || []).length && !e.getAttribute('aria-label') && !e.textContent.trim()).length""")
    assert unnamed == 0
    page.locator('[data-do="reset"]').focus()
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.getAttribute('data-name') || ''"))
    fields = {f.name for group in form.GROUPS.values() for f in group}
    assert fields <= reached
    page.locator('[data-slider="nodes"]').focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)
    page.wait_for_selector(READY)
    assert page.input_value('[data-name="nodes"]') == "5" and "nodes=5" in page.url
    assert page.get_attribute('[data-out="said"]', "aria-live") == "polite"


def test_print_shows_settings_and_results_in_place_of_the_form(page: Page) -> None:
    page.emulate_media(media="print")
    assert page.locator(".k3-whatif-form").is_hidden()
    printed = page.inner_text('[data-out="inputs"]')
    for words in ("H20 96 GB", "tp4,pp4,dp2", "offline batch", "4096 tokens", "CNY/server"):
        assert words in printed
    assert page.locator(".k3-whatif-results").is_visible()


def test_the_page_is_small_and_asks_nothing_of_the_network(book: Path) -> None:
    """All of its own files, and its own part of the page, in less than 200 kB."""
    html = book / "html"
    own_files = [html / "_static" / name for name in (*form.SCRIPTS, "k3-whatif.css")]
    part = BeautifulSoup((html / "what-if.html").read_text(encoding="utf-8"), "html.parser").find(id="k3-whatif")
    assert sum(p.stat().st_size for p in own_files) + len(str(part).encode()) < 200_000
    for path in own_files:
        assert not re.search(r"https?:|fetch\(|XMLHttp|import\(|eval\(|innerHTML", path.read_text(encoding="utf-8")), (
            path
        )
    other = (html / "index.html").read_text(encoding="utf-8")
    assert not any(name in other for name in form.SCRIPTS)


def test_it_holds_on_a_phone(browser: Browser, book: Path) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    page = context.new_page()
    page.goto((book / "html" / "what-if.html").as_uri() + address(SETTINGS[2]))
    page.wait_for_selector(READY)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator('[data-name="busy"]').scroll_into_view_if_needed()
    brief = page.locator('[data-out="brief"]')
    box = brief.bounding_box()
    assert "tok/s" in brief.inner_text() and box and 0 < box["y"] < 844
    context.close()


def test_sliders_move_their_fields_and_a_named_workload_brings_its_tokens(page: Page) -> None:
    for name, value, expected in (("servers", "900000", "900000"), ("max_model_len", "16", "65536")):
        page.locator(f'[data-slider="{name}"]').evaluate(
            "(e, value) => { e.value = value; e.dispatchEvent(new Event('input', { bubbles: true })); }", value
        )
        page.wait_for_selector(READY)
        assert page.input_value(f'[data-name="{name}"]') == expected
    at(page, "#workload=rag")
    assert page.input_value('[data-name="isl"]') != "4096" and page.input_value('[data-name="concurrency"]') == "32"
    change(page, "osl", "500")
    assert page.input_value('[data-name="workload"]') == "own"
