"""The book of phrases, and what it does to pages and figures."""

import html
import re

import pytest
from docutils import nodes
from hypothesis import given
from hypothesis import strategies as st

from k3lib.errors import InputError
from k3lib.report.phrases import NUMBER, PhraseBook, filled, multiplied, phrase_of, read_phrases
from k3lib.report.translate import in_document, in_html, in_svg

PHRASES = {
    "{0} of {1} layouts fit": "{1} 种策略中有 {0} 种放得下",
    "{0} million yuan": "{0:x100} 万元",
    "buy {a}": "购置 {a}",
    "if {a}: {b}": "若{a}：{b}",
    "texts may leave the house": "文本可以出域",
    "call <0>{a}</0> now": "现在调用 <0>{a}</0>",
    "output": "输出",
    "the card": "单卡",
    "{a} ({b} to {c})": "{a}（{b} 至 {c}）",
    "{0} tokens": "{0} token",
    "one long line of words": "一行很长的文字",
    "It works": "可行",
}


@pytest.fixture
def phrase_book():
    return PhraseBook(PHRASES, frozenset({"Ascend", "Kimi"}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12 of 75 layouts fit", "75 种策略中有 12 种放得下"),
        ("6.6 million yuan", "660 万元"),
        ("buy 64 Ascend 910C", "购置 64 Ascend 910C"),
        ("Buy 32 H20 96 GB", "购置 32 H20 96 GB"),
        ("if texts may leave the house: buy 64 GB200", "若文本可以出域：购置 64 GB200"),
        ("output, tok/s", "输出，tok/s"),
        ("output of, tok/s", "output of, tok/s"),  # a part is missing: all stays
        ("1,331 tokens (1,080 to 1,640 tokens)", "1,331 token（1,080 至 1,640 token）"),
        ("It works. It works.", "可行。可行。"),
        ("the card (output)", "单卡（输出）"),
        ("tp8,pp4", "tp8,pp4"),
        ("--kv-cache-dtype", "--kv-cache-dtype"),
        ("call <0>Kimi K3</0> now", "现在调用 <0>Kimi K3</0>"),
        ("\u2212 12.5", "\u2212 12.5"),
        ("<0/> <1>12 tokens</1>", "<0/> <1>12 token</1>"),
        ("64 H20", "64 H20"),
        ("", ""),
    ],
)
def test_texts(phrase_book, text, expected):
    assert phrase_book.text(text) == expected


def test_what_is_missing_is_named_by_phrase_with_an_example(phrase_book):
    assert phrase_book.text("It works. 12 geese fly; 13 geese fly") == "可行。12 geese fly；13 geese fly"
    assert phrase_book.missing == {"{0} geese fly": "12 geese fly"}


def test_space_around_a_text_stays(phrase_book):
    assert phrase_book.text("  output\n") == "  输出\n"


def test_a_script_asks_for_a_phrase_as_written():
    book = PhraseBook({"{0} of {1} rows": "{1} 行中的 {0} 行"})
    assert book.exact("{0} of {1} rows") == "{1} 行中的 {0} 行"
    assert book.exact("no such words") == "no such words"
    assert list(book.missing) == ["no such words"]


@given(st.lists(st.floats(-1e9, 1e9, allow_nan=False).map(lambda x: f"{x:,.3f}"), min_size=1, max_size=5))
def test_numbers_of_a_text_are_all_in_its_translation(numbers):
    text = " geese and ".join(numbers)
    phrase = phrase_of(text)
    assert not NUMBER.findall(phrase.replace("{", "").replace("}", "x"))
    assert filled(phrase, NUMBER.findall(text)) == text


@given(st.text(max_size=60))
def test_a_text_without_any_phrase_stays_as_it_is(text):
    apart = "; " in text or re.search(r"[.!?] ", " ".join(text.split()))
    assert apart or PhraseBook({}).text(text) == text


@pytest.mark.parametrize(
    ("written", "factor", "expected"),
    [
        ("6.6", 100, "660"),
        ("0.303", 100, "30.3"),
        ("12", 100, "1,200"),
        ("1,234.5", 10, "12,345"),
        ("2.78", 10, "27.8"),
    ],
)
def test_millions_become_ten_thousands(written, factor, expected):
    assert multiplied(written, factor) == expected


def test_html_keeps_all_but_its_sentences(phrase_book):
    page = (
        '<table class="k3-table"><caption>output</caption><tr><th scope="row">buy 64 GB200</th><td class="k3-right">'
        '<a class="k3-number" data-key="a.b">12 of 75 layouts fit</a><br><small>1,080–1,640</small></td></tr></table>'
    )
    assert in_html(page, phrase_book) == (
        '<table class="k3-table"><caption>输出</caption><tr><th scope="row">购置 64 GB200</th><td class="k3-right">'
        '<a class="k3-number" data-key="a.b">75 种策略中有 12 种放得下</a><br>'
        "<small>1,080–1,640</small></td></tr></table>"
    )


def test_html_code_formulas_and_scripts_stay(phrase_book):
    page = '<p><code>output</code></p><script>var a = "output";</script><span class="math">\\(output\\)</span>'
    assert in_html(page, phrase_book) == page


def test_html_in_pieces_and_with_escapes(phrase_book):
    assert in_html('<div aria-label="output">', phrase_book) == '<div aria-label="输出">'
    assert in_html("</div>", phrase_book) == "</div>"
    shown = in_html("<p>a &lt;b&gt; &amp; c</p>", phrase_book)
    assert html.unescape(shown) == "<p>a <b> & c</p>"
    assert "<b>" not in shown


def test_html_marks_may_change_places():
    book = PhraseBook({"see <0>the table</0> for <1/>": "<1/> 见 <0>该表</0>"})
    assert in_html('<p>see <a href="x">the table</a> for <code>k3</code></p>', book) == (
        '<p><code>k3</code> 见 <a href="x">该表</a></p>'
    )


def test_script_data_is_said_where_its_tag_says_so(phrase_book):
    page = '<script type="application/json" data-said="words">{"words": "output", "unit": "output"}</script>'
    assert '"words": "输出", "unit": "output"' in in_html(page, phrase_book)


def test_figures_keep_their_lines(phrase_book):
    drawn = (
        '<g id="text_1"><text x="1">one long</text><text x="2">line of words</text></g>'
        '<g id="text_2"><text>12 of 75 layouts fit</text></g><g id="text_3"><text>0.5</text></g>'
    )
    assert in_svg(drawn, phrase_book) == (
        '<g id="text_1"><text x="1">一行很长</text><text x="2">的文字</text></g>'
        '<g id="text_2"><text>75 种策略中有 12 种放得下</text></g><g id="text_3"><text>0.5</text></g>'
    )


def test_a_document_is_translated_where_no_catalogue_did():
    book = PhraseBook({"see <0>the table</0>": "见 <0>该表</0>", "output": "输出"})
    document = nodes.document(None, None)
    link = nodes.reference("", "the table", refuri="x")
    made = nodes.paragraph("", "", nodes.Text("see "), link)
    done = nodes.paragraph("", "output", translated=True)
    own = nodes.paragraph("output of the page", "output of the page", translated=False)
    raw = nodes.raw("", "<p>output</p>", format="html")
    document += [made, done, own, raw]
    assert in_document(document, book) == ["output of the page"]
    assert made.astext() == "见 该表"
    assert link.astext() == "该表"
    assert done.astext() == "output"
    assert raw.astext() == "<p>输出</p>"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('msgid "{0} cards"\nmsgstr "{1} 张卡"\n', "has 1"),
        ('msgid "see <0>it</0>"\nmsgstr "见它"\n', "lacks </0>, <0>"),
    ],
)
def test_a_translation_with_other_places_is_refused(tmp_path, content, words):
    (tmp_path / "names.txt").write_text("Kimi", encoding="utf-8")
    (tmp_path / "a.po").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_phrases(tmp_path)


def test_two_translations_of_one_phrase_are_refused(tmp_path):
    (tmp_path / "names.txt").write_text("", encoding="utf-8")
    for name, word in (("a", "卡"), ("b", "张")):
        (tmp_path / f"{name}.po").write_text(f'msgid "card"\nmsgstr "{word}"\n', encoding="utf-8")
    with pytest.raises(InputError, match="another translation"):
        read_phrases(tmp_path)
