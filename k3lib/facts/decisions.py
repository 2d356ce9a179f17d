"""Situations in which somebody has to decide, by a name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from k3lib.errors import InputError, near
from k3lib.facts.catalog import Sourced, checked, sources
from k3lib.facts.clusters import Region
from k3lib.facts.paths import DATA
from k3lib.facts.tables import Grade, Identifier, NonNegative, Positive, Text, load_rows
from k3lib.facts.workloads import workloads

ALL = 100


def parse_mix(text: str) -> dict[str, float]:
    """Shares of the output by workload, from `online-chat:70;coding-agent:30` in per cent.

    Raises ValueError for an unknown workload, one that stands twice, a share that is no number above 0, or another sum.
    """
    found: dict[str, float] = {}
    for part in text.split(";"):
        name, _, value = part.strip().partition(":")
        if name not in workloads():
            raise ValueError(f"workload '{name}' is not known. {near(name, workloads())}")
        if name in found:
            raise ValueError(f"workload '{name}' stands twice")
        try:
            found[name] = float(value)
        except ValueError:
            raise ValueError(f"'{part.strip()}' is not WORKLOAD:PERCENT, as {name}:70") from None
        if not 0 < found[name] <= ALL:
            raise ValueError(f"{name}:{value}: must be above 0 and at most {ALL} per cent")
    if abs(sum(found.values()) - ALL) > 1e-9 * ALL:
        raise ValueError(f"shares come to {sum(found.values()):g} per cent. They must come to {ALL}.")
    return {name: value / ALL for name, value in found.items()}


def _sound_mix(text: str) -> str:
    parse_mix(str(text))
    return str(text)


Mix = Annotated[str, BeforeValidator(_sound_mix)]


class Decision(Sourced):
    """A situation. data_stays: whether texts must stay in the house. mix: shares of the output by workload, per cent.

    mtok_per_day: million tokens of output on a day. utilisation: share of the time, from 0 to 1, that the traffic
    keeps a deployment of the right size busy. budget_cny: what may be invested at once.
    """

    case_id: Identifier
    label: Text
    region: Region
    data_stays: Literal["yes", "no"]
    mix: Mix
    mtok_per_day: Positive
    utilisation: Annotated[float, Field(gt=0, le=1)]
    budget_cny: NonNegative
    grade: Grade
    note: str = ""

    @property
    def shares(self) -> Mapping[str, float]:
        """Shares of the output by workload; they come to 1."""
        return parse_mix(self.mix)


@lru_cache(maxsize=8)
def decisions(data: Path = DATA) -> dict[str, Decision]:
    """Situations by name, in the order of the table."""
    path = data / "decisions.csv"
    return {row.case_id: row for row in checked(path, load_rows(path, Decision, ["case_id"]), sources(data))}


def decision(name: str) -> Decision:
    """A situation by name. Raises InputError with the near name."""
    if name not in decisions():
        raise InputError(f"case '{name}' is not in data/decisions.csv. {near(name, decisions())}")
    return decisions()[name]
