"""Before the first request: loads of files, network tests, limits of a first run, and the rehearsal on one server."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from conftest import k3_here
from hypothesis import given
from hypothesis import strategies as st

from k3lib.calibrate.against import Compared
from k3lib.calibrate.predict import numbers
from k3lib.deploy.caches import Settings
from k3lib.deploy.load import Load
from k3lib.deploy.plan import Plan, make_plan
from k3lib.deploy.speed import Options, answer
from k3lib.deploy.variants import with_layers
from k3lib.engines.layout import parse_cluster, parse_layout
from k3lib.errors import InputError
from k3lib.facts import acceptance as facts
from k3lib.models.model import Model, load_model
from k3lib.models.weights import weight_account
from k3lib.operate import acceptance as ac
from k3lib.operate import loading as ld
from k3lib.operate import network as nw
from k3lib.operate import rehearsal as rh
from k3lib.operate.reduced import reduce
from k3lib.ranges import Range
from k3lib.reading.records import ExchangeReading, ExchangeRow
from k3lib.units import GIBI, GIGA, TERA

K3_BYTES = 1_560_940_000_000
FILES = ld.Files(K3_BYTES, 50 * GIGA, 4)


@pytest.fixture(scope="module")
def k3() -> Model:
    return load_model("kimi-k3")


@pytest.fixture(scope="module")
def plan(k3: Model) -> Plan:
    settings = Settings(max_model_len=2000, max_num_seqs=512)
    return make_plan(k3, parse_cluster("4x8xh20-96"), parse_layout("tp8,pp4"), "vllm", settings)


def seconds(key: str, files: ld.Files = FILES) -> Range:
    return next(t.seconds for t in ld.load_times(files) if t.key == key)


def test_the_bytes_of_the_measured_loads_are_those_of_the_account(k3: Model) -> None:
    (published,) = {r.checkpoint_bytes for r in facts.storage_loads() if r.model == "kimi-k3"}
    assert published == pytest.approx(weight_account(k3).bytes, rel=1e-4)


def test_a_node_reads_all_files_by_the_loads_of_one_and_of_two_nodes() -> None:
    """One node with all cards of the model must read it all; two nodes with the same loader go as fast a node then."""
    by = {r.load_id: r for r in facts.storage_loads()}
    one = ld.per_node(by["r1-h200-parallel-safetensors"])
    for name in ("k3-h200-tp16-2", "k3-h200-tp8pp2-2"):
        assert ld.per_node(by[name]) == pytest.approx(one, rel=0.2)
        assert ld.per_node(by[name], 1 / 2) < 0.6 * one


def test_one_drive_alone_is_its_bytes_over_its_rate_and_an_array_stops_at_the_loader() -> None:
    drive = facts.parameter("drive_rate")
    fast = ld.from_drives(FILES, 1, ("instanttensor",))
    assert fast.limit == "drives"
    assert fast.seconds.value == pytest.approx(K3_BYTES / (drive.value * GIGA))
    assert fast.seconds.high == pytest.approx(K3_BYTES / ((drive.low or 0) * GIGA))
    four, eight = (ld.from_drives(FILES, n) for n in (4, 8))
    assert four.limit == eight.limit == "loader" and four.seconds == eight.seconds


def test_a_file_server_serves_every_node_and_memory_none_but_its_own() -> None:
    two = ld.Files(K3_BYTES, 50 * GIGA, 2)
    assert seconds("nfs").value == pytest.approx(2 * seconds("nfs", two).value)
    assert seconds("memory") == seconds("memory", two)
    assert seconds("memory").high < seconds("parallel").low < seconds("nfs").low


@given(st.integers(1, 5 * TERA), st.integers(1, 64), st.integers(1, 63))
def test_more_bytes_take_longer_and_more_drives_never_do(size: int, nodes: int, drives: int) -> None:
    small, large = ld.Files(size, size / 32, nodes), ld.Files(2 * size, size / 16, nodes)
    here, more = ld.from_drives(small, drives).seconds, ld.from_drives(small, drives + 1).seconds
    assert here.low <= here.value <= here.high and more.value <= here.value
    for key in ("nvme-2", "nfs", "memory", "parallel"):
        assert seconds(key, large).value == pytest.approx(2 * seconds(key, small).value)


def test_loads_are_checked_by_those_that_did_not_make_the_estimate() -> None:
    found = [(row, at) for row in facts.storage_loads() if (at := ld.predicted(row))]
    inside = [at.low <= row.seconds <= at.high for row, at in found]
    assert len(found) > 12 and sum(inside) >= 0.6 * len(found)
    assert all(ld.predicted(r) is None for r in facts.storage_loads() if r.use == "no")


def test_drives_have_room_for_the_files() -> None:
    need = ld.disk("two", 2 * K3_BYTES)
    assert need.bytes_needed.value == pytest.approx(2 * K3_BYTES / 0.8)
    assert need.count == Range(1, 1, 2)
    assert ld.disk("all", 20 * K3_BYTES).count.value == -(-20 * K3_BYTES // int(0.8 * 7.68 * TERA))


def reading(collective: str, ranks: int | None, busbw: float, size: int = 8 * GIBI, **more: object) -> ExchangeReading:
    """A test whose largest message came out at that bus bandwidth."""
    n = ranks or 16
    algbw = busbw / ((2 if "reduce" in collective or not collective else 1) * (n - 1) / n)
    row = ExchangeRow(size_bytes=size, time_us=size / algbw / 1e3, algbw_gbs=algbw, busbw_gbs=busbw)
    return ExchangeReading("nccl-tests", "a.txt", collective, ranks=ranks, rows=(row,), peak_busbw_gbs=busbw, **more)  # type: ignore[arg-type]


TWO = parse_cluster("2x8xh100")


def word(found: nw.Verdict | None) -> str:
    assert found is not None
    return found.word


def test_sixteen_cards_on_two_nodes_are_judged_as_those_who_measured_them_did() -> None:
    """Published: 487 GB/s on AWS as it should be, 339 of half as fast network cards, 231 complained about."""
    assert word(nw.verdict(reading("all_reduce", 16, 487.1, nodes=2), TWO)) == "pass"
    assert word(nw.verdict(reading("all_reduce", 16, 338.8, nodes=2), TWO, 4)) == "pass"
    complained = nw.verdict(reading("all_reduce", 16, 231, nodes=2), TWO)
    assert word(complained) == "doubtful" and complained and complained.expected
    assert complained.expected.busbw_gbs.value == pytest.approx(470, rel=0.03)  # what the reporter expected
    assert word(nw.verdict(reading("alltoall", 16, 25, nodes=2), TWO)) == "fail"


def test_an_all_to_all_gives_a_card_its_network_card() -> None:
    found = nw.expected("all_to_all", TWO, 16, 2, 8)
    assert found and found.limit == "network cards"
    assert 40 < found.busbw_gbs.low * 8 / 15 < found.busbw_gbs.high * 8 / 15 <= 50  # what crosses, of 50 GB/s
    half = nw.expected("all_to_all", TWO, 16, 2, 4)
    assert half and half.busbw_gbs.value == pytest.approx(found.busbw_gbs.value / 2)


def test_nvlink_of_hopper_prints_less_than_its_900() -> None:
    found = nw.expected("all_reduce", parse_cluster("1x8xh20-96"), 8, 1, 8)
    assert found and found.kin and 340 < found.busbw_gbs.low < found.busbw_gbs.high < 500
    assert nw.expected("all_reduce", parse_cluster("1x8xb300"), 8, 1, 8) is None  # its NVLink is not in the data


@pytest.mark.parametrize(("busbw", "first"), [(5.0, nw.SOCKETS), (80.0, nw.NAMES), (300.0, nw.RATES)])
def test_what_to_look_at_first_follows_from_how_slow_it_is(busbw: float, first: str) -> None:
    found = nw.verdict(reading("all_reduce", 16, busbw, nodes=2), TWO)
    assert found and found.checks[0] == first and found.word == ("doubtful" if busbw > 200 else "fail")
    one = nw.verdict(reading("all_reduce", 8, busbw, nodes=1), TWO)
    assert one and one.checks[0] == nw.LINK_CHECKS[0]


def test_a_test_that_cannot_tell_says_why() -> None:
    def why(*given: object) -> str:
        found = nw.verdict(*given)  # type: ignore[arg-type]
        assert found and found.word == "unknown"
        return found.why

    assert "name --cluster" in why(reading("all_reduce", 8, 400), None)
    assert "largest message" in why(reading("all_reduce", 16, 400, 2**20, nodes=2), TWO)
    assert "does not have" in why(reading("all_reduce", 32, 400, nodes=4), TWO)
    assert "no rate of broadcast" in why(reading("broadcast", 8, 400, nodes=1), TWO)
    assert nw.verdict(ExchangeReading("DeepEP test", "a.txt"), TWO) is None


def test_an_output_without_its_command_is_known_by_how_it_counts() -> None:
    found = nw.verdict(reading("", None, 487.1), TWO)
    assert found and found.expected and (found.expected.ranks, found.expected.nodes) == (16, 2)


TEXT = """# Collective test starting: all_reduce_perf
#  Rank  0 Group  0 Pid 900 on node-0 device 0 [0000:04:00] NVIDIA H20
#  Rank  1 Group  0 Pid 901 on node-0 device 1 [0000:04:00] NVIDIA H20
#       size         count      type   redop    root     time   algbw   busbw #wrong
  8589934592    2147483648     float     sum      -1  {time:.1f}  {rate:.2f}  {rate:.2f}  {wrong}
# Out of bounds values : {wrong} {word}
# Avg bus bandwidth    : 80.5
"""


def test_read_prints_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "nccl.txt"
    for rate, wrong, expected in ((410.0, 0, "pass"), (90.0, 0, "fail"), (410.0, 7, "fail")):
        text = TEXT.format(time=8589934592 / rate / 1e3, rate=rate, wrong=wrong, word="FAILED" if wrong else "OK")
        path.write_text(text)
        done = k3_here(capsys, "read", str(path), "--cluster", "4x8xh20-96", "--json")
        (one,) = json.loads(done.stdout)["readings"]
        assert done.returncode == 0 and one["verdict"] == expected
        assert bool(one["verdict_details"]["checks"]) == (expected == "fail")
        shown = k3_here(capsys, "read", str(path), "--cluster", "4x8xh20-96").stdout
        assert f"verdict: {expected}. " in shown


def test_values_are_judged_by_their_worse_side() -> None:
    good = Compared("output", "tok/s", 900, 700, 500, 800)
    slow = Compared("time to first token", "ms", 900, 700, 500, 800)
    assert ac.judged([]) is None and ac.judged([Compared("block", "tokens", 1, 2, 3, 4)]) is None
    assert ac.judged([good]) == ac.Judgement("pass", "every value lies in its range or on the better side of it")
    found = ac.judged([good, slow])
    assert found and found.word == "fail" and found.why == "time to first token of 900 ms is above 800 ms"
    short = ac.judged([Compared("KV tokens", "tokens", 900, 2000, 1800, 2200)])
    assert short and short.word == "fail"


def test_a_step_is_long_enough_for_its_mean(plan: Plan) -> None:
    for clients in (1, 8, 32):
        found = ac.step(plan, Options(), Load(1000, 1000, clients), 0.02)
        assert found.speed and found.minutes and found.asked and found.requests == found.rounds * clients
        minutes = found.requests * 1000 / found.speed.output_tps.value / 60
        assert found.minutes.value == pytest.approx(minutes) and found.minutes.low < minutes < found.minutes.high
        long = Load(1000, 1000, clients, requests=60 * clients)
        steady = ac.step(plan, Options(), long, 0.02).asked
        assert steady and answer(found.asked, numbers()).output_tps == pytest.approx(
            answer(steady, numbers()).output_tps, rel=0.04
        )


def test_a_step_that_does_not_fit_says_why(plan: Plan) -> None:
    found = ac.step(plan, Options(), Load(900_000, 900_000, 8), 0.05)
    assert found.speed is None and "takes at most" in found.reason


def test_requests_for_a_mean_by_hand() -> None:
    assert ac.requests_for_mean() == Range(1537, 385, 3458)  # (1.96 / 0.05)^2, with deviations of 0.5 and 1.5


def test_memory_limits_are_those_of_the_ledger(plan: Plan) -> None:
    lines = {one.what: one.expected for one in ac.memory(plan)}
    assert plan.caches and lines["KV tokens"].value == plan.caches.kv_tokens
    assert lines["KV tokens"].low < lines["KV tokens"].value < lines["KV tokens"].high
    assert lines["memory for caches, stage 2"].value == pytest.approx(plan.stages[2].free[0] / GIBI)
    assert sum(name.startswith("weights") for name in lines) == len(plan.stages)


def test_the_step_of_a_part_tells_that_of_the_whole(k3: Model, plan: Plan) -> None:
    """The model of speed is no straight line: several stages hand over, and the last layers differ. Ends must meet."""
    found = rh.rehearsal(k3, plan.cluster, "vllm", Settings(max_model_len=32_768, max_num_seqs=512))
    assert (found.held.layers, found.layers) == (39, 38) and not found.whole and found.cluster.nodes == 1
    assert (
        found.plan.stages[0].free[1]
        > 0
        > make_plan(with_layers(k3, 39), found.cluster, found.layout, "vllm", found.plan.settings).stages[0].free[1]
    )  # one layer more fits by the value of the ledger, not by the end of its range
    for clients in (1, 8):
        many = clients * (rh.passes_at_work(plan) if clients > 1 else 1)
        whole = ac.step(plan, Options(), Load(1000, 1000, many), 0.05).asked
        one = rh.scaled(found, whole, clients, 1000, 1000)
        assert one.whole_ms and one.difference is not None and abs(one.difference) < 0.15
        assert one.part.tpot_ms.value == pytest.approx((38 * one.layer_us + one.rest_us) / 1000)


def test_a_server_that_holds_all_rehearses_all_and_its_price_scales_with_hours(k3: Model) -> None:
    found = rh.rehearsal(k3, parse_cluster("4x8xb300"), "vllm", Settings(max_model_len=32_768))
    assert found.whole
    prices = {p.key: p.cny for p in rh.prices(parse_cluster("4x8xh20-96"), 8)}
    hour = 8 * 5.99
    assert prices["rent-bare-metal"].value == pytest.approx(hour * rh.hours().value, rel=0.01)
    assert all(p.low < p.value < p.high for p in prices.values())
    with pytest.raises(InputError, match="no part of kimi-k3 fits"):
        rh.rehearsal(k3, parse_cluster("1x1xl20"), "vllm", Settings(max_model_len=32_768))


def checkpoint(folder: Path, layers: int = 4) -> Path:
    """A checkpoint of a few bytes: a table, layers over two files, a vision tower with layers of its own."""
    folder.mkdir()
    names = ["language_model.model.embed_tokens.weight", "vision_tower.encoder.layers.3.norm.weight",
             *(f"language_model.model.layers.{n}.mlp.up_proj.weight" for n in range(layers))]  # fmt: skip
    weight_map = {}
    for file, part in (("a.safetensors", names[:4]), ("b.safetensors", names[4:])):
        header, data = {}, b""
        for name in part:
            body = name.encode()
            header[name] = {"dtype": "U8", "shape": [len(body)], "data_offsets": [len(data), len(data) + len(body)]}
            data += body
            weight_map[name] = file
        text = json.dumps(header).encode()
        (folder / file).write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (folder / "config.json").write_text(json.dumps({"text_config": {
        "num_hidden_layers": layers,
        "linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2, 3]}}}))  # fmt: skip
    (folder / "tokenizer.json").write_text("{}")
    return folder


def tensors(folder: Path) -> dict[str, bytes]:
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        raw = path.read_bytes()
        (length,) = struct.unpack("<Q", raw[:8])
        assert length % 8 == 0
        for name, row in json.loads(raw[8 : 8 + length]).items():
            low, high = row["data_offsets"]
            found[name] = raw[8 + length :][low:high]
    return found


def test_a_reduced_checkpoint_has_the_first_layers_byte_by_byte(tmp_path: Path) -> None:
    source, target = checkpoint(tmp_path / "full"), tmp_path / "part"
    counted = reduce(source, target, 3, write=False)
    assert not target.exists()
    made = reduce(source, target, 3)
    held = tensors(target)
    assert made == counted and (made.tensors, made.files, made.of_layers) == (5, 2, 4)
    assert all(body == name.encode() for name, body in held.items())
    assert "vision_tower.encoder.layers.3.norm.weight" in held and not any("model.layers.3" in name for name in held)
    config = json.loads((target / "config.json").read_text())["text_config"]
    assert config["num_hidden_layers"] == 3
    assert config["linear_attn_config"] == {"full_attn_layers": [], "kda_layers": [1, 2, 3]}
    index = json.loads((target / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"]) == set(held) and (target / "tokenizer.json").exists()
    assert index["metadata"]["total_size"] == sum(map(len, held.values())) == made.bytes


def test_what_cannot_be_reduced_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = checkpoint(tmp_path / "full")
    with pytest.raises(InputError, match="from 1 to the 4"):
        reduce(source, tmp_path / "part", 5)
    with pytest.raises(InputError, match="not empty"):
        reduce(source, source, 2)
    (source / "a.safetensors").write_bytes(b"no")
    done = k3_here(capsys, "reduce", str(source), str(tmp_path / "part"), "--layers", "2")
    assert done.returncode == 2 and "is not a file of safetensors" in done.stderr
    index = source / "model.safetensors.index.json"
    index.write_text(index.read_text().replace("a.safetensors", "../a.safetensors"))
    with pytest.raises(InputError, match="not the name of a file beside it"):
        reduce(source, tmp_path / "part2", 2)
