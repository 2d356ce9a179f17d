"""What a network test should print on a cluster, and whether what it printed is good enough to go on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median
from typing import Literal

from k3lib.account import network as eq
from k3lib.account import operate_symbols as o
from k3lib.engines.layout import Cluster
from k3lib.errors import InputError
from k3lib.evaluate import arrays
from k3lib.facts import acceptance as facts
from k3lib.facts.catalog import devices
from k3lib.facts.planned import NIC_GBIT
from k3lib.facts.timings import ExchangeTime, exchange_times
from k3lib.ranges import Range, of_corners, times
from k3lib.reading import nccl
from k3lib.reading.records import ExchangeReading
from k3lib.units import BITS_PER_BYTE, GIGA, MEGA, convert

Word = Literal["pass", "doubtful", "fail", "unknown"]
# As nccl-tests calls its programs, and as data/interconnect.csv calls the exchange.
COLLECTIVES = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
               "alltoall": "all_to_all", "all_to_all": "all_to_all"}  # fmt: skip
LINKS, CARDS = "NVLink", "network cards"


@dataclass(frozen=True)
class Expected:
    """Bus bandwidth, in GB/s of 1e9 B, that a test of so many cards should print for large messages.

    limit: what decides it. kin: whether no card of this kind was measured, so that others stand for it.
    """

    collective: str
    ranks: int
    nodes: int
    busbw_gbs: Range
    limit: str
    kin: bool
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """What a network test says of a cluster. why: in a sentence. checks: what to look at, most likely first."""

    word: Word
    collective: str
    why: str
    measured_gbs: float | None = None
    expected: Expected | None = None
    checks: tuple[str, ...] = ()


def line_gbs(nics: int) -> float:
    """What the network cards of a node carry together, one way."""
    return nics * NIC_GBIT / BITS_PER_BYTE


def nvlink_gbs(device: str) -> float | None:
    """A card's NVLink one way, None where it is not known."""
    row = devices().get((device, "nvlink_unidirectional"))
    return None if row is None else float(convert(row.value, row.unit, "GB/s"))


def _peak(row: ExchangeTime) -> float | None:
    """Bus bandwidth of a measured exchange, None for a message too small to show it."""
    if row.message_bytes and row.message_bytes < facts.parameter("peak_message_inside").range_in("B").high:
        return None
    if row.busbw_gbs:
        return row.busbw_gbs
    if not row.message_bytes or not row.time_us or not row.cards:
        return None
    factor = arrays({"bus": eq.bus_over_rate(row.collective)}, {o.ranks: row.cards})["bus"][0]
    return float(row.message_bytes / row.time_us * MEGA / GIGA * factor)


@lru_cache(maxsize=16)
def inside_share(collective: str) -> tuple[Range, frozenset[str], tuple[str, ...]] | None:
    """Bus bandwidth inside a node of eight over a card's NVLink one way; the cards measured; the sources.

    Above 1 where the switches add up (NVLS). None where nothing was measured.
    """
    found = []
    for row in exchange_times():
        link = nvlink_gbs(row.device)
        wanted = row.use == "yes" and (row.collective, row.nodes, row.cards) == (collective, 1, 8)
        if wanted and link and row.implementation.startswith("nccl") and (at := _peak(row)):
            found.append((at / link, row))
    if not found:
        return None
    shares = [share for share, _ in found]
    behind = tuple(sorted({x for _, row in found for x in row.source_ids}))
    return Range(median(shares), min(shares), max(shares)), frozenset(row.device for _, row in found), behind


@lru_cache(maxsize=16)
def line_share(collective: str) -> tuple[Range, tuple[str, ...]]:
    """Share of a node's lines that exchanges between nodes reached, by the least traffic that they can do with.

    One network card to another, and collectives that NVLink did not limit; for an all-to-all those of tokens as well,
    whose own count of bytes may exceed the line and is then left out.
    """
    found: list[tuple[float, ExchangeTime]] = []
    for row in exchange_times():
        if row.use != "yes" or not row.line_gbs or (row.nodes or 0) < 2:
            continue
        if row.collective == "send_receive" and row.algbw_gbs:
            found.append((row.algbw_gbs / row.line_gbs, row))
        elif row.collective == "all_reduce" and (at := _peak(row)) and row.cards:
            most = row.line_gbs * float(_over(row.cards, row.nodes or 1))
            link, inside = nvlink_gbs(row.device), inside_share("all_reduce")
            if link and inside and most < link * inside[0].value:
                found.append((at / most, row))
        elif collective == "all_to_all" and row.implementation == "deepep_normal" and row.algbw_gbs and row.cards:
            found.append((row.algbw_gbs / (row.line_gbs * (row.nodes or 1) / row.cards), row))
    inside_line = [(share, row) for share, row in found if share <= 1]
    shares = [share for share, _ in inside_line]
    return Range(median(shares), min(shares), max(shares)), tuple(
        sorted({x for _, r in inside_line for x in r.source_ids})
    )


def _over(ranks: int, nodes: int) -> float:
    return float(arrays({"over": eq.counted_over_sent()}, {o.ranks: ranks, o.nodes: nodes})["over"][0])


def _with_spread(measured: Range) -> Range:
    """A range of a few measured servers, whose low end leaves room for others as sound."""
    return replace(measured, low=measured.low * (1 - facts.parameter("server_spread").value))


def expected(collective: str, cluster: Cluster, ranks: int, nodes: int, nics: int) -> Expected | None:
    """What a test should print. None where no card's NVLink, or no such exchange, is known.

    cluster: whose cards and nodes they are. nics: network cards of a node, of 400 Gb/s.
    """
    link, share = nvlink_gbs(cluster.device), inside_share(collective)
    if link is None or share is None:
        return None
    inside, kin = _with_spread(times(share[0], link)), cluster.device not in share[1]
    if nodes == 1:
        return Expected(collective, ranks, 1, inside, LINKS, kin, share[2])
    lines, behind = line_share(collective)
    mb = GIGA / MEGA
    values = {o.line_rate: line_gbs(nics) * mb, o.line_share: lines.corners(), o.ranks: ranks, o.nodes: nodes,
              o.inside_rate: times(inside, mb).corners()}  # fmt: skip
    to_all = collective == "all_to_all"
    expressions = {"best": eq.all_to_all_between_nodes() if to_all else eq.between_nodes()}
    if not to_all:
        expressions["ring"] = eq.ring_between_nodes()
    at = arrays(expressions, values)
    best = of_corners(at["best"] / mb)
    low = best.low if to_all else min(best.low, float(at["ring"][0]) / mb)
    limit = LINKS if best.value >= inside.value else CARDS
    return Expected(collective, ranks, nodes, Range(best.value, low, best.high), limit, kin,
                    tuple(dict.fromkeys((*share[2], *behind))))  # fmt: skip


def verdict(reading: ExchangeReading, cluster: Cluster | None, nics: int | None = None) -> Verdict | None:
    """Whether a run of nccl-tests shows the cluster's network as it should be; None for another kind of test.

    nics: network cards of a node, one for each accelerator if None.
    """
    if reading.kind != nccl.KIND:
        return None
    collective = _collective(reading)
    if nccl.WRONG in reading.warnings:
        return Verdict("fail", collective, "values came out wrong: data is damaged on the way", reading.peak_busbw_gbs,
                       checks=(MEMORY_CHECK, *LINK_CHECKS))  # fmt: skip
    if cluster is None:
        return Verdict("unknown", collective, "for a verdict, name --cluster", reading.peak_busbw_gbs)
    try:
        ranks, nodes = _place(reading, cluster)
    except InputError as error:
        return Verdict("unknown", collective, str(error), reading.peak_busbw_gbs)
    wanted = "peak_message_inside" if nodes == 1 else "peak_message_between"
    least = facts.parameter(wanted)
    largest = max((row.size_bytes or 0 for row in reading.rows), default=0)
    if largest < least.range_in("B").value:
        return Verdict("unknown", collective, f"the largest message has {largest:,} B; the peak shows from "
                       f"{least.value:g} {least.unit} on: run it with -e 8G", reading.peak_busbw_gbs)  # fmt: skip
    found = expected(collective, cluster, ranks, nodes, nics or cluster.cards_per_node)
    if found is None:
        return Verdict("unknown", collective, f"no rate of {collective or 'this exchange'} is known for "
                       f"{cluster.device}", reading.peak_busbw_gbs)  # fmt: skip
    return _judged(found, reading.peak_busbw_gbs or 0.0, nics or cluster.cards_per_node)


def _counted(reading: ExchangeReading) -> float | None:
    """Bus bandwidth over bytes by time in a test's largest message, which tells the cards; None without both."""
    row = max(reading.rows, key=lambda r: r.size_bytes or 0, default=None)
    return row.busbw_gbs / row.algbw_gbs if row and row.busbw_gbs and row.algbw_gbs else None


def _collective(reading: ExchangeReading) -> str:
    """The exchange that a test measured: as it says, or an all-reduce, which alone counts its bytes more than once."""
    name = reading.operation.removesuffix("_perf")
    if not name and (_counted(reading) or 0) > 1:
        return "all_reduce"
    return COLLECTIVES.get(name, name)


def _place(reading: ExchangeReading, cluster: Cluster) -> tuple[int, int]:
    """Cards and nodes of a test, by its list of ranks or by how it counts. Raises InputError for no such cluster."""
    counted = _counted(reading)
    if reading.ranks is None and counted is None:
        raise InputError("the file does not tell how many cards took part")
    share = (counted or 0) / (2 if _collective(reading) == "all_reduce" else 1)
    if reading.ranks is None and not 0 < share < 1:
        raise InputError("the file does not tell how many cards took part")
    ranks = reading.ranks or round(1 / (1 - share))
    nodes = reading.nodes or -(-ranks // cluster.cards_per_node)
    if ranks > cluster.cards or nodes > cluster.nodes or -(-ranks // nodes) > cluster.cards_per_node:
        raise InputError(f"the test ran on {ranks} cards of {nodes} nodes, which {cluster} does not have")
    if ranks < 2:
        raise InputError("the test ran on one card")
    return ranks, nodes


def _judged(found: Expected, measured: float, nics: int) -> Verdict:
    low, high = found.busbw_gbs.low, found.busbw_gbs.high
    where = f"{found.ranks} cards of one node" if found.nodes == 1 else (
        f"{found.ranks} cards on {found.nodes} nodes with {nics} network cards of {NIC_GBIT} Gb/s each")  # fmt: skip
    why = f"{measured:,.4g} GB/s of bus bandwidth; {low:,.0f} to {high:,.0f} are expected of {where}"
    if measured >= low:
        return Verdict("pass", found.collective, why, measured, found)
    below = facts.parameter("doubtful_share").value * low
    word: Word = "doubtful" if measured >= below else "fail"
    if found.nodes > 1:
        worth = measured / found.busbw_gbs.value * nics
        why += f", so it is as if {worth:,.1f} of {nics} network cards worked"
    return Verdict(word, found.collective, why, measured, found, tuple(_checks(found, measured, nics)))


LINK_CHECKS = (
    "nvidia-smi topo -m: every pair of cards of a node shows NV, not PIX, PHB or SYS",
    "nvidia-smi nvlink -s: every link is up at its full rate, and the fabric manager runs",
    "NCCL_P2P_DISABLE and NCCL_NVLS_ENABLE=0 are not set; NCCL_DEBUG=INFO names the algorithm",
)
SOCKETS = ("NCCL_DEBUG=INFO shows NET/IB; NET/Socket means that NCCL_IB_DISABLE is set, or that no network card was "
           "found (ibstat, ibv_devinfo)")  # fmt: skip
NAMES = "NCCL_IB_HCA names every network card of the node, and each accelerator has one on its own PCIe switch"
RATES = "ibstat, or ethtool on RoCE: every port runs at 400 Gb/s; lspci -vv: every card at its full PCIe width"
ROCE = "on RoCE: NCCL_IB_GID_INDEX is that of RoCE v2 (often 3), and switches keep it lossless (PFC, ECN)"
DIRECT = ("nvidia_peermem or DMA-BUF is there, so that data does not pass through main memory; PCIe access control "
          "(ACS) is off")  # fmt: skip
MEMORY_CHECK = "nvidia-smi -q: no uncorrected memory errors; run the test on each node alone to find the one at fault"


def _checks(found: Expected, measured: float, nics: int) -> Iterable[str]:
    """What to look at, by how far the rate lies below the expected one."""
    if found.nodes == 1:
        return LINK_CHECKS
    share = measured / found.busbw_gbs.value
    if share * nics < 1:  # less than a single network card gives
        return (SOCKETS, NAMES, ROCE, DIRECT, RATES)
    if share * nics < nics / 2:
        return (NAMES, RATES, DIRECT, ROCE, SOCKETS)
    return (RATES, DIRECT, NAMES, ROCE)


def commands(cluster: Cluster) -> dict[str, str]:
    """The runs of nccl-tests that a cluster is accepted by, each with the file that `k3 read` then takes."""
    per, hosts = cluster.cards_per_node, ",".join(f"node{n}:{cluster.cards_per_node}" for n in range(cluster.nodes))
    size = "-b 8 -e 8G -f 2 -g 1"
    found = {"inside": f"mpirun -np {per} ./build/all_reduce_perf {size} > inside.txt",
             "inside-all-to-all": f"mpirun -np {per} ./build/alltoall_perf {size} > inside-all-to-all.txt"}  # fmt: skip
    if cluster.nodes > 1:
        start = f"mpirun -np {cluster.cards} -H {hosts} \\\n  -x NCCL_DEBUG=INFO -x NCCL_IB_HCA"
        found["between"] = f"{start} ./build/all_reduce_perf {size} \\\n  > between.txt"
        found["between-all-to-all"] = f"{start} ./build/alltoall_perf {size} \\\n  > between-all-to-all.txt"
    return found


def published() -> list[tuple[ExchangeTime, Verdict]]:
    """Tests between nodes whose network cards are known, each with our verdict; use "no": its reporter complained."""
    found = []
    for row in exchange_times():
        if row.implementation != "nccl" or not row.line_gbs or not row.busbw_gbs or row.collective == "send_receive":
            continue
        cards, nodes = row.cards or 0, row.nodes or 1
        nics = round(row.line_gbs / line_gbs(1))
        wanted = expected(row.collective, Cluster(nodes, cards // nodes, row.device), cards, nodes, nics)
        if wanted:
            found.append((row, _judged(wanted, row.busbw_gbs, nics)))
    return found
