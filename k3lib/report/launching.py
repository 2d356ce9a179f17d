"""The page of commands: tabs by engine, tables of flags, and the sentences that depend on them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from IPython.display import Markdown, display

from k3lib.engines.layout import Cluster
from k3lib.facts.flags import MEANING, EngineFlag, OldAdvice
from k3lib.launch.kubernetes import manifests
from k3lib.launch.place import Place
from k3lib.launch.records import Launch, memory
from k3lib.launch.shell import script
from k3lib.report.trail import Html, source_links
from k3lib.units import GIBI

NODES_SHOWN = 8
VERDICTS = {
    "gone": "the start fails",
    "idle": "taken, without effect",
    "wrong": "do not use",
    "needless": "not needed",
    "right": "holds",
}


def slug(engine: str) -> str:
    """An engine's name as a part of a key."""
    return re.sub(r"[^a-z0-9]+", "-", engine.lower()).strip("-")


def answer(launch: Launch) -> str:
    """The first sentence of the page."""
    if launch.reason:
        return f"No command is written: {launch.reason}."
    count = len(launch.commands)
    one = "One command starts" if count == 1 else f"{count} commands, one on each of the {launch.nodes} servers, start"
    if launch.copies > 1:
        one = f"{count} commands start {launch.copies} copies, each on {launch.nodes} servers, of"
    if launch.plan is None:
        return f"{one} {launch.name}."
    plan = launch.plan
    return (
        f"{one} {plan.model.name} on {plan.cluster} as {plan.layout} under {launch.start.label} {launch.start.version}."
    )


def memory_sentence(launch: Launch) -> str:
    """The second sentence of the page: what the tightest card holds; empty where there is no plan."""
    if launch.plan is None:
        return "There is no plan to account for."
    stage = memory(launch.plan)[launch.plan.tightest]
    used = f"{stage.used_gib.value:.1f} GiB ({stage.used_gib.low:.1f} to {stage.used_gib.high:.1f})"
    card = f"{launch.plan.capacity / GIBI:.1f} GiB"
    if launch.reason:
        return f"Weights and working memory would need {used} of a card's {card}."
    left, tokens = stage.left_gib, launch.plan.caches.kv_tokens if launch.plan.caches else 0
    return (f"Weights and working memory take {used} of the tightest card's {card}; {left.value:.1f} GiB "
            f"({left.low:.1f} to {left.high:.1f}) are left for caches of {tokens:,} tokens.")  # fmt: skip


def evidence_words(launch: Launch) -> str:
    """What the marks of evidence in the tables of a start mean."""
    seen = {row.status for row in (*(o.row for o in launch.options), *launch.site)}
    return "; ".join(f"{status}, {what}" for status, what in MEANING.items() if status in seen) or "none is shown"


def command_line(cluster: Cluster, layout: str, engine: str, max_model_len: int, weights: str) -> str:
    """The command that prints the same."""
    form = "" if weights == Place().weights else f" --weights {weights}"
    return f"k3 launch --cluster {cluster} --layout {layout} --engine {engine} --max-model-len {max_model_len}{form}"


def sentence(text: str) -> str:
    """A remark as a sentence."""
    return f"{text[0].upper()}{text[1:]}."


def _item(label: str, body: str, colons: int, selected: bool = False) -> str:
    fence = ":" * colons
    return f"{fence}{{tab-item}} {label}\n{':selected:' if selected else ''}\n\n{body}\n\n{fence}"


def _set(items: Iterable[str], colons: int) -> str:
    fence = ":" * colons
    return "\n\n".join([f"{fence}{{tab-set}}", *items, fence])


def _code(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def _engine(launch: Launch, place: Place) -> str:
    """What the tab of an engine shows: commands by node and the manifests, or why there are none."""
    told = [f"{sentence(row.reason)}" for row in launch.warnings]
    if launch.reason:
        return f"No command: {launch.reason}."
    if launch.plan is None:
        told.insert(0, f"These are the commands of one published set-up ({launch.start.memory}), not of the plan. "
                       "Its memory is not accounted here.")  # fmt: skip
    own = [c for c in launch.commands if c.copy == 0][:NODES_SHOWN]
    items = [_item(f"Node {c.node}" if len(own) > 1 else "Command", _code(script(c), "bash"), 4) for c in own]
    if launch.plan is not None:
        items.append(_item("Kubernetes", _code(manifests(launch, place), "yaml"), 4))
    more = [] if launch.copies == 1 else [f"The other {launch.copies - 1} copies start alike on servers of their own."]
    return "\n\n".join([" ".join([*told, *more]), _set(items, 5)]).strip()


def tabs(launches: Sequence[Launch], selected: str, place: Place, command: str) -> None:
    """Show a command, and what it prints for each engine behind a tab of its own; the cell must be marked as MyST.

    selected: the engine whose tab is open. command: what a reader types to get the same.
    """
    items = [_item(x.start.label, _engine(x, place), 6, x.start.engine == selected) for x in launches]
    display(Markdown("\n\n".join([_code(command, "bash"), _set(items, 7)])))


def flag_rows(launch: Launch, kind: str) -> list[list[str]]:
    """Flags or variables of a start: what it is, why, evidence."""
    between = "=" if kind == "env" else " "
    return [
        [_code_cell(between.join(x for x in (o.row.name, o.value) if x)), o.row.reason, _evidence(o.row)]
        for o in launch.options
        if o.row.kind == kind
    ]


def site_rows(launch: Launch) -> list[list[str]]:
    """What only the site can know."""
    return [[_code_cell(row.name), row.value, row.reason, _evidence(row)] for row in launch.site]


def advice_rows(rows: Iterable[OldAdvice]) -> list[list[str]]:
    """Older advice: what, whether it holds, what to write now, why."""
    return [
        [_code_cell(" ".join(x for x in (row.name, row.value) if x)), VERDICTS[row.verdict], row.now, row.reason]
        for row in rows
    ]


def _code_cell(text: str) -> Html:
    return Html(f"<code>{html.escape(text)}</code>")


def _evidence(row: EngineFlag) -> Html:
    return Html(f"{html.escape(row.status)}: {source_links(row.source_ids)}")
