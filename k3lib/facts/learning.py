"""What new staff read: paths through the chapters, and the words that a glossary explains."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from k3lib.errors import InputError
from k3lib.facts.catalog import Sourced, checked, sources
from k3lib.facts.paths import DATA, shown
from k3lib.facts.tables import Text, load_rows


class PathStep(Sourced):
    """One page on the way of somebody new. minutes: to read it and try its exercises. able: what they can do then."""

    role: Text
    page: Text
    minutes: Annotated[int, Field(ge=1, le=600)]
    able: Text


class Term(Sourced):
    """A word of the trade. other: further spellings that mean it, separated by ';'. chinese: as the articles write it
    where they do; source_id says which, or that the word is this project's. page: where the book explains it.
    """

    term: Text
    abbreviation: str = ""
    other: str = ""
    chinese: Text
    meaning: Text
    page: Text

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every form under which the term stands in a text, the term itself first."""
        others = (part.strip() for part in self.other.split(";"))
        return tuple(dict.fromkeys(filter(None, (self.term, self.abbreviation, *others))))

    @property
    def anchor(self) -> str:
        """Where its line stands on the page of the glossary."""
        return "term-" + "".join(c if c.isalnum() else "-" for c in self.term.lower())

    @model_validator(mode="after")
    def _sound(self) -> Term:
        if not self.meaning.endswith("."):
            raise ValueError("meaning: must be a sentence, with a full stop at its end")
        return self


@lru_cache(maxsize=8)
def learning_paths(data: Path = DATA) -> tuple[PathStep, ...]:
    """The steps of all paths, each role's in the order in which they are walked."""
    path = data / "learning_paths.csv"
    return checked(path, load_rows(path, PathStep, ["role", "page"]), sources(data))


@lru_cache(maxsize=8)
def glossary(data: Path = DATA) -> tuple[Term, ...]:
    """The terms in the order of the table. Raises InputError where two terms claim one spelling."""
    path = data / "glossary.csv"
    terms = checked(path, load_rows(path, Term, ["term"]), sources(data))
    taken: dict[str, str] = {}
    for row in terms:
        for spelling in row.spellings:
            other = taken.setdefault(spelling.lower(), row.term)
            if other != row.term:
                raise InputError(f"{shown(path)} ({row.term}): '{spelling}' is also a spelling of '{other}'. Keep one.")
    return terms
