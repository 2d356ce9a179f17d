"""Measured times of single kernels and of single exchanges between cards."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from k3lib.facts.catalog import AsOf, Sourced, checked, sources
from k3lib.facts.paths import DATA
from k3lib.facts.tables import Grade, Identifier, OptionalCount, OptionalNumber, Text, load_rows

KernelKind = Literal[
    "experts", "kda_decode", "kda_prefill", "mla_decode", "mla_prefill", "gqa_prefill", "gemm", "grouped_gemm"
]


class KernelTime(Sourced):
    """One kernel at one size on one card.

    implementation: its name and where it comes from. dtype: of what it reads. model: whose layer it is, if one.
    tokens: rows m of a matrix product, tokens of a prefill, or requests of a decode step. For experts: tokens of the
    whole group, tp and ep the split, routing "balanced" or how skewed. context: cached tokens of each request. heads:
    on this card. n, k: width and depth of a matrix; groups: how many of them in one call, tokens then those of each.
    Either time_us or achieved is given, achieved in achieved_unit where the source itself states it. device: the
    generation in lower case where the source does not name the card. use: "no" where the note says why it is not to be
    relied on.
    """

    kernel: KernelKind
    implementation: Text
    device: Identifier
    dtype: Text
    model: str = ""
    tokens: OptionalCount = None
    context: OptionalCount = None
    heads: OptionalCount = None
    groups: OptionalCount = None
    n: OptionalCount = None
    k: OptionalCount = None
    tp: OptionalCount = None
    ep: OptionalCount = None
    routing: str = ""
    time_us: OptionalNumber = None
    achieved: OptionalNumber = None
    achieved_unit: str = ""
    grade: Grade
    use: Literal["yes", "no"] = "yes"
    as_of: AsOf
    note: str = ""

    @model_validator(mode="after")
    def _sound(self) -> KernelTime:
        if self.time_us is None and self.achieved is None:
            raise ValueError("neither time_us nor achieved is given")
        if self.time_us == 0:
            raise ValueError("time_us 0: must be above 0")
        if self.use == "no" and not self.note:
            raise ValueError("use 'no' needs a reason in the column 'note'")
        return self


class ExchangeTime(Sourced):
    """One exchange between cards: a collective or an all-to-all.

    collective: all_reduce, all_gather, ... implementation: nccl, custom, deepep_low_latency, ... message_bytes: of one
    card; tokens_per_card, hidden, topk: for an all-to-all of tokens. algbw_gbs: bytes over time, busbw_gbs: the same in
    terms of the link, in 1e9 B/s. line_gbs: what all network cards of a node carry one way, where it is known.
    """

    exchange_id: Identifier
    collective: Identifier
    implementation: Text
    device: Identifier
    cards: OptionalCount = None
    nodes: OptionalCount = None
    link: Text
    message_bytes: OptionalCount = None
    tokens_per_card: OptionalCount = None
    hidden: OptionalCount = None
    topk: OptionalCount = None
    time_us: OptionalNumber = None
    algbw_gbs: OptionalNumber = None
    busbw_gbs: OptionalNumber = None
    line_gbs: OptionalNumber = None
    grade: Grade
    use: Literal["yes", "no"] = "yes"
    as_of: AsOf
    note: str = ""

    @model_validator(mode="after")
    def _sound(self) -> ExchangeTime:
        if self.time_us is None and self.algbw_gbs is None and self.busbw_gbs is None:
            raise ValueError("none of time_us, algbw_gbs, busbw_gbs is given")
        if self.use == "no" and not self.note:
            raise ValueError("use 'no' needs a reason in the column 'note'")
        return self


@lru_cache(maxsize=8)
def kernel_times(data: Path = DATA) -> tuple[KernelTime, ...]:
    """All kernel times, in the order of the table."""
    path = data / "kernels.csv"
    key = ["kernel", "implementation", "device", "dtype", "model", "tokens", "context", "heads", "groups", "n", "k",
           "tp", "ep", "routing"]  # fmt: skip
    return checked(path, load_rows(path, KernelTime, key), sources(data))


@lru_cache(maxsize=8)
def exchange_times(data: Path = DATA) -> tuple[ExchangeTime, ...]:
    """All exchanges between cards, in the order of the table."""
    path = data / "interconnect.csv"
    return checked(path, load_rows(path, ExchangeTime, ["exchange_id"]), sources(data))
