"""What corrections are worth to somebody who buys: each in money, by the prices of the scenario, and ranked by that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from k3lib.choose import alternatives as ch
from k3lib.claims.checks_price import PRICED, stated_sum, storage_line
from k3lib.claims.checks_settings import graphs_line, kept_without_graphs
from k3lib.claims.verdict import CONFIRMED, Finding
from k3lib.claims.words import MANY, shown
from k3lib.claims.world import KIN, World
from k3lib.cost.own import Ownership, own
from k3lib.facts.prices import price
from k3lib.ranges import Range, point, times
from k3lib.units import GIBI, GIGA, MEGA, convert

TEN = 10


@dataclass(frozen=True)
class Correction:
    """claims: those that it corrects. what: what is so, in a sentence. cny: what acting on the articles would tie up or
    lose, in CNY at once. gib: memory of each card, in GiB; cards: of the plan's kind; None where it is not about them.
    """

    name: str
    claims: tuple[str, ...]
    what: str
    cny: Range
    sources: tuple[str, ...]
    gib: float | None = None
    cards: float | None = None


def _less(above: Range, below: Range) -> Range:
    """One range less another whose ends are not known to go together; not below nothing."""
    ends = above.value - below.value, above.low - below.high, above.high - below.low
    return Range(*(max(0.0, end) for end in ends))


def _held(w: World) -> Ownership:
    return own(w.row, w.table)


def _card(w: World) -> Range:
    """What a card of the plan costs with all that belongs to it."""
    return times(_held(w).capex_cny, 1 / w.cluster.cards)


def _by_memory(w: World, size: float) -> tuple[float, float, Range]:
    """A size in B spread over the plan's cards: GiB of each, cards that hold so much, and their price."""
    cards = size / w.base.capacity
    return size / w.cluster.cards / GIBI, cards, times(_card(w), cards)


def superpod(w: World) -> Correction:
    """What the plan costs, instead of the sum that is named for production."""
    held, said = _held(w), point(price(PRICED["B30"], w.table).default)
    what = f"A superpod is no condition; {w.cluster.cards} H20 serve K3, and {w.released_cards} hold it."
    return Correction(
        "superpod",
        ("B18", "B30"),
        what,
        _less(said, held.capex_cny),
        held.sources,
        cards=w.said("B18.cards") - w.cluster.cards,
    )


def server_price(w: World) -> Correction:
    """The article's price of four servers less this project's."""
    one = stated_sum(w, PRICED["A17"])
    return Correction(
        "server-price",
        ("A16", "A17"),
        f"A server of eight H20 costs {shown(one.ours.value / MEGA, 'million CNY', ',.2f')}, "
        f"{one.ours.value / one.stated.value:.2f} of what is said.",
        times(_less(one.stated, one.ours), w.cluster.nodes),
        one.sources,
    )


def left_out(w: World) -> Correction:
    """What belongs to four servers beside them."""
    held = _held(w)
    servers = held.line("servers").cny
    found = Range(*(getattr(held.capex_cny, end) - getattr(servers, end) for end in ("value", "low", "high")))
    return Correction(
        "left-out",
        ("A18",),
        "Network, memory, storage, spares and integration come on top of four servers.",
        found,
        held.sources,
    )


def expert_parallelism(w: World) -> Correction:
    """The share of the plan's output that EP inside a server costs."""
    n = w.workload.concurrency
    lost = 1 - w.output_tps(w.layout, n) / w.output_tps(w.layout_plain, n)
    return Correction(
        "ep",
        ("A20",),
        f"Without EP inside a server the same cards give {1 / (1 - lost):.1f} times the output.",
        times(_held(w).capex_cny, max(0.0, lost)),
        (*w.speed_sources, *_held(w).sources),
        cards=lost * w.cluster.cards,
    )


def arithmetic(w: World) -> Correction:
    """H20 that give what as many H200 give, less what those cost."""
    kin = own(KIN, w.table)
    share = w.output_tps(w.layout_plain, MANY) / w.output_tps(w.layout_plain, MANY, KIN)
    needed = times(_held(w).capex_cny, 1 / share)
    what = (
        f"With {MANY} clients 32 H20 give {share:.2f} of 32 H200: their 4-bit kernels lack arithmetic. So many H20 as "
        "give the same cost more."
    )
    found = Range(needed.value - kin.capex_cny.value, needed.low - kin.capex_cny.low, needed.high - kin.capex_cny.high)
    found = Range(max(0.0, found.value), max(0.0, min(found.low, found.value)), max(0.0, found.high))
    return Correction(
        "arithmetic",
        ("A15", "A41"),
        what,
        found,
        (*w.speed_sources, *kin.sources),
        cards=w.cluster.cards / share - w.cluster.cards,
    )


def eager(w: World) -> Correction:
    """The share of the output that is lost without graphs."""
    lost, graphs = 1 - kept_without_graphs(w, MANY), graphs_line(w.base)
    return Correction(
        "eager",
        ("A37", "A45"),
        f"Eager mode saves {shown(graphs.gib, 'GiB', ',.1f')} a card and loses "
        f"{lost:.2f} of the output of {MANY} clients.",
        times(_held(w).capex_cny, max(0.0, lost)),
        (*w.speed_sources, *_held(w).sources),
        gib=graphs.gib,
        cards=lost * w.cluster.cards,
    )


def idle(w: World) -> Correction:
    """The share of the plan's output that so few requests leave unused."""
    most = round(w.said("A39.requests_high"))
    used = w.output_tps(w.layout_plain, most) / w.output_tps(w.layout_plain, w.workload.concurrency)
    return Correction(
        "few-requests",
        ("A39",),
        f"{most} requests at once use {used:.2f} of what the cards give to {w.workload.concurrency}.",
        times(_held(w).capex_cny, max(0.0, 1 - used)),
        (*w.speed_sources, *_held(w).sources),
        cards=(1 - used) * w.cluster.cards,
    )


def storage(w: World) -> Correction:
    """Storage beyond what is needed, at the price of a file system."""
    row = storage_line()
    held, item = _held(w).line("storage").cny, price("storage.filesystem", w.table)
    said = w.said("B19.file_system", "TB")
    each = Range(held.value / row.count, held.low / (row.low or row.count), held.high / (row.high or row.count))
    return Correction(
        "storage",
        ("A12", "B19"),
        f"{shown(row.count, 'TB')} are enough, not {shown(said, 'TB')}.",
        times(each, max(0.0, said - row.count)),
        tuple(dict.fromkeys((*row.source_ids, *item.source_ids))),
    )


def separation(w: World) -> Correction:
    """Cards that hold the weights a second time."""
    return Correction(
        "separation",
        ("B27",),
        f"Separate groups for prompts and answers hold all weights twice: {w.released_cards} cards more.",
        times(_card(w), w.released_cards),
        _held(w).sources,
        cards=w.released_cards,
    )


def eight_bits(w: World) -> Correction:
    """Servers that FP8 needs beyond those of the plan, for requests of the article's length."""
    need = ch.variant_need(w.place, "fp8")
    more = max(0, (need.cards or 0) - w.released_cards)
    size = w.as_form("fp8").bytes - w.account.bytes
    return Correction(
        "fp8",
        ("A28", "A35", "A51"),
        f"FP8 needs {need.cards or 0} H20 where the release needs {w.released_cards}, and cannot be better than it.",
        times(_card(w), more),
        _held(w).sources,
        gib=size / w.cluster.cards / GIBI,
        cards=more,
    )


def left_in_weights(w: World) -> Correction:
    """Scales, the 16-bit rest, copies and uneven stages on every card."""
    tight = max(stage.weights for stage in w.base.stages)
    gib, cards, cny = _by_memory(w, (tight - w.said("A22.int4_per_card", "B")) * w.cluster.cards)
    return Correction(
        "scales",
        ("A08", "A22", "B09"),
        f"Scales, 16-bit parts, copies and uneven stages add {shown(gib, 'GiB', ',.1f')} to a card.",
        cny,
        (*w.k3.sources, *_held(w).sources),
        gib,
        cards,
    )


def cache_copies(w: World) -> Correction:
    """Cache that holds the same tokens again on the other cards of a stage."""
    all_cards, copies = w.said("A23.kv_all_cards", "B"), w.base.layout.tp
    gib, cards, cny = _by_memory(w, all_cards * (1 - 1 / copies))
    return Correction(
        "cache-copies",
        ("A23",),
        f"Of {shown(convert(all_cards, 'B', 'GB'), 'GB')} of cache "
        f"{shown(all_cards / copies / GIGA, 'GB')} hold different tokens: tensor parallelism copies the rest.",
        cny,
        (*w.k3.sources, *_held(w).sources),
        gib,
        cards,
    )


def shown_memory(w: World) -> Correction:
    """Memory beyond the nominal figure, which the plan has for nothing."""
    more = w.cluster.cards * (w.shown_memory() - w.shown_memory(nominal=True))
    gib, cards, cny = _by_memory(w, more)
    return Correction(
        "gib",
        ("A01", "A05"),
        f"A card of 96 GB shows {shown(w.shown_memory() / GIGA, 'GB', ',.1f')}.",
        cny,
        ("deepep_h20_log", *_held(w).sources),
        gib,
        cards,
    )


ALL: tuple[Callable[[World], Correction], ...] = (
    superpod,
    server_price,
    left_out,
    expert_parallelism,
    arithmetic,
    eager,
    idle,
    storage,
    separation,
    eight_bits,
    left_in_weights,
    cache_copies,
    shown_memory,
)


def corrections(world: World, found: Mapping[str, Finding]) -> tuple[Correction, ...]:
    """Corrections of claims that are not plainly confirmed, the one worth most money first, at the prices' defaults."""
    made = [make(world) for make in ALL]
    alive = [one for one in made if any(found[c].verdict != CONFIRMED for c in one.claims)]
    return tuple(sorted(alive, key=lambda one: (-one.cny.value, one.name)))
