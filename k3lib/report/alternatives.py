"""The alternatives as the book shows them: results with their ranges, cells of tables, and what is known in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import sympy as sp

from k3lib.account import offload as eq
from k3lib.account import symbols as s
from k3lib.account.passes import expert_tokens
from k3lib.calibrate.behind import main_sources
from k3lib.choose import alternatives as ch
from k3lib.choose import hosted
from k3lib.cost.api import Offer
from k3lib.deploy import variants as var
from k3lib.facts import variants as facts
from k3lib.models.model import Model
from k3lib.report.looks import DARK, MUTED, PARTS
from k3lib.report.terms import displayed
from k3lib.report.trail import Html, cell
from k3lib.results import Result, record
from k3lib.units import GIGA, convert, number

RULES = {"vllm": "vllm_033", "sglang": "sglang_0523"}
# A form's mark by how far its answers were measured: full for K3 itself, half for something near it, else empty.
LEVEL_MARKS: dict[ch.Level, dict[str, str]] = {
    "released": {"color": DARK, "fillstyle": "full"},
    "task": {"color": PARTS["mla"], "fillstyle": "full"},
    "kin": {"color": PARTS["engine"], "fillstyle": "left"},
    "proxy": {"color": PARTS["engine"], "fillstyle": "bottom"},
    "none": {"color": MUTED, "fillstyle": "none"},
}
HOSTS = {
    "moonshot-cn": "Moonshot, China",
    "moonshot": "Moonshot, abroad",
    "openrouter": "OpenRouter, cheapest",
    "together": "Together",
    "baseten": "Baseten",
    "novita": "Novita",
    "deepinfra": "DeepInfra",
    "siliconflow": "SiliconFlow",
    "alibaba-cn": "Alibaba, China",
    "fireworks": "Fireworks",
    "venice": "Venice",
}
MODELS = {"k3": "K3", "k31-pro": "K3.1 Pro", "k31-pro-highspeed": "K3.1 Pro, fast"}
DEVICES = {"h20-96": "H20", "h20-141": "H20-3e", "l20": "L20", "a3-910c": "910C"}
# Before speeds that rest on less than a measured kernel.
MARKS = {ch.BY_LIMITS: "*\u00a0", ch.BY_HOST: "**\u00a0"}
NO_BREAK, NO_BREAK_HYPHEN = "\u00a0", "\u2011"
DASH = "\u2013"
AT_LEAST = "\u2265\u00a0"


class Spread(Protocol):
    """A value with the ends of its range."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def plain(key: str, value: float, unit: str, sources: Iterable[str], grade: str = "derived") -> Result:
    """Record a number whose range is itself."""
    return record(key, value, unit=unit, grade=grade, low=value, high=value, sources=tuple(dict.fromkeys(sources)))


def ranged(key: str, at: Spread, unit: str, sources: Iterable[str]) -> Result:
    """Record a number with its range."""
    return record(key, at.value, unit=unit, grade="derived", low=at.low, high=at.high,
                  sources=tuple(dict.fromkeys(sources)))  # fmt: skip


def told(key: str, words: str, sources: Iterable[str]) -> Result:
    """Record words that follow from the account."""
    return record(key, words, unit="", grade="derived", sources=tuple(dict.fromkeys(sources)))


def ranged_cell(result: Result, unit: str, spec: str, mark: str = "") -> Html:
    """A number for a table, with a mark before it, and its range below."""
    if result.low is None or result.high is None or result.low == result.high:
        return Html(f"{mark}{cell(result, unit, spec)}")
    low, high = (number(convert(end, result.unit, unit), spec) for end in (result.low, result.high))
    return Html(f"{mark}{cell(result, unit, spec)}<br><small>{low}{DASH}{high}</small>")


def device_label(device: str) -> str:
    """A card as people call it."""
    return DEVICES.get(device, device.upper())


def cards_label(cards: int | None, bound: bool = False) -> str:
    """A number of cards for a table, marked where it is a lower bound."""
    return DASH if cards is None else f"{AT_LEAST if bound else ''}{cards}"


def kept_together(words: str) -> str:
    """Words that a table does not break over lines."""
    return words.replace(" ", NO_BREAK).replace("-", NO_BREAK_HYPHEN)


def need_sources(need: ch.Need, model: Model, engine: str) -> list[str]:
    """Every source of what an alternative needs."""
    row = facts.variants().get(need.key)
    return [*(row.source_ids if row else ()), *model.sources, RULES[engine], "mm_h200_logs"]


def need_row(need: ch.Need, model: Model, engine: str, clients: Sequence[int]) -> list[str]:
    """Record an alternative under `alternatives.need.<key>` and give its line of the table."""
    key, sources = f"alternatives.need.{need.key}", need_sources(need, model, engine)
    cards: str = DASH
    if need.cards is not None:
        r = plain(f"{key}.cards", need.cards, "cards", sources)
        cards = Html(f"{AT_LEAST if need.bound else ''}{cell(r, 'cards', 'd')}")
    speeds = []
    for count, at in zip(clients, (need.one, need.many), strict=True):
        if at is None:
            speeds.append(DASH)
            continue
        behind = main_sources(need.asked) if need.asked else sources
        r = ranged(f"{key}.c{count}.output_tps", at, "tok/s", behind)
        speeds.append(ranged_cell(r, "tok/s", ",.0f", MARKS.get(need.speed, "")))
    told(f"{key}.verdict", need.verdict, sources)
    return [need.label, need.verdict, ch.LEVEL_WORDS[need.answers], cards, *speeds]


def size_cells(name: str) -> list[str]:
    """Record a variant's size under `alternatives.size.<name>` and give its cells: GB, bits a weight, GB saved."""
    size, whole = var.size(name), var.size("mxfp4")
    row = facts.variant(name)
    low, high = (size.bytes if end is None else end for end in (size.low, size.high))
    exact = size.grade == "exact"
    grade = size.grade if exact or size.published is not None else "derived"
    key, sources = f"alternatives.size.{name}", row.source_ids
    held = record(f"{key}.bytes", size.bytes, unit="B", grade=grade, low=None if exact else low,
                  high=None if exact else high, sources=sources)  # fmt: skip
    bits = record(f"{key}.bits", size.bits_per_weight, unit="bit/weight", grade="derived",
                  low=size.bits_per_weight * low / size.bytes, high=size.bits_per_weight * high / size.bytes,
                  inputs=[held])  # fmt: skip
    saved = record(f"{key}.saved", whole.bytes - size.bytes, unit="B", grade="derived", low=whole.bytes - high,
                   high=whole.bytes - low, inputs=[held])  # fmt: skip
    spec = ",.0f" if abs(whole.bytes - size.bytes) > GIGA else ",.1f"  # not a zero with a sign
    return [cell(held, "GB", ",.0f"), cell(bits, "bit/weight", ".2f"), cell(saved, "GB", spec)]


def size_label(name: str) -> str:
    """A variant and, unless its size was published, how that is known."""
    row = facts.variant(name)
    if row.published_bytes is None:
        return f"{row.label} (computed)"
    return f"{row.label} (estimate)" if row.grade == "assumed" else row.label


SHORT = {"router saliency kept (proxy)": "weight of the router kept", "top-1 agreement": "same next token"}


def measured_rows(name: str) -> list[list[str]]:
    """Record what was measured of a variant's answers under `alternatives.answers.<name>`; a line each."""
    lines = []
    for i, row in enumerate(ch.answers(name).rows):
        key, unit = f"alternatives.answers.{name}.n{i}", "%" if row.unit == "%" else "1"
        cells = []
        for part, value in (("", row.score), (".whole", row.baseline)):
            if value is None:
                cells.append(DASH)
                continue
            r = record(key + part, value, unit=unit, grade=row.grade, low=value, high=value, sources=row.source_ids)
            cells.append(cell(r, "%", ".1f"))
        lines.append([facts.variant(name).label, SHORT.get(row.benchmark, row.benchmark), row.nature,
                      "claimed" if row.grade == "assumed" else row.grade, *cells])  # fmt: skip
    return lines


def memory_equations() -> None:
    """Show hits, misses, and the time of a pass's missing experts; the misses are M, the tokens of a pass T."""
    missed, hits = sp.Symbol("M"), sp.Symbol("h")
    integral = max(eq.missed_experts().args, key=lambda part: len(part.args))
    tokens = sp.Symbol("T")
    short = {integral: missed / s.experts, eq.hit_rate(): hits, 1 - eq.hit_rate(): 1 - hits}
    displayed("h", eq.hit_rate())
    displayed("M", eq.missed_integral().subs(expert_tokens(), tokens))
    displayed("t_{copied}", eq.copied_us().xreplace(short))
    displayed("t_{computed}", eq.computed_us().xreplace(short).subs(expert_tokens(), tokens))


def price_cells(offer: Offer) -> list[str]:
    """Record an offer's prices under `alternatives.api.<model>.<host>` and give its cells."""
    cells = []
    for part in hosted.PARTS:
        price = offer.parts.get(part)
        if price is None:
            cells.append("not named")
            continue
        r = record(f"alternatives.api.{offer.model}.{offer.host}.{part}", price.default, unit=price.unit,
                   grade=price.grade, low=price.low, high=price.high, sources=price.source_ids)  # fmt: skip
        cells.append(cell(r, price.unit, ",.2f"))
    return cells


def charge_cell(offer: Offer, workload_id: str, charge: hosted.Charge, sources: Iterable[str]) -> Html:
    """Record what a request of a workload costs at an offer, and give its cell with the range below."""
    r = ranged(f"alternatives.api.{offer.model}.{offer.host}.request.{workload_id}", charge, charge.currency, sources)
    return ranged_cell(r, charge.currency, ",.2f")
