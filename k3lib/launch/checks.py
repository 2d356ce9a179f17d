"""Commands held against what the engine's own parser accepts, as data/engine_parsers/ has it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from k3lib.facts.flags import Option, Parser, parser
from k3lib.launch.records import Command

OWN_VARIABLES = {"vllm": "VLLM_", "sglang": "SGLANG_"}


def faults(command: Command, engine: str) -> list[str]:
    """What the engine's parser would not take of a command, in words; empty where it takes all.

    Names must be whole ones, each once, with as many values as they take, numbers where numbers are due and only legal
    choices. Variables of the engine must be among those that its package names. Raises KeyError for an engine whose
    parser was not taken.
    """
    known = parser(engine)
    if known is None:
        raise KeyError(engine)
    return [*_options(command, known), *_variables(command, known)]


def _options(command: Command, known: Parser) -> list[str]:
    by_name, found, seen = known.by_name(), [], list[Option]()
    for option in command.options:
        name, *values = option.words
        if name not in by_name:
            found.append(f"{name} is not an option of {known.engine} {known.version}{_meant(name, by_name)}")
            continue
        if any(by_name[name] is other for other in seen):
            found.append(f"{name} stands twice")
        seen.append(by_name[name])
        found += _values(name, values, by_name[name])
    return found


def _meant(name: str, names: dict[str, Option]) -> str:
    longer = sorted(other for other in names if other.startswith(name))
    return f"; could be short for {' or '.join(longer)}" if longer else ""


def _values(name: str, values: Sequence[str], option: Option) -> list[str]:
    if bool(values) != (option.takes != "none"):
        return [f"{name} {'takes no value' if values else 'needs a value'}"]
    found, legal = [], (*option.choices, *option.late_choices)
    for value in values:
        if legal and value not in legal:
            found.append(f"{name} {value}: not one of {', '.join(legal)}")
        if option.kind and not _is_number(value, option.kind):
            found.append(f"{name} {value}: is no {option.kind}")
        if value.startswith("{") and not _is_json(value):
            found.append(f"{name} {value}: is no JSON")
    return found


def _is_number(text: str, kind: str) -> bool:
    try:
        return bool(int(text) >= 0 if kind == "int" else float(text) >= 0)
    except ValueError:
        return False


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except json.JSONDecodeError:
        return False


def _variables(command: Command, known: Parser) -> list[str]:
    prefix = OWN_VARIABLES[known.engine]
    names = [o.row.name for o in command.env]
    strange = [n for n in names if n.startswith(prefix) and n not in known.variables]
    twice = sorted({n for n in names if names.count(n) > 1})
    return [f"{n} is no variable of {known.engine} {known.version}" for n in strange] + [f"{n} twice" for n in twice]
