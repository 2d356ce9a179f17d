"""The book and the brief on paper: what a reader of the PDFs finds, and builds that cannot print."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from conftest import k3

from k3lib import kept
from k3lib.errors import InputError
from k3lib.facts.paths import ROOT
from k3lib.report import build as job
from k3lib.report import downloads, pdf, printed

ENGLISH = ("k3-report.pdf", "k3-brief.pdf")
FILES = (*ENGLISH, "k3-report-zh.pdf", "k3-brief-zh.pdf")
A4_PT = (594.96, 841.92)
# What belongs to a screen alone.
OF_SCREENS = ("Skip to main content", "Show code cell", "显示代码", "Back to top", "Click to show", "Print to PDF")


def said(*command: str | Path) -> str:
    """What a program of Poppler prints. Its absence is a failure, never a skip."""
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout


def pages_of(path: Path, *how: str) -> list[str]:
    """The text of each page."""
    return said("pdftotext", *how, path, "-").split("\f")[:-1]


def tight(text: str) -> str:
    """A text without spaces, which lines and pages break elsewhere, and with one form of apostrophe."""
    return "".join(text.split()).replace("\u2019", "'")


@pytest.fixture(scope="module", params=FILES)
def paper(request: pytest.FixtureRequest, book: Path) -> Path:
    return book / "pdf" / str(request.param)


@pytest.fixture(scope="module")
def report(book: Path) -> list[str]:
    return pages_of(book / "pdf" / "k3-report.pdf")


def test_pages_are_a4_numbered_and_tagged_with_fonts_embedded_and_no_raster(paper: Path) -> None:
    facts = dict(re.findall(r"^(.+?):\s+(.*)$", said("pdfinfo", paper), flags=re.MULTILINE))
    assert facts["Tagged"] == "yes" and facts["Title"] not in ("", printed.UNFINISHED)
    sizes = re.findall(r"size:\s+([\d.]+) x ([\d.]+)", said("pdfinfo", "-f", "1", "-l", facts["Pages"], paper))
    assert len(sizes) == int(facts["Pages"])
    for width, height in sizes:
        assert sorted((float(width), float(height))) == pytest.approx(A4_PT, abs=0.5)
    texts = pages_of(paper, "-layout")  # by the place of lines, so that the foot comes last
    front = 1 if "report" in paper.name else 0
    for number, text in list(enumerate(texts, start=1))[front:]:
        assert text.strip().splitlines()[-1].strip() == str(number), (number, text[-80:])
        assert len(tight(text)) > 20, f"page {number} is empty"
    assert all(line.split()[-5] == "yes" for line in said("pdffonts", paper).splitlines()[2:])
    assert len(said("pdfimages", "-list", paper).splitlines()) == 2, "a figure is a raster image"


def test_a_brief_has_two_pages(book: Path) -> None:
    for name in ("k3-brief.pdf", "k3-brief-zh.pdf"):
        assert len(pages_of(book / "pdf" / name)) == 2


def test_the_outline_has_every_part_and_chapter_at_its_page(book: Path, report: list[str]) -> None:
    outline = said("pdftohtml", "-xml", "-i", "-stdout", book / "pdf" / "k3-report.pdf").partition("<outline>")[2]
    found = {BeautifulSoup(title, "html.parser").get_text(): int(page)
             for page, title in re.findall(r'<item page="(\d+)">(.*?)</item>', outline)}  # fmt: skip
    parts = printed.parts_of(book / "html")
    assert len(parts) > 5
    contents = tight("".join(report[:3]))
    for part in parts:
        assert not part.caption or part.caption in found
        for page in set(part.pages) - {printed.ABOUT}:  # which stands under the title, without its own
            title = heading(book, page)
            assert title in found, title
            assert tight(title) in tight(report[found[title] - 1])
            if page != printed.HOME:
                assert f"{tight(title)}{found[title]}" in contents, title


def heading(book: Path, page: str) -> str:
    soup = BeautifulSoup((book / "html" / f"{page}.html").read_text(encoding="utf-8"), "html.parser")
    return soup.select_one("article h1").get_text().removesuffix("#").strip()


def numbers_on(page: Path) -> Iterator[str]:
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    for tag in soup.select("article .k3-minor, article details.hide"):
        tag.decompose()
    for number in soup.select("article a.k3-number"):
        yield tight(number.get_text())


def test_every_number_of_every_page_is_on_paper(book: Path, report: list[str]) -> None:
    """Long ones, which are sentences, may run over the end of a page."""
    text = tight("".join(report))
    pages = [page for part in printed.parts_of(book / "html") for page in part.pages]
    shown = {number for page in pages for number in numbers_on(book / "html" / f"{page}.html") if len(number) < 30}
    assert len(shown) > 1000
    assert not {number for number in shown if number not in text}
    brief = tight("".join(pages_of(book / "pdf" / "k3-brief.pdf")))
    results = json.loads((book / "results.json").read_text(encoding="utf-8"))
    for key in ("answer.sentence1", "answer.sentence2", "answer.sentence3", "scenario.name", "scenario.data_version"):
        assert tight(results[key]["value"]) in brief, key


def test_paper_has_what_is_read_and_nothing_of_the_screen(report: list[str]) -> None:
    text = "\n".join(report)
    for words in OF_SCREENS:
        assert words not in text
    assert "\\frac" not in text and "\\(" not in text, "an equation is not set"
    assert "How each number was made" not in text and "list of all numbers" in text
    answers = re.findall(r"^Answer$", text, flags=re.MULTILINE)
    assert len(answers) >= 41, "an answer is hidden"


def test_no_table_is_cut(browser: object, book: Path, tmp_path: Path) -> None:
    """In the document that is printed no table is wider than the room of its page."""
    html, work = tmp_path / "html", tmp_path / "print"
    html.symlink_to(book / "html")
    shutil.copytree(job.PRINT, work)
    text = printed.report(printed.Edition(html, "../html"), pdf.STYLE, pdf.SCRIPT)
    (work / "report.html").write_text(text, encoding="utf-8")
    page = browser.new_page()  # type: ignore[attr-defined]
    page.goto((work / "report.html").as_uri())
    page.wait_for_function(f"document.title !== '{printed.UNFINISHED}'", timeout=120_000)
    cut = page.evaluate("""[...document.querySelectorAll("table, pre, img, mjx-container")].filter((one) => {
        const across = one.closest(".fit-wide") ? 265 : 178;
        return one.getBoundingClientRect().right > (across * 96) / 25.4 + 2;
    }).map((one) => one.outerHTML.slice(0, 120))""")
    assert not cut
    assert page.locator("mjx-merror, [data-mjx-error]").count() == 0
    page.close()


def test_the_pages_offer_what_there_is(book: Path) -> None:
    for place, ending in (("html", ""), ("html/zh", "-zh")):
        for page in ("downloads", "index"):
            text = (book / place / f"{page}.html").read_text(encoding="utf-8")
            assert all(f'href="_downloads/{name}"' in text for name in ENGLISH)
            assert "k3-without-pdf" not in text
        for name in ENGLISH:
            offered = book / place / "_downloads" / name
            assert offered.read_bytes() == (book / "pdf" / name.replace(".pdf", f"{ending}.pdf")).read_bytes()


def test_no_path_of_this_machine_is_in_a_pdf(book: Path) -> None:
    for name in FILES:
        content = (book / "pdf" / name).read_bytes()
        assert str(ROOT).encode() not in content and b"file:" not in content


def test_without_chromium_the_book_is_built_and_says_so(book: Path, tmp_path: Path) -> None:
    """In a PATH where no browser is; what there was of PDFs before is gone with the book that it belonged to."""
    out = tmp_path / "out"
    shutil.copytree(book, out)
    done = k3("build", "--out", str(out), env={"PATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert "no PDF was made: none of chromium" in done.stderr and len(done.stderr.strip().splitlines()) <= 2
    assert list((out / "pdf").iterdir()) == []
    assert not list((out / "html").rglob("k3-*.pdf"))
    for place in ("html", "html/zh"):
        assert "_downloads/k3-report.pdf" not in (out / place / "index.html").read_text(encoding="utf-8")
        text = (out / place / "downloads.html").read_text(encoding="utf-8")
        assert "k3-without-pdf" in text and "k3-with-pdf" not in text


def program(folder: Path, body: str) -> str:
    """A browser that does what a line of Python says; `target` is where the PDF is asked for."""
    path = folder / "chromium"
    start = "import sys, time; target = next((a[15:] for a in sys.argv if a.startswith('--print-to-pdf=')), '')"
    path.write_text(f"#!{sys.executable}\n{start}\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


WRITE = "open(target, 'w').write"
BAD_BROWSERS = {
    "fails": ("sys.exit(3)", "ended with code 3"),
    "prints nothing": ("", "ended with code 0"),
    "ends early": (f"{WRITE}('%PDF-1.4 half')", "ended with code 0"),
    "too soon": (f"{WRITE}('%PDF-1.4 /Title (unfinished) %%EOF')", "were not set"),
    "hangs": ("time.sleep(60)", "took longer than"),
}


@pytest.mark.parametrize(("body", "words"), BAD_BROWSERS.values(), ids=BAD_BROWSERS)
def test_a_browser_that_does_not_print_is_one_line(
    body: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "LONGEST_S", 1)
    with pytest.raises(InputError, match=words) as error:
        pdf._print(program(tmp_path, body), "<p>x", tmp_path / "page.html", "2026")
    assert "\n" not in str(error.value) and str(error.value).startswith("no PDF was made: ")


NAV = """<nav class="bd-links bd-docs-nav"><p class="caption">Part</p><ul><li><a href="nb/one.html">One</a></li>
<li><a href="numbers.html">Numbers</a></li></ul>
<p class="caption">Rest</p><ul><li><a href="about.html">About</a></li></ul></nav>"""
TEXTS = {
    "index": '<h1>Book</h1><p><a href="nb/one.html#deep">to one</a>, <a href="numbers.html#n">to numbers</a></p>',
    "nb/one": """<h1>One<a class="headerlink" href="#one">#</a></h1><script>let x</script><img src="../_images/a.svg">
        <h2 id="deep">Deep</h2><p><a class="k3-number" href="../numbers.html#n">12</a> <input></p>
        <details><summary>Answer</summary><p aria-describedby="x"><a href="#deep">up</a></p></details>
        <div class="cell"><details class="hide">code</details><a href="../index.html">home</a></div>""",
    "about": "<h1>About</h1><p>who</p>",
    "brief": "<h1>Brief</h1><p>short</p>",
    "numbers": "<h1>Numbers</h1>",
}


def written(folder: Path) -> None:
    """A book of a few words in two languages, as Sphinx leaves it: its pages offer PDFs and say that there are none."""
    both = "".join(f'<div class="k3-{kind}-pdf docutils container">{kind}</div>\n' for kind in ("with", "without"))
    for place, language in (("", "en"), ("zh", "zh-CN")):
        for name, text in TEXTS.items():
            path = folder / "html" / place / f"{name}.html"
            path.parent.mkdir(parents=True, exist_ok=True)
            head = f'<html lang="{language}"><head><title>{name} &amp; book</title></head>'
            article = f'<article class="bd-article"><section id="top">{text}</section></article>'
            path.write_text(f"<!DOCTYPE html>{head}<body>{NAV}{article}{both}</body></html>", encoding="utf-8")


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small book that is staged; what is kept has a folder of its own, programs of this one are found first."""
    folder = tmp_path / "ready"
    (folder / "downloads").mkdir(parents=True)
    written(folder)
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "kept"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return folder


def test_a_failed_print_leaves_no_half(ready: Path, tmp_path: Path) -> None:
    """The first print works, the second does not: then there is none, and no page offers one."""
    program(tmp_path, f"sys.exit(3) if 'report' in target else {WRITE}('%PDF-1.4 %%EOF')")
    assert job._finish(ready, True, False) == "no PDF was made: chromium ended with code 3"
    assert list((ready / "pdf").iterdir()) == []
    for page in (ready / "html").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert ">without<" in text and ">with<" not in text


def test_the_same_pages_are_printed_once(ready: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    program(tmp_path, f"{WRITE}('%PDF-1.4 %%EOF') if target else print('1')\nopen({str(log)!r}, 'a').write(target)")

    def finished(*, fresh: bool = False) -> int:
        for folder in ("pdf", "print", "print-zh"):
            shutil.rmtree(ready / folder, ignore_errors=True)
        written(ready)
        log.write_text("")
        assert job._finish(ready, True, fresh) is None
        return log.read_text().count(".pdf")

    assert finished() == 6, "a brief, and a report twice, in two languages"
    assert finished() == 0
    assert finished(fresh=True) == 6
    for name in FILES:
        assert (ready / "pdf" / name).read_bytes() == b"%PDF-1.4 %%EOF"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TEXTS, "brief", "<h1>Brief</h1><p>longer</p>")
        assert finished() == 6


def test_the_joined_document(ready: Path) -> None:
    text = printed.report(printed.Edition(ready / "html" / "zh", "../html/zh"), "print.css", "print.js")
    soup = BeautifulSoup(text, "html.parser")
    assert soup.html["lang"] == "zh-CN" and soup.title.string == printed.UNFINISHED
    assert soup.script["data-title"] == "index & book"
    assert [tag.get_text() for tag in soup.find_all(re.compile("^h[1-6]$"))] == ["Book", "Part", "One", "Deep", "Rest"]
    one = soup.find(id="nb-one")
    assert [link["href"] for link in one.find_all("a")] == ["#nb-one--deep", "#index"]
    assert soup.find(id="nb-one--deep").name == "h3" and one.find("details").has_attr("open")
    assert one.img["src"] == "../html/zh/_images/a.svg"
    assert "12" in one.get_text() and not one.find_all(["script", "input"]) and "code" not in one.get_text()
    assert [link.get_text() for link in soup.find(id="index").find_all("a")] == ["to one"]
    assert "to numbers" in text and "who" in soup.header.get_text() and "short" not in text
    ids = [tag["id"] for tag in soup.find_all(id=True)]
    assert len(ids) == len(set(ids)) and {link["href"][1:] for link in soup.find_all("a")} <= set(ids)
    assert '<span data-page="nb-one">7</span>' in printed.numbered(text, {"nb-one": 7})


def test_the_date_of_a_pdf_is_that_of_the_facts() -> None:
    before = b"/CreationDate (D:20261130163032+00'00')\n/ModDate (D:20261130163032+00'00')>>"
    for date, digits in (("2026", b"20260101"), ("2026-11", b"20261101"), ("2026-11-09", b"20261109")):
        after = pdf.settled(before, date)
        assert len(after) == len(before) and after.count(b"(D:" + digits + b"000000+") == 2


def test_names_in_a_pdf_are_by_their_order() -> None:
    first, second = (b"/ID (node%08d) /Headers [(node%08d) (node%08d)]" % names for names in ((7, 7, 12), (9, 9, 31)))
    assert pdf.settled(first, "2026") == pdf.settled(second, "2026") == first.replace(b"7", b"0").replace(b"12", b"01")


def test_what_is_left_out_is_said_and_settled(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    blocks = "".join(f'<div class="k3-{kind}-pdf docutils container">\n<p>{text}</p></div>\n'
                     for kind, text in (("with", "a"), ("without", "b")))  # fmt: skip
    for there, text in ((True, "a"), (False, "b")):
        page.write_text(f"<p>x</p>\n{blocks}<p>y</p>")
        downloads.settle(tmp_path, pdf=there)
        assert re.sub(r"<[^>]*>|\s", "", page.read_text()) == f"x{text}y"


def test_kept_files_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kept.FOLDER, str(tmp_path))
    kept.keep("other", 1)
    for at, name in enumerate(("a.pdf", "b.pdf", "c.pdf")):
        kept.keep_file(name, name.encode(), 2)
        os.utime(tmp_path / name, (at, at))
    assert [kept.find_file(name) for name in ("a.pdf", "b.pdf", "c.pdf")] == [None, b"b.pdf", b"c.pdf"]
    assert kept.find("other") == 1
