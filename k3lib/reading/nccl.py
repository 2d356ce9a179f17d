"""Output of nccl-tests, old and new, with or without labels in front of its lines; several runs in one text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from k3lib.reading.records import ExchangeReading, ExchangeRow, OtherReading, Reading
from k3lib.reading.text import clean, holds, kept

KIND = "nccl-tests"
# A task label of srun ("0: "), of mpirun ("[1,0]<stdout>:") or of kubectl ("pod-name "), then the sizes.
ROW = re.compile(r"^(?:\[[^\]]{1,40}\](?:<\w+>)?:?\s*|[\w./\-]{1,120}[:\s]\s*)?(\d+)\s+(\d+)\s+([a-z][\w]*)\s+(.+)$")
RANK = re.compile(r"Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s+(.*\S)")
VERSION = re.compile(r"nccl-tests version (\S+)")
LIBRARY = re.compile(r"NCCL version (\d[\w.+\-]*)|nccl-library=(\d+)")
AVERAGE = re.compile(r"Avg bus bandwidth\s*:\s*([\d.]+)")
BOUNDS = re.compile(r"Out of bounds values\s*:\s*(\d+)\s*(OK|FAILED)?")
NAME = re.compile(r"Collective test starting:\s*(\w+)|\b(all_reduce|all_gather|reduce_scatter|alltoall|broadcast"
                  r"|reduce|sendrecv|gather|scatter|hypercube)_perf\b")  # fmt: skip
NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d{1,3})?")
MARKS = ("#wrong", "busbw", "nccl-tests", "Avg bus bandwidth", "minBytes")
LARGE = 0.1  # share of the largest size from which the peak is taken
FAR_BELOW = 0.7
AGREES = 0.1
MOST_ROWS = 10_000
WRONG = "values came out wrong: the figures cannot be trusted"


@dataclass
class _Test:
    """One run while it is read."""

    rows: list[ExchangeRow] = field(default_factory=list)
    ranks: list[tuple[int, str, str]] = field(default_factory=list)
    name: str = ""
    version: str = ""
    library: str = ""
    average: float | None = None
    wrong: int | None = None
    headers: int = 0
    odd: int = 0


@dataclass
class NcclTests:
    """Gathers runs of nccl-tests while lines pass."""

    where: str
    test: _Test = field(default_factory=_Test)
    seen: bool = False
    found: list[Reading] = field(default_factory=list)
    command: str = ""

    def feed(self, row: int, line: str) -> None:
        """One line of the text."""
        if len(line) > 2000:
            return
        if not self.seen and holds(line, MARKS):
            self.seen = True
        if "_perf" in line and (name := NAME.search(line)):
            self.command = name[1] or name[2] or ""
        if not self.seen:
            if "Rank" in line and (rank := RANK.search(line)):
                self._rank(rank)
            return
        if match := ROW.match(line.strip()):
            self._row(match)
        elif "minBytes" in line:
            if self.test.rows:
                self._close()
            self.test.headers += 1
        else:
            self._words(line)

    def _words(self, line: str) -> None:
        test = self.test
        if rank := RANK.search(line):
            if test.rows:
                self._close()
            self._rank(rank)
        elif name := NAME.search(line):
            if test.rows:
                self._close()
            self.test.name = name[1] or name[2] or ""
        elif average := AVERAGE.search(line):
            test.average = float(average[1][:20]) if NUMBER.fullmatch(average[1]) else None
        elif bounds := BOUNDS.search(line):
            test.wrong = int(bounds[1][:12])
        elif version := VERSION.search(line):
            if test.rows:
                self._close()
            self.test.version = clean(version[1], 40)
        if library := LIBRARY.search(line):
            self.test.library = library[1] or _dotted(library[2])

    def _rank(self, match: re.Match[str]) -> None:
        if len(self.test.ranks) < MOST_ROWS:
            self.test.ranks.append((int(match[1][:9]), clean(match[2], 60), clean(match[3], 60)))

    def _row(self, match: re.Match[str]) -> None:
        """A row: size, count, type, operation and root where there are any, then one or two groups of four."""
        tokens = match[4].split()
        while tokens and re.fullmatch(r"[a-z]\w*", tokens[0]):
            tokens.pop(0)
        if len(tokens) in (5, 9):  # the root
            tokens.pop(0)
        if len(tokens) not in (4, 8) or len(match[1]) > 15 or len(self.test.rows) >= MOST_ROWS:
            return
        values = [float(t) if NUMBER.fullmatch(t) else None for t in tokens]
        time, algbw, busbw = values[:3]
        size = int(match[1])
        if time is None or algbw is None or busbw is None or max(time, algbw, busbw) > 1e12:
            self.test.odd += 1
            return
        # A row whose rate is not its size over its time was put together from two lines.
        if time > 0 and algbw >= 1 and abs(size / time / 1e3 - algbw) > AGREES * algbw:
            self.test.odd += 1
            return
        wrong = int(tokens[3]) if tokens[3].isdecimal() and len(tokens[3]) < 16 else None
        self.test.rows.append(
            ExchangeRow("", size, time, algbw, busbw, None, values[6] if len(values) == 8 else None, wrong)
        )

    def _close(self) -> None:
        test, self.test = self.test, _Test()
        self.test.version, self.test.library = test.version, test.library
        name = test.name or self.command
        if not test.rows:
            if test.headers or test.ranks or test.average is not None:
                kept(self.where, self.found, OtherReading(KIND, self.where, _no_rows(test)))
            return
        largest = max(row.size_bytes or 0 for row in test.rows)
        peak = max(row.busbw_gbs or 0.0 for row in test.rows if (row.size_bytes or 0) >= LARGE * largest)
        gpus = sorted({gpu for _, _, gpu in test.ranks})
        # mpirun without MPI in the build starts ranks that do not know of each other: rank 0 twice.
        numbers = [number for number, _, _ in test.ranks]
        warnings, remarks = [], []
        if len(set(numbers)) < len(numbers):
            warnings.append("a rank's number stands twice: separate runs in one text, or built without MPI")
        if test.average is None:
            remarks.append("no average line: the text was cut, or the run did not end")
        elif test.average < FAR_BELOW * peak:
            remarks.append(f"the printed average of {test.average:g} GB/s mixes tiny and huge messages: use the rows")
        if test.wrong or any(row.wrong for row in test.rows):
            warnings.append(WRONG)
        if test.odd:
            remarks.append(f"{test.odd:,} rows passed over: their rate is not their size over their time")
        kept(
            self.where,
            self.found,
            ExchangeReading(
                KIND, self.where, name, test.version, test.library,
                ranks=len(set(numbers)) or None, nodes=len({host for _, host, _ in test.ranks}) or None,
                gpu=" / ".join(gpus[:3]), rows=tuple(test.rows), average_busbw_gbs=test.average,
                peak_busbw_gbs=peak, warnings=tuple(warnings), remarks=tuple(remarks),
            )
        )  # fmt: skip

    def readings(self) -> list[Reading]:
        """Every run of the text."""
        if self.seen:
            self._close()
        return self.found


def _no_rows(test: _Test) -> str:
    text = "a header of nccl-tests and no result rows"
    if test.headers > 1 or len({n for n, _, _ in test.ranks}) < len(test.ranks):
        return f"{text}: separate runs of one process each. Build nccl-tests with MPI=1 and start it with mpirun."
    return f"{text}: the run hung, failed or the text was cut. Run it again with NCCL_DEBUG=INFO."


def _dotted(number: str) -> str:
    """A version number as NCCL codes it: 23102 is 2.31.2."""
    value = int(number[:9])
    return f"{value // 10_000}.{value // 100 % 100}.{value % 100}"
