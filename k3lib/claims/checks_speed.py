"""Claims on layouts, throughput and what suits the card: set beside the speed model and measured runs."""

from __future__ import annotations

from k3lib.calibrate.predict import ratio
from k3lib.claims.verdict import Part, decided, number
from k3lib.claims.words import BUSY, FEW, HALF, MANY, SETS, SMALL, shown
from k3lib.claims.world import DEVICE, KIN, PLAN, RULES, Check, World, device_range, k3_runs
from k3lib.deploy.passes import EXCHANGE, EXPERTS
from k3lib.deploy.search import TELLS_APART
from k3lib.deploy.speed import answer, roofline_tps, step_terms
from k3lib.facts.claims import Claim
from k3lib.facts.variants import PER_CENT
from k3lib.facts.workloads import workload
from k3lib.ranges import point

CLIENTS = tuple(2**n for n in range(10))
# A measured series of runs from one client to many, and two that tell how separation pays.
SERIES, TOGETHER = "h200-vllm-tp8pp2-marlin-a", "tp16,ep16"


def recommended_layout(w: World, c: Claim) -> tuple[Part, ...]:
    """Where the article's layout stands among all that serve the workload, and beside the same without EP."""
    names, clients = [one.layout for one in w.ranked], w.workload.concurrency
    place = names.index(w.layout) + 1 if w.layout in names else 0
    best, plain, ours = (w.output_tps(name, clients) for name in (names[0], w.layout_plain, w.layout))
    simple = ratio(w.asked(w.layout, clients), w.asked(w.layout_plain, clients))
    first = (
        f"For batches {w.layout} takes place {place} of {len(names)}, with {ours / best:.2f} of the output of "
        "the best, "
        f"{names[0]}."
    )
    second = f"One stage a server is sound: without EP it gives {plain / best:.2f} of the best."
    third = (
        f"EP inside a server costs output: {simple.value:.2f} ({simple.low:.2f} to {simple.high:.2f}) is left with it."
    )
    return (
        number(c, first, point(PER_CENT), point(PER_CENT * ours / best), "%", w.speed_sources),
        number(c, second, point(PER_CENT), point(PER_CENT * plain / best), "%", w.speed_sources, core=False),
        decided(third, simple.low >= 1 - TELLS_APART, w.speed_sources, core=False),
    )


def memory_over_arithmetic(w: World, c: Claim) -> tuple[Part, ...]:
    """What memory's bandwidth alone would allow, and what cards with more arithmetic gain."""
    clients = w.workload.concurrency
    asked = w.asked(w.layout_plain, clients)
    found, by_memory = answer(asked, w.numbers).output_tps, roofline_tps(asked)
    gain = w.output_tps(w.layout_plain, clients, KIN) / found
    wide, sources = device_range("h200", "hbm_bandwidth", "GB/s")
    mine, own_sources = device_range(DEVICE, "hbm_bandwidth", "GB/s")
    second = (
        f"With {clients} clients its bandwidth would allow {by_memory / found:.1f} times the predicted output, "
        "and H200 "
        f"with {wide.value / mine.value:.1f} times the bandwidth give {gain:.1f} times: the kernels of 4-bit "
        "experts are "
        "short of arithmetic."
    )
    fits = (
        f"Memory decides whether K3 runs at all, and {w.cluster.cards} H20 "
        f"{'hold' if w.base.fits else 'do not hold'} it."
    )
    return (
        decided(fits, w.base.fits, [*w.k3.sources, *RULES]),
        decided(second, by_memory / found < SETS, [*w.speed_sources, *sources, *own_sources]),
    )


def busy_requests(w: World, c: Claim) -> tuple[Part, ...]:
    """The fewest clients, in doublings, with nearly the output of the full load."""
    full, most = w.workload.concurrency, round(w.said("A39.requests_high"))
    output = w.output_tps(w.layout_plain, full)
    at = next((n for n in CLIENTS if w.output_tps(w.layout_plain, n) >= BUSY * output), full)
    share = shown(PER_CENT * w.output_tps(w.layout_plain, most) / output, "%")
    says = f"{most} requests give {share} of the output of {full}; {shown(PER_CENT * BUSY, '%')} takes {at}."
    return (number(c, says, w.span("A39.requests"), point(at), "requests", w.speed_sources),)


def h20_strengths(w: World, c: Claim) -> tuple[Part, ...]:
    """The H20 beside a card of the same kind with more arithmetic: few clients, many, and long contexts."""
    one, many = (w.output_tps(w.layout_plain, n) / w.output_tps(w.layout_plain, n, KIN) for n in (1, MANY))
    terms = step_terms(w.asked(w.layout_plain, MANY), w.numbers)
    share = terms[EXPERTS] / sum(terms.values())
    agents = workload("coding-agent")
    here, there = (answer(w.asked(w.layout_plain, FEW, name, of=agents), w.numbers).output_tps for name in (PLAN, KIN))
    first = (
        f"Of what 32 H200 give, 32 H20 give {one:.2f} with one client and {many:.2f} with {MANY}: they fall "
        "behind where "
        "many ask at once."
    )
    second = f"With contexts of {shown(agents.isl, 'tokens')} and {FEW} clients it is {here / there:.2f}."
    third = f"Few active experts still take {shown(PER_CENT * share, '%')} of a step with {MANY} clients."
    return (
        decided(first, many >= one, w.speed_sources),
        decided(second, here / there >= many, w.speed_sources),
        decided(third, share < HALF, w.speed_sources),
    )


def batch_size(w: World, c: Claim) -> tuple[Part, ...]:
    """Output of one measured series from one client to many, and a client's part of the exchange."""
    series = [r for r in k3_runs("h200") if r.set_id == SERIES]
    one, most = min(series, key=lambda r: r.concurrency or 0), max(series, key=lambda r: r.output_tps or 0.0)
    first_tps, most_tps = one.output_tps or 0.0, most.output_tps or 0.0
    terms = {n: step_terms(w.asked(w.layout_plain, n), w.numbers) for n in (1, MANY)}
    moved, read = ([of[name] / n for n, of in terms.items()] for name in (EXCHANGE, EXPERTS))
    first = (
        f"Sixteen H200 gave {shown(first_tps, 'tok/s')} with one client and {shown(most_tps, 'tok/s')} with "
        f"{most.concurrency}: {most_tps / first_tps:.0f} times."
    )
    second = (
        f"By the model a client's part of the exchanges falls from {moved[0]:.1f} to "
        f"{shown(moved[1], 'ms', '.2f')} a step, "
        f"that of the experts from {read[0]:.1f} to {shown(read[1], 'ms', '.2f')}."
    )
    return (
        decided(first, most_tps > first_tps * SETS, [*one.source_ids, *most.source_ids]),
        decided(second, moved[1] < moved[0], w.speed_sources),
    )


def separation(w: World, c: Claim) -> tuple[Part, ...]:
    """What more arithmetic does for prompts and for generation, and what separated cards gave by card, as measured."""
    clients = w.workload.concurrency
    here, there = (w.output_tps(w.layout_plain, clients, name) for name in (PLAN, KIN))
    wide = (
        device_range("h200", "hbm_bandwidth", "GB/s")[0].value / device_range(DEVICE, "hbm_bandwidth", "GB/s")[0].value
    )
    waits = [answer(w.asked(w.layout_plain, 1, name), w.numbers).ttft_mean_ms for name in (PLAN, KIN)]
    reads = waits[0] / waits[1]
    apart_runs = [r for r in k3_runs("h200", "separated") if r.concurrency == FEW]
    whole_runs = [r for r in k3_runs("h200", layout=TOGETHER) if r.concurrency == FEW]
    apart, whole = (max((r.output_tps or 0.0) / (r.cards or 1) for r in found) for found in (apart_runs, whole_runs))
    first = (
        f"H200 have {wide:.1f} times the bandwidth and read a prompt {reads:.1f} times as fast: prompts are bound by "
        "arithmetic."
    )
    second = f"With {clients} clients they generate {there / here:.1f} times as fast, so on H20 that is too."
    third = (
        f"Each half holds all weights. With {FEW} clients 32 H200 apart gave {shown(apart, 'tok/s', ',.1f')} a "
        "card, 16 in "
        f"one group {shown(whole, 'tok/s', ',.1f')}."
    )
    return (
        decided(first, reads > wide * (1 + SMALL), w.speed_sources),
        decided(second, there / here <= wide * (1 + SMALL), w.speed_sources),
        decided(third, apart > whole, [x for r in (*apart_runs, *whole_runs) for x in r.source_ids]),
    )


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (recommended_layout, memory_over_arithmetic, busy_requests, h20_strengths, batch_size, separation)
}
