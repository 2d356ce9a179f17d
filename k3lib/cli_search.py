"""The verb `k3 search`: every legal layout of a cluster under a load, ranked."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3lib.cli_speed import KERNELS, short
from k3lib.errors import EXIT_DONE, InputError, near

if TYPE_CHECKING:
    from k3lib.cost.own import Ownership
    from k3lib.deploy.load import Load, Served
    from k3lib.deploy.search import Found, Limits, Space
    from k3lib.engines.layout import Hardware

DESCRIPTION = """\
Every layout that an engine accepts on a cluster, under a load, best first, with the reason where one does not fit. The
first is the simplest of those that cannot be told from the best. Exit code 2 when nothing fits, or nothing keeps to the
limits: then the nearest is named.

  k3 search --cluster h20x32 --workload offline-batch
  k3 search --cluster 4x8xh20-96 --isl 8000 --osl 1000 --concurrency 64 --slo ttft=20s,tpot=150ms
  k3 search --cluster gb200-nvl72-64 --workload rag --slo ttft=5s,tpot=50ms --rank tpot --json
  k3 search --cluster 8x8xh200 --isl 8000 --osl 1000 --front
"""
SHOWN = 12
MS = {"ms": 1.0, "s": 1000.0}
LIMITS = {"ttft": "ttft_ms", "tpot": "tpot_ms"}
FRONT_CLIENTS = tuple(2**n for n in range(11))
ENGINES = ("vllm", "sglang")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    add = parser.add_argument
    add("--cluster", required=True, metavar="NAME|NODESxCARDSxDEVICE", help="e.g. h20x32 or 4x8xh20-96")
    add("--model", default="kimi-k3", metavar="NAME|FILE", help="a known model, or the path of a config.json")
    add("--weights", default=None, metavar="FORMAT", help="store the quantised weights as mxfp4, fp8, int4 or bf16")
    add("--hardware", type=Path, default=None, metavar="FILE", help="device facts of your own, as in data/hardware.csv")
    add("--engine", default="vllm", choices=ENGINES, help="vllm or sglang")
    add("--workload", default=None, metavar="NAME", help="a named workload, in place of the next three")
    add("--workloads", type=Path, default=None, metavar="FILE", help="workloads of your own, as in data/workloads.csv")
    add("--isl", type=int, default=None, metavar="TOKENS", help="input of a request")
    add("--osl", type=int, default=None, metavar="TOKENS", help="output of a request")
    add("--concurrency", type=int, default=None, metavar="N",
        help="requests at once; with --front the most of them (then by default 1024)")  # fmt: skip
    add("--slo", default=None, metavar="ttft=5s,tpot=50ms", help="limits, in place of the workload's goals")
    add("--rank", default=None, choices=("output", "cost", "tpot", "ttft"),
        help="what is best (default: output)")  # fmt: skip
    add("--nics", type=int, default=None, metavar="N", help="network cards of a node")
    add("--moe-backend", default="auto", choices=KERNELS, help="kernel of the experts")
    add("--max-num-seqs", "--max-running-requests", type=int, default=1024, metavar="N", dest="max_num_seqs",
        help="requests that may run at once")  # fmt: skip
    add("--front", action="store_true",
        help="speed of one user against output of all, by clients: what no layout beats in both")  # fmt: skip
    add("--all", action="store_true", help="print every layout")
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Search and print. Returns 0; raises InputError when no layout serves the load within the limits."""
    from k3lib.calibrate.predict import numbers
    from k3lib.choose.outcome import nearest_reason
    from k3lib.deploy.search import search

    load, goals = _load(args)
    limits = goals if args.slo is None else parse_limits(args.slo)
    if args.front:
        return _front(args, load)
    held = _bill(args)
    # One cluster costs the same a month in every layout, so that the cheapest token is that of most output.
    rank = "output" if args.rank in (None, "cost") else args.rank
    found = search(_space(args), load, numbers(), limits, rank)
    if args.json:
        ahead = on_front(found)
        rows = [as_json(one, id(one) in ahead, _cny_per_mtok(one, load, held)) for one in found]
        print(json.dumps(rows, indent=1, allow_nan=False))
    else:
        lines = as_lines(found, load, limits, args)
        cost = _cny_per_mtok(found[0], load, held)
        if cost is not None:
            lines.append(f"owned, a million output tokens with their prompts cost about {short(cost)} yuan")
        print("\n".join(lines))
    best = found[0].served
    if best is None:
        raise InputError(f"no layout of {args.cluster} serves it. {nearest_reason(found)}")
    if limits.over(best) > 1:
        whose = f", the goals of {args.workload}; --slo sets others" if args.slo is None else ""
        raise InputError(
            f"no layout of {args.cluster} keeps to {said(limits)}{whose}. Nearest is {found[0].layout}: "
            f"first token after {best.ttft_mean_ms / MS['s']:.3g} s, then {best.tpot_ms:.3g} ms a token"
        )
    return EXIT_DONE


def _bill(args: argparse.Namespace) -> Ownership | None:
    """What owning the cluster costs; None where nobody published a price. Raises InputError where a rank needs one."""
    from k3lib.cost.own import own
    from k3lib.facts.clusters import SHAPE, cluster, clusters
    from k3lib.facts.planned import planned

    try:
        if args.cluster in clusters():
            return own(cluster(args.cluster))
        parts = SHAPE.fullmatch(args.cluster)
        if parts and not args.hardware:
            return own(planned(args.cluster, args.nics or int(parts[2])))
    except InputError as error:
        if args.rank == "cost":
            raise InputError(f"--rank cost: {error}") from None
    if args.rank == "cost":
        raise InputError(f"--rank cost: nobody published a price of {args.cluster}")
    return None


def _cny_per_mtok(one: Found, load: Load, held: Ownership | None) -> float | None:
    """Cost of a million output tokens with their prompts, at the usual utilisation, in CNY."""
    from k3lib.cost.api import Mix
    from k3lib.cost.unit import unit_cost
    from k3lib.ranges import point

    if one.served is None or held is None:
        return None
    mix = Mix("search", load.isl - load.cached, load.cached, load.osl)
    return unit_cost(held, point(one.served.output_tps), mix).per_mtok_output.value


def _space(args: argparse.Namespace) -> Space:
    from dataclasses import replace

    from k3lib.choose.deployed import deployed, with_domain
    from k3lib.deploy.caches import Settings
    from k3lib.deploy.search import space
    from k3lib.deploy.speed import Options
    from k3lib.engines.layout import parse_cluster
    from k3lib.facts.catalog import devices_with
    from k3lib.facts.clusters import clusters
    from k3lib.models.model import load_model

    hardware: Hardware | None = devices_with(args.hardware) if args.hardware else None
    if args.cluster in clusters():
        named = deployed(args.cluster)
        cluster, options = named.cluster, named.options
        hardware = with_domain(cluster, named.row.domain_cards, hardware)
    elif "x" in args.cluster and args.cluster[:1].isdigit():
        cluster, options = parse_cluster(args.cluster, hardware), Options()
    else:
        raise InputError(f"--cluster {args.cluster}: no named cluster, nor NODESxCARDSxDEVICE as 4x8xh20-96. "
                         f"{near(args.cluster, clusters())}")  # fmt: skip
    options = replace(options, experts=args.moe_backend, nics=options.nics if args.nics is None else args.nics,
                      hardware=hardware)  # fmt: skip
    settings = Settings(max_num_seqs=args.max_num_seqs)
    return space(load_model(args.model, args.weights), cluster, args.engine, settings, options)


def _load(args: argparse.Namespace) -> tuple[Load, Limits]:
    """The load and the goals that come with it. Raises InputError for names that clash or are missing."""
    from k3lib.choose.outcome import limits_of, load_of
    from k3lib.deploy.load import Load
    from k3lib.deploy.search import Limits
    from k3lib.facts.workloads import workload, workloads_with

    if args.front:
        for flag in ("slo", "rank"):
            if getattr(args, flag) is not None:
                raise InputError(f"--front shows all there is to choose from and takes no --{flag}; leave one out")
    at_once = FRONT_CLIENTS[-1] if args.front and args.concurrency is None else args.concurrency
    given = {"--isl": args.isl, "--osl": args.osl, "--concurrency": at_once}
    if args.workload is None:
        if args.workloads:
            raise InputError(f"--workloads {args.workloads}: say which by --workload NAME")
        missing = [name for name, value in given.items() if value is None]
        if missing:
            raise InputError(f"{missing[0]}: is missing; give --isl, --osl and --concurrency, or --workload NAME")
        return Load(args.isl, args.osl, at_once), Limits()
    clash = [name for name in ("--isl", "--osl") if given[name] is not None]
    if clash:
        raise InputError(f"--workload {args.workload} has its own {clash[0]}; leave one of the two out")
    one = workload(args.workload, workloads_with(args.workloads) if args.workloads else None)
    return load_of(one, at_once), limits_of(one)


def parse_limits(text: str) -> Limits:
    """ttft=5s,tpot=50ms in any order, each at most once. Raises InputError for anything else."""
    from k3lib.deploy.search import Limits

    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name not in LIMITS:
            raise InputError(f"--slo {text}: '{name}' is not known. {near(name, LIMITS)}")
        if LIMITS[name] in found:
            raise InputError(f"--slo {text}: {name} stands twice")
        unit = "ms" if value.endswith("ms") else "s" if value.endswith("s") else ""
        try:
            number = float(value.removesuffix(unit)) if unit else math.nan
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number > 0):
            raise InputError(f"--slo {text}: '{value}' is not a time above 0 in s or ms, e.g. {name}=50ms")
        found[LIMITS[name]] = number * MS[unit]
    return Limits(**found)


def said(limits: Limits) -> str:
    """The limits in words."""
    parts = [f"{name} {value:g} ms" for name, value in asdict(limits).items() if value is not None]
    return " and ".join(part.replace("_ms", "") for part in parts)


def as_json(one: Found, ahead: bool, cny_per_mtok: float | None = None) -> dict[str, Any]:
    """A layout as other programs read it. front: whether no other beats it in both the speed of a user and the output
    of all. cny_per_mtok: cost of owning for a million output tokens, None where there is no price.
    """
    served = one.served
    return {
        "layout": one.layout,
        "fits": one.fits,
        "reason": one.reason,
        "output_tps": served.output_tps if served else None,
        "tpot_ms": served.tpot_ms if served else None,
        "ttft_ms": served.ttft_mean_ms if served else None,
        "copies": one.candidate.copies,
        "front": ahead,
        "cny_per_mtok_output": cny_per_mtok,
    }


def as_lines(found: Sequence[Found], load: Load, limits: Limits, args: argparse.Namespace) -> list[str]:
    """The layouts for people: the best with the range of its figures, the others in short."""
    from k3lib.choose.outcome import nearest_reason

    served = [one for one in found if one.served]
    without = [one for one in found if not one.served]
    shown = served if args.all else served[:SHOWN]
    lines = [f"{len(served)} of {len(found)} layouts of {args.cluster} under {args.engine} serve {clients(load)} of "
             f"{load.isl:,} + {load.osl:,} tokens"
             + (f", {load.cached:,} of each prompt from the prefix cache" if load.cached else "")]  # fmt: skip
    if served:
        lines += ["", f"{'layout':<26}{'copies':>7}{'output tok/s':>14}{'TPOT ms':>10}{'TTFT ms':>11}  limits"]
        ahead = on_front(served)
        lines += [_line(one, s, limits, id(one) in ahead) for one in shown if (s := one.served)]
        if any(id(one) in ahead for one in shown):
            lines.append("* beaten by none in both the speed of a user and the output of all")
        if len(shown) < len(served):
            lines.append(f"... {len(served) - len(shown)} more; --all prints them")
        lines += _ranged(served[0], load)
    if without:
        lines += ["", f"{len(without)} do not serve it; nearest: {nearest_reason(without)}"]
        lines += [f"  {one.layout}: {one.reason}" for one in without] if args.all else []
    return lines


def _line(one: Found, s: Served, limits: Limits, ahead: bool) -> str:
    over = limits.over(s)
    kept = "-" if over == 0 else "kept" if over <= 1 else f"{over:.2g} times over"
    return (f"{one.layout + ' *' * ahead:<26}{one.candidate.copies:>7}{short(s.output_tps):>14}{short(s.tpot_ms):>10}"
            f"{short(s.ttft_mean_ms):>11}  {kept}")  # fmt: skip


def on_front(found: Sequence[Found]) -> set[int]:
    """Ids of the layouts that no other beats in both the speed of a user and the output of all."""
    from k3lib.deploy.search import front

    served = [(one, s) for one in found if (s := one.served)]
    kept = front([1 / s.tpot_ms for _, s in served], [s.output_tps for _, s in served])
    return {id(served[place][0]) for place in kept}


def clients(load: Load) -> str:
    """How many ask at once, in words."""
    return f"{load.concurrency:,} client{'s' * (load.concurrency > 1)}"


def _ranged(best: Found, load: Load) -> list[str]:
    from k3lib.calibrate.predict import speed
    from k3lib.deploy.speed import question

    asked = question(best.candidate.plan, load, best.options)
    found = speed(asked)
    ends = [f"{words} {short(r.value)} ({short(r.low)} to {short(r.high)})" for words, r in (
        ("output tok/s", found.output_tps), ("TPOT ms", found.tpot_ms), ("TTFT ms", found.ttft_ms_mean))]  # fmt: skip
    return ["", f"best is {best.layout}: " + ", ".join(ends), f"most of a step: {found.dominant_term}; "
            f"{found.situation}"]  # fmt: skip


def _front(args: argparse.Namespace, load: Load) -> int:
    """Print the layouts and clients that no other beats in both speed of a user and output of all."""
    from dataclasses import replace

    from k3lib.calibrate.predict import numbers
    from k3lib.choose.outcome import nearest_reason
    from k3lib.deploy.search import pareto, search

    there, table = _space(args), numbers()
    counts = sorted({n for n in FRONT_CLIENTS if n < load.concurrency} | {load.concurrency})
    points = pareto(there, [replace(load, concurrency=n) for n in counts], table)
    rows: list[dict[str, Any]] = [
        {"layout": one.layout, "concurrency": at.concurrency, "output_tps": s.output_tps, "tpot_ms": s.tpot_ms,
         "ttft_ms": s.ttft_mean_ms, "tps_per_user": MS["s"] / s.tpot_ms}
        for one, at in points if (s := one.served)
    ]  # fmt: skip
    if args.json:
        print(json.dumps(rows, indent=1, allow_nan=False))
    if not rows:
        reason = nearest_reason(search(there, replace(load, concurrency=1), table))
        raise InputError(f"no layout of {args.cluster} serves it. {reason}")
    if not args.json:
        print(f"{'clients':>8}{'one user tok/s':>16}{'output tok/s':>14}{'TTFT ms':>11}  layout")
        for r in rows:
            print(f"{r['concurrency']:>8,}{short(r['tps_per_user']):>16}{short(r['output_tps']):>14}"
                  f"{short(r['ttft_ms']):>11}  {r['layout']}")  # fmt: skip
    return EXIT_DONE
