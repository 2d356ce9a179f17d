"""What the articles offer to those who cannot buy the whole: formats, fewer experts, main memory, drafts, halves."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from k3lib.account import offload as eq
from k3lib.account import passes
from k3lib.account import symbols as s
from k3lib.calibrate import alternatives as alt
from k3lib.calibrate.predict import numbers
from k3lib.deploy import offload as off
from k3lib.deploy import variants as var
from k3lib.deploy.caches import Settings
from k3lib.deploy.holds import held
from k3lib.deploy.load import Load
from k3lib.deploy.offload_checks import hit_checks, run_checks
from k3lib.deploy.pilot import pilot
from k3lib.deploy.plan import make_plan
from k3lib.engines.layout import parse_cluster, parse_layout
from k3lib.errors import InputError
from k3lib.facts import variants as facts
from k3lib.facts.catalog import article_figures
from k3lib.facts.paths import DATA
from k3lib.models.model import load_model
from k3lib.models.weights import weight_account
from k3lib.units import convert

K3 = load_model("kimi-k3")
USUAL = Settings(utilisation=0.90)
NODE = parse_cluster("1x8xh20-96")
TP8 = parse_layout("tp8")
MANY = Settings(utilisation=0.90, max_num_seqs=512)
ONE_NODE = off.case_of(K3, "1x8xh20-96", "tp8", 2048, 2000, MANY)


# Sizes


def test_the_released_size_to_the_byte() -> None:
    size = var.size("mxfp4")
    assert size.computed == size.published == 1_560_860_324_864
    assert size.difference == 0


def test_sixteen_bits_are_what_article_a_says() -> None:
    said = article_figures()["A06.fp16_weights"]
    computed = var.size("bf16").bytes
    assert computed == 5_559_885_919_232
    assert round(convert(computed, "B", "TB"), 1) == said.value == 5.6


@pytest.mark.parametrize(("name", "within"), [("nvfp4", 0.0005), ("fp8-block", 0.01)])
def test_published_formats_are_as_computed(name: str, within: float) -> None:
    difference = var.size(name).difference
    assert difference is not None and abs(difference) < within


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [("q8", 1561.2), ("q4", 1508.7), ("q2", 861.3), ("iq2", 711.1), ("iq1-m", 648.9), ("iq1-s", 594.0), ("tq2", 551.5),
     ("tq1", 508.9), ("q1", 466.4)],
)  # fmt: skip
def test_gguf_files_have_the_bits_that_are_printed(name: str, gigabytes: float) -> None:
    size, row = var.size(f"gguf-{name}"), facts.variant(f"gguf-{name}")
    assert size.bytes == pytest.approx(gigabytes * 1e9) and size.computed is None
    assert row.bits_per_weight == pytest.approx(size.bits_per_weight, abs=0.0051)


@pytest.mark.parametrize("name", ["reap-242", "reap-179"])
def test_pruned_files_keep_their_rest_in_eight_bits(name: str) -> None:
    size = var.size(name)
    assert size.difference is not None and -0.14 < size.difference < -0.10  # the account's rest is in BF16
    assert size.rest_bits == pytest.approx(8.56, abs=0.01)  # 8 and a scale and an offset of 16 for each group of 64
    model = var.with_experts(K3, size.experts)
    account = weight_account(model)
    assert account.routed_bytes == size.experts * 92 * 17_547_264
    assert account.groups["router"] == 92 * (size.experts * 7168 * 2 + size.experts * 4)


@settings(max_examples=25, deadline=None)
@given(st.integers(16, 895))
def test_fewer_experts_are_fewer_bytes(experts: int) -> None:
    fewer, more = (weight_account(var.with_experts(K3, n)).bytes for n in (experts, experts + 1))
    assert more - fewer == 92 * (17_547_264 + 7168 * 2 + 4)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 92))
def test_fewer_layers_are_fewer_bytes(layers: int) -> None:
    fewer, more = (weight_account(var.with_layers(K3, n)).bytes for n in (layers, layers + 1))
    assert fewer < more <= weight_account(K3).bytes


def test_all_experts_and_all_layers_are_the_model() -> None:
    for whole in (var.with_experts(K3, 896), var.with_layers(K3, 93), off.with_resident(K3, 896)):
        assert weight_account(whole).bytes == weight_account(K3).bytes


def test_resident_experts_keep_the_whole_router() -> None:
    part = weight_account(off.with_resident(K3, 100))
    assert part.groups["router"] == weight_account(K3).groups["router"]
    assert part.routed_bytes == 100 * 92 * 17_547_264


# Where they fit


@pytest.mark.parametrize(
    ("name", "device", "cards"),
    [("mxfp4", "h20-96", 24), ("mxfp4", "h20-141", 16), ("mxfp4", "h200", 16), ("mxfp4", "l20", 48),
     ("fp8", "h20-96", 40), ("bf16", "h20-96", 72), ("reap-448", "h20-141", 8), ("reap-242", "h20-96", 8)],
)  # fmt: skip
def test_fewest_cards_by_the_ledger(name: str, device: str, cards: int) -> None:
    fit = var.fewest(name, device, USUAL)
    assert (fit.cards, fit.lower_bound) == (cards, False) and fit.layout


def test_a_file_alone_gives_a_lower_bound() -> None:
    fit = var.fewest("gguf-q2", "h20-96", USUAL)
    assert fit.lower_bound and fit.cards == math.ceil(861.3e9 / fit.usable_high) == 10 and fit.in_servers == 16
    assert 0 < fit.usable_low < fit.usable_high < 0.9 * 97_871 * 2**20
    assert var.fewest("bf16", "l20", USUAL).cards is None


def test_eight_bits_on_32_h20_load_but_leave_nothing() -> None:
    cluster = parse_cluster("4x8xh20-96")
    as_article_a = held("kimi-k3", "fp8", cluster, "vllm", Settings(utilisation=0.97), parse_layout("tp8,pp4"))
    assert not as_article_a.fits and "goes beyond" in as_article_a.reason
    assert as_article_a.weights_gib < as_article_a.offered_gib and -3 < as_article_a.free_gib < 0
    cut = Settings(utilisation=0.97, chunk_tokens=2048, max_model_len=4096)
    assert held("kimi-k3", "fp8", cluster, "vllm", cut).fits
    assert not held("kimi-k3", "bf16", cluster, "vllm", cut).fits
    assert not held("kimi-k3", "fp8", cluster, "vllm", USUAL).fits


@pytest.mark.parametrize(("device", "layers", "experts"), [("h20-96", 39, 306), ("h20-141", 58, 519)])
def test_a_pilot_of_one_server(device: str, layers: int, experts: int) -> None:
    cluster = parse_cluster(f"1x8x{device}")
    found = pilot(K3, cluster, TP8, "vllm", USUAL)
    assert (found.layers, found.experts) == (layers, experts)
    assert found.free_with_layers_gib > 0 and 0.3 < found.share_with_experts < 0.7
    assert not make_plan(var.with_layers(K3, layers + 1), cluster, TP8, "vllm", USUAL).fits
    assert not make_plan(var.with_experts(K3, experts + 1), cluster, TP8, "vllm", USUAL).fits


# Experts in main memory

SIZES = {**off.expert_values(K3), s.fetch_us: 0.0}


def missed(share: float, tokens: float, skew: float) -> float:
    return off.value_of(eq.missed_experts(), {**SIZES, s.resident_share: share, s.decode_tokens: tokens, s.skew: skew})


@settings(max_examples=40, deadline=None)
@given(st.floats(0.001, 0.999), st.floats(0, 1.5))
def test_one_token_misses_what_it_does_not_hit(share: float, skew: float) -> None:
    assert missed(share, 1, skew) == pytest.approx(16 * (1 - off.hit_rate(share, skew)), rel=0.01, abs=0.02)


@settings(max_examples=40, deadline=None)
@given(st.floats(0, 0.9), st.floats(0.01, 0.09), st.floats(1, 512), st.floats(0.1, 1.2))
def test_more_on_the_cards_is_faster(share: float, more: float, tokens: float, skew: float) -> None:
    assert off.hit_rate(share + more, skew) > off.hit_rate(share, skew) >= share - 1e-9
    at = {**SIZES, **off.supposed(), s.decode_tokens: tokens, s.skew: skew}
    for way in (eq.copied_us(), eq.computed_us()):
        slow, fast = (off.value_of(way, {**at, s.resident_share: x}) for x in (share, share + more))
        assert fast < slow


@pytest.mark.parametrize("tokens", [1, 32, 256])
def test_without_any_on_the_cards_all_distinct_experts_are_missed(tokens: float) -> None:
    every = {**SIZES, s.decode_tokens: tokens, s.skew: 0.76}
    assert missed(0, tokens, 0.76) == pytest.approx(off.value_of(passes.distinct_experts(), every), rel=1e-3)
    assert missed(1, tokens, 0.76) == pytest.approx(0, abs=1e-3)


def test_the_reader_sees_the_integral_that_is_computed() -> None:
    at = {**SIZES, s.resident_share: 0.3, s.decode_tokens: 20, s.skew: 0.76}
    shown = eq.missed_integral()
    assert r"\int" in s.latex(shown) and s.latex(eq.hit_rate())
    integral = next(iter(shown.atoms(sp.Integral)))
    z, _, cut = integral.limits[0]
    function = sp.lambdify(z, integral.function.subs(at), "numpy")
    points = np.linspace(-10, float(cut.subs(at)), 20_001)
    exact = 896 * float(np.trapezoid(function(points), points))
    assert exact == pytest.approx(missed(0.3, 20, 0.76), rel=1e-6)


def test_even_routing_hits_as_many_as_there_are() -> None:
    assert off.hit_rate(0.4, 0.0) == pytest.approx(0.4)


def test_the_most_used_experts_take_what_was_measured() -> None:
    """Within a tenth for a tenth of the experts and more; a set of two in a hundred takes twice what the model says."""
    errors = {check.offload_id: check.error for check in hit_checks(numbers())}
    assert len(errors) == 4
    assert -0.65 < errors.pop("kimi-k3-hits-of-a-fixed-set-1") < -0.45
    assert all(abs(error) < 0.12 for error in errors.values())


def test_measured_runs_lie_in_the_range() -> None:
    checks = run_checks(numbers())
    in_memory, from_disk = ([c for c in checks if c.from_disk is disk] for disk in (False, True))
    assert len(in_memory) == 7 and len(from_disk) == 3
    assert all(c.predicted.low < c.measured < c.predicted.high for c in in_memory)
    assert max(abs(c.error) for c in in_memory) < 0.9
    assert all(0.8 < c.error < 1.5 for c in from_disk)  # reading alone: the rest of such a run takes as long again
    assert all(c.reached is not None and 0.1 < c.reached < 0.6 for c in checks)


def test_one_server_serves_a_few_at_best() -> None:
    points = alt.offload_points(ONE_NODE, (1, 4, 64), "copied")
    assert [p.resident for p in points] == sorted((p.resident for p in points), reverse=True)
    assert all(p.tpot_ms.low <= p.tpot_ms.value <= p.tpot_ms.high for p in points)
    assert all(p.output_tps.value == pytest.approx(p.clients * 1e3 / p.tpot_ms.value) for p in points)
    assert points[0].tpot_ms.value < points[1].tpot_ms.value < points[2].tpot_ms.value
    chat, slow = (off.verdict(points, limit) for limit in (50.0, 200.0))
    assert chat.clients <= 1 and slow.clients < 64 and slow.clients_low <= slow.clients <= slow.clients_high
    assert off.verdict(points, 50.0, least_clients=8).offline_only
    assert points[0].prompt_ms.value > 1000
    where = alt.offload_points(ONE_NODE, (1,), "computed")[0]
    assert where.tpot_ms.value > points[0].tpot_ms.value


def test_the_released_format_needs_no_main_memory_on_32_h20() -> None:
    case = off.case_of(K3, "4x8xh20-96", "tp8,pp4", 512, 2000, MANY)
    point = alt.offload_points(case, (64,), "copied")[0]
    assert point.resident == point.experts and point.host_needed == 0
    assert point.tpot_ms.value == pytest.approx(point.card_ms, abs=0.01)


def test_sixteen_bits_on_32_h20_need_a_terabyte_a_server() -> None:
    model = load_model("kimi-k3", "bf16")
    half, whole = (
        alt.offload_points(off.case_of(model, "4x8xh20-96", "tp8,pp4", gib, 2000, MANY), (1,), "copied")[0]
        for gib in (512, 1024)
    )
    assert not half.fits_host and whole.fits_host
    assert off.verdict([half], 200.0).clients == 0 and not off.verdict([half], 200.0).fits_host
    assert off.verdict([whole], 50.0).offline_only


# Drafts and halves


def test_a_draft_gains_by_its_acceptance() -> None:
    rows = [row.value for row in alt.acceptances("kimi-k3", 7)]
    assert min(rows) == 1.18 and max(rows) == 6.41 and {4.73, 2.61} <= set(rows)
    cluster, layout = parse_cluster("1x8xb300"), parse_layout("tp8")
    found = [
        alt.speculation(K3, cluster, layout, "sglang", Settings(utilisation=0.85), Load(1000, 1000, 1), 7, x)
        for x in (1.18, 4.73)
    ]
    assert found[0].gain.high < 1 < found[1].gain.low
    assert 1.18 < found[0].break_even < 4.73
    assert found[0].break_even == pytest.approx(found[1].break_even, rel=0.02)
    assert found[0].tpot_ms == found[1].tpot_ms


def test_halves_of_32_small_cards_do_not_hold_the_model() -> None:
    load = Load(8000, 1000, 8)
    found = alt.separated(K3, ("2x8xh20-96", ""), ("2x8xh20-96", ""), "vllm", MANY, load)
    assert not (found.fits_prompts or found.fits_tokens) and found.tpot_ms is None and found.cards == 32
    assert "weights need" in found.reason


def test_prompts_on_small_cards_and_generation_on_large_ones() -> None:
    load = Load(8000, 1000, 8)
    found = alt.separated(K3, ("4x8xh20-96", "tp8,pp4"), ("2x8xh20-141", "tp8,pp2"), "vllm", MANY, load,
                          ("4x8xh20-96", "tp8,pp4"))  # fmt: skip
    assert found.fits_prompts and found.fits_tokens and (found.cards, found.together_cards) == (48, 32)
    assert found.tpot_ms and found.together_tpot_ms
    assert found.tpot_ms.value < found.together_tpot_ms.value


# The tables and bad input


def test_every_figure_of_a_variant_names_one_that_is_there() -> None:
    assert {row.variant_id for row in facts.quality() if row.variant_id} <= set(facts.variants())
    assert all(row.grade == "assumed" for row in facts.quality() if row.source_id == "theaterfire_v31")
    assert all(row.grade == "assumed" and row.low is not None and row.high is not None
               for row in facts.offload().values() if row.kind == "parameter")  # fmt: skip


@pytest.mark.parametrize(
    ("table", "old", "new", "words"),
    [
        ("variants.csv", "1560860324864,,,", "1560860324864,2560860324864,,", ["published_bytes", "not between"]),
        ("variants.csv", "gguf-q8,GGUF UD-Q8_K_XL,gguf,,896,1561200000000", "gguf-q8,GGUF UD-Q8_K_XL,gguf,,896,",
         ["row 9", "published_bytes is missing"]),
        ("variants.csv", "int4,INT4", "int4,INT4,x", ["cells"]),
        ("quality.csv", "kimi-k3,format,nvfp4", "kimi-k3,format,nvfp5", ["Did you mean 'nvfp4'"]),
        ("offload.csv", "links,8,4,8", "links,8,9,8", ["value 8 is not between"]),
        ("offload.csv", "k3lib_assumed,links of", "k3lib_asumed,links of", ["Did you mean 'k3lib_assumed'"]),
    ],
)  # fmt: skip
def test_a_bad_row_is_named(table: str, old: str, new: str, words: list[str], tmp_path: Path) -> None:
    for name in ("variants.csv", "quality.csv", "offload.csv", "sources.csv"):
        shutil.copy(DATA / name, tmp_path / name)
    text = (tmp_path / table).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / table).write_text(text.replace(old, new, 1), encoding="utf-8")
    load = {"variants.csv": facts.variants, "quality.csv": facts.quality, "offload.csv": facts.offload}[table]
    with pytest.raises(InputError) as caught:
        load(tmp_path)
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan, math.inf])
def test_a_share_outside_0_to_1_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="resident_share"):
        off.hit_rate(share, 0.5)


@pytest.mark.parametrize("rate", [-1.0, 0.0, math.nan, math.inf])
def test_a_bandwidth_that_cannot_be_is_refused(rate: float) -> None:
    at = {**SIZES, **off.supposed(), s.resident_share: 0.5, s.decode_tokens: 1.0, s.skew: 0.5, s.link_rate: rate}
    with pytest.raises(InputError, match="link_rate"):
        off.value_of(eq.copied_us(), at)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: var.size("mxfp5"), "Did you mean 'mxfp4'"),
        (lambda: var.fewest("reap-241", "h20-96", USUAL), "Did you mean 'reap-242'"),
        (lambda: var.with_experts(K3, 15), "must be from 16"),
        (lambda: var.with_experts(K3, 897), "to 896"),
        (lambda: var.with_layers(K3, 94), "to 93"),
        (lambda: facts.parameter("link_rates"), "Did you mean 'link_rate'"),
        (lambda: replace(ONE_NODE, host_bytes=math.nan), "host_bytes"),
        (lambda: replace(ONE_NODE, host_bytes=-1.0), "host_bytes"),
        (lambda: off.case_of(K3, "1x8xh20-69", "tp8", 512, 2000, MANY), "Did you mean 'h20-96'"),
        (lambda: off.case_of(K3, "1x8xh20-96", "pp8", 512, 2000, MANY), "whole servers"),
        (lambda: off.resident(ONE_NODE, 0), "clients = 0"),
        (lambda: alt.offload_points(ONE_NODE, (1,), "moved"), "way = moved"),  # type: ignore[arg-type]
        (lambda: off.verdict([], 50.0), "no points"),
        (lambda: alt.acceptances("kimi-k3", 99), "draft of 99"),
        (lambda: alt.speculation(K3, parse_cluster("4x8xh20-96"), parse_layout("tp8,pp4"), "vllm", USUAL,
                                 Load(1000, 1000, 1), 7, 2.0), "pipeline stages"),
        (lambda: alt.speculation(K3, NODE, TP8, "vllm", USUAL, Load(1000, 1000, 1), 7, 9.0), "acceptance = 9"),
        (lambda: pilot(load_model("kimi-linear-48b"), NODE, parse_layout("tp3"), "vllm", USUAL), "does not divide"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()  # type: ignore[operator]
