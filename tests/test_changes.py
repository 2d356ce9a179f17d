"""Two scenarios or books beside each other, a reader's own prices in a build, and what a changed fact runs again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3lib import cli
from k3lib.facts.paths import DATA, ROOT
from k3lib.facts.price_parameters import PRICES_FILE, current, parsed
from k3lib.facts.scenario import in_words, load_scenario
from k3lib.report import build as job
from k3lib.report import changes as ch
from k3lib.results import Result, make, to_json

HEADER = (DATA / "prices.csv").read_text(encoding="utf-8").splitlines()[0]
OWN = f"{HEADER}\nserver8.h20-96,1500000,1600000,1700000,CNY/server,CNY,cn,2026-11,street,assumed,own_price,a quote\n"


def one(key: str, value: float | str, unit: str = "CNY") -> Result:
    text = isinstance(value, str)
    return make(key, value, unit="" if text else unit, grade="derived", low=None if text else value,
                high=None if text else value, sources=["k3lib_assumed"])  # fmt: skip


BEFORE = {r.key: r for r in (one("a.same", 1.0), one("a.half", 2.0), one("a.more", 10.0), one("a.gone", 1.0),
                             one("recommend.x.choice", "own:h20x32"), one("a.zero", 0.0))}  # fmt: skip
AFTER = {r.key: r for r in (one("a.same", 1.0), one("a.half", 1.0), one("a.more", 11.0), one("a.new", 1.0),
                            one("recommend.x.choice", "api:k3@moonshot"), one("a.zero", 3.0))}  # fmt: skip


def test_what_moved_most_comes_first_and_choices_are_apart() -> None:
    found = ch.compare(BEFORE, AFTER)
    assert [m.key for m in found.moved] == ["a.half", "a.more", "a.gone", "a.new", "a.zero", "recommend.x.choice"]
    assert [m.change for m in found.moved] == [pytest.approx(-0.5), pytest.approx(0.1), None, None, None, None]
    assert [(c.before, c.after) for c in found.choices] == [("own:h20x32", "api:k3@moonshot")]
    assert found.same == 1
    assert ch.compare(BEFORE, BEFORE).moved == ()


@given(st.dictionaries(st.sampled_from(["k.a", "k.b", "k.c"]), st.floats(-1e9, 1e9)),
       st.dictionaries(st.sampled_from(["k.a", "k.b", "k.c"]), st.floats(-1e9, 1e9)))  # fmt: skip
def test_every_result_is_the_same_or_differs(a: dict[str, float], b: dict[str, float]) -> None:
    before, after = ({k: one(k, v) for k, v in part.items()} for part in (a, b))
    found = ch.compare(before, after)
    assert len(found.moved) + found.same == len({*a, *b})
    back = ch.compare(after, before)
    assert {m.key for m in back.moved} == {m.key for m in found.moved}


def test_inputs_that_differ_are_named_with_prices_one_by_one() -> None:
    base = load_scenario()
    other = load_scenario("base", {"cards": 64, "h20_server_price_cny": "1.5e6", "cny_per_usd": 6.9})
    found = {i.name: (i.before, i.after) for i in ch.inputs(base.model_dump(), other.model_dump())}
    assert found == {"cards": (32, 64), "h20_server_price_cny": (None, "1.5e6"), "cny_per_usd": (None, "6.9")}
    assert in_words(base) == "the base scenario"
    assert in_words(other) == ("the base scenario with cards = 64, prices = h20_server_price_cny:1.5e6;cny_per_usd:6.9")


def test_a_later_price_takes_the_place_of_an_earlier() -> None:
    found = load_scenario("base", {"prices": "cny_per_usd:6.6", "cny_per_usd": 6.9})
    assert parsed(found.prices) == {"cny_per_usd": "6.9"}
    assert current(found.prices)["fx.cny_per_usd"].default == 6.9


def test_two_books_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, results in (("a", BEFORE), ("b", AFTER)):
        (tmp_path / f"{name}.json").write_text(to_json(results), encoding="utf-8")
    assert cli.main(["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 0
    printed = capsys.readouterr().out
    assert "recommend.x.choice: own:h20x32 -> api:k3@moonshot" in printed
    assert "6 results differ, 1 are the same" in printed and "a.half: 2 -> 1 CNY (-50.0%)" in printed
    assert cli.main(["compare", "--json", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"inputs", "moved", "choices", "same"} and len(found["moved"]) == 6
    assert cli.main(["compare", str(tmp_path / "a.json"), str(tmp_path / "a.json")]) == 0
    assert "every recommendation stays" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("a", "words"), [("bsae", "Did you mean 'base'"), ("nowhere.json", "no such file"), ("x.yaml", "no such file")]
)
def test_what_cannot_be_compared_is_named(a: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", a, "base"]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_two_scenarios_are_run_and_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(job, "results_of", lambda s: BEFORE if s == load_scenario() else AFTER)
    assert cli.main(["compare", "base", "h20-141"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("device: h20-96 -> h20-141\n")


def test_a_file_of_prices_goes_into_the_book_by_name_and_content_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(OWN, encoding="utf-8")
    scenario, path = job.with_price_file(load_scenario(), file)
    assert path == file and scenario.price_file.startswith("mine.csv ") and str(tmp_path) not in scenario.price_file
    monkeypatch.setenv(PRICES_FILE, str(file))
    assert current("", scenario.price_file)["server8.h20-96"].default == 1_600_000
    assert current("h20_server_price_cny:1.5e6", scenario.price_file)["server8.h20-96"].default == 1_500_000
    assert current()["server8.h20-96"].default == 1_200_000
    file.write_text(OWN.replace("1600000", "1650000"), encoding="utf-8")
    assert job.with_price_file(load_scenario(), file)[0].price_file != scenario.price_file
    monkeypatch.delenv(PRICES_FILE)
    assert current("", str(file))["server8.h20-96"].default == 1_650_000
    assert job.with_price_file(load_scenario("base", {"price_file": str(file)}))[1] == file


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("1600000", "-1"), "default"),
        (("1500000", "1800000"), "is above default"),
        (("server8.h20-96", "server8.h20-69"), "Did you mean 'server8.h20-96'"),
        (("CNY/server", "USD/server"), "currency"),
        (("1500000,1600000,1700000", "1500,1600,1700"), "thousand yuan"),
        (("1600000", "nan"), "default"),
        (("own_price", "nobody"), "source 'nobody'"),
    ],
)
def test_a_bad_file_of_prices_stops_a_build_with_one_line(
    change: tuple[str, str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(OWN.replace(*change), encoding="utf-8")
    assert cli.main(["build", "--prices", str(file), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1 and "mine.csv" in error
    assert not (tmp_path / "out" / "html").exists()


def test_a_process_says_which_facts_it_reads(tmp_path: Path) -> None:
    """What a notebook has not opened cannot make it run again."""
    code = ("from k3lib import kept; kept.watch()\nfrom k3lib.facts.workloads import workloads; workloads()\n"
            "print(*kept.reads())")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    read = set(done.stdout.split())
    assert {"workloads.csv", "workload_labels.csv", "sources.csv"} <= read
    assert "prices.csv" not in read and "benchmarks.csv" not in read


def test_libraries_load_without_a_look_at_a_fact(tmp_path: Path) -> None:
    """A server of notebooks loads them before it knows for which; a fact read then would be one of every notebook."""
    code = ("import importlib; from k3lib import kept; kept.watch()\nfrom k3lib.report.serve import LOADED\n"
            "for name in LOADED: importlib.import_module(name)\nprint(kept.reads())")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.stdout.strip() == "[]"


def test_a_scenario_that_sets_no_price_does_not_depend_on_prices(tmp_path: Path) -> None:
    """Else each price would make every notebook run again."""
    code = ("from k3lib import kept; kept.watch()\nfrom k3lib.facts.scenario import load_scenario\n"
            "load_scenario('base', {'cards': 64})\nprint(*kept.reads())")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert "price_parameters.csv" in done.stdout.split() and "prices.csv" not in done.stdout.split()
