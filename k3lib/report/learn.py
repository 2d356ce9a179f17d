"""How problems look: on the page of exercises with their answers hidden, and on the page that checks answers."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy as sp
from IPython.display import display

from k3lib.account.symbols import REGISTRY, latex
from k3lib.learn.problem import Problem, Step
from k3lib.learn.sheet import Formula
from k3lib.report import show
from k3lib.report.chapters import chapter_link
from k3lib.report.trail import Html, cell
from k3lib.results import Result
from k3lib.units import (
    BITS_PER_BYTE,
    GIBI,
    GIGA,
    KILO,
    MEBI,
    MEGA,
    MONTHS_PER_YEAR,
    SECONDS_PER_HOUR,
    TEBI,
    TERA,
    UNITS,
    convert,
    unit,
)

LEVELS = {"estimate": "an estimate", "derive": "a derivation", "decide": "a decision"}
# What a wrong answer may be off by, and what that tells. The first ones only where bytes are asked for.
BYTES_OFF = (
    (GIBI / GIGA, "GB and GiB are mixed up"),
    (MEBI / MEGA, "MB and MiB are mixed up"),
    (TEBI / TERA, "TB and TiB are mixed up"),
    (BITS_PER_BYTE, "bits and bytes are mixed up"),
)
OFF = (
    (2, "a two is missing or too much"),
    (10, "look at the decimal point"),
    (100, "a ratio and per cent are mixed up"),
    (KILO, "one prefix is off, as kilo for mega"),
    (MEGA, "two prefixes are off, as mega for tera"),
    (GIGA, "three prefixes are off"),
    (60, "seconds and minutes are mixed up"),
    (SECONDS_PER_HOUR, "seconds and hours are mixed up"),
    (MONTHS_PER_YEAR, "months and years are mixed up"),
)


def show_problems(problems: Iterable[Problem], results: Mapping[str, Result]) -> None:
    """Show problems with their worked answers behind a fold. results: the recorded answers by key."""
    _display("\n".join(_problem(p, results[p.key]) for p in problems), "problems")


def show_quiz(problems: Sequence[Problem]) -> None:
    """Show the questions of one topic with fields for their answers."""
    _display("\n".join(_question(p) for p in problems), "questions")


def show_quiz_data(problems: Sequence[Problem]) -> None:
    """Where the score stands, and what the page's script needs to check answers."""
    shown = (
        '<div class="k3-quiz"><p class="k3-score" role="status" aria-live="polite"></p>'
        '<button type="button" class="k3-button k3-restart" hidden>Start again</button></div>'
        "<noscript>This page checks answers by a script, and the browser runs none here. "
        "The page of problems has all answers.</noscript>"
    )
    payload = json.dumps(quiz_data(problems), ensure_ascii=False, sort_keys=True, allow_nan=False)
    payload = payload.replace("<", "\\u003c")
    # The page's script says these values to the reader, so they are translated.
    opening = '<script type="application/json" id="k3-quiz-data" data-said="said words">'
    _display(f"{shown}\n{opening}{payload}</script>", "score")


def show_formulas(formulas: Iterable[Formula]) -> None:
    """Show the equations of the cheat sheet as a table."""
    names = {q.symbol: q.latex for q in REGISTRY.values()}
    rows = []
    for one in formulas:
        written = f"{one.left} = {sp.latex(one.expression, symbol_names=names)}"
        rows.append([one.words[0].upper() + one.words[1:], _math(written)])
    show.table(["What", "Equation"], rows, label="Equations to know", text_columns=2)


def quiz_data(problems: Sequence[Problem]) -> dict[str, Any]:
    """Answers, tolerances, units and slips by problem, and a name for this set of numbers."""
    answers = {p.problem_id: _answer(p) for p in problems}
    name = hashlib.sha256(json.dumps(answers, sort_keys=True).encode()).hexdigest()[:12]
    return {"name": name, "answers": answers}


def _answer(problem: Problem) -> dict[str, Any]:
    answer = problem.answer
    dimension = unit(answer.unit).dimension
    fitting = {name: float(convert(1.0, name, answer.unit)) for name, u in UNITS.items() if u.dimension == dimension}
    off = [*(BYTES_OFF if "bytes" in dimension else ()), *OFF]
    return {
        "value": float(answer.value),
        "said": answer.said,
        "unit": answer.unit,
        "units": fitting,
        "tolerance": problem.worked.tolerance,
        "slips": [{"value": float(slip.value), "words": slip.words} for slip in problem.slips],
        "off": [{"factor": float(factor), "words": words} for factor, words in off],
    }


def _display(shown: str, plain: str) -> None:
    display({"text/html": shown, "text/plain": plain}, raw=True)


def _asked_in(problem: Problem) -> str:
    """The unit of the answer as a label says it; empty for a bare number."""
    return unit(problem.answer.unit).label


def _problem(problem: Problem, result: Result) -> str:
    steps = "".join(f"<li>{_step(one)}</li>" for one in problem.worked.steps)
    answer = f"{cell(result, None, problem.answer.spec)} {html.escape(_asked_in(problem))}".strip()
    return (
        f'<div class="k3-problem" id="p-{problem.problem_id}"><h3>{html.escape(problem.title)} '
        f"<small>{LEVELS[problem.level]}</small></h3><p>{html.escape(problem.worked.question)}</p>"
        f"<details><summary>Answer</summary><ol>{steps}</ol>"
        f"<p><strong>{answer}</strong>. {html.escape(problem.worked.meaning)}</p>"
        f"<p>Taught in {chapter_link(problem.chapter)}.</p></details></div>"
    )


def _step(step: Step) -> str:
    equation = ""
    if step.expression is not None:
        equation = f" {_math(f'{step.left} = {latex(step.expression)}')}"
    return f'{html.escape(step.words)}{equation} <span class="k3-value">= {html.escape(step.said)}</span>'


def _math(written: str) -> Html:
    """An equation within a line, for the page's script to set."""
    return Html(f'<span class="math notranslate nohighlight">\\({html.escape(written)}\\)</span>')


def _question(problem: Problem) -> str:
    name = f"q-{problem.problem_id}"
    asked = html.escape(_asked_in(problem))
    label = f"Your answer, in {asked}" if asked else "Your answer, a bare number"
    return (
        f'<form class="k3-question" id="{name}" data-id="{problem.problem_id}" novalidate>'
        f"<h3>{html.escape(problem.title)} <small>{LEVELS[problem.level]}</small></h3>"
        f'<p id="{name}-text">{html.escape(problem.worked.question)}</p>'
        f'<label for="{name}-field">{label}</label><div class="k3-answer">'
        f'<input id="{name}-field" type="text" autocomplete="off" spellcheck="false" '
        f'aria-describedby="{name}-text {name}-said"><span class="k3-unit" aria-hidden="true">{asked}</span>'
        f'<button type="submit" class="k3-button">Check</button>'
        f'<button type="button" class="k3-button k3-hint" aria-expanded="false" aria-controls="{name}-hint">Hint'
        f'</button></div><p id="{name}-hint" hidden>{html.escape(problem.worked.hint)} '
        f'Taught in {chapter_link(problem.chapter)}.</p><p id="{name}-said" class="k3-said" role="status" '
        f'aria-live="polite"></p><p class="k3-solution" hidden><a href="learn.html#p-{problem.problem_id}">'
        f"The worked answer: {html.escape(problem.title)}</a></p></form>"
    )
