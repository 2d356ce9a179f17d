"""Pages and figures with the words of a book of phrases: HTML, SVG and the nodes that Sphinx makes pages from."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from typing import Any

from docutils import nodes

from k3lib.report.phrases import HAN, MARK, PhraseBook

# Tags within which a sentence goes on; every other tag ends it.
INLINE = {"a", "abbr", "b", "em", "i", "mark", "q", "span", "strong", "sub", "sup", "wbr"}
# What stands in a sentence as it is.
WHOLE = {"code", "kbd", "math", "pre", "samp", "script", "style", "textarea"}
VOID = {"wbr", "br", "img", "input", "hr", "meta", "link", "col"}
# Attributes that a reader sees or hears.
SPOKEN = ("aria-label", "title", "alt", "placeholder", "data-noun", "data-label", "summary")
_ATTRIBUTE = re.compile(rf"""(\s(?:{"|".join(SPOKEN)})=)("[^"]*"|'[^']*')""")
_DATA = re.compile(r'(<script type="application/json"[^>]* data-said="([^"]*)"[^>]*>)(.*)(</script>)', re.DOTALL)
CHINESE = re.compile(f"[{HAN}]")
_PIECE = re.compile(r"(</?\d+/?>)")


class _Page(HTMLParser):
    """Reads HTML, whole or in part, and writes it again with its sentences translated; all else stays byte by byte."""

    def __init__(self, book: PhraseBook) -> None:
        super().__init__(convert_charrefs=False)
        self.book = book
        self.out: list[str] = []
        self.text = ""  # the sentence so far, with marks in the place of tags
        self.opened: list[str] = []  # tags of the sentence by their number
        self.closed: dict[int, str] = {}
        self.open: list[tuple[str, int]] = []
        self.held = 0  # depth within what stays as it is
        self.kept = ""
        self.tag_held = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raw = self._spoken(self.get_starttag_text() or "")
        if self.held:
            self.kept += raw
            self.held += tag == self.tag_held
            return
        classes = str(dict(attrs).get("class") or "").split()
        if tag in WHOLE or "notranslate" in classes or "math" in classes:
            self.held, self.tag_held, self.kept = 1, tag, raw
        elif tag in INLINE:
            number = len(self.opened)
            self.opened.append(raw)
            if tag in VOID:
                self.text += f"<{number}/>"
            else:
                self.text += f"<{number}>"
                self.open.append((tag, number))
        else:
            self._end()
            self.out.append(raw)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.held:
            self.kept += self.get_starttag_text() or ""
        else:
            self._end()
            self.out.append(self._spoken(self.get_starttag_text() or ""))

    def handle_endtag(self, tag: str) -> None:
        if self.held:
            self.kept += f"</{tag}>"
            self.held -= tag == self.tag_held
            if not self.held:
                if tag in ("script", "style"):
                    self._end()
                    self.out.append(_DATA.sub(self._said_data, self.kept))
                else:
                    self.text += f"<{len(self.opened)}/>"
                    self.opened.append(self.kept)
            return
        if tag in INLINE and self.open and self.open[-1][0] == tag:
            number = self.open.pop()[1]
            self.closed[number] = f"</{tag}>"
            self.text += f"</{number}>"
        else:
            self._end()
            self.out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self._add(data)

    def handle_entityref(self, name: str) -> None:
        self._add(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._add(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        self.out.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.out.append(f"<!{decl}>")

    def _add(self, text: str) -> None:
        if self.held:
            self.kept += text
        else:
            self.text += html.unescape(text).replace("<", "\x00") if "&" in text else text

    def _spoken(self, raw: str) -> str:
        """A tag with the attributes that a reader hears."""

        def said(match: re.Match[str]) -> str:
            text = self.book.text(html.unescape(match[2][1:-1]))
            return f'{match[1]}"{html.escape(text)}"'

        return _ATTRIBUTE.sub(said, raw)

    def _said_data(self, match: re.Match[str]) -> str:
        """Data of a page script, with the values translated whose names its tag lists."""
        names = match[2].split()

        def said(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            return {k: self.book.text(v) if k in names and isinstance(v, str) else v for k, v in pairs}

        data = json.loads(match[3], object_pairs_hook=said)
        return match[1] + json.dumps(data, ensure_ascii=False).replace("<", "\\u003c") + match[4]

    def _end(self) -> None:
        """A sentence has ended: write it."""
        text, opened, closed = self.text, self.opened, self.closed
        self.text, self.opened, self.closed, self.open = "", [], {}, []
        before, text, after = _unwrapped(text)
        written = before + self.book.text(text) + after if text.strip() else before + text + after

        def tag(match: re.Match[str]) -> str:
            number = int(match[0].strip("</>"))
            return closed.get(number, "") if match[0].startswith("</") else opened[number]

        parts = _PIECE.split(written)
        shown = (tag(m) if (m := MARK.fullmatch(part)) else html.escape(part.replace("\x00", "<"), quote=False)
                 for part in parts)  # fmt: skip
        self.out.append("".join(shown))

    def close(self) -> None:
        super().close()
        self._end()


def _unwrapped(text: str) -> tuple[str, str, str]:
    """A sentence without the tags around the whole of it, and those before and behind it."""
    before = after = ""
    while (around := re.fullmatch(r"(\s*<(\d+)>)(.*)(</(\d+)>\s*)", text, re.DOTALL)) and around[2] == around[5]:
        before, text, after = before + around[1], around[3], around[4] + after
    return before, text, after


def in_html(text: str, book: PhraseBook) -> str:
    """HTML, whole or a part of a page, with its sentences translated."""
    if not re.search(r"[A-Za-z]{2}", text):
        return text
    page = _Page(book)
    page.feed(text)
    page.close()
    return "".join(page.out)


_GROUP = re.compile(r'<g id="text_\d+">.*?</g>', re.DOTALL)
_LINE = re.compile(r"(<text\b[^>]*>)(.*?)(</text>)", re.DOTALL)


def in_svg(drawn: str, book: PhraseBook) -> str:
    """A figure of matplotlib's with its texts translated; lines of one text stay as many lines, or become fewer."""

    def group(match: re.Match[str]) -> str:
        lines = [html.unescape(line[2].strip()) for line in _LINE.finditer(match[0])]
        if any("<" in line for line in lines):  # mathematics has parts of its own
            return match[0]
        shown = iter(_over_lines(book.text(" ".join(lines)), lines) if lines else [])
        return _LINE.sub(lambda line: f"{line[1]}{html.escape(next(shown), quote=False)}{line[3]}", match[0])

    return _GROUP.sub(group, drawn)


def _width(text: str) -> int:
    """Width in halves of a Chinese character."""
    return sum(2 if ord(character) > 0x2E7F else 1 for character in text)


def _over_lines(text: str, lines: list[str]) -> list[str]:
    """The text in as many lines as it had before, as even as they can be; the same lines where nothing changed."""
    if text == " ".join(lines):
        return lines
    if len(lines) == 1:
        return [text]
    aim = _width(text) / len(lines)
    shown: list[str] = []
    line = ""
    # Between Latin words there is a blank, between Chinese characters a line may end anywhere.
    for part in re.findall(r"[\x21-\x7e\u2013\u2212]+|[^\x21-\x7e]", text):
        if len(shown) < len(lines) - 1 and line and _width(line) + _width(part) / 2 > aim:
            shown.append(line.strip())
            line = ""
        line += part
    shown.append(line.strip())
    return shown + [""] * (len(lines) - len(shown))


# Nodes that hold one text of their own.
UNITS = (nodes.paragraph, nodes.title, nodes.rubric, nodes.term, nodes.caption, nodes.line, nodes.field_name)
_WITHIN = (nodes.reference, nodes.strong, nodes.emphasis, nodes.inline)


def in_document(document: nodes.document, book: PhraseBook) -> list[str]:
    """Translate what the library made of a page. Returns the texts of the page's own that its catalogue lacks."""
    for raw in list(document.findall(nodes.raw)):
        if raw.get("format") == "html" and raw.astext().strip():
            shown = in_html(raw.astext(), book)
            raw.rawsource = shown
            raw.children[:] = [nodes.Text(shown)]
            raw.children[0].parent = raw
    for image in document.findall(nodes.image):
        if image.get("alt") and not CHINESE.search(image["alt"]):  # a catalogue may have had it
            image["alt"] = book.text(str(image["alt"]))
    left = []
    for node in list(document.findall(lambda n: isinstance(n, UNITS))):
        if node.get("translated"):
            continue
        if "translated" in node and not _is_output(node):
            left += [] if book.is_kept(_marked(node)[0]) else [node.rawsource or node.astext()]
        else:
            _translate_node(node, book)
    return left


def _is_output(node: nodes.Node) -> bool:
    """Whether a notebook printed this."""
    above: nodes.Node | None = node
    while above is not None and not (isinstance(above, nodes.Element) and "cell_output" in above.get("classes", ())):
        above = above.parent
    return above is not None


def _marked(node: nodes.Element) -> tuple[str, list[nodes.Node]]:
    """The text of a node with marks for what is set apart in it, and what that is."""
    text, parts = "", list[nodes.Node]()
    for child in node.children:
        if isinstance(child, nodes.Text):
            text += str(child)
        elif isinstance(child, _WITHIN) and all(isinstance(part, nodes.Text) for part in child.children):
            text += f"<{len(parts)}>{child.astext()}</{len(parts)}>"
            parts.append(child)
        else:
            text += f"<{len(parts)}/>"
            parts.append(child)
    return text, parts


def _translate_node(node: nodes.Element, book: PhraseBook) -> None:
    """Translate the text of one node, with what is set apart in it."""
    text, parts = _marked(node)
    shown = book.text(text)
    if shown != text:
        node.children[:] = []
        _fill(node, shown, parts)


def _fill(node: nodes.Element, shown: str, parts: list[nodes.Node]) -> None:
    for found in re.finditer(r"<(\d+)/>|<(\d+)>(.*?)</\2>|[^<]+|<", shown, re.DOTALL):
        number = found[1] or found[2]
        if number is None:
            node += nodes.Text(found[0])
            continue
        part = parts[int(number)]
        if found[2] and isinstance(part, nodes.Element):
            part.children[:] = []
            part += nodes.Text(found[3])
        node += part
