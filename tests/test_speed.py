"""The time of a pass, the kernel curves behind it, and the closed loop: against tables, limits and each other."""

from __future__ import annotations

import dataclasses
import itertools
import time
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from k3lib.account import passes as eq
from k3lib.account import symbols as s
from k3lib.deploy import constants as co
from k3lib.deploy import curves as cv
from k3lib.deploy import serve as sv
from k3lib.deploy.caches import Settings
from k3lib.deploy.loop import Loop
from k3lib.deploy.passes import Constants, PassTimes, SetUp, constants, expected_most
from k3lib.deploy.plan import ENGINES, make_plan
from k3lib.deploy.speed import Options, answer, question, roofline_tps, step_terms
from k3lib.engines.layout import parse_cluster, parse_layout
from k3lib.errors import InputError, NoSpeedError
from k3lib.evaluate import arrays
from k3lib.facts.paths import MODELS
from k3lib.facts.timings import kernel_times
from k3lib.models.model import load_model

K3 = load_model("kimi-k3")
NUMBERS = co.table()


def set_up(cluster: str = "2x8xh200", layout: str = "tp8,pp2", engine: str = "vllm", **more: object) -> SetUp:
    return SetUp(K3, parse_cluster(cluster), parse_layout(layout), ENGINES[engine], **more)  # type: ignore[arg-type]


def asked(cluster: str, layout: str, engine: str, isl: int, osl: int, concurrency: int, **more: object):  # type: ignore[no-untyped-def]
    requests = more.pop("requests", None)
    options = Options(**{k: more.pop(k) for k in ("nics", "experts", "all_reduce") if k in more})  # type: ignore[arg-type]
    plan = make_plan(K3, parse_cluster(cluster), parse_layout(layout), engine,
                     Settings(**{"max_num_seqs": 512, "max_model_len": isl + osl, **more}))  # type: ignore[arg-type]  # fmt: skip
    return question(plan, sv.Load(isl, osl, concurrency, requests), options)


# --- equations ------------------------------------------------------------


def distinct(tokens: object, skew: object, groups: int = 1) -> np.ndarray:
    values = {s.decode_tokens: tokens, s.prompt_tokens: 0.0, s.drafted_tokens: 0.0, s.skew: skew, s.experts: 896,
              s.experts_per_token: 16, s.token_groups: groups}  # fmt: skip
    return arrays({"d": eq.distinct_experts()}, values)["d"]


def test_even_routing_gives_the_textbook_count_of_distinct_experts() -> None:
    tokens = np.array([1.0, 2, 8, 64, 512, 8192])
    expected = 896 * (1 - (1 - 16 / 896) ** tokens)
    assert distinct(tokens, 0.0) == pytest.approx(expected, rel=1e-12)
    assert distinct(1.0, 0.0)[0] == pytest.approx(16)


@settings(deadline=None)
@given(st.lists(st.floats(1, 20_000), min_size=2, max_size=6, unique=True), st.floats(0, 1))
def test_more_tokens_use_more_experts_and_skew_fewer(tokens: list[float], skew: float) -> None:
    tokens = sorted(tokens)
    found = distinct(np.array(tokens), skew)
    assert np.all(np.diff(found) >= -1e-9) and np.all(found <= 896 + 1e-9)
    assert np.all(found <= distinct(np.array(tokens), 0.0) * (1 + 2e-3))  # nine points stand for 896 experts
    assert found[0] >= 0.9 * 16


def test_one_token_uses_as_many_experts_whatever_the_skew() -> None:
    assert distinct(1.0, 0.36)[0] == pytest.approx(16, rel=1e-3)


def test_the_busiest_card_has_all_experts_without_expert_parallelism_and_more_than_the_mean_with_it() -> None:
    values = {s.decode_tokens: 8.0, s.prompt_tokens: 0.0, s.drafted_tokens: 0.0, s.skew: 0.3, s.experts: 896,
              s.experts_per_token: 16, s.token_groups: 1}  # fmt: skip
    alone = arrays({"b": eq.busiest_card_experts()}, {**values, s.experts_held: 896, s.most_over_mean: 0.0})["b"][0]
    assert alone == pytest.approx(distinct(8.0, 0.3)[0])
    shared = arrays({"b": eq.busiest_card_experts()},
                    {**values, s.experts_held: 56, s.most_over_mean: expected_most(16)})["b"][0]  # fmt: skip
    assert alone / 16 < shared < 56


@pytest.mark.parametrize(("cards", "most"), [(1, 0.0), (2, 0.5642), (8, 1.4236), (16, 1.7660), (64, 2.3437)])
def test_the_largest_of_normal_loads_is_that_of_the_tables(cards: int, most: float) -> None:
    assert expected_most(cards) == pytest.approx(most, abs=2e-4)


def test_a_corner_is_never_below_its_limits_nor_above_their_sum() -> None:
    for tokens in (1.0, 100.0, 10_000.0):
        values = {s.decode_tokens: tokens, s.prompt_tokens: 0.0, s.drafted_tokens: 0.0, s.stage_bytes: 12e9,
                  s.stage_work: 12e9, s.card_bandwidth: 4.8e6, s.card_rate: 989e6, s.stream_share: 0.7,
                  s.matrix_share: 0.6}  # fmt: skip
        found = arrays({"t": eq.dense_us()}, values)["t"][0]
        stream, work = 12e9 / (4.8e6 * 0.7), 12e9 * tokens / (989e6 * 0.6)
        assert max(stream, work) <= found <= stream + work


def test_mla_is_computed_in_whole_blocks_of_heads() -> None:
    """12 heads a card cost what 64 do: which makes H20, with little arithmetic, wait for it."""
    base = {s.decode_tokens: 32.0, s.prompt_tokens: 0.0, s.drafted_tokens: 0.0, s.context_tokens: 30_000.0,
            s.seen_tokens: 0.0, s.layers_mla: 24, s.heads: 96, s.latent_kv: 512, s.rope: 64, s.nope: 128,
            s.value_dim: 128, s.cache_bytes: 2, s.card_bandwidth: 4e6, s.cache_rate: 148e6, s.cache_share: 0.8,
            s.mla_share: 0.9, s.flash_share: 0.5, s.head_block: 64, s.cache_exchange_us: 0.0,
            s.context_shares: 1}  # fmt: skip
    at = {tp: arrays({"t": eq.mla_us()}, {**base, s.tensor_parallel: tp})["t"][0] for tp in (1, 2, 8, 16)}
    assert at[2] == at[8] == at[16] < at[1]
    read = 24 * 32 * 30_000 * 576 * 2 / (4e6 * 0.8)
    assert at[8] > read  # bound by arithmetic


def test_a_million_passes_in_one_call_take_under_two_seconds() -> None:
    passes = PassTimes(set_up())
    known = constants(passes.setup, NUMBERS)
    rng = np.random.default_rng(0)
    decode, prompt = rng.uniform(1, 256, 10**6), rng.uniform(0, 8192, 10**6)
    passes.times(known, decode[:10], prompt[:10], 1500.0, 500.0)
    began = time.perf_counter()
    times = passes.times(known, decode, prompt, 1500.0, 500.0)
    assert time.perf_counter() - began < 5  # under 2 s alone; other tests share the two cores
    assert times.shape == (2, 10**6) and np.all(times > 0)


# --- kernel curves ------------------------------------------------------------

MARLIN = [r for r in kernel_times() if r.kernel == "experts" and r.model == "kimi-k3" and r.routing == "balanced"
          and r.implementation in ("marlin, SGLang 0.5.14", "marlin, vLLM 0.24.0") and r.time_us]  # fmt: skip


@pytest.mark.parametrize(
    "row", [r for r in MARLIN if r.device == "h20-141"], ids=lambda r: f"tp{r.tp}-t{r.tokens}"
)  # fmt: skip
def test_the_expert_curve_gives_back_the_table_of_h20(row) -> None:  # type: ignore[no-untyped-def]
    pairs = 16 * row.tokens
    hit = min(pairs, 896)
    share = {1: 1.0, 8: 384 / 3072, 16: 256 / 3072, 32: 128 / 3072}[row.tp]
    us = cv.ExpertTime("marlin", "h20-96", share, 1, 1.0).at(np.array([pairs / hit]))[0]
    assert cv.kernel_start_us("marlin") + hit * us == pytest.approx(row.time_us, rel=0.09)


@pytest.mark.parametrize("row", [r for r in MARLIN if r.device == "h100" and r.ep and r.ep > 1],
                         ids=lambda r: f"ep{r.ep}-t{r.tokens}")  # fmt: skip
def test_experts_shared_by_cards_on_h100_follow_from_the_rows_of_h200(row) -> None:  # type: ignore[no-untyped-def]
    pairs = 16 * row.tokens / row.ep
    hit = min(pairs, 896 / row.ep)
    us = cv.ExpertTime("marlin", "h100", 1.0, row.ep, 1.0).at(np.array([pairs / hit]))[0]
    assert cv.kernel_start_us("marlin") + hit * us == pytest.approx(row.time_us, rel=0.12)


def test_marlin_follows_the_processors_and_not_the_memory() -> None:
    one = np.array([1.0, 2.0])
    h200, h100, h20 = (cv.ExpertTime("marlin", d, 1.0, 1, 1.0).at(one) for d in ("h200", "h100", "h20-141"))
    assert h100 == pytest.approx(h200, rel=0.03)  # 43 % more bandwidth buys nothing
    assert h20 / h200 == pytest.approx(132 / 78, rel=0.15)  # same bandwidth, fewer processors


def test_a_card_without_a_table_takes_that_of_its_kin_by_its_processors() -> None:
    tokens = np.array([1.0, 4.0])
    kin, own = (cv.ExpertTime("marlin", d, 1.0, 1, 1.0).at(tokens) for d in ("h20-141", "h20-96"))
    assert own == pytest.approx(kin)
    with pytest.raises(InputError, match="no experts of kernel"):
        cv._whole_expert("none", "h200")


def test_narrow_shares_cost_more_than_their_part_and_the_wider_always_more() -> None:
    tokens = np.array([1.0, 9.0, 100.0])
    times = [cv.ExpertTime("marlin", "h20-96", share, 1, 1.0).at(tokens) for share in (1 / 24, 1 / 12, 1 / 8, 1 / 2, 1)]
    for narrow, wide in itertools.pairwise(times):
        assert np.all(narrow < wide)
    assert np.all(times[0] > times[-1] / 24)


@pytest.mark.parametrize("device", ["h20-141", "h200"])
def test_state_traffic_gives_the_measured_kda_kernels(device: str) -> None:
    """Batches of 32 and more, where start-up no longer counts; a start-up of 5 us is the layer's constant."""
    rows = [r for r in kernel_times() if r.kernel == "kda_decode" and r.device == device and (r.tokens or 0) >= 32]
    best: dict[tuple[int, int], float] = {}
    for r in rows:
        key = (r.heads or 0, r.tokens or 0)
        best[key] = min(best.get(key, np.inf), r.time_us or np.inf)
    assert len(best) >= 4
    for (heads, batch), measured in best.items():
        values = {s.decode_tokens: float(batch), s.prompt_tokens: 0.0, s.kda_prompt_us: 0.0 + 1e-9, s.layers_kda: 1,
                  s.kda_heads: heads, s.kda_dim: 128, s.state_bytes: 4, s.tensor_parallel: 1,
                  s.card_bandwidth: 4.8e6, s.state_share: 0.68}  # fmt: skip
        assert arrays({"t": eq.kda_us()}, values)["t"][0] == pytest.approx(measured, rel=0.35)


def test_exchanges_grow_with_bytes_and_cost_more_between_nodes() -> None:
    curve = cv.exchange_curve("nccl")
    sizes = np.array([2e3, 1e5, 1e7, 1e9])
    assert np.all(np.diff(curve.at(sizes)) > 0)
    inside, outside = (PassTimes(set_up(layout=layout)) for layout in ("tp8,pp2", "tp16"))
    size = np.array([14_336.0])
    known = constants(outside.setup, NUMBERS)
    assert outside.exchange_us(16, size, known)[0] > inside.exchange_us(8, size, known)[0]
    slow = PassTimes(set_up(layout="tp16", nics=1))
    assert slow.exchange_us(16, size * 1e4, known)[0] > 5 * outside.exchange_us(16, size * 1e4, known)[0]


# --- passes ------------------------------------------------------------


def test_terms_add_up_and_prompts_take_launches_or_work() -> None:
    passes = PassTimes(set_up())
    known = constants(passes.setup, NUMBERS)
    decode, prompt = np.array([1.0, 32.0, 0.0, 16.0]), np.array([0.0, 0.0, 1000.0, 4096.0])
    terms = passes.terms(known, decode, prompt, 1500.0, 500.0)
    assert np.allclose(sum(terms.values()), passes.times(known, decode, prompt, 1500.0, 500.0))
    assert np.all(terms["launching kernels"][:, :2] == 0) and np.all(terms["layers"][:, 2:] == 0)
    launches = np.array([[47.0], [46.0]]) * known["launch_us"]
    assert np.all(passes.times(known, decode, prompt, 1500.0, 500.0)[:, 2:] >= launches)


def test_a_stage_of_another_width_reads_its_share_of_the_weights() -> None:
    narrow, wide = (PassTimes(set_up(layout=layout)).stages[0][s.stage_bytes] for layout in ("tp16,pp1", "tp8,pp1"))
    assert wide / 2 < narrow < wide  # copied weights do not shrink
    from k3lib.deploy.ledger import weight_lines

    setup = set_up()
    lines = {x.name: x.bytes for x in weight_lines(setup.engine, K3, setup.layout, range(47), (True, False), False)}
    vision = 802_428_928 + 92_289_024
    stage = PassTimes(setup).stages[0][s.stage_bytes]
    assert stage == pytest.approx(lines["split weights"] + lines["copied weights"] - vision, rel=0.1)


def test_what_has_no_modelled_speed_is_refused_by_name() -> None:
    sparse = dataclasses.replace(K3, values={**K3.values, s.layers_index: 4})
    with pytest.raises(NoSpeedError, match="sparse attention"):
        PassTimes(dataclasses.replace(set_up(), model=sparse))


def test_experts_in_the_first_image_are_padded_under_expert_parallelism() -> None:
    old, new = (PassTimes(set_up(layout="tp16,ep16", engine=e)).expert for e in ("vllm-2026-07", "vllm"))
    assert old is not None and new is not None
    assert (old.share, new.share) == (pytest.approx(4096 / 3072), 1.0)


# --- the closed loop ------------------------------------------------------------

FLAT = Constants({})


def flat_grid(stage_us: list[float], per_prompt_us: float = 0.0) -> sv.Grid:
    """Passes whose time does not depend on what they generate."""
    requests, prompts = [0, 4096], [1.0, 100_000.0]
    decode = [[0.0, t] for t in stage_us]
    for row in decode:
        row[0] = row[1]
    mixed = [[[t + per_prompt_us * p for p in prompts] for _ in requests] for t in stage_us]
    return sv.Grid(decode, mixed, requests, prompts)


def rules(slots: int = 1, **more: object) -> sv.Rules:
    return sv.Rules(**{"slots": slots, "chunk": 8192, "running": 256, "mixes": True, "client_us": 0.0,
                       "hop_us": 0.0, **more})  # type: ignore[arg-type]  # fmt: skip


@pytest.mark.parametrize("mixes", [True, False])
def test_one_client_alone_sees_the_passes_themselves(mixes: bool) -> None:
    served = sv.serve(flat_grid([2000.0, 3000.0], 1.0), sv.Load(1000, 101, 1, 3), rules(2, mixes=mixes))
    assert served.tpot_ms == pytest.approx(5.0)
    assert served.ttft_mean_ms == pytest.approx(5.0 + 2 * 1.0)
    assert served.output_tps == pytest.approx(101 / (7.0 + 100 * 5.0) * 1e3)


def test_two_stages_serve_two_groups_at_once() -> None:
    """A pass of each stage takes 5 ms: requests of two slots advance together every 10 ms, not every 20."""
    served = sv.serve(flat_grid([5000.0, 5000.0]), sv.Load(8192, 400, 2, 4), rules(2))
    assert served.tpot_ms == pytest.approx(10.0, rel=0.01)


@pytest.mark.parametrize(
    ("mixes", "slots", "concurrency"), [(True, 1, 8), (True, 2, 24), (False, 4, 24), (False, 1, 5)]
)
def test_jumping_over_equal_passes_changes_nothing(monkeypatch, mixes: bool, slots: int, concurrency: int) -> None:  # type: ignore[no-untyped-def]
    grid, load = flat_grid([1500.0] * slots, 0.5), sv.Load(1000, 120, concurrency, 3 * concurrency)
    quick = sv.serve(grid, load, rules(slots, mixes=mixes, client_us=700.0, hop_us=20.0))
    monkeypatch.setattr(Loop, "_jump", lambda self: None)
    slow = sv.serve(grid, load, rules(slots, mixes=mixes, client_us=700.0, hop_us=20.0))
    for name in ("output_tps", "tpot_ms", "ttft_mean_ms", "ttft_median_ms"):
        assert getattr(quick, name) == pytest.approx(getattr(slow, name), rel=2e-3)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 20_000), st.integers(1, 300), st.integers(1, 64), st.integers(1, 4), st.booleans(),
       st.integers(1, 64), st.integers(256, 9000))  # fmt: skip
def test_every_request_is_answered_and_the_identity_holds(
    isl: int, osl: int, concurrency: int, slots: int, mixes: bool, running: int, chunk: int
) -> None:
    load = sv.Load(isl, osl, concurrency, 3 * concurrency)
    loop = Loop(flat_grid([900.0] * slots, 0.2).at, load, rules(slots, mixes=mixes, running=running, chunk=chunk))
    (loop.mixing if mixes else loop.taking_turns)()
    assert loop.done == load.total == len(loop.ttft) and loop.running == 0
    assert not loop.waiting and not loop.flying
    assert not any(slot.requests or slot.groups or slot.partial for slot in loop.slots)
    assert min(loop.ttft) >= 900.0 * slots - 1e-6
    if osl > 1:
        busy = sum(loop.ttft) + sum(t * (osl - 1) for t in loop.tpot)
        assert busy <= loop.end * concurrency * (1 + 1e-9)  # clients are never busier than always


def test_no_more_run_at_once_than_memory_allows_and_the_rest_waits() -> None:
    free, capped = (sv.serve(flat_grid([1000.0], 0.1), sv.Load(1000, 200, 64, 128), rules(running=n)) for n in (64, 8))
    assert capped.ttft_mean_ms > 5 * free.ttft_mean_ms
    assert capped.output_tps < free.output_tps


def test_a_run_that_would_not_end_in_time_is_refused_at_once() -> None:
    began = time.perf_counter()
    with pytest.raises(InputError, match="ask for fewer --requests"):
        sv.serve(flat_grid([1000.0]), sv.Load(100_000, 1000, 4000), rules(chunk=1))
    assert time.perf_counter() - began < 1


def test_a_draft_shortens_an_answer_by_what_is_accepted() -> None:
    plain, drafted = (sv.serve(flat_grid([1000.0]), sv.Load(100, 301, 1, 2, a), rules()) for a in (1.0, 3.0))
    assert plain.tpot_ms == pytest.approx(3 * drafted.tpot_ms)


def test_prompts_read_elsewhere_do_not_hold_up_generation() -> None:
    load = sv.Load(8000, 200, 8, 24)
    together = sv.serve(flat_grid([1000.0], 0.1), load, rules())
    apart = sv.serve(flat_grid([1000.0], 0.1), load, rules(apart=sv.Apart(800_000.0, 100_000.0)))
    assert apart.tpot_ms == pytest.approx(1.0)
    assert together.tpot_ms > 1.02
    assert apart.ttft_mean_ms > 800


@pytest.mark.parametrize(
    ("change", "message"),
    [({"isl": 0}, "--isl 0"), ({"osl": 0}, "--osl 0"), ({"requests": 0}, "--requests 0"),
     ({"acceptance": 0.5}, "at least 1 token a pass"), ({"acceptance": float("nan")}, "at least 1 token a pass"),
     ({"concurrency": -1}, "--concurrency -1"), ({"concurrency": 10**9}, "at most")],
)  # fmt: skip
def test_loads_that_cannot_be_are_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sv.Load(**{"isl": 10, "osl": 10, "concurrency": 1, **change})  # type: ignore[arg-type]


def test_a_cell_of_the_closed_loop_takes_under_ten_milliseconds() -> None:
    took = []
    for concurrency in (1, 8, 32, 128, 256):
        one = asked("2x8xh200", "tp8,pp2", "vllm", 1000, 1000, concurrency)
        answer(one, NUMBERS)
        began = time.perf_counter()
        answer(one, NUMBERS)
        took.append(time.perf_counter() - began)
    assert sorted(took)[2] < 0.01 and max(took) < 0.04  # other tests share the two cores


# --- plans ------------------------------------------------------------


def test_terms_of_a_step_are_named_and_the_roofline_is_far_too_fast() -> None:
    for concurrency in (1, 32, 256):
        one = asked("4x8xh20-96", "tp8,pp4", "vllm", 1000, 1000, concurrency)
        terms = step_terms(one, NUMBERS)
        assert {"layers", "dense weights", "experts", "all-reduce"} <= set(terms)
        ratio = roofline_tps(one) / answer(one, NUMBERS).output_tps
        assert 2 < ratio < 20


def test_copies_share_the_clients() -> None:
    one, two = (
        asked("2x8xh200", "tp8,pp2", "vllm", 1000, 1000, 16),
        asked("4x8xh200", "tp8,pp2", "vllm", 1000, 1000, 32),
    )
    assert (one.copies, two.copies, two.load.concurrency) == (1, 2, 16)
    assert answer(two, NUMBERS).output_tps == pytest.approx(2 * answer(one, NUMBERS).output_tps)


def test_a_client_is_served_by_one_copy_only() -> None:
    one = answer(asked("2x8xh200", "tp8,pp2", "vllm", 1000, 1000, 1), NUMBERS)
    alone = answer(asked("8x8xh200", "tp8,pp2", "vllm", 1000, 1000, 1), NUMBERS)
    assert alone.output_tps == pytest.approx(one.output_tps)
    three, four = (answer(asked("4x8xh200", "tp8,pp2", "vllm", 1000, 1000, n), NUMBERS) for n in (3, 4))
    assert one.output_tps < three.output_tps < four.output_tps
    for served, clients in ((alone, 1), (three, 3)):  # nobody is served faster than the times allow
        longest = clients * 1000 / (served.ttft_mean_ms + 999 * served.tpot_ms) * 1000
        assert served.output_tps <= 1.02 * longest


def test_cards_of_small_servers_have_no_links_between_them() -> None:
    whole, halves, racks = (set_up(cluster, "tp8").domain for cluster in ("2x8xh200", "4x4xh200", "4x4xgb200"))
    assert (whole, halves, racks) == (8, 4, 16)
    assert set_up("4x4xh200", "tp8").spans_nodes and not set_up("4x4xgb200", "tp8").spans_nodes
    assert set_up("1x16xh200", "tp16").spans_nodes  # no server links sixteen of them


@pytest.mark.parametrize(("cluster", "kernel"), [("4x8xh20-96", "trtllm"), ("4x8xh20-96", "trtllm-w4a8"),
                                                 ("1x8xb300", "humming")])  # fmt: skip
def test_kernels_that_do_not_run_on_a_card_are_refused(cluster: str, kernel: str) -> None:
    with pytest.raises(InputError, match=f"--moe-backend {kernel}: does not run"):
        asked(cluster, "tp8,pp4" if cluster[0] == "4" else "tp8", "vllm", 1000, 1000, 1, experts=kernel)


def test_no_kernel_reads_faster_than_the_memory() -> None:
    passes = PassTimes(set_up(experts="humming"))
    fast = {**NUMBERS, ("kernel_decode", "humming"): co.Known(0.01, 0.0, ("kernel_decode", "humming"), "")}
    known = constants(passes.setup, fast)
    spent = passes.terms(known, np.array([64.0]), np.array([0.0]), 1500.0, 500.0)["experts"][0, 0]
    used = distinct(64.0, known["skew"])[0]
    bytes_read = 46 * used * 3 * 3584 * 3072 / 8 * 4.25 / 8
    assert spent == pytest.approx(bytes_read / 4.8e6, rel=1e-3)


def test_cards_that_share_a_cache_read_it_faster_and_pay_for_an_exchange() -> None:
    def attention_us(layout: str, context: float) -> float:
        passes = PassTimes(set_up("1x8xb300", layout))
        known = constants(passes.setup, NUMBERS)
        return float(passes.terms(known, np.array([16.0]), np.array([0.0]), context, 500.0)["attention"][0, 0])

    assert attention_us("tp8,dcp8", 300_000) < attention_us("tp8", 300_000) / 2
    assert attention_us("tp8,dcp8", 500) > attention_us("tp8", 500)


def test_requests_longer_than_the_model_takes_have_no_speed() -> None:
    plan = make_plan(K3, parse_cluster("4x8xh20-96"), parse_layout("tp8,pp4"), "vllm", Settings(max_model_len=1000))
    with pytest.raises(InputError, match="takes at most 1,048,576"):
        question(plan, sv.Load(2_000_000, 1000, 1))
    with pytest.raises(NoSpeedError, match="--osl 2"):
        question(plan, sv.Load(100, 1, 1))


@pytest.mark.parametrize("config", sorted(MODELS.glob("*.config.json")), ids=lambda p: p.name.split(".")[0])
def test_every_known_configuration_has_a_speed_or_says_why_not(config: Path) -> None:
    model = load_model(str(config))
    plan = make_plan(model, parse_cluster("8x8xb300"), parse_layout("tp8"), "vllm", Settings(max_model_len=2000))
    assert plan.fits
    try:
        served = answer(question(plan, sv.Load(1000, 1000, 8)), NUMBERS)
    except NoSpeedError as error:
        assert "not modelled" in str(error)
    else:
        assert 0 < served.tpot_ms < 1000 and served.ttft_mean_ms > 0


def test_fewer_network_cards_slow_what_goes_between_nodes_and_hardly_a_pipeline() -> None:
    def tps(layout: str, nics: int) -> float:
        return answer(asked("2x8xh200", layout, "sglang", 1000, 1000, 16, nics=nics), NUMBERS).output_tps

    assert tps("tp16,ep16", 1) < 0.9 * tps("tp16,ep16", 8)
    assert tps("tp8,pp2", 1) > 0.97 * tps("tp8,pp2", 8)


@pytest.mark.parametrize("nics", [0, -4, 65])
def test_network_cards_that_cannot_be(nics: int) -> None:
    with pytest.raises(InputError, match=f"--nics {nics}"):
        asked("2x8xh200", "tp8,pp2", "vllm", 1000, 1000, 1, nics=nics)


def test_equations_can_be_printed_in_the_books_notation() -> None:
    for build in (eq.dense_us, eq.experts_us, eq.kda_us, eq.mla_us, eq.gqa_us, eq.exchanges_us, eq.hop_us):
        assert s.latex(build())
    assert isinstance(eq.distinct_experts(), sp.Expr)
