"""How sure costs are: draws, indices, derivatives, maps, and owning as an investment."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import numpy_financial as npf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.cost import articles, sensitive, uncertain, worth
from k3lib.cost.api import mix_of
from k3lib.cost.bill import Input
from k3lib.cost.choice import Choice
from k3lib.cost.options import Option, bounds, cost, defaults, merged, options, symbols
from k3lib.cost.own import own
from k3lib.cost.rent import rental
from k3lib.errors import InputError
from k3lib.evaluate import arrays
from k3lib.facts.prices import prices
from k3lib.facts.workloads import workload
from k3lib.ranges import Range, point

SPEEDS = {
    name: Range(v, v / 1.5, v * 1.5)
    for name, v in (("h20x32", 1500.0), ("a3x64", 2000.0), ("gb200-nvl72-64", 12_000.0))
}
CHAT = mix_of(workload("online-chat"))
ALL = options(SPEEDS)
BY_NAME = {option.name: option for option in ALL}
OWN, API = BY_NAME["own:h20x32"], BY_NAME["api:k31-pro@moonshot-cn"]


def fixed(option: Option, *free: str) -> Option:
    """The option with every input known but these."""
    inputs = {key: known if key in free else replace(known, range=point(known.range.value))
              for key, known in option.inputs.items()}  # fmt: skip
    return replace(option, inputs=MappingProxyType(inputs))


def test_what_is_compared() -> None:
    assert {option.kind for option in ALL} == {"own", "rent", "api"}
    assert "own:floor80x64" not in {o.name for o in options({"floor80x64": SPEEDS["a3x64"]})}
    assert "own:floor80x64" in {
        o.name for o in options({"floor80x64": SPEEDS["a3x64"]}, choice=Choice(prices="articles"))}  # fmt: skip
    with pytest.raises(InputError, match="Did you mean 'k31-pro@moonshot-cn'"):
        options(SPEEDS, services=["k31-pro@moonshot-ch"])
    with pytest.raises(InputError, match="output_tps"):
        options({"h20x32": Range(0, 0, 0)})


@pytest.mark.parametrize("option", ALL, ids=[o.name for o in ALL])
def test_a_cost_at_its_defaults_is_the_value_of_its_bounds(option: Option) -> None:
    at = cost(option, CHAT, defaults(option.inputs))
    assert at[0] == pytest.approx(bounds(option, CHAT).value)


@pytest.mark.parametrize("option", [o for o in ALL if o.kind != "api"], ids=lambda o: o.name)
def test_bounds_are_the_ends_of_all_inputs(option: Option) -> None:
    ends = cost(option, CHAT, {key: known.corners for key, known in option.inputs.items()})
    found = bounds(option, CHAT)
    assert [found.low, found.value, found.high] == pytest.approx(list(ends))


def test_a_batch_is_cheaper() -> None:
    (batch,) = [o for o in options(SPEEDS, batch=True) if o.name == "api:k31-pro@moonshot-cn:batch"]
    assert bounds(batch, CHAT).value == pytest.approx(0.6 * bounds(API, CHAT).value)
    assert cost(batch, CHAT, defaults(batch.inputs))[0] == pytest.approx(bounds(batch, CHAT).value)


@given(st.floats(0, 10), st.floats(0, 10), st.floats(0, 10), st.integers(0, 2**31))
def test_draws_keep_to_their_range_and_have_its_middle(a: float, b: float, c: float, seed: int) -> None:
    low, value, high = sorted((a, b, c))
    known = Input(Range(value, low, high), "1", "assumed", ())
    found = uncertain.drawn({"x": known}, 4000, seed)["x"]
    assert low <= found.min() and found.max() <= high
    assert (found <= value).mean() >= 0.46 and (found >= value).mean() >= 0.46
    assert found.mean() == pytest.approx((low + 4 * value + high) / 6, abs=0.03 * (high - low) + 1e-9)


@given(st.floats(1, 1e4), st.floats(1.01, 5), st.floats(1.01, 5))
def test_nine_speeds_in_ten_lie_in_their_range(value: float, down: float, up: float) -> None:
    known = Input(Range(value, value / down, value * up), "tok/s", "derived", ())
    found = uncertain.drawn({"speed.x": known}, 20_000)["speed.x"]
    assert np.percentile(found, [5, 50, 95]) == pytest.approx([value / down, value, value * up], rel=0.1)
    assert found.min() > 0


def test_a_seed_gives_the_same_bytes() -> None:
    one, again = (uncertain.simulate(ALL, CHAT, 5000, seed=7) for _ in range(2))
    other = uncertain.simulate(ALL, CHAT, 5000, seed=8)
    for name in one.costs:
        assert one.costs[name].tobytes() == again.costs[name].tobytes()
    assert one.costs["own:h20x32"].tobytes() != other.costs["own:h20x32"].tobytes()
    assert one.cheapest == again.cheapest


def test_what_else_is_compared_changes_no_draw() -> None:
    alone, among = uncertain.simulate([OWN], CHAT, 2000), uncertain.simulate(ALL, CHAT, 2000)
    assert alone.costs[OWN.name].tobytes() == among.costs[OWN.name].tobytes()
    assert alone.cheapest == {OWN.name: 1.0}


def test_a_hundred_thousand_draws_in_two_seconds() -> None:
    uncertain.simulate(ALL, CHAT, 10)  # compiles the equations
    start = time.perf_counter()
    found = uncertain.simulate(ALL, CHAT, 100_000)
    assert time.perf_counter() - start < 2
    assert found.costs[OWN.name].shape == (100_000,)


@pytest.mark.parametrize("option", ALL, ids=[o.name for o in ALL])
def test_percentiles_lie_within_the_bounds(option: Option) -> None:
    found = uncertain.simulate([option], CHAT, 20_000).spreads[option.name]
    levels = list(found.percentiles.values())
    assert levels == sorted(levels)
    wide = bounds(option, CHAT)
    if option.kind == "api":
        assert levels[-1] <= wide.high * (1 + 1e-9)  # its price falls, if it changes
    else:
        assert wide.low < levels[0] and levels[-1] < wide.high
        assert levels[0] < wide.value < levels[-1]


def test_how_often_an_option_is_cheapest() -> None:
    found = uncertain.simulate(ALL, CHAT, 20_000)
    assert sum(found.cheapest.values()) == pytest.approx(1)
    assert found.cheaper(OWN.name, API.name) + found.cheaper(API.name, OWN.name) == pytest.approx(1)
    cheap = replace(OWN, inputs=MappingProxyType(
        {**OWN.inputs, "server8.h20-96": replace(OWN.inputs["server8.h20-96"], range=point(0.0))}))  # fmt: skip
    with pytest.raises(InputError, match=r"input 'server8\.h20-96' has two ranges"):
        merged([OWN, cheap])
    with pytest.raises(InputError, match="no option"):
        uncertain.simulate([], CHAT)


def test_spreads_of_the_investment() -> None:
    found = uncertain.spreads_of(OWN, CHAT, {"paid": eq.investment_cny(), "month": eq.monthly_cny()}, 20_000)
    held = own("h20x32")
    assert held.capex_cny.low < found["paid"].percentiles[5] < found["paid"].mean < held.capex_cny.high
    assert found["month"].range.low < held.monthly_cny.value < found["month"].range.high


def test_only_the_speed_is_uncertain() -> None:
    """Then nine costs in ten lie between those at the ends of the speed."""
    known = fixed(OWN, "speed.h20x32")
    found = uncertain.simulate([known], CHAT, 100_000).spreads[OWN.name]
    middle = bounds(OWN, CHAT).value
    assert [found.percentiles[p] for p in (5, 50, 95)] == pytest.approx([middle / 1.5, middle, middle * 1.5], rel=0.02)


def test_the_tornado() -> None:
    bars = sensitive.tornado(OWN, CHAT)
    assert len(bars) == 10 and [bar.key for bar in bars[:2]] == ["utilisation", "speed.h20x32"]
    assert [bar.swing for bar in bars] == sorted((bar.swing for bar in bars), reverse=True)
    middle = bounds(OWN, CHAT).value
    assert bars[0].at_low == pytest.approx(4 * middle) and bars[0].at_high == pytest.approx(middle / 2)
    assert all(bar.words for bar in sensitive.tornado(OWN, CHAT, 100))
    assert {bar.key for bar in sensitive.tornado(API, CHAT)} == {"api.decline"}
    dollars = BY_NAME["own:gb200-nvl72-64"]
    assert "fx.cny_per_usd" in {bar.key for bar in sensitive.tornado(dollars, CHAT, 100)}


def test_indices_of_a_sum_add_up() -> None:
    """The cost's logarithm is a sum of those of speed and utilisation: no input acts through another."""
    found = sensitive.sobol(fixed(OWN, "speed.h20x32", "utilisation"), CHAT)
    assert {index.key for index in found} == {"speed.h20x32", "utilisation"}
    assert sum(index.first for index in found) == pytest.approx(1, abs=0.02)
    for index in found:
        assert index.first == pytest.approx(index.total, abs=0.02)
    sigma = math.log(1.5) / uncertain.TO_THE_END
    drawn = np.log(uncertain.drawn({"u": OWN.inputs["utilisation"]})["u"]).var()
    speed = next(index for index in found if index.key.startswith("speed"))
    assert speed.first == pytest.approx(sigma**2 / (sigma**2 + drawn), abs=0.03)


def test_indices_of_all_inputs() -> None:
    found = sensitive.sobol(OWN, CHAT, points=256)
    assert found[0].key == "utilisation"
    assert sum(index.first for index in found) == pytest.approx(1, abs=0.15)
    assert found == sensitive.sobol(OWN, CHAT, points=256)
    against = sensitive.sobol(OWN, CHAT, API, points=256)
    assert "api.decline" in {index.key for index in against[:4]}
    with pytest.raises(InputError, match="must be a power of 2"):
        sensitive.sobol(OWN, CHAT, points=100)


def test_elasticities_are_the_slopes() -> None:
    found = sensitive.elasticities(OWN, CHAT)
    assert found[m.busy_share] == found[m.output_rate] == pytest.approx(-1)
    money = (m.goods, m.once, m.room_price, m.power_price, m.housing_price, m.operations)
    assert sum(found.get(x, 0) for x in money) == pytest.approx(1)  # twice all prices, twice the cost
    values = defaults(OWN.inputs)
    base = cost(OWN, CHAT, values)[0]
    for symbol, key in ((m.life, "life.server"), (m.pue, "pue"), (m.capital_rate, "capital.cost")):
        step = cost(OWN, CHAT, {**values, key: values[key] * 1.0001})[0]
        assert found[symbol] == pytest.approx((step / base - 1) / 0.0001, rel=1e-3)


def test_two_inputs_against_each_other() -> None:
    found = sensitive.cost_map(OWN, CHAT, ("utilisation", [0.1, 0.4, 0.8]), ("server8.h20-96", [1.2e6, 2e6]))
    assert found.shape == (2, 3)
    assert found[0, 1] == pytest.approx(bounds(OWN, CHAT).value)
    assert found[:, 0] == pytest.approx(8 * found[:, 2])
    dear = own("h20x32", choice=Choice(utilisation=0.8, counts={"servers": 4 * 2 / 1.2}))
    assert found[1, 2] == pytest.approx(dear.monthly_cny.value / (2 * _mtok()))
    with pytest.raises(InputError, match="Did you mean 'utilisation'"):
        sensitive.cost_map(OWN, CHAT, ("utilization", [1]), ("pue", [1]))


def _mtok() -> float:
    return float(arrays({"x": eq.output_mtok()}, symbols(OWN, CHAT, defaults(OWN.inputs)))["x"][0])


def test_volume_against_the_price_of_a_service() -> None:
    full = _mtok()
    found = sensitive.volume_map(OWN, API, CHAT, [full / 2, full, 1.01 * full], [0.5, 1])
    assert found.shape == (2, 3)
    ratio = bounds(OWN, CHAT).value / bounds(API, CHAT).value
    assert found[1] == pytest.approx([2 * ratio, ratio, 2 * ratio / 1.01])  # a second cluster is bought whole
    assert found[0] == pytest.approx(2 * found[1])
    with pytest.raises(InputError, match="compares a cluster with a service"):
        sensitive.volume_map(API, OWN, CHAT, [1], [1])


def test_a_falling_price_levelled() -> None:
    """Four years at 5 %: the payments of a price that halves each year, added up month by month."""
    falling = {**defaults(API.inputs), "api.decline": np.array([0.5])}
    found = cost(API, CHAT, falling)[0] / bounds(API, CHAT).value
    month = np.arange(1, 49)
    worth_today = (1 + 0.05 / 12) ** -month
    assert found == pytest.approx((0.5 ** (month / 12) * worth_today).sum() / worth_today.sum())


@pytest.mark.parametrize("housing", ["colocation", "room"])
def test_the_worth_of_owning_is_the_saving_of_its_months(housing: str) -> None:
    held = own("h20x32", choice=Choice(housing=housing))
    let = rental("h20x32", "cloud_month")
    found = worth.worth(held, let)
    saved = -npf.pv(0.05 / 12, 48, let.monthly_cny.value - held.monthly_cny.value)
    assert found.npv_cny.value == pytest.approx(saved)
    assert found.npv_cny.low < found.npv_cny.value < found.npv_cny.high
    assert found.flows_cny.shape == (49,)
    assert found.irr_value is not None and found.irr_high is not None
    assert found.irr_low is None  # at the dear ends it never pays back
    assert 0.05 < found.irr_value < found.irr_high
    rate = (1 + found.irr_value) ** (1 / 12) - 1
    assert npf.npv(rate, found.flows_cny) == pytest.approx(0, abs=1)


def test_what_it_replaces_may_become_cheaper() -> None:
    held = own("h20x32")
    flat, falling = (worth.worth(held, point(400_000), d) for d in (0.0, 0.3))
    assert falling.npv_cny.value < flat.npv_cny.value
    assert falling.flows_cny[12] == pytest.approx(400_000 * 0.7 - held.running_cny.value)
    assert worth.worth(held, point(1.0)).irr_value is None
    with pytest.raises(InputError, match="decline"):
        worth.worth(held, point(1.0), 1.0)


def test_the_articles_sums() -> None:
    found = {one.item_id: one for one in articles.stated()}
    verdicts = {item: one.verdict for item, one in found.items()}
    assert verdicts == {
        "claim.card.h20-96": "contradicts",
        "claim.server8.h20-96": "possible",
        "claim.servers.four": "contradicts",
        "claim.superpod64.cards": "agrees",
        "claim.superpod64.all": "possible",
    }
    assert articles.compromise_servers() == Range(2, 1, 3)
    assert set(found) | {articles.COMPROMISE} == {item for item in prices() if item.startswith("claim.")}
