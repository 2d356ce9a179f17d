"""The words of the trade: their page, and links to it from their first uses on every other page."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.domains.std import make_glossary_term
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from k3lib.facts.learning import Term, glossary
from k3lib.report.directives import paragraph
from k3lib.report.phrases import PhraseBook

PAGE = "glossary"
# Pages that are lists, and the glossary itself.
UNLINKED = {PAGE, "bibliography", "numbers"}
# A first use counts in running text; captions stand in emphasis, answers in admonitions.
AROUND = (nodes.table, nodes.Admonition, nodes.definition_list, nodes.figure, nodes.caption)
WITHIN = (nodes.paragraph, nodes.strong)


def to_page(docname: str, page: str) -> addnodes.pending_xref:
    """A link to a page under its own title."""
    link = addnodes.pending_xref(
        "", refdomain="std", reftype="doc", reftarget=f"/{page}", refexplicit=False, refwarn=True, refdoc=docname
    )
    link.append(nodes.inline(text=page, classes=["std", "std-doc"]))
    return link


class Glossary(SphinxDirective):
    """Every term in both languages, what it means, and the page that explains it; `{term}` finds them all."""

    def run(self) -> list[nodes.Node]:
        listing = nodes.definition_list(classes=["glossary", "k3-list"])
        for row in sorted(glossary(), key=self._place):
            meaning = nodes.definition("", paragraph(row.meaning, " See ", to_page(self.env.docname, row.page), "."))
            listing += nodes.definition_list_item("", self._term(row), meaning)
        return [addnodes.glossary("", listing, sorted=False)]

    @property
    def _in_chinese(self) -> bool:
        return self.env.app.k3_phrases is not None  # type: ignore[attr-defined]

    def _place(self, row: Term) -> str | bytes:
        """Where a term stands in the list: by its letters, in Chinese by the sounds, in whose order this code is."""
        return row.chinese.lower().encode("gb18030") if self._in_chinese else row.term.lower()

    def _term(self, row: Term) -> nodes.term:
        source, line = self.get_source_info()
        term = make_glossary_term(self.env, [nodes.Text(row.term)], None, source, line, row.anchor, self.state.document)
        term.pop(0)  # the words follow, in the order of this edition
        standard: Any = self.env.get_domain("std")
        if row.abbreviation:
            standard._note_term(row.abbreviation, row.anchor, location=term)
        english = row.term + (f" ({row.abbreviation})" if row.abbreviation else "")
        first, second, language = (row.chinese, english, "en") if self._in_chinese else (english, row.chinese, "zh")
        opening = nodes.raw("", f' \u00b7 <span lang="{language}">', format="html")
        term += [nodes.Text(first), opening, nodes.Text(second), nodes.raw("", "</span>", format="html")]
        term.source, term["translated"] = None, True  # it has its translation
        return term


@lru_cache(maxsize=2)
def _pattern(chinese: bool) -> tuple[re.Pattern[str], dict[str, Term]]:
    """Every spelling as a whole word, longer ones first, and the term of each. Those with capitals match as written.

    In Chinese, words have no blanks around them.
    """
    if chinese:
        found = {word: row for row in glossary() for word in (row.chinese, row.abbreviation) if word}
        longest = sorted(found, key=lambda text: (-len(text), text))
        return re.compile(rf"(?<![A-Za-z0-9./-])(?:{'|'.join(map(re.escape, longest))})(?![A-Za-z0-9/-])"), {
            word.lower(): row for word, row in found.items()
        }
    terms = {spelling: row for row in glossary() for spelling in row.spellings}
    parts = []
    for spelling in sorted(terms, key=lambda text: (-len(text), text)):
        words = r"\s+".join(re.escape(word) for word in spelling.split())
        parts.append(f"(?i:{words})" if spelling == spelling.lower() else words)
    return re.compile(rf"(?<![\w./-])(?:{'|'.join(parts)})(?![\w/-])"), {
        spelling.lower(): row for spelling, row in terms.items()
    }


class FirstUses(SphinxPostTransform):
    """The first use of each term in the running text of a page becomes a link to the glossary."""

    default_priority = 800  # when references are resolved, so that no link is put into another

    def run(self, **kwargs: Any) -> None:
        docname = self.env.docname
        if docname in UNLINKED or PAGE not in self.env.found_docs:
            return
        target = self.app.builder.get_relative_uri(docname, PAGE)
        linked: set[str] = set()
        book = self.app.k3_phrases  # type: ignore[attr-defined]
        for text in list(self.document.findall(nodes.Text)):
            if _is_prose(text):
                _link(text, target, linked, book)


def _is_prose(text: nodes.Text) -> bool:
    """Whether a text stands in a paragraph of the page itself."""
    node: Any = text.parent
    while isinstance(node, WITHIN) and not isinstance(node, nodes.paragraph):
        node = node.parent
    if not isinstance(node, nodes.paragraph):
        return False
    above = node.parent
    while above is not None:
        if isinstance(above, AROUND) or "cell_output" in above.get("classes", ()):
            return False
        above = above.parent
    return True


def _link(text: nodes.Text, target: str, linked: set[str], book: PhraseBook | None) -> None:
    """Put links in the place of the terms that are new on the page. book: the words of another language."""
    pattern, terms = _pattern(book is not None)
    written, parts, done = str(text), list[nodes.Node](), 0
    for match in pattern.finditer(written):
        row = terms[" ".join(match[0].split()).lower()]
        if row.term in linked:
            continue
        linked.add(row.term)
        meaning = book.text(row.meaning) if book else row.meaning
        link = nodes.reference(
            "", match[0], refuri=f"{target}#{row.anchor}", internal=True, reftitle=meaning, classes=["k3-term"]
        )
        parts += [nodes.Text(written[done : match.start()]), link]
        done = match.end()
    if parts:
        text.parent.replace(text, [*parts, nodes.Text(written[done:])])
