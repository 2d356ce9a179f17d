"""Generated parts of the book: the notation, the sources, the tables of facts, and how each number was made."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from k3lib import results as res
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
    "layouts": "Layouts",
    "logs": "Against the logs",
    "peers": "Other tools' errors",
    "plan": "Plans",
    "price": "Prices",
    "model": "Each reference model",
    "reference": "Reference models together",
    "plan32": "The 32-card plan",
    "pod": "The superpod",
    "recommend": "What is recommended",
    "scenario": "The scenario",
    "search": "Best layouts",
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
        self.env.get_domain("math").data["has_equations"][self.env.docname] = True
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
    """One line a result: value, grade, equation, inputs, sources, notebook."""

    def run(self) -> list[nodes.Node]:
        results = res.load(Path(self.env.srcdir) / "_generated" / "results.json")
        self.env.note_dependency("_generated/results.json")
        self.env.get_domain("math").data["has_equations"][self.env.docname] = True
        self.titles = _notebook_titles(Path(self.env.srcdir) / "nb")
        found: list[nodes.Node] = []
        for topic, members in itertools.groupby(results.items(), key=lambda item: item[0].split(".")[0]):
            section = nodes.section(ids=[f"numbers-{topic}"])
            section += nodes.title(text=TOPICS.get(topic, topic))
            listing = nodes.definition_list(classes=["k3-list"])
            for key, result in members:
                term = nodes.term(ids=[trail.anchor(key)])
                term += [nodes.literal(text=key), nodes.Text(" "), nodes.strong(text=trail.full_value(result))]
                listing += nodes.definition_list_item("", term, self._trail(result))
            section += listing
            found.append(section)
        return found

    def _trail(self, result: res.Result) -> nodes.definition:
        definition = nodes.definition("", _text(trail.GRADE_MEANING[result.grade] + "."))
        if result.equation:
            definition += paragraph("Equation: ", nodes.math(text=result.equation))
        if result.inputs:
            line = paragraph("Inputs: ")
            for i, (name, item) in enumerate(result.inputs.items()):
                line += [nodes.Text("; " if i else ""), *self._input(name, item)]
            definition += line
        if result.sources:
            line = paragraph("Sources: ")
            for i, source_id in enumerate(result.sources):
                uri = f"{SOURCES_PAGE}.html#{trail.source_anchor(source_id)}"
                link = nodes.reference("", catalog.sources()[source_id].title, refuri=uri, internal=True)
                line += [nodes.Text("; " if i else ""), link]
            definition += line
        if result.notebook:
            title = self.titles.get(result.notebook, result.notebook)
            page = nodes.reference("", title, refuri=f"nb/{result.notebook}.html", internal=True)
            definition += paragraph("Made in: ", page)
        return definition

    def _input(self, name: str, item: Any) -> list[nodes.Node]:
        value = nodes.Text(f" = {trail.input_value(item)}")
        if name in REGISTRY:
            return [nodes.math(text=REGISTRY[name].latex), value]
        return [nodes.reference("", name, refuri=f"#{trail.anchor(name)}", internal=True), value]


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
