"""What the two articles claim, in this project's own words, and how each claim is checked; its figures are apart."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from k3lib.errors import InputError, near
from k3lib.facts.catalog import AsOf, Sourced, article_figures, checked, sources
from k3lib.facts.flags import engine_starts, parser
from k3lib.facts.paths import DATA, shown
from k3lib.facts.tables import Grade, Identifier, OptionalNumber, Text, load_rows
from k3lib.units import UNITS

ClaimId = Annotated[str, Field(pattern=r"^[AB]\d{2}$")]
# Tolerances that are shares of the stated figure.
OF_STATED = "%"


class Claim(Sourced):
    """One claim. statement: in our words. check: name of the check in `k3lib.claims`. page: chapter that shows more.

    tolerance: how far a found figure may lie outside the stated one for the claim to be confirmed; bearable: the same
    for it to be confirmed with a correction; both in tolerance_unit, "%" of the stated figure or a unit of its
    dimension. All three are empty where no figure decides. why: the reason for them.
    """

    claim_id: ClaimId
    section: Text
    topic: Identifier
    statement: Text
    kind: Literal["number", "range", "floor", "rule", "evidence", "procedure"]
    check: Identifier
    tolerance: OptionalNumber = None
    bearable: OptionalNumber = None
    tolerance_unit: str = ""
    why: str = ""
    page: Identifier

    @property
    def article(self) -> str:
        """The article's letter."""
        return self.claim_id[0]

    @model_validator(mode="after")
    def _sound(self) -> Claim:
        given = [self.tolerance is not None, self.bearable is not None, bool(self.tolerance_unit)]
        if any(given) != all(given):
            raise ValueError("tolerance, bearable and tolerance_unit go together: give all three or none")
        if any(given) and not self.why:
            raise ValueError("a tolerance needs a reason in the column 'why'")
        if self.tolerance is not None and self.bearable is not None and self.tolerance > self.bearable:
            raise ValueError(f"tolerance {self.tolerance:g} is above bearable {self.bearable:g}")
        if self.tolerance_unit and self.tolerance_unit not in UNITS:
            raise ValueError(f"tolerance_unit '{self.tolerance_unit}' is not known. {near(self.tolerance_unit, UNITS)}")
        return self


class Evidence(Sourced):
    """What an engine, a maker or a guide has, lacks or says. value: what it says, where that is a number.

    state: present, absent, needed for what the articles ask, or mismatch: read, and not in keeping with the release.
    """

    holder: Identifier
    version: Identifier
    item: Text
    state: Literal["present", "absent", "needed", "mismatch"]
    value: OptionalNumber = None
    grade: Grade
    as_of: AsOf
    note: str = ""


@lru_cache(maxsize=8)
def claims(data: Path = DATA) -> dict[str, Claim]:
    """All claims by id, in the order of the table. Raises InputError for figures of a claim that is not there."""
    path = data / "article_claims.csv"
    found = {row.claim_id: row for row in checked(path, load_rows(path, Claim, ["claim_id"]), sources(data))}
    for figure in article_figures(data).values():
        if figure.claim_id not in found:
            raise InputError(f"data/claims.csv: claim '{figure.claim_id}' is not in {shown(path)}. Add its row there.")
    return found


@lru_cache(maxsize=8)
def evidence(data: Path = DATA) -> tuple[Evidence, ...]:
    """All such evidence, in the order of the table."""
    path = data / "claim_evidence.csv"
    return checked(path, load_rows(path, Evidence, ["holder", "version", "item"]), sources(data))


def known_of(holder: str, item: str) -> Evidence:
    """What is known of an item of a holder. Raises InputError with the near name."""
    known = {row.item: row for row in evidence() if row.holder == holder}
    if item not in known:
        raise InputError(f"data/claim_evidence.csv has no '{item}' of {holder}. {near(item, known)}")
    return known[item]


def option_of(engine: str, name: str) -> Evidence:
    """Whether an engine's own parser knows an option. Raises InputError for an engine whose parser was not taken."""
    taken, start = parser(engine), engine_starts().get(engine)
    if taken is None or start is None:
        raise InputError(f"no parser of '{engine}' stands in data/engine_parsers")
    as_of = sources()[start.source_id].as_of
    return Evidence(holder=engine, version=taken.version, item=name, grade="exact", as_of=as_of,
                    state="present" if name in taken.by_name() else "absent", source_id=start.source_id)  # fmt: skip
