"""Problems on costs: rates of exchange, capital, energy, a million tokens, and a service's price beside them."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.facts.prices import price
from k3lib.learn.problem import Given, Slip, Worked, plain, problem, step, unique
from k3lib.units import HOURS_PER_MONTH, MONTHS_PER_YEAR, SECONDS_PER_HOUR

TOPIC = "costs"
OWN, API, PRICES = "nb/what-it-costs-to-own", "nb/own-rent-or-api", "nb/prices-and-sources"
ASSUMED = ("k3lib_assumed",)


def _sources(given: Given, *items: str) -> tuple[str, ...]:
    return unique(*(price(item, given.prices).source_ids for item in items)) or ASSUMED


def _load(given: Given) -> dict[sp.Symbol, float]:
    """What a month's output is made of."""
    return {m.output_rate: given.number("output"), m.busy_share: given.number("busy"), m.up_share: given.number("up")}


def _load_words(given: Given) -> str:
    return (
        f"A cluster gives {given.said('output')} under full load. {given.said('busy', '%')} of that is asked for, and "
        f"it is up {given.said('up', '%')} of the time."
    )


@problem("exchange-rate", TOPIC, "estimate", "A price in dollars", PRICES)
def exchange_rate(given: Given) -> Worked:
    """Dollars into yuan."""
    values = {m.item_count: 1, m.item_price_usd: given.number("price"), m.cny_per_usd: given.number("rate")}
    answer = step("Times the rate.", "p", eq.line_cny("once", "USD"), values, "CNY", spec=",.2f")
    answer = plain(answer.words, answer.value, "CNY/Mtok", ",.2f")
    return Worked(
        f"A service asks {given.said('price')} of output. One dollar is {given.number('rate'):g} yuan. What is that in "
        "yuan for a million tokens?",
        (answer,),
        "One dollar is several yuan, so the figure grows.",
        "Compare in one currency, at one date, and say whether tax is in it.",
        _sources(given, "fx.cny_per_usd"),
        (Slip(given.number("price") / given.number("rate"), "That turns yuan into dollars."),),
    )


@problem("capital-recovery", TOPIC, "derive", "Capital by the month", OWN)
def capital_recovery(given: Given) -> Worked:
    """An annuity without a resale value."""
    values = {m.capital_rate: given.number("rate"), m.life: given.number("life")}
    factor = step("Monthly payment for each yuan.", "c", eq.capital_recovery(m.life), values, "1", spec=",.4g")
    paid = given.to("paid", "CNY")
    answer = plain("Times what was paid.", factor.value * paid, "CNY/month", ",.0f")
    return Worked(
        f"Servers cost {given.said('paid')} and serve {given.said('life')}, after which nothing is got for them. "
        f"Capital costs {given.number('rate') * 100:g} % a year, charged by the month. What is that a month, in yuan?",
        (factor, answer),
        "An annuity: a twelfth of the rate, over one less the discount of all months.",
        "Spreading the price evenly over the months leaves out the interest.",
        _sources(given, "capital.cost", "life.server"),
        (Slip(paid / (given.number("life") * MONTHS_PER_YEAR), "That leaves out the interest."),),
    )


@problem("monthly-output", TOPIC, "estimate", "Output of a month", OWN)
def monthly_output(given: Given) -> Worked:
    """Tokens of a month."""
    answer = step("Rate, times what is asked for, times the seconds of a month.", "V", eq.output_of_up(), _load(given),
                  "Mtok/month", spec=",.0f")  # fmt: skip
    return Worked(
        f"{_load_words(given)} A month has {HOURS_PER_MONTH} hours. How many million tokens does it give in a month?",
        (answer,),
        f"Seconds of a month: {HOURS_PER_MONTH} times {SECONDS_PER_HOUR:,}.",
        "The price of a token is the month's cost over this number: half as busy is twice as dear.",
        ASSUMED,
        (Slip(float(answer.value) / given.number("busy"), "It is not asked for all of the time."),),
    )


@problem("cost-per-mtok", TOPIC, "derive", "Cost of a million tokens", OWN)
def cost_per_mtok(given: Given) -> Worked:
    """A month's cost over a month's output."""
    values = {**_load(given), m.month_cost: given.to("month", "CNY/month")}
    output = step("Output of a month.", "V", eq.output_of_up(), values, "Mtok/month", spec=",.0f")
    answer = step("The month's cost over it.", "C_{Mtok}", eq.unit_of_month(), values, "CNY/Mtok", spec=",.1f")
    return Worked(
        f"{_load_words(given)} A month costs {given.said('month')}. What does a million output tokens cost, in yuan?",
        (output, answer),
        "Work out the output of the month first.",
        "Output tokens carry all of the cost here, and prompts come with them. Always say which tokens.",
        ASSUMED,
        (Slip(float(answer.value) * given.number("busy"), "That is at full load; it is not busy all of the time."),),
    )


@problem("blended-cost", TOPIC, "derive", "Which tokens?", OWN)
def blended_cost(given: Given) -> Worked:
    """Output cost over all tokens."""
    values: Mapping[sp.Symbol, float] = {m.prompt_new: given.whole("prompt"), m.prompt_cached: given.whole("cached"),
                                         m.answer_tokens: given.whole("answer")}  # fmt: skip
    many = step("Tokens in and out for each that is generated.", "n", eq.tokens_per_answer_token(), values, "1",
                spec=",.2f")  # fmt: skip
    answer = plain("The cost of output over that.", given.number("unit_cost") / many.value, "CNY/Mtok", ",.2f")
    return Worked(
        f"A million output tokens cost {given.number('unit_cost'):g} yuan. A mean request has {given.said('prompt')} "
        f"of new prompt, {given.said('cached')} from the cache, and {given.said('answer')} of answer. What does a "
        "million tokens cost if prompts and answers are counted alike, in yuan?",
        (many, answer),
        "How many tokens pass for one that is generated?",
        "The same cluster and the same month: only the word 'token' changed. Compare like with like.",
        ASSUMED,
        (Slip(given.number("unit_cost") * given.whole("answer") / (given.whole("prompt") + given.whole("answer")),
              "Cached prompt tokens count too."),),
    )  # fmt: skip


@problem("api-cost", TOPIC, "derive", "What a service asks for the same work", API)
def api_cost(given: Given) -> Worked:
    """A service's price of output with its prompts."""
    values = _service(given)
    answer = step(
        "Prompts and answer, for each token of the answer.", "p", eq.api_cny(), values, "CNY/Mtok", spec=",.1f"
    )
    return Worked(
        f"A service asks {given.said('input')} of prompt, {given.said('hit')} of cached prompt and "
        f"{given.said('out')} of output. A mean request has {given.said('prompt')} of new prompt, "
        f"{given.said('cached')} from the cache, and {given.said('answer')} of answer. What does it ask for a million "
        "output tokens, their prompts included, in yuan?",
        (answer,),
        "Price one request, divide by its answer, and multiply by a million.",
        "Long prompts with short answers can cost more for the prompts than for the output.",
        _sources(given, "api.k3.moonshot-cn.output"),
        (Slip(given.number("out"), "The prompts cost something too."),),
    )


def _service(given: Given) -> dict[sp.Symbol, float]:
    return {
        m.prompt_new: given.whole("prompt"),
        m.prompt_cached: given.whole("cached"),
        m.answer_tokens: given.whole("answer"),
        m.api_input: given.number("input"),
        m.api_cached: given.number("hit"),
        m.api_output: given.number("out"),
        m.api_share: 1.0,
    }


@problem("break-even", TOPIC, "decide", "Own, or call a service?", API)
def break_even(given: Given) -> Worked:
    """The utilisation above which owning is cheaper."""
    values = {m.month_cost: given.to("month", "CNY/month"), m.output_rate: given.number("output"),
              m.up_share: given.number("up"), m.prompt_new: 0.0, m.prompt_cached: 0.0, m.answer_tokens: 1.0,
              m.api_input: 0.0, m.api_cached: 0.0, m.api_output: given.number("asked"), m.api_share: 1.0}  # fmt: skip
    full = step("Output of a month that is never idle.", "V", eq.output_of_up(), {**values, m.busy_share: 1.0},
                "Mtok/month", spec=",.0f")  # fmt: skip
    answer = step("Utilisation at which both cost the same.", "u", eq.break_even_of_month(), values, "1", "%", ",.1f")
    verdict = (
        f"Above {answer.said} owning is cheaper."
        if answer.value <= 100
        else "It is above 100 %, so owning never is cheaper at this price."
    )
    return Worked(
        f"A cluster costs {given.said('month')}, gives {given.said('output')} under full load and is up "
        f"{given.said('up', '%')} of the time. A service asks {given.number('asked'):g} yuan for a million output "
        "tokens with their prompts. From which utilisation is owning cheaper, in per cent?",
        (full, answer),
        "At full load, what would the service ask for the month's output?",
        f"{verdict} Ask how busy a cluster will be before asking what it costs.",
        ASSUMED,
        (Slip(answer.value / 100, "That is a ratio; the answer is asked in per cent."),
         Slip(1e4 / answer.value, "Turned over: cost of the month over the service's price of a full month."),),
    )  # fmt: skip


@problem("energy-per-mtok", TOPIC, "derive", "Energy of a million tokens", OWN)
def energy_per_mtok(given: Given) -> Worked:
    """Energy at the meter."""
    values = {**_load(given), m.rated_power: given.number("power"), m.load_share: given.number("drawn"),
              m.pue: given.number("pue")}  # fmt: skip
    month = step("Energy of a month at the meter.", "E", eq.energy_kwh(), values, "kWh/month", spec=",.0f")
    answer = step("Over the output of the month.", "E_{Mtok}", eq.energy_of_mtok(), values, "kWh/Mtok", spec=",.2f")
    return Worked(
        f"{_load_words(given)} Its computers are rated {given.said('power')} and draw {given.said('drawn', '%')} of "
        f"it in the mean; the hall takes {given.number('pue'):g} times what they draw. How many kWh does a million "
        "output tokens need?",
        (month, answer),
        "Energy of a month over output of a month.",
        "Power is a small part of what a token costs; idle hours make it larger.",
        _sources(given, "load_factor", "pue"),
        (Slip(answer.value / given.number("pue"), "The hall takes power too."),),
    )
