"""A dashboard for Grafana: sections of panels over the metrics of both engines, with the levels of alerts as lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from k3lib.facts.operating import Panel, panels
from k3lib.operate.alerts import Filled, kept

NAME = "k3-dashboard.json"
SCHEMA_VERSION = 39
COLUMNS, WIDTH, HEIGHT = 24, 8, 8
UID = "k3-serving"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Units by Grafana's names; those that it does not know are numbers with their unit in the title.
UNITS = {"1": "percentunit", "%": "percent", "s": "s", "B/s": "Bps", "MiB": "mbytes", "W": "watt", "°C": "celsius",
         "1/s": "ops"}  # fmt: skip
NO_LINE, LINE = "transparent", "#D55E00"


def dashboard(many: Iterable[Filled], engine: str, about: str = "") -> dict[str, Any]:
    """The dashboard as data.

    engine: whose levels are drawn where both engines have an alert of one name. about: its description.
    """
    levels = _levels(kept(many), engine)
    made: list[dict[str, Any]] = []
    y = 0
    for section, titles in _grouped(panels()).items():
        made.append({"id": len(made) + 1, "type": "row", "title": section, "collapsed": False, "panels": [],
                     "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}})  # fmt: skip
        y += 1
        for place, (title, lines) in enumerate(titles.items()):
            at = {"x": place * WIDTH % COLUMNS, "y": y + place * WIDTH // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT}
            made.append(_panel(len(made) + 1, title, lines, levels, at))
        y += -(-len(titles) * WIDTH // COLUMNS) * HEIGHT
    return {
        "uid": UID, "title": "Kimi K3 in service", "description": about, "tags": ["k3"], "timezone": "browser",
        "schemaVersion": SCHEMA_VERSION, "version": 1, "editable": True, "refresh": "30s", "graphTooltip": 1,
        "time": {"from": "now-6h", "to": "now"}, "annotations": {"list": []}, "links": [],
        "templating": {"list": [{"name": "datasource", "label": "Data source", "type": "datasource",
                                 "query": "prometheus", "current": {}, "hide": 0, "options": [], "regex": "",
                                 "refresh": 1, "multi": False, "includeAll": False}]},
        "panels": made,
    }  # fmt: skip


def text(many: Iterable[Filled], engine: str, about: str = "") -> str:
    """The dashboard as a file."""
    return json.dumps(dashboard(many, engine, about), indent=1, ensure_ascii=False) + "\n"


def _levels(many: Sequence[Filled], engine: str) -> dict[str, float]:
    """Levels by the alert's name, those of the engine in front of those of the other."""
    ordered = sorted(many, key=lambda one: one.alert.part == engine)
    return {one.alert.alert: one.level.at.value for one in ordered if one.level is not None}


def _grouped(rows: Iterable[Panel]) -> dict[str, dict[str, list[Panel]]]:
    found: dict[str, dict[str, list[Panel]]] = {}
    for row in rows:
        found.setdefault(row.section, {}).setdefault(row.title, []).append(row)
    return found


def _panel(number: int, title: str, lines: Sequence[Panel], levels: Mapping[str, float],
           at: dict[str, int]) -> dict[str, Any]:  # fmt: skip
    first = lines[0]
    level = levels.get(first.alert)
    unit = UNITS.get(first.unit, "short")
    plain = unit == "short" and first.unit not in ("events", "requests", "tokens")
    steps: list[dict[str, Any]] = [{"color": NO_LINE, "value": None}]
    if level is not None:
        steps.append({"color": LINE, "value": level})
    return {
        "id": number, "type": "timeseries", "title": f"{title}, {first.unit}" if plain else title,
        "description": f"Line: level of the alert {first.alert}." if level is not None else "",
        "datasource": SOURCE, "gridPos": at,
        "fieldConfig": {"defaults": {
            "unit": unit, "min": 0, **({"max": 1} if unit == "percentunit" else {}),
            "thresholds": {"mode": "absolute", "steps": steps},
            "custom": {"thresholdsStyle": {"mode": "line" if level is not None else "off"}},
        }, "overrides": []},
        "options": {"legend": {"showLegend": True, "displayMode": "list", "placement": "bottom"},
                    "tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [{"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": line.expr,
                     "legendFormat": line.legend, "range": True} for i, line in enumerate(lines)],
    }  # fmt: skip
