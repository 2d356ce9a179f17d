"""The Chinese edition: every page is there, nothing a reader meets is left in English, and the search reads Chinese."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser

from k3lib.report.editions import CHINESE, FOLDER, UNTRANSLATED, phrases

# Titles of works, commands, code and what a maker calls its settings stay in their own language.
AS_WRITTEN = "code, pre, kbd, samp, script, style, math, .math, .cell_input, .notranslate, [lang=en], .k3-sources"
PAGES_OF_TITLES = {"bibliography", "search", "genindex", "404"}
# So many English words in a row are a phrase, and not a name.
PHRASE = re.compile(r"(?:\b[a-z]{2,}\b[ ,]+){3,}[a-z]{2,}\b")


def chinese_pages(book: Path) -> list[Path]:
    return sorted(p for p in (book / "html" / FOLDER).rglob("*.html") if "_static" not in p.parts)


def test_every_page_is_there_and_says_its_language(book: Path) -> None:
    english = {
        str(p.relative_to(book / "html"))
        for p in (book / "html").rglob("*.html")
        if p.relative_to(book / "html").parts[0] not in (FOLDER, "_static")
    }
    found = {str(p.relative_to(book / "html" / FOLDER)) for p in chinese_pages(book)}
    assert english - found <= {"404.html"}
    for page in chinese_pages(book):
        head = page.read_text(encoding="utf-8")[:2000]
        assert re.search(r'<html[^>]* lang="zh', head), page


def test_nothing_is_left_without_a_translation(book: Path) -> None:
    left = json.loads((book / UNTRANSLATED).read_text(encoding="utf-8"))
    assert not left, f"{len(left)} texts, the first: {list(left.items())[:5]}. Run tools/translations.py."


def test_no_page_shows_a_reader_english_phrases(book: Path) -> None:
    """Read off the pages themselves, whatever the catalogues say."""
    found = []
    for page in chinese_pages(book):
        if page.stem in PAGES_OF_TITLES:
            continue
        soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
        for tag in soup.select(AS_WRITTEN):
            tag.decompose()
        article = soup.find("article") or soup.body
        text = " ".join(article.get_text(" ").split())
        text = re.sub("\u201c[^\u201d\u4e00-\u9fff]*\u201d", "", text)  # what an engine prints
        found += [(page.name, match[0]) for match in PHRASE.finditer(text)]
    assert not found, found[:20]


def test_every_figure_has_chinese_labels(book: Path) -> None:
    """Figures are drawn once; their texts are put into Chinese, but for names and numbers."""
    letters = 0
    for drawn in sorted((book / "html" / FOLDER / "_images").glob("*.svg")):
        text = drawn.read_text(encoding="utf-8")
        words = re.findall(r"<text\b[^>]*>([^<]*)</text>", text)
        assert not [w for w in words if PHRASE.search(w)], drawn
        letters += any("\u4e00" <= c <= "\u9fff" for w in words for c in w)
    assert letters >= 25


@pytest.mark.parametrize("words", ["专家并行", "盈亏平衡点", "超节点", "状态槽"])
def test_the_search_finds_words_of_the_trade(book: Path, browser: Browser, words: str) -> None:
    page = browser.new_page()
    page.goto(f"{(book / 'html' / FOLDER / 'search.html').as_uri()}?q={words}")
    page.wait_for_selector("#search-results li", timeout=15_000)
    assert page.locator("#search-results li").count() >= 1
    page.close()


def test_the_switch_leads_to_the_same_page_and_back(book: Path, browser: Browser) -> None:
    page = browser.new_page()
    start = (book / "html" / "nb" / "side-by-side.html").as_uri()
    page.goto(start)
    page.click("a.k3-language")
    assert page.url == (book / "html" / FOLDER / "nb" / "side-by-side.html").as_uri()
    assert page.evaluate("document.documentElement.lang").startswith("zh")
    page.click("a.k3-language")
    assert page.url == start
    page.close()


def test_a_number_says_its_trail_in_chinese(book: Path, browser: Browser) -> None:
    page = browser.new_page()
    page.goto((book / "html" / FOLDER / "index.html").as_uri())
    page.locator("article a.k3-number").first.focus()
    note = page.locator("#k3-note")
    note.wait_for(state="visible")
    assert re.search("[\u4e00-\u9fff]", note.inner_text())
    assert not PHRASE.search(re.sub(r"\u6765\u6e90\uff1a.*", "", note.inner_text()))
    page.close()


def test_phrases_that_other_scenarios_need_are_there() -> None:
    """Names and choices that the base scenario does not show."""
    book = phrases(CHINESE)
    for text in (
        "buy 3 times 64 Ascend 910C",
        "rent 64 GB300",
        "call Kimi K3 at Moonshot",
        "below 12 million tokens of output a day: buy 32 H20 141 GB",
        "missed: first token 3.4 times too late",
        "1 card",
        "7 cards (3 to 12 cards)",
        "needs 46 million yuan at once",
    ):
        book.text(text)
    assert not book.missing
