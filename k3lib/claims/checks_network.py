"""Claims on networks: set beside measured exchanges and what the speed model makes of them."""

from __future__ import annotations

from dataclasses import replace

from k3lib.choose.exchange import all_to_all
from k3lib.claims.verdict import Part, decided, floor, number
from k3lib.claims.words import HALF, SMALL, shown
from k3lib.claims.world import KIN, Check, World, device_range
from k3lib.deploy.passes import EXCHANGE
from k3lib.deploy.speed import answer, step_terms
from k3lib.facts.claims import Claim
from k3lib.facts.clusters import cluster_fact
from k3lib.facts.timings import ExchangeTime, exchange_times
from k3lib.facts.variants import PER_CENT
from k3lib.ranges import Range, point
from k3lib.units import KILO, convert

HOP_RATE = ("hop_rate", "")


def _exchange_us(cluster: str) -> tuple[float, tuple[str, ...]]:
    """An exchange of tokens over all cards of a named cluster, as measured, in us."""
    fact = cluster_fact(cluster, "all_to_all_us")
    return fact.value, fact.source_ids


def _bus_rate(r: ExchangeTime) -> float | None:
    """Rate of a gathering exchange in terms of the link, in GB/s: as printed, or from bytes and time."""
    if r.busbw_gbs is not None or not (r.message_bytes and r.time_us and r.cards):
        return r.busbw_gbs
    return convert(r.message_bytes / r.time_us * (r.cards - 1) / r.cards, "MB/s", "GB/s")  # B/us are MB/s


def network_between(w: World, c: Claim) -> tuple[Part, ...]:
    """The handing over from stage to stage at three rates, in the article's layout without EP."""
    asked, known = w.asked(w.layout_plain, w.workload.concurrency), w.numbers[HOP_RATE]

    def output(key: str) -> float:
        rate = known.value * w.said(f"A19.{key}", "GB/s") / w.said("A19.network_card", "GB/s")
        return answer(asked, {**w.numbers, HOP_RATE: replace(known, value=rate)}).output_tps

    base, fast, slow = (output(key) for key in ("network_card", "faster_card", "too_slow"))
    gbit = {key: f"{w.said(f'A19.{key}', 'Gb/s'):.0f}" for key in ("network_card", "faster_card", "too_slow")}
    first = (
        f"At {gbit['network_card']} Gb/s the hand-over between servers is no limit: {gbit['faster_card']} give "
        f"{fast / base:.3f} times the output."
    )
    second = (
        f"At {gbit['too_slow']} Gb/s {slow / base:.2f} of the output is left in a layout that only hands over; "
        "one that "
        "exchanges experts between servers would lose more."
    )
    return (
        decided(first, fast / base < 1 + SMALL, w.speed_sources),
        decided(second, slow / base < HALF, w.speed_sources, core=False),
    )


def exchange_between(w: World, c: Claim) -> tuple[Part, ...]:
    """The measured exchange of tokens inside a server and between four."""
    inside, across = (all_to_all("h200", n) for n in (w.cluster.cards_per_node, w.cluster.cards))
    tokens = max(set(inside.us) & set(across.us))
    one, many, moe = inside.us[tokens], across.us[tokens], w.k3.mlps.count("moe")
    says = (
        f"Measured there and back with {tokens} tokens a card: {shown(one, 'us')} in a server, "
        f"{shown(many, 'us')} over "
        f"{w.cluster.nodes}, {many / one:.1f} times as long; over {moe} layers {shown(one * moe / KILO, 'ms')} against "
        f"{shown(many * moe / KILO, 'ms')}."
    )
    return (decided(says, many / one > 1 + SMALL, [*inside.sources, *across.sources, *w.k3.sources]),)


def exchange_bottleneck(w: World, c: Claim) -> tuple[Part, ...]:
    """What exchanges take of a step, in the layout without EP and with all experts spread over all cards."""
    spread = f"tp{w.cluster.cards},ep{w.cluster.cards}"
    shares, most = {}, {}
    for layout in (w.layout_plain, spread):
        terms = step_terms(w.asked(layout, w.workload.concurrency), w.numbers)
        shares[layout], most[layout] = terms[EXCHANGE] / sum(terms.values()), max(terms, key=terms.__getitem__)
    across, sources = _exchange_us(KIN)
    whole = across * w.k3.mlps.count("moe") / KILO
    of_step = {layout: shown(PER_CENT * share, "%") for layout, share in shares.items()}
    first = (
        "With experts on other cards each token's row travels there and back: "
        f"{shown(whole, 'ms')} a pass over {w.cluster.nodes} servers, measured on H200."
    )
    second = (
        f"A pipeline of servers needs no such trip: exchanges take {of_step[w.layout_plain]} of a step as "
        f"{w.layout_plain} and {of_step[spread]} as {spread}; most is {most[w.layout_plain]}."
    )
    return (
        decided(first, whole > 0, [*sources, *w.k3.sources]),
        decided(second, shares[w.layout_plain] > HALF, w.speed_sources),
    )


def nvlink_measured(w: World, c: Claim) -> tuple[Part, ...]:
    """Rates of collectives among eight H20 of the larger memory, both ways and as the tests print them."""
    kinds = ("all_gather", "reduce_scatter")
    cards = w.cluster.cards_per_node
    rows = [r for r in exchange_times() if (r.device, r.cards, r.use) == ("h20-141", cards, "yes")]
    rows = [r for r in rows if r.collective in kinds]
    largest = max(r.message_bytes or 0 for r in rows)
    rates = sorted(rate for r in rows if r.message_bytes == largest and (rate := _bus_rate(r)))
    sources = [x for r in rows for x in r.source_ids]
    stated = w.said("A47.nvlink_measured", "GB/s")
    first = f"Eight H20 reached {shown(rates[-1], 'GB/s')} each way, or {shown(2 * rates[-1], 'GB/s')} both ways."
    second = f"A test prints one way, so that {rates[-1]:.0f} is sound and nobody sees {stated:.0f}."
    both = Range(2 * rates[-1], 2 * rates[0], 2 * rates[-1])
    return (
        number(c, first, floor(stated), both, "GB/s", sources, grade="measured"),
        number(c, second, floor(stated), point(rates[-1]), "GB/s", sources, core=False, grade="measured"),
    )


def nic_measured(w: World, c: Claim) -> tuple[Part, ...]:
    """One network card of 400 Gb/s, as measured."""
    row = next(r for r in exchange_times() if (r.collective, r.nodes, r.use) == ("send_receive", 2, "yes"))
    rate = row.algbw_gbs if row.busbw_gbs is None else row.busbw_gbs
    says = f"Measured between two nodes: {shown(rate, 'GB/s', ',.1f')} a network card." if rate else "Not measured."
    said, found = w.span("A48.one_way", "GB/s"), point(rate) if rate else None
    return (number(c, says, said, found, "GB/s", row.source_ids, grade="measured"),)


def slow_network(w: World, c: Claim) -> tuple[Part, ...]:
    """Whether a measured case had a network that was slow for such a reason."""
    slow = [r for r in exchange_times() if r.use == "no" and (r.nodes or 0) > 1]
    says = (
        f"{len(slow)} measured exchanges between nodes were reported as too slow although each network card ran at its "
        "full rate; one deployment of K3 ran with InfiniBand off."
    )
    return (decided(says, bool(slow), [*(x for r in slow for x in r.source_ids), "llmd_k3_h100_august"]),)


def superpod_links(w: World, c: Claim) -> tuple[Part, ...]:
    """A card's link in a superpod, and the exchange over 64 cards beside that over eight servers."""
    link, sources = device_range("gb200", "nvlink_unidirectional", "TB/s")
    pod, own_sources = _exchange_us("gb200-nvl72-64")
    servers, others = _exchange_us("h200x64")
    both = 2 * link.value
    first = f"A GB200 has {shown(both, 'TB/s', ',.1f')} both ways, {shown(link.value, 'TB/s', ',.1f')} each."
    second = f"An exchange over 64 of them took {shown(pod, 'us')}, over eight servers of H200 {shown(servers, 'us')}."
    return (
        number(c, first, floor(w.said("B17.bandwidth", "TB/s")), point(both), "TB/s", sources),
        decided(second, pod < servers, [*own_sources, *others]),
    )


def measure_exchange(w: World, c: Claim) -> tuple[Part, ...]:
    """Whether such tests found faults, and whether the best layout exchanges at all."""
    faults = [r for r in exchange_times() if r.use == "no"]
    best = w.ranked[0].candidate.plan.layout
    second = (
        f"For batches the best layout, {best}, sends no token to an expert elsewhere: all-reduces and the "
        "hand-over between "
        "servers are what to measure."
        if best.ep == 1
        else f"For batches the best layout is {best}."
    )
    return (
        decided(
            f"{len(faults)} of the exchanges in this book's tables were faults that such a test found.",
            bool(faults),
            [x for r in faults for x in r.source_ids],
        ),
        decided(second, best.ep > 1, w.speed_sources, core=False),
    )


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        network_between,
        exchange_between,
        exchange_bottleneck,
        nvlink_measured,
        nic_measured,
        slow_network,
        superpod_links,
        measure_exchange,
    )
}
