"""How long the ways of somebody new are."""

from __future__ import annotations

from collections.abc import Iterable

from k3lib.facts.learning import PathStep


def minutes_by_role(steps: Iterable[PathStep]) -> dict[str, int]:
    """Minutes of every role's pages together, in the order of the table; the first is everyone's."""
    found: dict[str, int] = {}
    for step in steps:
        found[step.role] = found.get(step.role, 0) + step.minutes
    return found
