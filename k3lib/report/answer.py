"""The answer page in words: three sentences, the table of the ways to serve, what is not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from k3lib.choose.recommend import DAYS_PER_MONTH, Advice, Ranked
from k3lib.choose.scene import Scene
from k3lib.choose.waived import Confidence, Counted
from k3lib.cost.own import NOT_COUNTED
from k3lib.facts.clusters import NamedCluster
from k3lib.report import advice as ad
from k3lib.report import show
from k3lib.report.compare import EVIDENCE_WORDS, NONE_SHOWN, in_range, text
from k3lib.report.costs import key_of
from k3lib.report.trail import Html, cell
from k3lib.results import Result, record
from k3lib.units import HOURS_PER_DAY, MEGA, SECONDS_PER_HOUR, number

HEADER = ("Way", "Confidence", "At once, million yuan", "A month, million yuan", "A million output tokens, yuan",
          "Output of one, tok/s", "Left for caches, GiB a card")  # fmt: skip
WORDS = 2  # columns of words in it
CONFIDENCE_WORDS: Mapping[Confidence, str] = {
    "high": "a listed price", "medium": EVIDENCE_WORDS["measured"], "low": EVIDENCE_WORDS["kin"],
    "none": EVIDENCE_WORDS["none"],
}  # fmt: skip
# The figures of a way: unit of the result, grade, then unit and format in the table.
FIGURES = {
    "invest_cny": ("CNY", "assumed", "million CNY", ",.1f"),
    "monthly_cny": ("CNY/month", "assumed", "million CNY/month", ",.2f"),
    "cny_per_mtok": ("CNY/Mtok", "assumed", "CNY/Mtok", ",.0f"),
    "output_tps": ("tok/s", "derived", "tok/s", ",.0f"),
    "left_gib": ("GiB", "derived", "GiB", ",.0f"),
}
OF_MONEY = ("invest_cny", "monthly_cny", "cny_per_mtok")


def words(one: Counted, clusters: Mapping[str, NamedCluster]) -> str:
    """A way as an instruction, with the number of its deployments."""
    return ad.choice_words(str(one.option), clusters, one.ranked.deployments if one.ranked else 1)


def verdict(one: Counted, advice: Advice) -> str:
    """What becomes of a way under the rules."""
    if one.refused:
        return ad.refusal(one.refused, advice, one.world)
    place = [str(r.option) for r in advice.ranked].index(str(one.option))
    said = ("the choice", "runner-up")[place] if place < 2 else "serves as well"
    return "; ".join(filter(None, (said, ad.caveats(advice.ranked[place]))))


def choice_sentence(advice: Advice, clusters: Mapping[str, NamedCluster]) -> str:
    """What to do, and what it costs."""
    if not advice.ranked:
        return f"Nothing that is known does the scenario's work: {ad.by_rule(advice)}."
    first = advice.ranked[0]
    what = ad.choice_words(advice.choice, clusters, first.deployments)
    mind = f" ({caveats})" if (caveats := ad.caveats(first)) else ""
    return (f"{what[0].upper()}{what[1:]}{mind}: that does the scenario's work for {ad.month(first.monthly_cny)}, "
            f"and takes {_at_once(first)} at once.")  # fmt: skip


def _at_once(one: Ranked) -> str:
    return f"{ad.million(one.invest_cny.value)} million yuan" if one.invest_cny.value else "nothing"


def margin_sentence(advice: Advice, clusters: Mapping[str, NamedCluster]) -> str:
    """How far the runner-up is, and whether that settles it."""
    if len(advice.ranked) < 2:
        return "The rules leave no second way." if advice.ranked else "A rule must give way before anything serves."
    first, second = advice.ranked[:2]
    less = 1 - first.monthly_cny.value / second.monthly_cny.value
    name = ad.choice_words(str(second.option), clusters, second.deployments)
    end = ("it is cheaper over the whole of both ranges" if advice.settled
           else "the ranges overlap, so a quote decides")  # fmt: skip
    return f"That is {less:.0%} less than the runner-up, which is to {name}; {end}."


def others_sentence(ways: Sequence[Counted], advice: Advice, scene: Scene) -> str:
    """What becomes of the plan, of the superpod, and of serving nothing oneself."""
    clusters = {c.cluster_id: c for c in scene.clusters}
    asked = [f"own:{scene.plan.cluster_id}", f"own:{scene.superpod.cluster_id}"]
    asked += [str(one.option) for one in cheapest(ways, "api")]
    found = {str(one.option): one for one in ways}
    told = [f"{words(found[name], clusters)} ({_why_not(found[name], advice)})"
            for name in asked if name in found and name != advice.choice]  # fmt: skip
    return f"Not chosen: {'; '.join(told)}."


def _why_not(one: Counted, advice: Advice) -> str:
    cost = f"{ad.million(one.ranked.monthly_cny.value)} million yuan a month" if one.ranked else ""
    if one.refused is None:
        return cost
    reason = verdict(one, advice)
    return f"{reason}; else {cost}" if cost else reason


def cheapest(ways: Iterable[Counted], kind: str) -> list[Counted]:
    """The way of a kind that costs least, whatever rule leaves it out; none where none can be counted."""
    found = [(one.ranked.monthly_cny.value, one) for one in ways if one.option.kind == kind and one.ranked]
    return [min(found, key=lambda pair: pair[0])[1]] if found else []


def publish(one: Counted, advice: Advice, clusters: Mapping[str, NamedCluster]) -> dict[str, Result]:
    """The results of a way by what they say."""
    prefix = f"answer.options.{key_of(str(one.option))}"
    behind = ad.of_situation(one.case, one.world)
    if one.ranked:
        behind += ad.of_way(one.option, one.case, one.world)
    elif one.option.kind != "api":
        behind += clusters[one.option.name].source_ids
    behind = list(dict.fromkeys(behind))
    said = {"words": words(one, clusters), "verdict": verdict(one, advice), "confidence": one.confidence}
    found = {name: text(f"{prefix}.{name}", value, behind) for name, value in said.items()}
    for name, (unit, grade, *_) in FIGURES.items():
        r = getattr(one.ranked if name in OF_MONEY else one, name, None)
        if r is not None:
            found[name] = record(f"{prefix}.{name}", r.value, unit=unit, grade=grade, low=r.low, high=r.high,
                                 sources=behind)  # fmt: skip
    return found


def row(found: Mapping[str, Result]) -> list[Html | str]:
    """A way's line of the table."""
    way = Html(f"{cell(found['words'])}<br><small>{show.escaped(str(found['verdict'].value))}</small>")
    figures = [
        in_range(found[f], spec, unit) if f in found else NONE_SHOWN for f, (_, _, unit, spec) in FIGURES.items()
    ]
    confidence = found["confidence"].value
    why = CONFIDENCE_WORDS[confidence]  # type: ignore[index]  # as it was recorded
    return [way, Html(f"{cell(found['confidence'])}<br><small>{show.escaped(why)}</small>"), *figures]


LEFT_OUT = 3  # of what no line of the costs holds, so many are named


def unknown(advice: Advice, ways: Sequence[Counted], scene: Scene) -> list[str]:
    """What is not known of the choice, the plan and the superpod, one sentence each."""
    names = {scene.plan.cluster_id: scene.plan, scene.superpod.cluster_id: scene.superpod}
    clusters = {c.cluster_id: c for c in scene.clusters}
    chosen = ad.parsed(advice.choice)
    if chosen and chosen.kind != "api":
        names = {chosen.name: clusters[chosen.name], **names}
    found = [evidence_of(c) for c in names.values()]
    if advice.ranked and chosen and chosen.kind != "api":
        first = next(one for one in ways if str(one.option) == advice.choice)
        found.append(_widths(first, words(first, clusters)))
    found.append("How soon a service answers: no source says it.")
    found.append(f"Left out of the costs, among others: {'; '.join(NOT_COUNTED[:LEFT_OUT])}.")
    return found


def evidence_of(cluster: NamedCluster) -> str:
    """How far the speed of K3 is known on a cluster, and what else is known of it."""
    said = f"{cluster.short}: {EVIDENCE_WORDS[cluster.evidence]}."
    return f"{said} {cluster.note[:1].upper()}{cluster.note[1:]}." if cluster.note else said


def _widths(one: Counted, name: str) -> str:
    """How wide the ranges of the choice are, the widest first."""
    if one.ranked is None or one.output_tps is None:
        raise ValueError(f"{name} is counted without its cost or its output")
    wide = {"the cost of a month": one.ranked.monthly_cny, "the output": one.output_tps}
    (most, first), (less, second) = sorted(((r.high / r.low, what) for what, r in wide.items()), reverse=True)
    return (f"To {name}: from the low to the high end of the range {first} grows {number(most, ',.1f')} times, "
            f"{second} {number(less, ',.1f')} times.")  # fmt: skip


def by_hand(advice: Advice, ways: Sequence[Counted]) -> str:
    """The money of the choice worked out from its output, or from its price."""
    one = next((one for one in ways if str(one.option) == advice.choice), None)
    if one is None or one.ranked is None:
        return "There is no choice to check."
    asked, per = advice.case.mtok_per_day, one.ranked.cny_per_mtok.value
    month = number(asked * DAYS_PER_MONTH, ",.0f")
    made = (f"A month has {month} million tokens; {ad.million(one.ranked.monthly_cny.value)} million yuan over them "
            f"are {number(per, ',.0f')} yuan for a million.")  # fmt: skip
    if one.output_tps is None:
        return made
    day = one.output_tps.value * SECONDS_PER_HOUR * HOURS_PER_DAY * advice.case.utilisation / MEGA
    return (f"One deployment, always up and busy {advice.case.utilisation:.0%} of the time, gives "
            f"{number(day, ',.1f')} million tokens a day; {number(asked, ',.0f')} are asked, for which the rules take "
            f"{one.ranked.deployments}. {made}")  # fmt: skip
