"""Generated parts of the book: the notation, the sources, the tables of facts, the units."""

from __future__ import annotations

from collections.abc import Iterable

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from k3lib.account import servers as servers  # its symbols are part of the notation
from k3lib.account.symbols import REGISTRY
from k3lib.facts import catalog, registry
from k3lib.report import trail
from k3lib.units import unit


def _text(text: str) -> nodes.paragraph:
    return nodes.paragraph(text=text)


def table(label: str, header: list[nodes.Node | str], rows: Iterable[list[nodes.Node | str]]) -> list[nodes.Node]:
    """A table that scrolls by itself where it is wider than the screen; strings become paragraphs."""
    group = nodes.tgroup(cols=len(header))
    group += [nodes.colspec(colwidth=1) for _ in header]
    head, body = nodes.thead(), nodes.tbody()
    head += _row(header)
    for cells in rows:
        body += _row(cells)
    group += [head, body]
    table = nodes.table(classes=["k3-table"])
    table += group
    opening = f'<div class="k3-scroll" tabindex="0" role="region" aria-label="{label}">'
    return [nodes.raw("", opening, format="html"), table, nodes.raw("", "</div>", format="html")]


def _row(cells: Iterable[nodes.Node | str]) -> nodes.row:
    row = nodes.row()
    for cell in cells:
        entry = nodes.entry()
        entry += _text(cell) if isinstance(cell, str) else cell
        row += entry
    return row


def paragraph(*children: nodes.Node | str) -> nodes.paragraph:
    """A paragraph of texts and nodes."""
    found = nodes.paragraph()
    for child in children:
        found += nodes.Text(child) if isinstance(child, str) else child
    return found


class Notation(SphinxDirective):
    """Every symbol of the account with its unit and meaning, by topic."""

    def run(self) -> list[nodes.Node]:
        found: list[nodes.Node] = []
        topics = dict.fromkeys(q.topic for q in REGISTRY.values())
        for topic in topics:
            section = nodes.section(ids=[f"notation-{topic.replace(' ', '-')}"])
            section += nodes.title(text=topic[0].upper() + topic[1:])
            rows: list[list[nodes.Node | str]] = [
                [paragraph(nodes.math(text=q.latex)), q.meaning, q.unit, paragraph(nodes.literal(text=q.name))]
                for q in REGISTRY.values()
                if q.topic == topic
            ]
            section += table(f"Symbols: {topic}", ["Symbol", "Meaning", "Unit", "Name in k3lib"], rows)
            found.append(section)
        return found


class Sources(SphinxDirective):
    """Every source: title, where it stands, kind, date. Addresses are text, since the book works without a network."""

    def run(self) -> list[nodes.Node]:
        listing = nodes.definition_list(classes=["k3-list"])
        for source in catalog.sources().values():
            term = nodes.term(ids=[trail.source_anchor(source.source_id)])
            term += [nodes.Text(source.title), nodes.Text(f" ({source.kind}, {source.as_of})")]
            where = source.locator.removeprefix("https://").removeprefix("http://")
            definition = nodes.definition("", paragraph(nodes.literal(text=where)))
            if source.note:
                definition += _text(source.note)
            listing += nodes.definition_list_item("", term, definition)
        return [listing]


class FactTables(SphinxDirective):
    """The tables of facts with their number of rows."""

    def run(self) -> list[nodes.Node]:
        rows: list[list[nodes.Node | str]] = []
        for name, (what, load) in registry.TABLES.items():
            count = len(tuple(load()))
            number = nodes.paragraph(text=f"{count:,}", classes=["k3-right"])
            rows.append([paragraph(nodes.literal(text=f"data/{name}")), what, number])
        return table(
            "Tables of facts", ["Table", "What a row is", nodes.paragraph(text="Rows", classes=["k3-right"])], rows
        )


class Units(SphinxDirective):
    """What one GB and one GiB are, and every other unit, in base units."""

    def run(self) -> list[nodes.Node]:
        names = ("kB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB")
        rows: list[list[nodes.Node | str]] = [
            [name, nodes.paragraph(text=f"{int(unit(name).factor):,} B", classes=["k3-right"])] for name in names
        ]
        return table("Units of bytes", ["Unit", nodes.paragraph(text="Bytes", classes=["k3-right"])], rows)


DIRECTIVES = {
    "k3-notation": Notation,
    "k3-sources": Sources,
    "k3-fact-tables": FactTables,
    "k3-units": Units,
}
