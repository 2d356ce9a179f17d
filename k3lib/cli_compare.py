"""The verb `k3 compare`: two scenarios, or two files of results."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3lib.errors import EXIT_DONE, InputError

if TYPE_CHECKING:
    from k3lib.report.changes import Changes, Moved
    from k3lib.results import Result

DESCRIPTION = """\
What differs between two scenarios: inputs, results, and whether the recommendation changes. Each is a name in
data/scenarios, a YAML file, or the results.json of a book. A scenario is run first; what ran before is not run again.

  k3 compare base h20-141
  k3 compare base h20-141 --json
"""
SHOWN = 25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("before", metavar="A", help="a scenario's name or file, or a results.json")
    parser.add_argument("after", metavar="B", help="the other one")
    parser.add_argument("--all", action="store_true", help="print every result that moved")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Compare and print. Returns 0; raises InputError for what cannot be read or run."""
    from k3lib.report.changes import compare, inputs

    (ours, first), (theirs, second) = (_results(name) for name in (args.before, args.after))
    found = compare(first, second, inputs(ours, theirs) if ours and theirs else ())
    print(json.dumps(found.as_json(), indent=1, allow_nan=False) if args.json else "\n".join(as_lines(found, args.all)))
    return EXIT_DONE


def _results(name: str) -> tuple[dict[str, Any], dict[str, Result]]:
    """Parameters of a scenario and its results; no parameters where results come from a file."""
    from k3lib.facts.scenario import load_scenario
    from k3lib.report.build import results_of
    from k3lib.results import load

    if name.endswith(".json"):
        if not Path(name).is_file():
            raise InputError(f"{name}: no such file. 'k3 build' writes _build/results.json")
        return {}, load(Path(name))
    scenario = load_scenario(name)
    return scenario.model_dump(), results_of(scenario)


def as_lines(found: Changes, whole: bool) -> list[str]:
    """The differences for people."""
    lines = [f"{one.name}: {one.before} -> {one.after}" for one in found.inputs] or ["no input is known to differ"]
    lines += ["", *(f"{one.key}: {one.before} -> {one.after}" for one in found.choices)]
    if not found.choices:
        lines.append("every recommendation stays")
    lines += ["", f"{len(found.moved):,} results differ, {found.same:,} are the same"]
    shown = [one for one in found.moved if one not in found.choices]
    lines += [_line(one) for one in (shown if whole else shown[:SHOWN])]
    if not whole and len(shown) > SHOWN:
        lines.append(f"... {len(shown) - SHOWN:,} more; --all prints them")
    return lines


def _line(one: Moved) -> str:
    change = f" ({one.change:+.1%})" if one.change is not None else ""
    return f"  {one.key}: {_short(one.before)} -> {_short(one.after)} {one.unit}".rstrip() + change


def _short(value: Any) -> str:
    return "-" if value is None else f"{value:,.5g}" if isinstance(value, float) else str(value)
