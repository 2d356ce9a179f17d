"""Claims on the model and on the one that article B sets beside it: counted from configurations and tensors."""

from __future__ import annotations

from k3lib.account import symbols as s
from k3lib.account.storage import DTYPE_BITS, NIBBLES_PER_BYTE
from k3lib.claims.verdict import Part, decided, floor, number
from k3lib.claims.words import shown
from k3lib.claims.world import DEVICE, ENGINE, REFERENCE, RULES, Check, World
from k3lib.deploy.caches import Settings
from k3lib.deploy.plan import make_plan
from k3lib.engines.layout import Cluster, parse_layout
from k3lib.facts.catalog import device_fact
from k3lib.facts.claims import Claim
from k3lib.facts.variants import PER_CENT
from k3lib.models.model import load_model
from k3lib.models.weights import weight_account
from k3lib.ranges import point
from k3lib.units import BITS_PER_BYTE, GIGA, TERA

OF_REFERENCE = ("hub_deepseek_v3", "atlas_deepseek")


def active_share(w: World, c: Claim) -> tuple[Part, ...]:
    """All parameters over the active ones."""
    times = w.account.params / w.account.active_params
    says = (
        f"Of {shown(w.account.params / TERA, 'trillion parameters', ',.2f')} a token uses "
        f"{shown(w.account.active_params / GIGA, 'billion parameters')}: one part in {times:.0f}."
    )
    return (number(c, says, w.span("A10.total_over_active"), point(times), "1", w.k3.sources),)


def parameters(w: World, c: Claim) -> tuple[Part, ...]:
    """Counted tensor by tensor."""
    found, unit = w.account.params / TERA, "trillion parameters"
    says = f"The tensors hold {shown(found, unit, ',.3f')}."
    return (number(c, says, w.point("B01.total_params"), point(found), unit, w.k3.sources, grade="exact"),)


def experts(w: World, c: Claim) -> tuple[Part, ...]:
    """The two counts and their ratio."""
    total, used = w.k3.values[s.experts], w.k3.values[s.experts_per_token]
    share = PER_CENT * used / total
    parts = (
        ("experts", total, "experts", f"The configuration has {total} experts a layer"),
        ("experts_per_token", used, "experts", f"and {used} a token,"),
        ("active_experts_share", share, "%", f"or {shown(share, '%', '.2f')}."),
    )
    return tuple(number(c, says, w.point(f"B02.{key}"), point(x), unit, w.k3.sources) for key, x, unit, says in parts)


def two_shares(w: World, c: Claim) -> tuple[Part, ...]:
    """The two shares beside each other."""
    of_experts = w.k3.values[s.experts_per_token] / w.k3.values[s.experts]
    of_params = w.account.active_params / w.account.params
    first, second = (shown(PER_CENT * x, "%", ".2f") for x in (of_experts, of_params))
    return (decided(f"{first} of the experts go with {second} of the parameters.", first != second, w.k3.sources),)


def architecture(w: World, c: Claim) -> tuple[Part, ...]:
    """Whether the release has tensors of each named block."""
    names = {"kda": "Kimi Delta Attention", "attnres": "attention residuals", "mla": "gated MLA"}
    missing = [words for group, words in names.items() if not w.account.groups.get(group)]
    kda, mla = w.k3.mixers.count("kda"), w.k3.mixers.count("mla")
    says = f"The release has tensors of all three: {kda} layers of KDA, {mla} of MLA."
    return (decided(f"The release lacks {', '.join(missing)}." if missing else says, not missing, w.k3.sources),)


def stored_format(w: World, c: Claim) -> tuple[Part, ...]:
    """Bits that the release spends on a weight of its experts, and whether the card computes in four bits."""
    bits = BITS_PER_BYTE * w.account.routed_bytes / w.account.routed_params
    share = shown(PER_CENT * w.account.routed_bytes / w.account.bytes, "%")
    fp4 = device_fact(DEVICE, "fp4_dense")
    first = f"The experts are stored in {bits:.2f} bits, {share} of all bytes; the rest is 16-bit."
    second = (
        "The configuration quantises no activations, and an H20 has no 4-bit arithmetic: its kernels unpack to 16 bits."
    )
    return (
        decided(first, bits < DTYPE_BITS["F8_E4M3"], w.k3.sources),
        decided(second, fp4.value > 0, [*w.k3.sources, *fp4.source_ids], core=False),
    )


def reference_fp8(w: World, c: Claim) -> tuple[Part, ...]:
    """The account of DeepSeek-V3, whose published total it meets, and its stored extra layer."""
    found, unit = w.reference.bytes / GIGA, "billion parameters"
    extra = w.reference.params / GIGA - w.said("B11.parameters", unit)
    first = f"DeepSeek-V3 has {shown(found, 'GB', ',.1f')} of tensors."
    second = f"They hold {shown(extra, unit, ',.1f')} more than {w.said('B11.parameters', unit):.0f}: the extra layer."
    return (
        number(c, first, w.point("B11.deepseek_fp8", "GB"), point(found), "GB", OF_REFERENCE),
        number(c, second, w.point("B11.mtp_parameters", unit), point(extra), unit, OF_REFERENCE, core=False),
    )


def reference_awq(w: World, c: Claim) -> tuple[Part, ...]:
    """The 671B model in 4-bit groups."""
    found = weight_account(load_model(REFERENCE, "int4")).bytes / GIGA
    bare = w.said("B11.parameters", "billion parameters") / NIBBLES_PER_BYTE
    says = (
        f"{shown(bare, 'GB')} are bare four bits; with scales in groups of 32 and the 16-bit rest the account has "
        f"{shown(found, 'GB')}."
    )
    return (number(c, says, w.point("B12.awq_weights", "GB"), point(found), "GB", OF_REFERENCE),)


def reference_total(w: World, c: Claim) -> tuple[Part, ...]:
    """The 671B model in four bits on eight cards of 80 GB, by the ledger."""
    cards = round(w.said("B13.cards"))
    model, at = load_model(REFERENCE, "int4"), Cluster(1, cards, "h100")
    plan = make_plan(model, at, parse_layout(f"tp{cards}"), ENGINE, Settings())
    total = cards * sum(x.bytes for x in plan.stages[0].lines if not x.passing) / GIGA
    own_sum = w.said("B12.awq_weights", "GB") + w.said("B13.activations", "GB")
    said, sources = w.point("B13.total", "GB"), [*OF_REFERENCE, *RULES]
    first = f"The ledger has {shown(total, 'GB')} before caches on {cards} H100."
    last = f"The article's own sum is {shown(own_sum, 'GB')}."
    return (
        number(c, first, said, point(total), "GB", sources),
        decided("They hold it." if plan.fits else plan.reason, plan.fits, sources),
        number(c, last, said, point(own_sum), "GB", c.source_ids, core=False),
    )


def times_reference(w: World, c: Claim) -> tuple[Part, ...]:
    """By parameters and by bytes."""
    times = w.account.params / (w.said("B11.parameters", "billion parameters") * GIGA)
    size = w.account.bytes / w.reference.bytes
    said = floor(w.said("B14.times"))
    second = f"by bytes of the two releases only {size:.2f} times, since K3 is stored in four bits."
    return (
        number(c, f"By parameters it is {times:.2f} times,", said, point(times), "1", w.k3.sources),
        number(c, second, said, point(size), "1", [*w.k3.sources, *OF_REFERENCE], core=False),
    )


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        active_share,
        parameters,
        experts,
        two_shares,
        architecture,
        stored_format,
        reference_fp8,
        reference_awq,
        reference_total,
        times_reference,
    )
}
