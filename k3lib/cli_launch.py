"""The verb `k3 launch`: the commands that start a plan, node by node, or its Kubernetes manifests."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3lib import cli_plan, cli_speed
from k3lib.errors import EXIT_DONE, EXIT_NO, InputError

if TYPE_CHECKING:
    from k3lib.launch.place import Place
    from k3lib.launch.records import Launch

DESCRIPTION = """\
The commands that start a plan, one a node, with the memory that they will use and the reason for each flag. Takes the
options of `k3 plan`; those that only the speed depends on change nothing. Exit code 1, and no command, when the plan
does not fit or nothing public says how.

  k3 launch --cluster 4x8xh20-96 --layout tp8,pp4
  k3 launch --plan h200x32-tp8pp4 --model-path /data/Kimi-K3 --hosts 10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4
  k3 launch --plan h20x32-tp8pp4 --max-model-len 131072 --enable-prefix-caching --json
  k3 launch --cluster 4x8xh20-96 --layout tp8,pp4 --engine sglang --kubernetes
  k3 launch --engine vllm-ascend --cluster 4x8xa3-910c
"""


class _FromPlan(argparse.Action):
    """Takes over what a named or written plan sets; options after it change that."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
                 option_string: str | None = None) -> None:  # fmt: skip
        try:
            for name, value in _plan_options(str(values)).items():
                setattr(namespace, name, value)
        except InputError as error:
            raise argparse.ArgumentError(self, str(error)) from None
        setattr(namespace, self.dest, values)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    add = parser.add_argument
    add("--plan", action=_FromPlan, default=None, metavar="NAME|FILE",
        help="a plan of data/plans.csv, or what `k3 plan --json` wrote; options after it change it")  # fmt: skip
    cli_plan.add_plan(parser, complete=False)
    cli_speed.add_arguments(parser)
    add(
        "--model-path", default="", metavar="PATH", help="the files on the servers (default: the released ones by name)"
    )
    add("--hosts", default="", metavar="HOST,HOST,...", help="the servers, one a node (default: NODE0, NODE1, ...)")
    add("--executor", default="native", choices=("native", "ray"), help="how vLLM's nodes find each other")
    add("--interface", default="", metavar="NAME", help="network interface for the first contact, as eth0")
    add("--kubernetes", action="store_true", help="manifests of a LeaderWorkerSet in place of commands")
    add("--image", default="", metavar="IMAGE", help="image of the pods (default: a placeholder)")
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Write the commands. Returns 0 when there are some, 1 when not."""
    from k3lib.launch.kubernetes import manifests

    place = _place(args)
    launch = _launch(args, place)
    manifest = ""
    if args.kubernetes and not launch.reason:
        manifest = manifests(launch, place, args.image, cli_plan.hardware_of(args))
    if args.json:
        print(json.dumps(as_json(launch, manifest), indent=1, allow_nan=False))
    elif launch.reason:
        print(f"{launch.name}\n\n{launch.reason}")
    else:
        print(manifest.rstrip("\n") if manifest else "\n".join(as_lines(launch)))
    return EXIT_NO if launch.reason else EXIT_DONE


def _place(args: argparse.Namespace) -> Place:
    from k3lib.launch.place import Place

    hosts = tuple(host.strip() for host in args.hosts.split(",")) if args.hosts else ()
    if args.image and not args.image.isprintable():
        raise InputError(f"--image {args.image!r}: is no name of an image")
    if args.prefill_cluster:
        raise InputError("--prefill-cluster: write the commands of each group of servers by itself")
    return Place(args.model_path, hosts, args.executor, args.interface, args.weights or "mxfp4", args.moe_backend,
                 "nccl" if args.disable_custom_all_reduce else "auto")  # fmt: skip


def _launch(args: argparse.Namespace, place: Place) -> Launch:
    from k3lib.engines.layout import parse_cluster, parse_layout
    from k3lib.launch.commands import build, started
    from k3lib.launch.published import published

    hardware = cli_plan.hardware_of(args)
    if started(args.engine).way != "plan":
        cluster = parse_cluster(args.cluster, hardware) if args.cluster else None
        if args.kubernetes:
            raise InputError(f"--kubernetes: manifests are written for vllm and sglang, not for {args.engine}")
        return published(args.engine, place, cluster, str(parse_layout(args.layout)) if args.layout else "")
    for name in ("cluster", "layout"):
        if not getattr(args, name):
            raise InputError(f"--{name} is missing. Give it, or a whole plan by --plan")
    return build(cli_plan.plan_of(args, hardware), place, hardware)


def _plan_options(name: str) -> dict[str, Any]:
    """A named plan, or one that `k3 plan --json` wrote, as options of the command."""
    from k3lib.deploy.caches import Settings
    from k3lib.errors import near
    from k3lib.facts.named import plans
    from k3lib.facts.tables import read_text

    if name in plans():
        row = plans()[name]
        return {"cluster": row.cluster, "layout": row.layout, "engine": row.engine, "share": row.utilisation,
                "mamba_ssm_dtype": row.flags.get("state_dtype", "float32"),
                "moe_backend": row.flags.get("experts", "auto")}  # fmt: skip
    if not Path(name).is_file():
        raise InputError(f"{name}: no plan of data/plans.csv, and no such file. {near(name, plans())}")
    try:
        written = json.loads(read_text(Path(name)))
        settings = Settings(**written["settings"])
        found = {key: written[key] for key in ("cluster", "layout", "engine", "model", "weights")}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{name}: is not what `k3 plan --json` writes ({error})") from None
    partition = ",".join(map(str, settings.pp_partition)) if settings.pp_partition else None
    if settings.kv_memory_bytes:
        raise InputError(f"{name}: was made with --kv-memory-gib, which is for checking a log")
    return found | {
        "share": settings.utilisation, "max_model_len": settings.max_model_len, "max_num_seqs": settings.max_num_seqs,
        "chunk": settings.chunk_tokens, "kv_cache_dtype": settings.cache_dtype, "pp_partition": partition,
        "mamba_ssm_dtype": settings.state_dtype, "enable_prefix_caching": settings.prefix_caching,
        "enforce_eager": not settings.graphs, "mamba_full_memory_ratio": settings.state_ratio,
        "mamba_radix_cache_strategy": settings.cache_strategy, "draft_tokens": settings.draft_tokens,
    }  # fmt: skip


def as_json(launch: Launch, manifest: str = "") -> dict[str, Any]:
    """The start as other programs read it."""
    from k3lib.launch.records import memory
    from k3lib.launch.shell import script

    plan = launch.plan
    held = {} if plan is None else {
        "cluster": str(plan.cluster), "layout": str(plan.layout), "utilisation": plan.utilisation,
        "memory": [asdict(stage) for stage in memory(plan)],
        "kv_tokens": plan.caches.kv_tokens if plan.caches else 0,
        "max_concurrency": plan.caches.max_concurrency if plan.caches else 0,
    }  # fmt: skip
    flags = [
        {"kind": o.row.kind, "name": o.row.name, "value": o.value, "reason": o.row.reason, "status": o.row.status,
         "sources": o.row.source_ids}
        for o in launch.options
    ]  # fmt: skip
    commands = [
        {"host": c.host, "copy": c.copy, "node": c.node, "env": {o.row.name: o.value for o in c.env},
         "before": c.before, "argv": c.argv, "text": script(c)}
        for c in launch.commands
    ]  # fmt: skip
    return {
        "fits": plan.fits if plan else None, "reason": launch.reason, "engine": launch.start.engine,
        "version": launch.start.version, "status": launch.start.status, **held, "commands": commands, "flags": flags,
        "site": [{"name": r.name, "value": r.value, "reason": r.reason} for r in launch.site],
        "warnings": [r.reason for r in launch.warnings], "kubernetes": manifest or None,
    }  # fmt: skip


def as_lines(launch: Launch) -> list[str]:
    """The commands for people, all else as remarks, so that a part can be pasted as it is."""
    from k3lib.facts.flags import MEANING
    from k3lib.launch.shell import script

    lines = [f"# {launch.name}", *(f"# {line}" for line in _memory_lines(launch))]
    lines += [f"# mind: {row.reason}" for row in launch.warnings]
    lines += [f"# yours to set: {row.name}: {row.value}: {row.reason}" for row in launch.site]
    for command in launch.commands:
        copy = f", copy {command.copy + 1} of {launch.copies}" if launch.copies > 1 else ""
        lines += ["", f"# node {command.node} of {launch.nodes}{copy}: {command.host}", script(command)]
    seen = {option.row.status for option in launch.options}
    lines += ["", "# why", *(f"#   {status}: {what}" for status, what in MEANING.items() if status in seen)]
    for option in launch.options:
        name = " ".join(x for x in (option.row.name, option.value) if x)
        lines.append(f"#   {name}: {option.row.reason} ({option.row.status}; {option.row.source_id})")
    return lines


def _memory_lines(launch: Launch) -> list[str]:
    from k3lib.launch.records import memory
    from k3lib.units import GIBI

    plan = launch.plan
    if plan is None:
        return ["memory: not accounted; the commands are those of a published set-up"]
    stage = memory(plan)[plan.tightest]
    used, left = stage.used_gib, stage.left_gib
    return [
        f"a card of stage {stage.stage}, the tightest: {stage.weights_gib:.1f} GiB of weights; with working memory "
        f"{used.value:.1f} GiB ({used.low:.1f} to {used.high:.1f}) of {plan.capacity / GIBI:.1f} GiB",
        f"left for caches: {left.value:.1f} GiB ({left.low:.1f} to {left.high:.1f})"
        + (f", {plan.caches.kv_tokens:,} tokens as the engine prints them" if plan.caches else ""),
    ]
