"""When it fails, and in operation: levels and cuts against the ledger, rules through promtool, the dashboard's form."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from bs4 import BeautifulSoup
from conftest import changed_data, k3_here, results_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reading_inputs import vllm_log
from test_read import SET_UP, bench

from k3lib.calibrate.against import Compared
from k3lib.calibrate.predict import numbers, speed
from k3lib.deploy.caches import Settings
from k3lib.deploy.cuts import beside_gib, cuts, runs_here
from k3lib.deploy.inverse import largest_concurrency, state_blocks
from k3lib.deploy.plan import Plan, make_plan
from k3lib.deploy.speed import Options, answer, question
from k3lib.engines.layout import parse_cluster, parse_layout
from k3lib.errors import InputError
from k3lib.facts import operating as facts
from k3lib.facts.scenario import load_scenario
from k3lib.models.model import load_model
from k3lib.operate import alerts as al
from k3lib.operate import bandwidth, diagnose, grafana, prometheus, slots, trouble, uneven
from k3lib.operate.draft import break_even
from k3lib.operate.levels import network_bytes
from k3lib.operate.watched import Watched, watched
from k3lib.reading.records import Failure
from k3lib.report import operating
from k3lib.units import GIBI

SCENARIO = load_scenario()


def plan(cluster: str = "4x8xh20-96", layout: str = "tp8,pp4", engine: str = "vllm", **changed: Any) -> Plan:
    return make_plan(load_model("kimi-k3"), parse_cluster(cluster), parse_layout(layout), engine, Settings(**changed))


@lru_cache(maxsize=8)
def one(cluster: str = "4x8xh20-96", layout: str = "tp8,pp4", engine: str = "vllm", length: int = 32768) -> Watched:
    return watched(plan(cluster, layout, engine), Options(), SCENARIO.mix, length)


@lru_cache(maxsize=8)
def filled(*what: Any) -> list[al.Filled]:
    return al.filled(one(*what))


def level(derived: str, part: str, *what: Any) -> float:
    found = next(x for x in filled(*what) if x.alert.derived == derived and x.alert.part == part)
    assert found.level is not None, found.reason
    assert found.level.at.low <= found.level.at.value <= found.level.at.high
    return found.level.at.value


# Metrics, rules and panels.

ENDED = ("_bucket", "_sum", "_count")
RISING = r"(?:rate|increase|changes)\(\s*{name}(?![\w:])(?:{{[^}}]*}})?\["


def expressions() -> list[str]:
    return [row.expr for row in (*facts.alerts(), *facts.panels())]


def test_every_metric_that_a_rule_or_a_panel_names_is_a_row_and_is_asked_for_as_what_it_is() -> None:
    asked = {(name, expr) for expr in expressions() for name in facts.named_metrics(expr)}
    assert len({name for name, _ in asked}) > 40
    for name, expr in asked:
        row = facts.metrics()[name]
        if row.type in ("histogram", "summary"):
            assert name.endswith(ENDED), name
        if row.type == "counter" or name.endswith(ENDED):
            assert re.search(RISING.format(name=re.escape(name)), expr), (name, expr)
        if name.endswith("_bucket"):
            assert "le" in expr and "histogram_quantile" in expr


def test_counters_end_in_total_and_no_name_of_an_old_version_is_there() -> None:
    for row in facts.metric_rows():
        if row.type == "counter" and row.engine in ("vllm", "sglang", "node"):
            assert row.metric.endswith("_total")
    gone = {"vllm:gpu_cache_usage_perc", "vllm:cpu_cache_usage_perc", "vllm:num_requests_swapped",
            "vllm:time_per_output_token_seconds_bucket"}  # fmt: skip
    assert not gone & set(facts.metrics())
    assert facts.metrics()["vllm:iteration_tokens_total_bucket"].type == "histogram"


@pytest.mark.parametrize(
    ("table", "old", "new", "word"),
    [
        ("metrics.csv", "vllm:num_preemptions_total", "vllm:num_preemptions", "a scrape shows it as"),
        ("alerts.csv", "vllm:kv_cache_usage_perc > {level}", "vllm:gpu_cache_usage_perc > {level}", "Did you mean"),
        ("alerts.csv", "DCGM_FI_DEV_GPU_TEMP > {level},85,80", "DCGM_FI_DEV_GPU_TEMP > {level},,80", "either a level"),
        ("panels.csv", "K3FirstTokenGoal", "K3FirstGoal", "alert 'K3FirstGoal' is not in data/alerts.csv"),
        ("troubles.csv", ",k3_issue_26 ", ",k3_issue_27 ", "k3_issue_27"),
    ],
)
def test_a_bad_row_is_named(table: str, old: str, new: str, word: str, tmp_path: Path) -> None:
    folder = changed_data(tmp_path, table, old, new)
    with pytest.raises(InputError, match=re.escape(table)) as caught:
        for load in (facts.metrics, facts.alerts, facts.panels, facts.troubles):
            load(folder)
    assert word in str(caught.value)


# Levels.


def test_above_the_level_of_the_last_request_none_fits_and_at_it_one_does() -> None:
    here = one()
    caches = here.plan.caches
    assert caches
    blocks = caches.kv_tokens_physical // caches.block_tokens
    each = -(-here.tokens // caches.block_tokens) + state_blocks(here.plan)
    assert blocks // each == largest_concurrency(here.plan, here.tokens)
    used = level("cache_last_request", "vllm") * blocks
    assert round(used) + each == blocks
    assert 0.5 < level("cache_growth", "vllm") < 1


def test_the_levels_of_two_pools_are_those_of_one_request_in_each() -> None:
    what = ("4x8xh20-96", "tp8,pp4", "sglang")
    caches = one(*what).plan.caches
    assert caches
    assert level("states_last_request", "sglang", *what) == pytest.approx(1 - 4 / caches.state_slots)
    assert level("tokens_last_request", "sglang", *what) == pytest.approx(1 - one(*what).tokens / caches.kv_tokens)
    assert level("pool_low", "sglang", *what) <= caches.kv_tokens


def test_levels_of_gauges_from_0_to_1_lie_there() -> None:
    for what in ((), ("4x8xh200", "tp32,ep32"), ("4x8xh20-96", "tp8,pp4", "sglang")):
        for found in al.kept(filled(*what)):
            compared = re.findall(r"(\S+) [<>]=? \{level\}", found.alert.expr)
            if any(facts.metrics()[n].unit == "1" for c in compared for n in facts.named_metrics(c)):
                assert found.level and 0 <= found.level.at.value <= 1, found.alert.alert


def test_goals_and_speeds_are_those_of_the_workload_and_the_prediction() -> None:
    here = one()
    assert here.workload.workload_id == "online-chat"  # the largest share of those with goals
    assert level("ttft_goal", "vllm") == here.workload.ttft_s
    assert level("tpot_goal", "vllm") * 1000 == here.workload.tpot_ms
    assert level("tpot_high", "vllm") * 1000 == pytest.approx(speed(here.asked).tpot_ms.high)
    goal = next(x for x in filled() if x.alert.derived == "ttft_goal" and x.alert.part == "vllm")
    assert goal.level and (goal.level.at.low, goal.level.at.high) == (2.5, 5.0)  # bounds of the histogram
    set_by_reader = watched(plan(), Options(), SCENARIO.mix, 32768, ttft_goal_s=7.0).workload
    assert set_by_reader.ttft_s == 7.0


def test_a_workload_that_does_not_fit_gives_way_to_one_that_does() -> None:
    assert watched(plan(), Options(), "coding-agent:100", 32768).workload.workload_id != "coding-agent"
    long = watched(plan(), Options(), "coding-agent:100", 131072)
    assert (long.workload.workload_id, long.plan.settings.max_model_len) == ("coding-agent", 131072)
    assert one(length=1024).plan.settings.max_model_len == one(length=1024).tokens


def test_what_a_token_sends_between_servers() -> None:
    row = 7168 * 2
    assert network_bytes(plan()) == 3 * 10 * row  # three hops, each of ten rows of attention residuals
    assert network_bytes(plan(layout="tp32,ep32")) == 93 * 2 * 2 * 3 * row
    assert network_bytes(plan("4x8xh200", "tp8,dp4,ep32")) == 0
    assert level("network_bytes", "node-vllm") == pytest.approx(network_bytes(plan()) / 10)


def test_an_alert_without_a_level_says_why_and_is_in_no_file() -> None:
    found = {(x.alert.derived, x.alert.part): x for x in filled("4x16xa3-910c", "tp16,pp4")}
    assert "without the network" in found["network_bytes", "node-vllm"].reason
    assert "slice of every expert" in found["balance", "sglang"].reason
    with pytest.raises(ValueError, match="has no level"):
        found["network_bytes", "node-vllm"].expr  # noqa: B018
    assert "K3NetworkFellBack" not in json.dumps(prometheus.rules(found.values()))
    assert level("balance", "sglang", "4x8xh20-96", "tp32,ep32", "sglang") < 1


def test_a_stall_waits_longer_than_the_longest_prompt_takes() -> None:
    """On a plan whose longest request takes minutes to read, and on one whose takes seconds."""
    long = next(x for x in al.filled(one("4x8xh20-96", "tp8,pp4", "vllm", 1_000_000)) if x.alert.alert == "K3Stall")
    short = next(x for x in filled() if x.alert.alert == "K3Stall")
    for found in (long, short):
        assert found.level and found.for_min > found.level.at.value
    assert long.for_min > short.for_min == short.alert.for_min


def test_a_draft_pays_above_its_break_even_and_not_below() -> None:
    here = one("4x8xh200", "tp32,ep32")
    found = break_even(here, 7, 8)
    assert found and found.layout == "tp32,ep32" and found.length.low < found.length.value < found.length.high
    assert 1 < found.length.value < 8
    with_draft = replace(here, plan=plan("4x8xh200", "tp32,ep32", draft_tokens=7))
    tps = {}
    for name, made, acceptance in (("none", here.plan, 1.0), ("above", with_draft.plan, found.length.value * 1.2),
                                   ("below", with_draft.plan, found.length.value / 1.2)):  # fmt: skip
        load = replace(here.asked.load, concurrency=8, acceptance=acceptance)
        tps[name] = answer(question(made, load), numbers()).tpot_ms
    assert tps["above"] < tps["none"] < tps["below"]


# Trouble.


def test_cuts_give_back_what_the_ledger_has() -> None:
    made = plan()
    by = {cut.key: cut for case in ("profiling", "pools", "service") for cut in trouble.helpful(made, case)}
    share = 0.05 * made.capacity / GIBI
    assert by["lower-share"].beside_gib == pytest.approx(share) == pytest.approx(-by["lower-share"].gives_gib)
    assert by["eager"].beside_gib == pytest.approx(2.4) and by["eager"].gives_gib == 0
    assert by["shorter"].concurrency > 3 * (made.caches.max_concurrency if made.caches else 0)
    assert "fp8-cache" not in by and not runs_here(made, "fp8-cache")
    assert runs_here(plan("4x8xb300"), "fp8-cache")
    value, low, high = beside_gib(made)
    assert low < value < high < 0.1 * made.capacity / GIBI


def test_lighter_layouts_are_lighter() -> None:
    own = trouble.at_load(plan("2x8xh200", "tp16"))
    found = trouble.lighter(plan("2x8xh200", "tp16"))
    assert found[0].layout == "tp8,pp2" or found[0].fits
    assert all(x.peak_gib < own.peak_gib for x in found) and len({x.layout for x in found}) == len(found)
    assert trouble.padding_gib(plan("2x8xh200", "tp16")) == pytest.approx((120.54e9 - 90.40e9) / GIBI, rel=0.01)


def test_a_failure_belongs_to_the_stage_that_its_log_names() -> None:
    def failure(kind: Any, stage: Any) -> Failure:
        return Failure(kind, stage, "", 1)

    tight = plan("1x8xh200", "tp8")
    assert trouble.case_of(failure("refused", "pools"), tight) == "pools"
    assert trouble.case_of(failure("out of memory", "graphs"), tight) == "profiling"
    assert trouble.case_of(failure("out of memory", "unknown"), tight) == "load"
    assert trouble.case_of(failure("out of memory", "unknown"), plan()) == "service"
    assert trouble.failure_lines(tight, failure("crash", "service")) == []
    lines = trouble.failure_lines(tight, failure("out of memory", "load"))
    assert "nearest that fits: tp8,pp2 on 2x8xh200" in "\n".join(lines)
    assert {row.case for row in facts.troubles()} == set(trouble.CASES)
    known = {key for row in facts.troubles() for key in row.cuts}
    assert len(cuts(plan(prefix_caching=True), known)) == len(known)


def test_the_best_partition_of_32_h100_is_the_one_that_was_run() -> None:
    """Source: llmd_k3_h100, VLLM_PP_LAYER_PARTITION=24,23,23,23."""
    made = plan("4x8xh100")
    assert uneven.sizes(made) == (23, 23, 24, 23) and uneven.sizes(uneven.evened(made)) == (24, 23, 23, 23)
    assert uneven.evened(plan("4x8xh200", "tp32,ep32")) == plan("4x8xh200", "tp32,ep32")


@settings(max_examples=12)
@given(st.sampled_from(["tp8,pp2", "tp4,pp4", "tp8,pp4", "tp2,pp8"]), st.sampled_from(["vllm", "sglang"]))
def test_moving_layers_keeps_their_number_and_never_tightens(layout: str, engine: str) -> None:
    made = plan("4x8xh200", layout, engine)
    even = uneven.evened(made)
    assert sum(uneven.sizes(even)) == 93
    assert even.stages[even.tightest].free[0] >= made.stages[made.tightest].free[0]


def test_pools_end_together_at_the_best_ratio() -> None:
    two, why = slots.pooled(plan())
    assert two and not why
    held = {x.what: x for x in (*slots.by_ratio(two, 14378), *slots.by_setting(two, 14378))}
    best = held[slots.BEST]
    assert best.by_states == pytest.approx(best.by_tokens, rel=0.03)
    assert all(x.requests <= best.requests * 1.03 for name, x in held.items() if name.startswith("ratio"))
    assert held["ratio 0.05"].limit == "states" and held["ratio 2"].limit == "tokens"
    assert held["strategy no_buffer"].by_states > held["strategy extra_buffer"].by_states
    assert slots.pooled(plan("4x8xh200", "tp8,dp4,ep32"))[1]


def test_a_weaker_network_gives_less_and_a_sound_one_all() -> None:
    asked = one("4x8xh20-96", "tp32,ep32").asked
    shares = [bandwidth.slower_network(asked, share).share for share in (1.0, 0.5, 0.1)]
    assert shares[0] == 1 and shares == sorted(shares, reverse=True) and shares[-1] < 1
    assert bandwidth.slower_network(asked, latency=10).share < bandwidth.slower_network(one().asked, latency=10).share


def test_suspects_explain_the_run_and_those_within_their_range_come_first() -> None:
    asked = one().asked
    found = diagnose.suspects(asked, 2.0)
    total = sum(x.part.ms.value for x in found)
    for x in found:
        assert x.times == pytest.approx(1 + total / x.part.ms.value)
        assert diagnose.output_left(x.part.share.value, x.times) == pytest.approx(0.5)
    assert found[0].term == "experts" and all(x.look for x in found)
    order = [x.within for x in diagnose.suspects(asked, 1.05)]
    assert order[0] and order == sorted(order, reverse=True)
    with pytest.raises(ValueError, match="not slower"):
        diagnose.suspects(asked, 1.0)


def test_a_run_is_slow_only_beyond_its_range() -> None:
    def run(tpot: float, output: float = 100.0) -> list[Compared]:
        return [Compared("output", "tok/s", output, 100, 80, 125),
                Compared("time per output token", "ms", tpot, 50, 40, 62)]  # fmt: skip

    assert diagnose.slower_by(run(100)) == 2 and diagnose.slower_by(run(61)) == 1
    assert diagnose.slower_by(run(100)[:1]) == 1 and diagnose.slower_by(run(0, 50)[:1]) == 2
    assert diagnose.slower_line(one().asked, run(61)) == ""
    line = diagnose.slower_line(one().asked, run(100))
    assert line.startswith("slower than predicted by 2.00 times") and "experts" in line and "first look at" in line


def test_k3_read_names_what_to_cut_and_where_to_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K3_OWN", str(tmp_path / "own"))
    slow = k3_here(capsys, "read", str(bench(tmp_path, 8, 100.0, 76.0, 3000.0)), *SET_UP)
    assert slow.returncode == 0 and "slower than predicted by" in slow.stdout
    sound = k3_here(capsys, "read", str(bench(tmp_path, 8, 339.0, 22.7, 890.0)), *SET_UP)
    assert "slower than predicted" not in sound.stdout
    log = tmp_path / "server.log"
    start = vllm_log().split("Available KV cache memory")[0].rsplit("\n", 1)[0]
    log.write_text(start + "\nValueError: No available memory for the cache blocks.\n", encoding="utf-8")
    done = k3_here(capsys, "read", str(log), "--model", "kimi-k3", "--cluster", "2x8xh200", "--json")
    (read,) = json.loads(done.stdout)["readings"]
    assert any("GiB for caches" in line for line in read["advice"]), read


# The files.


@lru_cache(maxsize=1)
def texts() -> dict[str, str]:
    return operating.texts(SCENARIO)


def promtool() -> str:
    """Prometheus's own checker. Its absence is a failure, never a skip."""
    path = shutil.which("promtool", path=f"{Path(sys.prefix) / 'bin'}") or shutil.which("promtool")
    assert path, "no promtool on this machine: run 'make test' as root, or install Debian's package prometheus"
    return path


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run([promtool(), *command], capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def case(rules: Mapping[str, Any], alert: str, part: str, series: Mapping[str, str], fires: bool,
         labels: Mapping[str, str]) -> dict[str, Any]:  # fmt: skip
    """A test of promtool: the series for an hour, and whether the alert of a part then fires."""
    group = next(g for g in rules["groups"] if g["name"] == f"k3-{part}")
    found = next(r for r in group["rules"] if r["alert"] == alert)
    expected = {"exp_labels": {**labels, **found["labels"]}, "exp_annotations": found["annotations"]}
    return {
        "interval": "1m", "name": f"{alert} {fires}",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [{"eval_time": "50m", "alertname": alert, "exp_alerts": [expected] if fires else []}],
    }  # fmt: skip


def flat(value: float) -> str:
    return f"{value}+0x60"


def rising(step: float) -> str:
    return f"0+{step}x60"


K3, CARD = {"model_name": "k3", "engine": "0"}, {"gpu": "0", "Hostname": "a"}


def named(metric: str, **labels: str) -> str:
    inside = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{metric}{{{inside}}}"


def test_the_rules_pass_promtool_and_fire_when_they_should(tmp_path: Path) -> None:
    (tmp_path / prometheus.NAME).write_text(texts()[prometheus.NAME], encoding="utf-8")
    said = run("check", "rules", prometheus.NAME, cwd=tmp_path)
    rules = yaml.safe_load(texts()[prometheus.NAME])
    assert f"{sum(len(g['rules']) for g in rules['groups'])} rules found" in said
    waiting, usage, running = (named(f"vllm:{n}", **K3) for n in
                               ("num_requests_waiting", "kv_cache_usage_perc", "num_requests_running"))  # fmt: skip
    tokens, thrown = (named(f"vllm:{n}_total", **K3) for n in ("generation_tokens", "num_preemptions"))
    first = "vllm:time_to_first_token_seconds_bucket"
    late = {named(first, **K3, le="2.5"): rising(0), named(first, **K3, le="20"): rising(60),
            named(first, **K3, le="+Inf"): rising(60)}  # fmt: skip
    soon = {named(first, **K3, le=le): rising(60) for le in ("2.5", "20", "+Inf")}
    drafts, taken = (named(f"vllm:spec_decode_num_{n}_total", **K3) for n in ("drafts", "accepted_tokens"))
    model = {"model_name": "k3"}
    sent = named("node_infiniband_port_data_transmitted_bytes_total", device="mlx5_0", port="1", instance="a")
    states, queue = (named(f"sglang:{n}", **model) for n in ("mamba_usage", "num_queue_reqs"))
    tried = [
        ("K3QueueCachesFull", "vllm", {waiting: flat(3), usage: flat(0.999)}, True, K3),
        ("K3QueueAtRequestLimit", "vllm", {waiting: flat(3), usage: flat(0.999)}, False, K3),
        ("K3QueueAtRequestLimit", "vllm", {waiting: flat(3), usage: flat(0.4)}, True, K3),
        ("K3QueueCachesFull", "vllm", {waiting: flat(0), usage: flat(0.999)}, False, K3),
        ("K3CachesOvercommitted", "vllm", {usage: flat(0.97)}, True, K3),
        ("K3CachesOvercommitted", "vllm", {usage: flat(0.90)}, False, K3),
        ("K3Preemptions", "vllm", {thrown: rising(2)}, True, K3),
        ("K3Preemptions", "vllm", {thrown: rising(0.01)}, False, K3),
        ("K3Stall", "vllm", {running: flat(5), tokens: rising(0)}, True, model),
        ("K3Stall", "vllm", {running: flat(5), tokens: rising(900)}, False, model),
        ("K3Stall", "vllm", {running: flat(0), tokens: rising(0)}, False, model),
        ("K3FirstTokenGoal", "vllm", late, True, model),
        ("K3FirstTokenGoal", "vllm", soon, False, model),
        ("K3DraftCostsMoreThanItGives", "vllm", {drafts: rising(60), taken: rising(30)}, True, model),
        ("K3DraftCostsMoreThanItGives", "vllm", {drafts: rising(60), taken: rising(240)}, False, model),
        ("K3StatePoolFull", "sglang", {states: flat(0.999), queue: flat(1)}, True, model),
        ("K3StatePoolFull", "sglang", {states: flat(0.9), queue: flat(1)}, False, model),
        ("K3CardHot", "dcgm", {named("DCGM_FI_DEV_GPU_TEMP", **CARD): flat(91)}, True, CARD),
        ("K3CardHot", "dcgm", {named("DCGM_FI_DEV_GPU_TEMP", **CARD): flat(70)}, False, CARD),
        ("K3CardMemoryShort", "dcgm", {named("DCGM_FI_DEV_FB_FREE", **CARD): flat(400)}, True, CARD),
        ("K3NetworkFellBack", "node-vllm", {sent: rising(0), tokens: rising(60_000)}, True, {}),
        ("K3NetworkFellBack", "node-vllm", {sent: rising(60_000 * 430_080), tokens: rising(60_000)}, False, {}),
        ("K3TargetDown", "prometheus", {named("up", job="k3", instance="a"): flat(0)}, True,
         {"job": "k3", "instance": "a"}),
        ("K3TargetDown", "prometheus", {named("up", job="k3", instance="a"): flat(1)}, False, {}),
    ]  # fmt: skip
    tests = {"rule_files": [prometheus.NAME], "evaluation_interval": "1m",
             "tests": [case(rules, alert, part, series, fires, labels)
                       for alert, part, series, fires, labels in tried]}  # fmt: skip
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(tests), encoding="utf-8")
    assert "SUCCESS" in run("test", "rules", "tests.yml", cwd=tmp_path)


def test_every_rule_says_what_to_do_and_equal_scenarios_give_equal_files() -> None:
    rules = yaml.safe_load(texts()[prometheus.NAME])
    for rule in (r for g in rules["groups"] for r in g["rules"]):
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert "{level}" not in rule["expr"] and rule["annotations"]["description"].startswith("What to do: ")
        assert rule["labels"]["severity"] in ("page", "ticket") and re.fullmatch(r"\d+m", rule["for"])
    assert operating.texts(SCENARIO) == texts()
    assert al.shown(0.00001234) == "0.00001234" and al.shown(123456.0) == "123500" and al.shown(1e9) == "1000000000"


def test_the_dashboard_is_one_that_grafana_opens() -> None:
    board = json.loads(texts()[grafana.NAME])
    assert board["schemaVersion"] >= 39 and board["title"] and board["uid"] and "id" not in board
    (variable,) = board["templating"]["list"]
    assert (variable["type"], variable["query"]) == ("datasource", "prometheus")
    panels = board["panels"]
    assert len({p["id"] for p in panels}) == len(panels) and all(isinstance(p["id"], int) for p in panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] >= 0 and at["x"] + at["w"] <= 24 and at["h"] > 0
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] == "row":
            assert panel["panels"] == []
            continue
        assert panel["type"] == "timeseries" and panel["datasource"]["uid"] == f"${{{variable['name']}}}"
        assert panel["targets"] and len({t["refId"] for t in panel["targets"]}) == len(panel["targets"])
        assert all(facts.named_metrics(t["expr"]) and t["legendFormat"] for t in panel["targets"])
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert steps[0]["value"] is None and all(isinstance(s["value"], float | int) for s in steps[1:])
    drawn = {p["title"]: p for p in panels}
    line = drawn["Level of the caches"]["fieldConfig"]["defaults"]
    assert line["unit"] == "percentunit" and line["thresholds"]["steps"][1]["value"] < 1
    assert sum(p["type"] == "row" for p in panels) == len({p.section for p in facts.panels()})


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"device": "b300", "cards": 64}, "8x8xb300"),
        ({"cards": 8}, "cannot be served"),
        ({"weights": "fp8"}, "cannot be served"),
    ],
)
def test_the_files_hold_under_other_scenarios(changed: dict[str, Any], word: str) -> None:
    found = operating.texts(load_scenario("base", changed))
    assert word in found[prometheus.NAME]
    groups = yaml.safe_load(found[prometheus.NAME])["groups"]
    assert sum(len(g["rules"]) for g in groups) > 35


@pytest.mark.parametrize(
    ("name", "changed"),
    [("trouble-shooting", {"engine": "sglang", "device": "h200"}), ("operating", {"cards": 8, "mix": "rag:100"})],
)
def test_the_pages_hold_under_other_scenarios(name: str, changed: dict[str, Any], tmp_path: Path) -> None:
    found = {key: r.value for key, r in results_of(name, tmp_path, **changed).items()}
    if name == "operating":
        assert "Another stands in its place" in str(found["operate.which"])
        assert found["operate.load.label"] != "online chat"
    else:
        assert "sglang" in str(found["trouble.name"]) and found["trouble.check.same"] is True


def test_the_pages_have_a_section_for_each_case_and_hand_out_the_files(book: Path) -> None:
    page = BeautifulSoup((book / "html" / "nb" / "trouble-shooting.html").read_text(encoding="utf-8"), "html.parser")
    headings = {h.get_text().strip("#\n ") for h in page.find_all("h2")}
    assert set(trouble.CASES.values()) <= headings
    for name, text in texts().items():
        assert (book / "downloads" / name).read_text(encoding="utf-8") == text
        (handed,) = (book / "html" / "_downloads").rglob(name)
        assert handed.read_text(encoding="utf-8") == text
