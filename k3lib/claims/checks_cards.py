"""Claims on cards and their links: set beside data sheets, device files and what drivers show."""

from __future__ import annotations

from k3lib.choose import alternatives as ch
from k3lib.claims.verdict import Part, decided, number
from k3lib.claims.words import shown
from k3lib.claims.world import DEVICE, RULES, Check, World, device_range
from k3lib.facts.claims import Claim
from k3lib.ranges import point
from k3lib.units import GIGA, convert


def device_figure(w: World, c: Claim) -> tuple[Part, ...]:
    """A figure of the card's data sheet; the quantity has the same name in both tables."""
    name = next(row.quantity for row in w.figures.values() if row.claim_id == c.claim_id)
    unit = w.figures[f"{c.claim_id}.{name}"].unit
    found, sources = device_range(DEVICE, name, unit)
    says = f"Data sheets and device files have {shown(found.value, unit, ',.4g')}"
    says += f", up to {shown(found.high, unit, ',.4g')}." if found.high > found.value else "."
    return (number(c, says, w.point(f"{c.claim_id}.{name}"), found, unit, sources, grade="measured"),)


def card_memory(w: World, c: Claim) -> tuple[Part, ...]:
    """96 GB is the name; the driver shows as many GiB, nearly."""
    found, sources = device_range(DEVICE, "memory_nominal", "GB")
    seen, logs = device_range(DEVICE, "memory_shown", "GB")
    gib = convert(seen.value, "GB", "GiB")
    said = w.point("A01.memory_nominal", "GB")
    first = f"The data sheet has {shown(found.value, 'GB')}."
    second = (
        f"The driver shows {shown(seen.value, 'GB', ',.1f')}, or {shown(gib, 'GiB', ',.1f')}: "
        "the name counts in GiB, nearly."
    )
    return (
        number(c, first, said, found, "GB", sources),
        number(c, second, said, seen, "GB", logs, core=False),
    )


def cluster_memory(w: World, c: Claim) -> tuple[Part, ...]:
    """The product, and the same of what the driver shows."""
    cards, each = w.said("A05.cards"), w.said("A05.card_memory", "GB")
    said = w.point("A05.total_memory", "GB")
    seen = cards * w.shown_memory() / GIGA
    first = f"{cards:.0f} times {shown(each, 'GB')} is {shown(cards * each, 'GB')}."
    second = f"Drivers show {shown(seen, 'GB')} in all."
    logs = device_range(DEVICE, "memory_shown", "GB")[1]
    return (
        number(c, first, said, point(cards * each), "GB", c.source_ids),
        number(c, second, said, point(seen), "GB", logs, core=False),
    )


def nvlink(w: World, c: Claim) -> tuple[Part, ...]:
    """Both ways together, and how many cards it joins."""
    one_way, sources = device_range(DEVICE, "nvlink_unidirectional", "GB/s")
    joined, own_sources = device_range(DEVICE, "scale_up_domain", "cards")
    both = 2 * one_way.value
    first = f"It is {shown(one_way.value, 'GB/s')} each way, {shown(both, 'GB/s')} both ways together."
    second = f"It joins {shown(joined.value, 'cards')}."
    return (
        number(c, first, w.point("A14.nvlink_both_ways", "GB/s"), point(both), "GB/s", sources, grade="measured"),
        number(c, second, w.point("A14.joined_cards"), joined, "cards", own_sources),
    )


def l20_for_h20(w: World, c: Claim) -> tuple[Part, ...]:
    """Data sheets, the two ratios, and what K3 itself takes."""
    memory, sources = device_range("l20", "memory_nominal", "GB")
    rate, own_sources = device_range("l20", "hbm_bandwidth", "GB/s")
    by_memory = device_range(DEVICE, "memory_nominal", "GB")[0].value / memory.value
    by_rate = device_range(DEVICE, "hbm_bandwidth", "GB/s")[0].value / rate.value
    fewest = ch.released_cards(w.place, "l20")
    behind = [*sources, *own_sources]
    ratios = f"By bandwidth one H20 is {by_rate:.1f} of them, by memory {by_memory:.1f}."
    if fewest:
        last = f"K3 needs {shown(fewest, 'cards')} of them where {w.released_cards} H20 do. An L20 has no NVLink."
    else:
        last = "K3 needs more of them than were tried. An L20 has no NVLink."
    said = w.point("A13.l20_for_one_h20")
    return (
        number(c, f"An L20 has {shown(memory.value, 'GB')}", w.point("A13.l20_memory", "GB"), memory, "GB", sources),
        number(c, f"and {shown(rate.value, 'GB/s')}.", w.point("A13.l20_bandwidth", "GB/s"), rate, "GB/s", own_sources),
        number(c, ratios, said, point(by_rate), "cards", behind),
        decided(last, bool(fewest), [*behind, *RULES], core=False),
    )


CHECKS: dict[str, Check] = {
    check.__name__: check for check in (device_figure, card_memory, cluster_memory, nvlink, l20_for_h20)
}
