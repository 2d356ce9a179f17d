"""How each number was made: an entry a result, on pages by topic that a browser opens at once."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from k3lib import results as res
from k3lib.account.symbols import REGISTRY
from k3lib.report import trail
from k3lib.report.translate import in_html

NUMBERS_PAGE, SOURCES_PAGE, FOLDER = "numbers", "sources", "numbers"
# The keys by page, for the field that finds one.
KEYS = "k3-numbers.js"
MOST = 400  # entries on one page
# Many results rest on the same sources: from so many on, a list of them is written once.
GROUPED = 3
# Headings of the pages, by the first word of a key.
TOPICS = {
    "answer": "The answer",
    "trouble": "Trouble-shooting",
    "storage": "Storage",
    "pilot": "The pilot",
    "operate": "Operating",
    "network": "Networks",
    "claims": "The articles, claim by claim",
    "acceptance": "Acceptance",
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


def places(keys: Iterable[str]) -> dict[str, str]:
    """The page of each result, as numbers/speed or, where a topic is long, numbers/cost-2; in the order of the keys."""
    by_topic: dict[str, list[str]] = {}
    for key in keys:
        by_topic.setdefault(key.split(".")[0], []).append(key)
    found = {}
    for topic, members in by_topic.items():
        count = -(-len(members) // MOST)
        each = -(-len(members) // count)
        for at, key in enumerate(members):
            found[key] = f"{FOLDER}/{topic}" + (f"-{at // each + 1}" if count > 1 else "")
    return found


def title_of(page: str) -> str:
    """A page's title: its topic, and which part of it where there are several."""
    topic, _, part = page.removeprefix(f"{FOLDER}/").partition("-")
    name = TOPICS.get(topic, topic)
    return f"{name}, part {part}" if part else name


class Numbers(SphinxDirective):
    """The pages with how many results each has, and a field that finds one by its key."""

    def run(self) -> list[nodes.Node]:
        results = res.load(Path(self.env.srcdir) / "_generated" / "results.json")
        self.env.note_dependency("_generated/results.json")
        pages = by_page(results)
        items = "\n".join(
            f'<li><a class="reference internal" href="{page}.html">{html.escape(title_of(page))}</a> '
            f'<span class="k3-count">{len(members):,}</span></li>'
            for page, members in pages.items()
        )
        finder = (
            '<div class="k3-find" hidden><label for="k3-find">Find a number by its key</label> '
            '<input id="k3-find" type="search" autocomplete="off"><ul aria-live="polite"></ul></div>'
        )
        script = f'<script src="_static/{KEYS}" defer></script><script src="_static/k3-find.js" defer></script>'
        return [nodes.raw("", f'{finder}\n<ul class="k3-pages">\n{items}\n</ul>\n{script}', format="html")]


def by_page(results: Mapping[str, res.Result]) -> dict[str, list[str]]:
    """The keys of each page, in the order of the pages."""
    found: dict[str, list[str]] = {}
    for key, page in places(results).items():
        found.setdefault(page, []).append(key)
    return found


def collected(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Every page, for Sphinx: its name, what its template needs, the template.

    Written as HTML at once: as a tree of nodes thousands of results take longer than all the rest of the book.
    """
    results = res.load(Path(app.srcdir) / "_generated" / "results.json")
    titles = {name.removeprefix("nb/"): title.astext() for name, title in app.env.titles.items()}
    where = places(results)
    for page, keys in by_page(results).items():
        said = f"Numbers: {title_of(page)}"
        body = _body(said, {key: results[key] for key in keys}, titles, where)
        if app.k3_phrases is not None:
            before = len(app.k3_phrases.missing)
            body, said = in_html(body, app.k3_phrases), app.k3_phrases.text(said)
            for text in list(app.k3_phrases.missing)[before:]:
                app.k3_untranslated[text] = NUMBERS_PAGE
        yield page, {"title": said, "body": body}, "page.html"


def write_keys(results: Mapping[str, res.Result], static: Path) -> None:
    """The keys by page, as a script: a browser reads no data from disk."""
    listed = json.dumps(by_page(results), ensure_ascii=False, sort_keys=True)
    (static / KEYS).write_text(f"window.k3Numbers = {listed};\n", encoding="utf-8", newline="\n")


def _body(title: str, results: Mapping[str, res.Result], titles: Mapping[str, str], where: Mapping[str, str]) -> str:
    groups: dict[tuple[str, ...], int] = {}
    entries = "\n".join(_entry(key, result, titles, groups, where) for key, result in results.items())
    made = f'<section>\n<h1>{html.escape(title)}</h1>\n<p><a class="reference internal" href="../{NUMBERS_PAGE}.html">'
    made += f'All numbers</a></p>\n<dl class="k3-list">\n{entries}\n</dl>\n'
    if groups:
        listed = "\n".join(f'<dt id="g-{n}">Group {n}</dt><dd>{_sources(names)}</dd>' for names, n in groups.items())
        made += f'<h2>Groups of sources</h2>\n<dl class="k3-list">\n{listed}\n</dl>\n'
    return f"{made}</section>"


def _sources(names: Iterable[str]) -> str:
    return ", ".join(_link(f"../{SOURCES_PAGE}.html#{trail.source_anchor(name)}", name) for name in names)


def _entry(
    key: str, result: res.Result, titles: Mapping[str, str], groups: dict[tuple[str, ...], int],
    where: Mapping[str, str],
) -> str:  # fmt: skip
    """A result as an entry of the list. groups: lists of sources by their number; grows by those that are new."""
    lines = [f"Grade: {result.grade}"]
    if result.equation:
        lines.append(f"Equation: {_math(result.equation)}")
    if result.inputs:
        lines.append("Inputs: " + "; ".join(_input(name, item, where) for name, item in result.inputs.items()))
    if result.sources:
        names = tuple(result.sources)
        group = groups.setdefault(names, len(groups) + 1) if len(names) >= GROUPED else 0
        lines.append(f"Sources: {_in_words(f'#g-{group}', f'group {group}') if group else _sources(names)}")
    if result.notebook:
        title = titles.get(result.notebook, result.notebook)
        lines.append("Made in: " + _link(f"../nb/{result.notebook}.html", title))
    name, value = html.escape(key), html.escape(trail.full_value(result))
    term = f'<dt id="{trail.anchor(key)}"><code>{name}</code> <strong>{value}</strong></dt>'
    return f"{term}<dd>{'<br>'.join(lines)}</dd>"


def _input(name: str, item: Any, where: Mapping[str, str]) -> str:
    value = html.escape(trail.input_value(item))
    if name in REGISTRY:
        return f"{_math(REGISTRY[name].latex)} = {value}"
    return f"{_link(f'../{where[name]}.html#{trail.anchor(name)}', name)} = {value}"


def _math(latex: str) -> str:
    return f'<span class="math notranslate nohighlight">\\({html.escape(latex)}\\)</span>'


def _in_words(address: str, text: str) -> str:
    return f'<a class="reference internal" href="{html.escape(address)}">{html.escape(text)}</a>'


def _link(address: str, text: str) -> str:
    """A link whose text is a key, a name or a title, the same in every language or translated already."""
    return f'<a class="reference internal notranslate" href="{html.escape(address)}">{html.escape(text)}</a>'
