"""Evidence as records: what engines printed when they started, and what users met; both to be set beside the ledger."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from k3lib.facts.catalog import AsOf, Measure, Sourced, check_range, checked, sources
from k3lib.facts.paths import DATA
from k3lib.facts.tables import Grade, Identifier, NonNegative, OptionalCount, OptionalNumber, Text, UnitName, load_rows

Verdict = Literal["agrees", "misses", "outside"]
SettingsText = Annotated[str, Field(pattern=r"^([a-z_]+=[^=;\s]+(;[a-z_]+=[^=;\s]+)*)?$")]
# How the note of a logged value begins when the ledger does not give it, and what that says.
NOTED: dict[str, Verdict] = {"miss:": "misses", "outside:": "outside"}


class SetUp(Sourced):
    """What was run: a model on a cluster in a layout under an engine.

    model: its name, with "+format" where the experts are stored in another one. cluster, layout: in the short forms of
    `k3lib.engines.layout`, empty where the source does not say. settings: `name=value;name=value`, names as in
    `k3lib.deploy.plan.Settings`, and kv_memory_gib; what is not named was not stated.
    """

    model: Text
    cluster: str
    layout: str
    engine: Identifier
    settings: SettingsText
    quantity: Identifier

    @property
    def flags(self) -> dict[str, str]:
        """The settings by name."""
        return dict(part.split("=", 1) for part in self.settings.split(";") if part)


class MemoryLog(SetUp, Measure):
    """One value that an engine printed.

    stage: pipeline stage, empty for the tightest. low, high: the ranks or runs that printed less or more.
    note: begins with "miss:" or "outside:" where the ledger is known not to give the value, and says why.
    """

    log_id: Identifier
    engine_note: str = ""
    stage: OptionalCount

    @property
    def verdict(self) -> Verdict:
        """The expected agreement with the ledger."""
        return next((word for start, word in NOTED.items() if self.note.startswith(start)), "agrees")


class Case(SetUp):
    """One memory outcome that a user met. what: the case in one sentence. verdict: the expected agreement.

    outside: the ledger has no say, because the model, the engine or the device is not covered or the set-up is not
    stated. why: the reason for anything but agreement; elsewhere what had to be supposed.
    """

    case_id: Identifier
    as_of: AsOf
    what: Text
    true_value: NonNegative
    low: OptionalNumber = None
    high: OptionalNumber = None
    unit: UnitName
    grade: Grade
    verdict: Verdict
    why: str = ""

    @property
    def value(self) -> float:
        """The true value, under the name that a log's row gives it."""
        return self.true_value

    @property
    def stage(self) -> None:
        """Users speak of the whole set-up."""
        return None

    @model_validator(mode="after")
    def _sound(self) -> Case:
        check_range("true_value", self.true_value, self.low, self.high)
        if self.verdict != "agrees" and not self.why:
            raise ValueError(f"verdict '{self.verdict}' needs a reason in the column 'why'")
        return self


@lru_cache(maxsize=8)
def memory_logs(data: Path = DATA) -> tuple[MemoryLog, ...]:
    """What engines printed, in the order of the table."""
    path = data / "memory_logs.csv"
    return checked(path, load_rows(path, MemoryLog, ["log_id", "quantity", "stage"]), sources(data))


@lru_cache(maxsize=8)
def cases(data: Path = DATA) -> tuple[Case, ...]:
    """What users met, in the order of the table."""
    path = data / "cases.csv"
    return checked(path, load_rows(path, Case, ["case_id", "quantity", "layout"]), sources(data))
