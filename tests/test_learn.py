"""Training: problems and their answers, the glossary and its links, the quiz in a browser, the sheet on one page."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from conftest import changed_data, k3_here, pages, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page

from k3lib.account import estimates, passes
from k3lib.account import symbols as s
from k3lib.errors import InputError
from k3lib.facts.catalog import device_fact
from k3lib.facts.learning import Term, glossary, learning_paths
from k3lib.facts.paths import ROOT
from k3lib.facts.problems import problem_numbers
from k3lib.facts.scenario import load_scenario
from k3lib.learn.path import minutes_by_role
from k3lib.learn.problem import FORMS, Problem, model_of
from k3lib.learn.problems import TOPICS, problem_set
from k3lib.learn.sheet import formulas
from k3lib.report import glossary as words
from k3lib.report.learn import quiz_data
from k3lib.results import make
from k3lib.units import GIBI, GIGA, HOURS_PER_MONTH, MEBI

TOC = (ROOT / "book" / "_toc.yml").read_text(encoding="utf-8")


def problems(**parameters: object) -> dict[str, Problem]:
    return {p.problem_id: p for p in problem_set(load_scenario("base", parameters))}


@pytest.fixture(scope="module")
def base() -> dict[str, Problem]:
    return problems()


# Arrows


# Problems


def test_there_are_enough_problems_and_each_has_its_numbers(base: dict[str, Problem]) -> None:
    assert len(base) >= 24
    assert {p.topic for p in base.values()} == set(TOPICS)
    assert {p.level for p in base.values()} == {"estimate", "derive", "decide"}
    assert {row.problem for row in problem_numbers().values()} == set(FORMS)
    for problem in base.values():
        assert f"- file: {problem.chapter}\n" in TOC, problem.problem_id
        assert problem.worked.question.endswith((".", "?")), problem.problem_id
        assert problem.worked.steps and problem.worked.hint and problem.worked.meaning


def test_answers_are_results_with_a_trail(base: dict[str, Problem]) -> None:
    for problem in base.values():
        result = make(problem.key, problem.answer.value, **problem.trail)
        assert result.key == f"exercise.{problem.problem_id}.answer"
        assert result.sources


# The same answers by plain arithmetic, from figures that are written out here.
BY_HAND = {
    "routed-params": 92 * 896 * 3 * 3584 * 3072 / 1e9,
    "naive-width": 92 * 896 * 3 * 7168 * 3072 / 1e9,
    "scale-bytes": 92 * 896 * 3 * 3584 * 3072 / 32 / 1e9,
    "nominal-size": 1400,
    "active-share": 100 * 104_189_614_848 / 2_779_931_837_184,
    "gb-gib": 97_871 * MEBI / GIGA,
    "fewest-cards": math.ceil(1_560_860_324_864 / (97_871 * MEBI * 0.9)),
    "kv-per-token": 24 * (512 + 64) * 2,
    "all-layers": 93 / 24,
    "state-bytes": 69 * (96 * 128 * 128 * 4 + 3 * 3 * 96 * 128 * 2) / MEBI,
    "state-slots": 10 * GIBI // (18 * (12 * 128 * 128 * 4 + 3 * 3 * 12 * 128 * 2)),
    "state-in-tokens": 449_372_160 / 27_648,
    "cache-of-requests": 27_648 * 32 * 32_768 / GIBI,
    "replicated-latent": 6 * 576 * 2 * 1_000_000 / GIBI,
    "rank-width": 256,
    "longest-stage": 24,
    "even-share": 1_560_860_324_864 / 32 / GIBI,
    "requests-held": 122,
    "longest-context": 268_800,
    "distinct-experts": 896 * (1 - (1 - 16 / 896) ** 32),
    "step-bytes": 23 * 896 * (1 - (1 - 16 / 896) ** 8) * 17_547_264 / 8 / 1e9,
    "read-floor": 1.5,
    "all-to-all": 0.40624 * 92,
    "bubbles": 100 * 3 / 11,
    "output-of-tpot": 800,
    "in-flight": 0.5 * (3 + 2343 * 0.05),
    "prompt-time": 2 * 104.189614848e9 * 32_768 / (32 * 148e12 * 0.9),
    "draft-gain": 2.61 * 60 / (60 + 7 * 2),
    "load-time": 1560.860324864 / 4 / 5 / 60,
    "exchange-rate": 15 * 6.7,
    "capital-recovery": 4.8e6 * (0.05 / 12) / (1 - (1 + 0.05 / 12) ** -48),
    "monthly-output": 1500 * 0.4 * 0.98 * 730 * 3600 / 1e6,
    "cost-per-mtok": 400_000 / (1500 * 0.4 * 0.98 * 730 * 3600 / 1e6),
    "blended-cost": 250 * 2000 / 10_000,
    "api-cost": (7221 * 20 + 4814 * 2 + 2343 * 100) / 2343,
    "break-even": 100 * 400_000 / (1500 * 0.98 * 2.628 * 180),
    "energy-per-mtok": 24 * 0.7 * 1.25 * 730 / (1500 * 0.4 * 0.98 * 2.628),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_an_answer_by_plain_arithmetic(name: str, base: dict[str, Problem]) -> None:
    assert base[name].answer.value == pytest.approx(BY_HAND[name], rel=1e-6)


def test_the_rest_follow_the_plan_and_what_was_measured(base: dict[str, Problem]) -> None:
    assert set(base) - set(BY_HAND) == {"above-even", "left-for-caches", "h20-experts", "all-reduce"}
    even, held, above = (step.value for step in base["above-even"].worked.steps)
    assert above == pytest.approx(held - even)
    offered, left = (step.value for step in base["left-for-caches"].worked.steps)
    assert pytest.approx(offered) == 0.9 * 97_871 / 1024 and 25 < left < offered - held
    assert "It fits." in base["left-for-caches"].worked.meaning
    h20 = base["h20-experts"]
    sms = [device_fact(d, "sm_count").value for d in ("h200", "h20-141")]
    assert h20.worked.steps[0].value == pytest.approx(sms[0] / sms[1])
    assert h20.worked.low is not None and h20.worked.high / h20.worked.low < 1.1  # type: ignore[operator]


@settings(max_examples=25)
@given(st.integers(1, 9999))
def test_any_set_has_finite_answers_above_zero_that_no_slip_gives(learn_set: int) -> None:
    found = problems(learn_set=learn_set)
    for problem in found.values():
        value = problem.answer.value
        assert math.isfinite(value) and value > 0, problem.problem_id
        assert "nan" not in problem.worked.question and "inf " not in problem.worked.question
        for slip in problem.slips:
            assert abs(slip.value - value) > problem.worked.tolerance * value, (problem.problem_id, slip)
        make(problem.key, value, **problem.trail)
    v, got = found["in-flight"].given, found["in-flight"].answer.value
    assert got == pytest.approx(v["rate"] * (v["first"] + v["answer"] * v["tpot"] / 1000))  # type: ignore[operator]
    v, got = found["monthly-output"].given, found["monthly-output"].answer.value
    assert got == pytest.approx(v["output"] * v["busy"] * v["up"] * HOURS_PER_MONTH * 3600 / 1e6)  # type: ignore[operator]
    v, got = found["cache-of-requests"].given, found["cache-of-requests"].answer.value
    assert got == pytest.approx(27_648 * v["requests"] * v["context"] / GIBI)  # type: ignore[operator]
    v, got = found["bubbles"].given, found["bubbles"].answer.value
    assert got == pytest.approx(100 * (1 - v["passes"] / (v["passes"] + v["stages"] - 1)))  # type: ignore[operator]


def test_a_set_is_the_same_each_time_and_differs_from_others() -> None:
    one, again, other = ({name: p.answer.value for name, p in problems(learn_set=n).items()} for n in (7, 7, 8))
    assert one == again
    assert sum(one[name] != other[name] for name in one) > len(one) / 2


def test_a_trainer_sets_single_numbers_and_prices(base: dict[str, Problem]) -> None:
    found = problems(learn_values="bubbles.stages:6; bubbles.passes:30", cny_per_usd=7)
    assert found["bubbles"].answer.value == pytest.approx(100 * 5 / 35)
    assert found["exchange-rate"].answer.value == pytest.approx(15 * 7)
    same = set(base) - {"bubbles", "exchange-rate"}
    assert all(found[name].answer.value == base[name].answer.value for name in same)


def test_the_scenarios_plan_is_in_the_questions() -> None:
    found = problems(cards=16, device="h200", layout="tp8,pp2")
    assert "2x8xh200 as tp8,pp2" in found["requests-held"].worked.question
    assert found["even-share"].answer.value == pytest.approx(1_560_860_324_864 / 16 / GIBI)


def test_a_plan_that_does_not_fit_says_so_and_holds_nothing() -> None:
    found = problems(cards=8, device="h20-96", layout="tp8")
    assert found["left-for-caches"].answer.value < 0
    assert "It does not fit" in found["left-for-caches"].worked.meaning
    assert found["requests-held"].answer.value == found["longest-context"].answer.value == 0


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("learn_set=-1", ["learn_set", "greater than or equal to 0"]),
        ("learn_set=10000", ["learn_set", "less than or equal to 9999"]),
        ("learn_set=many", ["learn_set", "integer"]),
        ("learn_values=bubles.stages:4", ["no problem has a number 'bubles.stages'", "Did you mean 'bubbles.stages'?"]),
        ("learn_values=bubbles.stages", ["is not NAME:VALUE"]),
        ("learn_values=bubbles.stages:4;bubbles.stages:5", ["stands twice"]),
        ("learn_values=bubbles.stages:-4", ["bubbles.stages", "above 0"]),
        ("learn_values=bubbles.stages:nan", ["finite"]),
        ("learn_values=bubbles.stages:four", ["'four' is not a number"]),
    ],
)
def test_bad_parameters_get_one_line(parameter: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    refused(k3_here(capsys, "build", "-p", parameter), *words)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("bubbles.stages:2.5", "must be a whole number"),
        ("requests-held.plan:4x8xh20-96", "write cluster and layout"),
        ("routed-params.model:kimi-k9", "kimi-k9"),
        ("gb-gib.device:h21", "h21"),
    ],
)
def test_numbers_that_a_problem_cannot_use_are_named(values: str, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        problems(learn_values=values)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("bubbles,stages,4,2;4;6;8,1", "bubbles,stages,4,2;4;;8,1", "one is empty"),
        ("bubbles,stages,4,2;4;6;8,1", "bubbles,stages,four,2;4;6;8,1", "'four' is not a number"),
        ("bubbles,stages,4,2;4;6;8,1", "bubbles,stages,4,2;4;6;8,stage", "unit 'stage' is not known"),
        ("bubbles,stages,4,2;4;6;8,1", "bubbles,stages,4,0;4;6;8,1", "above 0"),
    ],
)
def test_a_bad_row_of_problems_is_named(old: str, new: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"problems\.csv, row") as caught:
        problem_numbers(changed_data(tmp_path, "problems.csv", old, new))
    assert word in str(caught.value)


def test_used_experts_by_hand_are_those_of_the_model_without_a_spread() -> None:
    values = {**model_of("kimi-k3").values, s.decode_tokens: 32}
    even = {s.skew: 0, s.drafted_tokens: 0, s.prompt_tokens: 0, s.token_groups: 1}
    by_model = float(passes.distinct_experts().subs({**values, **even}))
    assert float(estimates.used_experts().subs(values)) == pytest.approx(by_model)


# Paths and glossary


def test_paths_lead_through_pages_of_the_book() -> None:
    found = minutes_by_role(learning_paths())
    assert len(found) >= 4 and next(iter(found)) == "Everyone"
    for step in learning_paths():
        assert step.page == "index" or f"- file: {step.page}\n" in TOC, step.page
    assert sum(found.values()) == sum(step.minutes for step in learning_paths())


def test_the_glossary_explains_enough_words_and_knows_its_pages() -> None:
    terms = glossary()
    assert len(terms) >= 45
    assert len({row.anchor for row in terms}) == len(terms)
    for row in terms:
        assert f"- file: {row.page}\n" in TOC, row.term
        assert row.term.lower() not in row.meaning.lower().split()[:1], row.term


def test_a_spelling_of_two_terms_is_refused(tmp_path: Path) -> None:
    folder = changed_data(tmp_path, "glossary.csv", "MXFP4,,", "MXFP4,MoE,")
    with pytest.raises(InputError, match="'MoE' is also a spelling of 'mixture of experts'"):
        glossary(folder)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The KV cache and a token.", ["KV cache", "token"]),
        ("Tensor parallelism, TP, not tp8 or stopTP", ["Tensor parallelism", "TP"]),
        ("a pre-token of all/tokens and token-like words", []),
        ("the MoE, a moe, a mixture of\nexperts", ["MoE", "mixture of\nexperts"]),
        ("prefix caching and caching", ["prefix caching"]),
    ],
)
def test_whole_words_are_found_in_prose(text: str, found: list[str]) -> None:
    pattern, terms = words._pattern(False)
    assert [m[0] for m in pattern.finditer(text)] == found
    assert all(isinstance(terms[" ".join(word.split()).lower()], Term) for word in found)


def test_chinese_words_are_found_without_blanks_around_them() -> None:
    pattern, terms = words._pattern(True)
    found = [m[0] for m in pattern.finditer("用专家并行（EP）部署时，KV Cache 的超节点；tp8 与 EP8 不算")]
    assert found == ["专家并行", "EP", "KV Cache", "超节点"]
    assert terms["ep"] is terms["专家并行"]


LINK = re.compile(r'<a class="k3-term [^"]*" href="[^"#]*#([^"]+)"')


def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def test_first_uses_on_every_page_lead_to_the_glossary(book: Path) -> None:
    html = book / "html"
    listed = soup(html / "glossary.html")
    anchors = {row.anchor for row in glossary()}
    assert anchors <= {tag["id"] for tag in listed.find_all("dt", id=True)}
    text = listed.get_text()
    assert all(row.chinese in text for row in glossary())
    linked: set[str] = set()
    for page in pages(book):
        here = [m[1] for m in LINK.finditer(page.read_text(encoding="utf-8"))]
        assert len(here) == len(set(here)), page
        assert set(here) <= anchors
        linked |= set(here)
    assert len(linked) > 0.7 * len(anchors)


def test_the_first_use_is_the_one_that_is_linked(book: Path) -> None:
    article = soup(book / "html" / "nb" / "which-layouts-are-legal.html").find("article")
    assert article is not None
    (link,) = article.select('a.k3-term[href$="#term-layout"]')
    prose = [p for p in article.find_all("p") if not p.find_parent(["table", "details", "figure"])
             and not p.find_parent(class_=["cell_output", "admonition"])]  # fmt: skip
    first = next(p for p in prose if re.search(r"(?<![\w./-])layouts?(?![\w/-])", p.get_text(), re.IGNORECASE))
    assert link in first.descendants
    assert link["title"].startswith("How a model is cut over cards")
    for one in article.select("a.k3-term"):
        assert not one.find_parent(["h1", "h2", "h3", "code", "table", "figcaption", "em"]), one


# Pages


def opened(browser: Browser, path: Path, screen: dict[str, object] | None = None) -> Page:
    page = browser.new_context(**(screen or {})).new_page()  # type: ignore[arg-type]
    page.goto(path.as_uri())
    return page


def test_answers_are_hidden_until_asked_for(book: Path, browser: Browser) -> None:
    page = opened(browser, book / "html" / "nb" / "learn.html")
    first = page.locator("#p-kv-per-token")
    answer = first.locator('a.k3-number[data-key="exercise.kv-per-token.answer"]')
    assert not answer.is_visible()
    first.locator("summary").click()
    assert answer.inner_text() == "27,648"
    assert page.locator(".k3-problem").count() == len(FORMS)
    assert page.locator(".k3-problem a.k3-chapter").first.text_content() == "How large is K3 really?"
    page.context.close()


def ask(page: Page, name: str, text: str) -> tuple[str, str]:
    """Type an answer and press Enter: the state that is shown, and what is said."""
    form = page.locator(f"#q-{name}")
    form.locator("input").fill(text)
    form.locator("input").press("Enter")
    return form.get_attribute("data-state") or "", form.locator(".k3-said").inner_text()


# What people type, what the page makes of it, and a word that it says.
TYPED = [
    ("kv-per-token", "27648", "right", "27,648"), ("kv-per-token", "27,648", "right", ""),
    ("kv-per-token", "27 648", "right", ""), ("kv-per-token", "2.7648e4", "right", ""),
    ("kv-per-token", "27.6 kB/token", "right", ""), ("kv-per-token", "27 KiB/token", "right", ""),
    ("kv-per-token", "\uff12\uff17\uff0c\uff16\uff14\uff18", "right", ""),
    ("kv-per-token", "107136", "near", "Only the layers with latent attention"),
    ("kv-per-token", "55296", "near", "factor of 2"), ("kv-per-token", "3456", "near", "bits and bytes"),
    ("kv-per-token", "27.648", "near", "1,000"), ("kv-per-token", "31000", "wrong", "too large"),
    ("kv-per-token", "-27648", "near", "the sign"), ("kv-per-token", "0", "wrong", "Try the hint"),
    ("gb-gib", "102.6 GB", "right", ""), ("gb-gib", "95.6 GiB", "right", ""),
    ("gb-gib", "95.6", "near", "data sheet"), ("even-share", "48.8", "near", "GB and GiB"),
    ("even-share", "48.8 GB", "right", ""), ("gb-gib", "110.2", "near", "GB and GiB"),
    ("active-share", "3.75 %", "right", ""), ("active-share", "0.0375", "near", "per cent"),
    ("all-reduce", "74.3 \u00b5s", "right", ""), ("fewest-cards", "17 cards", "right", ""),
    ("fewest-cards", "16", "near", "Round up"),
    ("kv-per-token", "", "unread", "Type a number"), ("kv-per-token", "much", "unread", "does not start with"),
    ("kv-per-token", "NaN", "unread", "does not start with"), ("kv-per-token", "1e999", "unread", "too large"),
    ("kv-per-token", "27,6", "unread", "point for decimals"), ("kv-per-token", "5 apples", "unread", "apples"),
    ("kv-per-token", "<b>1</b>", "unread", "does not start with"), ("kv-per-token", "Infinity", "unread", ""),
    ("kv-per-token", ".", "unread", "does not start with"), ("kv-per-token", "1.2.3", "unread", "unit"),
]  # fmt: skip


def test_the_quiz_judges_what_people_type(book: Path, browser: Browser) -> None:
    page = opened(browser, book / "html" / "nb" / "quiz.html")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    for name, text, state, word in TYPED:
        got, said = ask(page, name, text)
        assert got == state and word in said, (name, text, got, said)
        assert "NaN" not in said and "undefined" not in said and "Infinity" not in said.replace("\u201cInfinity", "")
    assert not errors
    page.context.close()


def test_every_answer_of_the_quiz_is_right_when_typed_as_it_is_said(book: Path, browser: Browser) -> None:
    page = opened(browser, book / "html" / "nb" / "quiz.html")
    data = json.loads(page.locator("#k3-quiz-data").inner_text() or page.locator("#k3-quiz-data").text_content() or "")
    assert len(data["answers"]) == len(FORMS)
    for name, answer in data["answers"].items():
        assert ask(page, name, answer["said"])[0] == "right", (name, answer["said"])
    total = len(data["answers"])
    assert page.locator(".k3-score").inner_text() == f"{total} of {total} right, {total} tried."
    page.reload()
    assert page.locator(".k3-score").inner_text().startswith(f"{total} of {total} right")
    page.locator(".k3-restart").click()
    assert page.locator(".k3-score").inner_text() == f"0 of {total} right."
    assert page.locator("#q-kv-per-token input").input_value() == ""
    page.context.close()


def test_the_quiz_works_by_keyboard_and_without_storage(book: Path, browser: Browser) -> None:
    context = browser.new_context()
    context.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('blocked'); }})")
    page = context.new_page()
    page.goto((book / "html" / "nb" / "quiz.html").as_uri())
    form = page.locator("#q-bubbles")
    form.locator("input").focus()
    page.keyboard.type("27.3")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    hint = form.locator("#q-bubbles-hint")
    assert hint.is_visible() and form.locator(".k3-hint").get_attribute("aria-expanded") == "true"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert form.get_attribute("data-state") == "right"
    assert form.locator(".k3-said").get_attribute("role") == "status"
    label = page.locator('label[for="q-bubbles-field"]')
    assert label.inner_text() == "Your answer, in %"
    context.close()


def test_other_numbers_are_another_quiz(base: dict[str, Problem]) -> None:
    names = [quiz_data(list(found.values()))["name"] for found in (base, problems(), problems(learn_set=3))]
    assert names[0] == names[1] != names[2]
    assert all(len(FORMS[name].problem_id) for name in quiz_data(list(base.values()))["answers"])


def test_the_cheat_sheet_is_one_page(book: Path, browser: Browser) -> None:
    page = opened(browser, book / "html" / "nb" / "cheat-sheet.html")
    page.wait_for_function("!window.MathJax || !MathJax.startup || MathJax.startup.promise.then(() => true)")
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    assert page.locator(".k3-cheat mjx-container, table mjx-container").count() >= len(formulas())
    page.context.close()
