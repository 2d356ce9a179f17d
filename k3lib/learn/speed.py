"""Problems on speed: what a step reads and waits for, what clients see, and what a draft or a pipeline gives."""

from __future__ import annotations

import numpy as np

from k3lib.account import estimate_symbols as e
from k3lib.account import estimates
from k3lib.account import passes as eq
from k3lib.account import symbols as s
from k3lib.calibrate.predict import numbers
from k3lib.deploy import curves as cv
from k3lib.deploy.constants import Known, architecture, of_nics, pick
from k3lib.facts.catalog import device_fact, devices
from k3lib.facts.clusters import cluster, cluster_fact
from k3lib.facts.constants import assumed
from k3lib.facts.timings import kernel_times
from k3lib.learn.problem import K3, Given, Slip, Step, Worked, model_of, plain, problem, step, unique
from k3lib.models.weights import weight_account
from k3lib.units import GIGA, TERA, convert, quantity

TOPIC = "speed"
STEP, SERVED = "nb/where-a-steps-time-goes", "nb/k3-on-32-h20-predicted"
EVEN = {s.skew: 0, s.drafted_tokens: 0, s.prompt_tokens: 0, s.token_groups: 1}


def _behind(number: Known) -> tuple[str, ...]:
    """Sources of a number of the speed model that no fit has touched."""
    rows = {(row.parameter, row.scope): row.source_ids for row in assumed()}
    return rows.get(number.key, ("k3lib_assumed",))


def _used(tokens: int, words: str) -> Step:
    """The step that finds the different experts of a layer, where all are equally popular."""
    values = {**model_of(K3).values, s.decode_tokens: float(tokens)}
    return step(words, "D", estimates.used_experts(), values, "experts", spec=",.1f")


@problem("distinct-experts", TOPIC, "derive", "Experts that a step reads", STEP)
def distinct_experts(given: Given) -> Worked:
    """The expected number of different experts."""
    model, tokens = model_of(K3), given.whole("tokens")
    v = model.values
    drawn = plain("Choices that are made, the same expert counted again.", tokens * v[s.experts_per_token], "experts")
    answer = _used(tokens, "All, less those that every token passes by.")
    return Worked(
        f"{given.said('tokens')} meet in a layer of {v[s.experts]:,} experts, and each uses {v[s.experts_per_token]}. "
        "How many different experts are used, if all are equally popular?",
        (drawn, answer),
        "What is the chance that one expert is used by none of the tokens?",
        "With few tokens a step reads few experts, with many nearly all; then more tokens cost little more.",
        model.sources,
        (Slip(drawn.value, "Some tokens choose the same expert; count it once."),),
    )


@problem("step-bytes", TOPIC, "derive", "Bytes of the experts in a step", STEP)
def step_bytes(given: Given) -> Worked:
    """What one card of a stage reads of its experts."""
    model, tokens = model_of(K3), given.whole("tokens")
    used = _used(tokens, "Different experts of a layer.")
    each = plain("Bytes of one expert.", convert(weight_account(model).expert_bytes, "B", "MB"), "MB", ",.2f")
    total = used.value * given.whole("layers") * each.value / given.whole("tp")
    answer = plain("Experts times layers times bytes, over the cards of the stage.", convert(total, "MB", "GB"), "GB",
                   ",.2f")  # fmt: skip
    return Worked(
        f"A stage has {given.said('layers')} with experts, each split over {given.said('tp')}. A step has "
        f"{given.said('tokens')}, which use {used.said} of a layer on average. One expert is {each.said}. How many GB "
        "of experts does one card read in the step?",
        (used, each, answer),
        "Each card reads its slice of every expert that is used.",
        "Divide by the bandwidth and you have the least time of the step; the kernel may take longer.",
        model.sources,
        (Slip(float(answer.value) * given.whole("tp"), "Each card reads only its slice of an expert."),),
    )


@problem("read-floor", TOPIC, "estimate", "Least time of a step", STEP)
def read_floor(given: Given) -> Worked:
    """Bytes over the bandwidth."""
    device = given.word("device")
    fact = device_fact(device, "hbm_bandwidth")
    rate = convert(fact.value, fact.unit, "MB/s")
    values = {e.read_bytes: given.to("bytes", "B"), s.card_bandwidth: rate}
    answer = step("Bytes over bandwidth.", "t_{read}", estimates.reading_us(), values, "us", "ms", ",.3f")
    low, high = ((answer.value * fact.value / end if end else answer.value) for end in (fact.high, fact.low))
    return Worked(
        f"In a step a card reads {given.said('bytes')}. A card {device.upper()} has "
        f"{quantity(fact.value, fact.unit, ',.0f')} of memory bandwidth. How many ms does the step take at least?",
        (answer,),
        "GB over GB/s is seconds.",
        "It is a bound. On H20 the experts' kernel takes longer than this: its processors are the limit.",
        fact.source_ids,
        low=low,
        high=high,
    )


@problem("h20-experts", TOPIC, "decide", "Why H20 is not fast at 4-bit experts", STEP)
def h20_experts(given: Given) -> Worked:
    """Time of one expert on H20 from that on H200, by processors."""
    tokens = np.array([given.number("tokens")])
    times = {d: float(cv.ExpertTime("marlin", d, 1.0, 1, 1.0).at(tokens)[0]) for d in ("h200", "h20-141")}
    sms, rates = ({d: device_fact(d, q).value for d in times} for q in ("sm_count", "hbm_bandwidth"))
    ratio = plain("H200 has so many times the processors of H20.", sms["h200"] / sms["h20-141"], "1", ",.3f")
    answer = plain("If time follows the processors.", times["h200"] * ratio.value, "us", ",.2f")
    by_bytes = times["h200"] * rates["h200"] / rates["h20-141"]
    measured = quantity(times["h20-141"], "us", ",.2f")
    return Worked(
        f"One used expert of 4-bit weights takes {quantity(times['h200'], 'us', ',.2f')} on H200 when "
        f"{given.said('tokens')} meet in it. H200 has {sms['h200']:.0f} streaming multiprocessors and reads "
        f"{rates['h200']:,.0f} GB/s; an H20 of 141 GB has {sms['h20-141']:.0f} and reads {rates['h20-141']:,.0f} GB/s. "
        "What do you expect on H20, in us?",
        (ratio, answer),
        "Compare what the two cards read in a second, then how many processors they have.",
        f"Measured are {measured}. Hopper unpacks 4-bit weights on its processors, so their number counts and not the "
        "bandwidth.",
        unique(
            device_fact("h200", "sm_count").source_ids,
            device_fact("h20-141", "sm_count").source_ids,
            {r.source_id for r in sorted(kernel_times(), key=str) if r.kernel == "experts" and r.device in times},
        ),
        (Slip(by_bytes, "That follows the bandwidth. Look at the processors."),),
        low=min(times["h20-141"], answer.value),
        high=max(times["h20-141"], answer.value),
        tolerance=0.03,
    )


@problem("all-reduce", TOPIC, "derive", "An all-reduce between servers", STEP)
def all_reduce(given: Given) -> Worked:
    """Start-up and bytes over the network."""
    table, nics = numbers(), given.whole("nics")
    network = f"network@{architecture('h20-96')}"
    start, rate = pick(table, "exchange_start_us", network), of_nics(table, network, nics)
    v = {**model_of(K3).values, **EVEN, s.decode_tokens: given.whole("tokens"), s.nics: nics,
         s.exchange_start_us: start.value, s.nic_rate: rate.value}  # fmt: skip
    size = step("One row of the residual stream for each token, in BF16.", "b_x", eq.exchange_bytes(), v, "B", "MB",
                ",.3f")  # fmt: skip
    answer = step(
        "Start-up, and bytes over the network cards.", "t_x", eq.exchange_between_nodes_us(), v, "us", spec=",.1f"
    )
    low, high = (answer.value * np.exp(sign * max(start.spread, rate.spread)) for sign in (-1, 1))
    return Worked(
        f"An all-reduce between servers starts in {quantity(start.value, 'us', ',.1f')}. After that it adds up "
        f"{quantity(convert(rate.value, 'MB/s', 'GB/s'), 'GB/s', ',.2f')} for each network card, and a server has "
        f"{given.said('nics')}. The step has {given.said('tokens')}; each sends a row of {v[s.hidden]:,} features in "
        "BF16. How many us does one all-reduce take?",
        (size, answer),
        "Tokens times features times two bytes; divide by all network cards; add the start-up.",
        "A layer needs two of them. With few tokens the start-up is nearly all, and more network cards do not help.",
        unique(model_of(K3).sources, ("mm_h200_runs",)),
        (Slip(start.value, "That is the start-up alone; add the bytes."),),
        low=float(low),
        high=float(high),
    )


@problem("all-to-all", TOPIC, "estimate", "Experts across servers", "nb/the-32-card-plan")
def all_to_all(given: Given) -> Worked:
    """Exchange of one layer times the layers."""
    name = given.word("cluster")
    fact, layers = cluster_fact(name, "all_to_all_us"), model_of(K3).values[s.layers_moe]
    answer = plain("Once for every layer with experts.", convert(fact.value * layers, "us", "ms"), "ms", ",.1f")
    ends = [fact.value if end is None else end for end in (fact.low, fact.high)]
    return Worked(
        f"On {cluster(name).label} tokens reach the experts of a layer and come back in "
        f"{quantity(fact.value, 'us', ',.0f')}. K3 has {layers} layers with experts. How many ms of a step are spent "
        "so, if nothing overlaps?",
        (answer,),
        "Time of a layer times layers.",
        "Servers exchange slowly, so a plan of servers keeps the experts of a layer within one; a superpod need not.",
        unique(model_of(K3).sources, fact.source_ids),
        (Slip(2 * float(answer.value), "There and back are both in the given time."),),
        low=convert(ends[0] * layers, "us", "ms"),
        high=convert(ends[1] * layers, "us", "ms"),
    )


@problem("bubbles", TOPIC, "derive", "Bubbles of a pipeline", SERVED)
def bubbles(given: Given) -> Worked:
    """Idle share of a stage."""
    values = {e.pipeline_stages: given.whole("stages"), e.passes_in_flight: given.whole("passes")}
    answer = step(
        "Steps without work over all steps.", r"\phi_{idle}", estimates.idle_share(), values, "1", "%", ",.1f"
    )
    return Worked(
        f"{given.whole('passes')} passes go one after another through a pipeline of {given.whole('stages')} stages "
        "that take equally long. Which share of the time is a stage idle, in per cent?",
        (answer,),
        "Draw it: the last pass ends after passes plus stages less one steps, and each stage works for passes of them.",
        "A pipeline needs at least as many passes in flight as it has stages, or cards wait.",
        ("k3lib_assumed",),
        (
            Slip(100 - answer.value, "That is the busy share."),
            Slip(
                100 * (given.whole("stages") - 1) / given.whole("passes"), "The time of all passes includes filling up."
            ),
        ),
    )


@problem("output-of-tpot", TOPIC, "estimate", "From time per token to output", SERVED)
def output_of_tpot(given: Given) -> Worked:
    """Requests over the time per token."""
    values = {s.decode_tokens: given.whole("requests"), e.token_s: given.to("tpot", "s")}
    answer = step("Requests over the time of a token.", "v", estimates.output_tps(), values, "tok/s", spec=",.1f")
    return Worked(
        f"{given.said('requests')} generate at once, each with a time per output token of {given.said('tpot')}. What "
        "is the output of all, in tokens a second?",
        (answer,),
        "One request gives one token in that time.",
        "It is an upper bound: while prompts are read, some requests wait.",
        ("k3lib_assumed",),
        (Slip(float(answer.value) / given.whole("requests"), "That is one request."),),
    )


@problem("in-flight", TOPIC, "decide", "How many requests at once?", SERVED)
def in_flight(given: Given) -> Worked:
    """Little's law."""
    values = {e.arrivals: given.number("rate"), e.first_s: given.number("first"), e.token_s: given.to("tpot", "s"),
              e.answer_length: given.whole("answer")}  # fmt: skip
    stay = step("Time that a request stays.", "t", e.first_s + e.answer_length * e.token_s, values, "s", spec=",.1f")
    answer = step("Arrivals a second times that.", "n", estimates.requests_in_flight(), values, "requests", spec=",.1f")
    return Worked(
        f"In a second {given.number('rate'):g} requests arrive. Each waits {given.said('first')} for its first token, "
        f"then generates {given.said('answer')} at {given.said('tpot')} each. How many requests are in the system, on "
        "average?",
        (stay, answer),
        "Little's law: arrivals a second times the seconds that each stays.",
        "This is the number that the caches must hold and the speed must be asked for.",
        ("k3lib_assumed",),
        (Slip(stay.value, "That is the time that one request stays, in seconds."),),
    )


@problem("prompt-time", TOPIC, "estimate", "Time to read a prompt", STEP)
def prompt_time(given: Given) -> Worked:
    """A prompt by arithmetic alone."""
    model, device, cards = model_of(K3), given.word("device"), given.whole("cards")
    peak, share = cv.fact(devices(), device, "bf16_dense", "MFLOPS") or 0.0, pick(numbers(), "matrix_share", device)
    active = weight_account(model).active_params
    values = {e.active_weights: active, s.prompt_tokens: given.whole("tokens"), s.cards: cards,
              s.card_rate: peak, s.matrix_share: share.value}  # fmt: skip
    work = plain("Operations: two for each active weight and token, in 10\u00b9\u00b2.",
                 2 * active * given.whole("tokens") / TERA, "1", ",.0f")  # fmt: skip
    answer = step("Over what all cards together compute.", "t_{prompt}", estimates.prompt_s(), values, "s", spec=",.3f")
    low, high = (answer.value * np.exp(sign * share.spread) for sign in (-1, 1))
    return Worked(
        f"A token multiplies {quantity(active / GIGA, 'billion parameters', ',.1f')} of K3. {given.said('cards')} of "
        f"the kind {device.upper()} compute {quantity(convert(peak, 'MFLOPS', 'TFLOPS'), 'TFLOPS', ',.0f')} each in "
        f"BF16, of which large matrices reach {quantity(convert(share.value, '1', '%'), '%', ',.0f')}. How many "
        f"seconds does a prompt of {given.said('tokens')} take at least, if all cards work on it at once?",
        (work, answer),
        "A weight costs a multiplication and an addition for each token.",
        "In a pipeline only one stage works on a prompt at a time, so a single prompt takes longer than this.",
        unique(model.sources, device_fact(device, "bf16_dense").source_ids, _behind(share)),
        low=float(low),
        high=float(high),
        tolerance=0.03,
    )


@problem("draft-gain", TOPIC, "decide", "What a draft is worth", "nb/what-has-been-measured")
def draft_gain(given: Given) -> Worked:
    """Tokens of a pass against the time of its drafts."""
    values = {e.accepted: given.number("accepted"), s.drafted_tokens: given.whole("drafted"),
              e.verify_us: given.to("step", "us"), s.draft_us: given.to("draft", "us")}  # fmt: skip
    longer = step("A pass with drafts over one without.", r"t / t_{pass}", 1 / (estimates.draft_gain() / e.accepted),
                  values, "1", spec=",.3f")  # fmt: skip
    answer = step("Tokens of a pass over that.", "g", estimates.draft_gain(), values, "1", spec=",.2f")
    return Worked(
        f"A pass takes {given.said('step')} and yields one token of a request. With {given.whole('drafted')} drafted "
        f"tokens, {given.said('draft')} each, it yields {given.number('accepted'):g} on average. How many times as "
        "fast is one request, if checking the drafts makes the pass no longer?",
        (longer, answer),
        "Tokens of a pass over the time of a pass, with and without drafts.",
        "Acceptance depends on the text: a repeated passage flatters, prose does not. Measure it on your prompts.",
        ("k3lib_assumed",),
        (Slip(given.number("accepted"), "Drafting takes time too."),),
    )


@problem("load-time", TOPIC, "estimate", "Time to load the weights", "nb/what-has-been-measured")
def load_time(given: Given) -> Worked:
    """Files over what servers read."""
    model = model_of(K3)
    values = {e.file_bytes: weight_account(model).bytes, e.file_rate: given.to("rate", "MB/s"),
              e.readers: given.whole("servers")}  # fmt: skip
    answer = step("Bytes over what all servers read.", "t_{load}", estimates.loading_s(), values, "s", "min",
                  ",.2f")  # fmt: skip
    return Worked(
        f"K3's files are {quantity(weight_account(model).bytes / GIGA, 'GB', ',.0f')}. {given.whole('servers')} "
        f"servers each read their share at {given.said('rate')}. How many minutes does loading take at least?",
        (answer,),
        "All servers read at once, each a part.",
        "Every restart and every change of the model costs this time. Fast local disks pay for themselves.",
        model.sources,
        (Slip(float(answer.value) * given.whole("servers"), "Each server reads only its share."),),
    )
