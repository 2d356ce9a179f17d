"""Claims on other ways: main memory, fewer bits or experts, FP8, a pilot, the order of work, how many cards."""

from __future__ import annotations

from k3lib.choose import alternatives as ch
from k3lib.choose import ways as wy
from k3lib.claims.verdict import Part, decided, floor, number
from k3lib.claims.words import LITTLE, SMALL, kept_of, shown
from k3lib.claims.world import LEAST, RULES, Check, World
from k3lib.facts.claims import Claim
from k3lib.facts.variants import quality, variants
from k3lib.ranges import point
from k3lib.units import convert

OF_HOSTS = ("kt_docs", "k3lib_assumed")


def _outside_cards(w: World) -> tuple[bool, bool | None, str]:
    """Experts in a server's main memory: whether it works at all, whether not as a service (None: open), in words."""
    found, least = w.in_memory
    verdict = wy.in_memory_verdict(found, least)
    works = not found.reason and verdict != "does not fit its memory"
    return works, None if verdict.startswith("open") else verdict == "offline only", verdict


def host_memory(w: World, c: Claim) -> tuple[Part, ...]:
    """The sum over four hosts, and what experts in main memory are good for."""
    nodes = w.cluster.nodes
    low, high = (nodes * w.said(f"A11.host_memory_{end}", "TB") for end in ("low", "high"))
    works, offline, words = _outside_cards(w)
    found = w.in_memory[0]
    one = found.points[found.best][0] if works and found.points else None
    first = f"{nodes} hosts have {shown(low, 'TB', ',.1f')} to {shown(high, 'TB', ',.1f')}."
    second = "One server with the larger memory holds K3" if works else "Even with it one server does not hold K3"
    second += (
        f"; by what is supposed of hosts one client gets a token in {shown(one.tpot_ms.value, 'ms')}." if one else "."
    )
    return (
        number(c, first, w.span("A11.hosts", "TB"), point(high), "TB", c.source_ids),
        decided(second, works, OF_HOSTS),
        decided(f"As a service for conversations: {words}.", offline, OF_HOSTS),
    )


def offload_option(w: World, c: Claim) -> tuple[Part, ...]:
    """One server with experts in main memory, and what it is good for."""
    works, offline, words = _outside_cards(w)
    says = (
        f"One server of {w.cluster.cards_per_node} H20 and 1 TB of main memory "
        f"{'holds' if works else 'does not hold'} K3."
    )
    return (
        decided(says, works, OF_HOSTS),
        decided(
            f"As a service for conversations: {words}.", None if offline is None else not offline, OF_HOSTS, core=False
        ),
    )


def fp8_instead(w: World, c: Claim) -> tuple[Part, ...]:
    """Whether FP8 fits with short requests, and whether it could be better than what it is made from."""
    least, original = w.fp8[1], variants()["mxfp4"]
    if least.fits:
        first = f"With requests of {shown(LEAST['max_model_len'], 'tokens')} FP8 fits as {least.layout}."
    else:
        first = "FP8 does not fit, however short the requests."
    second = (
        "The release itself is in four bits: a copy in eight holds the same values or rounds them, and cannot "
        "be better."
    )
    return (
        decided(first, least.fits, RULES),
        decided(second, original.grade != "exact", original.source_ids),
    )


def reduced_pilot(w: World, c: Claim) -> tuple[Part, ...]:
    """What one server holds, and what it cannot try."""
    part = wy.one_server(w.place)
    first = (
        f"One server holds {part.layers} of {part.of_layers} layers, or {part.experts} of {part.of_experts} experts of "
        "each: files, kernels and memory can be tried."
    )
    second = "The network between servers cannot be, nor the answers."
    return (
        decided(first, part.layers > 0, [*w.k3.sources, *RULES]),
        decided(second, w.cluster.nodes == 1, RULES, core=False),
    )


def order_of_work(w: World, c: Claim) -> tuple[Part, ...]:
    """Whether there is anything to quantise, and what the layout decides."""
    saves = w.as_form("int4").bytes < w.account.bytes
    outputs = [one.served.output_tps for one in w.ranked if one.served]
    spread = max(outputs) / min(outputs)
    first = (
        "The first step falls away: the release is in four bits." if not saves else "INT4 is smaller than the release."
    )
    second = f"The layout does come before the cache: the best gives {spread:.1f} times the output of the worst."
    return (
        decided(first, saves, w.k3.sources),
        decided(second, spread > 1 + SMALL, w.speed_sources),
    )


def superpod_memory(w: World, c: Claim) -> tuple[Part, ...]:
    """The product, and the fewest cards of that memory that hold K3."""
    cards, each = w.said("B18.cards"), w.said("B18.card_memory", "TB")
    fewest = ch.released_cards(w.place, "h100") or 0
    gb = shown(convert(each, "TB", "GB"), "GB")
    first = f"{cards:.0f} times {gb} is {shown(cards * each, 'TB', ',.2f')}."
    second = f"To hold K3, {fewest} cards of {gb} are enough by the ledger."
    return (
        number(c, first, floor(w.said("B18.total_memory", "TB")), point(cards * each), "TB", c.source_ids),
        decided(second, fewest >= cards, [*w.k3.sources, *RULES]),
    )


def fewer_bits(w: World, c: Claim) -> tuple[Part, ...]:
    """Cards that three bits would save, and whether any result on a task is known."""
    bits, cards = w.said("B22.low_bits"), w.bits_cards
    small = {n for n, row in variants().items() if row.bits_per_weight is not None and row.bits_per_weight <= bits}
    known = [q for q in quality() if q.variant_id in small and q.nature == "task" and q.baseline]
    first = f"{bits:g} bits would need {shown(cards, 'cards')} of the kind H20 or more, instead of {w.released_cards}."
    second = f"{len(known) or 'No'} results on tasks are published of K3 in so few bits or fewer."
    holds = min(map(kept_of, known)) >= LITTLE if known else None
    return (
        decided(first, 0 < cards < w.released_cards, [*w.k3.sources, *RULES]),
        decided(second, holds, ["unsloth_k3_gguf", "waste_k3"]),
    )


def fewer_experts(w: World, c: Claim) -> tuple[Part, ...]:
    """Cards that fewer experts would save, and what is known of the answers."""
    kept = round(w.said("B23.experts_kept"))
    name = next((n for n, row in variants().items() if row.experts == kept), "")
    need = ch.variant_need(w.place, name) if name else None
    level = ch.answers(name).level if name else "none"
    if need:
        first = (
            f"{kept} experts would need {shown(need.cards or 0, 'cards')} of the kind H20 instead of "
            f"{w.released_cards}."
        )
    else:
        first = f"A model with {kept} experts is not in this book's tables."
    second = f"Of answers with so few experts is known: {ch.LEVEL_WORDS[level]}."
    return (
        decided(first, bool(need.saved) if need else None, [*w.k3.sources, *RULES]),
        decided(second, True if level == "task" else None, ["k3_mlx", "cerebras_reap"]),
    )


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        host_memory,
        offload_option,
        fp8_instead,
        reduced_pilot,
        order_of_work,
        superpod_memory,
        fewer_bits,
        fewer_experts,
    )
}
