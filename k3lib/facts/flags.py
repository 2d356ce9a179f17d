"""How engines are started: flags and variables with the conditions under which they hold, old advice, legal options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from k3lib.errors import InputError, near
from k3lib.facts.catalog import Sourced, checked, sources
from k3lib.facts.paths import DATA, shown
from k3lib.facts.tables import Identifier, OptionalCount, Text, load_rows, problem, read_text

# What a condition may ask of a plan, and the answers that there are; None: any.
FEATURES: dict[str, tuple[str, ...] | None] = {
    "model": None, "weights": None, "family": None, "device": None, "tp": None,
    "nodes": ("one", "many"), "stages": ("one", "many"), "dp": ("one", "many"), "dcp": ("one", "many"),
    "ep": ("on", "off"), "rack": ("yes", "no"), "copies": ("one_a_node", "many_a_node"),
    "start": ("one", "native", "groups", "ray"), "interface": ("given", "none"),
    "prefix": ("on", "off"), "graphs": ("on", "off"), "drafts": ("yes", "no"),
    "cache": None, "state": None, "strategy": None, "experts": None,
    "all_reduce": ("auto", "nccl"), "files": ("released", "own"),
}  # fmt: skip
Kind = Literal["flag", "env", "before", "file", "site", "warn", "stop", "pod"]
Status = Literal["ran", "listed", "parsed", "read", "none"]
# What the evidence of a flag is worth.
MEANING: dict[Status, str] = {
    "ran": "a published run used it",
    "listed": "a published recipe names it",
    "parsed": "the engine's own parser takes it, nothing more is known",
    "read": "the engine's code reads it, nothing more is known",
    "none": "nothing public was found",
}


class EngineFlag(Sourced):
    """One thing about starting K3 under an engine.

    kind: a flag, a variable (env), a program that runs before, a line of a file of options (file), what only the site
    can know (site), what is to be said (warn), why no command is written (stop), a value of the Kubernetes manifest
    (pod). value: the text, in which "@name" stands for what the plan gives; empty for a switch. when: conditions
    `feature=a|b;feature!=c`, all of which must hold; empty: always. role: the nodes that it is for, empty for all.
    """

    engine: Identifier
    kind: Kind
    name: Text
    value: str = ""
    when: str = ""
    role: Literal["", "first", "others"] = ""
    reason: Text
    status: Status
    version: Text

    @model_validator(mode="after")
    def _known_conditions(self) -> EngineFlag:
        for name, _, answers in self.conditions:
            if name not in FEATURES:
                raise ValueError(f"when: '{name}' is not known. {near(name, FEATURES)}")
            legal = FEATURES[name]
            for answer in answers:
                if legal is not None and answer not in legal:
                    raise ValueError(f"when: {name} is never '{answer}'. {near(answer, legal)}")
        return self

    @property
    def conditions(self) -> tuple[tuple[str, bool, tuple[str, ...]], ...]:
        """The conditions as (feature, whether it must be so, answers)."""
        found = []
        for part in self.when.split(";") if self.when else ():
            name, equals, answers = part.partition("=")
            if not equals or not answers:
                raise ValueError(f"when: '{part}' is not feature=answer or feature!=answer")
            found.append((name.removesuffix("!"), not name.endswith("!"), tuple(answers.split("|"))))
        return tuple(found)

    def holds(self, features: Mapping[str, str]) -> bool:
        """Whether it applies to a plan of these features."""
        return all((features[name] in answers) == so for name, so, answers in self.conditions)


class EngineStart(Sourced):
    """How an engine is started at all.

    way: whether its commands follow the plan, are those of one published set-up, or do not exist. family, nodes,
    layout: of the published set-up, empty for any. memory: what it had, in words.
    """

    engine: Identifier
    label: Text
    version: Text
    way: Literal["plan", "published", "none"]
    program: str = ""
    model: str = ""
    port: OptionalCount
    health: str = ""
    family: str = ""
    nodes: OptionalCount
    layout: str = ""
    memory: str = ""
    status: Status


class OldAdvice(Sourced):
    """A flag that older texts give.

    verdict: gone (the start fails), idle (taken, without effect), wrong (taken, and does harm or nothing good),
    needless (taken, but the default by now or a roundabout way), right (still good). claim_id: the claim of an article
    that gives it, empty for other texts. now: what to write instead.
    """

    engine: Identifier
    name: Text
    value: str = ""
    claim_id: Annotated[str, Field(pattern=r"^([AB]\d{2})?$")] = ""
    verdict: Literal["gone", "idle", "wrong", "needless", "right"]
    now: Text
    reason: Text


class Option(BaseModel):
    """An option of a parser. takes: none, one, or "?", "*", "+" as argparse has them. choices: the legal values;
    late_choices: those that the package itself checks after it has parsed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    takes: Literal["none", "one", "?", "*", "+"]
    also: tuple[str, ...] = ()
    kind: Literal["int", "float"] | None = None
    choices: tuple[str, ...] = ()
    late_choices: tuple[str, ...] = ()


class Parser(BaseModel):
    """What an engine's own argument parser accepts, and the variables that its package names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: str
    version: str
    made_by: str
    options: dict[str, Option]
    variables: frozenset[str]

    def by_name(self) -> dict[str, Option]:
        """Every name of every option."""
        return {name: option for first, option in self.options.items() for name in (first, *option.also)}


@lru_cache(maxsize=8)
def engine_flags(data: Path = DATA) -> tuple[EngineFlag, ...]:
    """Flags, variables and remarks, in the order of the command line."""
    path = data / "engine_flags.csv"
    rows = checked(path, load_rows(path, EngineFlag, ["engine", "kind", "name", "value", "when"]), sources(data))
    for row in rows:
        if row.engine not in engine_starts(data):
            raise InputError(f"{shown(path)} ({row.name}): engine '{row.engine}' is not in data/engine_starts.csv. "
                             f"{near(row.engine, engine_starts(data))}")  # fmt: skip
    return rows


@lru_cache(maxsize=8)
def engine_starts(data: Path = DATA) -> dict[str, EngineStart]:
    """Engines by name, those whose commands follow the plan first."""
    path = data / "engine_starts.csv"
    rows = checked(path, load_rows(path, EngineStart, ["engine"]), sources(data))
    return {row.engine: row for row in rows}


@lru_cache(maxsize=8)
def old_advice(data: Path = DATA) -> tuple[OldAdvice, ...]:
    """What older texts advise, in the order of the table."""
    path = data / "old_advice.csv"
    return checked(path, load_rows(path, OldAdvice, ["engine", "name", "claim_id"]), sources(data))


@lru_cache(maxsize=8)
def parser(engine: str, data: Path = DATA) -> Parser | None:
    """The parser of an engine at the version whose flags were collected; None where none was taken."""
    start = engine_starts(data)[engine]
    path = data / "engine_parsers" / f"{engine}-{start.version}.json"
    if not path.is_file():
        return None
    try:
        return Parser.model_validate(json.loads(read_text(path)))
    except (json.JSONDecodeError, ValidationError) as error:
        cause = problem(error) if isinstance(error, ValidationError) else str(error)
        raise InputError(f"{shown(path)}: {cause}. Make it again with tools/snapshot_parsers.py.") from None
