"""Claims on the budget of one card and on caches: set beside the ledger."""

from __future__ import annotations

from k3lib.claims.verdict import Part, decided, floor, number
from k3lib.claims.words import shown
from k3lib.claims.world import DEVICE, LEAST, RULES, Check, World
from k3lib.deploy.plan import Plan
from k3lib.deploy.variants import reserve_lines
from k3lib.facts.catalog import device_fact
from k3lib.facts.claims import Claim
from k3lib.ranges import Range, point, total
from k3lib.units import GIBI, GIGA, TERA


def _per_card(plan: Plan) -> Range:
    """Weights of a card in GB: of the tightest stage, from those of the lightest."""
    each = [stage.weights / GIGA for stage in plan.stages]
    return Range(max(each), min(each), max(each))


def reserve_gb(plan: Plan, *, outside: bool) -> Range:
    """Working memory of the tightest card, within the engine's share or outside it, in GB."""
    lines = [line for line in reserve_lines(plan) if line.outside == outside]
    return total(Range(line.bytes / GIGA, line.low / GIGA, line.high / GIGA) for line in lines)


def _share(plan: Plan) -> float:
    """What the engine manages of a card, in GB."""
    return plan.capacity * plan.utilisation / GIGA


def _kept_layers(w: World) -> str:
    return f"{w.k3.mixers.count('mla')} of {len(w.k3.mixers)}"


def fp8_per_card(w: World, c: Claim) -> tuple[Part, ...]:
    """Weights of the tightest card with experts in 8-bit blocks."""
    found = _per_card(w.plan("fp8"))
    ends = f"{shown(found.low, 'GB', ',.1f')} to {shown(found.high, 'GB', ',.1f')}"
    says = f"With copies, scales and uneven stages a card holds {ends}."
    return (number(c, says, w.point("A21.fp8_per_card", "GB"), found, "GB", [*w.k3.sources, *RULES]),)


def int4_per_card(w: World, c: Claim) -> tuple[Part, ...]:
    """Weights of the tightest card as released."""
    found = _per_card(w.base)
    ends = f"{shown(found.low, 'GB', ',.1f')} to {shown(found.high, 'GB', ',.1f')}"
    says = f"As released a card holds {ends}: scales, a 16-bit rest, copies and uneven stages."
    return (number(c, says, w.point("A22.int4_per_card", "GB"), found, "GB", [*w.k3.sources, *RULES]),)


def cache_budget(w: World, c: Claim) -> tuple[Part, ...]:
    """Whether the room is there, the sum, and how much of it holds other tokens."""
    free = w.base.stages[w.base.tightest].free[0] / GIGA
    each, cards, copies = w.said("A23.kv_per_card", "GB"), w.said("A05.cards"), w.base.layout.tp
    said = w.point("A23.kv_all_cards", "GB")
    distinct = cards * each / copies
    room = f"The ledger leaves {shown(free, 'GB', ',.1f')} of the tightest card for caches."
    product = f"{cards:.0f} times {shown(each, 'GB')} is {shown(cards * each, 'GB')},"
    copied = f"but {copies} cards of a stage hold the same tokens, so that {shown(distinct, 'GB')} of it are distinct."
    return (
        decided(room, free >= each, RULES),
        number(c, product, said, point(cards * each), "GB", c.source_ids),
        number(c, copied, said, point(distinct), "GB", [*w.k3.sources, *RULES], core=False),
    )


def activations(w: World, c: Claim) -> tuple[Part, ...]:
    """Activations, buffers, runtime, graphs and workspaces of the tightest card."""
    inside, outside = (reserve_gb(w.base, outside=x) for x in (False, True))
    found = total([inside, outside])
    says = (
        f"The ledger has {shown(found.value, 'GB', ',.1f')} ({found.low:.1f} to {found.high:.1f}), "
        f"{shown(outside.value, 'GB', ',.1f')} of it outside the engine's share."
    )
    return (number(c, says, w.span("A24.activations", "GB"), found, "GB", RULES),)


def spare(w: World, c: Claim) -> tuple[Part, ...]:
    """What lies outside the engine's share, less what graphs and workspaces take of it."""
    left = w.base.capacity / GIGA - _share(w.base)
    taken = reserve_gb(w.base, outside=True)
    found = Range(left - taken.value, left - taken.high, left - taken.low)
    says = (
        f"Outside a share of {w.base.utilisation:.2f} lie {shown(left, 'GB', ',.1f')}; graphs and workspaces leave "
        f"{shown(found.value, 'GB', ',.1f')} of them."
    )
    return (number(c, says, floor(w.said("A25.spare_per_card", "GB")), found, "GB", RULES),)


def used_of_card(w: World, c: Claim) -> tuple[Part, ...]:
    """What the engine takes at the start, and what remains."""
    used, room = _share(w.base), w.base.capacity / GIGA
    first = f"The engine takes its share at the start: {shown(used, 'GB', ',.1f')} of {shown(room, 'GB', ',.1f')}."
    second = f"{shown(room - used, 'GB', ',.1f')} remain."
    return (
        number(c, first, w.span("A26.used", "GB"), point(used), "GB", RULES),
        number(c, second, w.span("A26.left", "GB"), point(room - used), "GB", RULES),
    )


def cache_tokens(w: World, c: Claim) -> tuple[Part, ...]:
    """What the article's own 20 GB of a card hold, and the longest request."""
    each = w.said("A23.kv_per_card", "B")
    caches = w.plan(kv_memory_bytes=(each,)).caches
    tokens, longest = (caches.kv_tokens, caches.max_context) if caches else (0, 0)
    sources = [*w.k3.sources, *RULES]
    first = (
        f"{shown(each / GIGA, 'GB')} of a card hold {shown(tokens, 'tokens', ',d')} of requests as long as the "
        f"article's: only {_kept_layers(w)} layers keep tokens."
    )
    second = f"One request can have {shown(longest, 'tokens', ',d')}"
    second += ", the model's own limit." if longest == w.k3.longest else "."
    return (
        number(c, first, w.span("A27.tokens", "tokens"), point(tokens), "tokens", sources),
        decided(second, longest < w.said("A27.tokens_high"), sources),
    )


def fp8_cannot_run(w: World, c: Claim) -> tuple[Part, ...]:
    """FP8 in every legal layout, as the engine comes and with the most that settings give."""
    usual, least = w.fp8
    loads = w.as_form("fp8").bytes < w.cluster.cards * w.shown_memory()
    first = "The files are smaller than the memory of all cards." if loads else "The cards are too small for the files."
    if usual.fits:
        second = f"As the engine comes {usual.layout} fits."
    else:
        second = f"As the engine comes no layout fits: {shown(-usual.free_gib, 'GiB', ',.1f')} a card are missing."
    if least.fits:
        third = (
            f"{least.layout} with a share of {LEAST['utilisation']:.2f}, passes of {LEAST['chunk_tokens']:,} and "
            f"requests of {LEAST['max_model_len']:,} tokens fits and leaves "
            f"{shown(least.free_gib, 'GiB', ',.1f')} a card."
        )
    else:
        third = "Nor does any with small passes and short requests."
    return (
        decided(first, loads, w.k3.sources),
        decided(second, not usual.fits, RULES),
        decided(third, not least.fits, RULES, core=False),
    )


def cache_formula(w: World, c: Claim) -> tuple[Part, ...]:
    """Whether a request's memory is proportional to its tokens."""
    token, state = w.account.kv_bytes_per_token, w.account.state_bytes_per_sequence
    first = f"A token takes {shown(token, 'B', ',d')} in {_kept_layers(w)} layers."
    second = (
        f"The others keep a state of {shown(state / GIBI, 'GiB', ',.2f')} for each request, however short: as much as "
        f"{shown(state / token, 'tokens')}."
    )
    return (
        decided(first, token > 0, w.k3.sources),
        decided(second, state == 0, w.k3.sources, core=False),
    )


def memory_needed(w: World, c: Claim) -> tuple[Part, ...]:
    """Weights with copies and working memory on all cards of the plan, before any cache."""
    weights = sum(stage.weights for stage in w.base.stages) * w.base.layout.tp / TERA
    working = total(reserve_gb(w.base, outside=x) for x in (False, True)).value * GIGA * w.cluster.cards / TERA
    room = w.cluster.cards * w.base.capacity / TERA
    says = (
        f"On the plan weights with copies take {shown(weights, 'TB', ',.2f')}, with working memory "
        f"{shown(weights + working, 'TB', ',.2f')} before any cache; the cards have {shown(room, 'TB', ',.2f')}."
    )
    sources = [*w.k3.sources, *RULES, *device_fact(DEVICE, "memory_shown").source_ids]
    return (number(c, says, w.span("B10.needed", "TB"), point(weights + working), "TB", sources),)


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        fp8_per_card,
        int4_per_card,
        cache_budget,
        activations,
        spare,
        used_of_card,
        cache_tokens,
        fp8_cannot_run,
        cache_formula,
        memory_needed,
    )
}
