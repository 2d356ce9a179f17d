"""Measured runs, kernel times and exchanges: what the tables hold, and the line for a row that is not sound."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from k3lib.errors import InputError
from k3lib.facts import catalog, timings
from k3lib.facts.paths import DATA

# Names for cards that a source does not tell apart, and cards that the tables know by a measurement only.
UNNAMED = {"h20", "hopper", "blackwell", "gfx950", "unstated", "h200-nvl"}


def changed(tmp_path: Path, table: str, old: str, new: str) -> Path:
    """A copy of the data folder with one text changed in one table."""
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    path = folder / table
    text = path.read_text(encoding="utf-8")
    assert old in text, old
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


def expert_time(device: str, implementation: str, tokens: int, tp: int = 1) -> float:
    wanted = (device, implementation, tokens, tp, 1, "balanced", "yes")
    rows = [r for r in timings.kernel_times() if r.kernel == "experts"]
    (time,) = [
        r.time_us for r in rows if (r.device, r.implementation, r.tokens, r.tp, r.ep, r.routing, r.use) == wanted
    ]
    assert time is not None
    return time


def test_the_tables_of_times_are_whole() -> None:
    assert (len(timings.kernel_times()), len(timings.exchange_times())) == (651, 401)
    known = {device for device, _ in catalog.devices()} | UNNAMED
    assert {r.device for r in timings.kernel_times()} | {r.device for r in timings.exchange_times()} <= known


def test_expert_times_follow_the_processors_not_the_memory() -> None:
    slow = expert_time("h20-141", "marlin, SGLang 0.5.14", 128)
    fast = expert_time("h200", "marlin, SGLang 0.5.14", 128)
    processors = [catalog.device_fact(d, "sm_count").value for d in ("h200", "h20-141")]
    bandwidths = [catalog.device_fact(d, "hbm_bandwidth").value for d in ("h200", "h20-141")]
    assert slow / fast == pytest.approx(processors[0] / processors[1], rel=0.02)
    assert bandwidths[0] == bandwidths[1]
    assert expert_time("h20-141", "marlin, SGLang 0.5.14", 128, tp=8) < slow / 7


def test_sizes_of_exchanges_are_bytes() -> None:
    rows = {row.exchange_id: row for row in timings.exchange_times()}
    assert rows["car-h200-vllm-128"].message_bytes == 256
    assert rows["nccl-h200-all-reduce-8-2048"].time_us == 15.98
    assert all(row.cards and row.nodes for row in rows.values())
    for row in rows.values():  # a rate that the source prints beside a size and a time is that of the two
        if row.collective == "kv_transfer" and row.algbw_gbs and row.message_bytes and row.time_us:
            assert row.message_bytes / row.time_us / 1e3 == pytest.approx(row.algbw_gbs, rel=0.01)


def test_device_facts_say_what_a_speed_needs() -> None:
    facts = catalog.devices()
    for device in ("h20-96", "h20-141", "h200", "h100", "h800", "b200", "b300", "gb200", "gb300", "a3-910c"):
        assert {facts[device, q].unit for q in ("hbm_bandwidth", "bf16_dense")} == {"GB/s", "TFLOPS"}
    h20 = facts["h20-96", "hbm_bandwidth"]
    assert (h20.low, h20.value, h20.high) == (4000, 4000, 4096)
    assert facts["h20-96", "sm_count"].value == 78


KERNEL = "gemm,SGLang 0.5.1.post1,h20-141,float16,,1,,,,6144,7168,,,,28.8,,,measured,yes,2025-12,aic_h20_sglang051,"
CUSTOM = "h200,8,1,NVLink4 900 GB/s,256,,,,4.71,"


@pytest.mark.parametrize(
    ("table", "old", "new", "words"),
    [
        ("kernels.csv", KERNEL, KERNEL.replace("28.8", ""), ["row 2", "neither time_us nor achieved is given"]),
        ("kernels.csv", KERNEL, KERNEL.replace("28.8", "0"), ["row 2", "time_us 0: must be above 0"]),
        ("kernels.csv", KERNEL, KERNEL.replace("28.8", "-1"), ["row 2", "time_us = '-1'"]),
        ("kernels.csv", KERNEL, KERNEL.replace("28.8", "nan"), ["row 2", "finite"]),
        ("kernels.csv", KERNEL, KERNEL.replace(",yes,", ",no,"), ["row 2", "use 'no' needs a reason"]),
        ("kernels.csv", KERNEL, KERNEL.replace("gemm,", "gem,"), ["row 2", "kernel = 'gem'"]),
        ("kernels.csv", KERNEL, KERNEL + "\n" + KERNEL, ["row 3", "as row 2. Remove one."]),
        (
            "kernels.csv",
            KERNEL,
            KERNEL.replace("aic_h20_sglang051", "aic_h20"),
            ["'aic_h20' is not in", "Did you mean"],
        ),
        ("interconnect.csv", CUSTOM, CUSTOM.replace("4.71", ""), ["car-h200-vllm-128", "none of time_us"]),
        ("interconnect.csv", CUSTOM, CUSTOM.replace("4.71", "inf"), ["car-h200-vllm-128", "finite"]),
        ("interconnect.csv", "car-h200-vllm-8192,", "car-h200-vllm-128,", ["the same exchange_id as row"]),
    ],
)
def test_a_bad_time_is_named(table: str, old: str, new: str, words: list[str], tmp_path: Path) -> None:
    data = changed(tmp_path, table, old, new)
    with pytest.raises(InputError) as caught:
        (timings.kernel_times if table == "kernels.csv" else timings.exchange_times)(data)
    for word in [table, *words]:
        assert word in str(caught.value), (word, str(caught.value))
