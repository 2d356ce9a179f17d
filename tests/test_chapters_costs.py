"""The chapters on costs: bills of a scenario, results and cells, sentences, the page of prices."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.choose import costed
from k3lib.choose.scene import Scene, scene
from k3lib.choose.study import Entry, Seen
from k3lib.cost import uncertain
from k3lib.cost.bill import SHARED
from k3lib.cost.options import cost, defaults
from k3lib.cost.sensitive import Index, levers
from k3lib.cost.worth import Worth
from k3lib.errors import InputError
from k3lib.evaluate import Array
from k3lib.facts.prices import ASSUMED, prices
from k3lib.ranges import Range, point
from k3lib.report import compare, show
from k3lib.report import cost_words as words
from k3lib.report import costs as shown
from k3lib.report import prices as page
from k3lib.results import Result, make

PLAIN = dict(cards=32, cards_per_node=8, device="h20-96", nics=8, superpod="a3x64", engine="vllm", weights="mxfp4",
             ttft_goal_s=0, tpot_goal_ms=0)  # fmt: skip


def seen(output_tps: float) -> Seen:
    return Seen(Range(output_tps, output_tps / 2, output_tps * 2), point(50.0), point(1000.0), "experts", "as measured")


def entry(cluster_id: str, workload_id: str, output_tps: float | None, within: bool = True) -> Entry:
    one = None if output_tps is None else seen(output_tps)
    most = one if within else None
    return Entry(cluster_id, workload_id, 32, 8, "tp8,pp4" if one else "", "" if one else "too large", one, 1, 1, 1, 1,
                 within, within, 4 if most else 0, "tp8,pp4" if most else "", most, ("k3_config",))  # fmt: skip


# Output of every workload by cluster, so that no test waits for predictions; one of the plan misses its goals.
OUTPUTS = {"h20x32": 1500.0, "h20-141x32": 1600.0, "h200x32": 4700.0, "h200x64": 9400.0, "a3x64": 13_000.0,
           "gb200-nvl72-64": 34_000.0, "gb300-nvl72-64": 35_000.0, "atlas950x64": 11_000.0,
           "floor80x64": 6800.0}  # fmt: skip
SLOWER = {"offline-batch": 1.0, "online-chat": 0.1, "rag": 0.2, "coding-agent": 0.15, "million-token": 0.004}


@pytest.fixture(scope="module")
def here() -> Scene:
    return with_entries(scene(**PLAIN))  # type: ignore[arg-type]


def with_entries(one: Scene) -> Scene:
    for row in one.clusters:
        for name in one.workloads:
            misses = row is one.plan and name == "million-token"
            speed = OUTPUTS.get(row.cluster_id, 3000.0) * SLOWER[name]
            one._entries[row.cluster_id, name] = entry(row.cluster_id, name, speed, within=not misses)
    return one


@pytest.fixture(scope="module")
def known(here: Scene) -> costed.Costs:
    return costed.costs(here, prices(), 0.4)


def test_costs_are_counted_at_the_most_clients_within_the_goals() -> None:
    full = costed.full_load(entry("h20x32", "rag", 100.0))
    assert full and (full.clients, full.within, full.seen.output_tps.value) == (4, True, 100.0)
    loose = costed.full_load(entry("h20x32", "rag", 100.0, within=False))
    assert loose and (loose.clients, loose.within) == (8, False)
    assert costed.full_load(entry("h20x32", "rag", None)) is None


def test_a_bill_is_of_the_region_where_the_cluster_may_be_had(here: Scene, known: costed.Costs) -> None:
    assert known.owned["h200x32"].bill.region == "coast"
    assert known.owned["gb200-nvl72-64"].bill.region == "abroad"
    assert not known.there(next(row for row in here.clusters if row.cluster_id == "gb200-nvl72-64"))
    assert "floor80x64" not in known.owned
    assert "floor80x64" in costed.costs(here, prices(), 0.4, prices="articles").owned
    abroad = costed.costs(here, prices(), 0.4, "other")
    assert abroad.owned["a3x64"].bill.region == "coast"  # not to be had abroad, so where it can be had
    assert "h200x32" not in abroad.owned  # nobody published a price of such servers abroad
    assert set(abroad.rented["h200x32"]) == {"market", "reserved"}
    assert abroad.services == ("k31-pro@moonshot", "k3@moonshot")


def test_the_pair_stands_for_plan_and_superpod(here: Scene, known: costed.Costs) -> None:
    assert [row.cluster_id for row in known.pair] == ["h20x32", "a3x64"]
    assert known.first(known.pair[0]) == "offline-batch"
    floor = with_entries(scene(**{**PLAIN, "superpod": "floor80x64"}))  # type: ignore[arg-type]
    assert [row.cluster_id for row in costed.costs(floor, prices(), 0.4).pair] == ["h20x32", "h20-141x32"]
    nothing = with_entries(scene(**PLAIN))  # type: ignore[arg-type]
    nothing._entries.update({key: entry(*key, None) for key in nothing._entries})
    with pytest.raises(InputError, match="not two clusters"):
        _ = costed.costs(nothing, prices(), 0.4).pair


def test_a_planned_cluster_has_costs_too() -> None:
    large = with_entries(scene(**{**PLAIN, "cards": 64}))  # type: ignore[arg-type]
    found = costed.costs(large, prices(), 0.4)
    name = large.plan.cluster_id
    assert found.pair[0] is large.plan
    assert found.owned[name].line("servers").cny.value == 8 * prices()["server8.h20-96"].default
    assert {"staff", "changes"} <= set(SHARED)
    assert {option.name for option in found.options("rag")} >= {f"own:{name}", f"rent:{name}:bare_metal"}


def test_the_ways_to_a_workload(known: costed.Costs) -> None:
    batch = {option.name for option in known.options("offline-batch")}
    chat = {option.name for option in known.options("online-chat")}
    assert batch - chat == {f"api:{service}:batch" for service in known.services}
    assert {name for name in chat if name.startswith("rent:a3x64")} == {"rent:a3x64:reserved"}
    assert {name for name in chat if name.startswith("rent:h20x32")} == {"rent:h20x32:bare_metal"}
    for option in known.options("online-chat"):
        if option.kind == "own":
            ends = option.inputs[costed.UTILISATION].range
            assert (ends.value, ends.low, ends.high) == (0.4, 0.1, 0.8)
            found = known.unit(known.owned[option.name.split(":")[1]], "online-chat")
            at = cost(option, known.mix("online-chat"), defaults(option.inputs))[0]
            assert found and at == pytest.approx(found.per_mtok_output.value)
    assert known.option("own:nowhere", "rag") is None
    busy = costed.costs(known.scene, prices(), 0.9)
    assert (busy.utilisation.low, busy.utilisation.high) == (0.1, 0.9)


def test_the_share_of_cheapest_draws_is_of_those_that_are_named() -> None:
    values = {"a": [1.0, 4.0, 3.0, 9.0], "b": [2.0, 1.0, 4.0, 9.5], "c": [0.5, 3.0, 5.0, 9.9]}
    draws: dict[str, Array] = {name: np.array(many) for name, many in values.items()}
    run = uncertain.Simulation(draws, {}, {})
    assert run.cheapest_of(["a", "b", "c"]) == {"a": 0.5, "b": 0.25, "c": 0.25}
    assert run.cheapest_of(["b", "c"]) == {"b": 0.75, "c": 0.25}


def test_derivatives_by_what_is_bought() -> None:
    assert sp.simplify(sp.diff(eq.monthly_cny(), m.goods) - eq.month_per_goods()) == 0


def test_levers_put_the_utilisation_first(known: costed.Costs) -> None:
    option = known.option("own:a3x64", "offline-batch")
    assert option is not None
    found = levers(option, known.mix("offline-batch"), draws=2000)
    assert [found[0].symbol, found[1].symbol] == [m.output_rate, m.busy_share]  # a speed of a half to the double
    assert found[0].elasticity == pytest.approx(-1)
    assert found[0].spread == pytest.approx(4, rel=0.1)
    assert found[0].effect == pytest.approx(found[0].spread)
    effects = [lever.effect for lever in found]
    assert effects == sorted(effects, reverse=True)
    assert min(effects) > 1


def test_bills_and_tokens_as_results(known: costed.Costs) -> None:
    held = known.owned["h20x32"]
    bill = shown.publish_bill(held, "cost.h20x32", make)
    assert bill["capex_cny"].key == "cost.h20x32.capex_cny"
    both = float(bill["capital_cny"].value) + float(bill["running_cny"].value)
    assert both == pytest.approx(bill["monthly_cny"].value)
    assert "kwh_month" not in shown.publish_bill(known.rented["h20x32"]["market"], "cost.h20x32.rent-market", make)
    months = [shown.publish_line(line, "cost.h20x32", make)[1].value for line in held.lines]
    assert sum(map(float, months)) == pytest.approx(bill["monthly_cny"].value)
    full, unit = known.full("h20x32", "online-chat"), known.unit(held, "online-chat")
    assert full and unit
    speed = shown.publish_speed("h20x32", "online-chat", full, ["k3_config"], make)
    found = shown.publish_units("cost.h20x32", "online-chat", held, unit, bill["monthly_cny"], speed, make)
    one = found["cny_per_mtok_output"]
    assert one.key == "cost.h20x32.cny_per_mtok_output.online-chat"
    assert {"cost.h20x32.monthly_cny", speed.key, "busy_share", "up_share"} <= set(one.inputs)
    seconds = 365 * 24 * 3600 / 12
    by_hand = float(bill["monthly_cny"].value) / (150 * 0.4 * held.availability.value * seconds / 1e6)
    assert one.value == pytest.approx(by_hand)
    batch = known.unit(held, "offline-batch")
    assert batch
    none = shown.publish_units("cost.h20x32", "offline-batch", held, batch, bill["monthly_cny"], speed, make)
    assert "users" not in none and "cny_per_user_month" not in none


def test_break_evens_as_results(known: costed.Costs) -> None:
    held, service = known.owned["a3x64"], known.services[0]
    month = shown.publish_bill(held, "cost.a3x64", make)["monthly_cny"]
    found = {}
    for load in known.scene.workloads:
        asked = shown.publish_offer(known.offers[service], known, load, make)
        assert asked.key == f"cost.api.moonshot-cn.k31-pro.cny_per_mtok_output.{load}"
        found[load] = shown.publish_break_even(known, held, load, service, asked, month, make=make)
        unit = known.unit(held, load)
        assert unit
        share = float(found[load]["utilisation"].value)
        assert unit.per_mtok_output.value * 0.4 / share == pytest.approx(asked.value)
    assert found["rag"]["utilisation"].key == "cost.breakeven.a3x64.k31-pro-moonshot-cn.utilisation.rag"
    least = shown.publish_least("a3x64", "k31-pro-moonshot-cn", found, make)
    assert least["utilisation"].key == "cost.breakeven.a3x64.k31-pro-moonshot-cn.utilisation"
    assert least["utilisation"].value == min(one["utilisation"].value for one in found.values())
    assert shown.publish_least("a3x64", "x", {"rag": {}}, make) == {}
    hours = shown.publish_hours(held, known.rented["a3x64"]["reserved"], "reserved", make)
    assert hours.key == "cost.breakeven.a3x64.rent-reserved.utilisation"


def result(value: float, low: float, high: float, unit: str = "1") -> Result:
    return make("cost.x", value, unit=unit, grade="assumed", low=low, high=high, sources=["k3lib_assumed"])


def test_cells_of_shares_and_months() -> None:
    some = shown.share_cell(result(0.62, 0.18, 3.96))
    assert ">62</a>" in some and "18\u2013396" in some
    never = shown.share_cell(result(31.8, 8.7, 213.0))
    assert "&gt;100</a>" in never and "870\u201321,300" in never and "3,180" not in never
    assert shown.share_cell(None) == compare.NONE_SHOWN
    assert shown.months_words(Range(74.2, 33.6, math.inf)) == "74 (34 to never)"
    assert shown.months_words(point(math.inf)) == "never"
    text = make("cost.payback.x", "74 (34 to never)", unit="", grade="assumed", sources=["k3lib_assumed"])
    assert shown.payback_cell(text).endswith(">74</a><br><small>34 to never</small>")
    assert shown.payback_words(text) == "74 months (34 to never)"
    assert "<small>22" in shown.payback_cell(result(30, 22, 50, "months"))
    assert "<small>" not in compare.in_range(result(3, 3, 3), ",.0f")
    assert shown.in_words("cost.y", None, "%", ".0f", "no utilisation", make).value == "no utilisation"
    assert str(shown.in_words("cost.y", result(0.5, 0.5, 0.5), "%", ".0f", "", make).value).startswith("50")
    assert show.two_lines("a < b", "c") == "a &lt; b<br><small>c</small>"
    assert shown.key_of("api:k31-pro@moonshot-cn:batch") == "api-k31-pro-moonshot-cn-batch"


def test_a_payback_that_never_comes_is_said_in_words(known: costed.Costs) -> None:
    never = shown.payback("cost.payback.h20x32.nothing", known.owned["h20x32"], point(0.0), ["k3lib_assumed"], make)
    assert never.value == "never"
    soon = shown.payback("cost.payback.h20x32.much", known.owned["h20x32"], point(1e7), ["k3lib_assumed"], make)
    assert soon.is_number and soon.unit == "months"


def test_what_is_cheaper_is_said_of_the_numbers(known: costed.Costs) -> None:
    service = known.services[0]
    assert words.cheaper(known, None, service) == []
    for name in ("h20x32", "gb200-nvl72-64"):
        by_hand = []
        for load, workload in known.scene.workloads.items():
            unit = known.unit(known.owned[name], load)
            asked = shown.publish_offer(known.offers[service], known, load, make)
            if unit and unit.per_mtok_output.value < float(asked.value):
                by_hand.append(workload.label)
        assert words.cheaper(known, known.owned[name], service) == by_hand
    said = words.cheaper_words(known, known.pair, service)
    assert said.startswith("By the token, owning 32 H20 96 GB is cheaper than Kimi K3.1 Pro at Moonshot in China for ")
    assert "; owning 64 Ascend 910C is cheaper than it for " in said


def test_the_cheapest_ways_are_grouped(known: costed.Costs) -> None:
    own, api = "own:h20x32", "api:k3@moonshot-cn"
    low, high = np.array([1.0, 1.0]), np.array([2.0, 2.0])
    runs = {"rag": uncertain.Simulation({own: low, api: high}, {}, {}),
            "online-chat": uncertain.Simulation({own: high, api: low}, {}, {}),
            "coding-agent": uncertain.Simulation({own: low, api: high}, {}, {})}  # fmt: skip
    said = words.firsts_words(runs, known, {name: [own, api] for name in runs})
    assert said == "own 32 H20 96 GB for retrieval and coding agents; Kimi K3 at Moonshot in China for online chat"


def test_parts_of_a_month(known: costed.Costs) -> None:
    for held in known.owned.values():
        parts = words.parts_of(held)
        assert sum(part.value for part in parts.values()) == pytest.approx(held.monthly_cny.value)
        assert sum(part.high for part in parts.values()) == pytest.approx(held.monthly_cny.high)
    shares = words.shares_of(known.owned["h20x32"])
    assert 0 < shares["power"] < shares["people"] < shares["bought"] < 1
    held = known.owned["h200x64"]
    whole = words.card_hour_usd(held, point(6.7), people=True)
    assert whole.value == pytest.approx(held.monthly_cny.value / 64 / 730 / 6.7)
    assert words.card_hour_usd(held, point(6.7), people=False).value < whole.value
    said = words.card_hour_words(held, point(6.7), whole.value)
    assert said.startswith("Ours for 64 H200 is ") and said.endswith(" %.") and "name: \u2212" in said
    some = words.operations_shares(held)
    assert 0 < some["without people"] < some["all"]


def test_words_of_ways_and_inputs(known: costed.Costs) -> None:
    clusters = {row.cluster_id: row for row in known.scene.clusters}
    assert words.way_words("rent:a3x64:reserved", clusters) == "rent 64 Ascend 910C, reserved for a year"
    assert words.way_words("api:k3@moonshot-cn:batch", clusters) == "Kimi K3 at Moonshot in China, in batches"
    for offer in known.offers:
        assert "@" not in words.service_words(offer)
    assert words.short_words("speed.h20x32", "output of the whole") == "speed under full load"
    assert words.short_words("count.any.staff", "how much: engineers") == "number of engineers"
    assert words.short_words("count.any.storage", "how much: storage") == "amount of storage"
    assert words.short_words("utilisation", "utilisation: share of it") == "utilisation"
    assert words.plain(950_000) == "950,000" and words.plain(0.25) == "0.25"
    staff = Index("count.any.staff", "how much: engineers", 0, 0, 0.05, 0)
    indices = [Index("utilisation", "utilisation: x", 0.7, 0, 0.75, 0), staff]
    assert words.indices_words(indices) == "utilisation (75%) and number of engineers (5%)"
    assert words.default_words("32 H20", 100.0, Range(125.0, 90.0, 300.0)) == (
        "On 32 H20 the median of the draws is 125 (90 to 300) yuan, 25% above the default bill's 100."
    )
    assert words.load_words(None) == "does not fit"
    assert words.load_words(costed.Full(seen(1.0), 1, "tp8", False)) == "1 client*"
    assert "64 Ascend 950" in words.status_words(known) and "export licence" in words.status_words(known)
    none = Worth(point(0.0), None, None, None, np.zeros(1))
    assert words.interest_cell(none) == "a loss"
    assert words.interest_cell(replace(none, irr_value=0.1, irr_high=0.2)) == "10<br><small>a loss to 20</small>"


def test_every_price_has_its_place_on_the_page() -> None:
    table = prices()
    for item, one in table.items():
        assert page.group_of(item)
        kept = make(f"price.{item}", one.default, unit=one.unit, grade=one.grade, low=one.low, high=one.high,
                    sources=list(one.source_ids))  # fmt: skip
        cells = page.price_cells(one, kept)
        assert len(cells) == len(page.COLUMNS)
        assert all(f"#s-{source}" in cells[9] for source in one.source_ids)
    assert set(page.GROUPS) == {item.partition(".")[0] for item in table}
    assert {one.item_id for one in page.unpublished(table)} == {
        item for item, one in table.items() if ASSUMED in one.source_ids
    }


def test_prices_that_disagree() -> None:
    found = page.conflicts(prices(), 6.7)
    assert len(found) == len(page.PAIRS)
    for one in found:
        assert one.times.value >= 1
        assert one.times.low <= one.times.value <= one.times.high
    (rents,) = [one for one in found if one.one.item_id == "rent.h20-96.bare_metal"]
    assert rents.times.value == pytest.approx(29.89 / 5.99)
    (racks,) = [one for one in found if one.one.item_id == "rack72.gb200"]
    assert racks.times.value == pytest.approx(25e6 / (3.1e6 * 6.7))
