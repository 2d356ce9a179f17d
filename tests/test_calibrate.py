"""The fit, the runs that it did not see, the ranges, and what the command says of both."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest
from conftest import k3, refused
from hypothesis import given
from hypothesis import strategies as st

from k3lib.calibrate import fit as fitting
from k3lib.calibrate import own, predict, spread, store, summary, trial
from k3lib.calibrate.cells import Cell, cell, cells, observed, outside, residuals, served
from k3lib.deploy import constants as co
from k3lib.errors import InputError
from k3lib.facts import constants as facts
from k3lib.facts.benchmarks import runs
from k3lib.facts.constants import Trial
from k3lib.models.model import load_model

K3 = load_model("kimi-k3")
FIT = cells(runs())
TRIALS = store.calibration().trials


def of(group: str) -> list[Cell]:
    return [one for one in FIT if one.group == group]


PIPELINE, ONE_NIC = "4x8xh200 tp8,pp4 sglang marlin", "2x8xh200 tp16,ep16 sglang marlin"


# --- what is stored ------------------------------------------------------------


def test_the_stored_calibration_is_of_the_data_and_the_model_as_they_are() -> None:
    stored = (store.STORED / store.INPUTS).read_text().strip()
    assert stored == store.fingerprint(), "run: python -m k3lib.calibrate"


def test_a_changed_measurement_changes_the_fingerprint(tmp_path: Path) -> None:
    import shutil

    from k3lib.facts.paths import DATA

    copy = tmp_path / "data"
    shutil.copytree(DATA, copy)
    assert store.fingerprint(copy) == store.fingerprint()
    path = copy / "benchmarks.csv"
    path.write_text(path.read_text().replace("57.489", "58.489", 1))
    assert store.fingerprint(copy) != store.fingerprint()


@pytest.mark.xdist_group("calibration")
def test_fitting_again_gives_what_is_stored() -> None:
    made = store.make()
    for new, old in zip(made.fitted, store.calibration().fitted, strict=True):
        assert (new.parameter, new.scope) == (old.parameter, old.scope)
        assert new.value == pytest.approx(old.value, rel=0.02)
    for a, b in zip(made.trials, TRIALS, strict=True):
        assert (a.trial, a.run_id, a.metric) == (b.trial, b.run_id, b.metric)
        assert a.predicted == pytest.approx(b.predicted, rel=0.03)


def test_a_half_written_calibration_is_never_taken(tmp_path: Path) -> None:
    store.write(store.calibration(), tmp_path, "digest")
    assert store._inputs(tmp_path) == "digest"
    assert store._read(tmp_path).trials == TRIALS
    (tmp_path / store.INPUTS).unlink()
    assert store._inputs(tmp_path) == ""


# --- how good it is ------------------------------------------------------------


@pytest.mark.parametrize(("metric", "most"), [("output_tps", 0.08), ("tpot_ms", 0.08), ("ttft_ms", 0.20)])
def test_hopper_with_a_whole_deployment_left_out(metric: str, most: float) -> None:
    assert summary.median_error(summary.select(TRIALS, "left-out", "hopper"), metric) <= most


@pytest.mark.parametrize(("metric", "most"), [("output_tps", 0.08), ("tpot_ms", 0.08)])
def test_all_trusted_sets_after_two_cells(metric: str, most: float) -> None:
    assert summary.median_error(summary.select(TRIALS, "two-cells"), metric) <= most


def test_ranges_of_ninety_per_cent_hold_about_ninety_per_cent() -> None:
    inside, of_all = (sum(part) for part in zip(*predict.covered(TRIALS).values(), strict=True))
    assert 0.85 <= inside / of_all <= 0.97


def test_every_run_that_may_be_used_was_left_out_once() -> None:
    left = {(t.run_id, t.metric) for t in TRIALS if t.trial == "left-out"}
    assert left == {(one.run.run_id, seen.metric) for one in FIT for seen in one.observed}


def test_no_two_groups_share_a_deployment() -> None:
    deployments = {(one.run.cluster, one.run.layout, one.run.engine, one.asked.setup.kernel): one.group for one in FIT}
    assert len(set(deployments.values())) == len(deployments)


def test_what_is_left_out_cannot_be_seen_by_the_fit() -> None:
    """Measured values of the group left out are doubled: its predictions stay as they were."""
    others, inside = of(ONE_NIC), of(PIPELINE)[:3]
    falsified = [
        dataclasses.replace(one, observed=tuple(dataclasses.replace(o, value=2 * o.value) for o in one.observed))
        for one in inside
    ]
    numbers = co.table()
    honest, blind = (trial.trials([*others, *part], numbers, {}) for part in (inside, falsified))

    def predictions(rows: list[Trial]) -> list[float]:
        return [t.predicted for t in rows if t.trial == "left-out" and t.group == PIPELINE]

    assert predictions(honest) == predictions(blind) and predictions(honest)


def test_two_cells_are_one_client_and_eight_to_sixteen() -> None:
    for group in dict.fromkeys(one.group for one in FIT):
        alone, second = trial.two_cells(of(group))
        assert alone.run.concurrency == 1 and second.run.concurrency in range(8, 17)
        used = {alone.key, second.key}
        told = {t.run_id for t in TRIALS if t.trial == "two-cells" and t.group == group}
        assert told == {one.run.run_id for one in of(group) if one.key not in used}


def test_other_models_without_any_fit_to_them() -> None:
    """K2.5 and R1 on one H200 server: another model, another kernel, the same equations."""
    found: dict[str, list[float]] = {}
    numbers = predict.numbers()
    for run in runs():
        if run.model in ("kimi-k2.5", "deepseek-r1") and not outside(run) and run.tpot_ms:
            one = cell(run)
            left = residuals(one, served([one], numbers)[0])
            found.setdefault(run.model, []).append(abs(math.expm1(left["tpot_ms"])))
    assert set(found) == {"kimi-k2.5", "deepseek-r1"} and all(len(v) >= 10 for v in found.values())
    for errors in found.values():
        assert sorted(errors)[len(errors) // 2] < 0.25


# --- the fit -------------------------------------------------------------------


def test_a_fit_finds_numbers_that_made_the_runs() -> None:
    """Runs are replaced by the model's own answers under other constants; the fit recovers what they depend on."""
    numbers = co.table()
    inside = of("2x8xh200 tp8,pp2 vllm marlin")[:9]
    before = fitting.start(inside, numbers)
    key = ("layer_us", "vllm@h200")
    truth = {**numbers, **before, key: dataclasses.replace(before[key], value=110.0)}
    made = [
        dataclasses.replace(one, observed=tuple(dataclasses.replace(o, value=getattr(answer, o.column))
                                                for o in one.observed))
        for one, answer in zip(inside, served(inside, truth), strict=True)
    ]  # fmt: skip
    found = fitting.fit(made, numbers).numbers
    assert found[key].value == pytest.approx(110.0, rel=0.1)
    assert found[key].spread < before[key].spread


def test_what_the_runs_say_nothing_about_keeps_its_spread() -> None:
    found = fitting.fit(of(PIPELINE)[:1], co.table()).numbers
    assert found["skew", ""].spread == pytest.approx(co.table()["skew", ""].spread, rel=0.05)


def test_a_run_without_a_mean_is_set_beside_the_median() -> None:
    run = next(r for r in runs() if r.ttft_median_ms and not r.ttft_mean_ms and r.use == "fit")
    assert {seen.column for seen in observed(run) if seen.metric == "ttft_ms"} == {"ttft_median_ms"}


# --- ranges --------------------------------------------------------------------


@given(st.lists(st.floats(0, 100), min_size=1, max_size=60), st.floats(0.5, 0.99))
def test_the_quantile_leaves_enough_below_it(scores: list[float], level: float) -> None:
    found = spread.quantile(scores, level)
    assert found in scores
    needed = math.ceil(level * (len(scores) + 1))
    assert sum(x <= found for x in scores) >= min(needed, len(scores))


def test_ranges_widen_with_what_is_not_known() -> None:
    def width(plan: str) -> float:
        found = predict.speed(predict.asked_of(plan, "1k-1k", 32, K3)).output_tps
        assert found.low < found.value < found.high
        return found.high / found.low

    assert width("h200x16-tp8pp2") < width("h20x32-tp8pp4") < width("h20x32-tp8pp4-sglang")


def test_constants_come_from_the_nearest_thing_measured() -> None:
    numbers = predict.numbers()
    here, kin = (co.of_engine(numbers, "layer_us", "vllm", card) for card in ("h200", "h20-96"))
    assert here.how == "fitted" and kin.value == pytest.approx(here.value) and kin.spread > here.spread
    stranger = co.of_engine(numbers, "layer_us", "vllm", "a3-910c")
    assert stranger.how == "assumed" and stranger.value == co.table()["layer_us", ""].value
    assert not co.measured(numbers, "h20-96") and co.measured(numbers, "h200")


def test_a_situation_is_said_in_words() -> None:
    def words(plan: str) -> str:
        return predict.speed(predict.asked_of(plan, "1k-1k", 8, K3)).situation

    assert words("h200x16-tp8pp2") == "engine measured on h200"
    assert "never measured on h20-96, taken over from h200" in words("h20x32-tp8pp4")


# --- the reader's own ----------------------------------------------------------


def test_own_constants_take_the_place_of_fitted_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K3_OWN", str(tmp_path))
    row = next(r for r in store.calibration().fitted if (r.parameter, r.scope) == ("layer_us", "vllm@h200"))
    own.keep([row.model_copy(update={"value": 200.0, "low": 180.0, "high": 220.0, "source_id": "own"})])
    assert predict.numbers()["layer_us", "vllm@h200"].value == 200.0
    own.keep([row.model_copy(update={"scope": "vllm@h20-96", "source_id": "own"})])
    assert {r.scope for r in own.constants()} == {"vllm@h200", "vllm@h20-96"}


@pytest.mark.parametrize(
    ("change", "words"),
    [({"value": 1e9, "low": 1e8, "high": 1e10}, "over 1000 times off"), ({"unit": "ms"}, "unit ms: must be us"),
     ({"parameter": "layer_ms"}, "Did you mean 'layer_us'")],
)  # fmt: skip
def test_own_constants_that_cannot_be_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], words: str
) -> None:
    monkeypatch.setenv("K3_OWN", str(tmp_path))
    row = next(r for r in store.calibration().fitted if r.parameter == "layer_us")
    own.keep([row])
    own.keep([row.model_copy(update=change)])
    with pytest.raises(InputError, match=words):
        own.constants()


def test_an_own_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("K3_OWN", str(tmp_path / "file"))
    with pytest.raises(InputError, match="cannot be written"):
        own.keep([store.calibration().fitted[0]])


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "+1", "-1+1|cmd", "@x"])
def test_no_kept_cell_is_a_formula(text: str) -> None:
    assert own.harmless(text) == f"'{text}"
    assert own.harmless("tp8,pp2") == "tp8,pp2" and own.harmless(-1.0) == -1.0


def test_a_bad_row_among_the_readers_constants_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K3_OWN", str(tmp_path))
    own.keep([store.calibration().fitted[0]])
    path = tmp_path / "constants.csv"
    path.write_text(path.read_text().replace(",us,", ",ns,"))
    with pytest.raises(InputError, match=r"constants.csv, row 2.*unit 'ns' is not known"):
        predict.numbers()


# --- the command ---------------------------------------------------------------

PLAN = (
    "plan",
    "--cluster",
    "4x8xh20-96",
    "--layout",
    "tp8,pp4",
    "--isl",
    "1000",
    "--osl",
    "1000",
    "--concurrency",
    "32",
)


def test_plan_says_the_speed_with_its_range() -> None:
    done = k3(*PLAN, "--json")
    assert done.returncode == 0
    speed = json.loads(done.stdout)["speed"]
    for name in ("output_tps", "tpot_ms", "ttft_ms_mean", "ttft_ms_median"):
        assert 0 < speed[name]["low"] < speed[name]["value"] < speed[name]["high"]
    assert speed["dominant_term"] == "experts" and "never measured on h20-96" in speed["situation"]
    text = k3(*PLAN).stdout
    assert "output, tok/s" in text and "most of a generating step: experts" in text


def test_plan_sweeps_over_clients() -> None:
    done = k3(
        "plan", "--cluster", "2x8xh200", "--layout", "tp8,pp2", "--isl", "1000", "--osl", "1000", "--sweep", "--json"
    )
    rows = json.loads(done.stdout)["sweep"]
    assert [row["concurrency"] for row in rows] == [2**n for n in range(10)]
    rates = [row["output_tps"]["value"] for row in rows]
    assert rates[:9] == sorted(rates[:9])
    assert "clients" in k3("plan", "--cluster", "2x8xh200", "--layout", "tp8,pp2", "--isl", "1000", "--sweep").stdout


def test_no_speed_without_a_fit_nor_for_what_is_not_modelled() -> None:
    done = k3("plan", "--cluster", "1x8xh200", "--layout", "tp8", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["speed"] is None and "does not fit" in found["speed_reason"]
    draft = ("--engine", "sglang", "--draft-tokens", "7")
    drafted = json.loads(k3("plan", "--cluster", "1x8xb300", "--layout", "tp8", *draft, "--json").stdout)
    assert drafted["speed"] is None and "--acceptance-length" in drafted["speed_reason"]


@pytest.mark.parametrize(
    ("more", "words"),
    [(["--acceptance-length", "3"], ["with --draft-tokens 0", "1 to 1"]),
     (["--max-num-batched-tokens", "0"], ["--max-num-batched-tokens 0"]),
     (["--prefill-layout", "tp8"], ["--prefill-cluster"]), (["--nics", "0"], ["--nics 0", "from 1 to 64"]),
     (["--requests", "0"], ["--requests 0"]),
     (["--acceptance-length", "0.2"], ["--acceptance-length 0.2"]),
     (["--acceptance-length", "nan"], ["--acceptance-length nan"]), (["--moe-backend", "marlyn"], ["marlyn"]),
     (["--max-model-len", "500"], ["--isl 1000", "--max-model-len 500"]),
     (["--prefill-cluster", "1x8xh20-96"], ["--prefill-cluster 1x8xh20-96", "takes 32 cards"]),
     (["--prefill-cluster", "2x8xh20-96", "--prefill-layout", "tp16"], ["--prefill-cluster", "does not fit"]),
     (["--prefill-cluster", "4x8xh20"], ["device 'h20'"])],
)  # fmt: skip
def test_bad_options_of_speed(more: list[str], words: list[str]) -> None:
    refused(k3(*PLAN, *more), *words)


def test_prompts_on_cards_of_their_own() -> None:
    alone, apart = (json.loads(k3(*PLAN[:-2], "--concurrency", "64", *more, "--json").stdout)["speed"]
                    for more in ([], ["--prefill-cluster", "4x8xh20-96"]))  # fmt: skip
    assert apart["tpot_ms"]["value"] < alone["tpot_ms"]["value"]


def test_facts_that_the_fit_writes_are_rows_like_others() -> None:
    for row in store.calibration().fitted:
        assert row.low is not None and row.high is not None and row.low < row.value < row.high
        assert row.grade == "derived" and row.source_ids
    assert {r.parameter for r in store.calibration().fitted} <= {r.parameter for r in facts.assumed()}
