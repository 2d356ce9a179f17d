"""Other ways to run the released files: experts in main memory, prompts apart, a draft model, a part on one server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from k3lib.calibrate import alternatives as alt
from k3lib.calibrate.predict import Range
from k3lib.choose import alternatives as ch
from k3lib.deploy import offload as off
from k3lib.deploy import variants as var
from k3lib.deploy.inverse import legal_layouts
from k3lib.deploy.load import Load
from k3lib.deploy.pilot import Pilot, pilot
from k3lib.deploy.plan import make_plan
from k3lib.engines.layout import Cluster, Layout
from k3lib.errors import InputError
from k3lib.facts import variants as facts
from k3lib.units import GIBI


@dataclass(frozen=True)
class InMemory:
    """Experts in main memory. points, verdicts: by the way of using them. reason: why there are none, else empty.

    host_gib: main memory of one server.
    """

    cluster: Cluster
    layout: str
    form: str
    host_gib: float
    points: dict[off.Way, tuple[off.Offloaded, ...]]
    verdicts: dict[off.Way, off.Verdict]
    reason: str = ""

    @property
    def best(self) -> off.Way:
        """The way that is faster with the fewest clients."""
        return min(self.points, key=lambda way: self.points[way][0].tpot_ms.value)


def in_memory(place: ch.Place, nodes: int, host_gib: float, form: str, clients: Sequence[int], limit_ms: float,
              least_clients: int) -> InMemory:  # fmt: skip
    """A form on so many servers, with what does not fit on their cards in their main memory.

    limit_ms, least_clients: what a service must keep to, and for how many at once.
    """
    cluster = replace(place.cluster, nodes=nodes)
    try:
        model = var.model_of(facts.variant(form))
        if model is None:
            raise InputError(f"{form}: the account does not know this form")
        layout = ch.layout_on(model, cluster, place.engine)
        case = off.Case(model, cluster, layout, place.engine, host_gib * GIBI, place.settings, place.isl + place.osl)
        ways: tuple[off.Way, ...] = ("copied", "computed")
        points = {way: alt.offload_points(case, clients, way) for way in ways}
    except InputError as error:
        return InMemory(cluster, "", form, host_gib, {}, {}, str(error))
    verdicts = {way: off.verdict(found, limit_ms, least_clients) for way, found in points.items()}
    return InMemory(cluster, str(layout), form, host_gib, points, verdicts)


def in_memory_verdict(found: InMemory, least_clients: int) -> str:
    """Whether a service can stand on it, in the faster way: at both ends of the range, at none, or at one of them."""
    if found.reason:
        return "does not fit"
    best = found.verdicts[found.best]
    if not best.fits_host:
        return "does not fit its memory"
    if not found.points[found.best][0].host_needed:
        return "needs no main memory"
    if best.clients_high < least_clients:
        return "offline only"
    held = f"{best.clients_low} to {best.clients_high} in time"
    return held if best.clients_low >= least_clients else f"open, {held}"


def in_memory_need(place: ch.Place, found: InMemory, least_clients: int) -> ch.Need:
    """Experts in main memory in a line, in the faster way. Output of clients whose experts no memory holds is none."""
    outputs: list[Range | None] = [None, None]
    if not found.reason and found.points[found.best][0].host_needed:
        at = {p.clients: p.output_tps for p in found.points[found.best] if p.fits_host}
        outputs = [Range(x.value, x.low, x.high) if (x := at.get(n)) else None for n in place.clients]
    form = "" if found.form == "mxfp4" else f"{found.form.upper()}, "
    label = f"Main memory, {form}{found.cluster.nodes}\u00a0\u00d7\u00a0{found.host_gib:,.0f}\u00a0GiB"
    return ch.Need(
        f"memory-{found.form}-{found.cluster.nodes}x{found.host_gib:.0f}", label, place.device, found.cluster.cards,
        False, ch.answers(found.form).level, ch.BY_HOST if any(outputs) else ch.NOT_KNOWN, outputs[0], outputs[1],
        in_memory_verdict(found, least_clients), layout=found.layout,
    )  # fmt: skip


@dataclass(frozen=True)
class Halves:
    """Prompts on one group of cards and generation on another."""

    key: str
    label: str
    found: alt.Separated


def halves(place: ch.Place, prompts_on: str, tokens_on: str, load: Load) -> tuple[Halves, ...]:
    """The plan's cards halved, twice the fewest cards, and another card for prompts or for generation."""
    base = ch.released_cards(place)
    pairs: list[tuple[str, str, Cluster, Cluster]] = []
    if place.cluster.nodes % 2 == 0:
        half = replace(place.cluster, nodes=place.cluster.nodes // 2)
        pairs.append(("halved", "the plan's cards, halved", half, half))
    if base:
        own = ch.servers(place, base)
        pairs.append(("twice", "the fewest cards, twice", own, own))
        readers, writers = (ch.released_cards(place, device) for device in (prompts_on, tokens_on))
        if readers and prompts_on != place.device:
            pairs.append(("prompts", "other cards for prompts", ch.servers(place, readers, prompts_on), own))
        if writers and tokens_on != place.device:
            pairs.append(("tokens", "other cards for generation", own, ch.servers(place, writers, tokens_on)))
    return tuple(Halves(key, label, _apart(place, load, reader, writer)) for key, label, reader, writer in pairs)


def _apart(place: ch.Place, load: Load, reader: Cluster, writer: Cluster) -> alt.Separated:
    prompts, tokens = ((str(c), str(ch.layout_on(place.model, c, place.engine))) for c in (reader, writer))
    return alt.separated(place.model, prompts, tokens, place.engine, place.settings, load)


def halves_need(place: ch.Place) -> ch.Need:
    """Twice the fewest cards of the plan's device, one half for prompts, in a line."""
    base = ch.released_cards(place)
    label, cards = "Prompts apart", 2 * base if base else None
    outputs: list[Range | None] = [None, None]
    if base:
        own = ch.servers(place, base)
        outputs = [_apart(place, Load(place.isl, place.osl, n), own, own).output_tps for n in place.clients]
    asked = ch.served(place, place.model, own, place.clients[1]) if base else None
    return ch.Need(
        "apart", label, place.device, cards, False, "released", ch.known_by(asked[0]) if asked else ch.NOT_KNOWN,
        outputs[0], outputs[1], ch.verdict(cards, place.cluster.cards, 0, "released"),
        asked=asked[0] if asked else None,
    )  # fmt: skip


def draft_layout(place: ch.Place, draft_tokens: int, acceptance: float) -> Layout | None:
    """The layout without stages on the plan's cards that gives most output with a draft; None where none fits.

    For the larger number of clients. Engines run no draft with pipeline stages.
    """
    settings = replace(place.settings, draft_tokens=draft_tokens, max_model_len=place.isl + place.osl)
    best, most = None, 0.0
    for layout in legal_layouts(place.model, place.cluster.cards, place.engine):
        if layout.pp > 1 or not make_plan(place.model, place.cluster, layout, place.engine, settings).fits:
            continue
        found = drafted(place, layout, draft_tokens, acceptance, place.clients[1])
        if found and found.output_drafted_tps.value > most:
            best, most = layout, found.output_drafted_tps.value
    return best


def drafted(place: ch.Place, layout: Layout, draft_tokens: int, acceptance: float, clients: int) -> alt.Drafted | None:
    """A draft model on the plan's cards; None where no request fits beside its cache."""
    try:
        return alt.speculation(place.model, place.cluster, layout, place.engine, place.settings,
                               Load(place.isl, place.osl, clients), draft_tokens, acceptance)  # fmt: skip
    except InputError:
        return None


def draft_verdict(with_draft: Sequence[Range | None], plan: Sequence[Range | None]) -> str:
    """With a draft beside the plan without one, for few clients and for many."""
    if None in with_draft:
        return "does not fit without stages"
    if None in plan:
        return "fits; the plan has no speed"
    better = [a.value > b.value for a, b in zip(with_draft, plan, strict=True) if a and b]
    if better[0] == better[-1]:
        return "faster than the plan" if better[0] else "slower than the plan"
    return "faster for few clients only" if better[0] else "faster for many clients only"


def one_server(place: ch.Place) -> Pilot:
    """What one server of the plan's holds of the model, in the usual layout."""
    cluster = replace(place.cluster, nodes=1)
    return pilot(place.model, cluster, ch.layout_on(place.model, cluster, place.engine), place.engine, place.settings)


def pilot_verdict(found: Pilot) -> str:
    """What a pilot holds, in a phrase."""
    if found.layers == found.of_layers:
        return "holds the whole model"
    return f"holds {found.layers} of {found.of_layers} layers" if found.layers else "does not fit"


def draft_need(place: ch.Place, layout: Layout | None, draft_tokens: int, acceptance: float, plan: ch.Need) -> ch.Need:
    """A draft model on the plan's cards in a line. plan: without one, in its own layout."""
    found = [drafted(place, layout, draft_tokens, acceptance, n) if layout else None for n in place.clients]
    one, many = (at.output_drafted_tps if at else None for at in found)
    label = f"A draft model, {layout}" if layout else "A draft model"
    return ch.Need(
        "draft", label, place.device, place.cluster.cards, False, "released", plan.speed if many else ch.NOT_KNOWN,
        one, many, draft_verdict((one, many), (plan.one, plan.many)), layout=str(layout or ""), asked=plan.asked,
    )  # fmt: skip


def pilot_need(place: ch.Place, found: Pilot) -> ch.Need:
    """A part of the model on one server, in a line: its answers are worth nothing unless it holds all."""
    level: ch.Level = "released" if found.layers == found.of_layers else "none"
    return ch.Need(
        "pilot", "Pilot on one server", place.device, place.per_server, False, level, ch.NOT_KNOWN, None,
        None, pilot_verdict(found), layout=found.layout,
    )  # fmt: skip


def hosted_need(place: ch.Place) -> ch.Need:
    """Staying on the API, in a line."""
    return ch.Need(
        "api", "Staying on the API", place.device, None, False, "released", ch.NOT_KNOWN, None, None, "needs no cards"
    )
