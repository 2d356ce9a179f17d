"""The two articles' claims as the book shows them: results by claim and topic, tables by section, one figure."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from k3lib.claims.corrections import Correction
from k3lib.claims.ledger import by_topic, counted, finding
from k3lib.claims.verdict import CONFIRMED, CORRECTED, REFUTED, VERDICTS, Finding, Part, Verdict
from k3lib.claims.world import World
from k3lib.ranges import Range
from k3lib.report import draw, looks, show
from k3lib.report.compare import NONE_SHOWN, in_range, listed, text
from k3lib.report.trail import Html, cell
from k3lib.results import Result, record
from k3lib.units import number, unit

TOPICS = {"moe": "experts", "oom": "running out of memory", "option": "compromises", "scope": "what is free"}
# Sums of money are shown in millions.
SHOWN_IN = {"CNY": "million CNY"}


def key_of(verdict: Verdict) -> str:
    """A verdict as part of a key."""
    return verdict.replace(" ", "_")


def topic_label(topic: str) -> str:
    """A topic as a table has it."""
    return TOPICS.get(topic, topic)


def _count(key: str, value: int, sources: Iterable[str]) -> Result:
    return record(key, value, unit="1", grade="derived", low=value, high=value, sources=sorted(set(sources)))


def publish_summary(found: Mapping[str, Finding]) -> dict[str, dict[Verdict, Result]]:
    """Record how many claims have each verdict: of all, of each article, of each topic; the results by topic."""
    articles = sorted({s for one in found.values() for s in one.claim.source_ids[:1]})
    _count("claims.count", len(found), articles)
    for verdict, n in counted(found.values()).items():
        _count(f"claims.summary.{key_of(verdict)}", n, articles)
    for letter in sorted({one.claim.article for one in found.values()}):
        mine = [one for one in found.values() if one.claim.article == letter]
        _count(f"claims.article.{letter.lower()}.count", len(mine), mine[0].claim.source_ids[:1])
        for verdict, n in counted(mine).items():
            _count(f"claims.article.{letter.lower()}.{key_of(verdict)}", n, mine[0].claim.source_ids[:1])
    return {
        topic: {v: _count(f"claims.summary.{topic}.{key_of(v)}", n, articles) for v, n in row.items()}
        for topic, row in by_topic(found).items()
    }


def _finite(stated: Range) -> tuple[float, float, float]:
    """Value, low and high of what is stated; an open end is the other one."""
    low = stated.low if math.isfinite(stated.low) else stated.value
    high = stated.high if math.isfinite(stated.high) else stated.value
    return stated.value, low, high


def publish(one: Finding) -> dict[str, Result]:
    """Record a claim's verdict, and what is stated and found where it is a figure."""
    name, made = f"claims.{one.claim.claim_id.lower()}", {}
    part = one.figure
    if part is not None and part.stated is not None and part.found is not None:
        value, low, high = _finite(part.stated)
        source = one.claim.source_ids[:1]
        made["stated"] = record(
            f"{name}.stated", value, unit=part.unit, grade="assumed", low=low, high=high, sources=source
        )
        f, grade = part.found, "derived" if part.grade == "exact" else part.grade
        made["found"] = record(
            f"{name}.found", f.value, unit=part.unit, grade=grade, low=f.low, high=f.high, sources=part.sources
        )
    made["verdict"] = text(f"{name}.verdict", one.verdict, one.sources, inputs=list(made.values()))
    return made


def _said(part: Part) -> str:
    """What the article states of a figure, in words: a number, a range, or an end."""
    if part.stated is None:
        return ""
    into = SHOWN_IN.get(part.unit, part.unit)
    scale = float(unit(part.unit).factor / unit(into).factor)
    ends = part.stated.low * scale, part.stated.high * scale
    if math.isinf(ends[1]):
        return f"from {number(ends[0], ',.4g')} on"
    if math.isinf(ends[0]):
        return f"up to {number(ends[1], ',.4g')}"
    if ends[0] == ends[1]:
        return number(ends[0], ",.4g")
    return f"{number(ends[0], ',.4g')}\u2013{number(ends[1], ',.4g')}"


def _figures(one: Finding, made: Mapping[str, Result]) -> str:
    """What is said and found of the figure that decides, and the difference; of a statement, how many parts hold."""
    part = one.figure
    if part is None or "found" not in made:
        return one.difference
    into = SHOWN_IN.get(part.unit, part.unit)
    label = unit(into).label
    named = f"\u00a0{label}" if label else ""
    return f"{_said(part)} said, {cell(made['found'], into, ',.4g')}{named} found: {one.difference}"


def claim_row(one: Finding) -> list[Html]:
    """Record a claim and give its line: the claim, the verdict with its figures, what is so with where to read on."""
    made, claim = publish(one), one.claim
    name = claim.claim_id
    page = claim.page.replace("-", " ")
    return [
        Html(f'<span id="claim-{name.lower()}"><b>{name}</b></span> {html.escape(claim.statement)}'),
        Html(f"{cell(made['verdict'])}<br><small>{_figures(one, made)}</small>"),
        Html(f'{html.escape(one.says)}<br><small><a href="{claim.page}.html">{html.escape(page)}</a></small>'),
    ]


def ledger_tables(found: Mapping[str, Finding]) -> None:
    """Show every claim, in a table for each chapter of each article; records them all."""
    chapters: dict[tuple[str, str], list[Finding]] = {}
    for one in found.values():
        chapters.setdefault((one.claim.article, one.claim.section.split(".")[0]), []).append(one)
    head = ["The article says", "Verdict", "Derivation or evidence says"]
    for (article, chapter), rows in chapters.items():
        label = f"Article {article}, section {chapter}"
        show.table(head, [claim_row(one) for one in rows], label=label, text_columns=3)


def summary_table(topics: Mapping[str, Mapping[Verdict, Result]]) -> None:
    """Show how many claims of each topic have each verdict."""
    rows = [[topic_label(topic), *(cell(row[v], "1", "d") for v in VERDICTS)] for topic, row in topics.items()]
    show.table(["Topic", "Confirmed", "Corrected", "Refuted", "Open"], rows, label="Claims by topic and verdict")


def summary_figure(found: Mapping[str, Finding]) -> Any:
    """Draw claims by topic as bars, those with most that hold first. Returns matplotlib's figure."""
    topics = sorted(by_topic(found).items(), key=lambda row: [-row[1][v] for v in (REFUTED, CORRECTED, CONFIRMED)])
    drawn, axis = show.axes(0.21 * len(topics) + 1.0)
    left = [0] * len(topics)
    for verdict in VERDICTS:
        counts = [row[verdict] for _, row in topics]
        axis.barh(range(len(topics)), counts, left=left, color=looks.VERDICTS[verdict], edgecolor="white", height=0.72)
        left = [a + b for a, b in zip(left, counts, strict=True)]
    axis.set_yticks(range(len(topics)), [topic_label(topic) for topic, _ in topics])
    axis.set(xlabel="claims", xticks=range(max(left) + 1), ylim=(len(topics) - 0.4, -0.6))
    axis.tick_params(axis="y", length=0)
    draw.key(drawn, {verdict: looks.VERDICTS[verdict] for verdict in VERDICTS})
    return drawn


def topic_words(found: Mapping[str, Finding]) -> tuple[str, str]:
    """On which topics all claims are confirmed, and on which half or more are refuted: two sentences."""
    rows = by_topic(found)
    sound = [topic_label(t) for t, row in rows.items() if row[CONFIRMED] == sum(row.values())]
    wrong = [topic_label(t) for t, row in rows.items() if 2 * row[REFUTED] >= sum(row.values())]
    first = f"All that is said of {listed(sound)} is confirmed." if sound else "On no topic are all claims confirmed."
    second = f"Half or more of what is said of {listed(wrong)} is refuted." if wrong else "No topic has half refuted."
    return first, second


def correction_rows(ranked: Sequence[Correction], most: int) -> list[list[Any]]:
    """Record the corrections worth most under `claims.correction.c<place>` and give their lines."""
    rows = []
    for place, one in enumerate(ranked[:most], 1):
        key, sources = f"claims.correction.c{place}", list(dict.fromkeys(one.sources))
        text(key, one.what, sources)
        text(f"{key}.claims", " ".join(one.claims), sources)
        cny = record(
            f"{key}.cny",
            one.cny.value,
            unit="CNY",
            grade="assumed",
            low=one.cny.low,
            high=one.cny.high,
            sources=sources,
        )
        links = " ".join(f'<a href="#claim-{name.lower()}">{name}</a>' for name in one.claims)
        cells: list[Any] = [
            Html(f"{html.escape(one.what)}<br><small>{links}</small>"),
            in_range(cny, ",.1f", "million CNY"),
        ]
        for name, value, label, spec in (("gib", one.gib, "GiB", ",.1f"), ("cards", one.cards, "cards", ",.0f")):
            if value is None:
                cells.append(NONE_SHOWN)
                continue
            r = record(f"{key}.{name}", value, unit=label, grade="derived", low=value, high=value, sources=sources)
            cells.append(cell(r, label, spec))
        rows.append(cells)
    return rows


def verdicts_at(world: World, found: Mapping[str, Finding], factor: float) -> int:
    """How many verdicts change where every tolerance is multiplied by a factor."""
    changed = 0
    for one in found.values():
        claim = one.claim
        if claim.tolerance is None or claim.bearable is None:
            continue
        scaled = {"tolerance": claim.tolerance * factor, "bearable": claim.bearable * factor}
        changed += finding(claim.model_copy(update=scaled), world).verdict != one.verdict
    return changed


def priced_in(found: Mapping[str, Finding]) -> tuple[str, ...]:
    """Claims whose verdict comes from sums of money, and so from the scenario's prices."""
    return tuple(name for name, one in found.items() if any(p.unit == "CNY" for p in one.parts))
