"""Calling a service: prices of hosts, and what a workload costs there by the token and by the month."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.cost.bill import item_input, worst
from k3lib.cost.choice import as_range
from k3lib.errors import InputError, NoPriceError, near
from k3lib.evaluate import arrays
from k3lib.facts.prices import Price, price, prices
from k3lib.facts.tables import Grade
from k3lib.facts.workloads import Workload
from k3lib.ranges import Range, of_corners, point, times

PARTS = {"input": m.api_input, "cached": m.api_cached, "output": m.api_output}
SHARE = "share"  # of a host that asks a part of the maker's list price
MAKER = "moonshot"
FX, BATCH = "fx.cny_per_usd", "api.batch.share"


@dataclass(frozen=True)
class Mix:
    """Tokens of a mean request. new: of the prompt, computed; cached: of the prompt, served by a cache; answer:
    generated, thinking included. requests: of one user in a month, None where there are no users.
    """

    name: str
    new: float
    cached: float
    answer: float
    requests: Range | None = None

    @property
    def values(self) -> dict[sp.Symbol, float]:
        """The symbols of k3lib.account.costs."""
        return {m.prompt_new: self.new, m.prompt_cached: self.cached, m.answer_tokens: self.answer}


def mix_of(workload: Workload) -> Mix:
    """The mix of a workload's requests."""
    return Mix(workload.workload_id, workload.uncached, workload.cached, workload.osl, workload.user_month)


@dataclass(frozen=True)
class Offer:
    """A host's price of a model in CNY/Mtok. cached is that of input where the host lists none of its own.

    parts: the rows of data/prices.csv behind it; share: of the maker's list, where the host asks a part of it.
    """

    model: str
    host: str
    input: Range
    cached: Range
    output: Range
    parts: Mapping[str, Price]
    share: Price | None
    region: str
    grade: Grade
    sources: tuple[str, ...]

    @property
    def name(self) -> str:
        """Model and host."""
        return f"{self.model}@{self.host}"

    @property
    def cache_listed(self) -> bool:
        """Whether the host lists a price of cached input."""
        return "cached" in self.parts

    @property
    def items(self) -> tuple[str, ...]:
        """Its items of data/prices.csv."""
        rows = (*self.parts.values(), *([self.share] if self.share else []))
        return tuple(row.item_id for row in rows)


def _listed(table: Mapping[str, Price]) -> dict[tuple[str, str], dict[str, Price]]:
    """Parts of prices by model and host."""
    found: dict[tuple[str, str], dict[str, Price]] = {}
    for item_id, row in table.items():
        api, _, rest = item_id.partition(".")
        model, _, host_part = rest.partition(".")
        host, _, part = host_part.partition(".")
        if api == "api" and part in (*PARTS, SHARE):
            found.setdefault((model, host), {})[part] = row
    return found


def offers(table: Mapping[str, Price] | None = None, cny_per_usd: float | Range | None = None) -> dict[str, Offer]:
    """Every host's price of every model, by 'MODEL@HOST', in the order of data/prices.csv.

    cny_per_usd: yuan to the dollar, if not that of the table.
    """
    table = prices() if table is None else table
    rate = item_input(price(FX, table)).range if cny_per_usd is None else as_range(cny_per_usd)
    listed = _listed(table)
    made = (_offer(model, host, parts, listed, rate) for (model, host), parts in listed.items())
    return {one.name: one for one in made}


def _offer(
    model: str,
    host: str,
    parts: Mapping[str, Price],
    listed: Mapping[tuple[str, str], Mapping[str, Price]],
    rate: Range,
) -> Offer:
    share = parts.get(SHARE)
    priced = dict(listed[model, MAKER] if share else parts)
    missing = [part for part in ("input", "output") if part not in priced]
    if missing:
        raise InputError(f"item 'api.{model}.{host}.{missing[0]}' is not in data/prices.csv; the host's others are")
    of_list = point(1.0) if share is None else item_input(share).range
    ranges = {part: times(_in_cny(row, rate), of_list) for part, row in priced.items()}
    rows = [*priced.values(), *([share] if share else [])]
    return Offer(
        model=model,
        host=host,
        input=ranges["input"],
        cached=ranges.get("cached", ranges["input"]),
        output=ranges["output"],
        parts=priced,
        share=share,
        region=(share or priced["output"]).region,
        grade=worst(row.grade for row in rows),
        sources=tuple(dict.fromkeys(s for row in rows for s in row.source_ids)),
    )


def _in_cny(row: Price, rate: Range) -> Range:
    own = Range(row.default, row.low, row.high)
    return times(own, rate) if row.currency == "USD" else own


def offer(
    model: str, host: str, table: Mapping[str, Price] | None = None, cny_per_usd: float | Range | None = None
) -> Offer:
    """A host's price of a model. Raises InputError with the near name."""
    known = offers(table, cny_per_usd)
    name = f"{model}@{host}"
    if name not in known:
        raise NoPriceError(f"no price of '{name}' is published. {near(name, known)}")
    return known[name]


def batch_share(table: Mapping[str, Price] | None = None) -> Range:
    """What a batch is asked of the list price. Named by the maker for another model only."""
    return item_input(price(BATCH, table)).range


def api_cost_cny(mix: Mix, asked: Offer, share: Range | None = None) -> Range:
    """Price of a million generated tokens with the prompts that they answer. share: of the list, as `batch_share`.

    Unit: CNY/Mtok.
    """
    share = share or point(1.0)
    values = {**mix.values, m.api_input: asked.input.corners(), m.api_cached: asked.cached.corners(),
              m.api_output: asked.output.corners(), m.api_share: share.corners()}  # fmt: skip
    return of_corners(arrays({"api": eq.api_cny()}, values)["api"])


def api_month_cny(mix: Mix, mtok_month: float, asked: Offer, share: Range | None = None) -> Range:
    """Price of a month at so many million generated tokens. Unit: CNY/month."""
    one = api_cost_cny(mix, asked, share)
    return times(one, point(mtok_month))
