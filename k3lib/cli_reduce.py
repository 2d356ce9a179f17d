"""The verb `k3 reduce`: a checkpoint with fewer layers, for a rehearsal on one server."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from k3lib.errors import EXIT_DONE

DESCRIPTION = """\
Write the first layers of a checkpoint into a new folder, so that one server can rehearse the load, the kernels and the
flags. Answers of such a model mean nothing. The source is only read.

  k3 reduce /models/Kimi-K3 /models/Kimi-K3-39 --layers 39
  k3 reduce /models/Kimi-K3 /models/Kimi-K3-39 --layers 39 --count
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    add = parser.add_argument
    add("source", type=Path, metavar="SOURCE", help="folder with config.json, the index and the safetensors")
    add("target", type=Path, metavar="TARGET", help="new folder")
    add("--layers", type=int, required=True, metavar="N", help="layers to keep, from the first")
    add("--count", action="store_true", help="write nothing; only tell how much it would be")
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Write, or count, and say what. Returns 0."""
    from k3lib.operate.reduced import reduce
    from k3lib.units import GIGA, quantity

    made = reduce(args.source, args.target, args.layers, write=not args.count)
    if args.json:
        print(json.dumps(asdict(made), indent=1))
        return EXIT_DONE
    verb, size = "would have" if args.count else "has", quantity(made.bytes / GIGA, "GB", ",.1f")
    layers = f"{made.layers} of {made.of_layers} layers"
    print(f"{args.target} {verb} {layers}: {made.tensors:,} tensors in {made.files:,} files, {size}")
    return EXIT_DONE
