"""Commands that start a plan: right for the engines' own parsers, safe for a shell, and none where one would fail."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from conftest import changed_data, k3_here, refused, shown
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser

from k3lib import cli, cli_launch
from k3lib.deploy.caches import Settings
from k3lib.deploy.named import alternative
from k3lib.deploy.plan import Plan, make_plan
from k3lib.engines.layout import parse_cluster, parse_layout
from k3lib.errors import InputError
from k3lib.facts import flags
from k3lib.facts.named import plans
from k3lib.facts.paths import DATA, ROOT
from k3lib.launch import commands
from k3lib.launch.any_engine import start_of
from k3lib.launch.checks import faults
from k3lib.launch.commands import build
from k3lib.launch.kubernetes import manifests
from k3lib.launch.place import Place
from k3lib.launch.published import nested, published
from k3lib.launch.records import Launch, Option, Shell, memory
from k3lib.launch.shell import quoted, script
from k3lib.models.model import load_model
from k3lib.units import GIBI

Capture = pytest.CaptureFixture[str]
K3 = load_model("kimi-k3")
# Beside the named plans: layouts and settings that ask for every kind of start.
MORE = {
    "one-node": ("1x8xb300", "tp8", "vllm", {}),
    "rack": ("4x4xgb200", "tp16,ep16", "vllm", dict(cache_dtype="fp8")),
    "rack-dp": ("4x4xgb300", "tp4,dp4,ep16", "vllm", {}),
    "rack-sglang": ("4x4xgb300", "tp16,ep16", "sglang", {}),
    "blackwell-draft": ("1x8xb300", "tp8", "vllm", dict(draft_tokens=8)),
    "sglang-draft": ("1x8xb300", "tp8", "sglang", dict(draft_tokens=7)),
    "sglang-b200": ("2x8xb200", "tp16", "sglang", dict(cache_dtype="fp8", graphs=False)),
    "sglang-dp": ("4x8xh200", "tp32,dp2,ep32", "sglang", dict(cache_strategy="radix_off")),
    "dp-over-nodes": ("4x8xh200", "tp16,dp2,ep32", "vllm", dict(utilisation=0.95)),
    "dp-within-nodes": ("4x8xh200", "tp8,dp4,ep32", "vllm", dict(utilisation=0.95)),
    "dcp": ("4x8xh20-96", "tp8,pp4,dcp8", "vllm", dict(prefix_caching=True, graphs=False)),
    "own-partition": ("4x8xh20-96", "tp8,pp4", "vllm", dict(pp_partition=(24, 23, 23, 23), chunk_tokens=4096)),
    "bf16": ("4x8xh200", "tp8,pp4", "sglang", dict(cache_dtype="bf16", state_dtype="bfloat16")),
    "copies": ("8x8xh200", "tp8,pp4", "vllm", {}),
    "copies-of-two": ("8x8xh20-141", "tp8,pp2", "sglang", {}),
}  # fmt: skip


def planned(name: str) -> Plan:
    if name in plans():
        return alternative(name, K3, 32_768)
    cluster, layout, engine, settings = MORE[name]
    return make_plan(K3, parse_cluster(cluster), parse_layout(layout), engine, Settings(**settings))  # type: ignore[arg-type]


FITTING = [name for name in (*plans(), *MORE) if planned(name).fits]


def first_words(launch: Launch, node: int = 0) -> list[str]:
    return list(launch.commands[node].argv)


def after(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def test_every_layout_of_the_list_fits() -> None:
    assert set(MORE) <= set(FITTING) and len(FITTING) >= 25


BY_RAY = [(name, "ray") for name in FITTING if planned(name).engine.name == "vllm" and planned(name).layout.dp == 1]


@pytest.mark.parametrize(("name", "executor"), [*((name, "native") for name in FITTING), *BY_RAY])
def test_every_command_passes_the_engine_s_own_parser(name: str, executor: str) -> None:
    plan = planned(name)
    launch = build(plan, Place(executor=executor, interface="eth0"))
    assert launch.commands and not launch.reason
    for command in launch.commands:
        assert faults(command, plan.engine.name) == [], command.host


@pytest.mark.parametrize("name", FITTING)
def test_the_numbers_of_the_commands_are_the_plan_s(name: str) -> None:
    plan = planned(name)
    words = first_words(build(plan))
    names = {
        "vllm": ("--tensor-parallel-size", "--gpu-memory-utilization", "--max-model-len", "--max-num-seqs",
                 "--max-num-batched-tokens"),
        "sglang": ("--tp-size", "--mem-fraction-static", "--context-length", "--max-running-requests",
                   "--chunked-prefill-size"),
    }[plan.engine.name]  # fmt: skip
    settings = plan.settings
    chunk = settings.chunk_tokens or plan.engine.whole("chunk_tokens")
    wanted = [plan.layout.tp, plan.utilisation, settings.max_model_len, settings.max_num_seqs, chunk]
    assert [float(after(words, x)) for x in names] == [float(x) for x in wanted]
    env = {o.row.name: o.value or "" for o in build(plan).commands[0].env}
    partition = env.get("VLLM_PP_LAYER_PARTITION") or env.get("SGLANG_PP_LAYER_PARTITION")
    if plan.layout.pp == 1:
        assert partition is None
    else:
        sizes = [int(x) for x in str(partition).split(",")]
        assert sum(sizes) == 93 and sizes == [len(stage.layers) for stage in plan.stages]


def test_the_plan_of_32_cards_starts_as_the_evidence_says() -> None:
    launch = build(planned("h20x32-tp8pp4"), Place(hosts=("a", "b", "c", "d"), model_path="/data/k3"))
    assert [c.host for c in launch.commands] == ["a", "b", "c", "d"]
    words = [list(c.argv) for c in launch.commands]
    assert words[0][:3] == ["vllm", "serve", "/data/k3"]
    assert [after(w, "--node-rank") for w in words] == ["0", "1", "2", "3"]
    assert all(after(w, "--master-addr") == "a" and after(w, "--nnodes") == "4" for w in words)
    assert ["--headless" in w for w in words] == [False, True, True, True]
    assert ["--tool-call-parser" in w for w in words] == [True, False, False, False]
    assert after(words[0], "--moe-backend") == "marlin" and after(words[0], "--attention-backend") == "FLASHMLA"
    assert not {"--quantization", "--swap-space", "--enforce-eager"} & set(words[0])
    assert any("no public run of K3 on H20" in row.reason for row in launch.warnings)


def test_kinds_of_start_over_several_nodes() -> None:
    over = build(planned("dp-over-nodes"))
    assert (
        len(over.commands) == 4 and "--data-parallel-backend" in first_words(over) and "--nnodes" in first_words(over)
    )
    within = build(planned("dp-within-nodes"))
    assert "--nnodes" not in first_words(within) and "--data-parallel-start-rank" not in first_words(within)
    assert [after(list(c.argv), "--data-parallel-start-rank") for c in within.commands[1:]] == ["1", "2", "3"]
    joined = build(planned("h20x32-tp8pp4"), Place(executor="ray"))
    assert joined.commands[0].before == (("ray", "start", "--head", "--port", "6379"),)
    assert joined.commands[3].before == (("ray", "start", "--address", "NODE0:6379", "--block"),)
    assert joined.commands[3].argv == () and script(joined.commands[3]).endswith("--block")
    sglang = build(planned("h20x32-tp8pp4-sglang"), Place(hosts=("fe80::1", "fe80::2", "fe80::3", "fe80::4")))
    assert after(first_words(sglang, 2), "--dist-init-addr") == "[fe80::1]:20000"


def test_copies_of_the_model_lie_on_servers_or_cards_of_their_own() -> None:
    two = build(planned("copies"))
    assert (two.copies, two.nodes, len(two.commands)) == (2, 4, 8)
    assert after(list(two.commands[5].argv), "--master-addr") == "NODE4"
    small = make_plan(K3, parse_cluster("1x16xb300"), parse_layout("tp8"), "sglang", Settings())
    halves = build(small).commands
    assert [next(o.value for o in c.env if o.row.name == "CUDA_VISIBLE_DEVICES") for c in halves] == [
        "0,1,2,3,4,5,6,7", "8,9,10,11,12,13,14,15"]  # fmt: skip
    assert [after(list(c.argv), "--port") for c in halves] == ["30000", "30001"]
    with pytest.raises(InputError, match="do not fill servers of 6"):
        build(make_plan(K3, parse_cluster("8x6xh200"), parse_layout("tp8,pp2"), "vllm", Settings()))


@pytest.mark.parametrize(
    ("cluster", "layout", "engine", "settings", "place", "words"),
    [
        ("2x8xh20-96", "tp16,ep16", "vllm", {}, {}, "does not fit: weights need 101.7 GiB"),
        ("4x8xh20-96", "tp8,pp4", "vllm", dict(cache_dtype="fp8"), {}, "FP8 query in prefill"),
        ("4x8xh20-96", "tp8,pp4", "vllm", {}, dict(experts="trtllm"), "needs a Blackwell card"),
        ("4x8xh20-96", "tp8,pp4", "sglang", {}, dict(executor="ray"), "use --executor native"),
        ("4x8xh200", "tp8,dp4,ep32", "vllm", dict(utilisation=0.95), dict(executor="ray"), "Ray and data parallelism"),
        ("8x8xa3-910c", "tp8,pp4", "vllm", {}, {}, "no flags of this engine"),
        ("4x8xh20-96", "tp8,pp4", "sglang", dict(cache_dtype="fp8_ds_mla"), {}, "does not list that cache"),
        ("4x8xh20-96", "tp8,pp4,ep4", "vllm", {}, {}, "ep 4 must be tp x dp"),
    ],
)  # fmt: skip
def test_where_a_command_would_fail_there_is_a_reason(
    cluster: str, layout: str, engine: str, settings: dict[str, object], place: dict[str, str], words: str
) -> None:
    launch = start_of(engine, K3, parse_cluster(cluster), layout, Settings(**settings), Place(**place))  # type: ignore[arg-type]
    assert words in launch.reason and launch.commands == () and launch.options == ()


def test_another_model_has_no_flags_yet() -> None:
    model = load_model("kimi-k2-instruct")
    launch = build(make_plan(model, parse_cluster("4x8xh200"), parse_layout("tp16,pp2"), "vllm", Settings()))
    assert "collected for Kimi K3 alone" in launch.reason and not launch.commands


def test_the_memory_is_the_plan_s_ledger() -> None:
    plan = planned("h200x16-tp8pp2")
    for stage, held in zip(plan.stages, memory(plan), strict=True):
        assert held.weights_gib == stage.weights / GIBI
        assert held.used_gib.low <= held.used_gib.value <= held.used_gib.high
        inside = sum(x.bytes for x in stage.lines if not (x.outside or x.passing))
        assert inside / GIBI + held.left_gib.value == pytest.approx(plan.capacity * plan.utilisation / GIBI)
    assert [round(m.weights_gib, 2) for m in memory(plan)] == [96.49, 96.16]


def test_published_set_ups_are_shown_as_they_were() -> None:
    ascend = published("vllm-ascend", Place(hosts=("a", "b", "c", "d")))
    assert len(ascend.commands) == 4 and after(first_words(ascend), "--quantization") == "ascend"
    assert [after(list(c.argv), "--data-parallel-start-rank") for c in ascend.commands[1:]] == ["1", "2", "3"]
    tensor = published("tensorrt-llm")
    name, text = tensor.commands[0].file or ("", "")
    assert name in tensor.commands[0].program
    assert yaml.safe_load(text)["kv_cache_config"]["free_gpu_memory_fraction"] == 0.25
    assert nested({"a": 1, "b.c": 2, "b.d": 3}) == {"a": 1, "b": {"c": 2, "d": 3}}
    llama = published("llama.cpp", Place(model_path="/m/k3.gguf"))
    assert after(first_words(llama), "-ot") == "exps=CPU" and after(first_words(llama), "--model") == "/m/k3.gguf"
    assert "no K3 file" in published("ktransformers").reason
    for engine, cluster, layout, word in (("vllm-ascend", "4x8xh200", "", "no evidence"),
                                          ("tensorrt-llm", "2x8xb300", "", "is for 4 servers"),
                                          ("vllm-ascend", "4x8xa3-910c", "tp8,pp4", "in layout tp8,pp4")):  # fmt: skip
        launch = published(engine, cluster=parse_cluster(cluster), layout=layout)
        assert word in launch.reason and not launch.commands


# Everything that a shell could read as more than a word.
HOSTILE = ["; rm -rf /", "$(id)", "`id`", "a b", "'", '"', "$HOME", "a&b", "a|b", "*", "~", "\\", "#x", "{a,b}"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_values_are_quoted_or_refused(text: str) -> None:
    with pytest.raises(InputError, match="no host name or address"):
        Place(hosts=(text,))
    with pytest.raises(InputError, match="no name of an interface"):
        Place(interface=text)
    launch = build(planned("h200x16-tp8pp2"), Place(model_path=f"/data/{text}"))
    for command in launch.commands:
        last = script(command).split("\nvllm serve ", 1)[1]
        assert shlex.split(last)[0] == f"/data/{text}"


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=30))
def test_the_shell_gives_back_every_path(text: str) -> None:
    path = f"/{text}"
    said = subprocess.run(["/bin/sh", "-c", f"printf %s {quoted(path)}"], capture_output=True, text=True, check=True)
    assert said.stdout == path


@pytest.mark.parametrize("path", ["-x", "a\nb", "a\x00b"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="is no path"):
        Place(model_path=path)


def test_hosts_must_match_the_plan() -> None:
    with pytest.raises(InputError, match="names 2, the plan has 4 servers"):
        build(planned("h20x32-tp8pp4"), Place(hosts=("a", "b")))
    with pytest.raises(InputError, match="stands twice"):
        Place(hosts=("a", "a"))


@pytest.mark.parametrize(
    "name", ["h20x32-tp8pp4", "h20x32-tp8pp4-sglang", "dp-within-nodes", "copies", "rack", "one-node"]
)
def test_manifests_hold_the_commands(name: str) -> None:
    plan = planned(name)
    launch = build(plan)
    group, service = yaml.safe_load_all(manifests(launch, Place()))
    inside = group["spec"]["leaderWorkerTemplate"]
    assert (group["kind"], service["kind"]) == ("LeaderWorkerSet", "Service")
    assert (inside["size"], group["spec"]["replicas"]) == (launch.nodes, launch.copies)
    leader, worker = (inside[f"{role}Template"]["spec"]["containers"][0] for role in ("leader", "worker"))
    assert leader["resources"]["limits"]["nvidia.com/gpu"] == plan.cluster.cards_per_node
    probe = leader["startupProbe"]
    assert probe["httpGet"] == {"path": "/health", "port": launch.start.port}
    assert probe["periodSeconds"] * probe["failureThreshold"] == 7200
    shm = inside["leaderTemplate"]["spec"]["volumes"][1]["emptyDir"]
    assert shm["medium"] == "Memory" and shm["sizeLimit"].endswith("Gi")
    if launch.nodes > 1:
        assert "startupProbe" not in worker
        done = in_shell(worker["args"][0], LWS_WORKER_INDEX="1", LWS_LEADER_ADDRESS="NODE0")
        assert done == in_shell(script(launch.commands[1]))
    assert in_shell(leader["args"][0], LWS_LEADER_ADDRESS="NODE0") == in_shell(script(launch.commands[0]))


def in_shell(text: str, **env: str) -> list[str]:
    """The words that the program of a script gets, by running it with a program of that name that prints them."""
    start = 'vllm() { printf "%s\\n" "$@"; }; sglang() { printf "%s\\n" "$@"; }\n'
    done = subprocess.run(["/bin/sh", "-c", start + text], capture_output=True, text=True, check=True, env=env)
    return done.stdout.splitlines()


def test_a_manifest_needs_a_command_of_ours() -> None:
    launch = build(planned("h200x8-tp8"))
    with pytest.raises(InputError, match="does not fit"):
        manifests(launch, Place())
    with pytest.raises(InputError, match=r"no manifest of llama\.cpp"):
        manifests(published("llama.cpp"), Place())
    with pytest.raises(InputError, match="Leave out --executor ray"):
        manifests(build(planned("h200x16-tp8pp2")), Place(executor="ray"))


def test_the_volume_is_where_the_files_are() -> None:
    place = Place(model_path="/data/k3/Kimi-K3")
    group, _ = yaml.safe_load_all(manifests(build(planned("h200x16-tp8pp2"), place), place))
    leader = group["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]["containers"][0]
    assert leader["volumeMounts"][0] == {"name": "weights", "mountPath": "/data/k3", "readOnly": True}
    assert "vllm serve /data/k3/Kimi-K3" in leader["args"][0] and "env" not in leader
    with pytest.raises(InputError, match="must lie in a folder"):
        manifests(build(planned("h200x16-tp8pp2"), Place(model_path="/k3")), Place(model_path="/k3"))


def test_files_of_another_format_must_be_named() -> None:
    model, cluster = load_model("kimi-k3", "fp8"), parse_cluster("4x8xh200")
    unnamed, named = (start_of("vllm", model, cluster, "tp8,pp4", Settings(), Place(path, weights="fp8"))
                       for path in ("", "/data/k3-fp8"))  # fmt: skip
    assert "--model-path" in unnamed.reason and not unnamed.commands
    assert "--moe-backend" not in first_words(named) and any("MXFP4" in row.reason for row in named.warnings)


def test_what_the_parser_would_refuse_is_found() -> None:
    command = build(planned("h20x32-tp8pp4-sglang")).commands[0]

    def said(name: str, value: str | None) -> str:
        row = command.options[0].row.model_copy(update={"name": name})
        return "; ".join(faults(replace(command, options=(Option(row, value),), env=()), "sglang"))

    assert "could be short for --cuda-graph-bs-decode or --cuda-graph-bs-" in said("--cuda-graph-bs", "8")
    assert "could be short for --tp-size" in said("--tp", "8")
    assert "not one of" in said("--moe-runner-backend", "marlim")
    assert "is no int" in said("--tp-size", "eight")
    assert "takes no value" in said("--trust-remote-code", "yes") and "needs a value" in said("--tp-size", None)
    assert "is no JSON" in said("--model-loader-extra-config", "{a}")
    assert said("--tp-size", "8") == ""
    twice = replace(command, options=(*command.options, command.options[3]))
    assert [x for x in faults(twice, "sglang") if "stands twice" in x]
    variable = Option(command.env[0].row.model_copy(update={"name": "SGLANG_NOPE"}), "1")
    assert "no variable" in faults(replace(command, env=(variable,)), "sglang")[0]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_old_advice_is_what_the_parsers_say(engine: str) -> None:
    known = flags.parser(engine)
    assert known is not None
    names = known.by_name()
    seen = 0
    for row in flags.old_advice():
        if row.engine != engine or not row.name.startswith("--"):
            continue
        short = [n for n in known.options if n.startswith(row.name)]
        assert (row.name in names) == (row.verdict != "gone") or (row.verdict == "needless" and len(short) == 1), (
            row.name
        )
        for option in re.findall(r"--[a-z0-9-]+", row.now):
            assert option in names, (row.name, option)
        seen += 1
    assert seen >= 8
    idle = [r.name for r in flags.old_advice() if r.engine == engine and r.verdict == "idle" and r.name.isupper()]
    assert idle and not set(idle) & known.variables


def test_the_article_s_command_is_answered_flag_by_flag() -> None:
    claims = {row.claim_id for row in flags.old_advice() if row.claim_id}
    assert claims == {"A34", "A35", "A36", "A37", "A38"}
    by_name = {row.name: row for row in flags.old_advice() if row.claim_id}
    assert by_name["--swap-space"].verdict == "gone" and by_name["--quantization"].value == "awq"
    assert by_name["--enforce-eager"].verdict == "wrong" and by_name["--max-model-len"].value == "32768"


@pytest.mark.parametrize("name", ["vllm-0.33.0", "sglang-0.5.23"])
def test_snapshots_hold_names_only_and_are_small(name: str) -> None:
    path = DATA / "engine_parsers" / f"{name}.json"
    text = path.read_text(encoding="utf-8")
    assert len(text) < 100_000 and text == json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n"
    for option, entry in json.loads(text)["options"].items():
        words = [option, *entry.get("also", ()), *entry.get("choices", ()), *entry.get("late_choices", ())]
        assert all(" " not in word for word in words), option


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("family=hopper;nodes=many", "famly=hopper;nodes=many", "'famly' is not known. Did you mean 'family'?"),
        ("family=hopper;nodes=many", "family=hopper;nodes=some", "nodes is never 'some'"),
        ("family=hopper;nodes=many", "hopper", "is not feature=answer"),
        ("vllm,flag,--trust", "vlm,flag,--trust", "engine 'vlm' is not in data/engine_starts.csv"),
        (",@tp,", ",@tpp,", "'@tpp' is nothing that a plan gives"),
    ],
)
def test_a_bad_row_of_flags_is_named(
    old: str, new: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = changed_data(tmp_path, "engine_flags.csv", old, new)
    with pytest.raises(InputError) as caught:
        rows = flags.engine_flags(data)
        monkeypatch.setattr(commands, "engine_flags", lambda: rows)
        build(planned("h20x32-tp8pp4"))
    assert word in str(caught.value) and "engine_flags.csv" in str(caught.value)


def test_shell_text_is_marked_only_where_it_is_ours() -> None:
    text = "$LWS_WORKER_INDEX"
    assert (quoted(Shell(text)), quoted(text)) == (f'"{text}"', f"'{text}'")


# The command as people type it.
SHOWN = {
    " ".join(one): one
    for text in (cli_launch.DESCRIPTION, cli.DESCRIPTION, (ROOT / "USING.md").read_text(encoding="utf-8"))
    for one in shown("launch", text)
}


@pytest.mark.parametrize("arguments", SHOWN.values(), ids=SHOWN)
def test_every_example_runs_as_printed(arguments: list[str], capsys: Capture) -> None:
    done = k3_here(capsys, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    if "--json" in arguments:
        assert json.loads(done.stdout)["commands"]
    elif "--kubernetes" in arguments:
        assert len(list(yaml.safe_load_all(done.stdout))) == 2
    else:
        assert "# node 0 of " in done.stdout and " serve" in done.stdout


def test_examples_are_where_people_look(capsys: Capture) -> None:
    assert len(shown("launch", k3_here(capsys, "launch", "--help").stdout)) == 5
    assert shown("launch", k3_here(capsys, "--help").stdout)
    assert shown("launch", (ROOT / "USING.md").read_text(encoding="utf-8"))


def test_what_is_printed_is_a_script(capsys: Capture) -> None:
    done = k3_here(capsys, "launch", "--plan", "h20x32-tp8pp4-sglang")
    subprocess.run(["/bin/sh", "-n"], input=done.stdout, text=True, check=True)


def test_a_written_plan_gives_the_same_commands(capsys: Capture, tmp_path: Path) -> None:
    text = ("--cluster 4x8xh200 --layout tp8,pp4 --engine sglang --max-model-len 65536 --mem-fraction-static 0.8 "
            "--mamba-ssm-dtype bfloat16 --pp-partition 24,23,23,23")  # fmt: skip
    options = text.split()
    file = tmp_path / "plan.json"
    file.write_text(k3_here(capsys, "plan", *options, "--json").stdout, encoding="utf-8")
    direct = k3_here(capsys, "launch", *options, "--json")
    assert direct.returncode == 0
    assert k3_here(capsys, "launch", "--plan", str(file), "--json").stdout == direct.stdout
    changed = json.loads(k3_here(capsys, "launch", "--plan", str(file), "--max-model-len", "8192", "--json").stdout)
    assert after(changed["commands"][0]["argv"], "--context-length") == "8192"


def test_a_plan_that_does_not_fit_gets_no_command(capsys: Capture) -> None:
    for more in ([], ["--kubernetes"]):
        done = k3_here(capsys, "launch", "--plan", "h20x16-tp16ep16", *more)
        assert (done.returncode, done.stderr) == (1, "")
        assert "does not fit: weights need 101.7 GiB" in done.stdout and "Nearest that fits: tp8,pp4" in done.stdout
        assert "vllm serve" not in done.stdout
    table = json.loads(k3_here(capsys, "launch", "--plan", "h20x16-tp16ep16", "--json").stdout)
    assert table["fits"] is False and table["commands"] == [] and table["reason"]
    table = json.loads(k3_here(capsys, "launch", "--engine", "ktransformers", "--json").stdout)
    assert table["fits"] is None and table["commands"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cluster", "4x8xh20-96"], ["--layout is missing"]),
        (["--layout", "tp8,pp4"], ["--cluster is missing"]),
        (["--plan", "h20x32"], ["h20x32", "Did you mean"]),
        (["--plan", "README.md"], ["not what `k3 plan --json` writes"]),
        (["--plan", "h20x32-tp8pp4", "--engine", "vlm"], ["--engine vlm", "Did you mean 'vllm'?"]),
        (["--plan", "h20x32-tp8pp4", "--hosts", "a;b,c,d,e"], ["--hosts", "'a;b'"]),
        (["--plan", "h20x32-tp8pp4", "--hosts", "a,b"], ["names 2"]),
        (["--plan", "h20x32-tp8pp4", "--kv-memory-gib", "3"], ["--kv-memory-gib", "Leave it out"]),
        (["--plan", "h20x32-tp8pp4", "--prefill-cluster", "1x8xh200"], ["--prefill-cluster"]),
        (["--plan", "h20x32-tp8pp4", "--executor", "ry"], ["--executor"]),
        (["--engine", "llama.cpp", "--kubernetes"], ["--kubernetes"]),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(arguments: list[str], words: list[str], capsys: Capture,
                               monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.chdir(ROOT)
    refused(k3_here(capsys, "launch", *arguments), *words)


def test_the_page_shows_what_the_command_prints(book: Path, capsys: Capture) -> None:
    soup = BeautifulSoup((book / "html" / "nb" / "launching.html").read_text(encoding="utf-8"), "html.parser")
    blocks = [pre.get_text().strip() for pre in soup.find_all("pre")]
    table = json.loads(k3_here(capsys, "launch", *shlex.split(next(x for x in blocks if x.startswith("k3 launch")))[2:],
                               "--json").stdout)  # fmt: skip
    for command in table["commands"]:
        assert command["text"] in blocks
    labels = [label.get_text().strip() for label in soup.select("label.sd-tab-label")]
    assert [x for x in labels if not x.startswith(("Node", "Command", "Kubernetes"))] == [
        "vLLM", "SGLang", "vLLM-Ascend", "TensorRT-LLM", "llama.cpp", "KTransformers"]  # fmt: skip
    results = json.loads((book / "results.json").read_text(encoding="utf-8"))
    assert results["launch.vllm.faults"]["value"] == results["launch.sglang.faults"]["value"] == 0
    assert results["launch.vllm.fits"]["value"] is True and results["launch.vllm.memory_gib"]["unit"] == "GiB"


def test_tabs_open_in_a_browser(book: Path, browser: Browser) -> None:
    page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
    page.goto((book / "html" / "nb" / "launching.html").as_uri())
    assert page.get_by_text("vllm serve moonshotai/Kimi-K3").first.is_visible()
    page.get_by_text("SGLang", exact=True).locator("visible=true").first.click()
    assert page.get_by_text("sglang serve").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
