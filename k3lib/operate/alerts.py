"""The alerts of a plan: each row of the table with its level, or the reason why the plan gives none."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

from k3lib.facts.operating import LEVEL, Alert, alerts
from k3lib.operate.levels import Level, NoLevelError, level
from k3lib.operate.watched import Watched, under
from k3lib.ranges import Range

DIGITS = 4
ENGINES = ("vllm", "sglang")
GIVEN = "chosen; no source settles it"


@dataclass(frozen=True)
class Filled:
    """An alert on a plan. reason: why it has no level and is left out, empty where it is in. for_min: as it holds."""

    alert: Alert
    level: Level | None
    reason: str = ""
    for_min: float = 0.0

    @property
    def expr(self) -> str:
        """The expression with its level. Raises ValueError for an alert without one."""
        if self.level is None:
            raise ValueError(f"{self.alert.alert} has no level: {self.reason}")
        return self.alert.expr.replace(LEVEL, shown(self.level.at.value))


def shown(value: float) -> str:
    """A level as PromQL reads it: no more figures than are worth watching."""
    return format(Decimal(f"{value:.{DIGITS}g}"), "f")


def filled(one: Watched) -> list[Filled]:
    """Every alert of the table for a plan; those of the other engine for the same layout under it."""
    both = {name: one if name == one.plan.engine.name else under(name, one) for name in ENGINES}
    return [_filled(alert, both.get(engine_of(alert), one)) for alert in alerts()]


def engine_of(alert: Alert) -> str:
    """The engine that an alert watches, empty for cards, servers and addresses."""
    return next((name for name in ENGINES if alert.part.endswith(name)), "")


def _filled(alert: Alert, plan: Watched | None) -> Filled:
    if alert.level is not None:
        low, high = (alert.level if end is None else end for end in (alert.low, alert.high))
        return Filled(alert, Level(Range(alert.level, low, high), alert.note or GIVEN), for_min=alert.for_min)
    if plan is None:
        return Filled(alert, None, f"{engine_of(alert)} does not run this layout on these cards")
    try:
        found = level(alert, plan)
    except NoLevelError as reason:
        return Filled(alert, None, str(reason))
    found = replace(found, at=_ordered(found.at))
    if LEVEL in alert.expr:
        return Filled(alert, found, for_min=alert.for_min)
    return Filled(alert, found, for_min=max(alert.for_min, math.ceil(found.at.high)))


def _ordered(at: Range) -> Range:
    return Range(at.value, min(at.low, at.value), max(at.high, at.value))


def kept(many: Iterable[Filled]) -> list[Filled]:
    """Those that have a level."""
    return [one for one in many if one.level is not None]
