"""The speed part of `k3 plan`: its options, what it prints, and the table over many loads."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from k3lib.errors import InputError, NoSpeedError

if TYPE_CHECKING:
    from k3lib.calibrate.predict import Range, Speed
    from k3lib.deploy.plan import Plan
    from k3lib.engines.layout import Hardware

# A load where none is named: short chats, and enough clients to fill the stages.
USUAL_ISL, USUAL_OSL, USUAL_CONCURRENCY = 1000, 1000, 32
SWEEP_CONCURRENCY = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
KERNELS = ("auto", "marlin", "humming", "trtllm", "trtllm-w4a8", "roofline")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that only the speed depends on."""
    add = parser.add_argument
    add("--nics", type=int, default=None, metavar="N", help="network cards of a node (default: one a card)")
    add("--requests", type=int, default=None, metavar="N", help="requests of the run (default: 2 to 7 for each client)")
    add("--acceptance-length", type=float, default=None, metavar="TOKENS", dest="acceptance",
        help="tokens that a pass yields with a draft model, measured on prompts like yours")  # fmt: skip
    add("--moe-backend", default="auto", choices=KERNELS, help="kernel of the experts; all pad alike")
    add("--disable-custom-all-reduce", action="store_true", help="exchange by NCCL within a node too")
    add("--prefill-cluster", default=None, metavar="NODESxCARDSxDEVICE",
        help="cards of their own that read the prompts; this plan then only generates")  # fmt: skip
    add("--prefill-layout", default=None, metavar="tp8,pp4,...", help="layout of those cards (default: as --layout)")
    add("--sweep", action="store_true", help="a table over loads and clients")


def speed(plan: Plan, args: argparse.Namespace, hardware: Hardware | None, load: tuple[int, int, int] | None = None,
          ) -> tuple[Speed | None, str]:  # fmt: skip
    """The prediction for the load, or None and why there is none."""
    from k3lib.calibrate.predict import speed as predict
    from k3lib.deploy.load import Load
    from k3lib.deploy.speed import Options, question

    if not plan.fits:
        return None, "it does not fit"
    if plan.settings.draft_tokens and args.acceptance is None:
        return None, "with a draft model it depends on --acceptance-length"
    if args.acceptance is not None and not 1 <= args.acceptance <= plan.settings.draft_tokens + 1:
        raise InputError(f"--acceptance-length {args.acceptance:g}: with --draft-tokens {plan.settings.draft_tokens} a "
                         f"pass yields 1 to {plan.settings.draft_tokens + 1} tokens")  # fmt: skip
    if args.prefill_layout and not args.prefill_cluster:
        raise InputError(f"--prefill-layout {args.prefill_layout}: name --prefill-cluster too")
    isl, osl, concurrency = load or load_of(args)
    options = Options(args.moe_backend, "nccl" if args.disable_custom_all_reduce else "auto", args.nics, hardware)
    try:
        asked = question(plan, Load(isl, osl, concurrency, args.requests, args.acceptance or 1.0), options)
        if args.prefill_cluster:
            reader = _reader(plan, args, hardware, isl + osl)
            asked = replace(asked, prompts=question(reader, Load(isl, osl, concurrency), options))
    except NoSpeedError as error:
        return None, str(error)
    return predict(asked), ""


def _reader(plan: Plan, args: argparse.Namespace, hardware: Hardware | None, length: int) -> Plan:
    """The deployment that reads the prompts. Raises InputError where it does not fit."""
    from k3lib.deploy.plan import make_plan
    from k3lib.engines.layout import parse_cluster, parse_layout

    settings = replace(plan.settings, max_model_len=length, pp_partition=None, kv_memory_bytes=None)
    try:
        layout = parse_layout(args.prefill_layout) if args.prefill_layout else plan.layout
        cluster = parse_cluster(args.prefill_cluster, hardware)
        reader = make_plan(plan.model, cluster, layout, plan.engine.name, settings, hardware)
    except InputError as error:
        raise InputError(f"--prefill-cluster {args.prefill_cluster}: {error}") from None
    if not reader.fits:
        raise InputError(f"--prefill-cluster {args.prefill_cluster}: {reader.reason}")
    return reader


def load_of(args: argparse.Namespace) -> tuple[int, int, int]:
    """Tokens of a request and the clients: as given, else a usual load. Raises InputError where they clash."""
    isl, osl = args.isl or USUAL_ISL, args.osl or USUAL_OSL
    if args.max_model_len is not None and isl + osl > args.max_model_len:
        if args.isl or args.osl:
            raise InputError(f"--isl {isl} and --osl {osl}: together above --max-model-len {args.max_model_len}")
        isl = max(1, args.max_model_len // 2)
        osl = max(1, args.max_model_len - isl)
    return isl, osl, args.concurrency or USUAL_CONCURRENCY


def as_json(found: Speed | None, load: tuple[int, int, int]) -> dict[str, Any] | None:
    """The prediction as other programs read it; None where there is none."""
    if found is None:
        return None
    isl, osl, concurrency = load
    return {**asdict(found), "isl": isl, "osl": osl, "concurrency": concurrency}


def as_lines(found: Speed | None, reason: str, load: tuple[int, int, int], args: argparse.Namespace) -> list[str]:
    """The prediction for people."""
    chosen = "as asked" if any((args.isl, args.osl, args.concurrency)) else "a usual load, as none is named"
    isl, osl, concurrency = load
    if found is None:
        return ["", f"speed: {reason}"]
    return [
        "",
        f"speed with {concurrency:,} client{'s' * (concurrency > 1)} of {isl:,} + {osl:,} tokens, {chosen}",
        f"{'':<34}{'':>9}   range of nine in ten measured runs",
        f"{'output, tok/s':<34}{_shown(found.output_tps)}",
        f"{'time per output token, ms':<34}{_shown(found.tpot_ms)}",
        f"{'time to first token, mean, ms':<34}{_shown(found.ttft_ms_mean)}",
        f"{'time to first token, median, ms':<34}{_shown(found.ttft_ms_median)}",
        f"most of a generating step: {found.dominant_term}; {found.situation}",
    ]


def _shown(figure: Range) -> str:
    return f"{short(figure.value):>9}   {_ends(figure.low, figure.high)}"


def _ends(low: float, high: float) -> str:
    return f"{short(low)} to {short(high)}"


def short(value: float) -> str:
    """A figure for people: three digits, no exponent."""
    return f"{float(f'{value:.3g}'):,.{max(0, 2 - len(str(int(abs(value)))) + 1) if abs(value) < 100 else 0}f}"


def sweep(plan: Plan, args: argparse.Namespace, hardware: Hardware | None) -> list[dict[str, Any]]:
    """Predictions for the named load, or for three usual ones, at 1 to 512 clients."""
    from k3lib.facts.named import loads as named_loads

    usual = [(row.isl, row.osl) for row in named_loads().values()]
    loads = [(args.isl or USUAL_ISL, args.osl or USUAL_OSL)] if args.isl or args.osl else usual
    rows = []
    for isl, osl in loads:
        for concurrency in (args.concurrency,) if args.concurrency else SWEEP_CONCURRENCY:
            load = (isl, osl, concurrency)
            try:
                if args.max_model_len is not None and isl + osl > args.max_model_len:
                    raise InputError(f"longer than --max-model-len {args.max_model_len:,}")
                found, reason = speed(_for_length(plan, isl + osl), args, hardware, load)
            except InputError as error:
                found, reason = None, str(error)
            without = {"isl": isl, "osl": osl, "concurrency": concurrency, "reason": reason}
            rows.append(as_json(found, load) or without)
    return rows


def _for_length(plan: Plan, length: int) -> Plan:
    return replace(plan, settings=replace(plan.settings, max_model_len=length))


def sweep_lines(rows: list[dict[str, Any]]) -> list[str]:
    """The table for people."""
    lines = ["", f"{'input':>7}{'output':>8}{'clients':>9}{'tok/s':>9}{'range':>17}{'TPOT ms':>9}{'range':>15}"
                 f"{'TTFT ms':>11}{'range':>23}  most of a step"]  # fmt: skip
    for row in rows:
        head = f"{row['isl']:>7,}{row['osl']:>8,}{row['concurrency']:>9,}"
        if "reason" in row:
            lines.append(f"{head}   {row['reason']}")
            continue
        cells = "".join(
            f"{short(row[name]['value']):>{wide}}{_ends(row[name]['low'], row[name]['high']):>{span}}"
            for name, wide, span in (("output_tps", 9, 17), ("tpot_ms", 9, 15), ("ttft_ms_mean", 11, 23))
        )
        lines.append(f"{head}{cells}  {row['dominant_term']}")
    return lines
