"""Problems on weights: how many there are, how they are stored, and what a card holds of them in name and in fact."""

from __future__ import annotations

import sympy as sp

from k3lib.account import readings, tensors
from k3lib.account import symbols as s
from k3lib.account.storage import NAMED, bits_per_weight
from k3lib.deploy.plan import capacity_bytes
from k3lib.facts.catalog import article_figures, device_fact
from k3lib.learn.problem import K3, Given, Slip, Worked, model_of, plain, problem, step, unique
from k3lib.models.weights import routed_arrays, weight_account
from k3lib.units import BITS_PER_BYTE, GIGA, MEBI, convert, quantity

TOPIC = "weights"
PARAMS, BILLION = "parameters", "billion parameters"


@problem("routed-params", TOPIC, "estimate", "Weights of the routed experts", "nb/how-large-is-k3")
def routed_params(given: Given) -> Worked:
    """All routed experts of a model."""
    model, v = given.model, given.model.values
    experts = s.layers_moe * s.experts
    each = sp.factor_terms(tensors.total_params(routed_arrays(model)) / experts)
    size = step("Weights of one expert: three matrices.", r"P_{expert}", each, v, PARAMS, "million parameters", ",.2f")
    count = step("Experts of all layers.", "n", experts, v, "experts")
    total = step("Together.", "P_{routed}", tensors.total_params(routed_arrays(model)), v, PARAMS, BILLION, ",.1f")
    return Worked(
        f"{given.label} has {v[s.layers_moe]:,} layers with {v[s.experts]:,} routed experts each. An expert is three "
        f"matrices between {v[s.expert_input]:,} and {v[s.expert_width]:,} features. "
        "How many weights have all routed experts together, in billions?",
        (size, count, total),
        "Layers times experts times three matrices; a matrix is one width times the other.",
        "Nearly all weights of such a model are in its experts, so they decide the memory plan.",
        model.sources,
        (
            Slip(total.value / 3, "An expert has three matrices, not one."),
            Slip(float(total.value) * 2 / 3, "An expert has three matrices: gate, up and down."),
            Slip(total.value / v[s.layers_moe], "That is one layer; take all of them."),
        ),
        grade="exact",
    )


@problem("naive-width", TOPIC, "derive", "The wrong width", "nb/how-large-is-k3")
def naive_width(given: Given) -> Worked:
    """What a reader counts who takes the hidden width for the latent of the experts."""
    model = model_of(K3)
    v = {**model.values, s.expert_input: given.whole("latent")}
    right = sp.factor_terms(tensors.total_params(routed_arrays(model)))
    true = step("With the latent width.", "P_{routed}", right, v, PARAMS, BILLION, ",.1f")
    naive = step("With the hidden width in its place.", "P_{naive}", readings.without_latent(right), v, PARAMS, BILLION,
                 ",.1f")  # fmt: skip
    return Worked(
        f"A model like K3 has {v[s.layers_moe]:,} layers of {v[s.experts]:,} experts. They read a latent of "
        f"{given.said('latent')} and have an inner width of {v[s.expert_width]:,}; the residual stream has "
        f"{v[s.hidden]:,}. A colleague knows nothing of the latent. How many billions of weights do they count in the "
        "routed experts?",
        (true, naive),
        "Put the width of the residual stream where the latent belongs.",
        "The wrong width multiplies the count by the hidden width over the latent. Public tools make this mistake.",
        model.sources,
        (Slip(true.value, "That is the true count. What does someone find who takes the hidden width?"),),
        grade="exact",
    )


@problem("scale-bytes", TOPIC, "derive", "Bytes of the scales", "nb/how-large-is-k3")
def scale_bytes(given: Given) -> Worked:
    """Scales of all routed experts."""
    model = model_of(K3)
    v = {**model.values, s.group_size: given.whole("group")}
    form, _ = NAMED["mxfp4"]
    bits = step("Bits of a weight with its share of a scale.", "q", bits_per_weight(form), v, "bit/weight", spec=",.3f")
    expression = sp.factor_terms(tensors.total_bytes(tensors.by_group(model.arrays)["routed_scale"]))
    scales = step("One byte for each group.", "B_{scale}", expression, v, "B", "GB", ",.1f")
    payload = whole_payload(v)
    return Worked(
        f"K3's routed experts hold {quantity(payload * 2, PARAMS, ',d')} of 4 bits. Each group of "
        f"{given.said('group')} along a row shares one scale of 8 bits. How many GB do the scales take?",
        (bits, scales),
        "Weights over group gives the number of scales, and each is a byte.",
        "Scales are small beside their weights and large beside what a card has to spare.",
        unique(model.sources, ("ocp_mx",)),
        (
            Slip(convert(payload, "B", "GB"), "Those are the 4-bit weights themselves; only the scales are asked for."),
            Slip(convert(payload, "B", "GB") + scales.value, "Weights and scales together; only the scales are asked."),
        ),
        grade="exact",
    )


def whole_payload(values: dict[sp.Symbol, int]) -> int:
    """Bytes of K3's routed weights without their scales."""
    arrays = tensors.by_group(model_of(K3).arrays)["routed"]
    return int(tensors.total_bytes(arrays).subs(values))


@problem("nominal-size", TOPIC, "estimate", "Size by one number of bits", "nb/how-large-is-k3")
def nominal_size(given: Given) -> Worked:
    """The first estimate of both articles."""
    values = {s.nominal_params: round(given.to("params", PARAMS)), s.nominal_bits: given.whole("bits")}
    size = step("Weights times bits, over eight.", "B", readings.nominal_bytes(), values, "B", "GB", ",.0f")
    return Worked(
        f"A model has {given.said('params')}, all stored with {given.said('bits')}. How many GB of weights is that?",
        (size,),
        "Eight bits are one byte.",
        "It is a first guess. Scales, and weights that are stored in more bits, come on top.",
        tuple(sorted({article_figures()["B01.total_params"].source_id})),
        (Slip(size.value * BITS_PER_BYTE, "Those are gigabits. Divide by eight."),),
    )


@problem("active-share", TOPIC, "derive", "Share of the weights that a token uses", "nb/how-large-is-k3")
def active_share(given: Given) -> Worked:
    """Active over all parameters, against active over all experts."""
    model, v = given.model, given.model.values
    account = weight_account(model)
    experts = step("Share of the experts that a token uses.", "k / E", s.experts_per_token / s.experts, v, "1", "%",
                   ",.2f")  # fmt: skip
    share = plain("Share of the weights: all that is no expert works for every token.",
                  convert(account.active_params / account.params, "1", "%"), "%", ",.2f")  # fmt: skip
    return Worked(
        f"{given.label} has {quantity(account.params / GIGA, BILLION, ',.1f')}, of which a token multiplies "
        f"{quantity(account.active_params / GIGA, BILLION, ',.1f')}. It uses {v[s.experts_per_token]} of "
        f"{v[s.experts]:,} experts in a layer. Which share of its weights works for a token, in per cent?",
        (experts, share),
        "It is not the share of the experts.",
        "Compute follows this share. Memory does not: all experts must be there, since any may be next.",
        model.sources,
        (
            Slip(experts.value, "That is the share of the experts. Attention and shared experts always work."),
            Slip(share.value / 100, "That is a ratio; the answer is asked in per cent."),
        ),
        grade="exact",
    )


@problem("gb-gib", TOPIC, "estimate", "GB and GiB of a card", "notation")
def gb_gib(given: Given) -> Worked:
    """The memory that a card shows, in GB."""
    device = given.word("device")
    shown = device_fact(device, "memory_shown")
    name = device_fact(device, "memory_nominal")
    first = plain("What the driver shows, in bytes.", convert(shown.value, shown.unit, "B"), "B", ",.0f")
    answer = plain("In units of 10\u2079 bytes.", convert(shown.value, shown.unit, "GB"), "GB", ",.1f")
    return Worked(
        f"The driver of the card {device.upper()} shows {quantity(round(shown.value), shown.unit, ',d')} of memory. "
        "How many GB is that?",
        (first, answer),
        f"1 MiB is {MEBI:,} bytes.",
        f"The data sheet says {quantity(name.value, name.unit, ',.0f')}. Compare bytes with bytes, never two names.",
        unique(shown.source_ids, name.source_ids),
        (Slip(name.value, "That is the name on the data sheet, which is neither GB nor GiB of what is shown."),),
        low=answer.value if shown.low is None else convert(shown.low, shown.unit, "GB"),
        high=answer.value if shown.high is None else convert(shown.high, shown.unit, "GB"),
        tolerance=0.01,
    )


@problem("fewest-cards", TOPIC, "decide", "Fewest cards for the weights", "nb/what-one-card-holds")
def fewest_cards(given: Given) -> Worked:
    """Cards that hold the weights alone, spread evenly."""
    model, device = model_of(K3), given.word("device")
    total, card = weight_account(model).bytes, capacity_bytes(device)
    usable = plain("What the engine may use of a card.", convert(card * given.number("share"), "B", "GiB"), "GiB",
                   ",.2f")  # fmt: skip
    quotient = convert(total, "B", "GiB") / usable.value
    cards = plain("All weights over that, rounded up.", -int(-quotient // 1), "cards")
    return Worked(
        f"K3's weights are {quantity(convert(total, 'B', 'GiB'), 'GiB', ',.1f')}. A card {device.upper()} shows "
        f"{quantity(convert(card, 'B', 'GiB'), 'GiB', ',.2f')}, and the engine may use {given.said('share', '%')} of "
        "it. How many cards at least hold the weights, if they could be spread evenly?",
        (usable, cards),
        "Divide, and round up: a part of a card is a card.",
        "It is the least, not a plan: caches, working memory and layouts that divide the model ask for more.",
        unique(model.sources, device_fact(device, "memory_nominal").source_ids),
        (Slip(int(quotient), "Round up: the last weights need a card too."),),
        tolerance=0.005,
    )
