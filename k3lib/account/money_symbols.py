"""The vocabulary of costs, in the same list as the other symbols. Money is yuan."""

from __future__ import annotations

from k3lib.account.symbols import measure, quantity

_COSTS = "costs"
item_count = measure("item_count", "n_q", "1", "how many of an item a line of the bill has", _COSTS, zero=True)
item_price = measure("item_price", "p_q", "CNY", "price of one, in yuan", _COSTS, zero=True)
item_price_usd = measure("item_price_usd", "p_{usd}", "USD", "price of one, in dollars", _COSTS, zero=True)
cny_per_usd = measure("cny_per_usd", "x", "CNY/USD", "rate of exchange", _COSTS)
item_share = measure("item_share", r"\phi_q", "1", "a share of what is bought, or of it a year", _COSTS, zero=True)

goods = measure(
    "goods", "C_{goods}", "CNY", "what is bought: servers, network, memory, storage, cabinets", _COSTS, zero=True
)
extra_share = measure(
    "extra_share", r"\phi_{extra}", "1", "spares, freight, tax and integration, over what is bought", _COSTS, zero=True
)
once = measure(
    "once", "C_{once}", "CNY", "what is paid once and cannot be sold again: cooling, porting", _COSTS, zero=True
)
room_price = measure(
    "room_price", "p_{room}", "CNY/kW", "a hall of one's own, for each kW that it can feed", _COSTS, zero=True
)
rated_power = measure("rated_power", "P_{kW}", "kW", "rated power of the computers", _COSTS, zero=True)
load_share = measure("load_share", r"\phi_{load}", "1", "power drawn over power rated, in the mean", _COSTS)
pue = measure("pue", r"\phi_{pue}", "1", "power of the hall over power of the computers", _COSTS)
power_price = measure("power_price", "p_{kWh}", "CNY/kWh", "price of electricity", _COSTS, zero=True)
housing_price = measure(
    "housing_price", "p_{kW}", "CNY/kW-month", "rent of a place for each kW rated", _COSTS, zero=True
)
upkeep_share = measure(
    "upkeep_share", r"\phi_{upkeep}", "1/year", "maintenance a year, over what is bought", _COSTS, zero=True
)
on_costs = measure("on_costs", r"\phi_{on}", "1", "what an employer pays on top of pay", _COSTS, zero=True)
operations = measure(
    "operations",
    "C_{ops}",
    "CNY/month",
    "staff, bandwidth, software, audits, changes of the model, rent",
    _COSTS,
    zero=True,
)
month_cost = measure(
    "month_cost",
    "C_{month}",
    "CNY/month",
    "cost of a month: the investment spread over its life, and what runs",
    _COSTS,
)

capital_rate = measure("capital_rate", "r", "1/year", "cost of capital a year, charged by the month", _COSTS)
life = measure("life", "T", "years", "years that what is bought serves", _COSTS)
room_life = measure("room_life", "T_{room}", "years", "years that the hall serves", _COSTS)
resale_share = measure(
    "resale_share", r"\phi_{resale}", "1", "what is got for it at the end, over its price", _COSTS, zero=True
)

output_rate = measure("output_rate", "v", "tok/s", "output of the whole cluster under full load", _COSTS)
busy_share = measure("busy_share", "u", "1", "utilisation: share of that output that is asked for", _COSTS)
card_life = measure("card_life", "T_{fail}", "years", "mean time between failures that stop a card", _COSTS)
repair_hours = measure("repair_hours", "t_{fix}", "h", "time until it is back", _COSTS, zero=True)
up_share = measure(
    "up_share", r"\phi_{up}", "1", "availability: share of the time that no card is being repaired", _COSTS
)
stopping_cards = quantity(
    "stopping_cards", "n_{stop}", "cards", "cards each of which stops the whole when it fails", _COSTS
)

prompt_new = measure(
    "prompt_new", "N_{new}", "tokens", "prompt tokens of a request that are computed", _COSTS, zero=True
)
prompt_cached = measure(
    "prompt_cached", "N_{hit}", "tokens", "prompt tokens of a request that a cache serves", _COSTS, zero=True
)
answer_tokens = measure(
    "answer_tokens", "N_{out}", "tokens", "tokens that are generated for a request, thinking included", _COSTS
)
user_requests = measure("user_requests", "n_{user}", "requests", "requests that one user sends in a month", _COSTS)

api_input = measure("api_input", "p_{in}", "CNY/Mtok", "a service's price of prompt tokens", _COSTS, zero=True)
api_cached = measure("api_cached", "p_{hit}", "CNY/Mtok", "its price of those that its cache serves", _COSTS, zero=True)
api_output = measure("api_output", "p_{out}", "CNY/Mtok", "its price of generated tokens", _COSTS)
api_share = measure("api_share", r"\phi_{api}", "1", "what is paid of that price, as 0.6 for batches", _COSTS)
api_decline = measure("api_decline", "d_{api}", "1/year", "by how much that price falls in a year", _COSTS, zero=True)
saving = measure("saving", "C_{save}", "CNY/month", "what owning costs less each month than what it replaces", _COSTS)
rent = measure("rent", "C_{rent}", "CNY/month", "rent of all cards at all hours of a month", _COSTS)
volume = measure("volume", "V_{month}", "Mtok/month", "output that is asked for in a month", _COSTS)
