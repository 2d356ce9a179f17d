"""What a scenario's workbook holds: ways to get tokens with their bills and speeds, and every input behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from k3lib.account import money_symbols as m
from k3lib.choose.scene import Scene
from k3lib.choose.study import Entry
from k3lib.choose.world import MAKERS, SHARED
from k3lib.cost.api import BATCH, Offer, offers
from k3lib.cost.bill import GENERAL, LEAST_RATE, Bill, Input, bill, item_input
from k3lib.cost.choice import Choice
from k3lib.cost.rent import CLASSES, rental_classes
from k3lib.errors import InputError, NoPriceError
from k3lib.facts.catalog import sources
from k3lib.facts.cluster_prices import LINES
from k3lib.facts.clusters import NamedCluster, clusters
from k3lib.facts.planned import alike
from k3lib.facts.price_parameters import price_parameters
from k3lib.facts.prices import Price, price
from k3lib.facts.scenario import Scenario, load_scenario
from k3lib.facts.workloads import Workload
from k3lib.ranges import Range, point
from k3lib.report.advice import HOSTS, MODELS
from k3lib.report.formulas import cell_name

# Bases of lines that are by what other lines add up to, and so grow with these.
OF_THE_REST = ("share", "upkeep", "place", "energy", "fitting", "room")


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
    here: Scene
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
        return self.here.workloads


def choice_of(scenario: Scenario) -> Choice:
    """What a scenario decides about costs; its usual utilisation keeps the range that data/prices.csv gives it."""
    usual = scenario.utilisation == load_scenario().utilisation
    region = "abroad" if scenario.region == "other" else None
    return Choice(region=region, utilisation=None if usual else scenario.utilisation)


def content(here: Scene, table: Mapping[str, Price], choice: Choice, words: str) -> Content:
    """What the workbook of a scenario holds. table: prices. words: the scenario's name."""
    held = tuple(held_options(here, table, choice))
    found = offers(table, choice.cny_per_usd)
    services = tuple(Service(f"api:{name}", service_words(one), one, name in MAKERS) for name, one in found.items())
    entries = {(row.cluster_id, name): here.entry(row, name) for row in here.clusters for name in here.workloads}
    inputs = _inputs(held, services, table, choice)
    items = [key for key in inputs if key in table]
    given = tuple(_price(key, inputs[key], table[key]) for key in items)
    spare = [row.item_id for row in price_parameters().values() if row.item_id not in inputs]
    return Content(
        words=words,
        here=here,
        held=held,
        services=services,
        entries={key: one for key, one in entries.items() if one.fits},
        prices=given,
        counts=tuple(_counts(held)),
        spare=tuple(_price(key, item_input(table[key]), table[key]) for key in spare),
        newest=max(one.as_of for one in given),
    )


def held_options(here: Scene, table: Mapping[str, Price], choice: Choice) -> Iterable[Held]:
    """Every cluster of a scene bought, then let in every class, where somebody published a price."""
    rows = {row.cluster_id: row for row in here.clusters}
    for row in rows.values():
        with suppress(NoPriceError):
            yield Held(f"own:{row.cluster_id}", f"buy {row.short}", bill_of(row, table, choice))
    for row in rows.values():
        like = _priced(row)
        for rent_class in rental_classes(like.cluster_id) if like else ():
            with suppress(NoPriceError):
                words = f"rent {row.short}, {CLASSES[rent_class]}"
                yield Held(f"rent:{row.cluster_id}:{rent_class}", words, bill_of(row, table, choice, rent_class))


def bill_of(row: NamedCluster, table: Mapping[str, Price], choice: Choice, rent: str | None = None) -> Bill:
    """The bill of a cluster; of one that a reader planned, that of the same cards by their number, people apart.

    A region in which it has no price gives way to one in which it has. Raises NoPriceError as `bill` does.
    """
    like = _priced(row)
    if like is None:
        raise NoPriceError(f"{row.cluster_id} is of cards that nobody published a price of")
    try:
        held = bill(like.cluster_id, table, choice, rent)
    except NoPriceError:
        held = bill(like.cluster_id, table, replace(choice, region=None), rent)
    if like is row:
        return held
    share = row.cards / like.cards
    lines = tuple(
        one if one.line in SHARED or one.basis in OF_THE_REST else replace(one, times=one.times * share)
        for one in held.lines
    )
    return replace(held, cluster=row, lines=lines)


def _priced(row: NamedCluster) -> NamedCluster | None:
    """The named cluster whose bill stands for this one; None for cards that no named cluster has."""
    return row if row.cluster_id in clusters() else alike(row.device)


def service_words(offer: Offer) -> str:
    """A service in words."""
    return f"call {MODELS.get(offer.model, offer.model)} at {HOSTS.get(offer.host, offer.host)}"


def _inputs(
    held: Iterable[Held], services: Iterable[Service], table: Mapping[str, Price], choice: Choice
) -> dict[str, Input]:
    """Inputs of all bills and services by item, in the order of data/prices.csv."""
    found: dict[str, Input] = {}
    for one in held:
        for key, known in one.bill.inputs.items():
            if found.setdefault(key, known).range != known.range:
                raise InputError(f"input '{key}' has two ranges among the options of one workbook. Give it one.")
    decided = choice.replaced()
    asked = [*GENERAL.values(), BATCH, *(item for one in services for item in one.offer.items)]
    for item in asked:
        if item not in found:
            known = item_input(price(item, table))
            found[item] = replace(known, range=decided.get(item, known.range))
    in_order = [*(item for item in table if item in found), *(key for key in found if key not in table)]
    return {key: found[key] for key in in_order}


def _titles(ids: Iterable[str]) -> str:
    return "; ".join(sources()[one].title for one in ids)


def _price(key: str, known: Input, row: Price) -> Given:
    named = {one.item_id: one for one in price_parameters().values()}.get(key)
    decided = known.range != item_input(row, known.unit).range
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
        note="set by the scenario" if decided else row.note,
        least=LEAST_RATE if key == GENERAL[m.capital_rate] else 0.0,
    )


def _counts(held: Iterable[Held]) -> Iterable[Given]:
    """How many of an item each line has, each once."""
    seen = set()
    for one in held:
        for line in one.bill.lines:
            if line.count in seen:
                continue
            seen.add(line.count)
            known = one.bill.inputs[line.count]
            _, whose, name = line.count.split(".", 2)
            owner = "any cluster" if whose == "any" else clusters()[whose].short
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
