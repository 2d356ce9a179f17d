"""What a scenario's deployment is watched by: its plan for the pages, and the files that a build writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from k3lib.calibrate.predict import Speed
from k3lib.errors import InputError
from k3lib.facts.scenario import Scenario, in_words
from k3lib.models.model import load_model
from k3lib.operate import grafana, prometheus
from k3lib.operate.alerts import Filled, filled, shown
from k3lib.operate.draft import BreakEven
from k3lib.operate.levels import MS_PER_S, Level
from k3lib.operate.watched import Watched, watched
from k3lib.report.speeds import label, main_plan

FILES = (prometheus.NAME, grafana.NAME)
PARAMETERS = ("cards", "cards_per_node", "device", "layout", "engine", "max_model_len", "nics", "weights", "mix",
              "ttft_goal_s", "tpot_goal_ms")  # fmt: skip
MODEL, RELEASED = "kimi-k3", "mxfp4"


@dataclass(frozen=True)
class Watch:
    """A scenario's plan as it is watched. reason: why another stands in its place, empty where it is its own."""

    one: Watched
    reason: str

    @property
    def name(self) -> str:
        """The plan in a few words."""
        return label(self.one.plan, self.one.options.experts)

    @property
    def which(self) -> str:
        """Which plan a page is about, in a sentence."""
        if not self.reason:
            return "The plan is the scenario's own."
        return f"The scenario's own plan cannot be served: {self.reason}. Another stands in its place."


def watch(*, cards: int, cards_per_node: int, device: str, layout: str, engine: str, max_model_len: int, nics: int,
          weights: str, mix: str, ttft_goal_s: float, tpot_goal_ms: float) -> Watch:  # fmt: skip
    """The scenario's plan with its workload, or the plan that stands in its place, with the reason.

    Raises InputError for cards that do not fill servers.
    """
    where = {"cards": cards, "cards_per_node": cards_per_node, "device": device, "layout": layout, "engine": engine}
    reason = ""
    for form in dict.fromkeys((weights, RELEASED)):
        found = main_plan(load_model(MODEL, None if form == RELEASED else form), **where)  # type: ignore[arg-type]
        reason = reason or found.reason
        how = found.options if found.reason else replace(found.options, nics=nics)
        try:
            return Watch(watched(found.plan, how, mix, max_model_len, ttft_goal_s, tpot_goal_ms), reason)
        except InputError as error:
            reason = reason or str(error)
    raise InputError(reason)


def level_words(level: Level, unit: str) -> str:
    """A level for a table: its value with its unit, and its range where it has one."""
    at = level.at
    text = shown(at.value) + ("" if unit == "1" else f" {unit}")
    return text if at.low == at.high else f"{text} ({shown(at.low)} to {shown(at.high)})"


def goals_words(one: Watched, seen: Speed) -> str:
    """Whether the goals of the watched workload are kept under its load, by the prediction."""
    parts = []
    for what, goal, predicted, unit in (
        ("the first token", one.workload.ttft_s, seen.ttft_ms_mean.value / MS_PER_S, "s"),
        ("further tokens", one.workload.tpot_ms, seen.tpot_ms.value, "ms"),
    ):
        if goal is not None:
            rings = "so it rings" if predicted > goal else "so it is kept"
            parts.append(f"for {what} the goal is {goal:g} {unit} and the prediction {predicted:,.3g} {unit}, {rings}")
    if not parts:
        return f"{one.workload.label} has no goals."
    return (f"With {clients_words(one.asked.clients)} of {one.workload.label}, {'; '.join(parts)}. Where it rings, let "
            "fewer clients in or move the goal; do not silence it.")  # fmt: skip


def balance_words(many: Iterable[Filled]) -> str:
    """From which balance of the experts the alert rings on the plan, or why it does not."""
    found = next(x for x in many if x.alert.derived == "balance")
    if found.level is None:
        return f"On this plan that is no matter: {found.reason}."
    return f"On this plan the alert rings at a balance of {found.level.at.value:.2f}: {found.level.why}."


def draft_words(points: Sequence[BreakEven], lengths: Sequence[float]) -> str:
    """How the break-even of a draft model moves with the clients, beside measured lengths of acceptance."""
    if not points:
        return "No layout of these cards without stages holds a draft model."
    least, most = (choose(points, key=lambda one: one.length.value) for choose in (min, max))
    return (f"Here it lies between {least.length.value:.1f} tokens with {clients_words(least.clients)} and "
            f"{most.length.value:.1f} with {clients_words(most.clients)}; measured acceptance lies between "
            f"{min(lengths):.2f} and {max(lengths):.2f}, by the text.")  # fmt: skip


def clients_words(clients: int) -> str:
    """One client, two clients."""
    return f"{clients:,} client" + ("" if clients == 1 else "s")


def texts(scenario: Scenario) -> dict[str, str]:
    """The files of a scenario by name: the rules of its alerts, and its dashboard."""
    found = watch(**{name: getattr(scenario, name) for name in PARAMETERS})
    many = filled(found.one)
    about = (
        f"Alerts for Kimi K3: {in_words(scenario)}.",
        f"Levels are those of {found.name}, requests of at most {found.one.plan.settings.max_model_len:,} tokens; "
        f"watched is {found.one.workload.label}.",
        *([found.which] if found.reason else []),
        "One Prometheus is taken to watch one deployment. Made by k3 build; another plan has other levels.",
    )
    return {prometheus.NAME: prometheus.text(many, about),
            grafana.NAME: grafana.text(many, found.one.plan.engine.name, about[1])}  # fmt: skip


def of_scenario(scenario: Scenario, folder: Path) -> None:
    """Write the files of a scenario to a folder. Raises InputError where it has none."""
    for name, text in texts(scenario).items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
