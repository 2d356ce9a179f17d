"""Other weights and other cards: what each needs, what is known of its answers and its speed, a verdict by rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from k3lib.calibrate.predict import Range, Speed, speed
from k3lib.deploy import curves as cv
from k3lib.deploy import variants as var
from k3lib.deploy.caches import Settings
from k3lib.deploy.inverse import SIZES, illegal_reason
from k3lib.deploy.load import Load
from k3lib.deploy.plan import Plan, make_plan
from k3lib.deploy.speed import Question, question
from k3lib.engines.layout import Cluster, Layout, parse_layout
from k3lib.errors import InputError
from k3lib.facts import variants as facts
from k3lib.models.model import Model
from k3lib.units import BITS_PER_BYTE

# How much is known of a variant's answers, the most first.
Level = Literal["released", "task", "kin", "proxy", "none"]
LEVEL_WORDS: dict[Level, str] = {
    "released": "as released",
    "task": "a task measured",
    "kin": "other models measured",
    "proxy": "a proxy only",
    "none": "not measured",
}
# Forms that hold every value of the released weights.
SAME_VALUES = ("mxfp4", "bf16")
# How a speed is known.
PREDICTED, BY_LIMITS, BY_HOST, NOT_KNOWN = "predicted", "card's limits", "memory's limits", "not known"
MOST_SERVERS = 16


@dataclass(frozen=True)
class Answers:
    """rows: figures of K3 itself. kin: tasks of other models that lost as large a share of their experts or more."""

    level: Level
    rows: tuple[facts.Quality, ...]
    kin: tuple[facts.Quality, ...]


def answers(name: str) -> Answers:
    """What is known of a variant's answers. Raises InputError with the near name."""
    row = facts.variant(name)
    own = tuple(q for q in facts.quality() if q.variant_id == name and q.kind in ("format", "pruning"))
    kept = facts.PER_CENT * row.experts / facts.variant("mxfp4").experts
    kin = tuple(q for q in pruned_kin() if row.kind == "pruned" and q.kept_pct is not None and q.kept_pct <= kept)
    if row.form in SAME_VALUES and row.kind == "format":
        return Answers("released", own, kin)
    if any(q.nature == "task" and q.baseline is not None for q in own):
        return Answers("task", own, kin)
    return Answers("kin" if kin else "proxy" if own else "none", own, kin)


def pruned_kin(method: str = "REAP") -> tuple[facts.Quality, ...]:
    """Tasks of other models whose experts were pruned in a way, with what the whole model gives."""
    return tuple(q for q in facts.quality() if q.method == method and q.nature == "task" and q.kept_pct is not None
                 and q.baseline and q.model != var.MODEL)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """The plan beside which the alternatives stand, and the load that they are asked for.

    clients: one number of them, and a larger one.
    """

    model: Model
    cluster: Cluster
    engine: str
    settings: Settings
    isl: int
    osl: int
    clients: tuple[int, int]

    @property
    def device(self) -> str:
        """The plan's card."""
        return self.cluster.device

    @property
    def per_server(self) -> int:
        """Cards of a server."""
        return self.cluster.cards_per_node


def layout_on(model: Model, cluster: Cluster, engine: str) -> Layout:
    """Tensor parallelism as wide as a server and the engine allow, and stages over the rest."""
    tp = max(n for n in SIZES if cluster.cards_per_node % n == 0 and not illegal_reason(model, Layout(tp=n), engine))
    return Layout(tp=tp, pp=cluster.cards // tp)


def servers(place: Place, cards: int, device: str = "") -> Cluster:
    """So many cards of the plan's device or another, in servers as large as the plan's."""
    nodes = max(1, cards // place.per_server)
    return Cluster(nodes, min(cards, place.per_server), device or place.device)


def served(place: Place, model: Model, cluster: Cluster, clients: int) -> tuple[Question, Speed] | None:
    """The load of so many clients in the usual layout; None where it does not fit or has no modelled speed."""
    try:
        plan = usual_plan(place, model, cluster)
        asked = question(plan, Load(place.isl, place.osl, clients))
        return asked, speed(asked)
    except InputError:
        return None


def usual_plan(place: Place, model: Model, cluster: Cluster) -> Plan:
    """The plan for the load in the usual layout, fitting or not. Raises InputError where an engine has none."""
    settings = replace(place.settings, max_model_len=place.isl + place.osl)
    return make_plan(model, cluster, layout_on(model, cluster, place.engine), place.engine, settings)


def known_by(asked: Question) -> str:
    """How a speed is known: by measured kernels of the experts, or by the limits of memory and arithmetic alone."""
    return BY_LIMITS if asked.setup.kernel == cv.ROOFLINE else PREDICTED


@dataclass(frozen=True)
class Need:
    """One alternative in a line.

    cards: in whole servers, None where none of those tried is enough. bound: whether a real layout may need more.
    one, many: output of the two numbers of clients. asked: behind `many`, for its sources. saved: cards fewer than the
    released files need on the same device.
    """

    key: str
    label: str
    device: str
    cards: int | None
    bound: bool
    answers: Level
    speed: str
    one: Range | None
    many: Range | None
    verdict: str
    saved: int = 0
    layout: str = ""
    asked: Question | None = None


def released_cards(place: Place, device: str = "") -> int | None:
    """Fewest cards in whole servers that hold the released files."""
    return var.fewest("mxfp4", device or place.device, place.settings, place.engine, MOST_SERVERS,
                      place.per_server).in_servers  # fmt: skip


def variant_need(place: Place, name: str) -> Need:
    """A format or a pruned model on the fewest servers of the plan's cards. Raises InputError with the near name."""
    row, known = facts.variant(name), answers(name)
    fit = var.fewest(name, place.device, place.settings, place.engine, MOST_SERVERS, place.per_server)
    found: list[tuple[Question, Speed] | None] = [None, None]
    model = var.model_of(row)
    if fit.in_servers and model is not None:
        found = [served(place, model, servers(place, fit.in_servers), n) for n in place.clients]
    return _need(name, row.label, place, place.device, fit, known.level, found)


def bits_need(place: Place, bits: float, label: str) -> Need:
    """A file with so many bits a weight that nobody published, on the fewest servers of the plan's cards."""
    size = bits * var.size("mxfp4").params / BITS_PER_BYTE
    fit = var.fewest_by_bytes("mxfp4", size, place.device, place.settings, place.engine, MOST_SERVERS,
                              place.per_server)  # fmt: skip
    found = _need(f"bits-{bits:g}", label, place, place.device, fit, "none", [None, None])
    return replace(found, verdict="no such file")


def plan_need(place: Place, layout: str) -> Need:
    """The plan itself: the released files on its cards in its layout."""
    settings = replace(place.settings, max_model_len=place.isl + place.osl)
    found: list[tuple[Question, Speed] | None] = [None, None]
    try:
        plan = make_plan(place.model, place.cluster, parse_layout(layout), place.engine, settings)
        asked = [question(plan, Load(place.isl, place.osl, n)) for n in place.clients]
        found = [(one, speed(one)) for one in asked]
        words = "the plan"
    except InputError:
        words = "has no speed or does not fit"
    one, many = (at[1].output_tps if at else None for at in found)
    last = found[-1]
    return Need("plan", f"The plan, {layout}", place.device, place.cluster.cards, False, "released",
                known_by(last[0]) if last else NOT_KNOWN, one, many, words,
                asked=last[0] if last else None)  # fmt: skip


def device_need(place: Place, device: str, label: str) -> Need:
    """The released files on the fewest servers of another card."""
    fit = var.fewest("mxfp4", device, place.settings, place.engine, MOST_SERVERS, place.per_server)
    found: list[tuple[Question, Speed] | None] = [None, None]
    if fit.in_servers:
        found = [served(place, place.model, servers(place, fit.in_servers, device), n) for n in place.clients]
    made = _need(f"on-{device}", label, place, device, fit, "released", found)
    return replace(made, saved=0, verdict=f"fits {made.cards} cards" if made.cards else "does not fit")


def _need(key: str, label: str, place: Place, device: str, fit: var.Fit, level: Level,
          found: Sequence[tuple[Question, Speed] | None]) -> Need:  # fmt: skip
    base = released_cards(place, device)
    saved = max(0, base - fit.in_servers) if base and fit.in_servers else 0
    one, many = (at[1].output_tps if at else None for at in found)
    last = found[-1]
    return Need(
        key, label, device, fit.in_servers, fit.lower_bound, level, known_by(last[0]) if last else NOT_KNOWN, one, many,
        verdict(fit.in_servers, place.cluster.cards, saved, level), saved,
        str(last[0].setup.layout) if last else fit.layout, last[0] if last else None,
    )  # fmt: skip


def verdict(cards: int | None, have: int, saved: int, level: Level) -> str:
    """One phrase. cards: needed, None for more than were tried; have: of the plan; saved: against the released files.

    What the plan's cards do not hold is out. What saves nothing is told so. What saves cards is only as good as what
    is known of its answers: a task of K3 is evidence, a proxy or another model is not, and nothing is nothing.
    """
    if cards is None or cards > have:
        return "does not fit"
    if not saved:
        fewer = f"fits, {have - cards} cards fewer" if cards < have else "fits"
        return fewer if level == "released" else "fits, saves no card"
    known = {"kin": ", unproven", "proxy": ", unproven", "none": ", no evidence"}.get(level, "")
    return f"saves {saved} cards{known}"
