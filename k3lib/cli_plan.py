"""The verb `k3 plan`: its options, under the engines' own names, and what it prints."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3lib import cli_speed
from k3lib.errors import EXIT_DONE, EXIT_NO, InputError

if TYPE_CHECKING:
    from k3lib.deploy.plan import Plan
    from k3lib.engines.layout import Hardware

DESCRIPTION = """\
The ledger of the tightest card, what is left for caches, whether it fits, and how fast it will be. Exit code 1 when it
does not fit.

  k3 plan --model kimi-k3 --cluster 4x8xh20-96 --layout tp8,pp4 --engine vllm
  k3 plan --cluster 2x8xh200 --layout tp8,pp2 --max-model-len 8192 --kv-memory-gib 26.88,26.57 --json
  k3 plan --cluster 1x8xb300 --layout tp8 --engine sglang --isl 8192 --osl 1024 --concurrency 16
  k3 plan --cluster 4x8xh20-96 --layout tp8,pp4 --nics 4 --sweep
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    add_plan(parser)
    cli_speed.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_plan(parser: argparse.ArgumentParser, *, complete: bool = True) -> None:
    """Options that make a plan. complete: whether the cluster and the layout must be among them."""
    add = parser.add_argument
    add("--model", default="kimi-k3", metavar="NAME|FILE", help="a known model, or the path of a config.json")
    add("--weights", default=None, metavar="FORMAT", help="store the quantised weights as mxfp4, fp8, int4 or bf16")
    add("--cluster", required=complete, metavar="NODESxCARDSxDEVICE", help="e.g. 4x8xh20-96")
    add("--hardware", type=Path, default=None, metavar="FILE", help="device facts of your own, as in data/hardware.csv")
    add("--layout", required=complete, metavar="tp8,pp4,...", help="tp, pp, ep, dp and dcp")
    add("--pp-partition", default=None, metavar="N,N,...", help="layers of each stage")
    add("--engine", default="vllm", help="vllm or sglang")
    add("--isl", type=int, default=None, metavar="TOKENS", help="input of a request")
    add("--osl", type=int, default=None, metavar="TOKENS", help="output of a request")
    add("--concurrency", type=int, default=None, metavar="N", help="requests at once that you want")
    add("--max-model-len", "--context-length", type=int, default=None, metavar="TOKENS", dest="max_model_len",
        help="longest request (default: isl + osl, else 32768)")  # fmt: skip
    add("--gpu-memory-utilization", "--mem-fraction-static", type=float, default=None, metavar="SHARE", dest="share",
        help="share of a card that the engine manages")  # fmt: skip
    add("--max-num-seqs", "--max-running-requests", type=int, default=256, metavar="N", dest="max_num_seqs",
        help="requests that may run at once")  # fmt: skip
    add("--max-num-batched-tokens", "--chunked-prefill-size", type=int, default=None, metavar="TOKENS", dest="chunk",
        help="tokens of a prefill pass")  # fmt: skip
    add("--kv-cache-dtype", default="auto", help="auto, bf16, fp8 or fp8_ds_mla")
    add("--mamba-ssm-dtype", default="float32", help="float32 or bfloat16")
    add("--enable-prefix-caching", action="store_true", help="keep prefixes, at the price of more state")
    add("--enforce-eager", action="store_true", help="no captured graphs")
    add("--mamba-full-memory-ratio", type=float, default=None, metavar="RATIO", help="state pool over token pool")
    add("--mamba-radix-cache-strategy", default="extra_buffer",
        help="radix_off, no_buffer, extra_buffer or extra_buffer_lazy")  # fmt: skip
    add("--kv-memory-gib", default=None, metavar="GIB[,GIB...]",
        help="memory for caches as a log printed it, one value or one a stage")  # fmt: skip
    add("--draft-tokens", type=int, default=0, metavar="N", help="tokens that a draft model proposes at a time")


def run(args: argparse.Namespace) -> int:
    """Make the plan and print it. Returns 0 when it fits, 1 when not."""
    hardware = hardware_of(args)
    plan = plan_of(args, hardware)
    load = cli_speed.load_of(args)
    found, why = cli_speed.speed(plan, args, hardware)
    table = cli_speed.sweep(plan, args, hardware) if args.sweep and plan.fits else []
    if args.json:
        speed = {"weights": args.weights, "speed": cli_speed.as_json(found, load), "speed_reason": why}
        print(json.dumps({**as_json(plan), **speed, **({"sweep": table} if args.sweep else {})}, indent=1,
                         allow_nan=False))  # fmt: skip
    else:
        below = cli_speed.sweep_lines(table) if table else cli_speed.as_lines(found, why, load, args)
        print("\n".join([as_text(plan, args.concurrency), *below]))
    return EXIT_DONE if plan.fits else EXIT_NO


def hardware_of(args: argparse.Namespace) -> Hardware | None:
    """The reader's own device facts beside the project's, None without such a file."""
    from k3lib.facts.catalog import devices_with

    return devices_with(args.hardware) if args.hardware else None


def plan_of(args: argparse.Namespace, hardware: Hardware | None) -> Plan:
    """The plan that the options ask for; its reason names the nearest that fits where it does not.

    Raises InputError for options that make none.
    """
    from k3lib.deploy.caches import Settings
    from k3lib.deploy.plan import make_plan
    from k3lib.engines.layout import parse_cluster, parse_layout
    from k3lib.launch.fitting import with_nearest
    from k3lib.models.model import load_model
    from k3lib.units import GIBI

    memory = _numbers("--kv-memory-gib", args.kv_memory_gib)
    if args.chunk is not None and args.chunk < 1:
        raise InputError(f"--max-num-batched-tokens {args.chunk}: must be at least 1")
    settings = Settings(
        utilisation=args.share, max_model_len=_length(args), max_num_seqs=args.max_num_seqs, chunk_tokens=args.chunk,
        cache_dtype=args.kv_cache_dtype, state_dtype=args.mamba_ssm_dtype, prefix_caching=args.enable_prefix_caching,
        graphs=not args.enforce_eager, state_ratio=args.mamba_full_memory_ratio,
        cache_strategy=args.mamba_radix_cache_strategy, draft_tokens=args.draft_tokens,
        pp_partition=tuple(_whole("--pp-partition", x) for x in _numbers("--pp-partition", args.pp_partition)) or None,
        kv_memory_bytes=tuple(x * GIBI for x in memory) or None,
    )  # fmt: skip
    plan = make_plan(load_model(args.model, args.weights), parse_cluster(args.cluster, hardware),
                     parse_layout(args.layout), args.engine, settings, hardware)  # fmt: skip
    return with_nearest(plan, hardware)


def _length(args: argparse.Namespace) -> int:
    """The longest request: as given, else input and output together, else the usual length of a first test."""
    for name in ("isl", "osl", "concurrency"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise InputError(f"--{name} {value}: must be at least 1")
    if args.max_model_len is not None:
        return int(args.max_model_len)
    if args.isl is not None or args.osl is not None:
        return (args.isl or 0) + (args.osl or 0)
    return 32_768


def _numbers(flag: str, text: str | None) -> list[float]:
    if not text:
        return []
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{flag} {text}: must be numbers separated by commas") from None
    if not all(math.isfinite(v) and v > 0 for v in values):
        raise InputError(f"{flag} {text}: every number must be finite and above 0")
    return values


def _whole(flag: str, value: float) -> int:
    if value != int(value):
        raise InputError(f"{flag} {value}: must be a whole number of layers")
    return int(value)


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan as other programs read it."""
    from k3lib.deploy.caches import Caches
    from k3lib.units import GIBI

    stages = [
        {
            "stage": stage.number,
            "layers": len(stage.layers),
            "ledger": [
                {"name": line.name, "gib": line.bytes / GIBI, "low": line.low / GIBI, "high": line.high / GIBI,
                 "grade": line.grade}
                for line in stage.lines
            ],
            "total_gib": sum(line.bytes for line in stage.lines if not line.passing) / GIBI,
            "free_gib": stage.free[0] / GIBI,
        }
        for stage in plan.stages
    ]  # fmt: skip
    caches = {f.name: getattr(plan.caches, f.name) if plan.caches else 0 for f in fields(Caches)}
    ends = {
        f"kv_tokens_{end}": c.kv_tokens if c else 0 for end, c in (("low", plan.caches_low), ("high", plan.caches_high))
    }
    return {
        "fits": plan.fits, "reason": plan.reason, "model": plan.model.name, "cluster": str(plan.cluster),
        "layout": str(plan.layout), "engine": plan.engine.name, "capacity_gib": plan.capacity / GIBI,
        "utilisation": plan.utilisation, "stages": stages, "tightest_stage": plan.tightest,
        "weights_gib": [stage.weights / GIBI for stage in plan.stages], **caches, **ends,
        "settings": asdict(plan.settings),
    }  # fmt: skip


def as_text(plan: Plan, concurrency: int | None) -> str:
    """The ledger of the tightest card and the caches, for people."""
    from k3lib.units import GIBI, GIGA

    stage = plan.stages[plan.tightest]
    head = f"{plan.model.name} on {plan.cluster} as {plan.layout}, {plan.engine.name} {plan.engine.version}"
    lines = [head, f"card of stage {stage.number} ({len(stage.layers)} layers), the tightest of {len(plan.stages)}", ""]
    lines.append(f"{'':<34}{'GiB':>9}{'GB':>9}   {'range, GiB':<15} grade")
    for line in stage.lines:
        spread = f"{line.low / GIBI:.2f} to {line.high / GIBI:.2f}" if line.low != line.high else ""
        mark = " *" if line.outside else " **" if line.passing else ""
        lines.append(f"{line.name + mark:<34}{line.gib:>9.2f}{line.bytes / GIGA:>9.2f}   {spread:<15} {line.grade}")
    share = plan.capacity * plan.utilisation
    lines.append(f"{'left for caches':<34}{stage.free[0] / GIBI:>9.2f}{stage.free[0] / GIGA:>9.2f}   "
                 f"{stage.free[1] / GIBI:.2f} to {stage.free[2] / GIBI:.2f}")  # fmt: skip
    lines.append(f"{'managed share of the card':<34}{share / GIBI:>9.2f}{share / GIGA:>9.2f}   "
                 f"{plan.capacity / GIBI:.2f} GiB x {plan.utilisation:g}")  # fmt: skip
    lines.append("* beside the share that the engine manages; ** only while the weights load")
    if plan.caches:
        c = plan.caches
        low, high = (x.kv_tokens if x else 0 for x in (plan.caches_low, plan.caches_high))
        lines += ["", f"KV tokens as the engine prints them  {c.kv_tokens:,} ({low:,} to {high:,})",
                  f"requests of {plan.settings.max_model_len:,} tokens at once   {c.max_concurrency:.2f}",
                  f"state slots {c.state_slots:,}; at most {c.max_running_requests:,} run; block of {c.block_tokens:,} "
                  f"tokens; longest request {c.max_context:,} tokens"]  # fmt: skip
        if concurrency is not None:
            enough = min(c.max_concurrency, c.max_running_requests) >= concurrency
            lines.append(f"{concurrency:,} requests of {plan.settings.max_model_len:,} tokens at once: "
                         f"{'yes' if enough else 'no, the rest would wait'}")  # fmt: skip
    if not plan.fits:
        from k3lib.deploy.cuts import cuts, runs_here

        helpful = [cut for cut in cuts(plan) if cut.fits and runs_here(plan, cut.key)][:3]
        lines += ["", "what would make it fit: " + ("; ".join(cut.what for cut in helpful) or "no single setting")]
    lines += ["", ("fits: " if plan.fits else "") + plan.reason]
    return "\n".join(lines)
