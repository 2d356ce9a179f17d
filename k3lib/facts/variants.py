"""What is published of Kimi K3 in other formats, pruned, or with experts in main memory, and what that costs."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from k3lib.errors import InputError, near
from k3lib.facts.catalog import AsOf, Measure, Sourced, check_range, checked, sources
from k3lib.facts.paths import DATA
from k3lib.facts.tables import (
    Grade,
    Identifier,
    OptionalCount,
    OptionalNumber,
    OptionalSigned,
    Signed,
    Text,
    UnitName,
    load_rows,
)

PER_CENT = 100


class Variant(Sourced):
    """Kimi K3 in another form. kind: a format, a GGUF file, or fewer experts.

    form: the format by its name in the account, empty where the account does not know it. experts: routed experts of a
    layer that are kept. published_bytes, low, high: B, empty where nobody published a size. bits_per_weight: as
    printed.
    """

    variant_id: Identifier
    label: Text
    kind: Literal["format", "gguf", "pruned"]
    form: str = ""
    experts: Annotated[int, Field(ge=1)]
    published_bytes: OptionalCount = None
    low: OptionalCount = None
    high: OptionalCount = None
    bits_per_weight: OptionalNumber = None
    grade: Grade
    as_of: AsOf
    note: str = ""

    @model_validator(mode="after")
    def _sound(self) -> Variant:
        if self.published_bytes is not None:
            check_range("published_bytes", self.published_bytes, self.low, self.high)
        elif not self.form:
            raise ValueError("published_bytes is missing, and there is no form to compute it from")
        return self


class Quality(Sourced):
    """One figure of what a variant, a relative or a cache's data type is worth beside its baseline, as printed.

    subject: what was tried. kind: what was changed: the weights' format, experts pruned, the cache's or the state's
    data type, or only the order of sums. variant_id: the row of variants.csv it speaks of, where it does. nature: a
    task that users have too, or a proxy such as an error of weights. method, kept_pct: how experts were chosen, and the
    share of them that was kept; of pruned models only, the share empty where it is not stated.
    """

    subject: Text
    model: Identifier
    kind: Literal["format", "pruning", "cache", "state", "sums"]
    variant_id: str = ""
    benchmark: Text
    nature: Literal["task", "proxy"]
    method: Literal["", "REAP", "EAN", "frequency"] = ""
    kept_pct: OptionalNumber = None
    score: Signed
    baseline: OptionalSigned = None
    unit: UnitName
    grade: Grade
    as_of: AsOf
    note: str = ""

    @model_validator(mode="after")
    def _sound(self) -> Quality:
        if bool(self.method) != (self.kind == "pruning"):
            raise ValueError(f"method '{self.method}' does not go with kind {self.kind}: pruned models have one")
        if self.kept_pct is not None and not (self.method and 0 < self.kept_pct <= PER_CENT):
            raise ValueError(f"kept_pct {self.kept_pct:g}: must be above 0 and at most 100, of pruned models only")
        return self


class Offload(Measure):
    """One value of a machine that holds experts outside its cards' memory, or one that the model of it supposes.

    kind: a run, a cache's hits, how routing spreads, a bandwidth, the balance of cards, or a parameter.
    resident_pct: experts that lie on the cards. host_rate_gbs: nominal rate of where the others lie, in GB/s, empty
    where it does not follow from what is named. clients: requests at once.
    """

    offload_id: Identifier
    kind: Literal["run", "cache", "routing", "bandwidth", "balance", "parameter"]
    model: str = ""
    quantisation: str = ""
    engine: str = ""
    hardware: str = ""
    host_memory: str = ""
    link: str = ""
    resident_pct: OptionalNumber = None
    host_rate_gbs: OptionalNumber = None
    metric: Text
    clients: OptionalCount = None

    @property
    def span(self) -> tuple[float, float, float]:
        """The value and the ends of its range."""
        return (
            self.value,
            self.value if self.low is None else self.low,
            self.value if self.high is None else self.high,
        )


@lru_cache(maxsize=8)
def variants(data: Path = DATA) -> dict[str, Variant]:
    """All variants by id, in the order of the table."""
    path = data / "variants.csv"
    return {row.variant_id: row for row in checked(path, load_rows(path, Variant, ["variant_id"]), sources(data))}


@lru_cache(maxsize=8)
def quality(data: Path = DATA) -> tuple[Quality, ...]:
    """All figures of quality. Raises InputError for a variant that is not in variants.csv."""
    path = data / "quality.csv"
    rows = checked(path, load_rows(path, Quality, ["subject", "model", "benchmark"]), sources(data))
    for row in rows:
        if row.variant_id and row.variant_id not in variants(data):
            raise InputError(f"data/quality.csv ({row.subject}): variant '{row.variant_id}' is not in "
                             f"data/variants.csv. {near(row.variant_id, variants(data))}")  # fmt: skip
    return rows


@lru_cache(maxsize=8)
def offload(data: Path = DATA) -> dict[str, Offload]:
    """All rows about experts outside the cards, by id."""
    path = data / "offload.csv"
    return {row.offload_id: row for row in checked(path, load_rows(path, Offload, ["offload_id"]), sources(data))}


def variant(name: str) -> Variant:
    """A variant by id. Raises InputError with the near id."""
    if name not in variants():
        raise InputError(f"variant '{name}' is not in data/variants.csv. {near(name, variants())}")
    return variants()[name]


def parameter(name: str) -> Offload:
    """What the model of offloading supposes, by name. Raises InputError with the near name."""
    rows = {i: row for i, row in offload().items() if row.kind == "parameter"}
    if name not in rows:
        raise InputError(f"data/offload.csv has no parameter '{name}'. {near(name, rows)}")
    return rows[name]
