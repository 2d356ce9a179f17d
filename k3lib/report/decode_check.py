"""Runs of K3 on superpods that are no full deployments: generating halves and single requests, beside the model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from k3lib.calibrate.predict import speed
from k3lib.deploy.caches import Settings
from k3lib.deploy.load import Load
from k3lib.deploy.plan import make_plan
from k3lib.deploy.speed import Options, question
from k3lib.engines.layout import parse_cluster, parse_layout
from k3lib.errors import InputError
from k3lib.facts.benchmarks import Run
from k3lib.facts.planned import alike
from k3lib.models.model import Model
from k3lib.ranges import Range
from k3lib.units import KILO

# Cards of a superpod's kind, and the engine whose rules stand for all in a check of the cards.
SUPERPOD_CARDS = ("gb200", "gb300")
ENGINE = "vllm"


@dataclass(frozen=True)
class Checked:
    """A measured time per token beside the predicted one. clients: requests that were generated for at once."""

    run_id: str
    words: str
    clients: float
    measured_ms: float
    predicted: Range
    sources: tuple[str, ...]


def decode_rows(runs: Iterable[Run], model: Model) -> list[Checked]:
    """Runs that tell what one user saw, on layouts that can be written, with nothing but generating going on."""
    found = []
    for run in runs:
        fit = run.model == "kimi-k3" and run.device in SUPERPOD_CARDS and run.user_tps and run.layout and run.isl
        generating = run.serving == "decode" or (run.concurrency == 1 and run.speculation == "none")
        if not (fit and generating):
            continue
        at_once = max(1.0, run.output_tps / run.user_tps) if run.output_tps and run.user_tps else 1.0
        predicted = _predicted(run, model, round(at_once))
        if predicted:
            words = f"{run.device.upper()}, {run.layout}, {run.engine}"
            found.append(Checked(run.run_id, words, at_once, KILO / (run.user_tps or 1.0), predicted, run.source_ids))
    return found


def _predicted(run: Run, model: Model, at_once: int) -> Range | None:
    """Time per token of so many requests whose prompts are all but read; None where the layout does not hold them."""
    layout = parse_layout(run.layout)
    pod = alike(run.device)  # a run that names no cluster had whole trays of such a rack
    tray = pod.cards_per_node if pod else layout.tp
    cluster = run.cluster or f"{layout.tp * layout.pp // tray}x{tray}x{run.device}"
    isl, osl = round(run.isl or 0), round(run.osl or 0)
    try:
        settings = Settings(max_model_len=isl + osl, max_num_seqs=1024)
        plan = make_plan(model, parse_cluster(cluster), layout, ENGINE, settings)
        return speed(question(plan, Load(isl, osl, at_once, cached=isl - 1), Options())).tpot_ms
    except InputError:
        return None
