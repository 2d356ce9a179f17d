"""What happens before the first request, as the book shows it: rows of tables, results, and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from k3lib.calibrate.behind import main_sources
from k3lib.engines.layout import Cluster
from k3lib.facts.acceptance import StorageLoad, storage_loads
from k3lib.operate import acceptance as ac
from k3lib.operate import loading as ld
from k3lib.operate import network as nw
from k3lib.report import alternatives as ra
from k3lib.report.compare import in_range, ranged_text
from k3lib.report.trail import Html, cell
from k3lib.results import Result, record
from k3lib.units import GIGA, KILO, MEGA, number

EXCHANGES = {"all_reduce": "all-reduce", "all_to_all": "all-to-all", "all_gather": "all-gather",
             "reduce_scatter": "reduce-scatter"}  # fmt: skip
KINDS = {"nvme": "drives of the node", "nfs": "file server", "parallel": "parallel file system",
         "memory": "main memory", "unstated": "not stated"}  # fmt: skip
WORDS = {"pass": "pass", "doubtful": "doubtful", "fail": "fail", "unknown": "cannot tell"}


def load_rows(files: ld.Files) -> tuple[list[list[str]], dict[str, Result]]:
    """Load times by where the files lie: rows of a table, and the results by key."""
    rows, kept = [], {}
    for one in ld.load_times(files):
        key = f"storage.load_seconds.{one.key}"
        kept[one.key] = record(key, one.seconds.value, unit="s", grade="derived", low=one.seconds.low,
                               high=one.seconds.high, sources=list(dict.fromkeys(one.sources)))  # fmt: skip
        ahead = "reads ahead" if one.key.endswith("-ahead") else "usual"
        rows.append([one.label, ahead, one.limit, in_range(kept[one.key], ",.1f", "min")])
    return rows, kept


def measured_rows() -> tuple[list[list[str]], int, int]:
    """Measured loads of whole servers beside what the other loads predict; how many lie inside, and of how many."""
    rows, inside, of = [], 0, 0
    for row in storage_loads():
        if row.use == "no":
            continue
        m = record(f"storage.measured.{row.load_id}", row.seconds, unit="s", grade=row.grade,
                   low=row.seconds if row.low is None else row.low, high=row.seconds if row.high is None else row.high,
                   sources=row.source_ids)  # fmt: skip
        at = ld.predicted(row)
        if at:
            inside, of = inside + (at.low <= row.seconds <= at.high), of + 1
        rate = number(ld.per_node(row) * MEGA / GIGA, ".1f") if row.nodes else ra.DASH
        place = f"{row.cards} {row.device.upper()}"
        beside = ranged_text(at, ",.0f") if at else ra.DASH
        rows.append([row.model, place, row.loader, KINDS[row.kind], in_range(m, ",.0f"), rate, beside])
    return rows, inside, of


def per_node_words(names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Of groups of measured loads by name, what a node read if it read all files, and if only its part: two figures."""
    by: dict[str, StorageLoad] = {row.load_id: row for row in storage_loads()}

    def between(rates: list[float]) -> str:
        low, high = (number(x * MEGA / GIGA, ".1f") for x in (min(rates), max(rates)))
        return low if low == high else f"{low} to {high}"

    found = {}
    for group, ids in names.items():
        found[group] = between([ld.per_node(by[i]) for i in ids])
        found[f"{group}-part"] = between([ld.per_node(by[i], 1 / (by[i].nodes or 1)) for i in ids])
    return found


def disk_rows(parts: Mapping[str, tuple[str, int]]) -> list[list[str]]:
    """Drives of a node for some sets of files, by key: what they are, and their bytes."""
    rows = []
    for key, (label, held) in parts.items():
        need = ld.disk(label, held)
        size = ra.plain(f"storage.bytes.{key}", held, "B", ["k3_config"])
        room = record(f"storage.room.{key}", need.bytes_needed.value, unit="B", grade="derived",
                      low=need.bytes_needed.low, high=need.bytes_needed.high, inputs=[size])  # fmt: skip
        known = {"inputs": [size], "sources": ["k3lib_assumed"]}
        few, value, many = (int(x) for x in (need.count.low, need.count.value, need.count.high))
        count = record(f"storage.drives.{key}", value, unit="1", grade="derived", low=few, high=many, **known)
        rows.append([label, cell(size, "TB", ",.2f"), in_range(room, ",.2f", "TB"), in_range(count, "d")])
    return rows


def network_rows(cluster: Cluster, nics: int) -> tuple[list[list[str]], dict[str, Result]]:
    """What tests of a cluster should print: rows of a table, and results by place and exchange."""
    rows: list[list[str]] = []
    kept: dict[str, Result] = {}
    places = [("inside", cluster.cards_per_node, 1)]
    if cluster.nodes > 1:
        places.append(("between", cluster.cards, cluster.nodes))
    for place, ranks, nodes in places:
        for collective, words in EXCHANGES.items():
            found = nw.expected(collective, cluster, ranks, nodes, nics) if ranks > 1 else None
            where = "one node" if nodes == 1 else f"{nodes} nodes"
            if found is None:
                rows.append([words, where, "not known of this card", f"{ranks}", ra.DASH, ra.DASH])
                continue
            at = found.busbw_gbs
            r = record(f"network.{place}.{collective.replace('_', '-')}.busbw", at.value, unit="GB/s", grade="derived",
                       low=at.low, high=at.high, sources=found.sources)  # fmt: skip
            kept[f"{place}.{collective}"] = r
            rows.append([words, where, found.limit, f"{ranks}", in_range(r, ",.0f"), number(at.low, ",.0f")])
    return rows, kept


def published_rows() -> tuple[list[list[str]], int]:
    """Published tests between nodes and the verdict on each; how many agree with those who published them."""
    rows, agree = [], 0
    for row, found in nw.published():
        m = record(f"network.published.{row.exchange_id}", row.busbw_gbs, unit="GB/s", grade=row.grade,
                   low=row.busbw_gbs, high=row.busbw_gbs, sources=row.source_ids)  # fmt: skip
        said = "too low" if row.use == "no" else "as it should be"
        agree += (found.word == "pass") == (row.use == "yes")
        least = number(found.expected.busbw_gbs.low, ",.0f") if found.expected else ra.DASH
        rows.append([EXCHANGES[found.collective], row.link, said, WORDS[found.word], cell(m, "GB/s", ",.0f"), least])
    return rows, agree


STEP_FIGURES = (
    ("output_tps", "tok/s", ",.0f", 1.0),
    ("tpot_ms", "ms", ",.0f", 1.0),
    ("ttft_ms_mean", "s", ",.1f", 1 / KILO),
)


def step_rows(steps: Iterable[tuple[str, str, ac.Step]]) -> list[list[str]]:
    """Steps of the ramp by key and label: how long, and the limits. One without a speed says why."""
    rows = []
    for key, label, one in steps:
        prefix = f"acceptance.{key}.c{one.load.concurrency}"
        clients = f"{one.load.concurrency:,}"
        if one.speed is None or one.asked is None or one.minutes is None:
            ra.told(f"{prefix}.reason", one.reason, ["k3_config"])
            rows.append([label, clients, *([ra.DASH] * 2), "does not fit", ra.DASH, ra.DASH])
            continue
        behind = main_sources(one.asked)
        requests = ra.plain(f"{prefix}.requests", one.requests, "requests", behind)
        minutes = record(f"{prefix}.minutes", one.minutes.value, unit="min", grade="derived", low=one.minutes.low,
                         high=one.minutes.high, sources=behind)  # fmt: skip
        limits = []
        for name, unit, spec, scale in STEP_FIGURES:
            at = getattr(one.speed, name)
            short = "ttft_ms" if name.startswith("ttft") else name
            r = record(f"{prefix}.{short}", at.value, unit="tok/s" if name == "output_tps" else "ms", grade="derived",
                       low=at.low, high=at.high, sources=behind)  # fmt: skip
            end = at.low if name == "output_tps" else at.high
            limits.append(Html(f"{number(end * scale, spec)}<br><small>{cell(r, unit, spec)}</small>"))
        rows.append([label, clients, cell(requests, "requests", ",d"), in_range(minutes, ",.0f"), *limits])
    return rows


def memory_rows(lines: Iterable[ac.MemoryLine], sources: Sequence[str]) -> list[list[str]]:
    """What the log should print, with the range, and the limit."""
    rows = []
    for one in lines:
        key, at = f"acceptance.memory.{one.what.replace(',', '').replace(' ', '-').lower()}", one.expected
        unit = "requests" if one.unit == "1" and "requests" in one.what else one.unit
        r = record(key, at.value, unit=unit, grade="derived", low=at.low, high=at.high, sources=sources)
        spec = ",.1f" if unit in ("GiB", "requests") else ",.0f"
        limit = "as computed" if at.low == at.high else f"at least {number(at.low, spec)}"
        rows.append([f"{one.what}{', GiB' if unit == 'GiB' else ''}", limit, in_range(r, spec)])
    return rows
