"""The published pages joined into one document for paper, without what only a screen can do."""

from __future__ import annotations

import html as markup
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

HOME, ABOUT, BRIEF = "index", "about", "brief"
# Not in the joined document: a list by the thousand, what answers to typing and sliding, downloads, and the brief,
# which is printed by itself. The page ABOUT says so.
LEFT_OUT = ("numbers", "nb/quiz", "what-if", "downloads", BRIEF)
UNFINISHED = "unfinished"  # the title until the script has set every equation and fitted every table
# What only a screen can do: buttons, fields, scripts, the code of a cell, links to a heading itself.
_SCREEN = ("script, noscript, button, input, select, dialog, .headerlink, .k3-filters, .k3-minor, .k3-screen, "
           ".cell > details.hide, .cell_input")  # fmt: skip
_HEADINGS = {f"h{level}": f"h{level + 1}" for level in range(5, 0, -1)}
_PLACE = re.compile(r'<span data-page="([^"]+)">')
_NAMES = ("for", "headers", "aria-controls", "aria-describedby", "aria-labelledby", "tabindex", "role")


@dataclass(frozen=True)
class Edition:
    """The published pages in one language. folder: where they are; address: the same, from where it is printed."""

    folder: Path
    address: str


@dataclass(frozen=True)
class Part:
    """A part of the book: its caption, empty for what stands before the first, and its pages without ending."""

    caption: str
    pages: tuple[str, ...]


def parts_of(html: Path) -> list[Part]:
    """The parts of a published book in their order, as the list beside its home page has them."""
    home = _soup(html / f"{HOME}.html", "<nav", "</nav>", 'class="bd-links bd-docs-nav"')
    parts = [Part("", (HOME,))]
    for caption in home.select("p.caption"):
        listed = caption.find_next_sibling("ul")
        links = listed.select("li > a") if isinstance(listed, Tag) else []
        pages = [str(link["href"]).removesuffix(".html") for link in links]
        parts.append(Part(caption.get_text(strip=True), tuple(page for page in pages if page not in LEFT_OUT)))
    return [part for part in parts if part.pages]


def report(edition: Edition, style: str, script: str) -> str:
    """The whole book as one HTML document. style, script: addresses of the style and the script for print."""
    parts = [Part(part.caption, tuple(p for p in part.pages if p != ABOUT)) for part in parts_of(edition.folder)]
    printed = {page for part in parts for page in part.pages} | {ABOUT}
    chapters = {page: _article(edition, page, printed, deeper=page != HOME) for page in printed}
    contents, body = [], []
    for number, part in enumerate(parts):
        items = [_line(page, chapters[page]) for page in part.pages if page != HOME]
        if part.caption:
            contents.append(f"<p>{part.caption}</p>")
            body.append(f'<h1 class="part" id="part-{number}">{part.caption}</h1>')
        contents.append(f"<ul>{''.join(items)}</ul>" if items else "")
        body += [str(chapters[page]) for page in part.pages]
    title = _title(edition.folder / f"{HOME}.html")
    front = f'<header class="front"><p class="title">{markup.escape(title)}</p>{_imprint(chapters[ABOUT])}</header>'
    listed = f'<nav class="contents">{"".join(contents)}</nav>'
    return _document(edition, "book", title, style, script, [front, listed, *body])


def single(edition: Edition, page: str, style: str, script: str) -> str:
    """One page of the book as a document of its own."""
    article = _article(edition, page, {page}, deeper=False)
    return _document(edition, "single", _title(edition.folder / f"{page}.html"), style, script, [str(article)])


def inputs_of(edition: Edition) -> Iterator[Path]:
    """Every file of the published pages that a print is made from."""
    pages = [BRIEF, *(page for part in parts_of(edition.folder) for page in part.pages)]
    yield from (edition.folder / f"{page}.html" for page in pages)
    yield from sorted((edition.folder / "_images").glob("*"))


def slug(page: str) -> str:
    """The id of a page's start in the joined document."""
    return page.replace("/", "-")


def _document(edition: Edition, kind: str, title: str, style: str, script: str, body: Iterable[str]) -> str:
    language = re.search(r'<html lang="([^"]*)"', _text(edition.folder / f"{HOME}.html"))
    equations = f"{edition.address}/_static/mathjax/tex-svg.js"
    own = f'<script src="{script}" data-title="{markup.escape(title)}"></script>'
    return "\n".join(
        ["<!DOCTYPE html>", f'<html lang="{language[1] if language else "en"}">', '<head><meta charset="utf-8">',
         f'<title>{UNFINISHED}</title><link rel="stylesheet" href="{style}">', own,
         f'<script defer src="{equations}"></script>', "</head>", f'<body class="{kind}"><main>',
         *body, "</main></body></html>\n"]
    )  # fmt: skip


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _title(page: Path) -> str:
    found = re.search(r"<title>(.*?)</title>", _text(page), flags=re.DOTALL)
    return markup.unescape(found[1]).strip() if found else ""


def _soup(page: Path, start: str, end: str, mark: str) -> BeautifulSoup:
    """One element of a page: the first that starts so and holds the mark in its opening tag. The rest is not read."""
    text = _text(page)
    begin = text.index(f"{start} {mark}")
    return BeautifulSoup(text[begin : text.index(end, begin) + len(end)], "html.parser")


def _article(edition: Edition, page: str, printed: set[str], *, deeper: bool) -> Tag:
    """A page's text as a section of the joined document."""
    soup = _soup(edition.folder / f"{page}.html", "<article", "</article>", 'class="bd-article"')
    for tag in soup.select(_SCREEN):
        tag.decompose()
    for number in soup.select("a.k3-number"):
        number.unwrap()
    for answer in soup.select("details"):
        answer["open"] = ""
    for tag in soup.find_all(True):
        _address(tag, page, printed, edition.address)
        for name in _NAMES:
            tag.attrs.pop(name, None)
    if deeper:
        for old, new in _HEADINGS.items():
            for heading in soup.find_all(old):
                heading.name = new
    article = soup.article
    if article is None:
        raise AssertionError(page)  # every page of the book has one
    article.name, article["class"], article["id"] = "section", "chapter", slug(page)
    return article


def _address(tag: Tag, page: str, printed: set[str], pages: str) -> None:
    """Ids and addresses as they are in the joined document; a link that leads out of it becomes text."""
    if "id" in tag.attrs:
        tag["id"] = f"{slug(page)}--{tag['id']}"
    if "src" in tag.attrs:
        tag["src"] = os.path.normpath(Path(pages) / Path(page).parent / str(tag["src"]))
    if tag.name != "a" or "href" not in tag.attrs:
        return
    parts = urlsplit(str(tag["href"]))
    target = os.path.normpath(Path(page).parent / unquote(parts.path)) if parts.path else f"{page}.html"
    known = target.removesuffix(".html")
    if parts.scheme or parts.netloc or known not in printed:
        tag.unwrap()
    else:
        tag["href"] = f"#{slug(known)}--{parts.fragment}" if parts.fragment else f"#{slug(known)}"


def _line(page: str, chapter: Tag) -> str:
    """A line of the contents, with a place for the number of the page."""
    heading = chapter.find(["h1", "h2"])
    title = heading.decode_contents() if isinstance(heading, Tag) else page
    return f'<li><a href="#{slug(page)}">{title}</a> <span data-page="{slug(page)}"></span></li>'


def numbered(document: str, pages: Mapping[str, int]) -> str:
    """The document with the number of each chapter's page in its contents, where it is known."""
    return _PLACE.sub(lambda found: f"{found[0]}{pages.get(found[1], '')}", document)


def _imprint(about: Tag) -> str:
    """What the page about the report says, under the title in place of its own."""
    for heading in about.find_all(["h1", "h2"], limit=1):
        heading.decompose()
    return str(about)
