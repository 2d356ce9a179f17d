"""How long a node takes to load its weights, by where the files lie, and the drives that they need.

Every node is taken to read all files: with that the measured loads of two nodes agree with those of one (`per_node`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import sympy as sp

from k3lib.account import loading as eq
from k3lib.account import operate_symbols as o
from k3lib.account import symbols as s
from k3lib.evaluate import arrays
from k3lib.facts import acceptance as facts
from k3lib.facts import variants
from k3lib.facts.acceptance import StorageKind, StorageLoad
from k3lib.ranges import Range, of_corners, point
from k3lib.units import MEGA

# Loaders that read a file as its pages are asked for, and those that read ahead.
USUAL = ("vllm", "safetensors")
AHEAD = ("fastsafetensors", "runai streamer", "runai streamer, distributed", "instanttensor")
COLD: tuple[StorageKind, ...] = ("nvme", "parallel", "unstated")
DRIVES = (1, 2, 4, 8)
LEAST_CARDS = 4  # of a node whose load is like that of a server with all its cards


@dataclass(frozen=True)
class LoadTime:
    """Seconds until every card of a node has its weights. limit: the path that decides at the values."""

    key: str
    label: str
    seconds: Range
    limit: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Files:
    """What is loaded. checkpoint_bytes: all files; card_bytes: weights of the fullest card; nodes of the plan."""

    checkpoint_bytes: int
    card_bytes: float
    nodes: int


def per_node(row: StorageLoad, share: float = 1.0) -> float:
    """What a node of a measured load read, in MB/s, if it read that share of all files."""
    return row.checkpoint_bytes * share / row.seconds / MEGA


def _rows(kinds: Sequence[StorageKind], loaders: Sequence[str], without: str) -> list[StorageLoad]:
    return [r for r in facts.storage_loads() if r.use == "yes" and r.kind in kinds and r.loader in loaders and r.nodes
            and r.load_id != without and r.cards >= LEAST_CARDS * r.nodes]  # fmt: skip


def _range(rates: Iterable[float]) -> Range:
    known = list(rates)
    return Range(median(known), min(known), max(known))


def reader_rate(loaders: Sequence[str], kinds: Sequence[StorageKind], without: str = "") -> tuple[Range, list[str]]:
    """What a node's loader reached, in MB/s, with its sources. without: a load that is left out."""
    rows = _rows(kinds, loaders, without)
    return _range(per_node(r) for r in rows), sorted({x for r in rows for x in r.source_ids})


def server_rate(without: str = "") -> tuple[Range, list[str]]:
    """What file servers gave to all nodes together, in MB/s, with the sources."""
    rows = [r for r in facts.storage_loads() if r.use == "yes" and r.kind == "nfs" and r.nodes and r.load_id != without]
    return _range(per_node(r) * (r.nodes or 1) for r in rows), sorted({x for r in rows for x in r.source_ids})


NAMES = {o.drive_rate: "drives", o.shared_rate: "file system", o.reader_rate: "loader", s.link_rate: "links"}


def _time(expression: sp.Expr, files: Files, rates: dict[sp.Symbol, Range]) -> tuple[Range, str]:
    """Seconds with their range, and which of the rates decides."""
    known = {**rates, s.link_rate: variants.parameter("link_rate").range_in("MB/s")}
    sizes = {o.checkpoint_bytes: files.checkpoint_bytes, o.card_bytes: files.card_bytes, o.nodes: files.nodes}
    values = {**sizes, **{symbol: rate.corners(falling=True) for symbol, rate in known.items()}}
    used = {symbol: value for symbol, value in values.items() if symbol in expression.free_symbols}
    seconds = of_corners(arrays({"us": expression}, used)["us"] / MEGA)
    middle = {**sizes, **{symbol: rate.value for symbol, rate in known.items()}}
    limit = max(expression.args, key=lambda path: float(path.subs(middle)))
    return seconds, next(word for symbol, word in NAMES.items() if symbol in limit.free_symbols)


def from_drives(files: Files, drives: int, loaders: Sequence[str] = USUAL, without: str = "") -> LoadTime:
    """Files on the node's own drives, spread evenly over them."""
    drive = facts.parameter("drive_rate")
    rate, behind = reader_rate(loaders, COLD, without)
    one = drive.range_in("MB/s")
    rates = {o.drive_rate: one, o.drives: point(drives), o.reader_rate: rate}
    seconds, limit = _time(eq.from_drives_us(), files, rates)
    ahead = "" if loaders == USUAL else "-ahead"
    label = f"{drives} NVMe drive{'s' if drives > 1 else ''} of the node"
    return LoadTime(f"nvme-{drives}{ahead}", label, seconds, limit, (*drive.source_ids, *behind))


def from_server(files: Files, without: str = "") -> LoadTime:
    """Files on one file server that all nodes read at once."""
    shared, behind = server_rate(without)
    reader, more = reader_rate(USUAL, COLD)
    seconds, limit = _time(eq.from_file_system_us(), files, {o.shared_rate: shared, o.reader_rate: reader})
    return LoadTime("nfs", "one file server for all nodes", seconds, limit, (*behind, *more))


def from_parallel(files: Files, loaders: Sequence[str] = USUAL, without: str = "") -> LoadTime:
    """Files on a parallel file system of the measured rate, shared by all nodes."""
    line = facts.parameter("file_system_line")
    reader, behind = reader_rate(loaders, COLD, without)
    rates = {o.shared_rate: line.range_in("MB/s"), o.reader_rate: reader}
    seconds, limit = _time(eq.from_file_system_us(), files, rates)
    ahead = "" if loaders == USUAL else "-ahead"
    label = f"a parallel file system of {line.value:g} {line.unit}"
    return LoadTime(f"parallel{ahead}", label, seconds, limit, (*line.source_ids, *behind))


def from_memory(files: Files, without: str = "") -> LoadTime:
    """Files in the page cache of the node, read a second time."""
    reader, behind = reader_rate(USUAL, ("memory",), without)
    seconds, limit = _time(eq.from_memory_us(), files, {o.reader_rate: reader})
    return LoadTime("memory", "page cache, warm", seconds, limit, tuple(behind))


def load_times(files: Files) -> list[LoadTime]:
    """Every way that the book shows, the usual loader first and then one that reads ahead."""
    usual = [*(from_drives(files, n) for n in DRIVES), from_parallel(files), from_server(files), from_memory(files)]
    return [*usual, *(from_drives(files, n, AHEAD) for n in DRIVES), from_parallel(files, AHEAD)]


def predicted(row: StorageLoad) -> Range | None:
    """A measured load as the other loads predict it, in s; None for one of unknown kind or that is not used.

    The number of drives is not known of any: from one to the most that are shown.
    """
    if row.use == "no" or not row.nodes:
        return None
    files = Files(row.checkpoint_bytes, row.checkpoint_bytes / row.cards, row.nodes)
    loaders = USUAL if row.loader in USUAL else AHEAD
    if row.kind == "memory" and row.loader in USUAL:
        return from_memory(files, row.load_id).seconds
    if row.kind == "nfs":
        return from_server(files, row.load_id).seconds
    if row.kind == "parallel":
        return from_parallel(files, loaders, row.load_id).seconds
    if row.kind == "nvme":
        few, many = (from_drives(files, n, loaders, row.load_id).seconds for n in (DRIVES[0], DRIVES[-1]))
        return Range(few.value, many.low, few.high)
    return None


@dataclass(frozen=True)
class Disk:
    """Drives of one node for some files. bytes_held: of the files; bytes_needed: with room; count: drives."""

    label: str
    bytes_held: int
    bytes_needed: Range
    count: Range


def disk(label: str, held: int) -> Disk:
    """What drives a node needs for so many bytes of files."""
    share, size = facts.parameter("fill_share"), facts.parameter("drive_capacity").range_in("B")
    corners = {o.checkpoint_bytes: held, o.versions: 1, o.fill_share: share.range_in("1").corners(falling=True)}
    needed = of_corners(arrays({"bytes": eq.disk_bytes()}, corners)["bytes"])
    count = Range(math.ceil(needed.value / size.value), math.ceil(needed.low / size.high),
                  math.ceil(needed.high / size.low))  # fmt: skip
    return Disk(label, held, needed, count)
