"""`k3 read`: what a file says beside what is predicted, what is kept of it, and what it teaches."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from conftest import k3, refused

from k3lib.calibrate import against, own
from k3lib.facts.benchmarks import Run, runs
from k3lib.reading import read_files

SET_UP = ("--cluster", "2x8xh200", "--layout", "tp8,pp2", "--engine", "vllm-2026-07", "--settings",
          "nics=1;chunk_tokens=4096;utilisation=0.9")  # fmt: skip


def bench(folder: Path, concurrency: int, tps: float, tpot_ms: float, ttft_ms: float, **more: object) -> Path:
    """A result of vLLM's client, with figures as a test needs them."""
    completed = more.pop("completed", 40)
    path = folder / f"c{concurrency}.json"
    path.write_text(json.dumps({
        "date": "20260801-101010", "backend": "vllm", "model_id": "moonshotai/Kimi-K3", "num_prompts": completed,
        "max_concurrency": concurrency, "duration": completed * 1000 / tps, "completed": completed, "failed": 0,
        "total_input_tokens": 1000 * completed, "total_output_tokens": 1000 * completed,
        "request_throughput": tps / 1000, "output_throughput": tps, "total_token_throughput": 2 * tps,
        "mean_ttft_ms": ttft_ms, "median_ttft_ms": ttft_ms, "p99_ttft_ms": 1.2 * ttft_ms, "mean_tpot_ms": tpot_ms,
        "median_tpot_ms": tpot_ms, "p99_tpot_ms": tpot_ms, "mean_itl_ms": tpot_ms, "median_itl_ms": tpot_ms,
        "p99_itl_ms": tpot_ms, **more,
    }))  # fmt: skip
    return path


def twice_as_slow(folder: Path) -> list[Path]:
    """Runs as measured on 16 H200, all times a third longer: an engine with a constant of its own."""
    measured = {r.concurrency: r for r in runs() if r.set_id == "h200-vllm-tp8pp2-marlin-a" and r.use == "fit"}
    return [
        bench(
            folder, c, measured[c].output_tps / 1.33, 1.33 * measured[c].tpot_mean_ms, 1.33 * measured[c].ttft_mean_ms
        )
        for c in (1, 2, 4, 8, 16, 32)
    ]


@pytest.fixture
def mine(tmp_path: Path) -> dict[str, str]:
    """An environment whose own files are in the test's folder."""
    return {"K3_OWN": str(tmp_path / "own")}


def test_a_run_is_set_beside_its_prediction(tmp_path: Path, mine: dict[str, str]) -> None:
    path = bench(tmp_path, 8, 339.0, 22.7, 890.0)
    done = k3("read", str(path), *SET_UP, "--json", env=mine)
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)["readings"]
    by = {c["what"]: c for c in one["compared"]}
    assert set(by) == {"output", "time per output token", "time to first token"}
    for c in by.values():
        assert c["low"] < c["predicted"] < c["high"]
        assert c["difference"] == pytest.approx(c["predicted"] / c["measured"] - 1)
    assert abs(by["time per output token"]["difference"]) < 0.1
    assert "difference" in k3("read", str(path), *SET_UP, env=mine).stdout


def test_a_verdict_says_whether_a_run_keeps_its_limits(tmp_path: Path, mine: dict[str, str]) -> None:
    for tps, tpot, ttft, expected in ((339.0, 22.7, 890.0, "pass"), (700.0, 11.0, 400.0, "pass"),
                                      (339.0, 22.7, 90_000.0, "fail")):  # fmt: skip
        path = bench(tmp_path, 8, tps, tpot, ttft)
        (one,) = json.loads(k3("read", str(path), *SET_UP, "--json", env=mine).stdout)["readings"]
        assert one["verdict"] == expected
        assert ("time to first token" in one["verdict_details"]["why"]) == (expected == "fail")
    (bare,) = json.loads(k3("read", str(path), "--json", env=mine).stdout)["readings"]
    assert bare["verdict"] is None and bare["verdict_details"] is None


def test_without_a_set_up_the_reader_is_told_what_to_name(tmp_path: Path, mine: dict[str, str]) -> None:
    path = bench(tmp_path, 8, 339.0, 22.7, 890.0)
    text = k3("read", str(path), env=mine)
    assert text.returncode == 0 and "name --cluster, --layout and --engine" in text.stdout
    half = k3("read", str(path), "--cluster", "2x8xh200", env=mine)
    assert half.returncode == 0 and "name --cluster and --layout" in half.stdout


def test_runs_are_kept_once_and_are_rows_like_the_projects(tmp_path: Path, mine: dict[str, str]) -> None:
    path = bench(tmp_path, 8, 339.0, 22.7, 890.0)
    first = k3("read", str(path), *SET_UP, "--add", env=mine)
    again = k3("read", str(path), *SET_UP, "--add", env=mine)
    assert "1 runs kept" in first.stdout and "1 of them new" in first.stdout and "0 of them new" in again.stdout
    table = Path(mine["K3_OWN"]) / "benchmarks.csv"
    with table.open(newline="") as handle:
        (row,) = csv.DictReader(handle)
    assert (row["cluster"], row["layout"], row["device"], row["use"]) == ("2x8xh200", "tp8,pp2", "h200", "fit")
    (kept,) = own.runs(Path(mine["K3_OWN"]))
    assert isinstance(kept, Run) and kept.output_tps == 339.0
    (back,) = read_files([table])  # and the file can be read again
    assert against.row(back, against.Given()).run_id == kept.run_id


def test_two_cells_halve_the_error_of_the_others(tmp_path: Path, mine: dict[str, str]) -> None:
    paths = twice_as_slow(tmp_path)
    done = k3("read", *map(str, paths), *SET_UP, "--calibrate", "--json", env=mine)
    assert done.returncode == 0, done.stderr
    taught = json.loads(done.stdout)["calibrated"]
    assert len(taught["given"]) == 2
    for metric in ("output_tps", "tpot_ms"):
        assert taught["before"][metric] > 0.15 and taught["after"][metric] < taught["before"][metric] / 2
    changed = {c["parameter"]: c for c in taught["constants"]}
    assert changed["layer_us"]["value"] > changed["layer_us"]["was"]
    plan = ("plan", "--cluster", "2x8xh200", "--layout", "tp8,pp2", "--isl", "1000", "--osl", "1000", "--concurrency",
            "8", "--nics", "1", "--max-num-batched-tokens", "4096", "--json")  # fmt: skip
    with_own, without = (json.loads(k3(*plan, env=env).stdout)["speed"]["tpot_ms"]["value"] for env in (mine, {}))
    assert with_own > 1.15 * without  # from now on predictions use them


def test_the_same_evidence_counts_once(tmp_path: Path, mine: dict[str, str]) -> None:
    paths = twice_as_slow(tmp_path)[:4]
    first, second = (
        json.loads(k3("read", *map(str, paths), *SET_UP, "--calibrate", "--json", env=mine).stdout)["calibrated"]
        for _ in range(2)
    )
    assert first == second


def test_what_a_reader_teaches_holds_for_his_card_alone(tmp_path: Path, mine: dict[str, str]) -> None:
    k3("read", *map(str, twice_as_slow(tmp_path)), *SET_UP, "--calibrate", env=mine)
    other = ("plan", "--cluster", "4x8xh20-96", "--layout", "tp8,pp4", "--engine", "sglang", "--json")
    with_own, without = (json.loads(k3(*other, env=env).stdout)["speed"] for env in (mine, {}))
    assert with_own == without


def test_absurd_cells_teach_nothing_and_nothing_is_kept(tmp_path: Path, mine: dict[str, str]) -> None:
    paths = [bench(tmp_path, c, 0.001, 1e6, 1e6) for c in (1, 8)]
    refused(k3("read", *map(str, paths), *SET_UP, "--add", "--calibrate", env=mine), "times off the prediction")
    assert not Path(mine["K3_OWN"]).exists()


def test_files_of_one_name_in_two_folders_are_two_runs(tmp_path: Path, mine: dict[str, str]) -> None:
    paths = []
    for part, tps in (("a", 339.0), ("b", 300.0)):
        folder = tmp_path / part / "results"
        folder.mkdir(parents=True)
        paths.append(bench(folder, 8, tps, 8000 / tps, 890.0))
    done = k3("read", *map(str, paths), *SET_UP, "--add", env=mine)
    assert "2 of them new" in done.stdout and len(own.runs(Path(mine["K3_OWN"]))) == 2


def test_a_network_test_sets_the_network(tmp_path: Path, mine: dict[str, str]) -> None:
    lines = ["# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20",
             *(f"#  Rank {r} Group  0 Pid {r + 1} on node{r // 8} device {r % 8} [0x00] NVIDIA H20" for r in range(16)),
             "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong"]  # fmt: skip
    for power in range(3, 31):
        size = 2**power
        us = 90.0 + size / 40e3  # 40 GB/s over the network cards of a node
        lines.append(f"{size:>12} {size // 4:>12} float sum -1 {us:.2f} {size / us / 1e3:.2f} "
                     f"{size / us / 1e3 * 1.875:.2f} 0 {us:.2f} 1.0 1.0 0")  # fmt: skip
    path = tmp_path / "all_reduce_perf.txt"
    path.write_text(
        "# Collective test starting: all_reduce_perf\n" + "\n".join(lines) + "\n# Avg bus bandwidth : 30.0\n"
    )
    done = k3("read", str(path), "--cluster", "2x8xh20-96", "--settings", "nics=4", "--calibrate", "--json", env=mine)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["readings"][0]["compared"]
    by = {c["parameter"]: c for c in found["calibrated"]["constants"]}
    assert by["exchange_start_us"]["value"] == pytest.approx(90.0, rel=0.05)
    assert by["nic_rate"]["value"] == pytest.approx(10.0, rel=0.05) and by["nic_rate"]["scope"].endswith("@4nics")


LOG = """\
(APIServer pid=1) INFO 11-02 10:00:00 [api_server.py:1] vLLM API server version 0.33.0
(APIServer pid=1) INFO 11-02 10:00:00 [utils.py:1] non-default args: {'model': 'moonshotai/Kimi-K3', 'tensor_parallel_size': 8, 'pipeline_parallel_size': 4, 'max_model_len': 32768, 'gpu_memory_utilization': 0.9}
(Worker_PP0_TP0 pid=2) INFO 11-02 10:01:00 [gpu_model_runner.py:1] Model loading took 46.90 GiB memory and 100.0 seconds
(Worker_PP1_TP0 pid=3) INFO 11-02 10:01:00 [gpu_model_runner.py:1] Model loading took 46.80 GiB memory and 100.0 seconds
(EngineCore pid=9) INFO 11-02 10:02:00 [kv_cache_utils.py:1] GPU KV cache size: 4,000,000 tokens, Maximum concurrency for 32,768 tokens per request: 122.07x
"""  # noqa: E501 - lines of a log are as long as they are


def test_a_log_is_set_beside_the_ledger_and_tells_the_set_up_of_runs(tmp_path: Path, mine: dict[str, str]) -> None:
    log = tmp_path / "server.log"
    log.write_text(LOG)
    run = bench(tmp_path, 8, 300.0, 25.0, 1200.0)
    done = k3("read", str(log), str(run), "--cluster", "4x8xh20-96", "--json", env=mine)
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)["readings"]
    by = {c["what"]: c for c in first["compared"]}
    assert by["weights, stage 0"]["measured"] == 46.90 and abs(by["weights, stage 0"]["difference"]) < 0.05
    assert by["KV tokens"]["low"] < by["KV tokens"]["predicted"] < by["KV tokens"]["high"]
    assert {c["what"] for c in second["compared"]} >= {"output"}
    alone = k3("read", str(log), env=mine)
    assert alone.returncode == 0 and "name --cluster" in alone.stdout


@pytest.mark.parametrize(
    ("more", "words"),
    [(["--model", "kimi-k9"], ["--model kimi-k9", "Did you mean"]), (["--cluster", "4x8xh2O"], ["device 'h2o'"]),
     (["--layout", "tp8;pp4"], ["--layout"]), (["--engine", "vlm"], ["--engine vlm", "vllm"]),
     (["--settings", "nics"], ["not name=value"]), (["--settings", "nics=four", "--cluster", "2x8xh200", "--layout",
                                                     "tp8,pp2", "--engine", "vllm", "--calibrate"], ["nics = four"]),
     (["--isl", "0"], ["--isl 0"]), (["--add"], ["no run to keep"]), (["--calibrate"], ["nothing to learn from"])],
)  # fmt: skip
def test_bad_options_are_refused_and_keep_nothing(
    tmp_path: Path, mine: dict[str, str], more: list[str], words: list[str]
) -> None:
    path = bench(tmp_path, 8, 339.0, 22.7, 890.0)
    refused(k3("read", str(path), *more, env=mine), *words)
    assert not Path(mine["K3_OWN"]).exists()


def test_cells_of_two_deployments_teach_nothing(tmp_path: Path, mine: dict[str, str]) -> None:
    table = tmp_path / "mine.csv"
    rows = [r for r in runs() if r.run_id in ("h200-vllm-tp16-a-c1", "h200-vllm-tp8pp2-marlin-a-c8")]
    assert len(rows) == 2
    with table.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, list(Run.model_fields))
        writer.writeheader()
        writer.writerows(r.model_dump() for r in rows)
    refused(k3("read", str(table), "--calibrate", env=mine), "several deployments")
    refused(k3("read", str(bench(tmp_path, 1, 57.0, 17.2, 240.0)), *SET_UP, "--calibrate", env=mine), "needs two runs")


@pytest.mark.parametrize(
    ("name", "content"),
    [("empty.json", b""), ("cut.json", b'{"duration": 12.5, "completed": 4'),
     ("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(200)), ("notes.txt", b"hello\n")],
)  # fmt: skip
def test_files_that_say_nothing_are_named(tmp_path: Path, mine: dict[str, str], name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    refused(k3("read", str(tmp_path / name), env=mine), name)
    refused(k3("read", str(tmp_path / "none.json"), env=mine), "none.json")
