"""How long the project's jobs take on this machine: `python benchmarks/run.py`. Prints a table; judges nothing."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from k3lib.account import tensors
from k3lib.calibrate.predict import asked_of
from k3lib.calibrate.store import make
from k3lib.deploy.caches import Settings
from k3lib.deploy.constants import table
from k3lib.deploy.inverse import sweep
from k3lib.deploy.passes import PassTimes
from k3lib.deploy.plan import ENGINES
from k3lib.deploy.search import screen, space
from k3lib.deploy.setup import SetUp, constants
from k3lib.deploy.speed import answer
from k3lib.engines.layout import parse_cluster, parse_layout
from k3lib.evaluate import arrays
from k3lib.models.model import load_model

RUNS = 3
POINTS = 1_000_000
ISL, OSL, CLIENTS = 1024 * 2 ** np.arange(8), 256 * 2 ** np.arange(6), 2 ** np.arange(11)


def command(*arguments: str) -> Callable[[], None]:
    """A job that runs the command in a process of its own."""

    def run() -> None:
        subprocess.run([sys.executable, "-m", "k3lib", *arguments], check=True, capture_output=True)

    return run


def rebuild() -> None:
    """All notebooks and the whole book, nothing kept from before."""
    with tempfile.TemporaryDirectory() as out:
        command("build", "--out", out)()


def account_on_a_million_points() -> Callable[[], None]:
    """Every group, the total, parameters, active parameters and tensors of K3, all symbols varied, in one call."""
    model = load_model("kimi-k3")
    wanted = {name: tensors.total_bytes(members) for name, members in tensors.by_group(model.arrays).items()}
    wanted |= {
        "bytes": tensors.total_bytes(model.arrays),
        "params": tensors.total_params(model.arrays),
        "active": tensors.active_params(model.arrays),
        "tensors": tensors.total_tensors(model.arrays),
    }
    values = {symbol: np.linspace(value, 2 * value, POINTS) for symbol, value in model.values.items()}
    arrays(wanted, {symbol: value[:1] for symbol, value in values.items()})  # compiled once

    def run() -> None:
        arrays(wanted, values)

    return run


def ledgers_of_64_cards() -> None:
    """The ledgers of all legal layouts of 64 cards, and what each holds of a thousand workloads, in one call."""
    sweep(
        load_model("kimi-k3"),
        parse_cluster("8x8xh20-96"),
        "vllm",
        Settings(),
        np.linspace(1_000, 1_000_000, 1_000).astype(int),
    )


def every_layout_under_a_grid() -> None:
    """All legal layouts of 32 and 64 cards, and the steady state of each under 528 loads: spaces and all."""
    isl, osl, clients = (x.ravel().astype(float) for x in np.meshgrid(ISL, OSL, CLIENTS))
    for cluster in ("4x8xh20-96", "8x8xh200"):
        there = space(replace(load_model("kimi-k3")), parse_cluster(cluster), "vllm", Settings(max_num_seqs=1024))
        screen(there, isl, osl, clients, np.zeros_like(isl), numbers=table())


def passes_on_a_million_points() -> Callable[[], None]:
    """The time of a million passes of two stages, all terms, in one call."""
    passes = PassTimes(
        SetUp(load_model("kimi-k3"), parse_cluster("2x8xh200"), parse_layout("tp8,pp2"), ENGINES["vllm"])
    )
    known = constants(passes.setup, table())
    decode, prompt = np.linspace(1, 256, POINTS), np.linspace(0, 8192, POINTS)

    def run() -> None:
        passes.times(known, decode, prompt, 1500.0, 500.0)

    return run


def make_calibration() -> None:
    """The fit to all runs, and each deployment left out in turn."""
    make()


def closed_loop_cells() -> Callable[[], None]:
    """A hundred cells of the closed loop: 1 to 256 clients of 1,000 + 1,000 tokens."""
    model, numbers = load_model("kimi-k3"), table()
    asked = [asked_of("h200x16-tp8pp2", "1k-1k", n, model) for n in (1, 8, 32, 128, 256)]

    def run() -> None:
        for _ in range(20):
            for one in asked:
                answer(one, numbers)

    return run


def main() -> None:
    """Measure and print."""
    jobs: dict[str, Callable[[], None]] = {
        "k3 --help": command("--help"),
        "k3 weights kimi-k3": command("weights", "kimi-k3"),
        f"weight account on {POINTS:,} points": account_on_a_million_points(),
        "k3 plan on 4x8xh20-96": command("plan", "--cluster", "4x8xh20-96", "--layout", "tp8,pp4"),
        "layouts of 64 cards x 1,000 workloads": ledgers_of_64_cards,
        f"layouts of 32 and 64 cards x {len(ISL) * len(OSL) * len(CLIENTS)} loads": every_layout_under_a_grid,
        "k3 search on h20x32": command("search", "--cluster", "h20x32", "--workload", "offline-batch"),
        f"time of {POINTS:,} passes": passes_on_a_million_points(),
        "100 cells of the closed loop": closed_loop_cells(),
        "the whole calibration": make_calibration,
        "k3 build, nothing kept": rebuild,
    }
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {RUNS} runs each\n")
    print(f"{'job':<40}{'fastest, s':>12}{'median, s':>12}")
    for name, job in jobs.items():
        seconds = []
        for _ in range(RUNS):
            start = time.perf_counter()
            job()
            seconds.append(time.perf_counter() - start)
        print(f"{name:<40}{min(seconds):>12.2f}{statistics.median(seconds):>12.2f}")
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"\nlargest process: {peak / 1024:,.0f} MiB")


if __name__ == "__main__":
    main()
