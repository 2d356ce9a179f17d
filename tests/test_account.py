"""The weight account against published figures, exactly, and its properties."""

from __future__ import annotations

import inspect
from types import ModuleType

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from k3lib.account import (
    acceptance,
    attention,
    blocks,
    cache,
    estimates,
    loading,
    network,
    offload,
    passes,
    readings,
    servers,
    sharding,
    storage,
    tensors,
)
from k3lib.account import symbols as s
from k3lib.errors import InputError
from k3lib.evaluate import arrays, exact, whole
from k3lib.facts.catalog import checkpoints, inventory
from k3lib.models.model import load_model
from k3lib.models.weights import weight_account

K3 = load_model("kimi-k3")
ACCOUNT = weight_account(K3)

PUBLISHED_BYTES = {
    "kimi-k3": 1_560_860_324_864,
    "deepseek-v3": 688_574_839_360,
    "deepseek-r1": 688_574_839_360,
    "kimi-k2-instruct": 1_029_173_256_720,
    "kimi-k2-instruct-0905": 1_029_173_265_504,
    "kimi-k2-thinking": 594_205_920_512,
    "kimi-k2.5": 595_148_192_736,
    "kimi-linear-48b": 98_245_528_576,
    "gpt-oss-120b": 65_248_815_744,
    "qwen3-next-80b": 162_649_725_440,
}
PUBLISHED_PARAMS = {
    "kimi-k3": 2_779_931_837_184,
    "deepseek-v3": 684_489_845_504,
    "kimi-k2-instruct": 1_026_408_232_448,
    "kimi-k2-thinking": 1_026_408_232_448,
    "kimi-k2.5": 1_026_879_376_368,
    "kimi-linear-48b": 49_122_681_728,
    "gpt-oss-120b": 116_829_156_672,
    "qwen3-next-80b": 81_324_862_720,
}
PUBLISHED_TENSORS = {
    "kimi-k3": 497_220,
    "deepseek-v3": 91_991,
    "kimi-k2-instruct": 139_644,
    "kimi-k2-thinking": 208_276,
    "kimi-k2.5": 208_550,
    "kimi-linear-48b": 20_493,
    "gpt-oss-120b": 687,
    "qwen3-next-80b": 75_944,
}


@pytest.mark.parametrize(("name", "expected"), PUBLISHED_BYTES.items())
def test_bytes_are_the_published_ones(name: str, expected: int) -> None:
    assert weight_account(load_model(name)).bytes == expected


@pytest.mark.parametrize(("name", "expected"), PUBLISHED_PARAMS.items())
def test_parameters_are_the_published_ones(name: str, expected: int) -> None:
    assert weight_account(load_model(name)).params == expected


@pytest.mark.parametrize(("name", "expected"), PUBLISHED_TENSORS.items())
def test_tensors_are_the_published_ones(name: str, expected: int) -> None:
    assert weight_account(load_model(name)).tensors == expected


def test_the_table_of_checkpoints_agrees_with_the_figures_named_here() -> None:
    table = {row.model_id: row for row in checkpoints()}
    for name, expected in PUBLISHED_BYTES.items():
        if name in table:
            assert table[name].published_bytes == expected
    for name, number in PUBLISHED_TENSORS.items():
        assert table[name].published_tensors == number


def test_k3_in_its_parts() -> None:
    assert ACCOUNT.routed_params == 2_722_740_830_208
    assert ACCOUNT.active_params == 104_189_614_848
    assert ACCOUNT.routed_bytes == 1_446_456_066_048
    assert ACCOUNT.scale_bytes == 85_085_650_944
    assert ACCOUNT.expert_bytes == 17_547_264


def test_each_group_of_k3_is_the_sum_of_the_inventory() -> None:
    listed: dict[str, int] = {}
    for row in inventory():
        listed[row.group] = listed.get(row.group, 0) + row.bytes
    assert dict(ACCOUNT.groups) == listed


def test_each_tensor_pattern_of_k3_is_the_one_of_the_inventory() -> None:
    def shape(array: tensors.Stored) -> str:
        return "x".join(str(exact(side, K3.values)) for side in array.shape)

    derived = {
        (a.group, a.name): (
            shape(a),
            a.dtype,
            whole(a.count, K3.values),
            whole(a.params, K3.values),
            whole(a.bytes, K3.values),
        )
        for a in K3.arrays
    }
    listed = {(r.group, r.pattern): (r.shape, r.dtype, r.count, r.params, r.bytes) for r in inventory()}
    assert derived == listed
    assert len({row.pattern for row in inventory()}) == 60


def test_the_estimate_of_k3_1_pro() -> None:
    account = weight_account(load_model("kimi-k3.1-pro"))
    assert (account.bytes, account.tensors, account.params) == (1_561_217_377_280, 497_340, 2_780_110_363_392)


@pytest.mark.parametrize(
    ("name", "token", "sequence"),
    [
        ("kimi-k3", 27_648, 449_372_160),
        ("deepseek-v3", 70_272, 0),
        ("kimi-linear-48b", 8_064, 43_417_600),
        ("gpt-oss-120b", 36_864, 4_718_592),
        ("qwen3-next-80b", 24_576, 77_266_944),
    ],
)
def test_bytes_a_token_and_a_sequence(name: str, token: int, sequence: int) -> None:
    account = weight_account(load_model(name))
    assert (account.kv_bytes_per_token, account.state_bytes_per_sequence) == (token, sequence)


def test_keys_of_an_indexer_stand_beside_the_cache() -> None:
    account = weight_account(load_model("kimi-k3.1-pro"))
    assert (account.kv_bytes_per_token, account.indexer_bytes_per_token) == (27_648, 6_144)


def test_article_a_by_card_and_left_over() -> None:
    values = {s.nominal_params: 28 * 10**11, s.cards: 32, s.card_memory: 96 * 10**9}
    for bits, each, left in ((8, 87_500, 272_000), (4, 43_750, 1_672_000)):
        at = {**values, s.nominal_bits: bits}
        assert whole(readings.nominal_bytes_per_card(), at) == each * 10**6
        assert whole(readings.memory_left(), at) == left * 10**6


def test_readings_of_the_articles() -> None:
    values = {s.nominal_params: 28 * 10**11, s.group_size: 32}
    bytes_at = {bits: whole(readings.nominal_bytes(), {**values, s.nominal_bits: bits}) for bits in (16, 8, 4)}
    assert bytes_at == {16: 5_600 * 10**9, 8: 2_800 * 10**9, 4: 1_400 * 10**9}
    assert bytes_at[4] + whole(readings.nominal_scale_bytes(), values) == 1_487_500 * 10**6
    naive = whole(readings.without_latent(tensors.total_params(a for a in K3.arrays if a.group == "routed")), K3.values)
    assert naive == 5_445_481_660_416


@pytest.mark.parametrize(
    ("name", "bits"),
    [("bf16", 16), ("fp8", sp.Rational(4097, 512)), ("int4", 4.5), ("mxfp4", 4.25), ("nvfp4", 4.5)],
)
def test_bits_a_weight(name: str, bits: float) -> None:
    form, usual = storage.NAMED[name]
    assert float(storage.bits_per_weight(form).subs(usual)) == float(bits)


@pytest.mark.parametrize("name", storage.NAMED)
def test_bits_a_weight_are_what_a_stored_matrix_costs(name: str) -> None:
    form, usual = storage.NAMED[name]
    side = 4096
    matrix = tensors.Tensor("m.weight", "m", "expert", (sp.Integer(side), sp.Integer(side)), sp.Integer(1))
    stored = whole(tensors.total_bytes(tensors.store(matrix, form)), usual)
    assert 8 * stored / side**2 == pytest.approx(float(storage.bits_per_weight(form).subs(usual)), rel=1e-5)


def test_a_block_that_the_edge_cuts_has_its_own_scale() -> None:
    form, usual = storage.NAMED["fp8"]
    rows = tensors.Tensor("m.weight", "m", "attention", (sp.Integer(576), sp.Integer(7168)), sp.Integer(1))
    scale = tensors.store(rows, form)[1]
    assert [exact(side, usual) for side in scale.shape] == [5, 56]


PASS_TERMS = [passes.dense_us(), passes.experts_us(), passes.busiest_card_experts(), passes.kda_us(), passes.mla_us(),
              passes.gqa_us(), passes.exchange_between_nodes_us(), passes.exchanges_us(), passes.hop_us(),
              passes.decode_fixed_us(), passes.other_prompt_us(), passes.launched_us(s.pass_work_us),
              passes.engine_us(), offload.offloaded_us(offload.copied_us()), offload.computed_us()]  # fmt: skip


def plain_equations(module: ModuleType) -> list[sp.Expr]:
    """The equations of a module that take nothing."""
    found = [f for name, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__]
    return [f() for f in found if not inspect.signature(f).parameters and not f.__name__.startswith("_")]


def test_every_symbol_used_is_declared_and_every_declared_one_is_used() -> None:
    used = {
        str(x) for m in map(load_model, PUBLISHED_BYTES) for a in m.arrays for x in sp.sympify(a.bytes).free_symbols
    }
    used |= {str(x) for x in load_model("kimi-k3.1-pro").values}
    for expression in (
        cache.mla_cache_bytes_per_token(),
        cache.gqa_cache_bytes_per_token(),
        cache.window_cache_bytes(),
        cache.kda_state_bytes(),
        cache.gdn_state_bytes(),
        cache.indexer_cache_bytes_per_token(),
        readings.memory_left(),
        readings.nominal_scale_bytes(),
    ):
        used |= {str(x) for x in expression.free_symbols}
    used |= {str(x) for t in load_model("kimi-k3").tensors for x in t.used.free_symbols}
    laid = [sharding.weight_bytes(a, way) for a in K3.arrays for way in ("split", "experts")]
    laid += [
        sharding.projection_padding_bytes(),
        sharding.residual_bytes(),
        sharding.gqa_token_bytes(),
        sharding.block_bytes(sharding.mla_token_bytes()),
    ]
    laid += [sharding.index_token_bytes(), sharding.packed_token_bytes(), *PASS_TERMS]  # fmt: skip
    for module in (acceptance, estimates, loading, network, servers):
        laid += plain_equations(module)
    used |= {str(x) for expression in laid for x in expression.free_symbols}
    assert used == {q.name for q in s.REGISTRY.values() if q.topic != "costs"}  # these have a test of their own


def test_a_symbol_that_is_not_declared_is_an_error() -> None:
    with pytest.raises(InputError, match="'stray' is used but not declared"):
        s.latex(sp.Symbol("stray") * s.hidden)
    with pytest.raises(InputError, match="declared twice"):
        s.quantity("hidden", "H'", "features", "again", "trunk")


sizes = st.integers(min_value=1, max_value=64)


@settings(max_examples=60, deadline=None)
@given(layers=sizes, hidden=sizes, width=sizes, experts=sizes, latent=sizes)
def test_experts_scale_with_each_of_their_sizes(
    layers: int, hidden: int, width: int, experts: int, latent: int
) -> None:
    values = {
        s.layers_moe: layers,
        s.hidden: hidden,
        s.expert_width: width,
        s.experts: experts,
        s.expert_input: latent,
        s.experts_per_token: 1,
    }
    listed = tensors.stored(blocks.routed_experts("at", s.layers_moe), lambda _: storage.plain("BF16"))
    total = whole(tensors.total_params(listed), values)
    assert total == 3 * layers * experts * width * latent
    assert whole(tensors.active_params(listed), values) * experts == total


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_arrays_and_exact_values_agree(data: st.DataObject) -> None:
    expression = tensors.total_bytes(tensors.stored(attention.mla("at", s.layers_mla), lambda _: storage.plain("BF16")))
    used = sorted(expression.free_symbols, key=str)
    points = [{x: data.draw(sizes) for x in used} for _ in range(3)]
    columns = {x: np.array([p[x] for p in points]) for x in used}
    fast = arrays({"mla": expression}, columns)["mla"]
    assert [whole(expression, p) for p in points] == list(fast)


def test_the_sum_of_all_parts_is_the_array_result() -> None:
    fast = arrays({"bytes": tensors.total_bytes(K3.arrays), "params": tensors.total_params(K3.arrays)}, K3.values)
    assert (fast["bytes"][0], fast["params"][0]) == (ACCOUNT.bytes, ACCOUNT.params)


def test_more_points_than_one_pass_holds_come_in_order() -> None:
    many = np.arange(1, 50_001)
    fast = arrays({"x": 3 * s.layers + s.hidden}, {s.layers: many, s.hidden: 2})["x"]
    assert np.array_equal(fast, 3.0 * many + 2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({s.hidden: 1}, "no value for: layers"),
        ({s.hidden: np.array([1, 2]), s.layers: np.array([1, 2, 3])}, "unequal length"),
        ({s.hidden: float("nan"), s.layers: 1}, "hidden: every value must be finite"),
        ({s.hidden: -1, s.layers: 1}, "above 0"),
        ({s.hidden: np.ones((2, 2)), s.layers: 1}, "one-dimensional"),
    ],
)
def test_points_that_cannot_be_are_refused(values: dict[sp.Symbol, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        arrays({"x": s.hidden * s.layers}, values)


def test_a_value_that_is_missing_is_named() -> None:
    with pytest.raises(InputError, match="no value for: hidden"):
        exact(s.hidden + 1, {})
    with pytest.raises(InputError, match="is not whole"):
        whole(s.hidden / 2, {s.hidden: 3})
