"""What things cost: bills by hand, units, services, break-evens, and the one clear line for what has no price."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy_financial as npf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3lib import units
from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.account.symbols import REGISTRY, declared, latex
from k3lib.cost import api, unit
from k3lib.cost.bill import SHARED, bill
from k3lib.cost.choice import Choice
from k3lib.cost.own import Ownership, own
from k3lib.cost.rent import CLASSES, rental, rental_classes, rentals
from k3lib.errors import InputError, NoPriceError
from k3lib.evaluate import arrays
from k3lib.facts.cluster_prices import LINES, OPTIONS, cluster_prices, lines_of
from k3lib.facts.clusters import cluster_fact, clusters
from k3lib.facts.paths import DATA
from k3lib.facts.planned import planned
from k3lib.facts.price_parameters import price_parameters, with_parameters
from k3lib.facts.prices import in_cny, price, prices, prices_with
from k3lib.facts.workloads import workload, workloads
from k3lib.ranges import Range, point

CNY_PER_USD = 6.7
SPEED = Range(1500, 1000, 2250)
PRICED = tuple(name for name in clusters() if name != "floor80x64")


def mix(name: str) -> api.Mix:
    return api.mix_of(workload(name))


@pytest.mark.parametrize(("rate", "years"), [(0.05, 4), (0.03, 5), (0.10, 3), (0.0001, 14), (0.25, 1)])
def test_the_annuity_is_that_of_a_financial_library(rate: float, years: float) -> None:
    values = {m.capital_rate: rate, m.life: years, m.resale_share: 0.1, m.goods: 1e6, m.once: 2e5, m.extra_share: 0.11,
              m.room_price: 0.0, m.rated_power: 24.0, m.room_life: 14.0}  # fmt: skip
    found = arrays({"factor": eq.capital_recovery(m.life), "capital": eq.capital_cny()}, values)
    assert found["factor"][0] == pytest.approx(-npf.pmt(rate / 12, 12 * years, 1), rel=1e-9)
    assert found["capital"][0] == pytest.approx(-npf.pmt(rate / 12, 12 * years, 1e6 * 1.11 + 2e5, -1e5), rel=1e-9)


def test_a_loan_by_hand() -> None:
    """One million at 12 % over one year: 1 % a month, so 10,000 / (1 - 1.01^-12)."""
    factor = arrays({"f": eq.capital_recovery(m.life)}, {m.capital_rate: 0.12, m.life: 1.0})["f"][0]
    assert 1e6 * factor == pytest.approx(10_000 / (1 - 1.01**-12))
    assert 1e6 * factor == pytest.approx(88_848.79, abs=0.01)


def test_four_servers_of_h20() -> None:
    servers = own("h20x32").line("servers")
    assert (servers.cny.low, servers.cny.value, servers.cny.high) == (3_800_000, 4_800_000, 8_000_000)
    assert servers.grade == "measured" and "reuters_h20" in servers.sources


def test_the_fabric_of_four_servers() -> None:
    held = own("h20x32")
    switch, optics = held.line("switches").cny, held.line("optics").cny
    assert switch.value == 50_000 * CNY_PER_USD
    assert optics.value == pytest.approx(32 * 1320 * CNY_PER_USD)
    assert 500_000 < switch.value + optics.value < 620_000


def test_the_power_bill_by_hand() -> None:
    """Four servers of 6 kW at 70 % of it, times 1.25, 730 hours, 0.70 CNY."""
    held = own("h20x32")
    assert held.kwh_month is not None
    assert held.kwh_month.value == pytest.approx(4 * 6 * 0.70 * 1.25 * 730) == pytest.approx(15_330)
    assert held.line("electricity").cny.value == pytest.approx(10_731)
    assert held.line("electricity").cny.high == pytest.approx(4 * 8.6 * 1.00 * 1.5 * 730 * 0.85)


def test_a_bill_by_hand() -> None:
    """Every line of 32 H20 at its default, added up outside the library."""
    goods = 4.8e6 + 335_000 + 32 * 1320 * 6.7 + 4 * 1024 * 15 * 6.7 + 20 * 550 * 6.7 + 3 * 20_000
    capex = goods * (1 + 0.05 + 0.01 + 0 + 0.05)
    held = own("h20x32")
    assert held.capex_cny.value == pytest.approx(capex) == pytest.approx(6_619_325, abs=1)
    capital = -npf.pmt(0.05 / 12, 48, capex, -0.1 * goods)
    running = 10_731 + 24 * 600 + goods * 0.05 / 12 + 100 * 30 + 600_000 * 1.35 / 12 + 200_000 / 12 + 100_000 / 12
    running += 2 * 100_000 / 12
    assert held.capital_cny.value == pytest.approx(capital)
    assert held.running_cny.value == pytest.approx(running)
    assert held.monthly_cny.value == pytest.approx(capital + running)


@pytest.mark.parametrize("name", PRICED)
@pytest.mark.parametrize("housing", ["colocation", "room"])
def test_lines_add_up_at_every_end(name: str, housing: str) -> None:
    held = own(name, choice=Choice(housing=housing))
    for end in ("low", "value", "high"):
        paid = [getattr(line.cny, end) for line in held.lines if line.kind == "capex"]
        months = [getattr(line.monthly_cny, end) for line in held.lines]
        assert sum(paid) == pytest.approx(getattr(held.capex_cny, end))
        assert sum(months) == pytest.approx(getattr(held.monthly_cny, end))
    for line in held.lines:
        assert 0 <= line.cny.low <= line.cny.value <= line.cny.high
        assert line.sources and line.items and line.label
        assert latex(line.expression)


@pytest.mark.parametrize("name", PRICED)
def test_every_line_is_present(name: str) -> None:
    ported = clusters()[name].device in ("a3-910c", "atlas-950dt")
    missing = {"power", "rent"} | (set() if ported else {"porting"})
    assert {line.name for line in own(name).lines} == set(LINES) - missing
    assert (own(name).line("staff").cny.value > 70_000) == ported


@pytest.mark.parametrize("name", list(clusters()))
def test_power_of_a_bill_is_what_is_known_of_the_cluster(name: str) -> None:
    prices_of = "articles" if name == "floor80x64" else "market"
    held = own(name, choice=Choice(prices=prices_of, load_factor=1, pue=1))
    assert held.kwh_month is not None
    bought = 72 / 64 if name in ("gb200-nvl72-64", "gb300-nvl72-64") else 1  # a whole rack is bought
    fact = cluster_fact(name, "power")
    low, high = fact.value if fact.low is None else fact.low, fact.value if fact.high is None else fact.high
    assert 0.99 * low * bought <= held.kwh_month.value / 730 <= 1.01 * high * bought


def test_a_room_of_ones_own_outlives_the_servers() -> None:
    held = own("h20x32", choice=Choice(housing="room"))
    room = held.line("housing")
    assert room.kind == "capex" and room.cny.value == pytest.approx(24 * 7800 * CNY_PER_USD)
    assert room.monthly_cny.value == pytest.approx(-npf.pmt(0.05 / 12, 14 * 12, room.cny.value))
    assert held.capex_cny.value == pytest.approx(own("h20x32").capex_cny.value + room.cny.value)


def test_the_helped_power_of_the_west_is_for_chinese_cards() -> None:
    west, coast = (own("a3x64", choice=Choice(region=r)).line("electricity").cny.value for r in ("west", "coast"))
    assert west / coast == pytest.approx(0.4 / 0.7)
    with pytest.raises(NoPriceError, match="h20x32 has no price of electricity for region=west"):
        own("h20x32", choice=Choice(region="west"))


@pytest.mark.parametrize(
    ("name", "choice", "words"),
    [
        ("floor80x64", Choice(), "no published price for prices = 'market'"),
        ("h20x32", Choice(region="abroad"), "has no price of servers with their cards for place=abroad"),
        ("gb300-nvl72-64", Choice(region="coast"), "has no price of servers"),
    ],
)
def test_what_nobody_priced_is_said(name: str, choice: Choice, words: str) -> None:
    with pytest.raises(NoPriceError, match=words):
        own(name, choice=choice)


def test_where_a_cluster_is_bought_by_default() -> None:
    regions = {name: own(name).bill.region for name in PRICED}
    assert {name for name, region in regions.items() if region == "abroad"} == {
        "h100x32", "h100x64", "gb200-nvl72-64", "gb300-nvl72-64"}  # fmt: skip
    china = own("gb200-nvl72-64", choice=Choice(region="coast")).line("servers").cny
    assert (china.low, china.high) == (20e6, 30e6)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"region": "cost"}, "region = 'cost' is not known. Did you mean 'coast'?"),
        ({"housing": "colocatoin"}, "Did you mean 'colocation'?"),
        ({"utilisation": 40}, "is a share, from 0 to 1. Were per cent meant?"),
        ({"utilisation": 0}, "utilisation = 0: must be above 0"),
        ({"life_years": -1}, "life_years = -1: must be above 0"),
        ({"capital_cost": float("nan")}, "must be finite"),
        ({"tax": -0.1}, "tax = -0.1: must be at least 0"),
        ({"pue": 0.8}, "pue = 0.8: must be at least 1"),
        ({"spares": Range(0.1, 0.2, 0.3)}, "0.1 is not between them"),
        ({"counts": {"staf": 1}}, "line 'staf' is not known. Did you mean 'staff'?"),
        ({"counts": {"staff": -1}}, "staff = -1: must be at least 0"),
    ],
)
def test_a_choice_that_cannot_be(given: dict[str, object], words: str) -> None:
    with pytest.raises(InputError) as caught:
        Choice(**given)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_choices_take_the_place_of_prices() -> None:
    base = own("h20x32")
    taxed = own("h20x32", choice=Choice(tax=0.13))
    goods = sum(base.line(n).cny.value for n in ("servers", "network-cards", "switches", "optics", "memory", "storage",
                                                 "cabinets"))  # fmt: skip
    assert taxed.capex_cny.value - base.capex_cny.value == pytest.approx(0.13 * goods)
    assert own("h20x32", choice=Choice(counts={"staff": 2})).line("staff").cny.value == pytest.approx(2 * 67_500)
    spare = own("h20x32", choice=Choice(spares=0.25)).line("spares").cny
    assert spare.value == pytest.approx(goods / 4)
    free = own("h20x32", choice=Choice(capital_cost=0, residual=0, life_years=4))
    assert free.capital_cny.value == pytest.approx(free.capex_cny.value / 48, rel=1e-5)
    assert own("h20x32", choice=Choice(fabric="roce")).line("switches").cny.value == 30_000 * CNY_PER_USD
    with pytest.raises(InputError, match="this bill has no line 'porting'"):
        own("h20x32", choice=Choice(counts={"porting": 1}))


def test_a_quote_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "item_id,low,default,high,unit,currency,region,as_of,kind,grade,source_id,note\n"
        "server8.h20-96,1100000,1150000,1200000,CNY/server,CNY,cn,2026-11,street,measured,own_price,\n",
        encoding="utf-8",
    )
    line = own("h20x32", prices_with(path)).line("servers")
    assert (line.cny.value, line.sources) == (4_600_000, ("article_a", "own_price"))


def test_at_the_articles_prices() -> None:
    dear = own("h20x32", choice=Choice(prices="articles"))
    assert (dear.line("servers").cny.low, dear.line("servers").cny.high) == (8_000_000, 14_000_000)
    for name in ("a3x64", "gb200-nvl72-64", "gb300-nvl72-64", "atlas950x64", "floor80x64"):
        line = own(name, choice=Choice(prices="articles")).line("servers")
        assert line.cny == Range(20e6, 20e6, 20e6) and line.grade == "assumed"


@pytest.mark.parametrize(
    ("name", "rent_class", "cny_month"),
    [("h20x32", "bare_metal", 4 * 35_000), ("h20x32", "cloud_month", 4 * 174_579), ("a3x64", "reserved", 640_000),
     ("gb200-nvl72-64", "cloud_hour", 761.904 * 730 * CNY_PER_USD), ("h200x64", "bare_metal", 8 * 80_000)],
)  # fmt: skip
def test_rents_are_the_published_bills(name: str, rent_class: str, cny_month: float) -> None:
    held = rental(name, rent_class)
    assert held.line("rent").cny.value == pytest.approx(cny_month, rel=1e-3)
    assert held.monthly_cny.value > held.line("rent").cny.value and held.kwh_month is None
    assert held.capex_cny.value == (600_000 if name == "a3x64" else 0)
    assert sum(line.monthly_cny.value for line in held.lines) == pytest.approx(held.monthly_cny.value)


def test_what_is_let() -> None:
    assert set(CLASSES) == set(OPTIONS["class"])
    assert rental_classes("h20x32") == ("bare_metal", "market", "cloud_month", "cloud_hour")
    assert rental_classes("atlas950x64") == rental_classes("floor80x64") == rental_classes("gb300-nvl72-64") == ()
    assert set(rentals("h100x32")) == {"bare_metal", "market", "reserved", "cloud_hour"}
    assert set(rentals("h100x32", choice=Choice(region="coast"))) == {"bare_metal", "reserved"}
    with pytest.raises(NoPriceError, match=r"no published rent of class 'market'. Published: reserved"):
        rental("a3x64", "market")


def test_a_service_by_hand() -> None:
    """One turn of an agent: 4,800 new and 75,200 cached prompt tokens, 760 out."""
    coding = mix("coding-agent")
    assert (coding.new, coding.cached, coding.answer) == (4800, 75_200, 760)
    offer = api.offer("k31-pro", "moonshot-cn")
    paid = (4800 * 13 + 75_200 * 1.3 + 760 * 68) / 760
    assert api.api_cost_cny(coding, offer).value == pytest.approx(paid) == pytest.approx(278.74, abs=0.01)
    assert api.api_month_cny(coding, 100, offer).value == pytest.approx(100 * paid)
    assert api.api_cost_cny(coding, offer, api.batch_share()).value == pytest.approx(0.6 * paid)


def test_hosts() -> None:
    known = api.offers()
    assert {o.model for o in known.values()} == {"k3", "k31-pro", "k31-pro-highspeed"}
    assert known["k3@baseten"].cached == known["k3@baseten"].input and not known["k3@baseten"].cache_listed
    assert known["k3@comet"].output.value == pytest.approx(0.8 * known["k3@moonshot"].output.value)
    assert known["k3@moonshot"].input.value == pytest.approx(3 * CNY_PER_USD)
    assert api.offer("k3", "moonshot", cny_per_usd=7).output.value == pytest.approx(105)
    with pytest.raises(NoPriceError, match="Did you mean 'k31-pro@moonshot-cn'"):
        api.offer("k31-pro", "moonshot-ch")


def test_a_million_tokens_by_hand() -> None:
    held, chat = own("h20x32"), mix("online-chat")
    found = unit.unit_cost(held, SPEED, chat)
    up = 1 / (1 + 32 * 24 / (6 * 8760))
    assert held.availability.value == pytest.approx(up)
    mtok = 1500 * 0.40 * up * 730 * 3600 / 1e6
    assert found.mtok_month.value == pytest.approx(mtok)
    assert found.per_mtok_output.value == pytest.approx(held.monthly_cny.value / mtok)
    tokens = (12_035 + 2343) / 2343
    assert found.per_mtok_all.value == pytest.approx(found.per_mtok_output.value / tokens)
    assert found.per_user is not None and found.users is not None and found.kwh_per_mtok is not None
    assert found.per_user.value == pytest.approx(found.per_mtok_output.value * 440 * 2343 / 1e6)
    assert found.users.value * found.per_user.value == pytest.approx(held.monthly_cny.value)
    assert found.kwh_per_mtok.value == pytest.approx(15_330 / mtok)
    assert found.idle_cny.value + found.failure_cny.value == pytest.approx(held.monthly_cny.value * (1 - 0.4 * up))


@pytest.mark.parametrize("name", list(workloads()))
def test_ranges_hold_their_values(name: str) -> None:
    for held in (own("h20x32"), own("a3x64"), *rentals("h20x32").values()):
        found = unit.unit_cost(held, SPEED, mix(name))
        ranges = [x for x in vars(found).values() if isinstance(x, Range)] + [
            x for x in vars(held).values() if isinstance(x, Range)]  # fmt: skip
        assert len(ranges) > 8
        for one in ranges:
            assert 0 <= one.low <= one.value <= one.high
        assert (found.per_user is None) == (name == "offline-batch")
        assert (found.kwh_per_mtok is None) == (held.kwh_month is None)


@pytest.mark.parametrize("name", list(workloads()))
def test_at_break_even_both_cost_the_same(name: str) -> None:
    held = own("h20x32")
    paid = api.api_cost_cny(mix(name), api.offer("k31-pro", "moonshot-cn"))
    found = unit.break_even(held, SPEED, mix(name), paid)
    if found.utilisation.value <= 1:
        there = own("h20x32", choice=Choice(utilisation=found.utilisation.value))
        assert unit.unit_cost(there, SPEED, mix(name)).per_mtok_output.value == pytest.approx(paid.value)
    assert found.mtok_month.value * paid.value == pytest.approx(held.monthly_cny.value)


def test_payback_by_hand() -> None:
    held, let = own("h20x32"), rental("h20x32", "cloud_month")
    saving = let.line("rent").cny.value + 67_500 + 200_000 / 12 + 100_000 / 12 + 3000 + 200_000 / 12
    saving -= held.running_cny.value
    months = unit.pays_back_months(held, let)
    assert months.value == pytest.approx(held.capex_cny.value / saving)
    with_interest = unit.pays_back_months(held, let, interest=True)
    assert with_interest.value == pytest.approx(npf.nper(0.05 / 12, saving, -held.capex_cny.value))
    assert months.low <= months.value <= months.high and with_interest.value > months.value
    assert unit.pays_back_months(held, point(1000.0)) == Range(math.inf, math.inf, math.inf)
    hours = unit.break_even_hours(held, let)
    rent = let.line("rent").cny.value
    operations = sum(let.line(n).cny.value for n in ("staff", "monitoring", "bandwidth", "compliance", "changes"))
    assert hours.value == pytest.approx((held.monthly_cny.value - operations) / rent)


def test_porting_is_paid_by_who_rents_too() -> None:
    held, let = own("a3x64"), rental("a3x64", "reserved")
    saving = let.running_cny.value - held.running_cny.value
    assert unit.pays_back_months(held, let).value == pytest.approx((held.capex_cny.value - 600_000) / saving)


@pytest.mark.parametrize("speed", [Range(0, 0, 0), Range(5, 6, 7), Range(-1, -2, 3), Range(1, 1, math.inf)])
def test_a_speed_that_cannot_be(speed: Range) -> None:
    with pytest.raises(InputError, match="output_tps"):
        unit.unit_cost(own("h20x32"), speed, mix("rag"))


def test_equations_use_the_vocabulary() -> None:
    asked = [eq.unit_cny(), eq.blended_cny(), eq.user_cny(), eq.users_served(), eq.energy_per_mtok(), eq.api_cny(),
             eq.api_levelled(), eq.break_even_utilisation(), eq.break_even_mtok(), eq.break_even_hours(),
             eq.payback_months(), eq.payback_with_interest_months(), eq.volume_unit_cny(), eq.unit_of_month(),
             eq.break_even_of_month()]  # fmt: skip
    asked += [eq.line_cny(basis, currency) for basis in eq.BASES for currency in ("CNY", "USD", "")]
    assert all(declared(x) and latex(x) for x in asked)
    used = {str(x) for expression in asked for x in expression.free_symbols}
    assert used == {q.name for q in REGISTRY.values() if q.topic == "costs"}


def test_the_table_of_bills() -> None:
    rows = cluster_prices()
    assert {row.cluster for row in rows} == {"any", *clusters()}
    for name in clusters():
        for line, held in lines_of(name).items():
            assert line in LINES and held
    for row in rows:
        assert row.note, (row.cluster, row.line)
        if "k3lib_assumed" in row.source_ids:
            assert row.grade == "assumed"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("h20x32,servers,server8.h20-96,", "h20x33,servers,server8.h20-96,", ["cluster 'h20x33'", "Did you mean"]),
        ("h20x32,servers,server8.h20-96,", "h20x32,servers,server8.h20-69,", ["item 'server8.h20-69'", "Did you mean"]),
        (
            "h20x32,servers,server8.h20-96,",
            "h20x32,server,server8.h20-96,",
            ["line 'server'", "Did you mean 'servers'"],
        ),
        ("any,memory,dram,1024,0,", "any,memory,dram,1024,2000,", ["count 1024 is not between low 2000"]),
        ("place=cn;prices=market", "plaec=cn;prices=market", ["option 'plaec'", "Did you mean 'place'"]),
        ("place=cn;prices=market", "place=cn;prices=markte", ["prices = 'markte'", "Did you mean 'market'"]),
        ("place=cn;prices=market", "place:cn", ["option = 'place:cn'"]),
    ],
)
def test_a_bad_row_of_a_bill_is_named(old: str, new: str, words: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    path = folder / "cluster_prices.csv"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        cluster_prices(folder)
    for word in ("cluster_prices.csv", *words):
        assert word in str(caught.value), str(caught.value)


DEARER = [item for item in bill("h20x32").inputs if not item.startswith("count.")]


@given(st.sampled_from(DEARER), st.floats(1.01, 3))
def test_a_month_costs_no_less_when_a_price_rises(item: str, factor: float) -> None:
    row = price(item)
    if row.currency == "" and row.high * factor > 100:
        factor = 1.0
    dearer = row.model_copy(update={name: getattr(row, name) * factor for name in ("low", "default", "high")})
    before, after = own("h20x32"), own("h20x32", {**prices(), item: dearer})
    was, now = monthly(before), monthly(after)
    if before.bill.inputs[item].falling:
        assert now <= was * (1 + 1e-12)
    else:
        assert now >= was * (1 - 1e-12)


def monthly(held: Ownership) -> float:
    """The cost of a million tokens, in which every input of a bill has its part."""
    return unit.unit_cost(held, SPEED, mix("online-chat")).per_mtok_output.value


def test_dollars_become_yuan_at_one_rate() -> None:
    held = own("gb200-nvl72-64", choice=Choice(cny_per_usd=7, region="abroad"))
    assert held.line("servers").cny.value == in_cny(price("rack72.gb200"), 7)[1]


def test_prices_by_the_name_of_a_parameter() -> None:
    table = with_parameters(
        {"h20_server_price_cny": "1.5e6", "cny_per_usd": 6.9, "residual_share": 0.2, "life_years": 5}
    )
    held = own("h20x32", table)
    assert held.line("servers").cny == point(6e6)
    assert held.line("switches").cny.value == 50_000 * 6.9
    assert held.bill.inputs["residual.share"].range == point(0.2)
    assert held.bill.inputs["life.server"].range == point(5)
    assert table["server8.h20-96"].source_ids == ("own_price",)
    assert prices()["server8.h20-96"].default == 1_200_000
    by_choice = own("h20x32", choice=Choice(cny_per_usd=6.9, residual=0.2, life_years=5))
    set_ones = own("h20x32", with_parameters({"cny_per_usd": 6.9, "residual_share": 0.2, "life_years": 5}))
    assert by_choice.monthly_cny == set_ones.monthly_cny
    cheap = with_parameters({"k31_input_cny_per_mtok": 10, "k31_cached_cny_per_mtok": 1, "k31_output_cny_per_mtok": 50})
    assert api.offer("k31-pro", "moonshot-cn", cheap).output == point(50)


@pytest.mark.parametrize("name", list(price_parameters()))
def test_every_parameter_can_be_set_to_its_default(name: str) -> None:
    row = price_parameters()[name]
    ours = prices()[row.item_id]
    given = units.convert(ours.default, ours.unit, row.unit)
    assert with_parameters({name: given})[row.item_id].default == pytest.approx(ours.default)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("h20_server_price_cyn", 1.5e6, "is not known. Did you mean 'h20_server_price_cny'?"),
        ("h20_server_price_cny", -1, "must not be negative"),
        ("h20_server_price_cny", "nan", "must be a finite number, in CNY/server"),
        ("h20_server_price_cny", "inf", "must be a finite number"),
        ("h20_server_price_cny", "much", "must be a finite number"),
        ("h20_server_price_cny", True, "must be a finite number"),
        ("h20_server_price_cny", 1200, "Was thousand yuan or yuan meant? It is read in CNY/server."),
        ("h20_server_price_cny", 1.2e9, "is far from the project's 950,000 to 2,000,000"),
        ("cny_per_usd", 6700, "is far from the project's"),
        ("cny_per_usd", 0, "low is 0 CNY/USD. Write a value above 0."),
        ("spares_share", 40, "is a share, from 0 to 1. Were per cent meant?"),
        ("capital_cost_per_year", 5, "is a share, from 0 to 1. Were per cent meant?"),
        ("life_years", 0, "low is 0 years"),
        ("pue", 0.5, "low 0.5 is below 1"),
    ],
)
def test_a_parameter_that_cannot_be(name: str, value: float | str, words: str) -> None:
    before = dict(prices())
    with pytest.raises(InputError) as caught:
        with_parameters({"pue": 1.3, name: value})
    assert words in str(caught.value) and name[:8] in str(caught.value), str(caught.value)
    assert prices() == before


def test_no_load_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="item 'load_factor': low is 0"):
        own("h20x32", with_parameters({"load_factor": 0}))


def test_a_planned_cluster_has_the_bill_of_its_cards() -> None:
    assert own(planned("4x8xh20-96", 8)).capex_cny == own("h20x32").capex_cny
    once, twice = own("h20x32"), own(planned("8x8xh20-96", 8))
    for line in once.lines:
        times = 1 if line.name in SHARED else 2
        assert twice.line(line.name).cny.value == pytest.approx(times * line.cny.value), line.name
    assert twice.availability.value < once.availability.value
    rents = rentals(planned("8x8xh20-96", 8))
    half = rental("h20x32", "market").line("rent")
    assert rents["market"].line("rent").cny.value == pytest.approx(2 * half.cny.value)
    assert not rentals(planned("1x8xb300", 8))
    with pytest.raises(NoPriceError, match="made of b300"):
        own(planned("1x8xb300", 8))
