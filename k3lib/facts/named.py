"""Plans and loads that the book and the command call by a name."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from k3lib.errors import InputError, near
from k3lib.facts.evidence import SettingsText
from k3lib.facts.paths import DATA
from k3lib.facts.tables import Count, Identifier, Positive, Row, Text, load_rows


class NamedPlan(Row):
    """A deployment that readers ask about. utilisation: share of a card that it ran or was listed with.

    settings: `name=value;...`, names as in `k3lib.deploy.caches.Settings`, and experts, the kernel.
    """

    plan_id: Identifier
    cluster: Text
    layout: Text
    engine: Identifier
    utilisation: Positive
    settings: SettingsText = ""
    note: str = ""

    @property
    def flags(self) -> dict[str, str]:
        """The settings by name."""
        return dict(part.split("=", 1) for part in self.settings.split(";") if part)


class NamedLoad(Row):
    """A load: prompt and answer of each request in tokens."""

    load_id: Identifier
    label: Text
    isl: Count
    osl: Count
    note: str = ""


@lru_cache(maxsize=8)
def plans(data: Path = DATA) -> dict[str, NamedPlan]:
    """Named plans by id, in the order of the table."""
    return {row.plan_id: row for row in load_rows(data / "plans.csv", NamedPlan, ["plan_id"])}


@lru_cache(maxsize=8)
def loads(data: Path = DATA) -> dict[str, NamedLoad]:
    """Named loads by id, in the order of the table."""
    return {row.load_id: row for row in load_rows(data / "loads.csv", NamedLoad, ["load_id"])}


def load(name: str) -> NamedLoad:
    """A load by name. Raises InputError with the near name."""
    if name not in loads():
        raise InputError(f"load '{name}' is not known. {near(name, loads())}")
    return loads()[name]
