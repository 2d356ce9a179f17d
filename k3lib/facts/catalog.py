"""The project's tables as records: sources, checkpoints, how checkpoints store things, devices, article figures."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, model_validator

from k3lib.errors import InputError, near
from k3lib.facts.paths import DATA, shown
from k3lib.facts.tables import (
    Count,
    Grade,
    Identifier,
    NonNegative,
    OptionalCount,
    OptionalNumber,
    Row,
    Text,
    UnitName,
    load_rows,
)
from k3lib.ranges import Range
from k3lib.units import convert

AsOf = Annotated[str, Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")]


class Source(Row):
    """Where facts come from. `locator`: address with the revision or page that was read."""

    source_id: Identifier
    title: Text
    locator: Text
    kind: Literal["release", "code", "log", "article", "standard", "report", "documentation", "page", "assumption"]
    as_of: AsOf
    note: str = ""


class Sourced(Row):
    """A row that names its source, or several separated by spaces."""

    source_id: Text

    @property
    def source_ids(self) -> tuple[str, ...]:
        """The sources, one by one."""
        return tuple(self.source_id.split())

    @property
    def named_sources(self) -> tuple[str, ...]:
        """Every source that the row names in any column."""
        return self.source_ids


class Checkpoint(Sourced):
    """A model whose weights are public, and what was published of their size.

    source_id: where the published totals come from; config_source_id: where the configuration comes from.
    published_bytes: sum of the tensors in B, file headers not counted; empty where nobody published it.
    aliases: other names of the same bytes, separated by spaces.
    """

    model_id: Identifier
    label: Text
    config: Identifier
    config_source_id: Text
    aliases: str = ""
    published_bytes: OptionalCount
    published_tensors: OptionalCount
    grade: Grade
    evidence: Text
    as_of: AsOf

    @property
    def named_sources(self) -> tuple[str, ...]:
        """Every source that the row names in any column."""
        return (*self.source_ids, *self.config_source_id.split())


class StorageFact(Sourced):
    """How a family or one checkpoint stores a thing that its configuration does not tell."""

    scope: Identifier
    item: Identifier
    value: Text
    grade: Grade
    note: str = ""


ELEMENT_BYTES = {"F32": 4, "BF16": 2, "U8": 1}


class InventoryRow(Sourced):
    """One tensor pattern of the released Kimi K3: shape, data type, how many, their parameters and bytes."""

    group: Identifier
    pattern: Text
    shape: Annotated[str, Field(pattern=r"^\d+(x\d+)*$")]
    dtype: Identifier
    count: Annotated[int, Field(ge=1)]
    params: Count
    bytes: Count

    @model_validator(mode="after")
    def _adds_up(self) -> InventoryRow:
        elements = self.count * math.prod(int(side) for side in self.shape.split("x"))
        if self.dtype in ELEMENT_BYTES and elements * ELEMENT_BYTES[self.dtype] != self.bytes:
            raise ValueError(f"bytes {self.bytes:,} is not count x shape x {ELEMENT_BYTES[self.dtype]} B")
        return self


def check_range(name: str, value: float, low: float | None, high: float | None) -> None:
    """Raises ValueError unless low <= value <= high; an end that is not given is the value."""
    low, high = value if low is None else low, value if high is None else high
    if not low <= value <= high:
        raise ValueError(f"{name} {value:g} is not between low {low:g} and high {high:g}")


class Measure(Sourced):
    """A value with its unit, and a range where the value is not exact."""

    value: NonNegative
    low: OptionalNumber = None
    high: OptionalNumber = None
    unit: UnitName
    grade: Grade
    as_of: AsOf
    note: str = ""

    @model_validator(mode="after")
    def _in_range(self) -> Measure:
        check_range("value", self.value, self.low, self.high)
        return self

    def range_in(self, unit: str) -> Range:
        """The value and its range in a unit of its dimension; an end that is not known is the value."""
        ends = (self.value if end is None else end for end in (self.value, self.low, self.high))
        return Range(*(float(convert(end, self.unit, unit)) for end in ends))


class DeviceFact(Measure):
    """One property of an accelerator card."""

    device: Identifier
    quantity: Identifier


class DeviceKin(Row):
    """What a card is kin to. architecture: cards that run the same kernels. kernels_like: the card whose kernel times
    stand for it, empty where none does.
    """

    device: Identifier
    architecture: Identifier
    kernels_like: str = ""
    note: str = ""


class EngineRule(Measure):
    """One number by which an engine splits, pads or reserves."""

    engine: Identifier
    version: Identifier
    rule: Identifier


class ArticleFigure(Sourced):
    """A number that one of the two articles states: here to be checked, not because it is right."""

    claim_id: Annotated[str, Field(pattern=r"^[AB]\d{2}$")]
    topic: Identifier
    quantity: Identifier
    value: NonNegative
    unit: UnitName


T = TypeVar("T", bound=Sourced)


@lru_cache(maxsize=8)
def sources(data: Path = DATA) -> dict[str, Source]:
    """All sources by id."""
    return {row.source_id: row for row in load_rows(data / "sources.csv", Source, ["source_id"])}


def checked(path: Path, rows: Iterable[T], known: Iterable[str]) -> tuple[T, ...]:
    ids = set(known)
    rows = tuple(rows)
    for row in rows:
        for source_id in row.named_sources:
            if source_id not in ids:
                name = " / ".join(str(v) for v in list(row.model_dump().values())[1:3])
                raise InputError(
                    f"{shown(path)} ({name}): source '{source_id}' is not in data/sources.csv. {near(source_id, ids)}"
                )
    return rows


@lru_cache(maxsize=8)
def checkpoints(data: Path = DATA) -> tuple[Checkpoint, ...]:
    """The known models, in the order of the table."""
    path = data / "models" / "checkpoints.csv"
    return checked(path, load_rows(path, Checkpoint, ["model_id"]), sources(data))


@lru_cache(maxsize=8)
def storage_facts(data: Path = DATA) -> tuple[StorageFact, ...]:
    """What configurations do not tell about how weights are stored."""
    path = data / "models" / "storage.csv"
    return checked(path, load_rows(path, StorageFact, ["scope", "item"]), sources(data))


@lru_cache(maxsize=8)
def inventory(data: Path = DATA) -> tuple[InventoryRow, ...]:
    """The 60 tensor patterns of the released Kimi K3."""
    path = data / "models" / "kimi-k3.tensors.csv"
    return checked(path, load_rows(path, InventoryRow, ["group", "pattern"]), sources(data))


@lru_cache(maxsize=8)
def devices(data: Path = DATA) -> dict[tuple[str, str], DeviceFact]:
    """Device facts by (device, quantity)."""
    path = data / "hardware.csv"
    rows = checked(path, load_rows(path, DeviceFact, ["device", "quantity"]), sources(data))
    return {(row.device, row.quantity): row for row in rows}


@lru_cache(maxsize=8)
def device_kin(data: Path = DATA) -> dict[str, DeviceKin]:
    """Kinship of cards by device."""
    return {row.device: row for row in load_rows(data / "devices.csv", DeviceKin, ["device"])}


def devices_with(path: Path) -> dict[tuple[str, str], DeviceFact]:
    """Device facts, with those of a user's own file of the same form beside or in place of them."""
    own = load_rows(path, DeviceFact, ["device", "quantity"])
    return {**devices(), **{(row.device, row.quantity): row for row in own}}


@lru_cache(maxsize=8)
def engine_rules(data: Path = DATA) -> dict[str, dict[str, EngineRule]]:
    """Rules by engine and name."""
    path = data / "engines.csv"
    table: dict[str, dict[str, EngineRule]] = {}
    for row in checked(path, load_rows(path, EngineRule, ["engine", "version", "rule"]), sources(data)):
        table.setdefault(row.engine, {})[row.rule] = row
    return table


@lru_cache(maxsize=8)
def article_figures(data: Path = DATA) -> dict[str, ArticleFigure]:
    """The articles' numbers by 'claim_id.quantity'."""
    path = data / "claims.csv"
    rows = checked(path, load_rows(path, ArticleFigure, ["claim_id", "quantity"]), sources(data))
    return {f"{row.claim_id}.{row.quantity}": row for row in rows}


def device_fact(device: str, quantity: str, data: Path = DATA) -> DeviceFact:
    """One property of a card. Raises InputError with the nearest known name."""
    table = devices(data)
    names = {d for d, _ in table}
    if device not in names:
        raise InputError(f"device '{device}' is not in data/hardware.csv. {near(device, names)}")
    if (device, quantity) not in table:
        known = {q for d, q in table if d == device}
        raise InputError(f"data/hardware.csv has no '{quantity}' for {device}. {near(quantity, known)}")
    return table[device, quantity]


def model_names(data: Path = DATA) -> dict[str, Checkpoint]:
    """Every accepted model name, in lower case, with its checkpoint."""
    names: dict[str, Checkpoint] = {}
    for row in checkpoints(data):
        for name in (row.model_id, *row.aliases.split()):
            if names.setdefault(name.lower(), row) is not row:
                raise InputError(f"data/models/checkpoints.csv: the name '{name}' belongs to two models")
    return names
