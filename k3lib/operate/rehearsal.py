"""A rehearsal on one server: what part of the model it holds, what a step of that part says of the whole, its cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from k3lib.account import acceptance as eq
from k3lib.account import operate_symbols as o
from k3lib.account import symbols as s
from k3lib.calibrate.predict import Speed, numbers, speed
from k3lib.choose import alternatives as ch
from k3lib.cost.bill import RENT
from k3lib.cost.own import own
from k3lib.cost.rent import CLASSES, rentals
from k3lib.deploy.caches import Settings
from k3lib.deploy.inverse import largest
from k3lib.deploy.load import Load
from k3lib.deploy.pilot import Pilot, pilot
from k3lib.deploy.plan import Plan, make_plan
from k3lib.deploy.search import sized
from k3lib.deploy.speed import Options, Question, answer, question
from k3lib.deploy.variants import with_layers
from k3lib.engines.layout import Cluster, Layout
from k3lib.errors import InputError, NoPriceError
from k3lib.evaluate import arrays
from k3lib.facts import acceptance as facts
from k3lib.facts.planned import planned
from k3lib.models.model import Model
from k3lib.models.weights import weight_account
from k3lib.ranges import Range, times
from k3lib.units import HOURS_PER_MONTH, KILO


@dataclass(frozen=True)
class Rehearsal:
    """A part of a model on one server. held: what fits at the values of the ledger.

    plan: of the layers that are loaded, which fit at the far end of the ledger's range as well; half: of half as many.
    """

    held: Pilot
    cluster: Cluster
    layout: Layout
    plan: Plan
    half: Plan
    of_bytes: int

    @property
    def layers(self) -> int:
        """Layers that are loaded."""
        return len(self.plan.model.mixers)

    @property
    def whole(self) -> bool:
        """Whether the whole model is loaded, so that nothing is left out."""
        return self.layers == self.held.of_layers

    @property
    def share(self) -> float:
        """Bytes that are loaded, of those of the model."""
        return weight_account(self.plan.model).bytes / self.of_bytes


def rehearsal(model: Model, cluster: Cluster, engine: str, settings: Settings) -> Rehearsal:
    """The most layers that one server of a cluster surely holds, and half of them to tell a layer from the rest.

    Raises InputError where not even a part fits that keeps tokens.
    """
    one = replace(cluster, nodes=1)
    layout = ch.layout_on(model, one, engine)
    held = pilot(model, one, layout, engine, settings)

    def part(layers: int) -> Plan:
        return make_plan(with_layers(model, layers), one, layout, engine, settings)

    def surely(layers: int) -> bool:
        made = part(layers)
        return made.fits and made.caches_low is not None and made.caches_low.max_concurrency >= 1

    least = max(held.layers // 2, layout.pp, 1)
    layers = largest(surely, least, held.layers) if held.layers else 0
    if not layers:
        raise InputError(f"no part of {model.name} fits one server of {one.cards} {one.device} as {layout}")
    few = max(layers // 2, layout.pp, 1)
    half = part(few)
    return Rehearsal(held, one, layout, part(layers), half if half.fits else part(layers),
                     weight_account(model).bytes)  # fmt: skip


def asked(plan: Plan, clients: int, isl: int, osl: int) -> Question:
    """A load on a part. Raises InputError where it does not fit."""
    load = Load(isl, osl, clients)
    return question(sized(plan, load), load, Options())


@dataclass(frozen=True)
class Scaled:
    """A step of the whole model as the steps of two parts tell it.

    part, half_ms: of the parts; layer_us: of one more layer, rest_us: beside all layers. whole_ms: what the model of
    speed predicts of the plan, None where it has no speed.
    """

    clients: int
    asked: Question
    part: Speed
    half_ms: float
    layer_us: float
    rest_us: float
    scaled_ms: Range
    whole_ms: Range | None

    @property
    def difference(self) -> float | None:
        """Scaled over predicted, less one."""
        return self.scaled_ms.value / self.whole_ms.value - 1 if self.whole_ms else None


def passes_at_work(plan: Plan) -> int:
    """Passes that a busy plan has at work at once: one for each stage of each copy."""
    return plan.copies * plan.layout.pp


def scaled(found: Rehearsal, whole: Question | None, clients: int, isl: int, osl: int) -> Scaled:
    """The time per token of all layers, from that of the parts. whole: the plan's own question, None where it has none.

    clients: of one pass. A plan of several stages, or of several copies, has as many passes at work, so that its own
    question must be of so many times the clients (`passes_at_work`). Raises InputError where a part has no speed.
    """
    part, half = asked(found.plan, clients, isl, osl), asked(found.half, clients, isl, osl)
    table = numbers()
    many, few = len(found.plan.model.mixers), len(found.half.model.mixers)
    seen = speed(part, table)
    at_half = answer(half, table).tpot_ms
    if many == few:
        raise InputError("two parts of different depth are needed to tell a layer from the rest")
    layer_us = (seen.tpot_ms.value - at_half) / (many - few) * KILO
    rest_us = max(seen.tpot_ms.value * KILO - many * layer_us, 0.0)
    values = {s.layers: found.held.of_layers, o.part_layer_us: layer_us, o.part_rest_us: rest_us}
    value = float(arrays({"us": eq.scaled_us()}, {k: np.array([float(v)]) for k, v in values.items()})["us"][0]) / KILO
    factor = seen.tpot_ms
    wide = Range(value, value * factor.low / factor.value, value * factor.high / factor.value)
    return Scaled(clients, part, seen, at_half, layer_us, rest_us, wide, speed(whole, table).tpot_ms if whole else None)


@dataclass(frozen=True)
class Price:
    """What the rehearsal costs in one way to get a server, in CNY. hours: of one server."""

    key: str
    label: str
    cny: Range
    sources: tuple[str, ...]


def hours() -> Range:
    """Hours of one server that a rehearsal takes."""
    return facts.parameter("rehearsal_hours").range_in("h")


def prices(cluster: Cluster, nics: int) -> list[Price]:
    """The rehearsal rented by the hour's share of each published rent, and as a share of an owned server's month.

    Empty where nobody published a price of such a server.
    """
    row = planned(str(replace(cluster, nodes=1)), nics)
    found, at = [], hours()
    share = Range(*(x / HOURS_PER_MONTH for x in (at.value, at.low, at.high)))
    try:
        for name, rent in rentals(row).items():
            line, label = rent.line(RENT), f"rent, {CLASSES[name]}"
            found.append(Price(f"rent-{name.replace('_', '-')}", label, times(line.monthly_cny, share), line.sources))
        owned = own(row)
        cny = times(owned.capital_cny, share)
        found.append(Price("own", "a server of one's own, its part of a month", cny, owned.sources))
    except NoPriceError:
        return found
    return found
