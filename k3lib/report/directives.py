"""Generated parts of the book: the notation, the sources, the tables of facts, and how each number was made."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from k3lib import results as res
from k3lib.account import servers as servers  # its symbols are part of the notation
from k3lib.account.symbols import REGISTRY
from k3lib.facts import catalog, registry
from k3lib.report import notebooks, trail
from k3lib.units import unit

NUMBERS_PAGE = "numbers"
SOURCES_PAGE = "sources"


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


# Headings of the list of numbers, by the first word of a key.
TOPICS = {
    "answer": "The answer",
    "alternatives": "Alternatives",
    "article": "The two articles' readings",
    "compare": "Workloads on clusters",
    "cost": "Costs",
    "calibration": "How good the predictions are",
    "card": "One card",
    "cluster": "The plan's cards together",
    "evidence": "What has been measured",
    "exercise": "Answers to exercises",
    "format": "Storage formats",
    "k3": "Kimi K3",
    "launch": "Launching",
    "layouts": "Layouts",
    "learn": "Learning",
    "logs": "Against the logs",
    "peers": "Other tools' errors",
    "plan": "Plans",
    "price": "Prices",
    "quiz": "The quiz",
    "model": "Each reference model",
    "reference": "Reference models together",
    "plan32": "The 32-card plan",
    "pod": "The superpod",
    "recommend": "What is recommended",
    "scenario": "The scenario",
    "search": "Best layouts",
    "sheet": "The cheat sheet",
    "side": "Side by side",
    "speed": "Speed",
    "step": "Where a step's time goes",
}


def _notebook_titles(folder: Path) -> dict[str, str]:
    """The title of each notebook page by its name."""
    titles = {}
    for path in folder.glob("*.ipynb"):
        first = "".join(notebooks.read(path)["cells"][0]["source"])
        titles[path.stem] = first.strip().splitlines()[0].lstrip("# ")
    return titles


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


class Numbers(SphinxDirective):
    """One line a result: value, grade, equation, inputs, sources, notebook.

    Written as HTML at once: as a tree of nodes thousands of results take longer than all the rest of the book.
    """

    def run(self) -> list[nodes.Node]:
        results = res.load(Path(self.env.srcdir) / "_generated" / "results.json")
        self.env.note_dependency("_generated/results.json")
        titles = _notebook_titles(Path(self.env.srcdir) / "nb")
        found: list[nodes.Node] = []
        groups: dict[tuple[str, ...], int] = {}
        for topic, members in itertools.groupby(results.items(), key=lambda item: item[0].split(".")[0]):
            section = nodes.section(ids=[f"numbers-{topic}"])
            section += nodes.title(text=TOPICS.get(topic, topic))
            entries = "\n".join(_entry(key, result, titles, groups) for key, result in members)
            section += nodes.raw("", f'<dl class="k3-list">\n{entries}\n</dl>', format="html")
            found.append(section)
        section = nodes.section(ids=["numbers-groups"])
        section += nodes.title(text="Groups of sources")
        listed = "\n".join(f'<dt id="g-{n}">Group {n}</dt><dd>{_sources(names)}</dd>' for names, n in groups.items())
        section += nodes.raw("", f'<dl class="k3-list">\n{listed}\n</dl>', format="html")
        return [*found, section]


# Many results rest on the same sources: from so many on, a list of them is written once.
GROUPED = 3


def _sources(names: Iterable[str]) -> str:
    return ", ".join(_link(f"{SOURCES_PAGE}.html#{trail.source_anchor(name)}", name) for name in names)


def _entry(key: str, result: res.Result, titles: dict[str, str], groups: dict[tuple[str, ...], int]) -> str:
    """A result as an entry of the list. groups: lists of sources by their number; grows by those that are new."""
    lines = [f"Grade: {result.grade}"]
    if result.equation:
        lines.append(f"Equation: {_math(result.equation)}")
    if result.inputs:
        lines.append("Inputs: " + "; ".join(_input(name, item) for name, item in result.inputs.items()))
    if result.sources:
        names = tuple(result.sources)
        group = groups.setdefault(names, len(groups) + 1) if len(names) >= GROUPED else 0
        lines.append(f"Sources: {_link(f'#g-{group}', f'group {group}') if group else _sources(names)}")
    if result.notebook:
        title = titles.get(result.notebook, result.notebook)
        lines.append("Made in: " + _link(f"nb/{result.notebook}.html", title))
    name, value = html.escape(key), html.escape(trail.full_value(result))
    term = f'<dt id="{trail.anchor(key)}"><code>{name}</code> <strong>{value}</strong></dt>'
    return f"{term}<dd>{'<br>'.join(lines)}</dd>"


def _input(name: str, item: Any) -> str:
    value = html.escape(trail.input_value(item))
    shown = _math(REGISTRY[name].latex) if name in REGISTRY else _link(f"#{trail.anchor(name)}", name)
    return f"{shown} = {value}"


def _math(latex: str) -> str:
    return f'<span class="math notranslate nohighlight">\\({html.escape(latex)}\\)</span>'


def _link(address: str, text: str) -> str:
    return f'<a class="reference internal notranslate" href="{html.escape(address)}">{html.escape(text)}</a>'


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
    "k3-numbers": Numbers,
    "k3-fact-tables": FactTables,
    "k3-units": Units,
}
