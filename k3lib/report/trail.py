"""How a result shows: in prose, in a table cell, and as the trail behind it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from k3lib.account.symbols import REGISTRY
from k3lib.errors import InputError, near
from k3lib.facts.catalog import sources
from k3lib.results import Result
from k3lib.units import MEGA, convert, number, quantity

GRADE_MEANING = {
    "exact": "exact: follows from the released files or a definition",
    "measured": "measured: read off a real system",
    "derived": "derived: an equation on sourced inputs",
    "assumed": "assumed: a choice, or a claim that no source settles",
}
INPUTS_IN_NOTE = 4
TRUE_FALSE = {True: "Yes", False: "No"}
_TAG = re.compile(r'<a class="k3-number" data-key="([^"]*)">')


def anchor(key: str) -> str:
    """The id of a result's line in the appendix."""
    return "n-" + key.replace(".", "-")


def source_anchor(source_id: str) -> str:
    """The id of a source's line on the sources page."""
    return "s-" + source_id


def in_prose(result: Result, unit: str | None = None, spec: str = "") -> str:
    """The value with its unit, and its range where it has one, e.g. "49 GiB (48 to 50 GiB)".

    Raises InputError for a unit of another dimension or a format that does not fit.
    """
    if not result.is_number:
        if unit or spec:
            raise InputError(f"'{result.key}' is {result.value!r}, not a number: it takes no unit and no format")
        return TRUE_FALSE[result.value] if isinstance(result.value, bool) else str(result.value)
    target = unit or result.unit
    text = quantity(convert(result.value, result.unit, target), target, spec)  # type: ignore[arg-type]
    if result.low is None or result.high is None or result.low == result.high:
        return text
    low = number(convert(result.low, result.unit, target), spec)
    return f"{text} ({low} to {quantity(convert(result.high, result.unit, target), target, spec)})"


class Html(str):
    """Text that is already HTML."""


def source_links(source_ids: Iterable[str], *, titled: bool = False) -> Html:
    """Links in HTML to the lines of sources, from a chapter: by their ids, or by their titles."""
    found = []
    for source_id in source_ids:
        title = html.escape(sources()[source_id].title)
        named = title if titled else html.escape(source_id)
        place = f"../sources.html#{html.escape(source_anchor(source_id))}"
        found.append(f'<a href="{place}" title="{title}">{named}</a>')
    return Html(("; " if titled else " ").join(found))


def opening_tag(key: str) -> str:
    """Opening tag of a number in HTML; `linked` completes it when the page is written."""
    return f'<a class="k3-number" data-key="{html.escape(key)}">'


def cell(result: Result, unit: str | None = None, spec: str = "") -> Html:
    """A number for a table: no unit (the header says it), linked to its trail."""
    if not result.is_number:
        return Html(f"{opening_tag(result.key)}{html.escape(in_prose(result))}</a>")
    value = convert(result.value, result.unit, unit or result.unit)  # type: ignore[arg-type]
    return Html(f"{opening_tag(result.key)}{number(value, spec)}</a>")


def linked(
    body: str, results: Mapping[str, Result], page_of: Callable[[str], str], said: Callable[[str], str] = str
) -> str:
    """A page's HTML with every number linked to the appendix, and the trails it needs behind the text.

    page_of: the address of the page with a result's line. said: puts a text of the library in the language of the page.
    Raises InputError for a number whose key no notebook recorded.
    """
    keys = sorted(set(_TAG.findall(body)))
    if not keys:
        return body
    for key in keys:
        if key not in results:
            raise InputError(f"no result '{key}'. {near(key, results)}")
    body = _TAG.sub(lambda m: f'<a class="k3-number" data-key="{m[1]}" href="{page_of(m[1])}#{anchor(m[1])}">', body)
    trails = {key: summary(results[key], said) for key in keys}
    payload = json.dumps(trails, ensure_ascii=False, sort_keys=True).replace("<", "\\u003c")
    return f'{body}\n<script type="application/json" id="k3-trails">{payload}</script>'


def summary(result: Result, said: Callable[[str], str] = str) -> dict[str, Any]:
    """What the note beside a number shows."""
    return {
        "value": said(full_value(result)),
        "grade": said(GRADE_MEANING[result.grade]),
        "equation": result.equation,
        "inputs": [said(text) for text in _short_inputs(result)],
        "sources": [sources()[s].title for s in result.sources],
    }


def _short_inputs(result: Result) -> list[str]:
    """The first inputs, symbols as LaTeX, and how many more there are."""
    shown = [
        f"\\({REGISTRY[name].latex}\\) = {input_value(item)}" if name in REGISTRY else f"{name} = {input_value(item)}"
        for name, item in list(result.inputs.items())[:INPUTS_IN_NOTE]
    ]
    more = len(result.inputs) - len(shown)
    return [*shown, f"{more} more"] if more else shown


def full_value(result: Result) -> str:
    """The value as recorded, every digit of a whole number, with its range."""
    if not isinstance(result.value, float):
        return in_prose(result)
    return in_prose(result, spec=",.0f" if abs(result.value) >= MEGA else ",.6g")


def input_value(item: Mapping[str, Any]) -> str:
    """An input's value with its unit."""
    value = item["value"]
    if isinstance(value, (bool, str)):
        return str(value)
    return quantity(value, item["unit"])
