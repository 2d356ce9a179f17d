"""The published pages: links, addresses, and what a reader sees in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from conftest import pages
from playwright.sync_api import Browser, Page

from k3lib.account.symbols import REGISTRY
from k3lib.facts.catalog import sources
from k3lib.facts.paths import ROOT
from k3lib.report.trail import anchor, source_anchor

PAGES = ["index", *re.findall(r"file: *(\S+)", (ROOT / "book" / "_toc.yml").read_text(encoding="utf-8"))]
# Pages of no file, two of the many pages of numbers, and some of the Chinese edition.
MADE = ["search", "numbers/k3", "numbers/trouble", "zh/index", "zh/what-if", "zh/nb/side-by-side"]
SCREENS = {
    "desktop": dict(viewport={"width": 1400, "height": 900}, color_scheme="light"),
    "dark": dict(viewport={"width": 1400, "height": 900}, color_scheme="dark"),
    "phone": dict(viewport={"width": 390, "height": 844}, device_scale_factor=2, is_mobile=True, has_touch=True),
}

# The checker takes long for rows by the thousand, which are alike.
FEWER_ROWS = """for (const list of document.querySelectorAll('tbody, dl.k3-list'))
  [...list.children].slice(60).forEach(row => row.remove())"""

# What the theme itself leaves; everything else that axe finds is ours and fails.
THEME = {"label-content-name-mismatch", "region", "landmark-unique", "landmark-complementary-is-top-level"}
THEME_ON_BIBLIOGRAPHY = {
    "aria-deprecated-role",
    "aria-required-children",
    "aria-allowed-role",
    "list",
    "listitem",
    "dlitem",
    "definition-list",
}


def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def test_the_pages_are_there(book: Path) -> None:
    found = {str(p.relative_to(book / "html").with_suffix("")) for p in pages(book)}
    assert set(PAGES) <= found


def test_every_internal_link_and_anchor_leads_somewhere(book: Path) -> None:
    html = book / "html"
    ids = {p: {tag["id"] for tag in soup(p).find_all(id=True)} for p in pages(book)}
    checked = 0
    for page in pages(book):
        for tag in soup(page).find_all(["a", "link", "script", "img", "form"]):
            target = tag.get("href") or tag.get("src") or tag.get("action")
            if not target or target.startswith(("data:", "mailto:")):
                continue
            parts = urlsplit(target)
            assert not parts.scheme and not parts.netloc, (page, target)
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()
            assert file.is_relative_to(html.resolve()), (page, target)
            assert file.is_file(), (page, target)
            if parts.fragment and file.suffix == ".html":
                assert unquote(parts.fragment) in ids[html / file.relative_to(html.resolve())], (page, target)
            checked += 1
    assert checked > 500


def test_no_page_holds_an_absolute_address(book: Path) -> None:
    """Apart from commands that a reader types."""
    for page in pages(book):
        found = soup(page)
        for command in found.find_all("pre"):
            assert not command.find(["img", "script", "link"])
            command.string = ""
        assert not re.findall(r"https?:|[\"'(]//", str(found)), page


def test_every_source_and_symbol_has_its_line(book: Path) -> None:
    listed = {tag["id"] for tag in soup(book / "html" / "sources.html").find_all(id=True)}
    assert {source_anchor(source_id) for source_id in sources()} <= listed
    text = soup(book / "html" / "notation.html").get_text()
    for entry in REGISTRY.values():
        assert entry.meaning.replace("'", "\u2019") in text


def test_the_downloads_are_what_the_run_made(book: Path) -> None:
    found = {p.name: p for p in (book / "html" / "_downloads").rglob("*") if p.is_file()}
    assert found["results.json"].read_bytes() == (book / "results.json").read_bytes()
    assert found["results.csv"].read_bytes() == (book / "results.csv").read_bytes()
    assert found["k3-costs.xlsx"].read_bytes() == (book / "downloads" / "k3-costs.xlsx").read_bytes()
    assert {"how-large-is-k3.ipynb", "does-the-account-close.ipynb"} <= set(found)


def opened(browser: Browser, book: Path, name: str, screen: str) -> tuple[Page, list[str]]:
    """A page in a fresh window, and the list of its faults: errors, requests to the outside, missing files."""
    page = browser.new_context(**SCREENS[screen]).new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on("console", lambda m: faults.append(f"console: {m.text}") if m.type == "error" else None)
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else faults.append(r.url))
    page.on("requestfailed", lambda r: faults.append(f"failed: {r.url}"))
    page.goto((book / "html" / f"{name}.html").as_uri())
    page.wait_for_function("!window.MathJax || !MathJax.startup || MathJax.startup.promise.then(() => true)")
    return page, faults


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("name", [*PAGES, *MADE])
def test_a_page_in_a_real_browser(browser: Browser, book: Path, name: str, screen: str) -> None:
    page, faults = opened(browser, book, name, screen)
    page.wait_for_timeout(200)
    assert not faults
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0, f"{wider} px wider than the screen"
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0 && i.alt !== '')")
    assert page.locator("main h1:visible").count() == 1
    allowed = THEME | (THEME_ON_BIBLIOGRAPHY if name == "bibliography" else set())
    page.evaluate(FEWER_ROWS)
    found = Axe().run(page).response["violations"]
    ours = {v["id"]: [n["html"][:160] for n in v["nodes"]] for v in found if v["id"] not in allowed}
    assert not ours
    page.context.close()


def test_dark_mode_is_dark(browser: Browser, book: Path) -> None:
    page, _ = opened(browser, book, "nb/how-large-is-k3", "dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    lightness = page.evaluate(
        "[document.body, document.querySelector('.k3-scroll').parentElement]"
        ".map(e => getComputedStyle(e).backgroundColor)"
    )
    assert lightness[1] in ("rgba(0, 0, 0, 0)", lightness[0]), "a table lies on a light ground"
    page.context.close()


def test_a_number_shows_its_trail_to_mouse_and_keyboard(browser: Browser, book: Path) -> None:
    page, _ = opened(browser, book, "index", "desktop")
    number = page.locator('a.k3-number[data-key="k3.weights.bytes"]').first
    note = page.locator("#k3-note")
    assert note.is_hidden()
    number.hover()
    text = note.inner_text()
    for word in ("1,560,860,324,864\u00a0B", "exact", "Sources:", "released configuration"):
        assert word in text
    note.locator("mjx-container").wait_for()
    assert note.locator("mjx-container").count() == 1
    page.keyboard.press("Escape")
    assert note.is_hidden()
    page.mouse.move(5, 5)
    number.focus()
    assert note.is_visible()
    assert number.get_attribute("aria-describedby") == "k3-note"
    page.locator('a.k3-number[data-key="cluster.cards"]').first.focus()
    assert "32\u00a0cards" in note.inner_text()
    number.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/numbers/k3.html#*")
    assert page.locator(f"#{anchor('k3.weights.bytes')}").is_visible()
    page.context.close()


def test_a_first_tap_shows_the_note_and_a_second_follows_it(browser: Browser, book: Path) -> None:
    page, _ = opened(browser, book, "index", "phone")
    number = page.locator('a.k3-number[data-key="k3.weights.bytes"]').first
    number.tap()
    page.wait_for_timeout(400)
    assert page.locator("#k3-note").is_visible()
    assert page.url.endswith("index.html")
    number.tap()
    page.wait_for_url("**/numbers/k3.html#*")
    page.context.close()


def test_print_keeps_tables_figures_and_equations_and_drops_code(browser: Browser, book: Path) -> None:
    page, _ = opened(browser, book, "nb/how-large-is-k3", "desktop")
    page.emulate_media(media="print")
    for shown in ("table.k3-table", "figure img", "article .cell_output mjx-container"):
        assert all(element.is_visible() for element in page.locator(shown).all()), shown
        assert page.locator(shown).count() >= 2, shown
    assert not any(element.is_visible() for element in page.locator("details.hide").all())
    page.context.close()


def test_the_note_stays_on_a_phones_screen(browser: Browser, book: Path) -> None:
    page, _ = opened(browser, book, "nb/how-large-is-k3", "phone")
    for number in page.locator("main a.k3-number:visible").all()[:25]:
        number.focus()
        box = page.locator("#k3-note").bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= 390
    page.context.close()


def test_search_works_from_disk(browser: Browser, book: Path) -> None:
    page, faults = opened(browser, book, "search", "desktop")
    page.goto((book / "html" / "search.html").as_uri() + "?q=latent")
    page.wait_for_selector("#search-results li a")
    hits = page.locator("#search-results li a").all_inner_texts()
    assert any("How large is K3 really?" in hit for hit in hits)
    assert not faults
    page.context.close()
