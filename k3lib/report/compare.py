"""The comparison as the book shows it: results by workload and cluster, words for goals, measured points beside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k3lib.calibrate.measured import speed_curves
from k3lib.choose.scene import Scene
from k3lib.choose.study import Entry, Seen, energy_of
from k3lib.deploy import constants as co
from k3lib.facts.benchmarks import Run
from k3lib.facts.clusters import ClusterFact, NamedCluster
from k3lib.facts.planned import fact_of
from k3lib.facts.workloads import Workload
from k3lib.ranges import Range, over, point
from k3lib.report.trail import Html, cell
from k3lib.results import Result, record
from k3lib.units import KILO, convert, number

NONE_SHOWN, NO_GOALS = "\u2013", "none"
EVIDENCE_WORDS = {"measured": "K3 measured on this card", "kin": "K3 measured on a card of its kind",
                  "none": "nothing measured"}  # fmt: skip
STATUS_WORDS = {"yes": "to be had", "licence": "under a licence", "announced": "announced", "no": "not to be had"}


@dataclass(frozen=True)
class Shown:
    """A figure of the comparison: its unit, how it is printed, what a table's head says."""

    unit: str
    spec: str
    head: str
    shown_in: str = ""


FIGURES = {
    "output_tps": Shown("tok/s", ",.0f", "Output, tok/s"),
    "tps_per_user": Shown("tok/s", ",.1f", "One client, tok/s"),
    "ttft_ms": Shown("ms", ",.1f", "First token, s", "s"),
    "output_tps_per_card": Shown("tok/s", ",.1f", "Output of a card, tok/s"),
    "output_tps_per_kw": Shown("tok/s", ",.1f", "Output of a kW, tok/s"),
    "kwh_per_mtok": Shown("kWh", ",.0f", "Energy of a million tokens, kWh"),
    "most_output_tps": Shown("tok/s", ",.0f", "Output within the goals, tok/s"),
}
COUNTS = {"max_context": "tokens", "max_concurrency": "requests", "kv_tokens": "tokens", "most_clients": "requests"}


def key(entry: Entry, figure: str) -> str:
    """The key of a figure of a workload on a cluster."""
    return f"compare.{entry.workload_id}.{entry.cluster_id}.{figure}"


def figures(entry: Entry, cluster: NamedCluster) -> dict[str, Range]:
    """All figures that have a range; none where the workload cannot be served."""
    seen = entry.seen
    if seen is None:
        return {}
    out, power, energy = seen.output_tps, fact_of(cluster, "power"), energy_of(cluster, seen)
    found = {"output_tps": out, "tps_per_user": seen.user_tps, "ttft_ms": seen.ttft_ms,
             "output_tps_per_card": over(out, point(entry.cards))}  # fmt: skip
    if power and energy:
        found["output_tps_per_kw"] = over(out, power.range_in("kW"))
        found["kwh_per_mtok"] = energy
    if entry.most:
        found["most_output_tps"] = entry.most.output_tps
    return found


def publish(entry: Entry, cluster: NamedCluster, make: Callable[..., Result] = record) -> dict[str, Result]:
    """The results of a workload on a cluster by figure. make: `record`, or `results.make` where they are recorded
    elsewhere.
    """
    behind = list(entry.sources)
    power = fact_of(cluster, "power")
    of_power = [*behind, *power.source_ids] if power else behind
    found = {"fits": make(key(entry, "fits"), entry.fits, unit="", grade="derived", sources=behind)}
    for figure, r in figures(entry, cluster).items():
        sources = of_power if figure in ("output_tps_per_kw", "kwh_per_mtok") else behind
        found[figure] = make(key(entry, figure), r.value, unit=FIGURES[figure].unit, grade="derived", low=r.low,
                             high=r.high, sources=list(dict.fromkeys(sources)))  # fmt: skip
    counts = {"max_context": entry.max_context, "max_concurrency": entry.sessions, "kv_tokens": entry.kv_tokens,
              "most_clients": entry.most_clients}  # fmt: skip
    for figure, value in counts.items():
        found[figure] = make(key(entry, figure), value, unit=COUNTS[figure], grade="derived", low=value, high=value,
                             sources=behind)  # fmt: skip
    layout = entry.layout or NONE_SHOWN
    found["best_layout"] = make(f"search.{entry.cluster_id}.{entry.workload_id}.best_layout", layout, unit="",
                                grade="derived", sources=behind)  # fmt: skip
    return found


def ranged(result: Result, figure: str) -> Html:
    """A figure for a table, with its range below."""
    shown = FIGURES[figure]
    return in_range(result, shown.spec, shown.shown_in or shown.unit)


def in_range(result: Result, spec: str, unit: str | None = None) -> Html:
    """A number for a table with its range below it, where it has one."""
    if result.low == result.high:
        return cell(result, unit, spec)
    low, high = (convert(end or 0.0, result.unit, unit or result.unit) for end in (result.low, result.high))
    return Html(f"{cell(result, unit, spec)}<br><small>{number(low, spec)}\u2013{number(high, spec)}</small>")


def ranged_text(one: Range, spec: str) -> str:
    """A number with its range on one line, for a table."""
    return f"{number(one.value, spec)} ({number(one.low, spec)}\u2013{number(one.high, spec)})"


def figure_cell(found: dict[str, Result], figure: str) -> Html | str:
    """A figure for a table, or a dash where there is none."""
    return ranged(found[figure], figure) if figure in found else NONE_SHOWN


def goals(workload: Workload) -> str:
    """A workload's goals in words."""
    parts = []
    if workload.ttft_s is not None:
        parts.append(f"first token within {workload.ttft_s:g} s")
    if workload.tpot_ms is not None:
        parts.append(f"each further one within {workload.tpot_ms:g} ms")
    return ", ".join(parts) or NO_GOALS


def met(entry: Entry, workload: Workload) -> str:
    """Whether the goals are met at the workload's own clients, and if not what is missed by how much."""
    if entry.seen is None:
        return "does not fit"
    if workload.ttft_s is None and workload.tpot_ms is None:
        return "no goals"
    if entry.surely:
        return "met, over the whole range"
    if entry.within:
        return "met, but not at the slow end of the range"
    return "missed: " + ", ".join(missed(entry.seen, workload))


def missed(seen: Seen, workload: Workload) -> list[str]:
    """Every goal that is missed, with the factor."""
    found = []
    for words, value, goal in (
        ("first token", seen.ttft_ms.value / KILO, workload.ttft_s),
        ("each further one", seen.tpot_ms.value, workload.tpot_ms),
    ):
        if goal is not None and value > goal:
            found.append(f"{words} {value / goal:.2g} times too late")
    return found


@dataclass(frozen=True)
class Point:
    """A measured point: what a user sees and what a card gives, in tok/s."""

    label: str
    clients: int
    user_tps: float
    card_tps: float


def measured_near(cluster: NamedCluster, runs: Iterable[Run], prompt_tokens: int) -> list[tuple[str, list[Point]]]:
    """Measured curves of K3 on the cluster's card, or else on cards that run the same kernels, each with its name."""
    curves = [c for c in speed_curves([r for r in runs if r.model == "kimi-k3"], prompt_tokens) if len(c.points) > 1]
    own = [c for c in curves if c.device == cluster.device]
    kin = [c for c in curves if c.architecture == co.architecture(cluster.device)]
    found = []
    for c in own or kin:
        name = f"{c.cards} {c.device.upper()}, {c.layout}, {c.engine}{', ' + c.kernel if c.kernel else ''}"
        found.append((name, [Point(name, *point) for point in c.points]))
    return found


def which_plan(scene: Scene) -> str:
    """Whose plan a page shows, as a sentence."""
    if scene.reason:
        return f"The scenario's own plan does not hold the model, and another stands in its place. {scene.reason}"
    return "The plan is the scenario's own."


def claimed(value: float, low: float, high: float) -> str:
    """What becomes of a claim that a value lies from low to below high."""
    return "confirmed" if low <= value < high else "too small" if value >= high else "too large"


def times_words(above: ClusterFact | None, below: ClusterFact | None) -> str:
    """How many times the power of one cluster is that of another, in words."""
    if above is None or below is None:
        return "an unknown multiple of"
    return f"{ranged_text(over(above.range_in('kW'), below.range_in('kW')), '.1f')} times"


def priced_words(energy: Result | None, tariff: Result) -> str:
    """What an energy costs at a price, in words; energy is None where the power of the cards is not known."""
    if energy is None:
        return "not known, because the power of these cards is not"
    ends = ((energy.value, tariff.value), (energy.low, tariff.low), (energy.high, tariff.high))
    return f"{ranged_text(Range(*(float(e) * float(t) for e, t in ends)), ',.1f')} yuan"  # type: ignore[arg-type]


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def text(name: str, value: str, sources: Iterable[str], **trail: Any) -> Result:
    """Record a sentence, or part of one, that was filled from results."""
    return record(name, value, unit="", grade="derived", sources=list(dict.fromkeys(sources)), **trail)


def sorted_out(entries: dict[str, Entry], workloads: Mapping[str, Workload]) -> dict[str, list[str]]:
    """Labels of workloads by what becomes of their goals: met, missed (with by how much), and unfit."""
    found: dict[str, list[str]] = {"met": [], "missed": []}
    for name, entry in entries.items():
        label = workloads[name].label
        if entry.seen is None:
            found["missed"].append(f"{label} (does not fit)")
        elif goals(workloads[name]) == NO_GOALS:
            found["met"].append(f"{label} (there are none)")
        elif entry.within:
            found["met"].append(label)
        else:
            found["missed"].append(f"{label} ({'; '.join(missed(entry.seen, workloads[name]))})")
    return found


def bought(
    mine: Mapping[str, Entry], theirs: Mapping[str, Entry], workloads: Mapping[str, Workload]
) -> tuple[str, str]:
    """What the second of two clusters serves that the first does not, and what it does not change: two sentences."""
    asked = [n for n in workloads if goals(workloads[n]) != NO_GOALS]
    only = [workloads[n].label for n in asked if theirs[n].within and not mine[n].within]
    both = [workloads[n].label for n in asked if theirs[n].within and mine[n].within]
    neither = [workloads[n].label for n in asked if not theirs[n].within and not mine[n].within]
    first = f"It keeps to the goals of {listed(only)}, which the smaller one misses." if only else ""
    longest = [max(e.max_context for e in part.values()) for part in (mine, theirs)]
    second = []
    if both:
        second.append(f"The goals of {listed(both)} are met by either.")
    if neither:
        second.append(f"Neither meets those of {listed(neither)}.")
    if longest[0] >= longest[1]:
        second.append("The longest request that fits does not grow.")
    return first or "It meets no goal that the smaller one misses.", " ".join(second)


def per_unit(
    found: Mapping[tuple[str, str], Mapping[str, Result]], mine: NamedCluster, theirs: NamedCluster,
    names: Iterable[str], figure: str, what: str,
) -> str:  # fmt: skip
    """Whether a card, or a kilowatt, of the second cluster gives more than one of the first, over all workloads."""
    ratios = []
    for name in names:
        a, b = (found[c.cluster_id, name].get(figure) for c in (theirs, mine))
        if a and b:
            ratios.append(a.value / b.value)  # type: ignore[operator]
    if not ratios:
        return ""
    low, high = min(ratios), max(ratios)
    return f"{what.capitalize()} of {theirs.short} gives {low:.1f} to {high:.1f} times one of {mine.short}."
