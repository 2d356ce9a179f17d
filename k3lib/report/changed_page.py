"""The page that sets the book's scenario beside the base one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from k3lib import results as res
from k3lib.report import trail
from k3lib.report.directives import paragraph, table
from k3lib.report.number_pages import places
from k3lib.units import number

FILE = "changes.json"
MOST_ROWS = 40


class Changed(SphinxDirective):
    """Inputs that differ from the base scenario, recommendations that do, and the results that moved most."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(f"_generated/{FILE}")
        found = json.loads((Path(self.env.srcdir) / "_generated" / FILE).read_text(encoding="utf-8"))
        if found is None:
            return [paragraph("This book shows the base scenario itself, so nothing differs.")]
        where = places(res.load(Path(self.env.srcdir) / "_generated" / "results.json"))
        parts: list[nodes.Node] = []
        parts += self._part("Inputs that differ", ["Input", "Base scenario", "This book"],
                            ([nodes.literal(text=i["name"]), _shown(i["before"]), _shown(i["after"])]
                             for i in found["inputs"]))  # fmt: skip
        if found["choices"]:
            parts += self._part("Recommendations that differ", ["Situation", "Base scenario", "This book"],
                                ([_link(c["key"], where), _shown(c["before"]), _shown(c["after"])]
                                 for c in found["choices"]))  # fmt: skip
        else:
            parts += [nodes.rubric(text="Recommendations that differ"), paragraph("None.")]
        moved = [m for m in found["moved"] if m not in found["choices"]]
        kept = f"{len(found['moved']):,} results differ, {found['same']:,} are the same."
        parts += self._part("Results that moved most", ["Result", "Base scenario", "This book", "Unit", "Change"],
                            ([_link(m["key"], where), _shown(m["before"]), _shown(m["after"]), m["unit"] or "",
                              _change(m["change"])] for m in moved[:MOST_ROWS]))  # fmt: skip
        return [*parts, paragraph(kept)]

    def _part(self, title: str, header: list[nodes.Node | str], rows: Iterable[list[nodes.Node | str]]) -> Any:
        return [nodes.rubric(text=title), *table(title, header, rows)]


def _link(key: str, where: Mapping[str, str]) -> nodes.paragraph:
    link = nodes.reference("", key, refuri=f"{where[key]}.html#{trail.anchor(key)}", internal=True)
    return paragraph(link)


def _shown(value: Any) -> str:
    if value is None:
        return "\u2013"
    if isinstance(value, (bool, str)) or not value:
        return str(value) or "none"
    return number(value) if isinstance(value, float) else f"{value:,}"


def _change(change: float | None) -> str:
    return "" if change is None else f"{change:+.1%}"
