"""What Sphinx makes for those who learn: the paths through the pages."""

from __future__ import annotations

from itertools import groupby

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from k3lib.facts.learning import learning_paths
from k3lib.report.directives import paragraph, table
from k3lib.report.glossary import to_page


class Paths(SphinxDirective):
    """What somebody new reads, by role: pages in order, minutes, and what they can do then."""

    def run(self) -> list[nodes.Node]:
        found: list[nodes.Node] = []
        for role, steps in groupby(learning_paths(), key=lambda step: step.role):
            rows: list[list[nodes.Node | str]] = []
            total = 0
            for step in steps:
                total += step.minutes
                rows.append([paragraph(to_page(self.env.docname, step.page)), step.able, _right(step.minutes)])
            rows.append(["all of it", "", _right(total)])
            header = ["Read", "Then you can", nodes.paragraph(text="Minutes", classes=["k3-right"])]
            found += [nodes.rubric(text=role), *table(f"Path: {role}", header, rows)]
        return found


def _right(value: int) -> nodes.paragraph:
    return nodes.paragraph(text=f"{value:,}", classes=["k3-right"])
