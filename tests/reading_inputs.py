"""Test inputs in the formats of the tools. Every figure is invented; only the shape of the text is real."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

TIMES = {"ttft": (500.0, 450.0, 1200.0), "tpot": (20.0, 19.0, 30.0), "itl": (21.0, 18.0, 90.0)}


def times(suffix: str = "_ms", factor: float = 1.0, **more: tuple[float, float, float]) -> dict[str, float]:
    """mean_, median_, p99_ of every time."""
    return {
        f"{statistic}_{name}{suffix}": value * factor
        for name, values in {**TIMES, **more}.items()
        for statistic, value in zip(("mean", "median", "p99"), values, strict=True)
    }


def vllm_bench(**changes: Any) -> dict[str, Any]:
    """A result of `vllm bench serve`, 2026: 100 requests of 1,000 + 200 tokens in 50 s."""
    return {
        "date": "20261101-120000", "endpoint_type": "openai-chat", "backend": "openai-chat", "label": None,
        "model_id": "some/Model", "tokenizer_id": "some/Model", "num_prompts": 100, "request_rate": "inf",
        "burstiness": 1.0, "max_concurrency": 16, "duration": 50.0, "completed": 100, "failed": 0,
        "total_input_tokens": 100_000, "total_output_tokens": 20_000, "request_throughput": 2.0,
        "request_goodput": None, "output_throughput": 400.0, "total_token_throughput": 2400.0,
        "max_output_tokens_per_s": 500.0, "max_concurrent_requests": 20, "rtfx": 0.0, **times(),
        "std_ttft_ms": 10.0, "p99.9_ttft_ms": 1300.0, **changes,
    }  # fmt: skip


def vllm_bench_2024() -> dict[str, Any]:
    """The same with the keys of 2024."""
    new = ("failed", "max_output_tokens_per_s", "max_concurrent_requests", "rtfx", "p99.9_ttft_ms", "label")
    return {k: v for k, v in vllm_bench(date="20240711-080000").items() if k not in new}


def sglang_bench(**changes: Any) -> dict[str, Any]:
    """A line of SGLang's bench_serving, 0.5.23."""
    return {
        "tag": None, "backend": "sglang", "dataset_name": "random", "request_rate": float("inf"),
        "max_concurrency": 16, "sharegpt_output_len": None, "random_input_len": 1000, "random_output_len": 200,
        "random_range_ratio": 1.0,
        "server_info": {"model_path": "some/Model", "tp_size": 8, "dp_size": 1, "version": "0.5.23",
                        "mem_fraction_static": 0.85, "internal_states": [{"tp_size": 8}]},
        "duration": 50.0, "completed": 100, "total_input_tokens": 100_000, "total_output_tokens": 20_000,
        "total_output_tokens_retokenized": 19_900, "request_throughput": 2.0, "input_throughput": 2000.0,
        "output_throughput": 400.0, "total_throughput": 2400.0, **times(),
        "mean_e2e_latency_ms": 4480.0, "median_e2e_latency_ms": 4400.0, "p99_e2e_latency_ms": 6000.0,
        "concurrency": 15.5, "accept_length": None, **changes,
    }  # fmt: skip


def console(blocks: int = 1, tool: str = "sglang", prefix: str = "") -> str:
    """The block that a client prints."""
    labels = {
        "Backend:": "sglang", "Traffic request rate:": "inf", "Max request concurrency:": "16",
        "Successful requests:": "100", "Benchmark duration (s):": "50.00", "Total input tokens:": "100000",
        "Total generated tokens:": "20000", "Total generated tokens (retokenized):": "19900",
        "Request throughput (req/s):": "2.00", "Output token throughput (tok/s):": "400.00",
        "Total token throughput (tok/s):": "2400.00", "Concurrency:": "15.50", "Accept length:": "2.10",
        "Mean E2E Latency (ms):": "4480.00", "Mean TTFT (ms):": "500.00", "Median TTFT (ms):": "450.00",
        "P99 TTFT (ms):": "1200.00", "Mean TPOT (ms):": "20.00", "Mean ITL (ms):": "21.00",
    }  # fmt: skip
    if tool == "vllm":
        only = ("Backend:", "Traffic request rate:", "Max request concurrency:", "Concurrency:", "Accept length:",
                "Total generated tokens (retokenized):", "Mean E2E Latency (ms):")  # fmt: skip
        labels = {k: v for k, v in labels.items() if k not in only}
        labels |= {"Failed requests:": "3", "Maximum request concurrency:": "16", "Mean E2EL (ms):": "4480.00"}
    head = prefix + "============ Serving Benchmark Result ============\n"
    rows = "".join(f"{prefix}{label:<40} {value:<10}\n" for label, value in labels.items())
    return (head + rows + prefix + "=" * 50 + "\n") * blocks


def perf_json(tool: str = "aiperf") -> dict[str, Any]:
    """A summary of AIPerf or GenAI-Perf: 90 good requests and 10 failed ones."""

    def metric(unit: str, avg: float) -> dict[str, Any]:
        low = {"p1": avg / 2, "p5": avg / 2, "p10": avg / 2} if tool == "aiperf" else {}
        return {"unit": unit, "avg": avg, **low, "p25": avg, "p50": avg * 0.9, "p75": avg, "p90": avg * 1.5,
                "p95": avg * 1.8, "p99": avg * 2, "min": avg / 3, "max": avg * 3, "std": 1.0}  # fmt: skip

    data: dict[str, Any] = {
        "request_throughput": {"unit": "requests/sec", "avg": 2.0}, "request_latency": metric("ms", 4480.0),
        "request_count": {"unit": "requests", "avg": 90.0}, "time_to_first_token": metric("ms", 500.0),
        "inter_token_latency": metric("ms", 20.0), "output_token_throughput": {"unit": "tokens/sec", "avg": 400.0},
        "output_token_throughput_per_user": metric("tokens/sec/user", 50.0),
        "output_sequence_length": metric("tokens", 200.0), "input_sequence_length": metric("tokens", 1000.0),
    }  # fmt: skip
    if tool == "aiperf":
        data = {"schema_version": "1.4", "aiperf_version": "0.13.0", **data,
                "inter_chunk_latency": metric("ms", 21.0), "benchmark_duration": {"unit": "sec", "avg": 45.0},
                "error_request_count": {"unit": "requests", "avg": 10.0}, "was_cancelled": False,
                "input_config": {"models": {"items": [{"name": "some/Model"}]},
                                 "phases": [{"kind": "warmup", "concurrency": 1},
                                            {"kind": "profiling", "concurrency": 16}]}}  # fmt: skip
    else:
        data["input_config"] = {"model_names": ["some/Model"], "perf_analyzer": {"stimulus": {"concurrency": 16}}}
    return data


def perf_csv(tool: str = "aiperf") -> str:
    """The CSV of the same, two sections; GenAI-Perf's percentiles fall and its numbers have commas."""
    rising = ["p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99"]
    columns = ["avg", "min", "max", *(["sum", *rising, "std"] if tool == "aiperf" else rising[::-1])]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["Metric", *columns])
    names = {"Time to First Token (ms)": 1234.5, "Inter Token Latency (ms)": 20.0, "Request Latency (ms)": 5234.5,
             "Input Sequence Length (tokens)": 1000.0, "Output Sequence Length (tokens)": 200.0}  # fmt: skip
    for name, value in names.items():
        writer.writerow([name, *[f"{value:,.2f}" for _ in columns]])
    if tool == "aiperf":
        writer.writerow(["Time to First Token (error-adjusted) (ms)", "", *["9.00" for _ in columns[1:]]])
    writer.writerow([])
    writer.writerow(["Metric", "Value"])
    writer.writerow(["Output Token Throughput (tokens/sec)", "400.00"])
    writer.writerow(["Request Count (count)", "90.00"])
    if tool == "aiperf":
        writer.writerow(["Error Request Count", "0"])
        writer.writerow([])
        writer.writerow(["Endpoint", "GPU_Index", "GPU_Name", "Metric", "avg"])
        writer.writerow(["http://x", "0", "Some GPU", "GPU Power (W)", "700.0"])
    return out.getvalue()


def perf_console(tool: str = "GenAI-Perf") -> str:
    """The table that is printed, with a name that is broken over two lines."""
    return f"""
                              NVIDIA {tool} | LLM Metrics
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━┳━━━━━━━━┳━━━━━━━━┓
┃                         {"Statistic" if "Gen" in tool else "   Metric"} ┃      avg ┃    min ┃    max ┃    p99 ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━╇━━━━━━━━╇━━━━━━━━┩
│               Time to First Token │   500.00 │ 100.00 │ 900.00 │ 800.00 │
│                              (ms) │          │        │        │        │
│          Inter token latency (ms) │    20.00 │  10.00 │  40.00 │  35.00 │
│              Request latency (ms) │ 4,480.00 │ 999.00 │ 9,999.00 │ 8,888.00 │
│            Output sequence length │   200.00 │ 200.00 │ 200.00 │ 200.00 │
│             Input sequence length │ 1,000.00 │ 990.00 │ 999.00 │ 999.00 │
│ Output token throughput (per sec) │   400.00 │    N/A │    N/A │    N/A │
└───────────────────────────────────┴──────────┴────────┴────────┴────────┘
"""


def perf_records(profiling: int = 12) -> str:
    """Records of single requests: two of the warm-up, one that failed."""

    def record(index: int, phase: str, error: Any = None) -> str:
        start = 1_700_000_000_000_000_000 + index * 1_000_000_000
        metrics = {
            "time_to_first_token": {"value": 400.0 + index, "unit": "ms"},
            "inter_token_latency": {"value": 20.0, "unit": "ms"},
            "inter_chunk_latency": {"value": [19.0, 21.0], "unit": "ms"},
            "request_latency": {"value": 2.0, "unit": "sec"},
            "input_sequence_length": {"value": 1000, "unit": "tokens"},
            "output_sequence_length": {"value": 80, "unit": "tokens"},
        }  # fmt: skip
        meta = {"benchmark_phase": phase, "request_start_ns": start, "request_end_ns": start + 2_000_000_000,
                "was_cancelled": False}  # fmt: skip
        return json.dumps({"metadata": meta, "metrics": metrics, "error": error})

    rows = [record(0, "warmup"), record(1, "warmup"), record(2, "profiling", {"message": "secret prompt text"})]
    return "\n".join(rows + [record(3 + i, "profiling") for i in range(profiling)]) + "\n"


def distribution(mean: float) -> dict[str, Any]:
    """GuideLLM's figures of one metric."""
    names = ("p001", "p01", "p05", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p999")
    good = {"mean": mean, "median": mean * 0.9, "mode": mean, "variance": 1.0, "std_dev": 1.0, "min": mean / 2,
            "max": mean * 3, "count": 40, "total_sum": mean * 40,
            "percentiles": {n: mean * (0.5 + i / 4) for i, n in enumerate(names)}}  # fmt: skip
    none = {**good, "mean": 0.0, "count": 0, "total_sum": 0.0}
    return {"successful": good, "errored": none, "incomplete": none, "total": {**good, "mean": mean * 7}}


def guidellm(version: int = 2, sweep: bool = False) -> dict[str, Any]:
    """A report of GuideLLM."""
    metrics = {
        "requests_per_second": 2.0, "request_concurrency": 15.5, "request_latency": 4.48, "prompt_token_count": 1000.0,
        "output_token_count": 200.0, "time_to_first_token_ms": 500.0, "time_per_output_token_ms": 22.4,
        "inter_token_latency_ms": 20.0, "prompt_tokens_per_second": 2000.0, "output_tokens_per_second": 400.0,
        "tokens_per_second": 2400.0,
    }  # fmt: skip
    totals = {"successful": 40, "errored": 2, "incomplete": 1, "total": 43}

    def benchmark(strategy: dict[str, Any]) -> dict[str, Any]:
        kind = {("kind" if version == 2 else "type_"): strategy.pop("kind")}
        common = {"metrics": {k: distribution(v) for k, v in metrics.items()}, "duration": 50.0,
                  "requests": {"successful": [{"output": "private text"}]}}  # fmt: skip
        if version == 2:
            common["metrics"]["request_totals"] = totals  # type: ignore[index]
            return {"config": {"strategy": {**kind, **strategy}, "backend": {"model": "some/Model"}}, **common}
        return {"args": {"strategy": {**kind, **strategy}}, "request_totals": {**totals, "_type": "x"},
                "run_stats": {"requests_made": totals}, **common}  # fmt: skip

    kinds: list[dict[str, Any]] = [{"kind": "concurrent", "streams": 16}]
    if sweep:
        kinds = [{"kind": "synchronous"}, {"kind": "throughput"}, {"kind": "constant", "rate": 2.0}]
    top = {"metadata": {"version": version, "guidellm_version": "0.8.1"}} if version == 2 else {}
    return {
        **top,
        "config": {"spec": {"backend": {"model": "some/Model"}}},
        "benchmarks": [benchmark(k) for k in kinds],
    }


def guidellm_csv() -> str:
    """The CSV with three header rows."""
    percentiles = "[1, 1, 1, 1, 1, 1, 2, 3, 4, 1200, 9]"
    columns: list[tuple[str, str, str, Any]] = [
        ("Run Info", "Run ID", "", "x"), ("Run Info", "Backend", "", '{"model": "some/Model"}'),
        ("Benchmark", "Type", "", "generative_benchmark"),
        ("Benchmark", "Strategy", "", "kind='concurrent' streams=16"),
        ("Timings", "Duration", "Sec", 50.0), ("Request Counts", "Successful", "", 40),
        ("Request Counts", "Incomplete", "", 0), ("Request Counts", "Errored", "", 2),
    ]  # fmt: skip
    for group, name, mean in (
        ("Request Latency", "Sec", 4.48), ("Time to First Token", "ms", 500.0), ("Inter Token Latency", "ms", 20.0),
        ("Token Metrics", "Input Tokens", 1000.0), ("Token Metrics", "Output Tokens", 200.0),
        ("Server Throughput", "Concurrency", 15.5), ("Server Throughput", "Output Tokens/Sec", 400.0),
    ):  # fmt: skip
        for status, factor in (("Successful", 1.0), ("Errored", 9.0)):
            for statistic, value in (("Mean", mean * factor), ("Median", mean * 0.9), ("Percentiles", percentiles)):
                columns.append((group, f"{status} {name}", statistic, value))
    out = io.StringIO()
    writer = csv.writer(out)
    for row in range(3):
        writer.writerow([c[row] for c in columns])
    writer.writerow([c[3] for c in columns])
    return out.getvalue()


def guidellm_csv_2025() -> str:
    """The CSV of 2025: one header row of long names."""
    columns = {"Type": "x", "Name": "concurrent@16", "Duration": 50.0, "Successful Requests": 40, "Errored Requests": 2}
    for name, mean in (("Request latency", 4.48), ("Time to first token ms", 500.0), ("Inter token latency ms", 20.0),
                       ("Prompt token count", 1000.0), ("Output token count", 200.0),
                       ("Output tokens per second", 400.0)):  # fmt: skip
        columns[f"Successful {name} mean"] = mean
        columns[f"Successful {name} median"] = mean * 0.9
        columns[f"Successful {name} [min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]"] = str([1.0] * 9 + [1200.0, 1300.0])
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerow(columns.values())
    return out.getvalue()


def inferencex(separated: bool = False) -> dict[str, Any]:
    """An aggregated row of InferenceX: seconds, rates per card, numbers as text in places."""
    seconds = times("", 1 / 1000)
    common = {"hw": "h200", "conc": "16", "image": "some/image:1", "model": "some/Model", "framework": "sglang",
              "precision": "fp4", "spec_decoding": "mtp", "isl": 8192, "osl": "1024", **seconds,
              "mean_intvty": 50.0, "tput_per_gpu": 300.0, "output_tput_per_gpu": 100.0,
              "input_tput_per_gpu": 200.0}  # fmt: skip
    if separated:
        return {**common, "disagg": "true", "num_prefill_gpu": 8, "num_decode_gpu": 24}
    return {**common, "disagg": False, "tp": 8, "pp": 1, "ep": 8, "dp_attention": "false"}


def nccl(prefix: str = "", old: bool = False, end: bool = True, rows: bool = True) -> str:
    """Output of all_reduce_perf on two nodes."""
    text = ["# nccl-tests version 2.20.0 nccl-headers=23102 nccl-library=23102",
            "# Collective test starting: all_reduce_perf"] if not old else []  # fmt: skip
    text += ["# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) validation: 1 graph: 0",
             "# Using devices"]  # fmt: skip
    text += [f"#  Rank {r:2} Group  0 Pid {900 + r} on node-{r // 8} device {r % 8} [0000:04:00] NVIDIA H20"
             for r in range(16)]  # fmt: skip
    text += [
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw "
        "  busbw #wrong"
        if not old
        else "#  size  count  type  redop  time  algbw  busbw  error  time  algbw  busbw"
    ]
    for power in range(10, 34, 2) if rows else ():
        size, time = 2**power, 20 + 2**power / 200e3
        algbw = size / time / 1e3
        busbw = algbw * 15 / 8
        root, wrong = ("", "1e-07") if old else ("-1", "0")
        cell = f"{time:9.2f} {algbw:7.2f} {busbw:7.2f} {wrong:>6}"
        text.append(f"{size:12} {size // 4:12}  float     sum {root:>5} {cell} {cell}")
    if end and rows:
        text += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 80.5"]
    return "".join(f"{prefix}{line}\n" for line in text)


DEEPEP = """[config] num_tokens=4096, hidden=7168, num_topk_groups=2, num_topk=8
[layout] Kernel performance: 0.050 ms
[testing] Running with FP8, with top-k (async=False, previous=False) ... passed
[tuning] Best dispatch (FP8): SMs 24, NVL chunk 8, RDMA chunk 32: 40.5 GB/s (RDMA), 130.5 GB/s (NVL)
[tuning] Best dispatch (BF16): SMs 24, NVL chunk 8, 150.0 + 20.0 us, 41.0 GB/s (RDMA), 131.0 GB/s (NVL)
[tuning] Best combine: SMs 24, NVL chunk 3: 160.00 GB/s (NVL), t: 512.5 us
[rank 0] Dispatch + combine bandwidth: 90.00 GB/s, avg_t=240.00 us, min_t=20.00 us, max_t=900.00 us
[rank 1] Dispatch + combine bandwidth: 92.00 GB/s, avg_t=250.00 us, min_t=210.00 us, max_t=300.00 us
[rank 0] Dispatch bandwidth: 80.00 GB/s, avg_t=90.00 us | Combine bandwidth: 85.00 GB/s, avg_t=160.00 us
[rank 1] Dispatch send/recv time: 15.00 + 5.00 us | Combine send/recv time: 16.00 + 6.00 us
"""


def vllm_log(version: str = "0.33.0", pp: int = 2, colour: bool = False) -> str:
    """A start and some service of vLLM on 8 x pp cards; version decides the wording."""
    at = "INFO 11-01 12:00:00"
    arguments = {"model": "some/Model", "max_model_len": 32768, "tensor_parallel_size": 8, "pipeline_parallel_size": pp,
                 "gpu_memory_utilization": 0.9, "max_num_seqs": 64, "kv_cache_dtype": "fp8",
                 "enable_expert_parallel": True, "moe_backend": "marlin",
                 "speculative_config": {"method": "mtp", "num_speculative_tokens": 3}}  # fmt: skip
    lines = [f"(APIServer pid=1) {at} [api.py:1]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version {version}",
             f"(APIServer pid=1) {at} [api.py:2] non-default args: {arguments}",
             f"(APIServer pid=1) {at} [model.py:3] Using max model len 32768",
             f"(APIServer pid=1) {at} [sched.py:4] Chunked prefill is enabled with max_num_batched_tokens=8192.",
             f"(EngineCore pid=2) {at} [core.py:5] Initializing a V1 LLM engine (v{version}) with config: "
             f"model='some/Model', max_seq_len=32768, tensor_parallel_size=8, pipeline_parallel_size={pp}, "
             "data_parallel_size=1, kv_cache_dtype=fp8, quantization=mxfp4"]  # fmt: skip
    memory = "memory " if version.startswith("0.33") else ""
    for stage in range(pp):
        for rank in (0, 7):
            who = f"(Worker_PP{stage}_TP{rank} pid={10 + stage})" if pp > 1 else f"(Worker_TP{rank} pid=10)"
            lines += [f"{who} {at} [mxfp4.py:6] Using 'MARLIN' Mxfp4 MoE backend.",
                      f"{who} {at} [loader.py:7] Loading weights took {60 + rank}.50 seconds",
                      f"{who} {at} [runner.py:8] Model loading took {70 + stage + rank / 10:.2f} GiB {memory}and 61.0 "
                      "seconds",
                      f"{who} {at} [interface.py:9] Setting attention block size to 768 tokens to ensure that "
                      "attention page size is >= mamba page size.",
                      f"{who} {at} [worker.py:9] Available KV cache memory: {12.5 - stage + rank / 10:.2f} GiB",
                      ]  # fmt: skip
    size = "(EngineCore pid=2) " + at + " [kv.py:10] GPU KV cache size: 123,456 tokens"
    fits = "Maximum concurrency for 32,768 tokens per request: 3.77x"
    lines += [f"{size}, {fits}"] if version.startswith("0.33") else [size, f"(EngineCore pid=2) {at} [kv.py:11] {fits}"]
    progress = "\r".join(f"Capturing CUDA graphs (FULL): {i}%|██ | {i}/100" for i in range(0, 100, 10))
    use = ("Actual usage is 72.50 GiB for consumed memory (weights + non-torch), 2.50 GiB for peak activation"
           if version.startswith("0.33") else
           "Actual usage is 70.00 GiB for weight, 2.50 GiB for peak activation, 2.50 GiB for non-torch memory"
           )  # fmt: skip
    first = "(Worker_PP0_TP0 pid=10)" if pp > 1 else "(Worker_TP0 pid=10)"
    lines += [f"{progress}{first} {at} [runner.py:12] Graph capturing finished in 37 secs, took 1.25 GiB",
              f"{first} {at} [worker.py:13] Free memory on device (94.50/95.58 GiB) on startup. Desired GPU memory "
              f"utilization is (0.9, 86.02 GiB). {use}, and 1.25 GiB for CUDAGraph memory. Replace "
              "gpu_memory_utilization config with `--kv-cache-memory=1` (0.0 GiB) to fit. Current kv cache memory in "
              "use is 12.50 GiB.",
              "(APIServer pid=1) INFO:     Application startup complete."]  # fmt: skip
    for i in range(5):
        lines.append(f"(APIServer pid=1) {at} [loggers.py:14] Engine 000: Avg prompt throughput: {100.0 * i} tokens/s, "
                     f"Avg generation throughput: {40.0 * i} tokens/s, Running: {i} reqs, Waiting: 0 reqs, GPU KV "
                     f"cache usage: {2.0 * i}%, Prefix cache hit rate: 1.0%")  # fmt: skip
    lines.append(f"(APIServer pid=1) {at} [metrics.py:15] SpecDecoding metrics: Mean acceptance length: 2.50, Accepted "
                 "throughput: 9.00 tokens/s")  # fmt: skip
    if colour:
        lines = [f"\x1b[1;36m{line[:16]}\x1b[0;0m{line[16:]}" for line in lines]
    return "\n".join(lines) + "\n"


VLLM_V0 = """INFO 07-11 08:00:00 api_server.py:200] vLLM API server version 0.5.1
INFO 07-11 08:00:00 api_server.py:201] args: Namespace(host=None, model='some/Model', max_model_len=4096, \
tensor_parallel_size=4, pipeline_parallel_size=1, block_size=16, gpu_memory_utilization=0.9, max_num_seqs=256)
INFO 07-11 08:00:01 llm_engine.py:169] Initializing an LLM engine (v0.5.1) with config: model='some/Model', \
tensor_parallel_size=4, pipeline_parallel_size=1
INFO 07-11 08:00:30 model_runner.py:255] Loading model weights took 14.9595 GB
INFO 07-11 08:00:33 distributed_gpu_executor.py:56] # GPU blocks: 2500, # CPU blocks: 2048
INFO 07-11 08:01:00 metrics.py:295] Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 20.5 tokens/s, \
Running: 3 reqs, Swapped: 0 reqs, Pending: 1 reqs, GPU KV cache usage: 12.5%, CPU KV cache usage: 0.0%.
"""
VLLM_V0_2025 = """INFO 02-01 08:00:00 __init__.py:1] Automatically detected platform cuda.
INFO 02-01 08:00:30 model_runner.py:2] Loading model weights took 20.0000 GB
INFO 02-01 08:00:33 worker.py:3] the current vLLM instance can use total_gpu_memory (79.10GiB) x \
gpu_memory_utilization (0.90) = 71.19GiB
INFO 02-01 08:00:33 worker.py:3] model weights take 20.00GiB; non_torch_memory takes 0.50GiB; PyTorch activation peak \
memory takes 1.20GiB; the rest of the memory reserved for KV Cache is 49.49GiB.
INFO 02-01 08:00:34 executor.py:4] # cuda blocks: 10000, # CPU blocks: 2048
INFO 02-01 08:00:34 executor.py:5] Maximum concurrency for 8192 tokens per request: 19.53x
"""
OOM = (
    "CUDA out of memory. Tried to allocate 588.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which 512.00 MiB is "
    "free. Including non-PyTorch memory, this process has 139.20 GiB memory in use. Of the allocated memory 137.20 GiB "
    "is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
)


def vllm_oom(stage: str) -> str:
    """A death of vLLM for want of memory at a stage."""
    who, at = "(Worker_TP0 pid=10)", "ERROR 11-01 12:00:00 [worker.py:1]"
    weights = f"{who} INFO 11-01 12:00:00 [runner.py:8] Model loading took 70.00 GiB memory and 61.0 seconds\n"
    tokens = "(EngineCore pid=2) INFO 11-01 12:00:00 [kv.py:1] GPU KV cache size: 1,234 tokens\n"
    before = {"load": "", "profiling": weights, "graphs": weights + tokens + "Capturing CUDA graphs: 0%\n",
              "service": weights + tokens + "(APIServer pid=1) INFO:     Application startup complete.\n"}  # fmt: skip
    start = "(EngineCore pid=2) INFO 11-01 12:00:00 [core.py:1] Initializing a V1 LLM engine (v0.33.0) with config: \n"
    frames = {
        "load": "create_weights",
        "profiling": "profile_run",
        "graphs": "capture_model",
        "service": "execute_model",
    }
    frame = f'{who} {at}   File "/x/vllm/v1/worker/gpu_worker.py", line 300, in {frames[stage]}\n'
    follows = "(APIServer pid=1) ERROR 11-01 12:00:09 [x.py:1] RuntimeError: Engine core initialization failed.\n"
    return start + before[stage] + frame + f"{who} {at} torch.OutOfMemoryError: {OOM}\n" + follows


def sglang_log(form: str = "0.5.23") -> str:
    """A start and some service of SGLang; hybrid model with a draft in 0.5.23, plain MLA in 2025."""
    if form == "2025":
        lines = ["[2025-05-09 15:00:00] server_args=ServerArgs(model_path='some/Model', tp_size=8, dp_size=8, "
                 "ep_size=1, mem_fraction_static=0.85, context_length=None, max_running_requests=None, "
                 "kv_cache_dtype='auto')",
                 ]  # fmt: skip
        for rank in range(8):
            tag = f"[2025-05-09 15:00:14 DP{rank} TP{rank}]"
            lines += [f"{tag} Load weight begin. avail mem=137.00 GB",
                      f"{tag} Load weight end. type=DeepseekV3ForCausalLM, dtype=torch.bfloat16, avail mem=31.9 GB, "
                      f"mem usage={105 + rank / 10} GB.",
                      f"{tag} KV Cache is allocated. #tokens: 161488, KV size: 10.57 GB",
                      f"{tag} Memory pool end. avail mem=21.23 GB"]  # fmt: skip
        lines += ["[2025-05-09 15:00:20 DP0 TP0] max_total_num_tokens=161488, chunked_prefill_size=8192, "
                  "max_prefill_tokens=16384, max_running_requests=2048, context_len=163840",
                  "[2025-05-09 15:01:00 DP0 TP0] Decode batch. #running-req: 12, #token: 4096, token usage: 0.03, gen "
                  "throughput (token/s): 321.5, #queue-req: 0"]  # fmt: skip
        return "\n".join(lines) + "\n"
    arguments = {"model_path": "some/Model", "tp_size": 8, "pp_size": 2, "dp_size": 1, "ep_size": 8, "nnodes": 2,
                 "mem_fraction_static": 0.87, "context_length": 65536, "kv_cache_dtype": "fp8_e4m3",
                 "max_running_requests": 128, "chunked_prefill_size": 8192, "speculative_algorithm": "DSPARK",
                 }  # fmt: skip
    lines = [f"[2026-11-01 12:00:00] server_args={arguments}"]
    for stage in range(2):
        tag = f"[2026-11-01 12:00:01 PP{stage} TP0 EP0]"
        lines += [f"{tag} Load weight begin. avail mem=93.50 GB",
                  f"{tag} Load weight end. elapsed=100.5 s, type=KimiLinearForCausalLM, quant=mxfp4, avail mem=20.0 "
                  f"GB, mem usage={60 + stage}.25 GB.",
                  f"{tag} Mamba Cache is allocated. max_mamba_cache_size: {400 - stage}, conv_state size: 0.50GB, "
                  "ssm_state size: 7.50GB intermediate_ssm_state_cache size: 1.25GB ",
                  f"{tag} KV Cache VA upper bound. dtype: torch.float8_e4m3fn, #tokens: 999999, KV size: 99.00 GB",
                  f"{tag} Load weight end. elapsed=3.5 s, type=DSparkDraft, avail mem=18.0 GB, mem usage=2.00 GB.",
                  f"{tag} Capture target decode CUDA graph begin. backend=full, bs=[1, 2], avail mem=11.00 GB",
                  f"{tag} Capture target decode CUDA graph end. elapsed=2.5 s, mem usage=0.50 GB, avail mem=10.50 GB.",
                  f"{tag} Capture draft decode CUDA graph end. elapsed=2.5 s, mem usage=0.25 GB, avail mem=10.25 GB.",
                  f"{tag} Post-capture KV sizing: KV cache allocated. dtype: torch.float8_e4m3fn, #tokens: 200000, KV "
                  "size: 5.50 GB, avail mem=4.75 GB"]  # fmt: skip
    lines += ["[2026-11-01 12:00:09 PP0 TP0] max_running_requests is capped to 99 by the mamba state cache "
              "(max_mamba_cache_size=399, 4 state slots per request).",
              "[2026-11-01 12:00:09 PP0 TP0] max_total_num_tokens=200000, chunked_prefill_size=8192, "
              "max_prefill_tokens=16384, max_running_requests=99, context_len=65536, available_gpu_mem=4.75 GB",
              "[2026-11-01 12:00:10] The server is fired up and ready to roll!",
              "[2026-11-01 12:01:00 PP0 TP0] Prefill batch, #new-seq: 1, #new-token: 8192, #cached-token: 0, full "
              "token usage: 0.10, mamba usage: 0.20, #running-req: 3, #queue-req: 5, cuda graph: False, input "
              "throughput "
              "(token/s): 5000.0",
              "[2026-11-01 12:01:01 PP0 TP0] Decode batch, #running-req: 9, #full token: 4096, full token usage: 0.50, "
              "mamba num: 40, mamba usage: 0.80, accept len: 3.10, accept rate: 0.60, cuda graph: True, gen throughput "
              "(token/s): 321.50, #queue-req: 5"]  # fmt: skip
    return "\n".join(lines) + "\n"


SERVER_INFO = {
    "model_path": "some/Model", "tp_size": 16, "pp_size": 1, "dp_size": 1, "ep_size": 1, "nnodes": 2,
    "mem_fraction_static": 0.8, "context_length": None, "chunked_prefill_size": 8192, "kv_cache_dtype": "auto",
    "max_running_requests": None, "status": "ready", "max_total_num_tokens": 326223, "max_req_input_len": 163834,
    "internal_states": [{"model_path": "some/Model", "tp_size": 16, "mem_fraction_static": 0.8}], "version": "0.5.23",
}  # fmt: skip
SWEEP = "concurrency\tnum_prompts\tduration_s\toutput_tok_s\tmean_ttft_ms\tmean_tpot_ms\tmean_e2e_ms\n" + "".join(
    f"{c}\t{4 * c}\t100.5\t{30.5 * c}\t{200 + c}.5\t20.5\t4300.25\n" for c in (1, 2, 4, 8)
)
OWN = (
    "run_id,set_id,use,reason,model,device,cards,layout,engine,isl,osl,concurrency,output_tps,ttft_mean_ms,grade\n"
    "mine-1,mine,fit,,kimi-k3,h20-96,32,\"tp8,pp4\",vllm,1000,200,16,400.5,500,measured\n"
    "mine-2,mine,show,a probe,kimi-k3,h20-96,32,\"tp8,pp4\",vllm,1000,200,1,40.5,400,measured\n"
)  # fmt: skip
SERVER_METRICS = (
    "# AIPerf Server Metrics Export (CSV)\n# schema_version: 1.0\n#\nEndpoint,Type,Metric,Unit,avg,Description\n"
    "127.0.0.1:8000,gauge,vllm:kv_cache_usage_perc,ratio,0.18,KV-cache usage.\n"
)
ACCEPT_LENGTHS = "# reference\nsome-model:\n  thinking_on:\n    1: 1.84\n    2: 2.45\n    3: 2.87\n"
LLAMA = (
    " 1.36 I slot print_timing: id 3 | prompt eval time =   20000.00 ms /   100 tokens (  200.00 ms per token)\n"
    " 1.36 I slot print_timing: id 3 |        eval time =   50000.00 ms /   200 tokens (  250.00 ms per token)\n"
)
