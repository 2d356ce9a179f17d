"""A rule file for Prometheus: the alerts of a plan as groups of rules, the same bytes for the same plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from k3lib.operate.alerts import Filled, kept, shown

NAME = "k3-alerts.yml"
WIDE = 10_000  # no line of an expression is broken


def rules(many: Iterable[Filled]) -> dict[str, Any]:
    """The rule file as data: one group for each exporter."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in kept(many):
        groups.setdefault(one.alert.part, []).append(rule(one))
    return {"groups": [{"name": f"k3-{part}", "rules": found} for part, found in groups.items()]}


def rule(one: Filled) -> dict[str, Any]:
    """One alerting rule. Raises ValueError for an alert without a level."""
    row, expr = one.alert, one.expr
    unit = "" if row.unit == "1" else f" {row.unit}"
    level = f"Level {shown(one.level.at.value)}{unit}: {one.level.why}." if one.level else ""
    return {
        "alert": row.alert,
        "expr": expr,
        "for": f"{one.for_min:g}m",
        "labels": {"severity": row.severity, "part": row.part},
        "annotations": {
            "summary": row.summary,
            "description": f"What to do: {row.action}. {level}",
        },
    }


def text(many: Sequence[Filled], about: Sequence[str]) -> str:
    """The rule file. about: lines of comment at its head; alerts without a level are named there too."""
    left_out = [f"left out: {one.alert.alert} ({one.alert.part}): {one.reason}" for one in many if one.level is None]
    head = "".join(f"# {line}\n" for line in (*about, *left_out))
    return head + yaml.safe_dump(rules(many), sort_keys=False, allow_unicode=True, width=WIDE)
