"""What has been measured, put in order: why runs are left out, rates against times, curves of speed, drafts."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from k3lib.deploy import constants as co
from k3lib.facts.benchmarks import Observation, Run, Use

# Prompts of a class differ from its name by no more than this factor.
NEAR = 1.5


@dataclass(frozen=True)
class Reason:
    """Why runs are not used to fit: how many, of which sets, on which cards."""

    reason: str
    runs: int
    sets: tuple[str, ...]
    devices: tuple[str, ...]


def reasons(runs: Iterable[Run], use: Use) -> list[Reason]:
    """The reasons of one use, that with most runs first."""
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        if run.use == use:
            groups[run.reason].append(run)
    found = [
        Reason(reason, len(part), tuple(dict.fromkeys(r.set_id for r in part)), tuple(sorted({r.device for r in part})))
        for reason, part in groups.items()
    ]
    return sorted(found, key=lambda row: (-row.runs, row.reason))


def closed_loop_differences(runs: Iterable[Run]) -> dict[str, float]:
    """By run, the rate that follows from its two times over the measured one, less one.

    Runs to fit only, no more clients than the server's own cap, whose rate was measured and not derived.
    """
    found = {}
    for run in runs:
        cap = int(run.flags.get("max_num_seqs", 10**9))
        if run.use == "fit" and run.closed_loop_tps and run.output_tps and (run.concurrency or 0) <= cap:
            found[run.run_id] = run.closed_loop_tps / run.output_tps - 1
    return found


@dataclass(frozen=True)
class SpeedCurve:
    """Measured points of one system: clients, what a user sees in tok/s, and output of a card in tok/s."""

    device: str
    cards: int
    layout: str
    engine: str
    kernel: str
    points: tuple[tuple[int, float, float], ...]

    @property
    def architecture(self) -> str:
        """The family of its cards."""
        return co.architecture(self.device)


def speed_curves(runs: Iterable[Run], prompt_tokens: int) -> list[SpeedCurve]:
    """K3 as released, served as a whole without a draft, on prompts of about that length; repeats by their median.

    Runs that were left out, replayed traces and caches in 8 bits are not among them.
    """
    groups: dict[tuple[str, int, str, str, str], dict[int, list[tuple[float, float]]]] = {}
    for run in runs:
        plain = (run.model, run.serving, run.speculation) == ("kimi-k3", "aggregated", "none")
        if not plain or run.use == "out" or run.prompts == "trace" or "cache_dtype" in run.flags:
            continue
        if not (run.isl and run.cards and run.concurrency and run.answer_tps and run.user_speed_tps):
            continue
        if max(run.isl / prompt_tokens, prompt_tokens / run.isl) > NEAR:
            continue
        kernel = run.flags.get("experts", "")
        group = groups.setdefault(
            (run.device, run.cards, run.layout, run.engine, kernel if kernel == "humming" else ""), {}
        )
        group.setdefault(run.concurrency, []).append((run.user_speed_tps, run.answer_tps / run.cards))
    return [
        SpeedCurve(*key, tuple(
            (clients, statistics.median(x for x, _ in part), statistics.median(y for _, y in part))
            for clients, part in sorted(group.items())
        ))
        for key, group in groups.items()
    ]  # fmt: skip


@dataclass(frozen=True)
class Acceptance:
    """Tokens that one step of a draft model gives on average. real: the text is such as people or programs send."""

    draft_tokens: int
    tokens: float
    load: str
    real: bool
    source_ids: tuple[str, ...]


MADE_UP = {"random": "random prompts", "repeated": "repeated prompts"}
REAL = {"natural": "unlike prompts of natural text", "trace": "replayed traces"}


def acceptances(runs: Iterable[Run], observations: Iterable[Observation]) -> list[Acceptance]:
    """All measured lengths of acceptance of Kimi K3; those whose prompts or draft length are unknown are left out."""
    found = [
        Acceptance(length, o.value, o.load, "repeated" not in o.load, o.source_ids)
        for o in observations
        if o.quantity == "acceptance_length" and o.model == "kimi-k3" and (length := draft_length(o.speculation))
    ]
    return found + [
        Acceptance(length, r.acceptance_length, (REAL | MADE_UP)[r.prompts], r.prompts in REAL, r.source_ids)
        for r in runs
        if r.model == "kimi-k3" and r.acceptance_length and r.prompts in REAL | MADE_UP
        and (length := draft_length(r.speculation))
    ]  # fmt: skip


def draft_length(speculation: str) -> int:
    """The tokens that a draft proposes, by its name such as "dspark 7"; 0 where it does not say."""
    last = speculation.rpartition(" ")[2]
    return int(last) if last.isdigit() else 0


def repeats(runs: Iterable[Run]) -> list[float]:
    """Of runs to fit that were repeated alike on one deployment: the highest rate over the lowest, less one."""
    groups: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for run in runs:
        if run.use == "fit" and run.output_tps:
            caps = run.flags.get("max_num_seqs"), run.flags.get("state_ratio")
            groups[(*run.system, *caps, run.isl, run.osl, run.concurrency)].append(run.output_tps)
    return [max(rates) / min(rates) - 1 for rates in groups.values() if len(rates) > 1]
