"""A scenario's clusters, workloads on them kept on disk, the world that a choice rests on, the comparison's words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3lib import kept
from k3lib.choose import study as sy
from k3lib.choose.bills import status
from k3lib.choose.exchange import all_to_all
from k3lib.choose.scene import Scene, scene
from k3lib.choose.study import Entry, Seen, entry
from k3lib.choose.world import world
from k3lib.errors import InputError
from k3lib.facts.clusters import cluster, clusters
from k3lib.facts.paths import ROOT
from k3lib.facts.planned import fact_of, planned
from k3lib.facts.scenario import load_scenario
from k3lib.facts.workloads import with_goals, workloads
from k3lib.models.model import Model, load_model
from k3lib.ranges import Range, over, point
from k3lib.report import compare as cp
from k3lib.results import make

BASE = load_scenario()


@pytest.fixture(scope="module")
def k3() -> Model:
    return load_model("kimi-k3")


@pytest.fixture(scope="module")
def base() -> Scene:
    names = ("cards", "cards_per_node", "device", "nics", "superpod", "engine", "weights", "ttft_goal_s",
             "tpot_goal_ms")  # fmt: skip
    return scene(**{name: getattr(BASE, name) for name in names})


def test_a_plan_is_the_named_cluster_of_its_shape_and_network_or_its_own() -> None:
    assert planned("4x8xh20-96", 8) == cluster("h20x32")
    assert planned("4x8xh20-96", 4) == cluster("h20x32-4nic")
    own = planned("6x8xh20-96", 8)
    assert (own.cluster_id, own.cards, own.domain_cards, own.evidence) == ("h20-96-6x8-8nic", 48, 8, "kin")
    assert own.cluster_id not in clusters()
    power = fact_of(own, "power")
    assert power is not None and power.grade == "assumed"
    assert power.value == pytest.approx(fact_of(cluster("h20x32"), "power").value * 48 / 32)  # type: ignore[union-attr]
    unknown = planned("4x8xb300", 8)
    assert unknown.evidence == "none" and fact_of(unknown, "power") is None
    assert {row.status for row in status(unknown).values()} == {"no"}
    for shape, words in (("4x8xh20-69", "h20-69"), ("4x8", "NODESxCARDSxDEVICE"), ("0x8xh20-96", "NODESxCARDSxDEVICE")):
        with pytest.raises(InputError, match=words):
            planned(shape, 8)


def test_a_scene_has_its_own_two_and_every_superpod_once(base: Scene) -> None:
    names = [row.cluster_id for row in base.clusters]
    assert names[0] == "h20x32" and len(names) == len(set(names))
    assert {row.cluster_id for row in clusters().values() if row.kind != "servers"} <= set(names)
    assert base.superpod.cluster_id == BASE.superpod


def test_goals_of_a_scenario_take_the_place_of_each_workloads_own() -> None:
    chat = workloads()["online-chat"]
    assert with_goals(chat, 0, 0) == chat
    other = with_goals(chat, 7, 0)
    assert (other.ttft_s, other.tpot_ms) == (7, chat.tpot_ms)
    assert with_goals(workloads()["offline-batch"], 0, 80).tpot_ms == 80


def test_an_entry_is_kept_and_made_anew_when_what_it_comes_from_changes(
    k3: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kept.FOLDER, str(tmp_path))
    made: list[str] = []
    monkeypatch.setattr(sy, "_entry", lambda c, w, *rest: made.append(w.workload_id) or small_entry(c.cluster_id))
    row, load = cluster("h20x32"), workloads()["rag"]
    first = entry(row, load, k3)
    assert entry(row, load, k3) == first and made == ["rag"]
    entry(row, with_goals(load, 9, 0), k3)
    entry(cluster("h20x32-4nic"), load, k3)
    entry(row, load, load_model("kimi-k3", "fp8"))
    assert len(made) == 4
    entry(row.model_copy(update={"label": "another name"}), load, k3)
    assert len(made) == 4
    for path in tmp_path.glob("*.json"):
        path.write_text(json.dumps({"cluster_id": 3}), encoding="utf-8")
    assert entry(row, load, k3) == first and len(made) == 5


def test_an_entry_is_named_by_all_code_that_makes_it() -> None:
    """A module of the model that is loaded for an entry and is not in its name would leave a stale answer."""
    code = "import sys, k3lib.choose.study; print(*(m.__file__ for n, m in sys.modules.items() if n[:5] == 'k3lib'))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT,
                            env={**os.environ, "PYTHONPATH": str(ROOT)}).stdout.split()  # fmt: skip
    named = set(sy._files())
    parts = {"account", "models", "engines", "deploy", "calibrate", "choose"}
    makes = {Path(f) for f in loaded if Path(f).parent.name in parts and Path(f).name != "__init__.py"}
    assert len(makes) > 40 and makes <= named, makes - named
    assert {ROOT / "k3lib" / "evaluate.py", ROOT / "k3lib" / "ranges.py"} <= named


def test_an_entry_is_the_same_in_every_process(k3: Model, tmp_path: Path) -> None:
    code = ("import json; from dataclasses import asdict; from k3lib.choose.study import entry\n"
            "from k3lib.facts.clusters import cluster; from k3lib.facts.workloads import workloads\n"
            "from k3lib.models.model import load_model\n"
            "found = entry(cluster('h20x32'), workloads()['rag'], load_model('kimi-k3'))\n"
            "print(json.dumps(asdict(found)))")  # fmt: skip
    said = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), kept.FOLDER: str(tmp_path / seed), "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert said[0] == said[1] and json.loads(said[0])["workload_id"] == "rag"


def small_entry(name: str, tps: float = 100.0) -> Entry:
    there = Seen(Range(tps, tps / 2, tps * 2), Range(50, 40, 60), Range(2000, 1000, 4000), "experts", "measured")
    return Entry(name, "rag", 32, 8, "tp8", "", there, 1, 10, 3, 99, True, False, 4, "tp8", there, ("k3lib_assumed",))


def test_a_kept_value_that_cannot_be_read_is_none_and_the_oldest_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kept.FOLDER, str(tmp_path))
    assert kept.find("a") is None
    kept.keep("a", {"x": [1, "é"]})
    assert kept.find("a") == {"x": [1, "é"]}
    (tmp_path / "a.json").write_bytes(b"\xff{")
    assert kept.find("a") is None
    assert kept.digest([], 1) != kept.digest([], 2)
    monkeypatch.setenv(kept.FOLDER, "/proc/nowhere")
    kept.keep("a", 1)  # a folder that cannot be written keeps nothing, and stops nothing


def test_the_world_has_a_price_only_where_a_cluster_may_be_had(base: Scene) -> None:
    small = replace(base, workloads={"rag": base.workloads["rag"]})
    entries = {row.cluster_id: small_entry(row.cluster_id) for row in base.clusters}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scene, "entry", lambda self, row, name: entries[row.cluster_id])
        found = world(small)
    assert {key for key in found.owned if found.status[key].status == "no"} == set()
    assert ("h20x32", "cn") in found.owned and ("h20x32", "other") not in found.owned
    assert ("gb200-nvl72-64", "other") in found.owned
    money = found.owned["h20x32", "cn"]
    assert money.monthly_cny.value > 0 and money.shared_cny.value > 0
    assert found.rented["h20x32", "cn"].monthly_cny.value < money.monthly_cny.value + money.shared_cny.value
    assert {one.region for one in found.apis.values()} == {"cn", "other"}
    assert found.entries["a3x64", "rag"] is entries["a3x64"]


@given(st.floats(1, 1e5), st.floats(1, 3), st.floats(1, 1e5), st.floats(1, 3))
def test_a_ratio_of_two_ranges_holds_every_ratio_of_their_values(a: float, up: float, b: float, wide: float) -> None:
    above, below = Range(a, a / up, a * up), Range(b, b / wide, b * wide)
    r = over(above, below)
    assert r.low <= above.low / below.value <= r.high and r.low <= above.high / below.low <= r.high * (1 + 1e-12)
    assert r.low <= r.value <= r.high


def test_figures_of_an_entry_hold_together() -> None:
    row, one = cluster("h20x32"), small_entry("h20x32", 320.0)
    found = cp.figures(one, row)
    assert found["output_tps_per_card"].value == 10
    assert found["tps_per_user"] == Range(20, 1000 / 60, 25)
    power = fact_of(row, "power")
    assert power is not None
    assert found["kwh_per_mtok"].value == pytest.approx(power.value * 1e6 / 3600 / 320)
    assert found["kwh_per_mtok"].low < found["kwh_per_mtok"].value < found["kwh_per_mtok"].high
    keys = cp.publish(one, row, make)
    assert keys["fits"].value is True and keys["fits"].key == "compare.rag.h20x32.fits"
    assert keys["best_layout"].key == "search.h20x32.rag.best_layout"
    assert keys["max_concurrency"].value == 3 and keys["most_clients"].value == 4
    without = replace(one, seen=None, most=None, reason="no room", most_clients=0)
    assert set(cp.publish(without, row, make)) == {"fits", "max_context", "max_concurrency", "kv_tokens",
                                                  "most_clients", "best_layout"}  # fmt: skip
    assert cp.publish(without, row, make)["fits"].value is False


def test_words_for_goals_say_what_is_missed_and_by_how_much() -> None:
    rag, batch = workloads()["rag"], workloads()["offline-batch"]
    one = small_entry("h20x32")
    assert cp.goals(rag) == "first token within 5 s" and cp.goals(batch) == "none"
    assert cp.met(one, rag) == "met, but not at the slow end of the range"
    assert cp.met(replace(one, surely=True), rag) == "met, over the whole range"
    assert cp.met(replace(one, seen=None), rag) == "does not fit"
    assert cp.met(one, batch) == "no goals"
    late = replace(one, within=False, seen=replace(one.seen, ttft_ms=point(15_000)))
    assert cp.met(late, rag) == "missed: first token 3 times too late"
    sorted_out = cp.sorted_out({"rag": late, "offline-batch": one}, {"rag": rag, "offline-batch": batch})
    assert sorted_out == {"met": ["offline batch (there are none)"],
                          "missed": ["retrieval (first token 3 times too late)"]}  # fmt: skip
    gains, same = cp.bought({"rag": late}, {"rag": one}, {"rag": rag})
    assert gains == "It keeps to the goals of retrieval, which the smaller one misses."
    assert same == "The longest request that fits does not grow."
    assert [cp.claimed(x, 10, 20) for x in (9, 10, 19, 20)] == ["too large", "confirmed", "confirmed", "too small"]
    powers = [fact_of(cluster(name), "power") for name in ("h200x64", "h200x32")]
    assert cp.times_words(*powers) == "2.0 (1.3\u20133.1) times"
    assert cp.times_words(powers[0], None) == "an unknown multiple of"
    assert cp.listed([]) == "" and cp.listed(["a"]) == "a" and cp.listed(["a", "b", "c"]) == "a, b and c"


def test_the_measured_exchange_is_whole_or_left_out() -> None:
    inside, across, domain = (all_to_all(*which) for which in (("h200", 8), ("h200", 32), ("gb200", 64)))
    assert inside.us[128] == pytest.approx(100.85) and across.us[128] == pytest.approx(406.24)
    assert domain.us[128] == pytest.approx(86.92)
    assert list(across.us) == sorted(across.us)
    assert all_to_all("h200", 24).us == {}
