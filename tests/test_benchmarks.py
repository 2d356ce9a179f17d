"""Measured runs, kernel times and exchanges: what the tables hold, and the line for a row that is not sound."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from k3lib.engines.layout import parse_cluster, parse_layout
from k3lib.errors import InputError
from k3lib.facts import benchmarks, catalog, evidence, timings
from k3lib.facts.paths import DATA

# Names for cards that a source does not tell apart, and cards that the tables know by a measurement only.
UNNAMED = {"h20", "hopper", "blackwell", "gfx950", "unstated", "h200-nvl"}
ELSEWHERE = {"mi325x", "mi350x", "mi355x", "mi35x", "rtx-pro-6000", "rtx-6000-ada", "tpu-v7", "mac-64gb"}


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
    assert (len(timings.kernel_times()), len(timings.exchange_times())) == (659, 403)
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


def run(run_id: str) -> benchmarks.Run:
    (row,) = [r for r in benchmarks.runs() if r.run_id == run_id]
    return row


def fitted() -> list[benchmarks.Run]:
    return [r for r in benchmarks.runs() if r.use == "fit"]


@pytest.mark.parametrize(
    ("run_id", "metrics"),
    [
        ("h200-vllm-tp8pp2-marlin-a-c256", {"output_tps": 2187.435, "tpot_mean_ms": 108.6}),
        ("h200-vllm-tp8pp2-marlin-a-c512", {"output_tps": 2202.205}),
        ("h200-vllm-tp8pp2-humming-c256", {"output_tps": 3799.13, "tpot_mean_ms": 61.973}),
        ("h200-vllm-tp8pp2-humming-c512", {"output_tps": 3804.218}),
        ("h200-vllm-tp16-a-c1", {"output_tps": 39.43, "tpot_mean_ms": 25.17}),
        ("h200-vllm-tp16ep16-a-c1", {"tpot_mean_ms": 28.188}),
        ("h200-sglang-tp8pp4-c1", {"output_tps": 48.351, "tpot_mean_ms": 20.44}),
        ("h200-sglang-tp8pp4-c256", {"output_tps": 2984.762}),
        ("h200-sglang-tp16ep16-ratio45-c32", {"output_tps": 343.856}),
        ("b200-sglang-tp16ep16-saturation-in918-out1024-c128", {"output_tps": 2314.459}),
        ("b300-sglang-tp8-c1", {"tpot_median_ms": 8.51, "total_tps": 127 * 8}),
        ("gb200-sglang-prefill-pp16-c32", {"input_tps": 4550 * 16}),
        ("gb300-vllm-tp16-c1", {"user_tps": 118}),
        ("r1-h20-sglang-decode-batch-c768", {"output_tps": 714 * 16}),
        ("v4pro-h20-sglang-prefill-pp4cp8tp8-in1048576-c1", {"input_tps": 23970, "ttft_median_ms": 43742.5}),
    ],
)
def test_published_figures_stand_as_published(run_id: str, metrics: dict[str, float]) -> None:
    found = run(run_id).metrics
    assert {name: found[name] for name in metrics} == metrics


def test_runs_name_cards_that_are_known_and_layouts_that_use_them_all() -> None:
    known = {device for device, _ in catalog.devices()}
    for row in (*benchmarks.runs(), *benchmarks.observations()):
        assert row.device in known | UNNAMED | ELSEWHERE, row
    for row in benchmarks.runs():
        if row.cluster and row.device in known:
            cluster = parse_cluster(row.cluster)
            assert (cluster.device, cluster.cards) == (row.device, row.cards), row.run_id
        if row.layout:
            layout = parse_layout(row.layout)
            assert layout.tp * layout.pp * layout.dp == row.cards, row.run_id


def test_runs_to_fit_are_plain() -> None:
    rows = fitted()
    assert len(rows) > 100
    for row in rows:
        assert (row.serving, row.speculation, row.model, row.grade) == ("aggregated", "none", "kimi-k3", "measured")
        assert row.cluster and row.layout and row.isl and row.osl and row.concurrency and row.tpot_ms, row.run_id
        assert row.prompts != "trace" and "fp8" not in row.settings and not row.reason, row.run_id
        assert not (row.set_id.startswith("h200-sglang") and row.concurrency == 4), row.run_id
    assert {(r.device, r.engine) for r in rows} == {
        ("h200", "vllm"), ("h200", "sglang"), ("b200", "sglang"), ("b300", "sglang")
    }  # fmt: skip


def test_rates_agree_with_times_of_requests() -> None:
    """In a closed loop the rate follows from first-token time and time per token, up to the cap of running requests."""
    checked = 0
    for row in fitted():
        rate = row.closed_loop_tps
        cap = int(row.flags.get("max_num_seqs", 10**9))
        if rate is None or row.output_tps is None or row.concurrency is None or row.concurrency > cap:
            continue
        checked += 1
        means = row.ttft_mean_ms is not None and row.tpot_mean_ms is not None
        assert rate == pytest.approx(row.output_tps, rel=0.005 if means else 0.01), row.run_id
    assert checked > 80


def test_total_tokens_are_input_and_output() -> None:
    for row in fitted():
        if row.total_tps and row.output_tps and row.isl and row.osl:
            assert row.total_tps == pytest.approx(row.output_tps * (row.isl + row.osl) / row.osl, rel=0.01), row.run_id


def test_repeats_on_other_days_agree() -> None:
    for sets in (("tp16-a", "tp16-b", "tp16-c"), ("tp16ep16-a", "tp16ep16-b"),
                 ("tp8pp2-marlin-a", "tp8pp2-marlin-b", "tp8pp2-marlin-c")):  # fmt: skip
        of: dict[int | None, list[float]] = {}
        for row in fitted():
            if row.set_id.removeprefix("h200-vllm-") in sets and row.output_tps:
                of.setdefault(row.concurrency, []).append(row.output_tps)
        assert all(len(rates) == len(sets) and max(rates) / min(rates) < 1.03 for rates in of.values()), sets


def test_cells_past_what_a_cache_holds_are_left_out() -> None:
    (pool,) = [r.value for r in evidence.memory_logs() if r.log_id == "b200-sglang" and r.quantity == "kv_tokens"]
    for row in benchmarks.runs():
        if row.set_id == "b200-sglang-tp16ep16-saturation" and row.concurrency and row.isl and row.osl:
            assert (row.use == "out") == (row.concurrency * (row.isl + row.osl) > pool), row.run_id


RUN = "h200-vllm-tp16-a-c1,h200-vllm-tp16-a,fit,,2026-07-31,"
SPEED = "random,1000,1000,1,39.43,,78.86,,216.134,213.471,235.443,25.17,25.172,25.188,25.17,,25361.268,"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (RUN, RUN.replace("fit,", "out,"), ["row 2", "use 'out' needs a reason in the column 'reason'"]),
        (RUN, RUN.replace("fit,", "show,"), ["row 2", "use 'show' needs a reason"]),
        (RUN, RUN.replace("fit,", "good,"), ["row 2", "use = 'good'"]),
        (SPEED, SPEED.replace("39.43", "-39.43"), ["row 2", "output_tps = '-39.43'"]),
        (SPEED, SPEED.replace("39.43", "nan"), ["row 2", "output_tps = 'nan'", "finite"]),
        (SPEED, SPEED.replace("39.43", "inf"), ["row 2", "finite"]),
        (SPEED, SPEED.replace("39.43", "fast"), ["row 2", "output_tps = 'fast'"]),
        (SPEED, "random,1000,1000,1" + "," * 14, ["row 2", "no measured value in any of: output_tps"]),
        (SPEED, SPEED.replace("random,1000", "random,0"), ["row 2", "isl 0: must be above 0"]),
        (SPEED, SPEED.replace("random", "prose"), ["row 2", "prompts = 'prose'"]),
        ("h200-vllm-tp16-a-c2,", "h200-vllm-tp16-a-c1,", ["row 3", "the same run_id as row 2"]),
        ("mm_h200_runs", "mm_h200_run", ["source 'mm_h200_run' is not in", "Did you mean 'mm_h200_runs'?"]),
        ("utilisation=0.97;", "utilisation 0.97;", ["row 2", "settings"]),
        (",tpot_mean_ms,", ",tpot_mean,", ["row 1", "column 'tpot_mean' is not known", "Did you mean"]),
    ],
)
def test_a_bad_run_is_named(old: str, new: str, words: list[str], tmp_path: Path) -> None:
    data = changed(tmp_path, "benchmarks.csv", old, new)
    with pytest.raises(InputError) as caught:
        benchmarks.runs(data)
    for word in ["benchmarks.csv", *words]:
        assert word in str(caught.value), (word, str(caught.value))


def test_a_bad_observation_is_named(tmp_path: Path) -> None:
    data = changed(tmp_path, "observations.csv", ",93.35,,,s,", ",93.35,,,sec,")
    with pytest.raises(InputError, match="unit 'sec' is not known"):
        benchmarks.observations(data)


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
