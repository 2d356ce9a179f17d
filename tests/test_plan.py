"""The ledger against what engines logged, exactly where they can be, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import k3, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from k3lib.deploy.caches import Settings
from k3lib.deploy.cuts import cuts
from k3lib.deploy.inverse import (
    best_state_ratio,
    fewest_cards,
    illegal_reason,
    largest_concurrency,
    largest_context,
    legal_layouts,
    nearest,
    smaller_clusters,
    sweep,
)
from k3lib.deploy.plan import ENGINES, Plan, make_plan, weights_gib
from k3lib.engines import sglang, vllm
from k3lib.engines.layout import Layout, parse_cluster, parse_layout
from k3lib.errors import InputError
from k3lib.facts.catalog import sources
from k3lib.models.model import load_model
from k3lib.models.weights import weight_account
from k3lib.units import GIBI

K3 = load_model("kimi-k3")


def plan(cluster: str, layout: str, engine: str = "vllm", model: str = "kimi-k3", **flags: object) -> Plan:
    if "kv_memory_gib" in flags:
        flags["kv_memory_bytes"] = tuple(x * GIBI for x in flags.pop("kv_memory_gib"))  # type: ignore[attr-defined]
    return make_plan(load_model(model), parse_cluster(cluster), parse_layout(layout), engine, Settings(**flags))  # type: ignore[arg-type]


# Weights of a card in GiB, stage by stage: logged, or computed from the engine's code by the collectors of the facts.
WEIGHTS = [
    ("2x8xh200", "tp16", [129.75]),
    ("2x8xh200", "tp8,dp2", [135.69]),
    ("2x8xh200", "tp8,pp2", [96.49, 96.16]),
    ("2x8xh200", "tp16,ep16", [101.68]),
    ("1x8xh200", "tp8", [191.81]),
    ("4x8xh20-96", "tp32,ep32", [56.62]),
    ("4x8xh100", "tp32", [126.78]),
    ("4x8xh20-96", "tp8,pp4", [46.87, 48.37, 50.45, 48.62]),
    ("4x8xh20-96", "tp16,pp2", [65.36, 65.22]),
    ("4x8xh20-96", "tp16,pp2,ep16", [51.33, 51.19]),
    ("8x1xh200", "tp1,pp8", [162.65, 173.71, 189.53, 189.53, 189.53, 189.53, 189.53, 175.5]),
]


@pytest.mark.parametrize(("cluster", "layout", "expected"), WEIGHTS)
def test_weights_of_a_card(cluster: str, layout: str, expected: list[float]) -> None:
    assert weights_gib(plan(cluster, layout)) == pytest.approx(expected, abs=0.011)


def test_the_partition_that_an_operator_chose() -> None:
    made = plan("4x8xh100", "tp8,pp4", pp_partition=(24, 23, 23, 23))
    assert weights_gib(made) == pytest.approx([48.92, 48.4, 48.37, 48.62], abs=0.011)


def test_more_tensor_parallelism_without_expert_parallelism_saves_no_expert_bytes() -> None:
    def experts(layout: str, cluster: str) -> float:
        stage = plan(cluster, layout).stages[0]
        return sum(line.bytes for line in stage.lines if "experts" in line.name and "shared" not in line.name)

    assert experts("tp16", "2x8xh200") == experts("tp32", "4x8xh100") == pytest.approx(120.54e9, rel=1e-4)


@pytest.mark.parametrize(
    ("layout", "flags", "tokens", "concurrency", "block"),
    [
        ("tp16", dict(max_model_len=8192, kv_memory_gib=[1.68]), 55_377, 6.76, 384),
        ("tp16,ep16", dict(max_model_len=8192, kv_memory_gib=[1.64]), 54_067, 6.60, 384),
        ("tp8,dp2", dict(max_model_len=2048, kv_memory_gib=[160e6 / GIBI]), 2_389, 1.17, 768),
        ("tp8,pp2", dict(max_model_len=8192, kv_memory_gib=[26.88, 26.57]), 1_451_154, 177.14, 768),
    ],
)
def test_tokens_that_vllm_logged(
    layout: str, flags: dict[str, object], tokens: int, concurrency: float, block: int
) -> None:
    caches = plan("2x8xh200", layout, **flags).caches
    assert caches
    assert (caches.kv_tokens, caches.block_tokens) == (tokens, block)
    assert caches.max_concurrency == pytest.approx(concurrency, abs=0.005)


def test_what_vllm_left_for_caches_is_inside_the_ledgers_range() -> None:
    made = plan("2x8xh200", "tp8,pp2", utilisation=0.90, chunk_tokens=4096)
    for stage, logged in zip(made.stages, (26.88, 26.57), strict=True):
        assert stage.free[1] / GIBI < logged < stage.free[2] / GIBI


# tokens per block: (TP, bytes of a cached element, bytes of a state element) -> block, padding in %
BLOCKS = {
    (1, 2, 4): (5760, 1.89), (1, 2, 2): (2944, 0.73), (1, 1, 4): (11392, 0.75), (2, 2, 4): (2944, 4.15),
    (4, 2, 4): (1536, 8.68), (8, 2, 4): (768, 8.68), (8, 2, 2): (384, 5.11), (8, 1, 4): (1536, 8.68),
    (16, 2, 4): (384, 8.68), (16, 2, 2): (256, 40.15), (16, 1, 2): (384, 5.11), (32, 2, 4): (256, 44.91),
    (32, 2, 2): (128, 40.15), (32, 1, 2): (256, 40.15),
}  # fmt: skip


@pytest.mark.parametrize(("key", "expected"), BLOCKS.items())
def test_block_length_and_padding(key: tuple[int, int, int], expected: tuple[int, float]) -> None:
    tp, cache, state = key
    token, kept = 576 * cache, (6_291_456 * state // 4 + 221_184) // tp
    block = vllm.block_length(token, kept, 128, 64)
    assert block == expected[0]
    assert 100 * (block * token / kept - 1) == pytest.approx(expected[1], abs=0.006)


def test_pools_that_sglang_logged_on_b300() -> None:
    ssm, conv, tokens = 258 * 54_263_808, 258 * 1_907_712, (1_167_552 + 64) * 13_824
    assert [round(x / GIBI, 2) for x in (ssm, conv, tokens)] == [13.04, 0.46, 15.03]
    made = plan("1x8xb300", "tp8", "sglang", cache_dtype="fp8", kv_memory_gib=[(ssm + conv + tokens) / GIBI])
    assert made.caches
    assert (made.caches.state_slots, made.caches.max_running_requests) == (257, 51)
    assert made.caches.kv_tokens == pytest.approx(1_167_552, rel=0.002)


def test_running_requests_that_sglang_logged_on_h200() -> None:
    low = plan("2x8xh200", "tp16,ep16", "sglang", utilisation=0.85, state_ratio=0.45).caches
    high = plan("2x8xh200", "tp16,ep16", "sglang", utilisation=0.90, state_ratio=0.9,
                cache_strategy="extra_buffer_lazy").caches  # fmt: skip
    assert low and high
    assert low.kv_tokens == pytest.approx(396_416, rel=0.001)
    assert (low.max_running_requests, high.max_running_requests) == (34, 98)


@pytest.mark.parametrize(
    ("cluster", "layout", "share", "fits"),
    [
        ("1x8xh200", "tp8", 0.97, False),
        ("2x8xh20-96", "tp16,ep16", 0.97, False),
        ("4x8xh20-96", "tp8,pp4", 0.90, True),
        ("4x8xh20-96", "tp32,ep32", 0.90, True),
        ("4x8xh100", "tp32", 0.97, False),
        ("4x8xh100", "tp8,pp4", 0.90, True),
        ("2x8xh200", "tp8,pp2", 0.90, True),
    ],
)
def test_what_fits(cluster: str, layout: str, share: float, fits: bool) -> None:
    made = plan(cluster, layout, utilisation=share)
    assert made.fits is fits
    assert fits or "weights need" in made.reason


def test_a_refusal_names_the_line_that_broke_it() -> None:
    made = plan("4x8xh20-96", "tp16,dp2,ep32", chunk_tokens=16_384)
    assert not made.fits
    assert "'runtime and communicators' is the line that goes beyond" in made.reason
    assert made.caches is None
    assert largest_context(made, 1) == largest_concurrency(made, 8192) == 0


def test_the_packed_row_has_656_bytes() -> None:
    wide, packed = (plan("4x8xh20-96", "tp8,pp4", cache_dtype=dtype).caches for dtype in ("auto", "fp8_ds_mla"))
    assert wide and packed
    assert (wide.block_tokens, packed.block_tokens) == (768, 128 * -(-814_080 // (128 * 656)))


def test_a_repack_needs_a_second_copy_of_one_layer() -> None:
    line = next(line for line in plan("1x8xb300", "tp8").stages[0].lines if line.passing)
    assert line.bytes == pytest.approx(1.233e9, rel=1e-3)


def test_a_draft_model_takes_slots_and_cache() -> None:
    without, with_draft = (plan("1x8xb300", "tp8", "sglang", draft_tokens=n).caches for n in (0, 8))
    assert without and with_draft
    assert with_draft.max_running_requests == with_draft.state_slots // (5 + 8)
    assert with_draft.kv_tokens < without.kv_tokens
    with pytest.raises(InputError, match="pipeline stages"):
        plan("4x8xh20-96", "tp8,pp4", draft_tokens=8)


def test_what_lies_beside_the_share_needs_room_too() -> None:
    made = plan("2x8xh200", "tp16,ep16", utilisation=1.0)
    assert not made.fits and "beside the engine's share" in made.reason


def test_a_given_cache_size_must_fit_the_card() -> None:
    assert plan("2x8xh200", "tp8,dp2", max_model_len=2048, kv_memory_gib=[160e6 / GIBI]).fits  # it ran
    made = plan("2x8xh200", "tp8,pp2", kv_memory_gib=[100.0])
    assert not made.fits and "needs at least" in made.reason


def test_an_older_version_is_an_entry_of_its_own() -> None:
    old = plan("2x8xh200", "tp16,ep16", "vllm-2026-07")
    assert weights_gib(old) == pytest.approx([129.75], abs=0.005)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200_000), st.integers(1, 400))
def test_the_backward_questions_agree_with_the_forward_one(context: int, concurrency: int) -> None:
    made = PLAN
    assert made.caches
    number = largest_concurrency(made, context)
    assert number > 0 and largest_context(made, number) >= context
    longest = largest_context(made, concurrency)
    assert longest == 0 or largest_concurrency(made, longest) >= concurrency


PLAN = plan("4x8xh20-96", "tp8,pp4")


def test_fewest_cards_and_the_nearest_that_fits() -> None:
    found = fewest_cards(K3, parse_cluster("4x8xh20-96"), "vllm", Settings())
    assert found and str(found.cluster) == "3x8xh20-96"
    assert fewest_cards(K3, parse_cluster("2x8xh20-96"), "vllm", Settings()) is None
    other = nearest(plan("2x8xh20-96", "tp16,ep16", utilisation=0.97))
    assert other and (str(other.layout), str(other.cluster)) == ("tp8,pp4", "4x8xh20-96")


def test_parts_of_a_cluster_are_some_cards_of_a_server_then_whole_servers() -> None:
    assert [c.cards for c in smaller_clusters(parse_cluster("3x8xh20-96"))] == [1, 2, 4, 8, 16, 24]
    assert [c.cards for c in smaller_clusters(parse_cluster("2x6xh20-96"))] == [1, 2, 4, 6, 12]


def test_cuts_say_what_they_give_back() -> None:
    tight = plan("2x8xh200", "tp16", utilisation=0.97, chunk_tokens=4096)
    assert tight.caches
    found = {cut.what: cut for cut in cuts(tight)}
    each_token = 65_536 + 10 * 7168 * 2  # working memory, and ten rows of attention residuals
    assert found["prefill pass to 2048 tokens"].gives_gib == pytest.approx(2048 * each_token / GIBI)
    assert "share of the card to 0.95" not in found  # it is there already
    assert found["cache in FP8"].concurrency > tight.caches.max_concurrency
    assert found["longest request 32768 to 8192 tokens"].gives_gib == 0


def test_the_ratio_at_which_both_pools_run_out_together() -> None:
    made = plan("2x8xh200", "tp16,ep16", "sglang", utilisation=0.85)
    ratio = best_state_ratio(made, 8192)
    even = plan("2x8xh200", "tp16,ep16", "sglang", utilisation=0.85, state_ratio=ratio).caches
    assert even
    assert even.kv_tokens / 8192 == pytest.approx(even.state_slots / 5, rel=0.06)


def test_every_legal_layout_for_a_thousand_workloads() -> None:
    lengths = np.linspace(1_000, 1_000_000, 1_000).astype(int)
    found = sweep(K3, parse_cluster("8x8xh20-96"), "vllm", Settings(), lengths)
    assert found.concurrency.shape == (len(found.plans), 1_000)
    row = next(i for i, p in enumerate(found.plans) if str(p.layout) == "tp8,pp8")
    assert found.concurrency[row, 0] == largest_concurrency(found.plans[row], int(lengths[0]))
    assert found.concurrency[row, -1] == largest_concurrency(found.plans[row], int(lengths[-1]))
    with pytest.raises(InputError, match="contexts"):
        sweep(K3, parse_cluster("8x8xh20-96"), "vllm", Settings(), [0])


@pytest.mark.parametrize(
    ("engine", "layout", "words"),
    [
        ("vllm", "tp3", "tp 3 does not divide vocabulary"),
        ("vllm", "tp64", "tp 64 does not divide attention heads"),
        ("vllm", "tp8,ep4", "ep 4 must be tp x dp = 8"),
        ("vllm", "tp8,dcp3", "dcp 3 does not divide tp 8"),
        ("vllm", "pp94", "more than the 93 layers"),
        ("sglang", "tp32,ep3", "ep 3 does not divide experts"),
        ("sglang", "tp8,dp3", "dp 3 does not divide tp 8"),
        ("sglang", "tp8,dcp8", "Hopper"),
    ],
)
def test_a_layout_that_cannot_be_says_why(engine: str, layout: str, words: str) -> None:
    assert words in illegal_reason(K3, parse_layout(layout), engine)
    assert parse_layout(layout) not in set(legal_layouts(K3, 64, engine))


def test_default_stages_are_those_of_the_engines() -> None:
    assert [vllm.ENGINE.partition(93, n) for n in (2, 3, 4, 5, 6, 8)] == [
        [47, 46], [31, 31, 31], [23, 23, 24, 23], [18, 19, 19, 19, 18], [15, 15, 16, 16, 16, 15],
        [11, 11, 12, 12, 12, 12, 12, 11],
    ]  # fmt: skip
    assert [sglang.ENGINE.partition(93, n) for n in (2, 4)] == [[46, 47], [23, 23, 23, 24]]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(legal_layouts(K3, 32, "vllm"))))
def test_all_cards_of_a_stage_hold_the_model_and_copies_only(layout: Layout) -> None:
    made = make_plan(K3, parse_cluster("4x8xh20-96"), layout, "vllm", Settings())
    held = sum(stage.weights for stage in made.stages) * layout.tp * layout.dp
    assert held >= weight_account(K3).bytes
    assert all(line.low <= line.bytes <= line.high for stage in made.stages for line in stage.lines)


def test_other_models_have_ledgers_too() -> None:
    assert plan("1x8xh20-96", "tp8", model="qwen3-next-80b").fits
    assert plan("2x8xh20-96", "tp8,pp2", model="deepseek-v3").fits
    assert plan("4x8xh20-96", "tp8,pp4", model="kimi-k3.1-pro").fits
    gqa = plan("1x8xh20-96", "tp8", model="gpt-oss-120b")
    assert gqa.caches and gqa.caches.block_tokens == 64


def test_every_rule_has_its_source() -> None:
    for engine in ENGINES.values():
        for name in ("kernel_width_multiple", "width_floor", "runtime_bytes", "activation_bytes"):
            assert set(engine.rule(name).source_ids) <= set(sources())
    with pytest.raises(InputError, match="Did you mean 'width_floor'"):
        vllm.ENGINE.rule("width_flor")


PLAN_CALL = ["plan", "--model", "kimi-k3", "--cluster", "4x8xh20-96", "--layout", "tp8,pp4", "--engine", "vllm"]


def test_the_command_prints_the_ledger_and_its_json() -> None:
    text = k3(*PLAN_CALL, "--max-model-len", "32768", "--concurrency", "64")
    assert text.returncode == 0
    for word in (
        "scales of the experts",
        "left for caches",
        "state slots",
        "64 requests of 32,768 tokens at once: yes",
    ):
        assert word in text.stdout
    data = json.loads(k3(*PLAN_CALL, "--json").stdout)
    assert data["fits"] is True
    assert len(data["stages"]) == len(data["weights_gib"]) == 4
    assert set(data["stages"][0]["ledger"][0]) == {"name", "gib", "low", "high", "grade"}
    wanted = {"reason", "capacity_gib", "tightest_stage", "kv_tokens", "kv_tokens_physical", "max_concurrency",
              "state_slots", "max_running_requests", "block_tokens", "max_context"}  # fmt: skip
    assert wanted <= set(data)
    assert data["max_context"] == 1_048_576


def test_the_command_says_no_with_exit_code_1() -> None:
    done = k3("plan", "--cluster", "2x8xh20-96", "--layout", "tp16,ep16", "--gpu-memory-utilization", "0.97", "--json")
    assert done.returncode == 1
    data = json.loads(done.stdout)
    assert data["fits"] is False
    assert "101.7 GiB" in data["reason"] and "Nearest that fits: tp8,pp4 on 4x8xh20-96" in data["reason"]


def test_a_logged_cache_size_replaces_the_lines_before_it() -> None:
    done = k3("plan", "--cluster", "2x8xh200", "--layout", "tp8,pp2", "--max-model-len", "8192", "--kv-memory-gib",
              "26.88,26.57", "--json")  # fmt: skip
    assert json.loads(done.stdout)["kv_tokens"] == 1_451_154


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cluster", "4x8xh20-69"], ["Did you mean 'h20-96'?"]),
        (["--cluster", "4x8"], ["NODESxCARDSxDEVICE"]),
        (["--cluster", "4x5xh20-96"], ["takes 32 cards"]),
        (["--layout", "tp8,pp4,tp8"], ["tp stands twice"]),
        (["--layout", "tq8"], ["'tq' is not known"]),
        (["--layout", "tp0"], ["tp must be from 1"]),
        (["--layout", "tp64"], ["does not divide attention heads"]),
        (["--pp-partition", "24,23,23,24"], ["adds up to 94"]),
        (["--pp-partition", "47,46"], ["has 2 stages"]),
        (["--pp-partition", "a,b"], ["numbers separated by commas"]),
        (["--engine", "vlm"], ["Did you mean 'vllm'?"]),
        (["--gpu-memory-utilization", "1.2"], ["above 0 and at most 1"]),
        (["--gpu-memory-utilization", "nan"], ["above 0 and at most 1"]),
        (["--kv-cache-dtype", "fp9"], ["not known"]),
        (["--max-model-len", "0"], ["at least 1"]),
        (["--kv-memory-gib", "-3"], ["finite and above 0"]),
        (["--kv-memory-gib", "1,2,3"], ["gives 3 values"]),
        (["--concurrency", "0"], ["at least 1"]),
        (["--model", "kimi-k33"], ["Did you mean 'kimi-k3'?"]),
        (["--engine", "sglang", "--mamba-radix-cache-strategy", "lazy"], ["not known"]),
        (["--engine", "sglang", "--mamba-full-memory-ratio", "-1"], ["must be above 0"]),
        (["--hardware", "missing.csv"], ["no such file"]),
    ],
)
def test_bad_options_get_one_line(arguments: list[str], words: list[str]) -> None:
    refused(k3(*PLAN_CALL, *arguments), *words)


def test_a_device_of_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "device,quantity,value,low,high,unit,grade,as_of,source_id,note\n"
        "mycard,memory_shown,128,,,GiB,assumed,2026,my_quote,\n"
    )
    done = k3(*PLAN_CALL, "--cluster", "4x8xmycard", "--hardware", str(path), "--json")
    assert json.loads(done.stdout)["capacity_gib"] == 128
