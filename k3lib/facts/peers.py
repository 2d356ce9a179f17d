"""What other tools that predict serving speed publish, or others found, of their own error."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from k3lib.facts.catalog import AsOf, Sourced, checked, sources
from k3lib.facts.paths import DATA
from k3lib.facts.tables import Grade, Identifier, OptionalCount, OptionalSigned, Signed, Text, load_rows


class PeerError(Sourced):
    """One figure of a tool's error.

    metric: what was predicted. statistic: "median" and "mean" are of the absolute errors; "signed" is predicted over
    measured, less one, of single cases. error_pct, error_high_pct: in per cent, the second where a span is stated.
    scored_by: who set the prediction beside the measurement: the tool's makers, others, or this project. cases: how
    many, empty where not stated. of: models and cards.
    """

    claim_id: Identifier
    tool: Text
    version: str = ""
    metric: Literal["output", "tpot", "ttft", "e2e", "itl", "prefill"]
    statistic: Literal["median", "mean", "signed"]
    error_pct: Signed
    error_high_pct: OptionalSigned = None
    cases: OptionalCount = None
    of: Text
    scored_by: Literal["makers", "others", "project"]
    grade: Grade
    as_of: AsOf
    note: str = ""

    @model_validator(mode="after")
    def _sound(self) -> PeerError:
        if self.error_high_pct is not None and self.error_high_pct < self.error_pct:
            raise ValueError(f"error_pct {self.error_pct:g} is above error_high_pct {self.error_high_pct:g}")
        if self.statistic != "signed" and self.error_pct < 0:
            raise ValueError(f"error_pct {self.error_pct:g}: a {self.statistic} of absolute errors is not below 0")
        return self


@lru_cache(maxsize=8)
def peer_errors(data: Path = DATA) -> tuple[PeerError, ...]:
    """All such figures, in the order of the table."""
    path = data / "peers.csv"
    return checked(path, load_rows(path, PeerError, ["claim_id"]), sources(data))
