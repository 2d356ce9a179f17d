"""When a start or a service fails: its causes, and what each cut gives back on this plan."""

from __future__ import annotations

from dataclasses import dataclass

from k3lib.deploy.cuts import Cut, cuts, runs_here
from k3lib.deploy.evidence import EXPERT_LINES
from k3lib.deploy.inverse import nearest, plans_of
from k3lib.deploy.plan import Plan
from k3lib.facts.operating import Case, Trouble, troubles
from k3lib.reading.records import Failure
from k3lib.units import GIBI

# What each case is called on the page.
CASES: dict[Case, str] = {
    "load": "Out of memory while it loads",
    "profiling": "Out of memory while it profiles or captures graphs",
    "pools": "It refuses to start: nothing is left for caches",
    "service": "Out of memory under load",
    "throughput": "It is slow",
    "network": "The servers exchange too slowly",
    "stages": "Stages are uneven",
    "slots": "Caches or slots for states run out",
    "start": "It takes too long to load",
}
STAGE_CASES: dict[str, Case] = {"before load": "load", "load": "load", "profiling": "profiling", "graphs": "profiling",
                                "pools": "pools", "service": "service"}  # fmt: skip
SHOWN = 3


def causes(case: Case) -> list[Trouble]:
    """The causes of a case, in the order of the table."""
    return [row for row in troubles() if row.case == case]


def case_of(failure: Failure, plan: Plan) -> Case | None:
    """The case that a failure in a log belongs to, None for a crash that is no matter of memory.

    Where the log does not tell the stage, the ledger does: a plan whose weights do not go in died while it loaded.
    """
    if failure.kind == "crash":
        return None
    return STAGE_CASES.get(failure.stage) or ("load" if at_load(plan).room_gib < 0 else "service")


def helpful(plan: Plan, case: Case) -> list[Cut]:
    """What the causes of a case name to cut, by what it gives back; a cut that changes nothing is left out."""
    keys = dict.fromkeys(key for row in causes(case) for key in row.cuts if runs_here(plan, key))
    before = plan.caches.max_concurrency if plan.caches else 0.0
    return [c for c in cuts(plan, keys) if c.gives_gib > 0 or c.beside_gib > 0 or c.concurrency > before]


@dataclass(frozen=True)
class AtLoad:
    """A layout while it loads. weights_gib, peak_gib: on a card of the fullest stage, after and during the load.

    room_gib: what the card then has beside the peak.
    """

    layout: str
    weights_gib: float
    peak_gib: float
    room_gib: float
    fits: bool


def at_load(plan: Plan) -> AtLoad:
    """The fullest stage of a plan while it loads."""
    fullest = max(plan.stages, key=lambda stage: stage.weights)
    passing = sum(line.bytes for line in fullest.lines if line.passing)
    peak = fullest.weights + passing
    return AtLoad(str(plan.layout), fullest.weights / GIBI, peak / GIBI, (plan.capacity - peak) / GIBI, plan.fits)


def lighter(plan: Plan, most: int = 5) -> list[AtLoad]:
    """Layouts of the same cards that hold less on a card while they load, the lightest first of equal stages.

    One of each number of cards a stage, so that the list shows ways and not variants.
    """
    own = at_load(plan)
    found: dict[tuple[int, int], AtLoad] = {}
    for other in plans_of(plan.model, plan.cluster, plan.engine.name, plan.settings):
        one, key = at_load(other), (other.layout.tp, other.layout.pp)
        if one.peak_gib < own.peak_gib and (key not in found or one.peak_gib < found[key].peak_gib):
            found[key] = one
    return sorted(found.values(), key=lambda one: (not one.fits, one.peak_gib))[:most]


def failure_lines(plan: Plan, failure: Failure) -> list[str]:
    """What to cut after a failure that a log tells, for a terminal; none for a crash."""
    case = case_of(failure, plan)
    if case is None:
        return []
    lines, fits = _load_lines(plan) if case == "load" else _cut_lines(plan, case)
    if not fits and (other := nearest(plan)):
        lines.append(f"  nearest that fits: {other.layout} on {other.cluster}")
    head = f"{CASES[case]} (what to cut, by the ledger of {plan.layout} on {plan.cluster})"
    return [head, *lines, f"  first test: {causes(case)[0].test}"]


def _load_lines(plan: Plan) -> tuple[list[str], bool]:
    """Lighter layouts in lines, and whether one of them fits."""
    own, others = at_load(plan), lighter(plan, SHOWN)
    lines = [f"  now: {own.peak_gib:.1f} GiB on a card while it loads, of {plan.capacity / GIBI:.1f} GiB"]
    lines += [f"  {one.layout}: {one.peak_gib:.1f} GiB{'' if one.fits else ', and does not fit'}" for one in others]
    return lines, any(one.fits for one in others)


def _cut_lines(plan: Plan, case: Case) -> tuple[list[str], bool]:
    """Cuts in lines, and whether the plan fits after one of them."""
    found = helpful(plan, case)[:SHOWN]
    return [f"  {cut_words(cut)}" for cut in found], any(cut.fits for cut in found)


def cut_words(cut: Cut) -> str:
    """A cut in a line: what it gives back, and what holds after it."""
    places = ((cut.gives_gib, "for caches"), (cut.beside_gib, "beside the engine's share"))
    back = " and ".join(f"{gib:.1f} GiB {where}" for gib, where in places if gib > 0) or "no memory"
    after = f"then {cut.concurrency:.0f} of the longest requests at once" if cut.fits else "still does not fit"
    return f"{cut.what}: gives back {back}; {after}"


def padding_gib(plan: Plan) -> float:
    """Columns and experts on a card of the tightest stage that only fill up, in GiB."""
    return sum(line.gib for line in plan.stages[plan.tightest].lines if line.name == EXPERT_LINES[-1])
