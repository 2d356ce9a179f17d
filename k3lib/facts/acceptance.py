"""What an acceptance rests on: measured loads of files onto cards, and what is supposed of drives and of tests."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from k3lib.errors import InputError, near
from k3lib.facts.catalog import AsOf, Measure, Sourced, check_range, checked, sources
from k3lib.facts.paths import DATA
from k3lib.facts.tables import Grade, Identifier, OptionalCount, OptionalNumber, Positive, Text, load_rows

StorageKind = Literal["nvme", "nfs", "parallel", "memory", "unstated"]


class StorageLoad(Sourced):
    """One measured load of a model's files onto cards.

    checkpoint_bytes: of all files, B. kind: where the files lay: drives of the node, a file server, a parallel file
    system, main memory (page cache or tmpfs), or not stated. seconds, low, high: until the slowest card had its
    weights. nodes: empty where not stated. use: "no" where the note says why the load does not compare with others.
    """

    load_id: Identifier
    model: Identifier
    checkpoint_bytes: Annotated[int, Field(gt=0)]
    loader: Text
    storage: Text
    kind: StorageKind
    device: Identifier
    cards: Annotated[int, Field(ge=1)]
    nodes: OptionalCount = None
    seconds: Positive
    low: OptionalNumber = None
    high: OptionalNumber = None
    grade: Grade
    use: Literal["yes", "no"]
    as_of: AsOf
    note: str = ""

    @model_validator(mode="after")
    def _sound(self) -> StorageLoad:
        check_range("seconds", self.seconds, self.low, self.high)
        if self.use == "no" and not self.note:
            raise ValueError("use 'no' needs a reason in the column 'note'")
        return self


class Parameter(Measure):
    """One number that an acceptance rests on, by name, with its range."""

    name: Identifier


@lru_cache(maxsize=8)
def storage_loads(data: Path = DATA) -> tuple[StorageLoad, ...]:
    """All measured loads, in the order of the table."""
    path = data / "storage_load.csv"
    return checked(path, load_rows(path, StorageLoad, ["load_id"]), sources(data))


@lru_cache(maxsize=8)
def parameters(data: Path = DATA) -> dict[str, Parameter]:
    """Numbers of the acceptance by name."""
    path = data / "acceptance.csv"
    return {row.name: row for row in checked(path, load_rows(path, Parameter, ["name"]), sources(data))}


def parameter(name: str, data: Path = DATA) -> Parameter:
    """One of them. Raises InputError with the near name."""
    table = parameters(data)
    if name not in table:
        raise InputError(f"data/acceptance.csv has no '{name}'. {near(name, table)}")
    return table[name]
