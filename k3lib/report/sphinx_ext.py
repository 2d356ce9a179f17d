"""Sphinx extension of the book: numbers with a trail, generated tables, and pages that ask nothing of the network."""

from __future__ import annotations

import json
import re
import shutil
from importlib.metadata import files
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from k3lib import results as res
from k3lib.errors import InputError, near
from k3lib.report import chapters, directives, number_pages, page_head, trail
from k3lib.report.changed_page import Changed
from k3lib.report.downloads import Notebooks
from k3lib.report.editions import FOLDER, UNTRANSLATED, phrases
from k3lib.report.glossary import FirstUses, Glossary
from k3lib.report.learn_pages import Paths
from k3lib.report.shown_page import Shown
from k3lib.report.translate import in_document
from k3lib.report.whatif import form
from k3lib.report.whatif.names import SCRIPT

logger = logging.getLogger(__name__)

VAL = re.compile(r"(?P<key>[^\s:]+)(?: in (?P<unit>[^:]+?))?(?::(?P<spec>.+))?")
# The words of the scripts, which come before them.
TEXTS = "k3-texts.js"
SCRIPT_TEXT = re.compile(r'\b(?:k3t|t)\("([^"]+)"[,)]')
SCRIPTS = ("k3-t.js", "k3.js", "k3-browser.js", "k3-front.js", "k3-quiz.js")
FINDER = "k3-find.js"  # on the page of all numbers alone
NOT_FOUND = "404.html"
FUNCTION_OF_TEXT = re.compile(r'new Function\(\s*"n",\s*`return \(\$\{catalog\.plural_expr\}\)`,?\s*\)')
OF_OTHERS = {"k3-changes": Changed, "k3-glossary": Glossary, "k3-notebooks": Notebooks,
             "k3-numbers": number_pages.Numbers, "k3-paths": Paths, "k3-shown": Shown,
             "k3-whatif": form.WhatIf}  # fmt: skip


class Number(nodes.Inline, nodes.TextElement):
    """A number in prose; `key` names its result."""


class Val(SphinxRole):
    """``{val}`key``` · ``{val}`key:,.1f``` · ``{val}`key in GiB:,.1f```: a result in prose, with its unit and range."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        match = VAL.fullmatch(self.text.strip())
        try:
            if match is None:
                raise InputError(f"'{self.text}' is not written as key, key:format or key in unit:format")
            results = load_results(self.env)
            if match["key"] not in results:
                raise InputError(f"no result '{match['key']}'. {near(match['key'], results)}")
            text = trail.in_prose(results[match["key"]], match["unit"], match["spec"] or "")
            text = in_other_words(self.env.app, text)
        except InputError as error:
            logger.warning("val: %s", error, location=self.get_location())
            return [nodes.literal(text=self.text)], []
        number = Number(self.rawtext, "", key=match["key"])
        number += nodes.Text(text)
        return [number], []


def load_results(env: Any) -> dict[str, res.Result]:
    """The results of this build, read once."""
    if not hasattr(env, "k3_results"):
        env.k3_results = res.load(Path(env.srcdir) / "_generated" / "results.json")
    return dict(env.k3_results)


def number_places(env: Any) -> dict[str, str]:
    """The page of each result of this build, worked out once."""
    if not hasattr(env, "k3_places"):
        env.k3_places = number_pages.places(load_results(env))
    return dict(env.k3_places)


def _visit_number(translator: Any, node: Number) -> None:
    translator.body.append(trail.opening_tag(node["key"]))


def _depart_number(translator: Any, node: Number) -> None:
    translator.body.append("</a>")


def _skip(translator: Any, node: nodes.Node) -> None:
    """In print and text a number is its text."""


def _finish_page(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Link each number to its trail and put the trails of this page behind its text; drop remote launchers."""
    if "body" in context:
        pathto = context["pathto"]
        try:
            body = chapters.titled(context["body"], app.env.titles, pathto)
            where = number_places(app.env)
            context["body"] = trail.linked(
                body, load_results(app.env), lambda key: pathto(where[key]), lambda text: in_other_words(app, text)
            )
        except InputError as error:
            logger.warning("%s: %s", pagename, error)
    page_head.complete(pagename, context, lambda text: in_other_words(app, text))
    set_at_once = _sets_equations(app.env, pagename)
    context["script_files"] = [
        f for f in context.get("script_files", []) if not _is_idle(f) and (set_at_once or not _is_mathjax(f))
    ]


# Where equations are so many that they are set as they come into view.
MANY_EQUATIONS = {"notation", "nb/where-a-steps-time-goes"}


def _sets_equations(env: Any, pagename: str) -> bool:
    """Whether a page's own equations are to be set when it opens: Sphinx would ask for those of the pages below it."""
    return pagename not in MANY_EQUATIONS and bool(env.get_domain("math").data["has_equations"].get(pagename))


def _is_mathjax(script: Any) -> bool:
    """The script that sets equations."""
    return "mathjax/" in str(getattr(script, "filename", script) or "")


def _is_idle(script: Any) -> bool:
    """Scripts that do nothing here: those that start remote kernels, which ask the network, and the page's name for a
    list of versions. Without the latter all pages have the same inline scripts, which a server can allow one by one.
    """
    name = str(getattr(script, "filename", script) or "")
    body = str(getattr(script, "attributes", {}).get("body") or "")
    return "thebe" in name or "thebe" in body or "DOCUMENTATION_OPTIONS.pagename" in body


def _note_equations(app: Sphinx, doctree: nodes.document) -> None:
    """Ask for the script that sets equations also where they stand in HTML: Sphinx looks for its own nodes only, and
    does so after the directives have run. The note beside a number fetches it when it first shows an equation.
    """
    if any('class="math' in node.astext() for node in doctree.findall(nodes.raw)):
        app.env.get_domain("math").data["has_equations"][app.env.docname] = True


def _drop_launcher_nodes(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for node in list(doctree.findall(nodes.raw)):
        if "thebe" in node.astext():
            node.parent.remove(node)


def _copy_assets(app: Any, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    package = files("sphinx-mathjax-offline") or []
    mathjax = next(f for f in package if f.name == "tex-svg.js")
    (static / "mathjax").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(Path(str(mathjax.locate())), static / "mathjax" / "tex-svg.js")
    for name in (*SCRIPTS, FINDER):
        shutil.copyfile(Path(app.srcdir) / "_assets" / name, static / name)
    for name in form.SCRIPTS:  # of one page only
        folder = "_generated" if name == SCRIPT else "_assets"
        shutil.copyfile(Path(app.srcdir) / folder / name, static / name)
    number_pages.write_keys(load_results(app.env), static)
    _write_out_plurals(static)
    if app.k3_phrases is None:  # a server has one page for addresses that do not exist, whatever the edition
        shutil.copyfile(Path(app.srcdir) / "_assets" / NOT_FOUND, Path(app.outdir) / NOT_FOUND)


def _write_out_plurals(static: Path) -> None:
    """In an edition in another language Sphinx makes a function out of a text, which the policy of a server forbids."""
    translations, script = static / "translations.js", static / "doctools.js"
    if translations.is_file():
        (plural,) = re.findall(r'"plural_expr": "([^"]*)"', translations.read_text(encoding="utf-8"))
        text = FUNCTION_OF_TEXT.sub(f"(n) => ({plural})", script.read_text(encoding="utf-8"))
        script.write_text(text, encoding="utf-8", newline="\n")


def in_other_words(app: Any, text: str) -> str:
    """A text of the library in the language of this edition."""
    return text if app.k3_phrases is None else str(app.k3_phrases.text(text))


def _open_phrases(app: Sphinx) -> None:
    app.k3_phrases = phrases(str(app.config.language))  # type: ignore[attr-defined]
    app.k3_untranslated = {}  # type: ignore[attr-defined]


def _translate(app: Any, doctree: nodes.document) -> None:
    """Put the words of this edition in the place of those that the library made."""
    if app.k3_phrases is None:
        return
    before = len(app.k3_phrases.missing)
    prose = in_document(doctree, app.k3_phrases)
    for text in [*prose, *list(app.k3_phrases.missing)[before:]]:
        app.k3_untranslated[text] = app.env.docname


def _link_editions(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """The address of this page in the other language."""
    up = "../" * pagename.count("/")
    context["k3_other_edition"] = f"{up}../{pagename}.html" if app.k3_phrases else f"{up}{FOLDER}/{pagename}.html"
    context["k3_in_chinese"] = app.k3_phrases is not None


def _write_texts(app: Any, exception: Exception | None) -> None:
    """The words of page scripts in this edition, and the list of what has no translation."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    found: dict[str, str] = {}
    if app.k3_phrases is not None:
        for path in sorted(static.glob("k3*.js")):
            for written in SCRIPT_TEXT.findall(path.read_text(encoding="utf-8")):
                found[written] = app.k3_phrases.exact(written)
        left = dict.fromkeys(app.k3_phrases.missing, "scripts") | app.k3_untranslated
        listed = json.dumps(left, ensure_ascii=False)
        (Path(app.outdir).parent / UNTRANSLATED).write_text(listed, encoding="utf-8")
    texts = json.dumps(found, ensure_ascii=False, sort_keys=True)
    (static / TEXTS).write_text(f"window.k3Texts = {texts};\n", encoding="utf-8", newline="\n")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register everything with Sphinx."""
    app.add_role("val", Val())
    app.add_node(Number, html=(_visit_number, _depart_number), latex=(_skip, _skip), text=(_skip, _skip))
    for name, directive in {**directives.DIRECTIVES, **OF_OTHERS}.items():
        app.add_directive(name, directive)
    app.add_post_transform(FirstUses)
    for name in (TEXTS, *SCRIPTS):
        app.add_js_file(name, loading_method="defer")
    app.connect("builder-inited", _open_phrases)
    app.connect("doctree-read", _translate, priority=100)
    app.connect("doctree-read", _note_equations)
    app.connect("doctree-resolved", _drop_launcher_nodes)
    app.connect("html-collect-pages", number_pages.collected)
    app.connect("html-page-context", _finish_page, priority=900)
    app.connect("html-page-context", _link_editions)
    app.connect("build-finished", _copy_assets)
    app.connect("build-finished", _write_texts, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
