"""The choice by rules: what each rule refuses, how what is left is ranked, what would change it. On a small world."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3lib.choose.recommend import (
    DAYS_PER_MONTH,
    NONE,
    Advice,
    Flip,
    Money,
    Option,
    Ranked,
    World,
    advise,
    alike,
    decide,
)
from k3lib.choose.study import Entry, Seen
from k3lib.cost.api import Offer
from k3lib.errors import InputError
from k3lib.facts.clusters import Availability, cluster
from k3lib.facts.decisions import Decision, decision, decisions, parse_mix
from k3lib.facts.paths import DATA
from k3lib.facts.workloads import workloads
from k3lib.ranges import Range, point
from k3lib.report import advice as ad

DAY = 24 * 3600
LOADS = {name: workloads()[name] for name in ("offline-batch", "online-chat")}


def seen(tps: float) -> Seen:
    return Seen(Range(tps, tps / 2, tps * 2), point(50), point(1000), "experts", "measured")


def entry(name: str, load: str, tps: float, clients: int) -> Entry:
    there = seen(tps)
    return Entry(name, load, 32, 8, "tp8", "", there, 1, 10**6, 100, 10**6,
                 clients > 0, False, clients, "tp8", there if clients else None, ("k3lib_assumed",))  # fmt: skip


def have(name: str, region: str, status: str) -> Availability:
    return Availability(cluster_id=name, region=region, status=status, as_of="2026", grade="assumed",
                        source_id="k3lib_assumed")  # type: ignore[arg-type]  # fmt: skip


def money(invest: float, month: float, shared: float = 0.0) -> Money:
    return Money(Range(invest, invest / 2, invest * 2), Range(month, month / 2, month * 2), point(shared))


def offer(host: str, region: str, output: float) -> Offer:
    return Offer(model="k3", host=host, input=point(output / 5), cached=point(output / 50), output=point(output),
                 parts={}, share=None, region=region, grade="measured", sources=())  # fmt: skip


SMALL, LARGE = "h20x32", "a3x64"


def small_world(**changed: object) -> World:
    """Two clusters in China: a small one that is cheap and slow, a large one that is dear and fast; one service."""
    loads = ((SMALL, "offline-batch", 1000, 8), (SMALL, "online-chat", 800, 0), (LARGE, "offline-batch", 5000, 8),
             (LARGE, "online-chat", 4000, 8))  # fmt: skip
    entries = {(name, load): entry(name, load, tps, clients) for name, load, tps, clients in loads}
    status = {(SMALL, "cn"): have(SMALL, "cn", "licence"), (SMALL, "other"): have(SMALL, "other", "no"),
              (LARGE, "cn"): have(LARGE, "cn", "yes"), (LARGE, "other"): have(LARGE, "other", "announced")}  # fmt: skip
    found = World(entries, LOADS, status, {(SMALL, "cn"): money(6e6, 2e5), (LARGE, "cn"): money(12e6, 5e5)},
                  {(SMALL, "cn"): money(0, 2.5e5)}, {"k3@moonshot-cn": offer("moonshot-cn", "cn", 100),
                                                     "k3@moonshot": offer("moonshot", "other", 120)})  # type: ignore[arg-type]  # fmt: skip
    return replace(found, **changed)  # type: ignore[arg-type]


def case(**changed: object) -> Decision:
    values = {"case_id": "x", "label": "x", "region": "cn", "data_stays": "yes", "mix": "offline-batch:100",
              "mtok_per_day": 10.0, "utilisation": 0.5, "budget_cny": 1e8, "grade": "assumed",
              "source_id": "k3lib_assumed"} | changed  # fmt: skip
    return Decision.model_validate(values)


def flips_of(found: Advice, what: str) -> list[Flip]:
    return [one for one in found.flips if one.what == what]


def rules(found: Advice) -> dict[str, str]:
    return {str(one.option): one.rule for one in found.refused}


def test_texts_that_must_stay_leave_owning_alone() -> None:
    found = decide(case(), small_world())
    assert [str(one.option) for one in found.ranked] == [f"own:{SMALL}", f"own:{LARGE}"]
    assert rules(found) == {f"rent:{SMALL}": "data", f"rent:{LARGE}": "data", "api:k3@moonshot-cn": "data"}
    assert found.choice == f"own:{SMALL}" and found.ranked[0].licence and not found.settled


def test_the_volume_needs_as_many_deployments_as_it_takes_seconds() -> None:
    for mtok, count in ((10.0, 1), (43.2, 1), (43.3, 2), (100.0, 3)):
        first = next(one for one in decide(case(mtok_per_day=mtok), small_world()).ranked if one.option.name == SMALL)
        assert first.deployments == count == max(1, -(-mtok * 1e6 // (1000 * DAY * 0.5)))
        assert first.monthly_cny.value == 2e5 * count
        assert first.invest_cny == Range(6e6 * count, 3e6 * count, 12e6 * count)
        assert first.cny_per_mtok.value == pytest.approx(2e5 * count / (mtok * DAYS_PER_MONTH))
        assert first.sure == (mtok * 2 <= 43.2 or count == -(-mtok * 2e6 // (1000 * DAY * 0.5)))


def test_people_are_paid_once_however_many_deployments() -> None:
    world = small_world(owned={(SMALL, "cn"): money(6e6, 2e5, 7e4)})
    (first,) = decide(case(mtok_per_day=100), world).ranked
    assert first.monthly_cny.value == 3 * 2e5 + 7e4


def test_goals_that_not_one_client_gets_rule_a_cluster_out_and_count_only_if_asked() -> None:
    mixed = case(mix="offline-batch:50;online-chat:50")
    found = decide(mixed, small_world())
    assert rules(found)[f"own:{SMALL}"] == "goals" and found.choice == f"own:{LARGE}"
    assert decide(mixed, small_world(goals=False)).choice == f"own:{SMALL}"
    (flip,) = flips_of(advise(mixed, small_world()), "goals")
    assert flip.choice == f"own:{SMALL}"


def test_region_licence_price_and_budget_each_refuse() -> None:
    assert rules(decide(case(region="other"), small_world()))[f"own:{LARGE}"] == "region"
    assert decide(case(), small_world(licences=False)).choice == f"own:{LARGE}"
    assert rules(decide(case(), small_world(owned={(LARGE, "cn"): money(1, 1)})))[f"own:{SMALL}"] == "price"
    poor = decide(case(budget_cny=5e6), small_world())
    assert poor.choice == NONE and not poor.settled
    assert {one.needs_cny for one in poor.refused if one.rule == "budget"} == {6e6, 12e6}
    (flip,) = flips_of(advise(case(budget_cny=5e6), small_world()), "budget_cny")
    assert (flip.to, flip.choice) == (6e6, f"own:{SMALL}")


def test_a_service_is_asked_for_its_input_too() -> None:
    found = decide(case(data_stays="no", mtok_per_day=1), small_world())
    one = LOADS["offline-batch"]
    asked = 100 + one.uncached * 20 / one.osl + one.cached * 2 / one.osl
    assert found.choice == "api:k3@moonshot-cn"
    assert found.ranked[0].cny_per_mtok.value == pytest.approx(asked)
    assert found.ranked[0].monthly_cny.value == pytest.approx(asked * DAYS_PER_MONTH)
    assert "api:k3@moonshot" not in rules(found)


def test_the_volume_at_which_owning_begins_to_pay_is_found() -> None:
    (flip,) = flips_of(advise(case(data_stays="no", mtok_per_day=1), small_world()), "mtok_per_day")
    one = LOADS["offline-batch"]
    asked = 100 + one.uncached * 20 / one.osl + one.cached * 2 / one.osl
    assert float(flip.to) == pytest.approx(2e5 / asked / DAYS_PER_MONTH, rel=0.011)
    assert flip.choice == f"own:{SMALL}"


@given(st.floats(0.01, 1e4), st.floats(0.01, 1.0), st.sampled_from(["cn", "other"]), st.sampled_from(["yes", "no"]),
       st.floats(0, 1e9),
       st.sampled_from(["offline-batch:100", "online-chat:100", "offline-batch:30;online-chat:70"]))  # fmt: skip
def test_every_way_is_ranked_or_refused_once(
    mtok: float, busy: float, region: str, stays: str, budget: float, mix: str
) -> None:
    world = small_world()
    now = case(mtok_per_day=mtok, utilisation=busy, region=region, data_stays=stays, budget_cny=budget, mix=mix)
    found = decide(now, world)
    named = [str(one.option) for part in (found.ranked, found.refused) for one in part]  # type: ignore[attr-defined]
    theirs = {str(o) for o in world.options if o.kind == "api" and world.apis[o.name].region != region}
    assert sorted(named) == sorted({str(o) for o in world.options} - theirs)
    costs = [one.monthly_cny.value for one in found.ranked]
    assert costs == sorted(costs)
    for one in found.ranked:
        assert one.monthly_cny.low <= one.monthly_cny.value <= one.monthly_cny.high
        assert one.invest_cny.value <= budget or one.option.kind == "api"
    if stays == "yes":
        assert all(one.option.kind == "own" for one in found.ranked)
    if budget > 0:
        more = decide(now.model_copy(update={"budget_cny": budget * 2}), world)
        assert {str(o.option) for o in found.ranked} <= {str(o.option) for o in more.ranked}


@given(st.floats(0.1, 1000), st.sampled_from(["yes", "no"]))
def test_a_change_that_is_named_gives_the_choice_that_is_named(mtok: float, stays: str) -> None:
    world, now = small_world(), case(mtok_per_day=mtok, data_stays=stays)
    found = advise(now, world)
    for flip in found.flips:
        assert not alike(flip.choice, found.choice)
        if flip.what in ("mtok_per_day", "data_stays", "region", "budget_cny"):
            assert decide(now.model_copy(update={flip.what: flip.to}), world).choice == flip.choice


def test_a_host_elsewhere_is_no_other_choice() -> None:
    assert alike("api:k3@moonshot-cn", "api:k3@moonshot")
    assert not alike("api:k3@moonshot", "api:k31-pro@moonshot")
    assert not alike(f"own:{SMALL}", f"rent:{SMALL}")


def test_words_say_the_number_that_decides() -> None:
    clusters = {name: cluster(name) for name in (SMALL, LARGE)}
    found = advise(case(), small_world())
    assert ad.choice_words(found.choice, clusters) == "buy 32 H20 96 GB"
    assert ad.why(found, clusters) == (
        "It costs 0.20 (0.10 to 0.40) million yuan a month, 60% less than the runner-up (buy 64 Ascend 910C), but the "
        "ranges overlap."
    )
    assert ("if no export licence is granted", "buy 64 Ascend 910C") in ad.flip_rows(found, clusters)
    assert ad.caveats(found.ranked[0]) == "needs an export licence"
    alone = advise(case(), small_world(licences=False))
    assert "is the only way that the rules leave" in ad.why(alone, clusters)
    none = advise(case(budget_cny=0), small_world())
    assert ad.choice_words(none.choice, clusters) == "nothing that is known"
    assert ad.why(none, clusters).startswith("No way is left: ")
    assert ad.refusal(none.refused[0], none, small_world()) == "needs 6.00 million yuan at once"
    assert ad.option_words(Option("api", "k31-pro@moonshot-cn"), clusters) == "Kimi K3.1 Pro at Moonshot in China"
    two = replace(found.ranked[0], deployments=2)
    assert isinstance(two, Ranked)
    assert ad.choice_words(str(two.option), clusters, two.deployments) == "buy 2 times 32 H20 96 GB"


def test_the_projects_situations_are_sound() -> None:
    assert len(decisions()) >= 8
    for one in decisions().values():
        assert sum(one.shares.values()) == pytest.approx(1)
        assert one.grade == "assumed"
    with pytest.raises(InputError, match="Did you mean 'private-batch'"):
        decision("private-bach")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rag:50", "shares come to 50 per cent"),
        ("rga:100", "Did you mean 'rag'"),
        ("rag:100;rag:0", "stands twice"),
        ("rag:all", "is not WORKLOAD:PERCENT"),
        ("rag:-1;online-chat:101", "must be above 0"),
        ("rag=100", "is not known"),
        ("", "is not known"),
        ("rag:nan", "must be above 0"),
    ],
)
def test_a_mix_that_cannot_be(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_mix(text)


def test_a_bad_situation_is_named(tmp_path) -> None:  # type: ignore[no-untyped-def]
    text = (DATA / "decisions.csv").read_text(encoding="utf-8")
    (tmp_path / "sources.csv").write_bytes((DATA / "sources.csv").read_bytes())
    for old, new, words in (("offline-batch:100,40", "offline-batch:90,40", "shares come to 90"),
                            (",cn,yes,", ",xx,yes,", "private-batch"), ("40,0.5", "0,0.5", "mtok_per_day"),
                            ("40,0.5", "40,50", "utilisation")):  # fmt: skip
        (tmp_path / "decisions.csv").write_text(text.replace(old, new, 1), encoding="utf-8")
        decisions.cache_clear()
        with pytest.raises(InputError, match=words):
            decisions(tmp_path)
    decisions.cache_clear()
