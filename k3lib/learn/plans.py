"""Problems on layouts: what engines pad, where a pipeline is cut, what a plan leaves, and what that holds."""

from __future__ import annotations

import math
from functools import lru_cache

from k3lib.account import symbols as s
from k3lib.deploy.caches import Settings
from k3lib.deploy.inverse import largest_concurrency, largest_context, state_blocks
from k3lib.deploy.plan import ENGINES, Plan, make_plan
from k3lib.engines.layout import Layout, parse_cluster, parse_layout
from k3lib.engines.rules import rank_width, stages
from k3lib.errors import InputError
from k3lib.learn.problem import K3, Given, Slip, Worked, model_of, plain, problem, unique
from k3lib.models.weights import weight_account
from k3lib.units import GIBI, convert, quantity

TOPIC = "plans"
CARD, LAYOUTS = "nb/what-one-card-holds", "nb/which-layouts-are-legal"
RULES = {"vllm": ("vllm_033",), "sglang": ("sglang_0523",)}


@lru_cache(maxsize=64)
def _plan(text: str, engine: str, longest: int) -> Plan:
    cluster, _, layout = text.partition(" ")
    if not layout:
        raise InputError(f"learn_values: plan '{text}': write cluster and layout, as '4x8xh20-96 tp8,pp4'")
    return make_plan(
        model_of(K3), parse_cluster(cluster), parse_layout(layout), engine, Settings(max_model_len=longest)
    )


def _of(given: Given) -> Plan:
    longest = given.whole("longest") if "longest" in given.values else Settings().max_model_len
    return _plan(given.word("plan"), given.word("engine"), longest)


def _sources(plan: Plan) -> tuple[str, ...]:
    return unique(plan.model.sources, RULES.get(plan.engine.name, ()), ("mm_h200_logs",))


def _named(plan: Plan) -> str:
    return f"K3 on {plan.cluster} as {plan.layout} under {plan.engine.name}"


@problem("rank-width", TOPIC, "derive", "A narrow slice of an expert", LAYOUTS)
def held_width(given: Given) -> Worked:
    """Columns of each expert on a card without expert parallelism, padding included."""
    model, engine, tp = model_of(K3), ENGINES[given.word("engine")], given.whole("tp")
    width = model.values[s.expert_width]
    share = plain("Its share of the columns.", width / tp, "features", ",.0f")
    held = plain("What the engine holds: not below its floor, in whole multiples.",
                 rank_width(engine, width, Layout(tp=tp)), "features", ",.0f")  # fmt: skip
    waste = plain("Share of it that only fills up.", 100 * (1 - share.value / held.value), "%", ",.0f")
    floor, multiple = engine.whole("width_floor"), engine.whole("kernel_width_multiple")
    return Worked(
        f"K3's experts have an inner width of {width:,}. {engine.name} splits each over {given.said('tp')} without "
        f"expert parallelism; no share is narrower than {floor}, and each is a multiple of {multiple}. How many "
        "columns of each expert does a card hold, padding included?",
        (share, waste, held),
        "Divide, raise to the floor, then round up to the multiple.",
        f"Of these columns {quantity(waste.value, '%', ',.0f')} are padding. More tensor parallelism does not shrink "
        "experts below the floor; expert parallelism does.",
        unique(model.sources, RULES[engine.name]),
        (Slip(share.value, "That is the share before it is padded."),),
        tolerance=0.005,
    )


@problem("longest-stage", TOPIC, "estimate", "Layers of the longest stage", LAYOUTS)
def longest_stage(given: Given) -> Worked:
    """The pipeline is cut into whole layers."""
    model, engine, pp = model_of(K3), ENGINES[given.word("engine")], given.whole("pp")
    sizes = [len(run) for run in stages(engine, model, Layout(pp=pp), None)]
    even = plain("Layers of a stage, if they could be cut.", sum(sizes) / pp, "layers", ",.2f")
    answer = plain(f"As the engine cuts them: {', '.join(map(str, sizes))}.", max(sizes), "layers")
    return Worked(
        f"K3 has {sum(sizes)} layers. {engine.name} cuts them into {pp} stages. How many layers has the longest stage?",
        (even, answer),
        "A layer is not cut, so one stage at least has the mean rounded up.",
        "The longest stage sets the memory of its cards and the pace of all.",
        unique(model.sources, RULES[engine.name]),
        tolerance=0.005,
    )


@problem("even-share", TOPIC, "estimate", "An even share of the weights", CARD)
def even_share(given: Given) -> Worked:
    """All bytes over all cards."""
    total = weight_account(model_of(K3)).bytes
    answer = plain("All bytes over all cards.", total / given.whole("cards") / GIBI, "GiB", ",.2f")
    return Worked(
        f"K3's weights are {quantity(total, 'B', ',d')}. Spread evenly over {given.said('cards')}, how many GiB are on "
        "each?",
        (answer,),
        f"1 GiB is {GIBI:,} bytes.",
        "No plan reaches it: some weights lie on every card, and stages are uneven.",
        model_of(K3).sources,
        grade="exact",
    )


@problem("above-even", TOPIC, "derive", "More than an even share", CARD)
def above_even(given: Given) -> Worked:
    """What the tightest card holds above an even share."""
    plan = _of(given)
    total, cards = weight_account(plan.model).bytes / GIBI, plan.cluster.cards // plan.copies
    even = plain("An even share.", total / cards, "GiB", ",.2f")
    held = plain(
        "Weights of the tightest card, by the ledger.", plan.stages[plan.tightest].weights / GIBI, "GiB", ",.2f"
    )
    answer = plain("The difference.", held.value - even.value, "GiB", ",.2f")
    return Worked(
        f"{_named(plan)}: the tightest card holds {held.said} of weights. By how many GiB is that more than an even "
        f"share over {quantity(cards, 'cards')}, of all {quantity(total, 'GiB', ',.2f')}?",
        (even, held, answer),
        "Divide all weights by the cards first.",
        "The difference is what is copied to every card, padded, or on the longest stage. It comes out of the caches.",
        _sources(plan),
        (Slip(even.value, "That is the even share itself."),),
        tolerance=0.03,
    )


@problem("left-for-caches", TOPIC, "decide", "Does it fit?", CARD)
def left_for_caches(given: Given) -> Worked:
    """What the tightest card has for caches; the verdict is whether anything is left."""
    plan = _of(given)
    tight = plan.stages[plan.tightest]
    weights, reserves = tight.weights / GIBI, _reserves(plan)
    offered = plain("What the engine may use of a card.", plan.capacity * plan.utilisation / GIBI, "GiB", ",.2f")
    answer = plain("Less weights and what runs beside them.", tight.free[0] / GIBI, "GiB", ",.2f")
    verdict = "It fits." if plan.fits else f"It does not fit: {plan.reason}."
    return Worked(
        f"{_named(plan)}: a card shows {quantity(plan.capacity / GIBI, 'GiB', ',.2f')}, of which the engine may use "
        f"{quantity(convert(plan.utilisation, '1', '%'), '%', ',.0f')}. The tightest card has "
        f"{quantity(weights, 'GiB', ',.2f')} of weights, and {quantity(reserves, 'GiB', ',.2f')} go to activations and "
        "workspace. How many GiB are left for caches, below 0 if it does not fit?",
        (offered, answer),
        "Take the share of the card first, then subtract.",
        f"{verdict} Never read a speed off a plan that leaves nothing.",
        _sources(plan),
        (
            Slip(plan.capacity / GIBI - weights - reserves, "The engine may use only its share of the card."),
            Slip(offered.value - weights, "Activations and workspace need room too."),
        ),
        low=tight.free[1] / GIBI,
        high=tight.free[2] / GIBI,
    )


def _reserves(plan: Plan) -> float:
    """What lies within the engine's share beside weights and caches, GiB."""
    tight = plan.stages[plan.tightest]
    return (plan.capacity * plan.utilisation - tight.weights - tight.free[0]) / GIBI


@problem("requests-held", TOPIC, "derive", "Requests at once", CARD)
def requests_held(given: Given) -> Worked:
    """How many requests of one length the caches hold."""
    plan, context = _of(given), given.whole("context")
    pool, block, states = _pool(plan)
    own = math.ceil(context / block)
    answer = plain("The pool over that, rounded down.", largest_concurrency(plan, context), "requests")
    return Worked(
        f"{_named(plan)}. {_pool_words(plan)} How many requests of {given.said('context')} fit at once?",
        (
            plain("Blocks of the pool.", pool // block, "1", ",.0f"),
            plain("Blocks of a request, those of its state among them.", own + states, "1", ",.0f"),
            answer,
        ),
        "Round blocks of a request up, and the number of requests down.",
        "Bytes over bytes of a token says more than an engine can hold: blocks are whole, and states need theirs.",
        _sources(plan),
        (Slip(pool // context, "Tokens over tokens leaves out whole blocks and the states."),),
        tolerance=0.01,
    )


def _pool(plan: Plan) -> tuple[int, int, int]:
    """Tokens of the pool, tokens of a block, and blocks that a request takes for its state."""
    if plan.caches is None:
        return 0, 1, 0
    if not plan.engine.paged:
        return plan.caches.kv_tokens, 1, 0
    return plan.caches.kv_tokens_physical, plan.caches.block_tokens * plan.layout.dcp, state_blocks(plan)


def _pool_words(plan: Plan) -> str:
    pool, block, states = _pool(plan)
    if not plan.engine.paged:
        return f"The token pool has room for {pool:,} tokens; states have a pool of their own."
    return (
        f"The pool has room for {pool:,} tokens in blocks of {block:,}. A request takes whole blocks for its tokens "
        f"and {states} more for its state."
    )


@problem("longest-context", TOPIC, "decide", "How long may requests be?", CARD)
def longest_context(given: Given) -> Worked:
    """The inverse: length for a number of requests."""
    plan, requests = _of(given), given.whole("requests")
    pool, block, _ = _pool(plan)
    answer = plain("Less those of its state, times their tokens.", largest_context(plan, requests), "tokens")
    most = f" K3 itself takes at most {plan.model.longest:,} tokens." if plan.model.longest else ""
    return Worked(
        f"{_named(plan)}. {_pool_words(plan)} {given.said('requests')} are to run at once. How many tokens may each "
        f"have?{most}",
        (plain("Blocks of each, rounded down.", pool // block // requests, "1", ",.0f"), answer),
        "Share the blocks of the pool, then take off those for the state of each request.",
        "Length and number of requests trade against each other on one pool.",
        _sources(plan),
        (Slip(pool / requests, "Each request needs blocks for its state too."),),
        tolerance=0.01,
    )
