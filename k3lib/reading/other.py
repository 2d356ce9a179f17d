"""Texts that are known without being a run of an engine to compare: llama.cpp's timings, tables of accept lengths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from k3lib.errors import InputError
from k3lib.reading import guidellm, perf
from k3lib.reading.records import OtherReading, Reading
from k3lib.reading.text import clean, holds

LARGEST_YAML = 4 * 2**20  # of a report; its reader is slow
LARGEST_LENGTHS = 2**18  # of a table of accept lengths
MOST_ENTRIES = 5_000
REPORT_KEYS = ("metadata:", "config:", "args:", "benchmarks:", "conclusions:", "type_:", "kind:")
YAML_KEY = re.compile(r"^['\"]?[\w.\-/]{1,80}['\"]?:(\s|$)")
LLAMA = re.compile(r"(prompt eval time|\beval time)\s*=\s*(\d{1,12}(?:\.\d{1,6})?) ms /\s*(\d{1,12}) (?:tokens|runs)")
BARS = ("┃", "│", "|")
CELLS = re.compile(r"[┃│|]")


@dataclass
class LlamaTimings:
    """Gathers llama.cpp's timing lines while lines pass."""

    where: str
    tokens: dict[str, int] = field(default_factory=dict)
    ms: dict[str, float] = field(default_factory=dict)

    def feed(self, row: int, line: str) -> None:
        """One line of the log."""
        if "eval time" in line and len(line) < 2000 and (match := LLAMA.search(line)):
            name = "prompt" if match[1].startswith("prompt") else "generation"
            self.tokens[name] = self.tokens.get(name, 0) + int(match[3])
            self.ms[name] = self.ms.get(name, 0.0) + float(match[2])

    def readings(self) -> list[Reading]:
        """The rates over all lines."""
        rates = {f"{n}_tps": self.tokens[n] * 1000 / self.ms[n] for n in self.tokens if self.ms[n] > 0}
        if not rates:
            return []
        shown = ", ".join(f"{name.removesuffix('_tps')} {value:.4g} tok/s" for name, value in rates.items())
        return [OtherReading("llama.cpp timings", self.where,
                             f"{shown}; llama.cpp is not an engine that is predicted", rates)]  # fmt: skip


@dataclass
class PerfTables:
    """Gathers the console tables of GenAI-Perf and AIPerf while lines pass."""

    where: str
    title: str = ""
    rows: list[list[str]] = field(default_factory=list)
    found: list[Reading] = field(default_factory=list)

    def feed(self, row: int, line: str) -> None:
        """One line of the text."""
        if ("GenAI-Perf" in line or "AIPerf" in line) and "Metrics" in line:
            self._close()
            self.title = perf.GENAI_PERF if "GenAI" in line else perf.AIPERF
        if len(line) > 600 or not holds(line, BARS):
            return
        cells = [cell.strip() for cell in CELLS.split(line.strip().strip("┃│|"))]
        if len(cells) > 2 and cells[0] in ("Statistic", "Metric") and "avg" in cells:
            self._close(keep=True)
            self.rows = [cells]
        elif self.rows and len(cells) == len(self.rows[0]):
            if any(cells[1:]):
                self.rows.append(cells)
            elif len(self.rows) > 1 and cells[0]:  # a long name goes on in the next line
                self.rows[-1][0] += " " + cells[0]

    def _close(self, keep: bool = False) -> None:
        rows, self.rows = self.rows, []
        title, self.title = self.title, self.title if keep else ""
        if len(rows) > 1 and any("irst" in row[0] and "oken" in row[0] for row in rows[1:]):
            self.found.append(perf.table_run(self.where, "", f"{title or perf.GENAI_PERF} console", [rows]))

    def readings(self) -> list[Reading]:
        """Every table of the text."""
        self._close()
        return self.found


def is_yaml(where: str, head: list[str], size: int) -> bool:
    """Whether the first lines with content are YAML of a known kind. Raises InputError for a report over the limit."""
    content = [line for line in head if line.strip() and not line.lstrip().startswith(("#", "---"))]
    if not content or not YAML_KEY.match(content[0]):
        return False
    if not content[0].startswith(REPORT_KEYS):
        return size <= LARGEST_LENGTHS
    if size > LARGEST_YAML:
        raise InputError(f"{where}: YAML over {LARGEST_YAML // 2**20} MiB is not read. Save the report as JSON.")
    return True


def yaml_readings(where: str, text: str) -> list[Reading]:
    """A GuideLLM report or a table of accept lengths in YAML. Empty for any other YAML."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data = yaml.load(text, Loader=loader)  # noqa: S506  # either is a safe loader
    except RecursionError:
        raise InputError(f"{where}: nested too deep to be a result") from None
    except (yaml.YAMLError, ValueError):
        return []
    if not isinstance(data, Mapping):
        return []
    if guidellm.is_report(data):
        return list(guidellm.report_runs(where, data, "YAML"))
    lengths = _lengths(data, [MOST_ENTRIES])
    if lengths:
        return [OtherReading("accept-length table", where, "measured tokens a step by number of draft tokens; a table "
                             "for speculation, and no run", lengths)]  # fmt: skip
    return []


def _lengths(data: Mapping[Any, Any], left: list[int], prefix: str = "", depth: int = 4) -> dict[str, float]:
    """Accept lengths by number of draft tokens at any depth; left: entries that may still be looked at (YAML's aliases
    can make few lines stand for endless ones)."""
    found: dict[str, float] = {}
    for key, value in data.items():
        left[0] -= 1
        if left[0] < 0:
            break
        name = f"{prefix}{clean(key, 40)}"
        if isinstance(value, Mapping) and depth:
            found |= _lengths(value, left, f"{name} ", depth - 1)
        elif isinstance(key, int) and isinstance(value, float) and 1 <= value <= key + 1:
            found[name] = value
    return found
