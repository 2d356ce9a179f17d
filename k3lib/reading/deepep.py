"""Output of DeepEP's tests: the best tuning lines, the low-latency lines of every rank, the newer elastic form."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from statistics import median

from k3lib.reading.records import ExchangeReading, ExchangeRow, OtherReading, Reading
from k3lib.reading.text import clean, holds

KIND = "DeepEP test"
N = r"(\d{1,9}(?:\.\d{1,9})?)"
BEST = re.compile(
    r"\[tuning\] Best (dispatch|combine)(?: \((\w+)\))?: SMs (\d+), NVL chunk (\d+)(?:, RDMA chunk (\d+))?[:,]\s*(.*)"
)
RDMA, NVL, TAKES = re.compile(N + r" GB/s \(RDMA\)"), re.compile(N + r" GB/s \(NVL\)"), re.compile(r"\bt: " + N + " us")
MOVES = re.compile(N + r" \+ " + N + " us")
BOTH = re.compile(r"Dispatch \+ combine bandwidth: " + N + rf" GB/s, avg_t={N} us, min_t={N} us, max_t={N} us")
ONE = re.compile(r"(Dispatch|Combine) bandwidth: " + N + rf" GB/s, avg_t={N} us")
HOOK = re.compile(r"(Dispatch|Combine) send/recv time: " + N + r" \+ " + N + " us")
OUT, UP, US = re.compile(N + r" GB/s \(SO\)"), re.compile(N + r" GB/s \(SU\)"), re.compile(N + r" us\b")
CONFIG = re.compile(r"\[config\]\s+(.*)")
MARKS = ("[tuning]", "GB/s", "[config]", "[layout]", "[testing]", "send/recv time")
STALL = 5.0
MOST = 4096


@dataclass
class DeepEpTests:
    """Gathers DeepEP's results while lines pass."""

    where: str
    shape: str = ""
    passed: int = 0
    rows: list[ExchangeRow] = field(default_factory=list)
    ranks: dict[str, list[tuple[float, ...]]] = field(default_factory=dict)
    layout: bool = False

    def feed(self, row: int, line: str) -> None:
        """One line of the text."""
        if len(line) > 2000 or not holds(line, MARKS):
            return
        if best := BEST.search(line):
            self._best(best)
        elif config := CONFIG.search(line):
            self.shape = clean(config[1], 120)
        elif "[layout]" in line:
            self.layout = True
        elif "[testing]" in line:
            self.passed += line.count("passed")
        else:
            self._ranks(line)

    def _best(self, match: re.Match[str]) -> None:
        operation, dtype, sms, nvl, rdma, rest = match.groups()
        network, inside, takes, moves = (p.search(rest) for p in (RDMA, NVL, TAKES, MOVES))
        time = float(takes[1]) if takes else float(moves[1]) + float(moves[2]) if moves else None
        settings = f"{sms} SMs, NVL chunk {nvl}" + (f", RDMA chunk {rdma}" if rdma else "")
        if (network or inside) and len(self.rows) < MOST:
            self.rows.append(
                ExchangeRow(
                    f"{operation} {dtype or ''}".strip(), time_us=time,
                    algbw_gbs=float(inside[1]) if inside else None,
                    network_gbs=float(network[1]) if network else None, settings=settings,
                )
            )  # fmt: skip

    def _ranks(self, line: str) -> None:
        found: list[tuple[str, tuple[float, ...]]] = []
        if both := BOTH.search(line):
            found = [("dispatch + combine", tuple(float(g) for g in both.groups()))]
        elif "avg_t=" in line:
            found = [(m[1].lower(), (float(m[2]), float(m[3]))) for m in ONE.finditer(line)]
        elif "send/recv" in line:
            found = [(f"{m[1].lower()} send + receive", (0.0, float(m[2]) + float(m[3]))) for m in HOOK.finditer(line)]
        elif out := OUT.search(line):
            name = re.split(r"[:=|,]", line[: out.start()].rpartition("]")[2])[0]
            up, us = UP.search(line), US.search(line)
            found = [(f"{clean(name, 40)} (scale-out)", (float(out[1]), float(us[1]) if us else 0.0))]
            found += [(f"{clean(name, 40)} (scale-up)", (float(up[1]), 0.0))] if up else []
        for name, values in found:
            kept = self.ranks.setdefault(name, [])
            if len(kept) < MOST and len(self.ranks) <= 64:
                kept.append(values)

    def readings(self) -> list[Reading]:
        """The results of the text; nothing that a failed run's correctness lines could be mistaken for."""
        rows, warnings = list(self.rows), []
        for name, values in self.ranks.items():
            rate, time = median(v[0] for v in values), median(v[1] for v in values)
            rows.append(ExchangeRow(name, time_us=time or None, algbw_gbs=rate or None,
                                    settings=f"median of {len(values)} ranks"))  # fmt: skip
            least = min((v[2] for v in values if len(v) > 2), default=0.0)
            if least and max(v[1] for v in values) > STALL * least:
                warnings.append(f"{name}: the average time is over {STALL:g} times the shortest; one stall spoils it")
        if rows:
            ranks = max((len(v) for v in self.ranks.values()), default=0) or None
            note = "bytes scale with the shape: K3's is not the test's default"
            return [
                ExchangeReading(
                    KIND, self.where, "expert dispatch and combine", ranks=ranks, shape=self.shape, rows=tuple(rows),
                    warnings=tuple(warnings), remarks=(note,),
                )
            ]  # fmt: skip
        if self.passed or (self.shape and self.layout):
            text = (
                f"{self.passed} correctness checks passed and no result line: the run failed before it measured. "
                "Run it again and keep the [tuning] Best lines."
            )
            return [OtherReading(KIND, self.where, text)]
        return []
