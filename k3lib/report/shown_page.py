"""What a notebook showed, on another page: a table, a list or a figure, by the tag of its cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives as options
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from k3lib.report import notebooks

logger = logging.getLogger(__name__)
HTML, SVG = "text/html", "image/svg+xml"


class Shown(SphinxDirective):
    """``{k3-shown} NOTEBOOK TAG``: what the cell with that tag showed. Of a figure the content is the caption.

    Glue of other notebooks' outputs leaves out figures without a word, and keeps numbers of an earlier run.
    """

    required_arguments = 2
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"alt": options.unchanged}

    def run(self) -> list[nodes.Node]:
        """Raises nothing: a cell that is not there is a warning, which ends the build."""
        name, tag = self.arguments
        path = Path(self.env.srcdir) / "nb" / f"{name}.ipynb"
        found = outputs(notebooks.read(path), tag) if path.is_file() else []
        if not found:
            logger.warning("k3-shown: no cell of notebook '%s' with the tag '%s' shows something", name, tag,
                           location=self.get_location())  # fmt: skip
            return []
        self.env.note_dependency(f"nb/{name}.ipynb")
        held = nodes.container(classes=["k3-shown", tag])
        for at, data in enumerate(found):
            held += nodes.raw("", data[HTML], format="html") if HTML in data else self._figure(name, tag, at, data)
        return [held]

    def _figure(self, name: str, tag: str, at: int, data: dict[str, str]) -> nodes.Node:
        file = Path(self.env.srcdir) / "_generated" / "figures" / f"{name}-{tag}-{at}.svg"
        file.parent.mkdir(exist_ok=True)
        file.write_text(data[SVG], encoding="utf-8", newline="\n")
        figure = nodes.figure()
        figure += nodes.image(uri=f"/_generated/figures/{file.name}", alt=self.options.get("alt", ""))
        if self.content:
            caption = nodes.Element()
            self.state.nested_parse(self.content, self.content_offset, caption)
            figure += nodes.caption("", "", *caption[0].children)
        return figure


def outputs(notebook: Any, tag: str) -> list[dict[str, str]]:
    """HTML and figures that the cells with a tag showed, in their order."""
    found = []
    for cell in notebook["cells"]:
        if tag in cell["metadata"].get("tags", ()):
            for output in cell.get("outputs", ()):
                data = {kind: "".join(text) for kind, text in output.get("data", {}).items() if kind in (HTML, SVG)}
                if data:
                    found.append(data)
    return found
