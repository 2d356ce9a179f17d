"""Files to take away: the notebooks as they ran, in one archive and one by one, and the PDFs where there are any."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from k3lib.facts.tables import read_text
from k3lib.report.chapters import chapter_link
from k3lib.report.directives import paragraph

ARCHIVE = "k3-notebooks.zip"
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the first time that the format knows
# A page that offers PDFs has a block for when there are some, and one for when there are none. No block holds another.
_BLOCK = re.compile(r'<div class="k3-(with|without)-pdf docutils container">.*?</div>\n?', flags=re.DOTALL)


def pack(notebooks: Iterable[Path], target: Path) -> None:
    """An archive of notebooks; the same ones give the same bytes."""
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(notebooks):
            archive.writestr(zipfile.ZipInfo(path.name, _EARLIEST), path.read_bytes(), zipfile.ZIP_DEFLATED)


def settle(html: Path, *, pdf: bool) -> None:
    """Leave on each page the block that holds: PDFs are there, or they are not."""
    keep = "with" if pdf else "without"
    for page in html.rglob("*.html"):
        text = read_text(page)
        if _BLOCK.search(text):
            text = _BLOCK.sub(lambda found: found[0] if found[1] == keep else "", text)
            page.write_text(text, encoding="utf-8", newline="\n")


class Notebooks(SphinxDirective):
    """Every notebook as it ran, with the title of its page, in the order of the book."""

    def run(self) -> list[nodes.Node]:
        listing = nodes.bullet_list()
        for name in re.findall(r"file: *nb/(\S+)", read_text(Path(self.env.srcdir) / "_toc.yml")):
            file = addnodes.download_reference("", "", reftarget=f"/_generated/notebooks/{name}.ipynb")
            file["refdoc"] = self.env.docname
            file += nodes.literal("", f"{name}.ipynb", classes=["xref", "download"])
            page = nodes.raw("", chapter_link(f"nb/{name}"), format="html")
            listing += nodes.list_item("", paragraph(file, ": ", page))
        return [listing]
