"""The result block that the clients of vLLM and SGLang print, any number of them in a text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from k3lib.reading.bench_json import SGLANG, VLLM, bench_run
from k3lib.reading.records import Reading
from k3lib.reading.text import clean, holds, kept

# Label of the block -> key of the same client's JSON.
LABELS: dict[str, str] = {
    "backend": "backend",
    "traffic request rate": "request_rate",
    "request rate configured (rps)": "request_rate",
    "max request concurrency": "max_concurrency",
    "max reqeuest concurrency": "max_concurrency",  # as SGLang spelled it in 2024 and 2025
    "maximum request concurrency": "max_concurrency",
    "successful requests": "completed",
    "failed requests": "failed",
    "benchmark duration (s)": "duration",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "total generated tokens (retokenized)": "total_output_tokens_retokenized",
    "input token throughput (tok/s)": "input_throughput",
    "output token throughput (tok/s)": "output_throughput",
    "total token throughput (tok/s)": "total_token_throughput",
    "peak concurrent requests": "max_concurrent_requests",
    "concurrency": "concurrency",
    "accept length": "accept_length",
    "acceptance length": "spec_decode_acceptance_length",
}
for _metric, _short in {"E2E Latency": "e2e_latency", "E2EL": "e2el", "TTFT": "ttft", "TPOT": "tpot",
                      "ITL": "itl"}.items():  # fmt: skip
    for _statistic in ("Mean", "Median", "P99"):
        LABELS[f"{_statistic} {_metric} (ms)".lower()] = f"{_statistic}_{_short}_ms".lower()
LONGEST_FIRST = sorted(LABELS, key=len, reverse=True)
SHORT = 13  # such a label may be the end of a longer one
VALUE = re.compile(r"inf|None|[\d.,]{1,30}|[a-z][\w\-]{1,30}")
LONGEST = 400
FIRST = ("backend", "completed")  # a block begins with one of these
ONLY_SGLANG = ("mean_e2e_latency_ms", "total_output_tokens_retokenized", "concurrency", "accept_length")
SETTING = re.compile(
    r"\b(model|dataset_name|num_prompts|max_concurrency|random_input_len|random_output_len|random_range_ratio"
    r"|isl|osl|conc)=['\"]?([\w./:\-]+)"
)
SETTINGS = ("isl=", "osl=", "conc=", "num_prompts=", "max_concurrency=", "dataset_name=")
SETTINGS_KEPT = 40
HEADING = re.compile(r"^\s*(?:#{3,}|-{3,}|={3,})\s*(\S.*?)\s*(?:#*|-*|=*)\s*$")
SECTION = re.compile(r"serving benchmark result|time to first token|time per output|inter-token|end-to-end|speculative",
                     re.IGNORECASE)  # fmt: skip


def _key(head: str, value: str) -> str:
    """The JSON key of a label, whatever another program wrote in front of it; empty for any other line."""
    if not VALUE.fullmatch(value):
        return ""
    label = head.strip().lower()
    if label in LABELS:
        return LABELS[label]
    for name in LONGEST_FIRST:
        if label.endswith(name):
            before = label.removesuffix(name).rstrip()
            return LABELS[name] if len(name) > SHORT or not before[-1:].isalnum() else ""
    return ""


@dataclass
class ConsoleBlocks:
    """Gathers result blocks while lines pass."""

    where: str
    block: dict[str, str] = field(default_factory=dict)
    row: int = 0
    headings: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    found: list[Reading] = field(default_factory=list)

    def feed(self, row: int, line: str) -> None:
        """One line of the text."""
        if len(line) > LONGEST:
            if "Namespace(" in line[:200]:
                self._set(line[:20_000])
            return
        head, colon, value = line.rpartition(":")
        if colon and (key := _key(head, value.strip())):
            if key in self.block or (key in FIRST and "duration" in self.block):
                self._close()
            self.row = self.row or row
            self.block[key] = value.strip()
            return
        if "=" in line and not self.block and holds(line, SETTINGS):
            self._set(line)
        heading = HEADING.match(line) if line[:5].strip()[:1] in ("#", "-", "=") else None
        if heading and not SECTION.search(line):
            self._close()
            if not any(c.isalnum() for c in heading[1]):
                return
            level = 0 if line.lstrip().startswith("#") else 1
            self.headings = [*self.headings[:level], clean(heading[1], 80)]

    def _set(self, line: str) -> None:
        for name, value in SETTING.findall(line)[:SETTINGS_KEPT]:
            self.settings[name] = value

    def _close(self) -> None:
        """End the block that is open; one without rates and times is no block."""
        block, row = self.block, self.row
        self.block, self.row = {}, 0
        if "completed" not in block or not any(k.endswith(("_throughput", "_ms")) for k in block):
            return
        sglang = any(key in block for key in ONLY_SGLANG) or "sglang" in block.get("backend", "")
        kind = SGLANG if sglang else VLLM
        data: dict[str, Any] = {**block}
        told = self.settings
        data.setdefault("max_concurrency", told.get("max_concurrency") or told.get("conc"))
        for name in ("model", "dataset_name", "num_prompts", "random_range_ratio", "random_input_len"):
            if name in told:
                data.setdefault(name, told[name])
        if data["max_concurrency"] in ("None", "not", None):
            data["max_concurrency"] = None
        run = bench_run(self.where, f"row {row}", kind, data)
        more: dict[str, Any] = {"kind": kind.replace("JSON", "console"), "deployment": " / ".join(self.headings)}
        nominal = {"isl": ("isl", "random_input_len"), "osl": ("osl", "random_output_len")}
        for name, keys in nominal.items():
            text = next((told[k] for k in keys if k in told), "")
            if getattr(run, name) is None and re.fullmatch(r"[1-9][0-9]{0,8}", text):
                more[name] = float(text)
        if "isl" in more or "osl" in more:
            more["remarks"] = (*run.remarks, "lengths as asked for above the block, not as counted")
        kept(self.where, self.found, replace(run, **more))

    def readings(self) -> list[Reading]:
        """Every block of the text."""
        self._close()
        return self.found
