"""What files say: every kind and version in its test input, the traps named, and one clear line for what is none."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import reading_inputs as made
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from k3lib.errors import InputError
from k3lib.facts.benchmarks import Run
from k3lib.facts.benchmarks import runs as runs_of_the_project
from k3lib.facts.paths import DATA
from k3lib.reading import (
    ExchangeReading,
    LogReading,
    OtherReading,
    RunReading,
    UnknownError,
    as_json,
    as_run,
    describe,
    json_file,
    read_files,
    recognise,
    run_fields,
    text,
)
from k3lib.reading.failures import failure_in

FOLDER = tempfile.TemporaryDirectory()


def read(content: str | bytes | dict[str, Any], name: str = "file") -> list[Any]:
    """What a file of this content says; its name tells nothing."""
    if isinstance(content, dict):
        content = json.dumps(content)
    path = Path(FOLDER.name) / f"{name}-{os.getpid()}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return recognise(path)


def one(content: str | bytes | dict[str, Any]) -> Any:
    """The only reading of a file."""
    found = read(content)
    assert len(found) == 1, found
    return found[0]


def refusal(content: str | bytes | dict[str, Any], *words: str) -> str:
    """The one line that refuses a file; it holds every word."""
    with pytest.raises(InputError) as caught:
        read(content)
    message = str(caught.value)
    assert "\n" not in message and message.isprintable(), message
    for word in words:
        assert word in message, (word, message)
    return message


def said(reading: Any, *words: str) -> None:
    """The warnings and remarks of a reading hold every word."""
    notes = " | ".join((*reading.warnings, *getattr(reading, "remarks", ())))
    for word in words:
        assert word in notes, (word, notes)


COMMON = {"completed": 100, "max_concurrency": 16, "isl": 1000.0, "osl": 200.0, "output_tps": 400.0,
          "total_tps": 2400.0, "ttft_mean_ms": 500.0, "ttft_median_ms": 450.0, "ttft_p99_ms": 1200.0,
          "tpot_mean_ms": 20.0, "itl_mean_ms": 21.0}  # fmt: skip


def has(reading: Any, **values: Any) -> None:
    """A reading has these values."""
    for name, value in values.items():
        assert getattr(reading, name) == (pytest.approx(value) if isinstance(value, float) else value), name


# ---- benchmark results -----------------------------------------------------------------------------------------------


def test_vllm_bench() -> None:
    """Every version of the client, one object or several one after another."""
    run = one(made.vllm_bench())
    has(run, kind="vLLM bench JSON", model="some/Model", failed=0, peak_concurrency=20.0, date="20261101-120000",
        request_rate=None, duration_s=50.0, **COMMON)  # fmt: skip
    said(run, "peak of 20 requests", "exceeds its cap of 16")
    assert not run.warnings
    has(one(made.vllm_bench_2024()), failed=0, **COMMON)  # failed from num_prompts
    several = read(json.dumps(made.vllm_bench()) + json.dumps(made.vllm_bench(max_concurrency=32), indent=1))
    assert [r.max_concurrency for r in several] == [16, 32] and several[1].place == "row 1 behind the first object"
    assert [r.request_rate for r in read(json.dumps([made.vllm_bench(request_rate=r) for r in (4, "5.5", "inf")]))] == [
        4.0, 5.5, None]  # fmt: skip
    tagged = one(made.vllm_bench(tp="8", spec_decode_acceptance_length=2.5, max_concurrency=None))
    has(tagged, tp=8, acceptance_length=2.5, max_concurrency=None)


def test_vllm_bench_of_the_first_days() -> None:
    """The client of the first image adds a steady state and an ISO date; a full KV pool shows in the mean TTFT."""
    data = made.vllm_bench(
        date="2026-07-31T20:29:31Z", input_throughput=2000.0, mean_ttft_ms=1500.0, mean_e2el_ms=5500.0,
        steady_state={"output_throughput": 450.0, "percentiles_ttft_ms": [[99.0, 1.0]], "window": {"warning": None}},
    )  # fmt: skip
    run = one(data)
    has(run, steady_output_tps=450.0, input_tps=2000.0, e2e_mean_ms=5500.0)
    said(run, "3.3 times the median", "full KV pool", "steady state")
    burst = one({**data, "mean_e2el_ms": 50_000.0, "mean_tpot_ms": 240.0})
    assert not burst.warnings
    said(burst, "burst of the first requests")


def test_traps_of_a_run() -> None:
    """Failed requests, probes, waiting, mixed units and differing counts are named."""
    said(one(made.vllm_bench(failed=7, completed=93)), "7 of 100 requests failed")
    said(one(made.vllm_bench(completed=1, num_prompts=1)), "only 1 completed request: a probe")
    said(one(made.vllm_bench(completed=0)), "no request was completed")
    said(one(made.vllm_bench(output_throughput=200.0)), "token counts differ")
    said(one(made.vllm_bench(mean_ttft_ms=6e5, median_ttft_ms=5e5)), "past what the deployment can hold")
    said(one(made.vllm_bench(mean_e2el_ms=4.48)), "seconds and milliseconds mixed?")
    said(one(made.vllm_bench(completed=40, num_prompts=40)), "40 requests for 16 at once")
    said(one({k: v for k, v in made.vllm_bench().items() if k != "output_throughput"}), "embedding or pooling")


def test_sglang_bench() -> None:
    """Lines of 2025 and of 0.5.23; Infinity is no JSON and stands there all the same."""
    run = one(json.dumps(made.sglang_bench()))
    has(run, kind="SGLang bench JSON", model="some/Model", engine="sglang", version="0.5.23", tp=8, e2e_mean_ms=4480.0,
        mean_concurrency=15.5, prompts="random", request_rate=None, **COMMON)  # fmt: skip
    said(run, "does not count failed requests")
    gone = ("total_throughput", "tag", "server_info")
    old = {k: v for k, v in made.sglang_bench(request_rate=5.0, concurrency=3.5, random_range_ratio=0.0).items()
           if k not in gone}  # fmt: skip
    lines = json.dumps(old) + "\n" + json.dumps(made.sglang_bench(total_output_tokens_retokenized=10_000)) + "\n"
    first, second = read(lines)
    has(first, total_tps=None, request_rate=5.0, place="row 1")
    said(first, "3.5 requests ran on average", "random_range_ratio 0", "not the mean input")
    said(second, "cut into tokens again")
    private = one(made.sglang_bench(generated_texts=["my secret"], errors=["", "boom secret"]))
    assert private.failed == 1 and "secret" not in describe([private]) + json.dumps(as_json([private]))


@pytest.mark.parametrize("prefix", ["", "[pod/bench-0] ", "2026-11-01 12:00:00 | "])
def test_consoles(prefix: str) -> None:
    """The printed block of either client, several in a text, whatever stands in front of its lines."""
    runs = read("$ python -m sglang.bench_serving --model x\n" + made.console(2, prefix=prefix) + "done\n")
    assert len(runs) == 2 and all((r.kind, r.deployment) == ("SGLang bench console", "") for r in runs)
    has(runs[1], mean_concurrency=15.5, acceptance_length=2.1, e2e_mean_ms=4480.0, **{
        k: v for k, v in COMMON.items() if k not in ("tpot_median_ms",)})  # fmt: skip
    vllm = one(made.console(tool="vllm", prefix=prefix))
    has(vllm, kind="vLLM bench console", failed=3, e2e_mean_ms=4480.0, **COMMON)


def test_cut_consoles() -> None:
    """A block cut down by its author takes what is written above it; a name with markup is never shown raw."""
    cut = "".join(line for line in made.console().splitlines(True) if "tokens:" not in line and "Max" not in line)
    cut = cut.replace("Concurrency:", "Nothing:")
    head = (
        "matrix: isl=8192 osl=1024 n=64 conc=32\n########## mode=pd <script>\x1b[31mred ##########\n--- run 1/2 ---\n"
    )
    run = one(head + cut)
    has(run, isl=8192.0, osl=1024.0, max_concurrency=32)
    assert run.deployment == "mode=pd ?script?red / run 1/2"
    said(run, "lengths as asked for")
    other = one(
        "Namespace(backend='sglang', model='some/Model', num_prompts=120, max_concurrency=8)\n" + made.console()
    )
    has(other, model="some/Model", failed=20, max_concurrency=16)


def test_aiperf_and_genai_perf() -> None:
    """JSON, CSV and console of both; percentiles rise in one and fall in the other."""
    run = one(made.perf_json())
    has(run, kind="AIPerf JSON", tool_version="0.13.0", model="some/Model", max_concurrency=16, completed=90, failed=10,
        ttft_mean_ms=500.0, ttft_median_ms=450.0, ttft_p99_ms=1000.0, tpot_mean_ms=20.0, itl_mean_ms=21.0,
        e2e_mean_ms=4480.0, isl=1000.0, osl=200.0, output_tps=400.0, user_tps=50.0, duration_s=45.0)  # fmt: skip
    said(run, "10 of 100 requests failed")
    has(one({"records": made.perf_json(), "input_config": made.perf_json()["input_config"]}), completed=90, osl=200.0)
    refusal({"experiments": []}, "raw times of perf_analyzer")
    old = {k: v for k, v in made.perf_json().items() if k not in ("schema_version", "aiperf_version")}
    assert one(old).kind == "AIPerf JSON"
    worse = made.perf_json() | {"error_request_count": {"unit": "requests", "avg": 207.0}, "was_cancelled": True}
    said(one(worse), "more requests failed than succeeded", "was cancelled")
    has(one(made.perf_json("genai")), kind="GenAI-Perf JSON", model="some/Model", max_concurrency=16, tpot_p99_ms=40.0,
        failed=None, completed=90)  # fmt: skip
    for tool in ("aiperf", "genai"):
        run = one(made.perf_csv(tool))
        has(run, kind=f"{'AIPerf' if tool == 'aiperf' else 'GenAI-Perf'} CSV", ttft_mean_ms=1234.5, ttft_p99_ms=1234.5,
            output_tps=400.0, completed=90, isl=1000.0)  # fmt: skip
    for tool in ("GenAI-Perf", "AIPerf"):
        run = one(made.perf_console(tool))
        has(run, kind=f"{tool} console", ttft_mean_ms=500.0, ttft_p99_ms=800.0, e2e_mean_ms=4480.0, isl=1000.0,
            output_tps=400.0)  # fmt: skip
    seconds = made.perf_json()
    seconds["time_to_first_token"]["unit"] = "sec"
    assert one(seconds).ttft_mean_ms == 500_000.0
    seconds["time_to_first_token"]["unit"] = "fortnights"
    refusal(seconds, "fortnights", "Known units of time")


def test_aiperf_records() -> None:
    """Records of single requests are added up; warm-up and failed ones are dropped, and no text of them is kept."""
    run = one(made.perf_records())
    has(run, kind="AIPerf records", completed=12, failed=1, ttft_median_ms=408.5, tpot_mean_ms=20.0, itl_mean_ms=20.0,
        e2e_mean_ms=2000.0, osl=80.0, duration_s=13.0, output_tps=80 * 12 / 13)  # fmt: skip
    said(run, "2 of the warm-up were dropped")
    assert "secret" not in describe([run])
    assert isinstance(one(made.perf_records(0)), OtherReading)
    assert isinstance(one(made.SERVER_METRICS), OtherReading)
    assert "no run" in one(made.SERVER_METRICS).says


def test_large_records_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the limit only records, one a line, are read; anything else is refused with the limit named."""
    monkeypatch.setattr(json_file, "LARGEST_JSON", 2000)
    assert one(made.perf_records()).completed == 12
    refusal(made.perf_json(), "is not read", "Save the result without the single requests")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_guidellm(version: int, form: str) -> None:
    """Reports of both versions: successful requests only, seconds and milliseconds apart."""
    data = made.guidellm(version)
    run = one(data if form == "json" else yaml.safe_dump(data, sort_keys=False))
    has(run, kind=f"GuideLLM {form.upper()}", model="some/Model", max_concurrency=16, mean_concurrency=15.5,
        completed=40, failed=2, e2e_mean_ms=4480.0, ttft_mean_ms=500.0, ttft_median_ms=450.0, tpot_mean_ms=20.0,
        ttft_p99_ms=500 * 2.75, isl=1000.0, osl=200.0, output_tps=400.0, total_tps=2400.0)  # fmt: skip
    said(run, "2 of 42 requests failed", "1 requests were cut off")
    sweep = read(made.guidellm(version, sweep=True))
    assert [r.deployment for r in sweep] == ["synchronous", "throughput", "constant"]
    said(sweep[0], "a probe at the start of a sweep")
    has(sweep[2], request_rate=2.0, max_concurrency=None)
    assert "private" not in describe(sweep)


def test_guidellm_csv() -> None:
    """Three header rows, or the long names of 2025."""
    for content in (made.guidellm_csv(), made.guidellm_csv_2025()):
        run = one(content)
        has(run, kind="GuideLLM CSV", max_concurrency=16, completed=40, failed=2, e2e_mean_ms=4480.0,
            ttft_mean_ms=500.0, ttft_median_ms=450.0, ttft_p99_ms=1200.0, tpot_mean_ms=20.0, isl=1000.0, osl=200.0,
            output_tps=400.0, duration_s=50.0)  # fmt: skip
    refusal("".join(made.guidellm_csv().splitlines(True)[:3]), "no benchmark below")
    refusal(made.guidellm_csv().replace("4.48", "soon"), "row 4", "'soon'", "must be a number")


def test_inferencex() -> None:
    """Seconds become milliseconds, rates per card become those of the deployment."""
    run = one(made.inferencex())
    has(run, kind="InferenceX result", device="h200", engine="sglang", cards=8, tp=8, ep=8, max_concurrency=16,
        ttft_mean_ms=500.0, tpot_mean_ms=20.0, output_tps=800.0, input_tps=1600.0, total_tps=2400.0, user_tps=50.0,
        isl=8192.0, osl=1024.0, speculation="mtp", serving="aggregated")  # fmt: skip
    said(run, "are seconds", "nominal lengths")
    apart = one(made.inferencex(separated=True))
    has(apart, cards=32, output_tps=2400.0, input_tps=1600.0, total_tps=9600.0, serving="separated")
    said(apart, "per decode card (24)")
    lost = {k: v for k, v in made.inferencex(separated=True).items() if k != "num_decode_gpu"}
    has(one(lost), output_tps=None, cards=None)
    raw = {**made.vllm_bench(), **made.times("", 1 / 1000)}
    has(one({k: v for k, v in raw.items() if not k.endswith("_ms")}), ttft_mean_ms=500.0)


# ---- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["\t", ",", ";"])
def test_sweeps(mark: str) -> None:
    """A user's own summary; columns are understood by many names, units by their names only."""
    runs = read("# made by hand\n" + made.SWEEP.replace("\t", mark))
    assert [r.max_concurrency for r in runs] == [1, 2, 4, 8]
    has(runs[3], kind="sweep table", place="row 6", output_tps=244.0, ttft_mean_ms=208.5, requests=32)
    table = "Concurrency,Output Throughput (tok/s),TTFT P50 (s),Median TPOT,TP\n8,100.5,0.5,20,4\n"
    run = one(table)
    has(run, max_concurrency=8, ttft_median_ms=500.0, tpot_median_ms=None, tp=4)
    said(run, "Median TPOT does not tell its unit", "Median TPOT_ms")
    out = io.StringIO()
    writer = csv.DictWriter(out, made.vllm_bench(), delimiter=mark)
    writer.writeheader()
    writer.writerow(made.vllm_bench())
    has(one(out.getvalue()), kind="vLLM bench JSON", place="row 2", **COMMON)  # a client's results as a table
    refusal("concurrency,output_tps\n1,2,3\n", "row 2", "has 3 cells, the header has 2")
    refusal("concurrency,output_tps\n", "a header but no rows")
    refusal("concurrency,output_tps\n1,fast\n", "row 2", "output_tps = 'fast'", "must be a number")
    refusal("concurrency,output_tps\n1,-5\n", "row 2", "below zero")
    refusal('concurrency,output_tps\n1,"5\n', "Is a quote left open?")
    refusal("output_tps,output_tps\n1,5\n", "stands twice")
    refusal("a,b,c\n1,2,3\n", "looks like a table with the columns a, b, c")


def test_own_rows() -> None:
    """A user's rows have the project's columns, need no source and are checked like the project's."""
    runs = read(made.OWN)
    assert [r.own.run_id for r in runs] == ["mine-1", "mine-2"] and runs[0].own.source_id == "own"
    has(runs[0], kind="project's benchmark rows", output_tps=400.5, ttft_mean_ms=500.0, max_concurrency=16, cards=32)
    assert as_run(runs[0]) == runs[0].own
    for old, new, words in (
        ("run_id,set_id", "run_id,set", ["column 'set' is not known", "Did you mean"]),
        (",grade\n", "\n", ["column 'grade' is missing"]),
        ("mine-2", "mine-1", ["row 3 (mine-1)", "the same run_id as row 2"]),
        (",measured\nmine-2", "\nmine-2", ["row 2 (mine-1)", "has 14 cells, the header has 15"]),
        ("400.5", "fast", ["row 2 (mine-1)", "output_tps = 'fast'"]),
        ("400.5", "nan", ["row 2 (mine-1)", "output_tps"]),
        ("400.5,500", "-1,500", ["row 2 (mine-1)", "greater than or equal to 0"]),
        ("show,a probe", "show,", ["row 3 (mine-2)", "needs a reason"]),
        ("use,reason", "use,use", ["column 'use' stands twice"]),
    ):
        refusal(made.OWN.replace(old, new, 1), *words)
    refusal(made.OWN.splitlines()[0], "a header but no rows")
    assert tuple(r.own for r in recognise(DATA / "benchmarks.csv")) == runs_of_the_project()


def test_flat_json() -> None:
    """A user's own object; the same time in two units must agree."""
    data = {"engine": "sglang", "metadata": {"version": "0.5.16", "tp": 16, "gpus": 16}, "prompt_tokens": 5777,
            "ttft_sec": 0.5, "ttft_ms": 500.1, "prefill_tok_s_system": 11_000.0}  # fmt: skip
    run = one(data)
    has(run, kind="flat result JSON", tp=16, cards=16, isl=5777.0, ttft_mean_ms=500.1, input_tps=11_000.0)
    said(run, "say the same in different units")
    refusal({**data, "ttft_ms": 0.5}, "are the same time and differ", "Are seconds and milliseconds mixed?")
    wrapped = read({"tp": 8, "results": [made.vllm_bench(), made.vllm_bench(max_concurrency=32)], "note": "x"})
    assert [(r.place, r.tp, r.max_concurrency) for r in wrapped] == [
        ("row 1 results 1", 8, 16), ("row 1 results 2", 8, 32)]  # fmt: skip
    has(one({"model": "some/Model", "data": [{"concurrency": 4, "output_tps": 9.5, "mean_ttft_ms": 5.5}]}),
        model="some/Model", max_concurrency=4, ttft_mean_ms=5.5)  # fmt: skip
    refusal({"a": 1, "b": {"c": 2}}, "JSON with a, b", "understood are")


# ---- exchanges -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "0: ", "[1,0]<stdout>:", "node-0 ", "[1,0]<stdout>: "])
@pytest.mark.parametrize("old", [False, True])
def test_nccl(prefix: str, old: bool) -> None:
    """Old and new forms, with any label in front."""
    reading = one(made.nccl(prefix, old))
    assert isinstance(reading, ExchangeReading)
    has(reading, ranks=16, nodes=2, gpu="NVIDIA H20", average_busbw_gbs=80.5, version="" if old else "2.20.0",
        library_version="" if old else "2.31.2", operation="" if old else "all_reduce_perf")  # fmt: skip
    assert len(reading.rows) == 12 and reading.rows[0].size_bytes == 1024
    assert reading.rows[-1].wrong == (None if old else 0)
    assert reading.peak_busbw_gbs == pytest.approx(375, rel=0.01)
    said(reading, "average of 80.5 GB/s mixes tiny and huge messages")


def test_nccl_of_other_shapes() -> None:
    """Ellipses, two runs, missing ends, no rows, wrong values, cells without a number."""
    text_ = made.nccl()
    cut = text_.replace("\n       65536 ", "\n...\n       65536 ")
    assert len(one(cut).rows) == 12
    assert len(read(text_ + text_.replace("all_reduce", "all_gather"))) == 2
    said(one(made.nccl(end=False)), "no average line")
    lost = one(made.nccl(rows=False))
    assert isinstance(lost, OtherReading) and "no result rows" in lost.says
    both = one(made.nccl(rows=False) * 2)
    assert "MPI=1" in both.says
    said(one(text_.replace("      0  ", "      7  ")), "values came out wrong")
    odd = one(text_.replace(" 20.00 ", " 99.00 ").replace(f"{2**32:12}", f"{2**31:12}"))
    said(odd, "rows passed over")
    without = "\n".join(line.replace("      0", "    N/A") for line in text_.splitlines())
    assert one(without).rows[-1].wrong is None


def test_deepep() -> None:
    """Tuning lines of several dates and the lines of ranks; a failed run gives no figure."""
    reading = one(made.DEEPEP)
    rows = {(r.name, r.settings): r for r in reading.rows}
    has(rows["dispatch FP8", "24 SMs, NVL chunk 8, RDMA chunk 32"], network_gbs=40.5, algbw_gbs=130.5)
    has(rows["dispatch BF16", "24 SMs, NVL chunk 8"], network_gbs=41.0, time_us=170.0)
    has(rows["combine", "24 SMs, NVL chunk 3"], algbw_gbs=160.0, time_us=512.5)
    has(rows["dispatch + combine", "median of 2 ranks"], algbw_gbs=91.0, time_us=245.0)
    has(rows["combine send + receive", "median of 1 ranks"], time_us=22.0)
    said(reading, "one stall spoils it", "bytes scale with the shape")
    elastic = one("[rank 0] dispatch: 45 GB/s (SO), 150 GB/s (SU), 320 us, 14680064 bytes\n")
    assert [(r.name, r.algbw_gbs) for r in elastic.rows] == [
        ("dispatch (scale-out)", 45.0),
        ("dispatch (scale-up)", 150.0),
    ]
    failed = one("".join(line for line in made.DEEPEP.splitlines(True) if line.startswith(("[config", "[testing"))))
    assert isinstance(failed, OtherReading) and "no result line" in failed.says


# ---- logs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.33.0", "0.11.0"])
@pytest.mark.parametrize("colour", [False, True])
def test_vllm_log(version: str, colour: bool) -> None:
    """Memory by stage, the pool, limits and the service, in the wordings of 2025 and of 0.33."""
    log = one(made.vllm_log(version, colour=colour).replace("\n", "\r\n" if colour else "\n"))
    assert isinstance(log, LogReading)
    has(log, engine="vllm", version=version, model="some/Model", tp=8, pp=2, dp=1, ep=8, utilisation=0.9,
        max_model_len=32768, max_num_seqs=64, chunk_tokens=8192, kv_dtype="fp8", moe_backend="marlin",
        kv_tokens=123_456, max_concurrency=3.77, block_tokens=768, ready=True, failure=None,
        weights_gib={0: (70.0, 70.7), 1: (71.0, 71.7)}, graphs_gib={0: (1.25, 1.25)}, load_seconds=67.5)  # fmt: skip
    assert log.kv_gib == {0: (12.5, 13.2), 1: (11.5, 12.2)}
    has(log.budget, free_gib=94.5, total_gib=95.58, consumed_gib=72.5, activation_gib=2.5, graphs_gib=1.25)
    has(log.service, lines=5, generation_tps=(160.0, 100.0), running=4, kv_usage=0.08, acceptance_length=2.5)
    assert log.arguments["num_speculative_tokens"] == 3


def test_vllm_logs_of_v0() -> None:
    """2024 and early 2025 print blocks, not tokens."""
    log = one(made.VLLM_V0)
    has(log, version="0.5.1", model="some/Model", tp=4, kv_tokens=40_000, weights_gib={0: (14.9595, 14.9595)},
        max_model_len=4096, ready=True)  # fmt: skip
    has(log.service, running=3, waiting=1, generation_tps=(20.5, 20.5), kv_usage=0.125)
    log = one(made.VLLM_V0_2025)
    has(log, kv_tokens=160_000, max_concurrency=19.53, max_model_len=8192, kv_gib={0: (49.49, 49.49)})


def test_vllm_log_pieces() -> None:
    """A headless node, pinned KV memory, mixed prefixes, two starts in a file, groups of requests of their own."""
    body = made.vllm_log()
    node = "".join(line for line in body.splitlines(True) if "PP1" in line)
    log = one("(Worker pid=1) INFO [p.py:1] world_size=16 rank=8 local_rank=0 backend=nccl\n" + "".join(
        node.replace("TP7", f"TP{r}") for r in range(8)))  # fmt: skip
    has(log, tp=8, pp=2, kv_tokens=None)
    assert set(log.weights_gib) == {1}
    said(log, "layout taken from the workers' names", "no KV token line")
    pinned = ("(Worker_DP0_TP0 pid=1) INFO 11-01 12:00:00 [w.py:1] Initial free memory 137.64 GiB, reserved 0.15 GiB "
              "memory for KV Cache as specified by kv_cache_memory_bytes config and skipped memory profiling.\n"
              )  # fmt: skip
    log = one("non-default args: {'kv_cache_memory_bytes': 160000000, 'data_parallel_size': 2}\n" + pinned)
    has(log, kv_pinned=True, dp=2, free_before_load_gib=137.64)
    assert log.kv_gib[0][0] == pytest.approx(160e6 / 2**30)
    mixed = (
        "(EngineCore pid=2) (Worker_PP1_TP0 pid=9) INFO 11-01 12:00:00 [r.py:1] Model loading took 71.5 GiB and 1 s\n"
    )
    assert one(mixed).weights_gib == {1: (71.5, 71.5)}
    twice = read(body + made.vllm_log("0.34.0"))
    assert [r.version for r in twice] == ["0.33.0", "0.34.0"]
    lost = body.replace("(Worker_PP1_TP7 pid=11)", "")
    assert one(lost).weights_gib[1] == (71.0, 71.0)  # a line that lost its prefix has no stage
    negative = one(body.replace("memory: 12.50 GiB", "memory: -3.25 GiB"))
    said(negative, "nothing is left for caches (-3.25 GiB)")


@pytest.mark.parametrize("stage", ["load", "profiling", "graphs", "service"])
def test_vllm_out_of_memory(stage: str) -> None:
    """The stage of a death comes from what the log said before it, not from what followed."""
    log = one(made.vllm_oom(stage))
    has(log.failure, kind="out of memory", stage=stage, needed_gib=588 / 1024, total_gib=139.8, available_gib=0.5,
        consequence=False)  # fmt: skip


REFUSALS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("ValueError: To serve at least one request with the model's max seq len (131072), (4.11 GiB KV cache is needed, "
     "which is larger than the available KV cache memory (4.0 GiB). Based on the available memory, the estimated "
     "maximum model length is 127776.", "pools",
     {"needed_gib": 4.11, "available_gib": 4.0, "possible_model_len": 127_776}),
    ('raise ValueError("No available memory for the cache blocks. "', "pools", {}),
    ("ValueError: Free memory on device cuda:0 (30.5/95.6 GiB) on startup is less than desired GPU memory utilization "
     "(0.9, 86.0 GiB).", "before load", {"needed_gib": 86.0, "available_gib": 30.5, "total_gib": 95.6}),
    ("AssertionError: Error in memory profiling. Initial free memory 10 GiB", "profiling", {}),
    ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "pools", {}),
    ("ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.5.", "pools", {}),
    ("RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed "
     "max_mamba_cache_size=0 (total_rest_memory=1.25 GB, mamba_cache_per_req=30.00 MB).", "pools",
     {"available_gib": 1.25}),
    ("RuntimeError: Decode out of memory. Try to lower your batch size.", "service", {}),
    ("ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.", "before load", {}),
)  # fmt: skip


@pytest.mark.parametrize(("line", "stage", "sizes"), REFUSALS)
@pytest.mark.parametrize(
    "prefix", ["", "2026-06-09 [Error] (Process) (EngineCore pid=4) ERROR 06-09 14:01:52 [c.py:1] "]
)
def test_refusals(line: str, stage: str, sizes: dict[str, Any], prefix: str) -> None:
    """Every refusal of either engine has its stage and its sizes."""
    failure = failure_in(7, prefix + line, "unknown")
    assert failure is not None and failure.row == 7
    has(failure, stage=stage, **sizes)
    assert failure.kind in ("refused", "out of memory") and len(failure.text) < 300


def test_crashes() -> None:
    """The first error that is not the echo of another one is kept; an echo alone is said to be one."""
    crash = (
        "(EngineCore pid=1) ERROR 08-05 07:59:50 [core.py:1] EngineCore encountered a fatal error.\n"
        '(EngineCore pid=1) ERROR 08-05 07:59:50 [core.py:1]   File "/x/vllm/v1/engine/core.py", line 1, in step\n'
        "(EngineCore pid=1) ERROR 08-05 07:59:50 [core.py:1] RuntimeError: cuMemcpyBatchAsync failed at index 11\n"
        "(APIServer pid=2) ERROR 08-05 07:59:50 [a.py:1] vllm.v1.engine.exceptions.EngineDeadError: see above\n"
    )
    log = one(crash)
    has(log.failure, kind="crash", stage="service", row=3)
    assert log.failure.text.startswith("RuntimeError: cuMemcpyBatchAsync")
    echo = one("".join(crash.splitlines(True)[3:]))
    assert echo.failure.consequence
    said(echo, "only follows from an earlier one")
    spam = "[rank7]:[W805 08:28:36 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=100): Broken pipe\n"
    has(one(spam * 50), kind="crash report", engine="")
    bare = one(f"Traceback (most recent call last):\ntorch.OutOfMemoryError: {made.OOM}\n")
    has(bare.failure, kind="out of memory")
    sglang = one('[2026-02-20 11:13:52 DP0 TP1] Load weight begin. avail mem=77.48 GB\n'
                 '  File "/x/sglang/srt/a.py", line 2\n'
                 "ImportError: DeepEP is not installed.\n[2026-02-20 11:13:53] Rank 0 scheduler is dead. Please check\n"
                 "EOFError\n")  # fmt: skip
    has(sglang.failure, stage="load", text="ImportError: DeepEP is not installed.", consequence=False)


def test_errors_that_an_engine_survives() -> None:
    """A request's error, or one before the engine was ready after all, is a warning; the later death is the failure."""
    error = "(APIServer pid=1) ERROR 11-01 12:00:00 [chat.py:1] ValueError: maximum context length is 32768 tokens\n"
    head, service = made.vllm_log().rsplit("(APIServer pid=1) INFO:", 1)
    lines = ("(APIServer pid=1) INFO:" + service).splitlines(True)
    early = one(head + error + "".join(lines))
    late = one(head + lines[0] + error + "".join(lines[1:]))
    for log in (early, late):
        assert log.failure is None and log.ready
        said(log, "the engine went on: ValueError: maximum context length")
    died = one(head + error + "".join(lines) + made.vllm_oom("service").splitlines(True)[-2])
    has(died.failure, kind="out of memory", stage="service")
    said(died, "the engine went on")


def test_sglang_log() -> None:
    """Weights, draft, two pools, graphs and limits of 0.5.23; the plain pool of 2025."""
    log = one(made.sglang_log())
    has(log, engine="sglang", model="some/Model", tp=8, pp=2, ep=8, nodes=2, utilisation=0.87, max_model_len=65536,
        kv_dtype="float8_e4m3fn", kv_tokens=200_000, state_slots=399, running_limit=99, chunk_tokens=8192,
        weights_gib={0: (60.25, 60.25), 1: (61.25, 61.25)}, draft_weights_gib={0: (2.0, 2.0), 1: (2.0, 2.0)},
        kv_gib={0: (5.5, 5.5), 1: (5.5, 5.5)}, state_gib={0: (8.0, 8.0), 1: (8.0, 8.0)},
        graphs_gib={0: (0.75, 0.75), 1: (0.75, 0.75)}, free_before_load_gib=93.5, ready=True)  # fmt: skip
    has(log.service, lines=2, generation_tps=(321.5, 321.5), prompt_tps=(5000.0, 5000.0), running=9, waiting=5,
        kv_usage=0.5, state_usage=0.8, acceptance_length=3.1)  # fmt: skip
    said(log, "states kept for speculation", "caps the running requests at 99")
    old = one(made.sglang_log("2025"))
    has(old, tp=8, dp=8, kv_tokens=161_488, weights_gib={0: (105.0, 105.7)}, running_limit=2048, kv_dtype="auto",
        state_slots=None)  # fmt: skip
    ranks = one("".join(line for line in made.sglang_log("2025").splitlines(True) if "args" not in line))
    has(ranks, tp=8, dp=8)
    said(ranks, "counted from the ranks")
    split = one(
        "[2025-12-28 10:40:09 TP0] KV Cache is allocated. #tokens: 2090351, K size: 23.92 GB, V size: 23.92 GB\n"
    )
    has(split, kv_gib={0: (47.84, 47.84)}, tp=1)


def test_a_container_s_log() -> None:
    """Lines wrapped in JSON, as containers store them, or behind a collector's prefix."""
    log = made.vllm_log()
    wrapped = "".join(
        json.dumps({"log": line, "stream": "stdout", "time": "2026-11-01T12:00:00Z"}) + "\n"
        for line in log.splitlines(True)
    )
    prefixed = "".join(f"2026-11-01T12:00:00.1Z stdout F {line}" for line in log.splitlines(True))
    for content in (wrapped, prefixed):
        has(one(content), kv_tokens=123_456, tp=8, weights_gib={0: (70.0, 70.7), 1: (71.0, 71.7)})


def test_server_information() -> None:
    """The answer of /get_server_info: whole, printed in a shell session, or cut off."""
    whole = one(made.SERVER_INFO)
    has(whole, kind="SGLang server information", model="some/Model", tp=16, utilisation=0.8, kv_tokens=326_223)
    printed = "$ curl -s http://192.0.2.1:30000/get_server_info\n" + json.dumps(made.SERVER_INFO, indent=4)
    has(one(printed + "\n$ exit\n"), tp=16, kv_tokens=326_223, utilisation=0.8, version="0.5.23")
    cut = json.dumps(made.SERVER_INFO, indent=4)
    has(one(cut[: cut.index('"internal')]), tp=16, kv_tokens=326_223)


def test_other_texts() -> None:
    """Known, and no run."""
    lengths = one(made.ACCEPT_LENGTHS)
    assert isinstance(lengths, OtherReading) and lengths.values == {
        "some-model thinking_on 1": 1.84, "some-model thinking_on 2": 2.45, "some-model thinking_on 3": 2.87,
    }  # fmt: skip
    llama = one(made.LLAMA)
    assert llama.values == {"prompt_tps": pytest.approx(5.0), "generation_tps": pytest.approx(4.0)}


# ---- rows and output -------------------------------------------------------------------------------------------------


def test_rows() -> None:
    """A reading as a benchmark row: with warnings it is shown, never used to fit; what is missing is named."""
    run = one({**made.vllm_bench(), "tensor_parallel_size": 8, "pipeline_parallel_size": 2})
    row = as_run(run, device="h20-96", engine="vllm", cards=16)
    assert isinstance(row, Run) and (row.use, row.as_of, row.layout, row.concurrency) == (
        "fit",
        "2026-11-01",
        "tp8,pp2",
        16,
    )
    assert row.metrics["ttft_p99_ms"] == 1200.0 and row.source_id == "own" and row.flags == {"requests": "100"}
    shown = as_run(one(made.vllm_bench(failed=50, completed=50)), device="h20-96", engine="vllm")
    assert shown.use == "show" and "failed" in shown.reason
    with pytest.raises(InputError, match="'device' is missing"):
        as_run(run)
    with pytest.raises(InputError, match="set_id"):
        as_run(run, device="h20-96", engine="vllm", set_id="not an id")
    assert set(run_fields(run)) <= set(Run.model_fields)


INPUTS: dict[str, str] = {
    "vllm": json.dumps(made.vllm_bench()), "vllm twice": (json.dumps(made.vllm_bench()) + "\n") * 2,
    "sglang": json.dumps(made.sglang_bench()) + "\n", "console": made.console(2),
    "vllm console": made.console(1, "vllm"),
    "aiperf": json.dumps(made.perf_json()), "genai": json.dumps(made.perf_json("genai")), "aiperf csv": made.perf_csv(),
    "genai csv": made.perf_csv("genai"), "perf console": made.perf_console(), "records": made.perf_records(),
    "guidellm": json.dumps(made.guidellm(2, True)), "guidellm 1": json.dumps(made.guidellm(1)),
    "guidellm yaml": yaml.safe_dump(made.guidellm()), "guidellm csv": made.guidellm_csv(),
    "guidellm csv 2025": made.guidellm_csv_2025(), "inferencex": json.dumps(made.inferencex()),
    "separated": json.dumps([made.inferencex(True)] * 2), "nccl": made.nccl(), "nccl old": made.nccl("0: ", True),
    "deepep": made.DEEPEP, "vllm log": made.vllm_log(), "vllm 0.11": made.vllm_log("0.11.0", 1, True),
    "v0": made.VLLM_V0, "v0 2025": made.VLLM_V0_2025, "oom": made.vllm_oom("graphs"), "sglang log": made.sglang_log(),
    "sglang 2025": made.sglang_log("2025"), "info": json.dumps(made.SERVER_INFO, indent=4), "sweep": made.SWEEP,
    "own": made.OWN, "server metrics": made.SERVER_METRICS, "lengths": made.ACCEPT_LENGTHS, "llama": made.LLAMA,
}  # fmt: skip


@pytest.mark.parametrize("name", INPUTS)
def test_shown_and_exported(name: str) -> None:
    """Every kind is shown with a file and units, and exported without a value that JSON lacks."""
    for content in (INPUTS[name].encode(), b"\xef\xbb\xbf" + INPUTS[name].encode(), INPUTS[name].encode("utf-16")):
        readings = read(content)
        shown = describe(readings)
        assert shown.count(": ") >= len(readings) and all(line.isprintable() for line in shown.splitlines())
        exported = json.loads(json.dumps(as_json(readings), allow_nan=False))
        assert [e["file"] for e in exported] == [r.file for r in readings]
    runs = [r for r in readings if isinstance(r, RunReading)]
    assert all("tok/s" in describe([r]) for r in runs)


def sound(content: bytes) -> None:
    """Any content gives readings that can be shown, or one printable line."""
    try:
        readings = read(content, "fuzz")
    except InputError as error:
        assert str(error).isprintable() and len(str(error)) <= 1010
        return
    assert readings
    shown = describe(readings)
    assert all(line.isprintable() for line in shown.splitlines())
    json.dumps(as_json(readings), allow_nan=False)


NASTY = st.sampled_from(
    [b"", b"\0", b"\x1b[31m", b"<script>", b"NaN", b"-1", b"1e999", b"9" * 5000, b'"', b"{", b"[[[[", b"\r", b"\n\n",
     b"\xff\xfe", "\u202e".encode(), b"null", b"true", b",,,", b"Infinity", b"-Infinity", b"1.2.3", b"0", b"1e-400"]
)  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(st.sampled_from(sorted(INPUTS)), st.floats(0, 1), st.floats(0, 1), NASTY)
def test_damaged_anywhere(name: str, start: float, end: float, put: bytes) -> None:
    """A piece of any input cut out anywhere, with anything in its place."""
    content = INPUTS[name].encode()
    a, b = sorted((int(start * len(content)), int(end * len(content))))
    sound(content[:a] + put + content[b:])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(INPUTS)), st.data())
def test_numbers_damaged(name: str, data: st.DataObject) -> None:
    """Any number of any input replaced by what no number is."""
    content = INPUTS[name].encode()
    numbers = list(re.finditer(rb"\d+(\.\d+)?", content))
    match = data.draw(st.sampled_from(numbers))
    sound(content[: match.start()] + data.draw(NASTY) + content[match.end() :])


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(INPUTS)), st.sampled_from(sorted(INPUTS)), st.floats(0, 1))
def test_mixed_kinds(first: str, second: str, cut: float) -> None:
    """Two inputs in one file."""
    content = INPUTS[first].encode()
    sound(content[: int(cut * len(content))] + b"\n" + INPUTS[second].encode())


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_noise(content: bytes) -> None:
    """Anything at all."""
    sound(content)


def test_mixed_kinds_are_both_read() -> None:
    """A log with the client's block behind it gives both."""
    kinds = [type(r).__name__ for r in read(made.vllm_log() + made.console(1, "vllm"))]
    assert kinds == ["LogReading", "RunReading"]
    assert len(read(json.dumps(made.vllm_bench()) + "\n" + json.dumps(made.perf_json()))) == 2


# ---- hostile files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["the file is empty"]),
        (b"\n\n  \n", ["only empty lines"]),
        (b"\x1f\x8b\x08\x00abc", ["gzip", "gunzip"]),
        (b"PK\x03\x04abc", ["zip archive"]),
        (b"\x28\xb5\x2f\xfdabc", ["zstd"]),
        (b"PAR1abc", ["Parquet"]),
        (b"\x89PNG\r\n", ["picture"]),
        (b"abc\0def", ["bytes that are no text"]),
        (b"<html><body>404</body></html>", ["web page"]),
        (b"just words", ["text that begins 'just words'"]),
        (b"\x1b[31m<img src=x onerror=alert(1)>\x1b]0;title\x07 \xe2\x80\xae evil", ["web page"]),
        (b'{"completed": 1, "completed": 2, "output_throughput": 3}', ["'completed' stands twice"]),
        (b'{"completed": 1, "output_throughput": -3}', ["output_throughput = -3", "below zero"]),
        (b'{"completed": 1, "output_throughput": 1e300}', ["above 1e+15"]),
        (b'{"completed": 1, "output_throughput": Infinity}', ["output_throughput = inf"]),
        (b'{"completed": 1, "output_throughput": "fast"}', ["'fast'", "must be a number"]),
        (b'{"completed": 1, "output_throughput": [1]}', ["must be a number"]),
        (b'{"completed": true, "output_throughput": 1}', ["completed = True"]),
        (b'{"completed": 1.5, "output_throughput": 1}', ["must be a whole number"]),
        (b'{"completed": 1, "output_throughput": ' + b"9" * 5000 + b"}", ["not valid JSON"]),
        (b'{"completed": 100, "output_thr', ["row 1", "not valid JSON", "cut off"]),
        (b'{"completed": 1, "output_throughput": 1}\n{"comp', ["row 2", "Whole objects before it: 1"]),
        (b"[" * 100_000, ["nested too deep"]),
        (b'{"a":' * 100_000, ["nested too deep"]),
        (b"# HELP vllm:x y\nvllm:x 1\n", ["metrics page"]),
        (b"a: &a {1: 1.5, b: 2}\nb: &b {a: *a, b: *a}\nc: {a: *b, b: *b}\n", []),
        (b"x: " + b"{a: " * 50_000, []),
        (b"[]", ["empty list"]),
        (b"[1, 2]", ["text that begins"]),
        (b"[[1, 2]]", ["is a list"]),
        (b'{"hidden_size": 1, "vocab_size": 2}', ["a model's config.json", "k3 weights"]),
        (b'a,"b,c",d\n1,"2,3",4\n', ["a table with the columns a, b,c, d"]),
        (b'a,"b,c\n1,"2,3",4\n', ["text that begins"]),
        (b'{"benchmarks": []}', ["GuideLLM report without a benchmark"]),
        (b'{"<b>\\u001b[31m\xe2\x80\xae": 1}', ["JSON with"]),
        (b"a: &a [x]\nb: [*a, *a]\n", ["text that begins"]),
        (b"a: " + b"[" * 20_000, []),
        (b"benchmarks:\n- metrics: {x: {successful: {mean: .nan}}}\n", []),
    ],
)
def test_hostile_content(content: bytes, words: list[str]) -> None:
    """Refused with one line that says what it is; nothing of it is shown raw."""
    try:
        message = refusal(content, *words)
    except pytest.fail.Exception:
        assert not words  # these may be read, and then must be sound
        sound(content)
        return
    assert not any(c in message for c in "<>\x1b\u202e\x07"), message


def test_what_is_no_file(tmp_path: Path) -> None:
    """Folders, pipes, devices, sockets, missing and unreadable names are refused, and nothing hangs."""
    os.mkfifo(tmp_path / "pipe")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "socket"))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    cases: list[tuple[str | Path, str]] = [
        (tmp_path, "is a folder"), (tmp_path / "pipe", "pipe or a device"), ("/dev/zero", "pipe or a device"),
        (tmp_path / "socket", "cannot be read"), (tmp_path / "none", "no such file"), (tmp_path / "loop", ""),
        (tmp_path / "a\0b", "cannot be read"), (tmp_path / ("x" * 300), "cannot be read"),
        (tmp_path / "\x1b[31mred\n<b>", "no such file"),
    ]  # fmt: skip
    for path, words in cases:
        with pytest.raises(InputError) as caught:
            recognise(path)
        assert words in str(caught.value) and str(caught.value).isprintable() and "<" not in str(caught.value)
    server.close()
    with pytest.raises(UnknownError):
        read("nothing known")
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(made.SWEEP)
    bad.write_text("?")
    assert len(read_files([good, good])) == 8
    with pytest.raises(InputError, match="bad"):
        read_files([good, bad])


def test_names_are_harmless() -> None:
    """Names from a file are shown without colours, markup or controls, and cut."""
    evil = "\x1b[31m<script>alert(1)</script>\u202e\n\t" + "x" * 1000
    for content in (
        made.vllm_bench(model_id=evil), made.inferencex() | {"model": evil, "hw": evil, "framework": evil},
        made.SERVER_INFO | {"model_path": evil}, made.perf_json() | {"start_time": evil},
    ):  # fmt: skip
        shown = describe(read(content)) + json.dumps(as_json(read(content)), ensure_ascii=False)
        assert not any(c in shown for c in "<>\x1b\u202e") and "x" * 200 not in shown
    log = f"non-default args: {{'model': '<b>{'y' * 100}', 'tensor_parallel_size': __import__('os').system('true')}}\n"
    shown = describe(read(made.vllm_log() + log))
    assert "<b>" not in shown and "__import__" not in shown


MEASURE = """
import re, sys
from pathlib import Path
from k3lib.reading import recognise
log = recognise(sys.argv[1])[0]
most = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())  # of this process alone
print(log.kv_tokens, log.service.lines, most[1])
"""


def grown(path: Path, head: str, body: str, mebibytes: int) -> Path:
    """A file of that size: a head, then a body again and again."""
    block = (body * (2**20 // len(body) + 1)).encode()
    with path.open("wb") as handle:
        handle.write(head.encode())
        for _ in range(mebibytes):
            handle.write(block)
    return path


def test_a_large_log_streams(tmp_path: Path) -> None:
    """Memory does not grow with the log; one line without an end is cut."""
    access = '(APIServer pid=1) INFO:     192.0.2.3:39550 - "GET /metrics HTTP/1.1" 200 OK\n' * 50
    service = made.vllm_log().splitlines(True)[-3]
    path = grown(tmp_path / "log", made.vllm_log(), access + service, 100)
    endless = grown(tmp_path / "endless", made.vllm_log(), "x" * 1000, 20)
    progress = grown(tmp_path / "progress", made.vllm_log(), "\r 42%|████ | 42/100", 2)
    for large in (path, endless, progress):
        done = subprocess.run([sys.executable, "-c", MEASURE, str(large)], capture_output=True, text=True, check=True)
        tokens, service, kibibytes = map(int, done.stdout.split())
        assert tokens == 123_456 and service >= 5
        assert kibibytes < 120 * 2**10, (large.name, kibibytes)


def test_long_tables_and_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table or YAML beyond its limit is refused with the limit; line ends of every kind count as one row."""
    path = grown(tmp_path / "table", made.SWEEP, "1\t4\t100.5\t30.5\t200.5\t20.5\t4300.25\n", 17)
    with pytest.raises(InputError, match="over 16 MiB"):
        recognise(path)
    path = grown(tmp_path / "report", "benchmarks:\n", "- metrics: {}\n", 5)
    with pytest.raises(InputError, match="YAML over 4 MiB"):
        recognise(path)
    refusal("concurrency,output_tps\n" + "1,2\n" * 20_001, "over 20,000 rows")
    monkeypatch.setattr(text, "MOST_READINGS", 3)
    refusal(made.console(4), "over 3 results")
    for end in ("\n", "\r\n"):
        rows = list(text.lines(io.BytesIO(end.join(["a", "b", "", "d"]).encode()), "utf-8"))
        assert rows == [(1, "a"), (2, "b"), (4, "d")]
    assert list(text.lines(io.BytesIO(b"a\rb\nc"), "utf-8")) == [(1, "a"), (1, "b"), (2, "c")]
    out = io.StringIO()
    csv.writer(out).writerow(["x" * 200_000])
    refusal("concurrency,output_tps\n1," + out.getvalue(), "not readable as a table")
