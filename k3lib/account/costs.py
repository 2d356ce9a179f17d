"""What a cluster costs, and what a million tokens of it cost. All money in CNY, all months of 730 hours.

A line of a bill is a count times a price times the factor of its basis. The lines add up to a few totals: what is
bought, what is paid once, what runs. From them come the cost of a month, of a million tokens and of a user, and the
points at which owning, renting and calling a service cost the same.
"""

from __future__ import annotations

from functools import cache

import sympy as sp

from k3lib.account import money_symbols as m
from k3lib.units import HOURS_PER_MONTH, HOURS_PER_YEAR, MEGA, MONTHS_PER_YEAR, SECONDS_PER_MONTH

YEAR = sp.Integer(MONTHS_PER_YEAR)


@cache
def energy_kwh() -> sp.Expr:
    """Energy of a month at the meter: rated power, its mean load, the hall on top. Unit: kWh/month."""
    return m.rated_power * m.load_share * m.pue * HOURS_PER_MONTH


# What a line of a bill is by, and what its count times price is multiplied with: once in CNY, the others in CNY/month.
ONCE = ("goods", "share", "once", "fitting", "room")
BASES: dict[str, sp.Expr] = {
    "goods": sp.Integer(1),
    "share": m.goods,
    "once": sp.Integer(1),
    "fitting": m.rated_power,
    "room": m.rated_power,
    "month": sp.Integer(1),
    "year": 1 / YEAR,
    "staff": (1 + m.on_costs) / YEAR,
    "upkeep": m.goods / YEAR,
    "place": m.rated_power,
    "energy": energy_kwh(),
    "card-hour": sp.Integer(HOURS_PER_MONTH),
}


def line_cny(basis: str, currency: str) -> sp.Expr:
    """One line of a bill. currency: of its price, empty for a share. Unit: CNY, or CNY/month for what runs."""
    price = {"CNY": m.item_price, "USD": m.item_price_usd * m.cny_per_usd, "": m.item_share}[currency]
    return m.item_count * price * BASES[basis]


def growth(years: sp.Expr) -> sp.Expr:
    """What one yuan owes after so many years, a twelfth of the yearly rate each month. Unit: 1."""
    return (1 + m.capital_rate / YEAR) ** (YEAR * years)


def capital_recovery(years: sp.Expr) -> sp.Expr:
    """Payment at the end of each month that repays one yuan with interest. Unit: 1/month, so CNY/month for each CNY."""
    return m.capital_rate / YEAR / (1 - 1 / growth(years))


def annuity(paid: sp.Expr, resold: sp.Expr, years: sp.Expr) -> sp.Expr:
    """Equal monthly cost of what is paid now and partly got back at the end of its life. Unit: CNY/month."""
    return (paid - resold / growth(years)) * capital_recovery(years)


@cache
def kept_cny() -> sp.Expr:
    """What is paid at the start and ends with the servers' life: the hall apart. Unit: CNY."""
    return m.goods * (1 + m.extra_share) + m.once


@cache
def room_cny() -> sp.Expr:
    """A hall of one's own, which outlives the servers. Unit: CNY."""
    return m.room_price * m.rated_power


@cache
def investment_cny() -> sp.Expr:
    """All that is paid before the first token. Unit: CNY."""
    return kept_cny() + room_cny()


@cache
def capital_cny() -> sp.Expr:
    """The investment by the month: interest and wear, less what is got for the goods at the end. Unit: CNY/month."""
    servers = annuity(kept_cny(), m.goods * m.resale_share, m.life)
    return servers + annuity(room_cny(), sp.Integer(0), m.room_life)


@cache
def energy_cny() -> sp.Expr:
    """The power bill. Unit: CNY/month."""
    return energy_kwh() * m.power_price


@cache
def running_cny() -> sp.Expr:
    """What runs each month: power, place, maintenance, operations. Unit: CNY/month."""
    return energy_cny() + m.rated_power * m.housing_price + m.goods * m.upkeep_share / YEAR + m.operations


@cache
def monthly_cny() -> sp.Expr:
    """The cost of a month. Unit: CNY/month."""
    return capital_cny() + running_cny()


@cache
def month_per_goods() -> sp.Expr:
    """By how much a month costs more for each yuan more that what is bought costs. Unit: 1/month."""
    return annuity(1 + m.extra_share, m.resale_share, m.life) + m.upkeep_share / YEAR


@cache
def availability() -> sp.Expr:
    """Share of the time that no card is being repaired, where any one stops the whole. Unit: 1."""
    return 1 / (1 + m.stopping_cards * m.repair_hours / (m.card_life * HOURS_PER_YEAR))


@cache
def output_of_up() -> sp.Expr:
    """Output of a month: full load, what of it is asked for, and what of the time it works. Unit: Mtok/month."""
    return m.output_rate * m.busy_share * m.up_share * sp.Rational(SECONDS_PER_MONTH, MEGA)


@cache
def written_out(short: sp.Expr) -> sp.Expr:
    """An equation with the cost of the month and the availability written out."""
    return short.subs({m.month_cost: monthly_cny(), m.up_share: availability()})


@cache
def output_mtok() -> sp.Expr:
    """The same, with the availability written out. Unit: Mtok/month."""
    return written_out(output_of_up())


@cache
def unit_of_month() -> sp.Expr:
    """Cost of a million generated tokens, thinking included; the prompts they answer come with them. Unit: CNY/Mtok."""
    return m.month_cost / output_of_up()


@cache
def unit_cny() -> sp.Expr:
    """The same, with all written out. Unit: CNY/Mtok."""
    return written_out(unit_of_month())


@cache
def clusters_needed() -> sp.Expr:
    """Whole clusters for a month's output, none busier than the utilisation allows. Unit: 1."""
    return sp.ceiling(m.volume / output_mtok())


@cache
def volume_unit_cny() -> sp.Expr:
    """Cost of a million output tokens where a volume is asked for and clusters are bought whole. Unit: CNY/Mtok."""
    return clusters_needed() * monthly_cny() / m.volume


@cache
def tokens_per_answer_token() -> sp.Expr:
    """Prompt and answer tokens together, for each answer token of the mix. Unit: 1."""
    return (m.prompt_new + m.prompt_cached + m.answer_tokens) / m.answer_tokens


@cache
def blended_cny() -> sp.Expr:
    """Cost of a million tokens, prompts (cached ones too) and answers counted alike. Unit: CNY/Mtok."""
    return unit_cny() / tokens_per_answer_token()


@cache
def user_mtok() -> sp.Expr:
    """What one user has generated in a month. Unit: Mtok/month."""
    return m.user_requests * m.answer_tokens / MEGA


@cache
def user_cny() -> sp.Expr:
    """Cost of a user's month, if users are as many as the utilisation allows. Unit: CNY/user-month."""
    return unit_cny() * user_mtok()


@cache
def users_served() -> sp.Expr:
    """Users whose requests make up that utilisation. Unit: users."""
    return output_mtok() / user_mtok()


@cache
def energy_of_mtok() -> sp.Expr:
    """Energy at the meter of a million generated tokens, with the availability as a symbol. Unit: kWh/Mtok."""
    return energy_kwh() / output_of_up()


@cache
def energy_per_mtok() -> sp.Expr:
    """The same, with the availability written out. Unit: kWh/Mtok."""
    return written_out(energy_of_mtok())


@cache
def api_cny() -> sp.Expr:
    """A service's price of a million generated tokens with the prompts they answer, at today's list. Unit: CNY/Mtok."""
    prompts = m.prompt_new * m.api_input + m.prompt_cached * m.api_cached
    return m.api_share * (prompts + m.answer_tokens * m.api_output) / m.answer_tokens


@cache
def api_levelled() -> sp.Expr:
    """The one constant price that is worth as much, over the servers' life, as a price that falls. Unit: 1 of today's.

    The sum of a falling price's payments over that of constant ones, both at the end of each month.
    """
    months = YEAR * m.life
    fallen = (1 - m.api_decline) ** (1 / YEAR) / (1 + m.capital_rate / YEAR)
    return fallen * (1 - fallen**months) / (1 - fallen) * capital_recovery(m.life)


@cache
def break_even_of_month() -> sp.Expr:
    """The utilisation above which owning is cheaper than a service; never, if it is above 1. Unit: 1."""
    price = sp.Symbol("price", positive=True)
    (found,) = sp.solve(sp.Eq(unit_of_month(), price), m.busy_share)
    return found.subs(price, api_cny())


@cache
def break_even_utilisation() -> sp.Expr:
    """The same, with all written out. Unit: 1."""
    return written_out(break_even_of_month())


@cache
def break_even_mtok() -> sp.Expr:
    """Output of a month for which a service asks what owning costs. Unit: Mtok/month."""
    return monthly_cny() / api_cny()


@cache
def break_even_hours() -> sp.Expr:
    """Share of the hours above which owning is cheaper than renting for these hours alone; never, above 1. Unit: 1.

    Operations are the same for both.
    """
    return (monthly_cny() - m.operations) / m.rent


@cache
def payback_months() -> sp.Expr:
    """Months after which the saving has paid the investment, without interest. Unit: months."""
    return investment_cny() / m.saving


@cache
def payback_with_interest_months() -> sp.Expr:
    """The same with interest on what is not yet paid back; no real number if the saving is below it. Unit: months."""
    months = sp.Symbol("months", positive=True)
    paid = sp.Symbol("paid", positive=True)
    rate = sp.Symbol("rate", positive=True)
    (found,) = sp.solve(sp.Eq(paid * rate, m.saving * (1 - (1 + rate) ** -months)), months)
    return found.subs({paid: investment_cny(), rate: m.capital_rate / YEAR})


def elasticity(of: sp.Expr, to: sp.Symbol) -> sp.Expr:
    """By how many per cent a cost changes when one of its numbers changes by one per cent. Unit: 1."""
    return sp.diff(of, to) * to / of
