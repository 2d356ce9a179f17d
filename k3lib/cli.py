"""The command `k3`. Each verb is its own function; heavy libraries load only for the verb that needs them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from k3lib import cli_compare, cli_launch, cli_plan, cli_read, cli_reduce, cli_search
from k3lib.errors import EXIT_BAD_INPUT, EXIT_DONE, InputError

DESCRIPTION = """\
How should an organisation serve Kimi K3 itself? The account, the evidence and the book.

  k3 build                              run the notebooks and build the book
  k3 build -p cards=64                  the same with a parameter changed
  k3 weights kimi-k3                    how large a model is, part by part
  k3 weights data/models/kimi-k3.config.json
                                        the same for a configuration of your own
  k3 plan --model kimi-k3 --cluster 4x8xh20-96 --layout tp8,pp4 --engine vllm
                                        the ledger of a card, whether it fits, and how fast it will be
  k3 search --cluster h20x32 --workload offline-batch
                                        every legal layout under a load, best first
  k3 launch --plan h20x32-tp8pp4        the commands that start a plan, node by node
  k3 read data/benchmarks.csv --json
                                        your own results and logs beside the prediction
  k3 reduce /models/Kimi-K3 /models/Kimi-K3-39 --layers 39
                                        a part of a checkpoint, to rehearse with on one server
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Returns 0 done (or fits), 1 the honest answer is no, 2 bad input."""
    args = _parser().parse_args(argv)
    try:
        return int(args.run(args))
    except InputError as error:
        print(f"k3 {args.verb}: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_DONE
    except KeyboardInterrupt:
        print(f"k3 {args.verb}: stopped; what was published before stays", file=sys.stderr)
        return EXIT_BAD_INPUT
    except Exception as error:
        if os.environ.get("K3_TRACE"):
            raise
        cause = InputError(f"{type(error).__name__}: {error}")
        print(f"k3 {args.verb}: not foreseen: {cause} (K3_TRACE=1 shows where)", file=sys.stderr)
        return EXIT_BAD_INPUT


class _Parser(argparse.ArgumentParser):
    """One line on stderr for a wrong option, with the nearest verb or option that exists."""

    def error(self, message: str) -> Any:
        print(f"{self.prog}: {message}. See '{self.prog} --help'.", file=sys.stderr)
        raise SystemExit(EXIT_BAD_INPUT)


def _parser() -> argparse.ArgumentParser:
    plain = argparse.RawDescriptionHelpFormatter
    parser = _Parser(prog="k3", description=DESCRIPTION, formatter_class=plain)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=_Parser)

    build = verbs.add_parser(
        "build",
        help="run the notebooks and build the book",
        formatter_class=plain,
        description="Run the notebooks under a scenario and publish the book to _build/html.\n\n"
        "  k3 build\n  k3 build --scenario base -p cards=64\n  k3 build -p h20_server_price_cny=1.5e6\n"
        "  k3 build --only how-large-is-k3",
    )
    build.add_argument(
        "--scenario", default="base", metavar="NAME|FILE", help="a name in data/scenarios, or a YAML file"
    )
    build.add_argument(
        "-p",
        dest="parameters",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change one parameter; may be repeated",
    )
    build.add_argument(
        "--prices", type=Path, default=None, metavar="FILE",
        help="prices of your own, of the form of data/prices.csv, in place of the project's by their item_id",
    )  # fmt: skip
    build.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NOTEBOOK",
        help="run only this notebook again and keep the others as last run; may be repeated",
    )
    build.add_argument(
        "--fresh", action="store_true", help="run every notebook, also where none of what it reads has changed"
    )
    build.add_argument("--no-pdf", dest="with_pdf", action="store_false", help="make no PDF: the pages alone, sooner")
    build.add_argument("--out", type=Path, default=None, metavar="DIR", help="where to publish (default: _build)")
    build.set_defaults(run=_build)

    weights = verbs.add_parser(
        "weights",
        help="the account of a model's weights",
        formatter_class=plain,
        description="Parameters and bytes of a model, derived from its configuration.\n\n"
        "  k3 weights kimi-k3\n  k3 weights kimi-k3 --format fp8\n"
        "  k3 weights deepseek-v3 --json",
    )
    weights.add_argument("config", metavar="CONFIG", help="a known model's name, or the path of a config.json")
    weights.add_argument(
        "--format",
        default=None,
        metavar="FORMAT",
        help="store the quantised weights as bf16, fp8, int4, mxfp4 or nvfp4 instead",
    )
    weights.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="FIELD",
        help="a field of the configuration that you know to carry no weights; may be repeated",
    )
    weights.add_argument("--json", action="store_true", help="print JSON")
    weights.set_defaults(run=_weights)

    plan = verbs.add_parser("plan", help="what one card must hold, and what is left for caches", formatter_class=plain,
                            description=cli_plan.DESCRIPTION)  # fmt: skip
    cli_plan.add_arguments(plan)
    plan.set_defaults(run=cli_plan.run)

    search = verbs.add_parser("search", help="every legal layout of a cluster under a load, ranked",
                              formatter_class=plain, description=cli_search.DESCRIPTION)  # fmt: skip
    cli_search.add_arguments(search)
    search.set_defaults(run=cli_search.run)

    launch = verbs.add_parser("launch", help="the commands that start a plan", formatter_class=plain,
                              description=cli_launch.DESCRIPTION)  # fmt: skip
    cli_launch.add_arguments(launch)
    launch.set_defaults(run=cli_launch.run)

    compare = verbs.add_parser("compare", help="what differs between two scenarios", formatter_class=plain,
                               description=cli_compare.DESCRIPTION)  # fmt: skip
    cli_compare.add_arguments(compare)
    compare.set_defaults(run=cli_compare.run)

    read = verbs.add_parser("read", help="what results and logs hold, beside what is predicted", formatter_class=plain,
                            description=cli_read.DESCRIPTION)  # fmt: skip
    cli_read.add_arguments(read)
    read.set_defaults(run=cli_read.run)

    part = verbs.add_parser("reduce", help="a checkpoint with fewer layers, for a rehearsal", formatter_class=plain,
                            description=cli_reduce.DESCRIPTION)  # fmt: skip
    cli_reduce.add_arguments(part)
    part.set_defaults(run=cli_reduce.run)
    return parser


def _build(args: argparse.Namespace) -> int:
    from k3lib.report.build import build

    parameters: dict[str, str] = {}
    for text in args.parameters:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"-p {text}: write it as name=value")
        name = name.strip()
        if name in parameters:
            raise InputError(f"-p {name}: given twice. Keep one.")
        parameters[name] = value.strip()
    build(
        args.scenario,
        parameters,
        only=args.only,
        out=args.out,
        fresh=args.fresh,
        prices=args.prices,
        with_pdf=args.with_pdf,
    )
    return EXIT_DONE


def _weights(args: argparse.Namespace) -> int:
    from k3lib.models.model import UnknownBlockError, load_model
    from k3lib.models.weights import weight_account

    try:
        model = load_model(args.config, args.format, tuple(args.ignore))
    except UnknownBlockError as error:
        if args.json:
            _print_json({"bytes": None, "unknown_blocks": list(error.names)})
        raise
    account = weight_account(model)
    published = model.checkpoint.published_bytes if model.checkpoint else None
    if args.json:
        _print_json(
            {
                "model": model.name,
                "bytes": account.bytes,
                "params": account.params,
                "active_params": account.active_params,
                "tensors": account.tensors,
                "groups": dict(account.groups),
                "kv_bytes_per_token": account.kv_bytes_per_token,
                "indexer_bytes_per_token": account.indexer_bytes_per_token,
                "state_bytes_per_sequence": account.state_bytes_per_sequence,
                "published_bytes": published,
                "unknown_blocks": list(model.ignored),
            }
        )
        return EXIT_DONE
    from k3lib.report.console import weight_table

    print(weight_table(model, account, published))
    return EXIT_DONE


def _print_json(data: dict[str, Any]) -> None:
    print(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False))


if __name__ == "__main__":
    raise SystemExit(main())
