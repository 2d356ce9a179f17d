"""Links to chapters from generated HTML, completed when the book is built."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from typing import Any

from k3lib.errors import InputError, near

_CHAPTER = re.compile(r'<a class="k3-chapter" data-page="([^"]*)"></a>')


def chapter_link(page: str) -> str:
    """A link to a page, whose address and title `titled` fills in when the book is built."""
    return f'<a class="k3-chapter" data-page="{html.escape(page)}"></a>'


def titled(body: str, titles: Mapping[str, Any], pathto: Callable[[str], str]) -> str:
    """A page's HTML with the links to chapters completed. Raises InputError for a page that is not in the book."""

    def link(match: re.Match[str]) -> str:
        page = match[1]
        if page not in titles:
            raise InputError(f"no page '{page}' in the book. {near(page, titles)}")
        return f'<a class="k3-chapter" href="{pathto(page)}">{html.escape(titles[page].astext())}</a>'

    return _CHAPTER.sub(link, body)
