"""The form of the what-if page and the places of its results, as HTML; all words of the page that stand still."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from k3lib.deploy.load import MOST_CLIENTS
from k3lib.report.whatif.names import MOST_NICS, PAGE, SCRIPT

SCRIPTS = (SCRIPT, "k3-whatif.js")
MOST_NODES, MOST_TOKENS, MOST_MONEY = 64, 1_048_576, 1e9


@dataclass(frozen=True)
class Number:
    """A field for a number with a slider beside it. slide: the slider's ends and step, where it has one.

    whole: without decimals. item: of the price that it sets, where that stays the same. powers: the slider goes by
    powers of two. The slider of a price that depends on other fields has its ends from that price.
    """

    name: str
    label: str
    unit: str
    least: float
    most: float
    slide: tuple[float, float, float] | None = None
    whole: bool = False
    item: str = ""
    powers: bool = False


@dataclass(frozen=True)
class Choice:
    """A field with named choices; those of others than the first depend on other fields."""

    name: str
    label: str
    hint: str = ""


OF_PRICE = (0, 1, 0.01)
GROUPS: dict[str, tuple[Number | Choice, ...]] = {
    "Cards": (
        Choice("device", "Card"),
        Number("nodes", "Servers", "servers", 1, MOST_NODES, (1, 16, 1), True),
        Number("nics", "Network cards of a server, 400 Gb/s each", "network cards", 1, MOST_NICS, (1, MOST_NICS, 1),
               True),
        Choice("engine", "Engine"),
        Choice("layout", "Layout", "tp: cards that share a layer; pp: stages; dp: copies; ep: cards that share the "
               "experts; dcp: cards that share the tokens of a cache"),
        Number("memory_share", "Share of a card's memory for the engine", "from 0 to 1", 0.05, 1, (0.5, 1, 0.01)),
        Number("max_model_len", "Longest request", "tokens", 2, MOST_TOKENS, (10, 20, 1), True, powers=True),
    ),
    "Requests": (
        Choice("workload", "Workload"),
        Number("isl", "Prompt", "tokens", 1, MOST_TOKENS, (7, 20, 1), True, powers=True),
        Number("cached", "of it from a prefix cache", "tokens", 0, MOST_TOKENS, None, True),
        Number("osl", "Tokens of an answer", "tokens", 2, MOST_TOKENS, None, True),
        Number("concurrency", "Clients at once", "clients", 1, MOST_CLIENTS, (1, 1024, 1), True),
    ),
    "Prices": (
        Number("busy", "Utilisation", "share of the output that is asked for, from 0 to 1", 0.001, 1, (0.01, 1, 0.01),
               item="utilisation"),
        Number("fx", "Exchange rate", "CNY/USD", 0.01, 1e4, (5, 9, 0.05), item="fx.cny_per_usd"),
        Number("servers", "Price of the servers", "", 0, MOST_MONEY, OF_PRICE),
        Number("electricity", "Price of power", "", 0, 1e4, OF_PRICE),
        Choice("rent", "Rent"),
        Number("rate", "Rent of a card", "", 0, 1e6, OF_PRICE),
        Choice("service", "Service"),
        Number("input", "Prompt tokens of the service", "", 0, 1e6, OF_PRICE),
        Number("cached_price", "those from its cache", "", 0, 1e6),
        Number("output", "Answer tokens of the service", "", 0.001, 1e6, OF_PRICE),
        Number("life", "Years that servers serve", "years", 0.25, 20, (1, 8, 0.5), item="life.server"),
        Number("capital", "Cost of capital", "a year, from 0 to 1", 0, 1, (0, 0.2, 0.005), item="capital.cost"),
    ),
}  # fmt: skip
ENGINES = {"vllm": "vLLM", "sglang": "SGLang"}


class WhatIf(SphinxDirective):
    """The form, the results, and the scripts that fill them."""

    def run(self) -> list[nodes.Node]:
        if self.env.app.builder.name == "gettext":  # catalogues hold what authors write
            return []
        path = Path(self.env.srcdir) / "_generated" / PAGE
        self.env.note_dependency(f"_generated/{PAGE}")
        page = json.loads(path.read_text(encoding="utf-8"))
        return [nodes.raw("", body(page), format="html")]


def body(page: Mapping[str, Any]) -> str:
    """The page's own HTML. page: as `k3lib.report.whatif.start` writes it."""
    groups = "\n".join(_group(title, fields, page) for title, fields in GROUPS.items())
    scripts = "\n".join(f'<script defer src="_static/{name}"></script>' for name in SCRIPTS)
    return f'<div class="k3-whatif" id="k3-whatif">\n{_form(groups)}\n{RESULTS}\n</div>\n{scripts}'


def _form(groups: str) -> str:
    return f"""<form class="k3-whatif-form" autocomplete="off" aria-label="Settings" novalidate>
<noscript><p>This page calculates in the browser: it needs JavaScript, and nothing from the network.</p></noscript>
<p class="k3-whatif-buttons"><button type="button" class="k3-button" data-do="reset">Reset</button>
<button type="button" class="k3-button" data-do="copy">Copy the link</button>
<button type="button" class="k3-button" data-do="print">Print</button></p>
<p class="k3-whatif-note" role="status" data-out="note"></p>
{groups}
<p class="k3-whatif-brief" aria-hidden="true" data-out="brief"></p>
</form>"""


def _group(title: str, fields: Iterable[Number | Choice], page: Mapping[str, Any]) -> str:
    inside = "\n".join(_number(f) if isinstance(f, Number) else _choice(f, page) for f in fields)
    return f"<fieldset><legend>{html.escape(title)}</legend>\n{inside}\n</fieldset>"


def _number(field: Number) -> str:
    key = f"k3-w-{field.name}"
    attributes = {"data-name": field.name, "data-least": field.least, "data-most": field.most,
                  "data-whole": int(field.whole), "data-item": field.item}  # fmt: skip
    named = " ".join(f'{name}="{html.escape(str(value))}"' for name, value in attributes.items())
    slider = ""
    if field.slide:
        low, high, step = (f"{x:g}" for x in field.slide)
        slider = (f'<input type="range" min="{low}" max="{high}" step="{step}" data-slider="{field.name}" '
                  f'data-powers="{int(field.powers)}" aria-label="{html.escape(field.label)}">')  # fmt: skip
    return f"""<div class="k3-field"><label for="{key}">{html.escape(field.label)}</label>
<span class="k3-pair"><input id="{key}" type="number" step="any" {named} aria-describedby="{key}-unit {key}-fault">
<small id="{key}-unit" data-unit="{field.name}">{html.escape(field.unit)}</small></span>{slider}
<span class="k3-fault" id="{key}-fault" data-fault="{field.name}" role="alert"></span></div>"""


def _choice(field: Choice, page: Mapping[str, Any]) -> str:
    key = f"k3-w-{field.name}"
    known = {
        "device": page["labels"], "engine": ENGINES, "service": page["services"]["words"],
        "workload": {**{name: one["label"] for name, one in page["workloads"].items()}, "own": "your own"},
    }.get(field.name, {})  # fmt: skip
    options = "".join(f'<option value="{html.escape(v)}">{html.escape(text)}</option>' for v, text in known.items())
    hint = f'<small id="{key}-hint">{html.escape(field.hint)}</small>' if field.hint else ""
    described = f"{key}-hint {key}-fault" if hint else f"{key}-fault"
    return f"""<div class="k3-field"><label for="{key}">{html.escape(field.label)}</label>
<select id="{key}" data-name="{field.name}" aria-describedby="{described}">{options}</select>{hint}
<span class="k3-fault" id="{key}-fault" data-fault="{field.name}" role="alert"></span></div>"""


RESULTS = """<div class="k3-whatif-results" role="region" aria-label="Results" tabindex="0">
<p class="k3-verdict" data-out="verdict"></p>
<p data-out="reason"></p>
<p class="k3-whatif-said" role="status" aria-live="polite" data-out="said"></p>
<h2 class="k3-small">What a card holds</h2>
<div data-out="ledger"></div>
<div data-out="held"></div>
<h2 class="k3-small">How fast it is</h2>
<div data-out="speed"></div>
<p data-out="terms"></p>
<p><small data-out="situation"></small></p>
<h2 class="k3-small">What it costs</h2>
<div data-out="costs"></div>
<p data-out="even"></p>
<p><small>A million output tokens are counted with the prompts that they answer, thinking included. Low and high are
bounds: all inputs at their cheap or at their dear ends at once, and the ends of the speed's range; a price that you set
has no range. A service is taken at today's list price.</small></p>
<div class="k3-whatif-print" data-out="inputs"></div>
</div>"""
