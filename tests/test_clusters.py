"""Clusters by name: figures as published, and the one clear line for a row that cannot be."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from conftest import changed_data

from k3lib.engines.layout import parse_cluster
from k3lib.errors import InputError
from k3lib.facts import clusters as cl
from k3lib.facts.catalog import device_fact, device_kin, devices
from k3lib.facts.paths import DATA
from k3lib.facts.timings import exchange_times
from k3lib.units import convert

NAMES = ("h20x32", "h20x32-4nic", "h20x32-800g", "h20-141x32", "h100x32", "h100x64", "h200x32", "h200x64", "a3x64",
         "gb200-nvl72-64", "gb300-nvl72-64", "atlas950x64", "floor80x64")  # fmt: skip


def test_clusters_are_what_their_shapes_say() -> None:
    assert tuple(cl.clusters()) == NAMES
    for row in cl.clusters().values():
        parsed = parse_cluster(row.shape)
        assert (row.nodes, row.cards_per_node, row.device) == (parsed.nodes, parsed.cards_per_node, parsed.device)
        assert row.domain_cards <= row.cards == parsed.cards
        assert row.device in device_kin()
        assert re.search(rf"[x-]{row.cards}(-|$)", row.cluster_id), row.cluster_id
        for quantity in ("memory_shown", "hbm_bandwidth", "bf16_dense", "scale_up_domain"):
            assert (row.device, quantity) in devices(), (row.device, quantity)
        if row.kind == "superpod":
            assert row.domain_cards <= device_fact(row.device, "scale_up_domain").value
    with pytest.raises(InputError, match="Did you mean 'h20x32'"):
        cl.cluster("h20x3")


def test_the_network_of_a_card_is_its_share_of_the_node() -> None:
    shares = {name: row.network_gbs for name, row in cl.clusters().items()}
    assert (shares["h20x32"], shares["h20x32-4nic"], shares["h20x32-800g"]) == (50, 25, 100)
    assert shares["gb200-nvl72-64"] is shares["atlas950x64"] is None
    for name in ("h100x64", "h200x32", "a3x64"):
        assert shares[name] == device_fact(cl.cluster(name).device, "network_unidirectional").value


@pytest.mark.parametrize(
    ("name", "power_kw"),
    [("h20x32", 24), ("h20-141x32", 24), ("h100x64", 82), ("h100x32", 41), ("h200x64", 82), ("a3x64", 93),
     ("gb200-nvl72-64", 107), ("gb300-nvl72-64", 126)],
)  # fmt: skip
def test_power_is_as_published(name: str, power_kw: float) -> None:
    assert round(cl.cluster_fact(name, "power").range_in("kW").value) == power_kw


def test_power_is_the_share_of_what_was_published() -> None:
    for name, whole_kw, cards in (("gb200-nvl72-64", 120, 72), ("gb300-nvl72-64", 142, 72), ("a3x64", 559, 384)):
        assert cl.cluster_fact(name, "power").value == pytest.approx(whole_kw * 64 / cards, abs=0.05)
    h20 = cl.cluster_fact("h20x32", "power")
    assert h20.high == pytest.approx(4 * (8 * 0.5 + 10.2 - 8 * 0.7))
    atlas = cl.cluster_fact("atlas950x64", "power")
    assert (atlas.low, atlas.high) == (860 * 64 // 640, 350 / 2)
    assert atlas.value == pytest.approx(math.sqrt((atlas.low or 0) * (atlas.high or 0)), abs=0.5)


@pytest.mark.parametrize(
    ("name", "ids", "us"),
    [
        ("gb200-nvl72-64", [f"gb200-alltoall-{part}-ep64-t128" for part in ("prepare", "dispatch", "combine")], 86.9),
        ("h200x64", [f"deepep-ll-h200-sxm-8n-{part}-128" for part in ("dispatch", "combine")], 471.5),
        ("h200x32", [f"deepep-ll-h200-sxm-4n-{part}-128" for part in ("dispatch", "combine")], 406.2),
    ],
)
def test_all_to_all_is_the_sum_of_its_measured_parts(name: str, ids: list[str], us: float) -> None:
    times = {row.exchange_id: row.time_us or 0 for row in exchange_times()}
    fact = cl.cluster_fact(name, "all_to_all_us")
    assert fact.value == pytest.approx(sum(times[i] for i in ids), abs=0.005)
    assert (round(fact.value, 1), fact.grade, fact.unit) == (us, "measured", "us")


def test_what_only_looks_measured_is_assumed() -> None:
    times = {row.exchange_id: row.time_us or 0 for row in exchange_times()}
    for nodes, name in ((4, "h100x32"), (8, "h100x64")):
        for part in ("dispatch", "combine"):  # the table repeats one card's times for the other
            h100, h200 = (times[f"deepep-ll-{c}-sxm-{nodes}n-{part}-128"] for c in ("h100", "h200"))
            assert h100 == h200
        fact = cl.cluster_fact(name, "all_to_all_us")
        legacy = sum(times[f"deepep-v1-ll-ep{8 * nodes}-{part}"] for part in ("dispatch", "combine"))
        assert (fact.grade, fact.high) == ("assumed", legacy)
    four = cl.cluster_fact("h20x32-4nic", "all_to_all_us")
    whole = cl.cluster_fact("h200x32", "all_to_all_us").value
    two_nodes = sum(times[f"deepep-ll-h200-sxm-2n-{part}-128"] for part in ("dispatch", "combine"))
    assert (four.low, four.value) == (whole, 2 * whole)
    assert four.high == pytest.approx(874 * whole / two_nodes, abs=1)


def test_published_facts_of_clusters_stand_as_published() -> None:
    def value(name: str, quantity: str) -> float:
        return cl.cluster_fact(name, quantity).value

    assert (value("a3x64", "r1_prefill_per_card"), value("a3x64", "r1_decode_per_card")) == (6688, 1943)
    assert (value("gb200-nvl72-64", "r1_prefill_per_card"), value("gb200-nvl72-64", "r1_decode_per_card")) == (
        26_156,
        13_386,
    )
    assert (value("h100x64", "r1_prefill_per_card") * 8, value("h100x64", "r1_decode_per_card") * 8) == (57_674, 22_282)
    assert (value("h200x64", "k3_output"), value("h200x64", "k3_total")) == (2019, 10_093)
    assert value("gb200-nvl72-64", "pcie_unidirectional") == 900 / 2
    assert cl.cluster_fact("h20x32", "host_memory").range_in("GB").value == 4000
    assert cl.cluster_fact("h20x32", "host_memory").low == 4 * 0.5
    assert [value(name, "fewest_cards") for name in ("h200x64", "h100x64", "gb200-nvl72-64", "a3x64")] == [
        16,
        32,
        16,
        32,
    ]


def test_memory_of_the_new_card_sums_to_what_was_announced() -> None:
    pod = cl.cluster("atlas950x64")
    per_card = {q: device_fact(pod.device, q).value for q in ("memory_nominal", "hbm_bandwidth", "fp8_dense",
                                                              "fp4_dense")}  # fmt: skip
    sums = {quantity: value * pod.cards for quantity, value in per_card.items()}
    assert sums == {"memory_nominal": 9216, "hbm_bandwidth": 256_000, "fp8_dense": 64_000, "fp4_dense": 128_000}
    bf16 = device_fact(pod.device, "bf16_dense")
    assert (bf16.value, bf16.high) == (per_card["fp8_dense"] / 2, device_fact("a3-910c", "bf16_dense").value)
    shown = device_fact(pod.device, "memory_shown")
    assert shown.high == pytest.approx(convert(144, "GiB", "GB"), abs=0.05)
    assert device_fact("gb300", "nvlink_unidirectional").value == pytest.approx(130_000 / 72 / 2, rel=0.005)


def test_every_cluster_has_what_a_comparison_needs() -> None:
    for name in cl.clusters():
        for quantity in ("power", "host_memory", "pcie_unidirectional"):
            assert cl.cluster_fact(name, quantity).value > 0
        for region in cl.REGIONS:
            assert cl.availability()[name, region].status
    rows = [*cl.cluster_facts().values(), *(f for (d, _), f in devices().items() if "950" in d or d == "l20")]
    for row in rows:  # what is assumed by this project stands with a range
        if "k3lib_assumed" in row.source_ids:
            assert row.grade in ("assumed", "derived"), row
            assert row.low is not None or row.high is not None, row
    with pytest.raises(InputError, match="Did you mean 'power'"):
        cl.cluster_fact("h20x32", "powr")
    with pytest.raises(InputError, match="cluster 'h20x23' is not known"):
        cl.cluster_fact("h20x23", "power")


def test_availability_is_as_published() -> None:
    cn = {name: cl.availability()[name, "cn"].status for name in NAMES}
    assert [name for name in NAMES if cn[name] == "yes"] == ["a3x64"]
    assert [name for name in NAMES if cn[name] == "announced"] == ["atlas950x64"]
    assert {name for name in NAMES if cn[name] == "licence"} == {n for n in NAMES if n.startswith(("h20", "h200"))}
    assert {
        cl.availability()[name, "other"].status for name in ("h100x64", "h200x64", "gb200-nvl72-64", "gb300-nvl72-64")
    } == {"yes"}


CLUSTER = 'h20x32,"32 H20 of 96 GB, eight network cards a server",32 H20 96 GB,4x8xh20-96,servers,8,8,400,kin'
POWER = "h20x32,power,24,16.4,34.4,kW,assumed"
CHINA = "h20x32,cn,licence,2025-07"


@pytest.mark.parametrize(
    ("table", "old", "new", "words"),
    [
        ("clusters.csv", CLUSTER, CLUSTER.replace("4x8xh20-96", "4xh20-96"), ["row 2 (h20x32)", "shape = '4xh20-96'"]),
        ("clusters.csv", CLUSTER, CLUSTER.replace("4x8x", "0x8x"), ["row 2", "shape"]),
        ("clusters.csv", CLUSTER, CLUSTER.replace("h20-96", "h20-69"), ["(h20x32)", "Did you mean 'h20-96'"]),
        ("clusters.csv", CLUSTER, CLUSTER.replace("servers,8", "servers,4"), ["row 2", "of servers it is the server"]),
        ("clusters.csv", CLUSTER, CLUSTER.replace("servers,8", "superpod,33"), ["33 is more than the 32 cards"]),
        ("clusters.csv", CLUSTER, CLUSTER.replace("servers", "pod"), ["row 2", "kind = 'pod'"]),
        ("clusters.csv", CLUSTER, CLUSTER.replace("8,400", "8,"), ["nics and nic_gbit"]),
        ("clusters.csv", CLUSTER, CLUSTER.replace("8,400", "8,NaN"), ["nic_gbit", "finite"]),
        ("clusters.csv", CLUSTER, CLUSTER.replace("kin", "guess"), ["row 2", "evidence = 'guess'"]),
        ("clusters.csv", "infersim article_a", "infersin article_a", ["infersin", "Did you mean 'infersim'"]),
        ("cluster_facts.csv", POWER, POWER.replace("h20x32", "h20x33"), ["Did you mean 'h20x32'"]),
        ("cluster_facts.csv", POWER, POWER.replace("power", "powr"), ["row 2 (h20x32 / powr)", "Did you mean 'power'"]),
        ("cluster_facts.csv", POWER, POWER.replace("kW", "GB"), ["row 2", "unit 'GB' does not fit power", "kW"]),
        ("cluster_facts.csv", POWER, POWER.replace("kW", "kw"), ["row 2", "unit 'kw' is not known"]),
        ("cluster_facts.csv", POWER, POWER.replace("24", "-24"), ["row 2", "value = '-24'"]),
        ("cluster_facts.csv", POWER, POWER.replace("24", "14"), ["row 2", "is not between low 16.4"]),
        ("availability.csv", CHINA, CHINA.replace("cn", "us"), ["row 2 (h20x32 / us)", "region = 'us'"]),
        ("availability.csv", CHINA, CHINA.replace("licence", "maybe"), ["row 2", "status = 'maybe'"]),
        ("availability.csv", CHINA, CHINA.replace("h20x32,cn", "h20x33,cn"), ["Did you mean 'h20x32'"]),
    ],
)
def test_a_bad_row_is_named(table: str, old: str, new: str, words: list[str], tmp_path: Path) -> None:
    data = changed_data(tmp_path, table, old, new)
    with pytest.raises(InputError) as caught:
        cl.cluster_facts(data)
        cl.availability(data)
    message = str(caught.value)
    assert table in message
    for word in words:
        assert word in message, (word, message)


def test_a_region_that_is_missing_is_named(tmp_path: Path) -> None:
    (line,) = [x for x in (DATA / "availability.csv").read_text(encoding="utf-8").splitlines() if x.startswith(CHINA)]
    with pytest.raises(InputError, match=r"availability.csv \(h20x32\): region 'cn' is missing"):
        cl.availability(changed_data(tmp_path, "availability.csv", line + "\n", ""))
