"""Claims that published evidence decides: runs, start-ups, scores, recipes, what a maker says."""

from __future__ import annotations

import statistics

from k3lib.claims.verdict import Part, decided, number
from k3lib.claims.words import LITTLE, SMALL, kept_of, shown
from k3lib.claims.world import MODEL, RULES, Check, World, k3_runs
from k3lib.cost.api import offers
from k3lib.facts.benchmarks import observations
from k3lib.facts.claims import Claim, known_of
from k3lib.facts.evidence import cases
from k3lib.facts.variants import PER_CENT, offload, quality
from k3lib.ranges import point
from k3lib.units import TERA

# Benchmarks of mathematics and code among those of data/quality.csv.
MATHS_AND_CODE = ("GSM8K", "SciCode", "LiveCodeBench", "Aider", "SWE-Bench", "Eval+", "LiveCode")


def prefix_reuse(w: World, c: Claim) -> tuple[Part, ...]:
    """Whether a measured deployment of K3 on SGLang served prompts from its cache."""
    kind = MODEL, "prefix_cache_share", "sglang"
    seen = [o for o in observations() if (o.model, o.quantity, o.engine) == kind]
    most = max((o.value for o in seen), default=0.0)
    says = f"On 32 H200 SGLang took {shown(most, '%')} of an agent's prompts from its cache."
    return (decided(says, most > 0 if seen else None, [x for o in seen for x in o.source_ids] or c.source_ids),)


def engines_that_run(w: World, c: Claim) -> tuple[Part, ...]:
    """Measured runs of K3 by engine on cards of the H20's kind."""
    absent = known_of("tensorrt-llm", "kimi-k3 on hopper")
    parts = []
    for name, words in (("vllm", "vLLM"), ("sglang", "SGLang")):
        found = k3_runs("h200", engine=name)
        says = f"{words} ran K3 on cards of this kind in {len(found)} measured runs."
        parts.append(decided(says, bool(found), [x for r in found for x in r.source_ids] or c.source_ids))
    says = f"TensorRT-LLM {absent.version} runs it on Blackwell only."
    return (*parts, decided(says, absent.state == "present", absent.source_ids))


def loading(w: World, c: Claim) -> tuple[Part, ...]:
    """Size of the files, and how long loading took on fast and on slow storage."""
    seen = [o for o in observations() if o.model == MODEL and o.quantity.endswith("load_time")]
    times = [o.range_in("s").value for o in seen]
    size = w.account.bytes / TERA
    first = f"The files take {shown(size, 'TB', ',.2f')}."
    second = f"Loading took from {shown(min(times), 's')} to {shown(max(times), 's')} in {len(times)} measured starts."
    return (
        number(c, first, w.point("A33.int4_weights", "TB"), point(size), "TB", w.k3.sources),
        decided(second, max(times) > min(times) * (1 + SMALL), [x for o in seen for x in o.source_ids]),
    )


def hot_experts(w: World, c: Claim) -> tuple[Part, ...]:
    """How uneven the loads of sets of experts were measured to be, and what rearranging left."""
    rows = offload()
    before, after = rows["k3-ep16-max-over-mean"], rows["k3-ep16-max-over-mean-eplb"]
    single = rows["k3-expert-max-over-mean"]
    gain = before.value / after.value - 1
    first = f"The busiest single expert had {single.value:.0f} times the mean, so watching is sound."
    second = (
        f"Sets of experts even out: the busiest of 16 cards had {before.value:.2f} times the mean, "
        f"{after.value:.2f} once "
        f"rearranged, so that {shown(PER_CENT * gain, '%')} at most are to be gained."
    )
    return (
        decided(first, single.value > 1 + SMALL, single.source_ids),
        decided(second, gain > SMALL, [*before.source_ids, *after.source_ids]),
    )


def four_bit_quality(w: World, c: Claim) -> tuple[Part, ...]:
    """What mixtures in four bits keep of their scores on tasks, and where they lose most."""
    tasks = [q for q in quality() if (q.kind, q.nature, q.grade) == ("format", "task", "measured") and q.baseline]
    rows = [q for q in tasks if "NVFP4" in q.subject]
    middle, worst = statistics.median(kept_of(q) for q in rows), min(rows, key=kept_of)
    sources = [x for q in rows for x in q.source_ids]
    first = (
        f"Of {len(rows)} scores of mixtures in four bits the median is {shown(PER_CENT * middle, '%', '.1f')} "
        "of the wider "
        "form's."
    )
    second = f"The worst, {worst.benchmark}, keeps {shown(PER_CENT * kept_of(worst), '%')}."
    return (
        decided(first, middle >= LITTLE, sources),
        decided(second, worst.benchmark.startswith(MATHS_AND_CODE), sources),
    )


def official_advice(w: World, c: Claim) -> tuple[Part, ...]:
    """What was published, and whether the engine's own recipe started."""
    tried = [case for case in cases() if "k3_recipe" in case.source_ids and case.quantity == "fits"]
    failed = [case for case in tried if not case.true_value]
    first = "Configuration and weights are public, and this book counts from them."
    second = f"Recipes must be tried all the same: {len(failed)} published for K3 did not start as written."
    return (
        decided(first, bool(w.account.bytes), w.k3.sources),
        decided(second, not failed, [x for case in tried for x in case.source_ids] or c.source_ids, core=False),
    )


def maker_recommends(w: World, c: Claim) -> tuple[Part, ...]:
    """What the release post says."""
    row = known_of("moonshot", "recommended accelerators of one superpod")
    says = (
        f"The release post does recommend {row.value or 0:.0f} or more in one superpod. It does not call them a least "
        f"number, and {w.released_cards} H20 hold the files."
    )
    return (decided(says, row.state == "present" and row.value == w.said("B16.fewest_cards"), row.source_ids),)


def scope(w: World, c: Claim) -> tuple[Part, ...]:
    """What the free files need, and that the maker's service is priced by the token."""
    sold = offers(w.table)
    first = (
        f"The free files take {shown(w.account.bytes / TERA, 'TB', ',.2f')} of disk and at least "
        f"{shown(w.released_cards, 'cards')} of the kind H20."
    )
    return (
        decided(first, w.released_cards > 0, [*w.k3.sources, *RULES]),
        decided("The maker sells K3 by the token, whoever runs the files.", bool(sold), ["kimi_price_cn"]),
    )


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        prefix_reuse,
        engines_that_run,
        loading,
        hot_experts,
        four_bit_quality,
        official_advice,
        maker_recommends,
        scope,
    )
}
