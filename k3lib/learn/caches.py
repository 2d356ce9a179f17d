"""Problems on what generation keeps: bytes of a token, the state of a sequence, and how cards share them."""

from __future__ import annotations

import sympy as sp

from k3lib.account import cache, sharding
from k3lib.account import symbols as s
from k3lib.learn.problem import K3, Given, Slip, Worked, model_of, plain, problem, step
from k3lib.models.weights import CACHE_WIDTHS, cache_expressions
from k3lib.units import convert

TOPIC = "caches"
COSTS = "nb/what-a-token-costs"


def _token_bytes(values: dict[sp.Symbol, int]) -> int:
    return int(cache.mla_cache_bytes_per_token().subs(values))


@problem("kv-per-token", TOPIC, "derive", "Cache of one token", COSTS)
def kv_per_token(given: Given) -> Worked:
    """Bytes that a token adds in all layers that keep a token cache."""
    model = given.model
    v = {**model.values, **CACHE_WIDTHS, s.cache_bytes: given.whole("cache_bytes")}
    expression, _ = cache_expressions(model)
    answer = step("Layers that keep a cache, times what one keeps of a token.", "b_{token}", expression, v, "B/token")
    layers = v.get(s.layers, v[s.layers_mla])
    return Worked(
        f"{given.label} has {layers} layers, of which {v[s.layers_mla]} have multi-head latent attention. Each of "
        f"these keeps a latent of {v[s.latent_kv]} and a shared key of {v[s.rope]} for a token, at "
        f"{given.said('cache_bytes')} an element. How many bytes does one token add to the cache?",
        (answer,),
        "The latent has one head: the number of heads is not in it.",
        "Multiply by the tokens of all requests and you have the cache of one replica.",
        model.sources,
        (
            Slip(float(answer.value) * layers / v[s.layers_mla], "Only the layers with latent attention keep tokens."),
            Slip(float(answer.value) * v[s.heads], "The latent is shared by all heads; do not multiply by them."),
            Slip(float(answer.value) * v[s.latent_kv] / (v[s.latent_kv] + v[s.rope]), "The shared key is kept too."),
        ),
        grade="exact",
    )


@problem("all-layers", TOPIC, "estimate", "A cache in every layer?", COSTS)
def all_layers(given: Given) -> Worked:
    """By how much a cache is overcounted when every layer gets one."""
    model = model_of(K3)
    v = {**model.values, s.layers_mla: given.whole("layers")}
    answer = step("All layers over those that keep tokens.", "L / L_{mla}", s.layers / s.layers_mla, v, "1",
                  spec=",.2f")  # fmt: skip
    return Worked(
        f"A model has {v[s.layers]} layers. {given.said('layers')} keep a cache for tokens, the others a state of "
        "fixed size. Someone counts a cache in every layer. By which factor is that too much?",
        (answer,),
        "The bytes of a layer cancel out.",
        "For K3 this mistake alone makes a plan that fits look impossible.",
        model.sources,
        (Slip(1 / float(answer.value), "Turned over: all layers over those with a cache."),),
        grade="exact",
    )


@problem("state-bytes", TOPIC, "derive", "State of one sequence", COSTS)
def state_bytes(given: Given) -> Worked:
    """What the KDA layers hold of a sequence."""
    model = model_of(K3)
    v = {**model.values, **CACHE_WIDTHS, s.state_bytes: given.whole("state_bytes")}
    matrix = s.layers_kda * s.kda_heads * s.kda_dim**2 * s.state_bytes
    first = step("The matrices of all heads and layers.", "b_{matrix}", matrix, v, "B", "MiB", ",.1f")
    answer = step("With the last inputs of the convolutions.", "b_{state}", cache.kda_state_bytes(), v, "B", "MiB",
                  ",.1f")  # fmt: skip
    return Worked(
        f"K3 has {v[s.layers_kda]} layers with Kimi Delta Attention. Each keeps, for a sequence, a square matrix of "
        f"{v[s.kda_dim]} for each of {v[s.kda_heads]} heads, at {given.said('state_bytes')} an element, and the last "
        f"{v[s.conv_taps] - 1} inputs of three convolutions at {v[s.conv_bytes]} B. How many MiB does a sequence hold?",
        (first, answer),
        "Start with the matrices; the convolutions add a few per cent or less.",
        "The state is as large after ten tokens as after a million. It limits how many sequences run at once.",
        model.sources,
        (Slip(float(answer.value) / v[s.kda_heads], "Each head has a matrix of its own."),),
        grade="exact",
    )


@problem("state-slots", TOPIC, "derive", "Slots for states", COSTS)
def state_slots(given: Given) -> Worked:
    """How many sequences a pool of states on one card holds."""
    model = model_of(K3)
    v = {**model.values, **CACHE_WIDTHS, s.tensor_parallel: given.whole("tp"), s.layers_kda: given.whole("layers")}
    each = step("State of a sequence on this card: heads are split over the cards.", "b_{slot}",
                s.layers_kda * sharding.kda_state_bytes(), v, "B", "MiB", ",.2f")  # fmt: skip
    free = given.to("free", "MiB")
    answer = plain("The pool over that, rounded down.", int(free // each.value), "slots")
    return Worked(
        f"A stage has {given.said('layers')} with Kimi Delta Attention and splits its {v[s.kda_heads]} heads over "
        f"{given.said('tp')}. On each card {given.said('free')} are set aside for states in FP32. How many sequences "
        "fit?",
        (each, answer),
        f"A card holds its share of the heads: a matrix of {v[s.kda_dim]} by {v[s.kda_dim]} for each, and the inputs "
        "of the convolutions.",
        "When slots run out, requests wait however much room the token cache has.",
        model.sources,
        (Slip(int(free // (each.value * given.whole("tp"))), "States are split by heads: each card holds a share."),),
        tolerance=0.01,
    )


@problem("state-in-tokens", TOPIC, "decide", "When is a state worth its room?", COSTS)
def state_in_tokens(given: Given) -> Worked:
    """The context at which the token cache of a sequence is as large as its state."""
    model = model_of(K3)
    v = {**model.values, **CACHE_WIDTHS, s.cache_bytes: given.whole("cache_bytes"),
         s.state_bytes: given.whole("state_bytes")}  # fmt: skip
    state = step("State of a sequence.", "b_{state}", cache.kda_state_bytes(), v, "B", "MB", ",.1f")
    token = step("Cache of a token.", "b_{token}", cache.mla_cache_bytes_per_token(), v, "B/token")
    answer = step("One over the other.", "S", cache.kda_state_bytes() / cache.mla_cache_bytes_per_token(), v, "tokens",
                  spec=",.0f")  # fmt: skip
    return Worked(
        f"K3's state has {given.said('state_bytes')} an element, its token cache {given.said('cache_bytes')}. At how "
        "many tokens does the cache of a sequence take as many bytes as its state?",
        (state, token, answer),
        "Both were worked out above: bytes of a sequence over bytes of a token.",
        "Below this length states fill the memory, above it tokens do.",
        model.sources,
        grade="exact",
    )


@problem("cache-of-requests", TOPIC, "estimate", "Cache of many requests", COSTS)
def cache_of_requests(given: Given) -> Worked:
    """Token cache of all requests on one replica."""
    model = model_of(K3)
    v = {**model.values, **CACHE_WIDTHS}
    token = step("Cache of a token.", "b_{token}", cache.mla_cache_bytes_per_token(), v, "B/token")
    tokens = given.whole("requests") * given.whole("context")
    all_of = plain("Tokens of all requests.", tokens, "tokens")
    answer = plain("Their cache.", convert(float(token.value) * tokens, "B", "GiB"), "GiB", ",.2f")
    return Worked(
        f"{given.said('requests')} run at once, each with {given.said('context')} of context. How many GiB of token "
        "cache do they need on one replica of K3, in BF16?",
        (token, all_of, answer),
        "Tokens of all requests times bytes of a token.",
        "Requests times length times bytes of a token: the estimate to make before any setting is chosen.",
        model.sources,
        (Slip(float(answer.value) / given.whole("requests"), "That is one request."),),
    )


@problem("replicated-latent", TOPIC, "decide", "What tensor parallelism does to the cache", COSTS)
def replicated_latent(given: Given) -> Worked:
    """Token cache on one card of a stage: the latent is on every card."""
    model = model_of(K3)
    v = {**model.values, **CACHE_WIDTHS, s.layers_mla: given.whole("layers")}
    token = step("What a card of the stage keeps of a token.", "b_{card}", s.layers_mla * sharding.mla_token_bytes(),
                 v, "B/token")  # fmt: skip
    answer = plain("Times the tokens of all requests.",
                   convert(float(token.value) * given.whole("tokens"), "B", "GiB"), "GiB", ",.3f")  # fmt: skip
    return Worked(
        f"A stage of K3 has {given.said('layers')} with latent attention on {given.said('tp')} of tensor parallelism. "
        f"Its requests have {given.said('tokens')} in the cache. How many GiB of them does one card hold, in BF16?",
        (token, answer),
        "How many heads has the latent, and can one head be cut?",
        "Tensor parallelism does not shrink this cache; pipeline stages do, and so does decode context parallelism.",
        model.sources,
        (
            Slip(float(answer.value) / given.whole("tp"), "The latent has one head, so every card holds all of it."),
            Slip(
                convert(float(_token_bytes({**model.values, **CACHE_WIDTHS})) * given.whole("tokens"), "B", "GiB"),
                "That is all layers of the model; the stage has fewer.",
            ),
        ),
    )
