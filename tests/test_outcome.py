"""Workloads on clusters: what fits, what power it takes, how many are held at once, how many are served in time."""

from __future__ import annotations

import dataclasses
from functools import lru_cache

import pytest

from k3lib.calibrate.predict import Range, numbers
from k3lib.choose import outcome as oc
from k3lib.choose.deployed import deployed, space_of, with_domain
from k3lib.deploy.inverse import largest, largest_concurrency
from k3lib.deploy.plan import Plan
from k3lib.deploy.search import search, sized
from k3lib.deploy.setup import domain
from k3lib.deploy.speed import answer, question
from k3lib.errors import InputError
from k3lib.facts.catalog import devices
from k3lib.facts.clusters import ClusterFact, clusters
from k3lib.facts.workloads import QUANTITY_UNITS, Workload, WorkloadFact, workload, workloads
from k3lib.models.model import load_model
from k3lib.units import MEGA

K3 = load_model("kimi-k3")
NUMBERS = numbers()


def made(**values: float) -> Workload:
    """A workload with these properties."""
    rows = {
        name: WorkloadFact(workload="mine", quantity=name, value=value, unit=QUANTITY_UNITS[name], grade="assumed",
                           as_of="2026", source_id="me")
        for name, value in values.items()
    }  # fmt: skip
    return Workload("mine", "mine", rows)


def changed(name: str, **values: float) -> Workload:
    """A named workload with some properties of its own."""
    one = workload(name)
    return dataclasses.replace(one, facts={**one.facts, **made(**values).facts})


@lru_cache(maxsize=64)
def outcome(cluster: str, name: str, engine: str = "vllm") -> oc.Outcome:
    return oc.outcome(cluster, workload(name), K3, engine)


# --- clusters ------------------------------------------------------------


@pytest.mark.parametrize("name", clusters())
def test_a_cluster_is_what_its_row_says(name: str) -> None:
    row, found = clusters()[name], deployed(name)
    assert (str(found.cluster), found.row) == (row.shape, row)
    assert domain(found.options.hardware or devices(), found.cluster) == row.domain_cards
    assert (found.options.hardware is None) == (row.kind != "hypothetical")
    if row.nics and row.nic_gbit:
        assert found.options.nics == row.nics * row.nic_gbit / 400
    else:
        assert found.options.nics is None


def test_faster_network_cards_count_as_several() -> None:
    assert [deployed(n).options.nics for n in ("h20x32-4nic", "h20x32", "h20x32-800g")] == [4, 8, 16]
    with pytest.raises(InputError, match="Did you mean 'h20x32'"):
        deployed("h20x23")


def test_a_domain_of_the_clusters_own_stays_beside_a_readers_facts() -> None:
    key = ("h100", "hbm_bandwidth")
    mine = {**devices(), key: devices()[key].model_copy(update={"value": 1.0})}
    floor, usual = (
        with_domain(deployed(n).cluster, clusters()[n].domain_cards, mine) for n in ("floor80x64", "h100x64")
    )
    assert usual is mine
    assert floor and floor[key].value == 1.0 and floor["h100", "scale_up_domain"].value == 64
    assert devices()["h100", "scale_up_domain"].value == 8


# --- one workload on one cluster ------------------------------------------------------------


@pytest.mark.parametrize("name", workloads())
@pytest.mark.parametrize(("cluster", "engine"), [("h20x32", "vllm"), ("h20x32", "sglang"), ("a3x64", "vllm")])
def test_an_outcome_agrees_with_itself(cluster: str, engine: str, name: str) -> None:
    one, wanted = outcome(cluster, name, engine), workload(name)
    assert one.cluster.cluster_id == cluster and one.workload is wanted
    if not one.fits:
        assert one.reason and (one.layout, one.sessions, one.kv_tokens, one.within) == ("", 0, 0, False)
        assert one.kwh_per_mtok is one.plan is one.asked is None
        return
    assert one.speed and one.plan and one.asked and one.kwh_per_mtok and one.reason == ""
    assert str(one.plan.layout) == one.layout and one.plan.fits
    assert one.sessions >= 1 and one.sessions * (wanted.isl + wanted.osl) <= one.kv_tokens
    assert one.sessions == one.copies * largest_concurrency(one.plan, wanted.isl + wanted.osl)
    assert one.max_context >= wanted.isl + wanted.osl
    ttft, tpot = one.speed.ttft_ms_mean, one.speed.tpot_ms
    for end, kept in (("value", one.within), ("high", one.surely)):
        in_time = wanted.ttft_s is None or getattr(ttft, end) <= 1000 * wanted.ttft_s
        assert kept == (in_time and (wanted.tpot_ms is None or getattr(tpot, end) <= wanted.tpot_ms))
    assert one.within or not one.surely
    e = one.kwh_per_mtok
    assert 0 < e.low < e.value < e.high


def test_outcomes_take_the_goals_from_the_best_layout_of_all() -> None:
    for cluster, name in (("h20x32", "rag"), ("a3x64", "rag")):
        wanted, found = workload(name), outcome(cluster, name)
        best = search(space_of(cluster, K3, "vllm"), oc.load_of(wanted), NUMBERS, oc.limits_of(wanted))[0]
        assert best.served and found.speed
        assert found.within == (oc.limits_of(wanted).over(best.served) <= 1)
        if found.within:
            assert found.speed.output_tps.value == pytest.approx(best.served.output_tps, rel=0.03)


LONG, BEYOND = made(isl=1_000_000, osl=40_000, concurrency=1), made(isl=1_100_000, osl=10, concurrency=1)


def test_what_does_not_fit_says_how_far_it_is() -> None:
    whole = space_of("h20x32", K3, "vllm")
    room = [(one.plan.caches.max_context, one) for one in whole.fitting if one.plan.caches]
    tight = dataclasses.replace(whole, candidates=tuple(one for most, one in room if most < 1_040_000))
    found = search(tight, oc.load_of(LONG), NUMBERS)
    long = oc.of_found("h20x32", LONG, tight, found, NUMBERS)
    assert not long.fits and long.plan is None
    most = max(most for most, _ in room if most < 1_040_000)
    assert f"the longest request that fits has {most:,} tokens" in long.reason
    assert oc.outcome("h20x32", LONG, K3).fits
    beyond = oc.outcome("h20x32", BEYOND, K3)
    assert not beyond.fits and "takes at most 1,048,576" in beyond.reason


def test_energy_is_power_over_output() -> None:
    def power(value: float, low: float | None, high: float | None, unit: str) -> ClusterFact:
        about = dict(cluster="mine", quantity="power", grade="assumed", as_of="2026", source_id="me")
        return ClusterFact(value=value, low=low, high=high, unit=unit, **about)

    # 36 kW for an hour are 36 kWh, in which 1,000 tok/s make 3.6 million tokens: 10 kWh for a million.
    found = oc.energy(power(36, 18, 72, "kW"), Range(1000, 500, 2000))
    assert (found.value, found.low, found.high) == pytest.approx((10, 2.5, 40))
    without = oc.energy(power(36, None, None, "kW"), Range(1000, 500, 2000))
    assert (without.value, without.low, without.high) == pytest.approx((10, 5, 20))
    assert oc.energy(power(36_000, 18_000, 72_000, "W"), Range(1000, 500, 2000)) == found
    one = outcome("h20x32", "offline-batch")
    assert one.speed and one.kwh_per_mtok
    joules = 24_000 * MEGA / one.speed.output_tps.value  # 24 kW, as the row of the cluster says
    assert one.kwh_per_mtok.value == pytest.approx(joules / 3.6e6)


def test_a_cache_that_serves_all_of_a_prompt_leaves_a_token_to_read() -> None:
    warm = made(isl=4000, osl=500, concurrency=4, hit=1)
    assert (warm.cached, warm.uncached) == (3999, 1)
    assert oc.outcome("h20x32", warm, K3).fits
    assert oc.load_of(warm, 7).concurrency == 7
    with pytest.raises(InputError, match="--concurrency 0"):
        oc.load_of(warm, 0)


# --- as many as are served in time ------------------------------------------------------------


def plan_of(cluster: str, layout: str, wanted: Workload) -> Plan:
    plan = next(c.plan for c in space_of(cluster, K3, "vllm").fitting if str(c.plan.layout) == layout)
    return sized(plan, oc.load_of(wanted))


def over(cluster: str, plan: Plan, wanted: Workload, clients: int) -> float:
    served = answer(question(plan, oc.load_of(wanted, clients), deployed(cluster).options), NUMBERS)
    return oc.limits_of(wanted).over(served)


@pytest.mark.parametrize(
    ("cluster", "wanted"),
    [("h20x32", workload("rag")), ("h20x32", workload("coding-agent")), ("h20x32", changed("rag", ttft=1e9)),
     ("a3x64", workload("online-chat"))],
    ids=["rag", "coding-agent", "memory bounds it", "online-chat"],
)  # fmt: skip
def test_the_capacity_keeps_to_the_goals_and_one_client_more_does_not(cluster: str, wanted: Workload) -> None:
    found = oc.capacity(cluster, wanted, K3)
    assert found.clients > 1 and found.speed
    plan = plan_of(cluster, found.layout, wanted)
    assert over(cluster, plan, wanted, found.clients) <= 1
    held = oc.held(plan, wanted.isl + wanted.osl)
    assert found.clients <= held
    assert found.clients == held or over(cluster, plan, wanted, found.clients + 1) > 1
    assert (found.clients == held) == (wanted.ttft_s == 1e9)


def test_capacity_is_that_of_the_best_of_all_layouts() -> None:
    wanted = workload("coding-agent")
    best = 0.0
    for candidate in space_of("h20x32", K3, "vllm").fitting:
        plan = plan_of("h20x32", str(candidate.plan.layout), wanted)
        clients = largest(lambda n, plan=plan: over("h20x32", plan, wanted, n) <= 1, 1, 64 if plan.fits else 0)
        if clients:
            asked = question(plan, oc.load_of(wanted, clients), deployed("h20x32").options)
            best = max(best, answer(asked, NUMBERS).output_tps)
    found = oc.capacity("h20x32", wanted, K3)
    assert found.speed and found.speed.output_tps.value > 0.95 * best > 0


@pytest.mark.parametrize(
    ("name", "goal", "values"), [("rag", "ttft", (1, 3, 8, 40)), ("online-chat", "tpot", (10, 40, 120))]
)
def test_softer_goals_never_serve_fewer(name: str, goal: str, values: tuple[float, ...]) -> None:
    other = {"ttft": 20.0} if goal == "tpot" else {}
    found = [oc.capacity("h20x32", changed(name, **other, **{goal: value}), K3) for value in values]
    clients, output = [one.clients for one in found], [one.speed.output_tps.value if one.speed else 0 for one in found]
    assert clients == sorted(clients) and output == sorted(output)
    assert found[0] == oc.Capacity(0, "", None) and len(set(clients)) == len(clients)


def test_without_goals_as_many_are_served_as_are_held() -> None:
    wanted = workload("offline-batch")
    found = oc.capacity("h20x32", wanted, K3)
    assert found.clients == oc.held(plan_of("h20x32", found.layout, wanted), wanted.isl + wanted.osl)
    assert found.speed and outcome("h20x32", "offline-batch").speed
    assert found.speed.output_tps.value > outcome("h20x32", "offline-batch").speed.output_tps.value  # type: ignore[union-attr]


def test_what_nothing_holds_is_served_to_nobody() -> None:
    assert oc.capacity("h20x32", BEYOND, K3) == oc.Capacity(0, "", None)
