"""Claims on what the weights take: set beside the account of the release and of its copies in other formats."""

from __future__ import annotations

from k3lib.account.storage import NIBBLES_PER_BYTE
from k3lib.claims.verdict import Part, decided, floor, number
from k3lib.claims.words import shown
from k3lib.claims.world import DEVICE, RULES, Check, World
from k3lib.facts.catalog import device_fact
from k3lib.facts.claims import Claim
from k3lib.facts.variants import PER_CENT
from k3lib.ranges import Range, point
from k3lib.units import GIGA, TERA, UNITS


def _left(w: World, weights: float, unit: str) -> Range:
    """What weights leave of the plan's cards: by what the driver shows, from what the cards' name says."""
    cards = w.said("A05.cards")
    nominal, seen = (cards * w.shown_memory(name) - weights for name in (True, False))
    scale = float(UNITS[unit].factor)
    return Range(seen / scale, min(nominal, seen) / scale, seen / scale)


def _logs() -> tuple[str, ...]:
    return device_fact(DEVICE, "memory_shown").source_ids


def _size(w: World, c: Claim, form: str, key: str, words: str) -> tuple[float, Part]:
    found = float(w.as_form(form).bytes)
    says = f"{words} {shown(found / TERA, 'TB', ',.2f')}."
    return found, number(c, says, w.point(key, "TB"), point(found / TERA), "TB", w.k3.sources)


def weights_fp16(w: World, c: Claim) -> tuple[Part, ...]:
    """All weights in 16 bits, against the memory of the plan."""
    size, part = _size(w, c, "bf16", "A06.fp16_weights", "By the account a copy in 16 bits takes")
    room = w.said("A05.cards") * w.shown_memory()
    says = f"The cards show {shown(room / TERA, 'TB', ',.2f')}"
    says += ", so it does not go in." if size > room else ", which holds it."
    return part, decided(says, size > room, _logs())


def weights_fp8(w: World, c: Claim) -> tuple[Part, ...]:
    """Experts in 8-bit blocks, against the memory of the plan."""
    size, part = _size(w, c, "fp8", "A07.fp8_weights", "Experts in 8-bit blocks make files of")
    left = _left(w, size, "GB")
    says = (
        f"They leave {shown(left.low, 'GB')} of the nominal memory and {shown(left.high, 'GB')} of what drivers show, "
        "before copies."
    )
    return part, number(c, says, w.point("A07.fp8_left", "GB"), left, "GB", _logs())


def weights_int4(w: World, c: Claim) -> tuple[Part, ...]:
    """The released 4-bit files, against the memory of the plan."""
    size = float(w.account.bytes)
    left = _left(w, size, "TB")
    first = f"The released 4-bit files take {shown(size / TERA, 'TB', ',.3f')}: they have scales and a 16-bit rest too."
    second = (
        f"They leave {shown(left.low, 'TB', ',.2f')} of the nominal memory and {shown(left.high, 'TB', ',.2f')} "
        "of what drivers show."
    )
    return (
        number(c, first, w.point("A08.int4_weights", "TB"), point(size / TERA), "TB", w.k3.sources),
        number(c, second, w.point("A08.int4_left", "TB"), left, "TB", _logs()),
    )


def memory_by_total(w: World, c: Claim) -> tuple[Part, ...]:
    """What the cards of the plan hold of the experts, against what a token uses."""
    held = sum(stage.weights * w.base.layout.tp for stage in w.base.stages)
    used = w.account.active_params / w.account.params
    first = f"The cards of the plan hold {shown(held / TERA, 'TB', ',.2f')}, all experts among it."
    second = f"A token computes with {shown(PER_CENT * used, '%', '.1f')} of the parameters."
    return (
        decided(first, held >= w.account.bytes, [*w.k3.sources, *RULES]),
        decided(second, used < 1, w.k3.sources),
    )


def original_checkpoint(w: World, c: Claim) -> tuple[Part, ...]:
    """What was released, and what a copy in 16 bits would take."""
    size, copy = w.account.bytes / TERA, w.as_form("bf16").bytes / TERA
    says = (
        f"The original files are {shown(size, 'TB', ',.2f')} in MXFP4. Nobody published FP16; it would hold the same "
        f"values in {shown(copy, 'TB', ',.2f')}."
    )
    said = floor(w.said("A12.fp16_checkpoint_at_least", "TB"))
    return (number(c, says, said, point(size), "TB", w.k3.sources),)


def conversion(w: World, c: Claim) -> tuple[Part, ...]:
    """Whether a conversion to INT4 saves bytes, and whether a server of eight holds what is converted."""
    size, copy, released = w.as_form("int4").bytes, w.as_form("bf16").bytes, w.account.bytes
    room = w.cluster.cards_per_node * w.shown_memory()
    first = (
        f"K3 is released in four bits: {shown(released / GIGA, 'GB')}. INT4 in groups of 32 takes "
        f"{shown(size / GIGA, 'GB')}"
    )
    first += ", so that a conversion saves nothing." if size >= released else "."
    second = (
        f"Files in 16 bits would take {shown(copy / TERA, 'TB', ',.1f')}; eight cards have "
        f"{shown(room / TERA, 'TB', ',.1f')}."
    )
    return (
        decided(first, size < released, w.k3.sources),
        decided(second, copy < room, [*w.k3.sources, *_logs()]),
    )


def four_bits(w: World, c: Claim) -> tuple[Part, ...]:
    """Every parameter at four bits."""
    found = w.account.params / NIBBLES_PER_BYTE / GIGA
    says = f"All {shown(w.account.params / TERA, 'trillion parameters', ',.2f')} at four bits are {shown(found, 'GB')}."
    return (number(c, says, w.point("B07.four_bit_weights", "GB"), point(found), "GB", w.k3.sources),)


def scales(w: World, c: Claim) -> tuple[Part, ...]:
    """Scales of the released files."""
    found = w.account.scale_bytes / GIGA
    says = f"The released scales take {shown(found, 'GB', ',.1f')}: only the experts have them."
    return (number(c, says, w.point("B08.scales", "GB"), point(found), "GB", w.k3.sources, grade="exact"),)


def weights_and_scales(w: World, c: Claim) -> tuple[Part, ...]:
    """All tensors of the release."""
    found, rest = w.account.bytes / GIGA, (w.account.bytes - w.account.routed_bytes) / GIGA
    says = (
        f"All tensors take {shown(found, 'GB', ',.1f')}: {shown(rest, 'GB')} beside the experts are not in four bits."
    )
    said = w.point("B09.weights_and_scales", "GB")
    return (number(c, says, said, point(found), "GB", w.k3.sources, grade="exact"),)


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        weights_fp16,
        weights_fp8,
        weights_int4,
        memory_by_total,
        original_checkpoint,
        conversion,
        four_bits,
        scales,
        weights_and_scales,
    )
}
