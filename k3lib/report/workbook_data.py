"""What a scenario's workbook holds: ways to get tokens with their bills and speeds, and every input behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from k3lib.account import money_symbols as m
from k3lib.choose.bills import MAKERS
from k3lib.choose.costed import Costs
from k3lib.choose.study import Entry
from k3lib.cost.api import BATCH, Offer
from k3lib.cost.bill import GENERAL, LEAST_RATE, Bill, Input, item_input
from k3lib.errors import InputError
from k3lib.facts.catalog import sources
from k3lib.facts.cluster_prices import LINES
from k3lib.facts.clusters import NamedCluster, clusters
from k3lib.facts.price_parameters import price_parameters
from k3lib.facts.prices import Price, price
from k3lib.facts.workloads import Workload
from k3lib.ranges import Range, point
from k3lib.report.cost_words import service_words, way_words
from k3lib.report.formulas import cell_name


@dataclass(frozen=True)
class Held:
    """A cluster of one's own or a rented one. name: 'own:CLUSTER' or 'rent:CLUSTER:CLASS'. label: in words."""

    name: str
    label: str
    bill: Bill

    @property
    def rented(self) -> bool:
        """Whether it is rented."""
        return self.name.startswith("rent:")


@dataclass(frozen=True)
class Service:
    """A host's price of a model. name: 'api:MODEL@HOST'. maker: whether the model's own maker is the host."""

    name: str
    label: str
    offer: Offer
    maker: bool


@dataclass(frozen=True)
class Given:
    """A row of the sheet of inputs. name: of the cell with its default. least: below which it is not taken."""

    key: str
    name: str
    what: str
    range: Range
    unit: str
    falling: bool
    currency: str = ""
    as_of: str = ""
    kind: str = ""
    grade: str = ""
    sources: str = ""
    note: str = ""
    least: float = 0.0


@dataclass(frozen=True)
class Content:
    """All of it. entries: speeds by (cluster, workload), where it can be served. spare: prices that no formula uses."""

    words: str
    costs: Costs
    held: tuple[Held, ...]
    services: tuple[Service, ...]
    entries: Mapping[tuple[str, str], Entry]
    prices: tuple[Given, ...]
    counts: tuple[Given, ...]
    spare: tuple[Given, ...]
    newest: str

    @property
    def workloads(self) -> Mapping[str, Workload]:
        """Workloads by id."""
        return self.costs.scene.workloads

    @property
    def clusters(self) -> Mapping[str, NamedCluster]:
        """Clusters by id."""
        return {row.cluster_id: row for row in self.costs.scene.clusters}

    @property
    def ours(self) -> tuple[str, str]:
        """The scenario's own two clusters."""
        return self.costs.scene.plan.cluster_id, self.costs.scene.superpod.cluster_id


def content(costs: Costs, words: str) -> Content:
    """What the workbook of a scenario holds. words: the scenario's name."""
    here, table = costs.scene, costs.table
    held = tuple(_held(costs))
    services = tuple(
        Service(f"api:{name}", service_words(name), one, name in MAKERS) for name, one in costs.offers.items()
    )
    entries = {(row.cluster_id, name): here.entry(row, name) for row in here.clusters for name in here.workloads}
    inputs = _inputs(held, services, table)
    given = tuple(_price(key, known, table[key]) for key, known in inputs.items() if key in table)
    spare = [row.item_id for row in price_parameters().values() if row.item_id not in inputs]
    return Content(
        words=words,
        costs=costs,
        held=held,
        services=services,
        entries={key: one for key, one in entries.items() if one.fits},
        prices=given,
        counts=tuple(_counts(held)),
        spare=tuple(_price(key, item_input(table[key]), table[key]) for key in spare),
        newest=max((one.as_of for one in given), default=""),
    )


def _held(costs: Costs) -> Iterator[Held]:
    """Every cluster bought, then in every class in which it is let."""
    rows = {row.cluster_id: row for row in costs.scene.clusters}
    bills = {f"own:{name}": one.bill for name, one in costs.owned.items()}
    bills |= {f"rent:{name}:{rent}": one.bill for name, let in costs.rented.items() for rent, one in let.items()}
    for name, bill in bills.items():
        yield Held(name, way_words(name, rows), bill)


def _inputs(held: Iterable[Held], services: Iterable[Service], table: Mapping[str, Price]) -> dict[str, Input]:
    """Inputs of all bills and services by item, in the order of data/prices.csv.

    Raises InputError where bills differ in one of them.
    """
    found: dict[str, Input] = {}
    for one in held:
        for key, known in one.bill.inputs.items():
            if found.setdefault(key, known).range != known.range:
                raise InputError(f"input '{key}' has two ranges among the options of one workbook. Give it one.")
    for item in (*GENERAL.values(), BATCH, *(item for one in services for item in one.offer.items)):
        found.setdefault(item, item_input(price(item, table)))
    in_order = [*(item for item in table if item in found), *(key for key in found if key not in table)]
    return {key: found[key] for key in in_order}


def _titles(ids: Iterable[str]) -> str:
    return "; ".join(sources()[one].title for one in ids)


def _price(key: str, known: Input, row: Price) -> Given:
    named = {one.item_id: one for one in price_parameters().values()}.get(key)
    usual = item_input(row, known.unit).range
    decided = known.range != usual
    return Given(
        key=key,
        name=cell_name(named.parameter if named else key),
        what=named.note if named else key,
        range=known.range,
        unit=known.unit,
        falling=known.falling,
        currency=row.currency,
        as_of=row.as_of,
        kind="assumption" if decided else row.kind,
        grade=known.grade,
        sources=_titles(known.sources),
        note=f"set by the scenario, in place of {usual.low:g} to {usual.high:g}" if decided else row.note,
        least=LEAST_RATE if key == GENERAL[m.capital_rate] else 0.0,
    )


def _counts(held: Iterable[Held]) -> Iterable[Given]:
    """How many of an item each line has, each once."""
    short = {row.cluster_id: row.short for row in clusters().values()}
    seen = set()
    for one in held:
        for line in one.bill.lines:
            if line.count in seen:
                continue
            seen.add(line.count)
            known = one.bill.inputs[line.count]
            _, whose, name = line.count.split(".", 2)
            named = {one.bill.cluster.cluster_id: one.bill.cluster.short} | short
            owner = named.get(whose, "any cluster")
            yield Given(key=line.count, name=cell_name(line.count), what=f"{owner}: how many of {LINES[name]}",
                        range=known.range, unit=known.unit, falling=False, grade=known.grade,
                        sources=_titles(known.sources), note=line.note)  # fmt: skip


def mix_rows(workload: Workload) -> Iterable[Given]:
    """Tokens of a workload's mean request, and what its users send."""
    name = cell_name(workload.workload_id)
    behind = _titles(workload.sources)
    parts = {"new": ("prompt tokens that are computed", point(workload.uncached), "tokens"),
             "cached": ("prompt tokens that a cache serves", point(workload.cached), "tokens"),
             "answer": ("tokens that are generated, thinking included", point(workload.osl), "tokens")}  # fmt: skip
    if workload.user_month is not None:
        parts["requests"] = ("requests that one user sends in a month", workload.user_month, "requests")
    for part, (words, found, unit) in parts.items():
        yield Given(key=f"{workload.workload_id}.{part}", name=f"{name}_{part}", what=f"{workload.label}: {words}",
                    range=found, unit=unit, falling=False, grade="assumed", sources=behind)  # fmt: skip
