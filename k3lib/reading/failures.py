"""Why an engine died: the messages of vLLM, SGLang and PyTorch, and at which stage each stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from k3lib.reading.records import Failure, FailureKind, Stage
from k3lib.reading.text import clean, holds
from k3lib.units import MEBI

LONGEST = 240
GIB_OF = {"KiB": 1 / MEBI, "MiB": 1 / 1024, "GiB": 1.0, "TiB": 1024.0}
SIZE = r"(-?\d{1,9}(?:\.\d{1,9})?)"


@dataclass(frozen=True)
class _Known:
    """A message: how to find it, what it says, its stage (empty: where the log stands), and its sizes in GiB."""

    mark: str
    kind: FailureKind
    stage: Stage | None = None
    sizes: tuple[tuple[str, str], ...] = ()


KNOWN: tuple[_Known, ...] = (
    _Known("is less than desired GPU memory utilization", "refused", "before load",
           (("available_gib", rf"\({SIZE}/[\d.]+ GiB\)"), ("total_gib", rf"/{SIZE} GiB\) on startup"),
            ("needed_gib", rf"utilization \([\d.]+, {SIZE} GiB\)"))),
    _Known("memory capacity is unbalanced", "refused", "before load"),
    _Known("Error in memory profiling", "refused", "profiling"),
    _Known("No available memory for the cache blocks", "refused", "pools"),
    _Known("To serve at least one request with the model", "refused", "pools",
           (("needed_gib", rf"\({SIZE} GiB KV"), ("available_gib", rf"KV cache memory \({SIZE} GiB\)"),
            ("possible_model_len", r"estimated maximum model length is (\d{1,12})"))),
    _Known("is larger than the maximum number of tokens that can be stored in KV cache", "refused", "pools",
           (("possible_model_len", r"stored in KV cache \((\d{1,12})\)"),)),
    _Known("Not enough memory. Please try to increase --mem-fraction-static", "refused", "pools"),
    _Known("Loaded weights leave no GPU memory for the KV cache", "refused", "pools"),
    _Known("Not enough GPU memory for hybrid (mamba", "refused", "pools",
           (("available_gib", rf"total_rest_memory={SIZE} GB"),)),
    _Known("state cache is too small to serve", "refused", "pools"),
    _Known("Prefill out of memory. Try to lower", "out of memory", "service"),
    _Known("Decode out of memory. Try to lower", "out of memory", "service"),
    _Known("alloc_req_slots runs out of memory", "out of memory", "service"),
)  # fmt: skip
CUDA_MARKS = ("out of memory. Tried to allocate", "OutOfMemoryError", "CUDA error: out of memory", "HIP out of memory")
ALLOCATE = re.compile(rf"Tried to allocate {SIZE} ([KMGT]iB)")
CAPACITY = re.compile(rf"total capacity of {SIZE} ([KMGT]iB)(?: of which {SIZE} ([KMGT]iB) is free)?")
EXCEPTION = re.compile(r"(?:^|[\s:\]])((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt))(?::\s*(.*))?$")
# What stands in front of a message: another program's prefix, the process, the level, the date, the file and line.
PREFIX = re.compile(r"^.{0,300}?\[\w[\w.]*\.py:\d+\]\s?|^(?:\(\w[^()]{0,80}\)\s*)+|^\[[^\]]{0,80}\]\s?")
# Errors that only follow from the death of another process.
CONSEQUENCES = ("EngineDeadError", "EOFError", "BrokenPipeError", "CancelledError", "ConnectionResetError",
                "ConnectionRefusedError", "DistBackendError", "DistNetworkError", "KeyboardInterrupt",
                "EngineGenerateError")  # fmt: skip
FOLLOW_TEXT = ("Engine core initialization failed", "WorkerProc initialization failed", "Engine core proc",
               "Engine process failed to start", "remote process exited", "Broken pipe", "cancelled", "root cause in",
               "Failed to recv, got 0 bytes")  # fmt: skip
DEATHS = ("sendBytes failed on SocketImpl", "Failed to check the", "is dead. Please check", "died unexpectedly",
          "NCCL WARN", "Watchdog caught collective operation timeout")  # fmt: skip
LOOKS = ("rror", "xception", "emory", "nterrupt", *DEATHS)
STAGE_FRAMES: tuple[tuple[str, Stage], ...] = (
    ("profile_run", "profiling"),
    ("determine_available_memory", "profiling"),
    ("compile_or_warm_up_model", "graphs"),
    ("capture_model", "graphs"),
    ("cuda_graph_runner", "graphs"),
    ("init_memory_pool", "pools"),
    ("create_weights", "load"),
    ("load_model", "load"),
)


def looks_like_failure(line: str) -> bool:
    """A quick look: whether a line is worth the closer one."""
    return holds(line, LOOKS)


def failure_in(row: int, line: str, stage: Stage) -> Failure | None:
    """The failure that a line tells, None where it tells none. stage: where the log stands."""
    for known in KNOWN:
        if (at := line.find(known.mark)) >= 0:
            sizes: dict[str, Any] = {}
            for name, pattern in known.sizes:
                if match := re.search(pattern, line):
                    sizes[name] = int(match[1]) if name == "possible_model_len" else float(match[1])
            text = clean(line[max(0, line.rfind(": ", 0, at) + 2 if ": " in line[:at] else at) :], LONGEST)
            return Failure(known.kind, known.stage or stage, text.strip("'\" "), row, **sizes)
    if holds(line, CUDA_MARKS):
        return _out_of_memory(row, line, stage)
    message = PREFIX.sub("", line, count=1) if len(line) < 20_000 else line[:2000]
    message = message if not message.startswith(("(", "[")) else PREFIX.sub("", message, count=1)
    if holds(line, DEATHS):
        return Failure("crash", stage, clean(message, LONGEST), row, consequence=True)
    if message[:1].isspace():  # a line of a traceback, not its end
        return None
    if match := EXCEPTION.match(message.rstrip()):
        name, text = match[1].rpartition(".")[2], match[2] or ""
        follows = name in CONSEQUENCES or any(word in text for word in FOLLOW_TEXT)
        return Failure("crash", stage, clean(f"{name}: {text}", LONGEST), row, consequence=follows)
    return None


def _out_of_memory(row: int, line: str, stage: Stage) -> Failure | None:
    asked, capacity = ALLOCATE.search(line), CAPACITY.search(line)
    if not asked and "OutOfMemoryError" in line and "emory" not in line.partition("OutOfMemoryError")[2]:
        return None  # the name alone: an import or a frame
    sizes: dict[str, Any] = {}
    if asked:
        sizes["needed_gib"] = float(asked[1]) * GIB_OF[asked[2]]
    if capacity:
        sizes["total_gib"] = float(capacity[1]) * GIB_OF[capacity[2]]
        if capacity[3]:
            sizes["available_gib"] = float(capacity[3]) * GIB_OF[capacity[4]]
    at = next((i for mark in ("CUDA", "HIP", "OutOfMemoryError") if (i := line.find(mark)) >= 0), 0)
    return Failure("out of memory", stage, clean(line[at:], LONGEST), row, **sizes)


def stage_of_frame(line: str) -> Stage | None:
    """The stage that a traceback's frame names."""
    return next((stage for frame, stage in STAGE_FRAMES if frame in line), None)


def first_failure(old: Failure | None, new: Failure | None) -> Failure | None:
    """The failure to keep: the first that is not a mere consequence; a stated lack of memory beats a crash's name."""
    if new is None or old is None:
        return old or new
    if old.consequence and not new.consequence:
        return new
    if old.kind == "crash" and new.kind != "crash" and new.row - old.row < 200:
        return new
    if old.kind == new.kind == "out of memory" and old.needed_gib is None and new.needed_gib is not None:
        return new
    return old
