"""The verb `k3 read`: what files say, what the model says of the same settings, and what that teaches it."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3lib.cli_speed import short
from k3lib.errors import EXIT_DONE, InputError

if TYPE_CHECKING:
    from k3lib.calibrate.against import Compared, Given
    from k3lib.calibrate.teach import Taught
    from k3lib.deploy import constants as co
    from k3lib.facts.benchmarks import Run
    from k3lib.operate.acceptance import Judgement
    from k3lib.operate.network import Verdict

DESCRIPTION = """\
Load benchmark results, engine logs and network tests; say what they hold, what is predicted for the same settings, and
the difference; a verdict says whether that is good enough to go on. Files are recognised by what they hold: vLLM and
SGLang benchmarks, AIPerf, GenAI-Perf, GuideLLM, InferenceX, nccl-tests, DeepEP, start-up logs of vLLM and SGLang, and
rows as in data/benchmarks.csv.

  k3 read data/benchmarks.csv --json
  k3 read result.json --cluster 4x8xh20-96 --layout tp8,pp4 --engine vllm
  k3 read c1.json c8.json --cluster 4x8xh20-96 --layout tp8,pp4 --engine vllm --add --calibrate
  k3 read all_reduce_perf.txt --cluster 4x8xh20-96 --settings nics=4
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="results, logs or network tests; a log tells the settings")
    add("--model", default="", metavar="NAME", help="known model (default: as the file names it)")
    add("--cluster", default="", metavar="NODESxCARDSxDEVICE", help="e.g. 4x8xh20-96")
    add("--layout", default="", metavar="tp8,pp4,...", help="tp, pp, ep, dp and dcp")
    add("--engine", default="", help="vllm, vllm-2026-07 or sglang")
    add(
        "--settings",
        default="",
        metavar="NAME=VALUE;...",
        help="as in data/benchmarks.csv, e.g. nics=1;experts=humming",
    )
    add("--isl", type=int, default=None, metavar="TOKENS", help="input of a request, where the file does not tell")
    add("--osl", type=int, default=None, metavar="TOKENS", help="output of a request, where the file does not tell")
    add("--add", action="store_true", help="keep the runs in own/benchmarks.csv; the next build shows them")
    add("--calibrate", action="store_true", help="let two cells or more set the constants of this engine on this card")
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Read, compare, and keep what the options ask for. Returns 0."""
    from k3lib import reading
    from k3lib.calibrate import against, own
    from k3lib.calibrate.predict import numbers
    from k3lib.operate.acceptance import judged

    readings = reading.read_files(args.files)
    given = against.with_log(_given(args), [r for r in readings if isinstance(r, reading.LogReading)])
    table = numbers()
    entries, runs, networks = [], [], []
    for one in readings:
        compared: list[Compared] = []
        why, advice = "", list[str]()
        verdict: Judgement | Verdict | None = None
        if isinstance(one, reading.RunReading):
            found, compared, why, advice = _run(one, given, table)
            runs += [found] if found else []
        elif isinstance(one, reading.LogReading):
            compared, why, advice = _log(one, given)
        elif isinstance(one, reading.ExchangeReading):
            compared = against.exchanges_of(one, table)
            networks += [one]
            verdict = _network(one, given)
        entries.append((one, compared, why, verdict or judged(compared), advice))
    if args.add and not runs:
        raise InputError("--add: no run to keep in these files; name --model, --cluster, --layout and --engine")
    taught = None
    if args.calibrate:
        from k3lib.calibrate.teach import teach  # SciPy

        taught = teach(runs, networks, given)
    kept = own.add(runs) if args.add else 0
    if taught:
        own.keep(taught.rows)
    if args.json:
        texts = reading.as_json(readings)
        print(json.dumps({
            "readings": [{**text, "compared": [{**asdict(c), "difference": _finite(c.difference)} for c in compared],
                          "not_compared": why, "advice": advice, "verdict": verdict.word if verdict else None,
                          "verdict_details": asdict(verdict) if verdict else None}
                         for text, (_, compared, why, verdict, advice) in zip(texts, entries, strict=True)],
            "added": kept, "calibrated": _taught_json(taught),
        }, indent=1, allow_nan=False))  # fmt: skip
        return EXIT_DONE
    for one, compared, why, verdict, advice in entries:
        print("\n".join([reading.describe([one]), *(f"  {line}" for line in advice)]))
        print("\n".join(_lines(compared)) if compared else f"  {why}" if why else "")
        if verdict:
            print("\n".join([f"  verdict: {verdict.word}. {verdict.why}", *(f"  check: {x}" for x in verdict.checks)]))
    if args.add:
        print(f"{len(runs)} runs kept in own/benchmarks.csv, {kept} of them new")
    if taught is not None:
        print("\n".join(_taught_lines(taught)))
    return EXIT_DONE


def _given(args: argparse.Namespace) -> Given:
    from k3lib.calibrate.against import Given, known_model
    from k3lib.calibrate.cells import SETTINGS
    from k3lib.deploy.plan import ENGINES
    from k3lib.engines.layout import parse_cluster, parse_layout
    from k3lib.errors import near
    from k3lib.facts.catalog import model_names

    if args.model and not known_model(args.model):
        raise InputError(f"--model {args.model}: not known. {near(args.model, model_names())}")
    if args.cluster:
        parse_cluster(args.cluster)
    if args.layout:
        parse_layout(args.layout)
    if args.engine and args.engine not in ENGINES:
        raise InputError(f"--engine {args.engine}: not known. {near(args.engine, ENGINES)}")
    settings: dict[str, str] = {}
    for part in filter(None, args.settings.split(";")):
        name, equals, value = (x.strip() for x in part.partition("="))
        if not (equals and name.isidentifier() and value):
            raise InputError(f"--settings {args.settings}: '{part}' is not name=value")
        if name not in SETTINGS:
            raise InputError(f"--settings {name}: not known. {near(name, SETTINGS)}")
        settings[name] = value
    for name in ("isl", "osl"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise InputError(f"--{name} {value}: must be at least 1")
    return Given(known_model(args.model) if args.model else "", args.cluster, args.layout, args.engine, settings,
                 args.isl, args.osl)  # fmt: skip


def _run(one: Any, given: Given, table: co.Table) -> tuple[Run | None, list[Compared], str, list[str]]:
    from k3lib.calibrate import against
    from k3lib.calibrate.cells import cell
    from k3lib.operate.diagnose import slower_line

    if one.own is None and not (given.cluster or one.device):
        return None, [], "to compare it with a prediction, name --cluster, --layout and --engine", []
    if one.own is None and not (given.engine or one.engine):
        return None, [], "to compare it with a prediction, name --engine", []
    try:
        found = against.row(one, given)
    except InputError as error:
        return None, [], str(error), []
    why = against.missing(found)
    if why:
        return found, [], why, []
    try:
        asked = cell(found)
        compared = against.speed_of(asked, table)
    except InputError as error:
        return found, [], f"no prediction: {error}", []
    slower = slower_line(asked.asked, compared)
    return found, compared, "", [slower] if slower else []


def _log(one: Any, given: Given) -> tuple[list[Compared], str, list[str]]:
    from k3lib.calibrate import against
    from k3lib.operate.trouble import failure_lines

    try:
        compared, plan = against.memory_of(one, given), against.plan_of(one, given)
    except InputError as error:
        return [], str(error), []
    return compared, "", failure_lines(plan, one.failure) if one.failure else []


def _network(one: Any, given: Given) -> Verdict | None:
    from k3lib.engines.layout import parse_cluster
    from k3lib.operate.network import verdict

    nics = int(given.settings["nics"]) if "nics" in given.settings else None
    return verdict(one, parse_cluster(given.cluster) if given.cluster else None, nics)


def _lines(compared: list[Compared]) -> list[str]:
    lines = [f"  {'':<36}{'measured':>12}{'predicted':>12}  {'range':<24}{'difference':>11}"]
    for c in compared:
        ends = "" if c.low is None or c.high is None else f"{short(c.low)} to {short(c.high)}"
        what = c.what if c.unit in ("1", "tokens") else f"{c.what}, {c.unit}"
        difference = f"{100 * c.difference:>+10.1f}%" if math.isfinite(c.difference) else ""
        lines.append(f"  {what:<36}{short(c.measured):>12}{short(c.predicted):>12}  {ends:<24}{difference}")
    return [*lines, ""]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _taught_json(taught: Taught | None) -> dict[str, Any] | None:
    if taught is None:
        return None
    return {name: value for name, value in asdict(taught).items() if name != "rows"}


def _taught_lines(taught: Taught) -> list[str]:
    lines = []
    if taught.given:
        which = f"of the {taught.others} other runs" if taught.others else "of these two, as there are no others"
        lines.append(f"calibrated on {' and '.join(taught.given)}; median absolute error {which}:")
        for metric, before in taught.before.items():
            lines.append(f"  {metric:<12}{100 * before:>7.1f} % before {100 * taught.after[metric]:>7.1f} % after")
    lines.append("constants kept in own/constants.csv; predictions use them from now on:")
    for c in taught.constants:
        lines.append(f"  {c.parameter + ' ' + c.scope:<44}{c.value:>10.4g} {c.unit:<8} was {c.was:.4g}")
    return lines
