"""What a page says of itself to search engines, link previews and browser tabs."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable
from typing import Any

LONGEST = 160
# A paragraph that says something is so wide; a motto above the answer is narrower.
SHORTEST = 70
# Pages without a paragraph, by the start of their names.
WITHOUT_TEXT = {
    "search": "Search all pages of the book.",
    "genindex": "Words of the book by the alphabet.",
    "numbers/": "Each number with its value, grade, equation, inputs and sources.",
}
_PARAGRAPH = re.compile(r"<p>(.*?)</p>", flags=re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9])|(?<=[。！？])")


def complete(pagename: str, context: dict[str, Any], in_other_words: Callable[[str], str]) -> None:
    """Add the description of a page to its head. in_other_words: gives a text of ours in the language of the page."""
    given = next((text for start, text in WITHOUT_TEXT.items() if pagename.startswith(start)), None)
    text = in_other_words(given) if given else description(context["body"])
    metatags = context.get("metatags", "")
    context["metatags"] = f'{metatags}<meta name="description" content="{html.escape(text)}" />'


def description(body: str) -> str:
    """The first sentences of a page's HTML, as many as a description holds, without markup."""
    paragraphs = [_plain(found) for found in _PARAGRAPH.findall(body)]
    said = next((text for text in paragraphs if _width(text) >= SHORTEST), max(paragraphs, key=_width, default=""))
    ends = [0, *(found.start() for found in _SENTENCE.finditer(said)), len(said)]
    fitting = max(end for end in ends if _width(said[:end]) <= LONGEST)
    return said[:fitting].strip() or (_cut(said) if said else "")


def _width(text: str) -> int:
    """How wide a text is, in letters; a Chinese character is two letters wide."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _plain(markup: str) -> str:
    return " ".join(html.unescape(_TAG.sub("", markup)).split())


def _cut(text: str) -> str:
    """A text that is too long, up to its last whole word."""
    while _width(text) >= LONGEST:
        text = text[:-1].rpartition(" ")[0] or text[:-1]
    return text.rstrip(",;:") + "\u2026"
