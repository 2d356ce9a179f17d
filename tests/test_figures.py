"""Figures and tables as a reader has them: told apart in grey, in the dark and on a phone, named, and asked by hand."""

from __future__ import annotations

import io
import itertools
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.text import Text
from playwright.sync_api import Browser, Page

from k3lib.facts.clusters import clusters
from k3lib.facts.paths import ROOT
from k3lib.report import front, labels, looks, show
from k3lib.report import terms as tm

STYLES = (ROOT / "book" / "_static" / "k3.css").read_text(encoding="utf-8")
PHONE = dict(viewport={"width": 390, "height": 844}, device_scale_factor=2, is_mobile=True, has_touch=True)
NIGHT = "#121212"  # the theme's ground in the dark
LINE = 3.0  # contrast that a line or a mark needs, by WCAG 2.1


def at_night(colour: str) -> looks.Rgb:
    """A colour after the filter that the book's styles put on figures in dark mode."""
    found = re.search(r'img\[src\$="\.svg"\] \{ filter: invert\(([\d.]+)\) hue-rotate\(180deg\)', STYLES)
    assert found
    share = float(found[1])
    turned = [c * (1 - 2 * share) + share for c in looks.rgb(colour)]
    weights = (0.213, 0.715, 0.072)
    grey = 2 * sum(w * c for w, c in zip(weights, turned, strict=True))
    red, green, blue = (min(1.0, max(0.0, grey - c)) for c in turned)
    return red, green, blue


EVERY_LOOK = {
    **looks.CARDS,
    "any": looks.ANY_CARD,
    "service": looks.SERVICE,
    "ours": looks.OURS,
    "article": looks.ARTICLE,
}


def test_every_option_is_seen_on_white_and_in_the_dark() -> None:
    for name, look in EVERY_LOOK.items():
        assert looks.contrast(looks.rgb(look.colour), looks.WHITE) >= LINE, name
        assert looks.contrast(at_night(look.colour), looks.rgb(NIGHT)) >= LINE, name
        assert looks.contrast(looks.rgb(look.ink), looks.WHITE) >= looks.READABLE, name
        assert looks.contrast(at_night(look.ink), looks.rgb(NIGHT)) >= looks.READABLE, name


def test_options_differ_in_their_marks_and_services_and_rents_in_their_lines() -> None:
    marks = [look.mark for look in (*looks.CARDS.values(), looks.ANY_CARD, looks.SERVICE)]
    assert len(set(marks)) == len(marks)
    assert len({colour for colour, _ in looks.SERIES}) == len({mark for _, mark in looks.SERIES}) == len(looks.SERIES)
    known = clusters()
    own, rent = (looks.of_way(f"{kind}:a3x64{rest}", known) for kind, rest in (("own", ""), ("rent", ":year")))
    assert own == looks.of_cluster(known["a3x64"]) and (own.colour, own.mark) == (rent.colour, rent.mark)
    assert own.points["fillstyle"] == "full" and rent.points["fillstyle"] == "none"
    assert looks.of_way("api:k3@moonshot", known) == looks.SERVICE
    assert looks.of_cluster(known["floor80x64"]) == looks.ANY_CARD != looks.of_cluster(known["h100x64"])


def test_the_clusters_of_the_book_have_looks_of_their_own() -> None:
    products = [c for c in clusters().values() if c.kind != "hypothetical"]
    assert all(c.device in looks.CARDS for c in products)
    assert looks.of_card("a card of tomorrow") == looks.ANY_CARD


MEMORY = ("experts", "scales", "padding", "dense", "copied", "other")


@pytest.mark.parametrize(
    "stack",
    [
        [looks.PARTS[p] for p in MEMORY],
        looks.SPENDING,
        list(looks.VERDICTS.values()),
        list(dict.fromkeys(tm.TERM_COLOURS.values())),
        looks.BETTER_TO_WORSE[:3],
        looks.BETTER_TO_WORSE[3:],
    ],
    ids=["memory", "month", "verdicts", "step", "better", "worse"],
)
def test_neighbours_in_a_bar_differ_in_a_grey_print(stack: list[str]) -> None:
    for one, other in itertools.pairwise(stack):
        assert abs(looks.lightness(one) - looks.lightness(other)) >= 14, (one, other)


def test_lightness_contrast_and_inks() -> None:
    assert looks.lightness("#000000") == 0 and looks.lightness("#FFFFFF") == pytest.approx(100)
    assert looks.lightness("#777777") == pytest.approx(50, abs=0.2)
    assert looks.contrast(looks.rgb("#000000"), looks.WHITE) == pytest.approx(21)
    assert looks.readable("#333333") == "#333333"
    for colour in {*looks.PARTS.values(), *looks.SPENDING}:
        ink = looks.ink_on(colour)
        assert looks.contrast(looks.rgb(ink), looks.rgb(colour)) >= looks.READABLE, colour


LINES = st.lists(
    st.lists(st.tuples(st.floats(1, 50), st.floats(1, 300)), min_size=1, max_size=6), min_size=1, max_size=5
)


@settings(max_examples=12)
@given(LINES)
def test_names_on_lines_stand_in_the_axes_and_not_over_each_other(lines: list[list[tuple[float, float]]]) -> None:
    drawn, axis = show.axes(4.0)
    try:
        axis.set(xscale="log", yscale="log", xlim=(0.5, 100), ylim=(0.5, 600))
        named = {f"line {i}": ([x for x, _ in line], [y for _, y in line], "#0072B2") for i, line in enumerate(lines)}
        labels.names_on_lines(axis, named)
        drawn.draw_without_rendering()
        boxes = [text.get_window_extent() for text in axis.texts]
        frame = axis.get_window_extent()
        assert {text.get_text() for text in axis.texts} == set(named)
        assert all(
            frame.x0 - 1 <= b.x0 and b.x1 <= frame.x1 + 1 and frame.y0 - 1 <= b.y0 and b.y1 <= frame.y1 + 1
            for b in boxes
        )
        assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    finally:
        plt.close(drawn)


def test_names_at_ends_keep_the_order_of_their_lines() -> None:
    drawn, axis = show.axes(3.0)
    axis.set(yscale="log", ylim=(1, 1000))
    labels.names_at_ends(axis, {"low": (1, 10.0, "#0072B2"), "high": (1, 11.0, "#D55E00"), "mid": (1, 10.5, "#009E73")})
    drawn.draw_without_rendering()
    boxes = {text.get_text(): Text.get_window_extent(text) for text in axis.texts}  # without the leading lines
    plt.close(drawn)
    assert boxes["low"].y1 <= boxes["mid"].y0 and boxes["mid"].y1 <= boxes["high"].y0


def test_a_figure_in_the_page_has_a_name_and_no_style_for_the_page() -> None:
    drawn, axis = show.axes(3.0)
    axis.plot(1, 1, "o", gid=f"{front.POINT}0")
    out = io.StringIO()
    drawn.savefig(out, format="svg")
    plt.close(drawn)
    text = front.inline(out.getvalue(), 'speed & "output"')
    assert text.startswith("<svg viewBox=") and 'aria-label="speed &amp; &quot;output&quot;"' in text
    assert "<style" not in text and "<metadata" not in text and f'id="{front.POINT}0"' in text
    with pytest.raises(ValueError, match="viewBox"):
        front.inline("<svg></svg>", "none")


# Texts over each other, texts cut off, and the smallest size of text in a figure.
FAULTS_OF_TEXT = """svg => {
  const frame = svg.getBoundingClientRect(), faults = [];
  const texts = [...svg.querySelectorAll('text')].filter(e => e.textContent.trim());
  const boxes = texts.map(e => ({text: e.textContent, box: e.getBoundingClientRect()}));
  boxes.forEach((a, i) => {
    if (a.box.left < frame.left - 1 || a.box.top < frame.top - 1 || a.box.right > frame.right + 1 ||
        a.box.bottom > frame.bottom + 1)
      faults.push('cut off: ' + a.text);
    for (const b of boxes.slice(i + 1)) {
      const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
      const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
      if (across > 1 && down > 0.35 * Math.min(a.box.height, b.box.height)) faults.push(a.text + ' over ' + b.text);
    }
  });
  return {faults, least: Math.min(...texts.map(e => parseFloat(getComputedStyle(e).fontSize))), texts: texts.length};
}"""


def test_no_text_of_a_figure_is_cut_off_or_over_another_or_small(browser: Browser, book: Path) -> None:
    """Text that stays text takes the font of the reader: it is measured where it is shown, not where it is drawn."""
    page = browser.new_context().new_page()
    files = sorted((book / "html" / "_images").glob("*.svg"))
    assert len(files) >= 25
    for file in files:
        page.goto(file.as_uri())
        found = page.evaluate(f"({FAULTS_OF_TEXT})(document.documentElement)")
        assert not found["faults"], (
            file.name,
            found["faults"],
            page.evaluate("document.documentElement.textContent")[:300],
        )
        assert found["texts"] and found["least"] >= labels.SMALL
    page.context.close()


WHAT_FIGURES_ARE = """() =>
  [...document.querySelectorAll('article img[src$=".svg"], article .k3-front > svg')].map(e => ({
    alt: e.getAttribute('alt') || e.getAttribute('aria-label') || '', width: e.getBoundingClientRect().width,
    caption: (e.closest('figure')?.querySelector('figcaption') ||
              e.closest('.cell')?.nextElementSibling || {}).textContent || ''}))"""


def test_every_figure_says_its_finding_and_what_it_shows_and_fills_a_phone(browser: Browser, book: Path) -> None:
    page = browser.new_context(**PHONE).new_page()
    found = []
    for path in sorted((book / "html" / "nb").glob("*.html")):
        page.goto(path.as_uri())
        found += [{"page": path.stem, **one} for one in page.evaluate(WHAT_FIGURES_ARE)]
        within = page.evaluate(f"[...document.querySelectorAll('.k3-front > svg')].map({FAULTS_OF_TEXT})")
        assert not [one for one in within if one["faults"] or one["least"] < labels.SMALL], path.name
    page.context.close()
    assert len(found) >= 30
    for one in found:
        assert len(one["alt"]) > 60 and ".svg" not in one["alt"], one
        assert len(one["caption"]) > 60, one
        assert 320 <= one["width"] <= 390, one
    assert len({(one["alt"], one["caption"]) for one in found}) >= len(found) - 1  # two plans are drawn alike


def test_a_point_is_asked_by_mouse_key_and_finger(browser: Browser, book: Path) -> None:
    address = (book / "html" / "nb" / "k3-on-32-h20-predicted.html").as_uri()
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.goto(address)
    note = page.locator(".k3-front-note")
    assert note.is_hidden()
    rows = page.locator(".k3-front tbody tr")
    marks = page.locator(".k3-front svg [role=img]")
    assert marks.count() == rows.count() > 40
    marks.nth(3).scroll_into_view_if_needed()
    box = marks.nth(3).bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert note.is_visible()
    page.mouse.move(5, 5)
    marks.first.focus()
    page.keyboard.press("ArrowRight")
    cells = [text.strip() for text in rows.nth(1).locator("th, td").all_text_contents()]
    assert note.locator("dd").all_inner_texts() == cells
    assert all(cell in (marks.nth(1).get_attribute("aria-label") or "") for cell in cells)
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.id") == f"{front.POINT}{marks.count() - 1}"
    page.keyboard.press("Escape")
    assert note.is_hidden()
    page.context.close()
    phone = browser.new_context(**PHONE).new_page()
    phone.goto(address)
    mark = phone.locator(f"#{front.POINT}5")
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    assert box
    phone.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    note = phone.locator(".k3-front-note").bounding_box()
    figure = phone.locator(".k3-front > svg").bounding_box()
    assert note and figure and note["y"] >= figure["y"] + figure["height"] - 1
    phone.context.close()


LONG_TABLE = ["Layout", "Output, tok/s"], [[f"tp{n}", f"{n * 37 % 41:,} (1\u20139)"] for n in range(1, 31)]


@pytest.fixture
def long_table(browser: Browser, tmp_path: Path) -> Page:
    """A page with a table of thirty rows and a sum, and the book's script."""
    script = (ROOT / "book" / "_assets" / "k3-browser.js").read_text(encoding="utf-8")
    header, rows = LONG_TABLE
    body = show.table_html(header, [*rows, ["no number", "\u2013"], ["sum", "999"]], label="Layouts", total=True)
    file = tmp_path / "page.html"
    file.write_text(f'<!doctype html><html lang="en"><title>t</title>{body}<script>{script}</script>', encoding="utf-8")
    page = browser.new_context().new_page()
    page.goto(file.as_uri())
    return page


def test_a_long_table_sorts_by_number_and_by_key_and_keeps_its_sum(long_table: Page) -> None:
    page = long_table
    outputs = [int(row[1].partition(" ")[0].replace(",", "")) for row in LONG_TABLE[1]]

    def shown() -> list[str]:
        return page.locator("tbody tr:visible > :nth-child(2)").all_inner_texts()

    button = page.get_by_role("button", name="Output, tok/s")
    for direction, order in (("ascending", sorted(outputs)), ("descending", sorted(outputs, reverse=True))):
        button.focus()
        page.keyboard.press("Enter")
        assert page.locator("th[aria-sort]").get_attribute("aria-sort") == direction
        assert [int(text.partition(" ")[0]) for text in shown()[:-2]] == order
        assert shown()[-2:] == ["\u2013", "999"]
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort]").count() == 0
    assert [int(text.partition(" ")[0]) for text in shown()[:-2]] == outputs
    page.get_by_role("button", name="Layout").click()
    assert page.locator("tbody tr th").all_inner_texts()[:4] == ["no number", "tp1", "tp2", "tp3"]
    page.get_by_label("Rows with all these words").fill("tp12")
    assert shown() == [LONG_TABLE[1][11][1], "999"]
    assert page.get_by_role("status").inner_text() == "1 of 31 rows"
    page.context.close()


TABLES = """() => [...document.querySelectorAll('table.k3-table')].map(t => ({
  rows: t.tBodies[0].rows.length, buttons: t.querySelectorAll('.k3-sort').length,
  fields: t.closest('.k3-scroll').previousElementSibling?.querySelectorAll('input').length || 0}))"""
MOVED = """() => [...document.querySelectorAll('.k3-scroll')]
  .filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 20).map(e => {
    e.scrollLeft = 1000;
    const first = e.querySelector('tbody th').getBoundingClientRect(), frame = e.getBoundingClientRect();
    return {left: first.left - frame.left, share: first.width / frame.width, by: e.scrollLeft,
            ground: getComputedStyle(e).backgroundImage}})"""


def test_a_short_table_has_no_buttons_and_a_longer_one_no_field(browser: Browser, book: Path) -> None:
    page = browser.new_context().new_page()
    page.goto((book / "html" / "nb" / "against-the-logs.html").as_uri())
    counts = page.evaluate(TABLES)
    assert {one["rows"] > 12 for one in counts} == {True, False}
    for one in counts:
        assert (one["buttons"] > 0) == (one["rows"] > 12), one
        assert (one["fields"] > 0) == (one["rows"] > show.LONGEST), one
    page.context.close()


def test_the_first_column_stays_in_sight_on_a_phone(browser: Browser, book: Path) -> None:
    page = browser.new_context(**PHONE).new_page()
    page.goto((book / "html" / "nb" / "side-by-side.html").as_uri())
    moved = page.evaluate(MOVED)
    assert len(moved) > 5
    for one in moved:
        assert one["by"] > 15 and abs(one["left"]) <= 1 and one["share"] < 0.55, one
        assert "gradient" in one["ground"]
    page.context.close()


AMOUNT = re.compile(r"\d[\d,.]*\s?(?:ms|CNY|yuan|tok/s|GiB|TB)\b")


def test_figures_have_names_and_take_their_amounts_from_results() -> None:
    found = set()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if not re.search(r"show\.figure\(|fr\.front\(", source) or "for one in PLANS" in source:
                continue  # several pictures of one cell have their words below them
            said = cell["metadata"]["mystnb"]["figure"]
            assert said["name"].startswith("fig-") and said["name"] not in found, path.name
            found.add(said["name"])
            typed = re.sub(r"\{val\}`[^`]*`", "", said["caption"])
            assert set(AMOUNT.findall(typed)) <= {"1 GiB", "100 GiB"}, path.name
