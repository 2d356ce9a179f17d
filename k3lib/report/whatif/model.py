"""The page's script: the library's functions translated, its equations written out, its facts laid beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sympy as sp

from k3lib.account import costs, sharding
from k3lib.calibrate import spread
from k3lib.cost import bill
from k3lib.deploy import apart, caches, curves, inverse, ledger, load, loop, passes, plan, serve, setup, speed
from k3lib.deploy import constants as co
from k3lib.engines import layout, rules, sglang, vllm
from k3lib.errors import near
from k3lib.evaluate import arrays, exact, whole
from k3lib.facts.paths import ROOT
from k3lib.report.whatif import expressions, translate

ASSETS = ROOT / "book" / "_assets"
# What of the library the page runs.
CHOSEN: translate.Chosen = {
    load: ("Load", "Rules", "Served", "Apart"),
    loop: ("Group", "Slot", "Loop"),
    serve: ("_place", "Grid", "grid", "serve"),
    layout: ("Cluster", "Layout"),
    rules: ("divides", "rank_width", "split_values", "stages", "stage_counts"),
    vllm: ("_partition", "_expert_groups", "_check", "block_length", "layer_groups", "blocks_of_request", "ENGINE"),
    sglang: ("_partition", "_expert_groups", "_check", "slots_per_request", "ENGINE"),
    ledger: ("Line", "reserve_lines", "residual_rows", "engine_values", "width_bytes"),
    caches: ("Settings", "Caches", "caches", "_paged", "_pooled"),
    plan: ("Stage", "Plan", "make_plan", "_check", "_known", "_stage", "_with_memory", "_judged", "_why_not",
           "_what_decides"),
    inverse: ("legal_layouts",),
    curves: ("Curve.at", "ExpertTime", "_share"),
    passes: ("PassTimes.expert_us", "PassTimes.exchange_us"),
    setup: ("domain", "SetUp.domain", "SetUp.expert_cards", "SetUp.attention_cards", "SetUp.token_groups"),
    speed: ("Question", "Options", "held_at_once", "question", "rules_of", "answer", "_answer_of_one"),
    spread: ("changes*",),
    bill: ("BillLine", "Bill", "line_values", "totals"),
}  # fmt: skip
# What stands by hand in the script, because it reads files or calculates with SymPy and NumPy.
GIVEN: dict[str, Any] = {
    "Engine": rules.Engine, "ENGINES": plan.ENGINES, "near": near, "exact": exact, "whole": whole,
    "integer": sp.Integer,
    "residual_bytes": sharding.residual_bytes, "block_bytes": sharding.block_bytes,
    "token_bytes": ledger.token_bytes, "state_bytes": ledger.state_bytes, "weight_lines": ledger.weight_lines,
    "capacity_bytes": plan.capacity_bytes, "architecture": co.architecture, "fact": curves.fact,
    "filled": curves._filled, "shares": curves._shares, "whole_expert": curves._whole_expert,
    "exchange_curve": curves.exchange_curve, "set_up": speed.set_up, "passes_of": speed.passes_of,
    "constants": setup.constants, "prompts_apart": apart.prompts_apart, "override": spread.override,
    "line_cny": costs.line_cny, "line_expression": bill.line_expression, "arrays": arrays,
}  # fmt: skip


def script(facts: dict[str, Any], functions: list[expressions.Function], texts: Iterable[str] = ()) -> str:
    """The whole script, of facts as `k3lib.report.whatif.facts` lays them out. texts: words in them that are shown."""
    laid = json.dumps(facts, separators=(",", ":"), sort_keys=True, ensure_ascii=False).replace("<", "\\u003c")
    shown = ", ".join(f"t({json.dumps(text, ensure_ascii=False)})" for text in dict.fromkeys(texts))
    parts = {
        "texts": f"/* Words of the facts, for other languages: {shown} */",
        "facts": f"const facts = {laid};",
        "equations": expressions.script(functions),
        "translated": translate.script(CHOSEN, {f"given.{name}": value for name, value in GIVEN.items()}),
    }
    text = (ASSETS / "k3-whatif-model.js").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"/* k3:{name} */", part)
    return (ASSETS / "k3-whatif-python.js").read_text(encoding="utf-8") + text


def write(path: Path, facts: dict[str, Any], functions: list[expressions.Function], texts: Iterable[str]) -> None:
    """The script as a file. Equal facts give equal bytes."""
    path.write_text(script(facts, functions, texts), encoding="utf-8", newline="\n")
