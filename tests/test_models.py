"""Configurations: other families against published totals, and what is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import k3, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from k3lib.errors import InputError
from k3lib.facts.paths import MODELS
from k3lib.models.model import UnknownBlockError, load_model
from k3lib.models.weights import weight_account

K3_CONFIG = json.loads((MODELS / "kimi-k3.config.json").read_text(encoding="utf-8"))
V3_CONFIG = json.loads((MODELS / "deepseek-v3.config.json").read_text(encoding="utf-8"))


def written(folder: Path, config: Any) -> str:
    path = folder / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    return str(path)


# Sizes as their publishers give them; bytes are the index totals of the repositories.
OTHERS: dict[str, tuple[dict[str, Any], int]] = {
    "meta-llama/Llama-3.1-70B": (
        dict(model_type="llama", hidden_size=8192, num_hidden_layers=80, num_attention_heads=64, num_key_value_heads=8,
             intermediate_size=28672, vocab_size=128256, rope_theta=500000.0, rms_norm_eps=1e-5),
        141_107_412_992,
    ),
    "mistralai/Mixtral-8x7B-v0.1": (
        dict(model_type="mixtral", hidden_size=4096, num_hidden_layers=32, num_attention_heads=32,
             num_key_value_heads=8, intermediate_size=14336, vocab_size=32000, num_local_experts=8,
             num_experts_per_tok=2),
        93_405_585_408,
    ),
    "Qwen/Qwen2.5-72B-Instruct": (
        dict(model_type="qwen2", hidden_size=8192, num_hidden_layers=80, num_attention_heads=64,
             num_key_value_heads=8, intermediate_size=29568, vocab_size=152064, sliding_window=131072,
             use_sliding_window=False),
        145_412_407_296,
    ),
    "Qwen/Qwen3-235B-A22B": (
        dict(model_type="qwen3_moe", hidden_size=4096, num_hidden_layers=94, num_attention_heads=64,
             num_key_value_heads=4, head_dim=128, intermediate_size=12288, moe_intermediate_size=1536,
             vocab_size=151936, num_experts=128, num_experts_per_tok=8, decoder_sparse_step=1, mlp_only_layers=[]),
        470_187_269_120,
    ),
    "Qwen/Qwen3-30B-A3B": (
        dict(model_type="qwen3_moe", hidden_size=2048, num_hidden_layers=48, num_attention_heads=32,
             num_key_value_heads=4, head_dim=128, intermediate_size=6144, moe_intermediate_size=768, vocab_size=151936,
             num_experts=128, num_experts_per_tok=8, decoder_sparse_step=1, mlp_only_layers=[]),
        61_064_245_248,
    ),
    "deepseek-ai/DeepSeek-V2-Lite": (
        dict(model_type="deepseek_v2", hidden_size=2048, num_hidden_layers=27, num_attention_heads=16, q_lora_rank=None,
             kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, intermediate_size=10944,
             moe_intermediate_size=1408, n_routed_experts=64, n_shared_experts=2, num_experts_per_tok=6,
             first_k_dense_replace=1, moe_layer_freq=1, vocab_size=102400, topk_method="greedy"),
        31_412_968_448,
    ),
    "openai/gpt-oss-20b": (
        dict(model_type="gpt_oss", hidden_size=2880, num_hidden_layers=24, num_attention_heads=64,
             num_key_value_heads=8, head_dim=64, attention_bias=True, num_local_experts=32, num_experts_per_tok=4,
             intermediate_size=2880, vocab_size=201088, quantization_config={"quant_method": "mxfp4"}),
        13_761_264_768,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_a_configuration_of_another_family_gives_the_published_total(name: str, tmp_path: Path) -> None:
    config, published = OTHERS[name]
    assert weight_account(load_model(written(tmp_path, config))).bytes == published


GLM = dict(
    model_type="glm_moe_dsa", hidden_size=6144, num_hidden_layers=78, num_attention_heads=64, q_lora_rank=2048,
    kv_lora_rank=512, qk_nope_head_dim=192, qk_rope_head_dim=64, v_head_dim=256, intermediate_size=12288,
    moe_intermediate_size=2048, vocab_size=154880, n_routed_experts=256, num_experts_per_tok=8, n_shared_experts=1,
    first_k_dense_replace=3, num_nextn_predict_layers=1, index_n_heads=32, index_head_dim=128, index_topk=2048,
)  # fmt: skip


def test_glm5_parameters_with_an_indexer_in_every_layer(tmp_path: Path) -> None:
    assert weight_account(load_model(written(tmp_path, GLM))).params == 753_864_139_008


def test_an_indexer_schedule_stores_fewer_indexers(tmp_path: Path) -> None:
    every_fourth = load_model(written(tmp_path, {**GLM, "index_topk_freq": 4}))
    stored = [a for a in every_fourth.arrays if a.group == "indexer"]
    assert {int(every_fourth.values[next(iter(a.count.free_symbols))]) for a in stored} == {21}


def test_deepseek_v3_2_stores_half_the_elements_of_its_index_field(tmp_path: Path) -> None:
    config = {**V3_CONFIG, "model_type": "deepseek_v32", "index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048}
    model = load_model(written(tmp_path, config))
    from k3lib.evaluate import whole

    elements = sum(
        whole(a.bytes, model.values) * 8 // {"F32": 32, "BF16": 16, "F8_E4M3": 8}[a.dtype] for a in model.arrays
    )
    assert 2 * elements == 1_370_793_842_752


def test_the_users_file_of_a_known_model_gives_the_same_account(tmp_path: Path) -> None:
    model = load_model(written(tmp_path, K3_CONFIG))
    assert weight_account(model).bytes == 1_560_860_324_864
    assert model.checkpoint is None


GLM_FP8 = {
    **GLM,
    "quantization_config": {
        "quant_method": "fp8",
        "weight_block_size": [128, 128],
        "modules_to_not_convert": [
            "lm_head",
            "model.embed_tokens",
            *(f"model.layers.{i}.mlp.gate" for i in range(3, 79)),
            *(f"model.layers.{i}.self_attn.kv_b_proj" for i in range(79)),
        ],
    },
}


def test_an_ignore_list_that_names_every_layer_keeps_that_weight_plain(tmp_path: Path) -> None:
    model = load_model(written(tmp_path, GLM_FP8))
    stored = {a.name.rpartition("self_attn.")[2]: a.dtype for a in model.arrays if "self_attn" in a.name}
    assert stored["kv_b_proj.weight"] == "BF16"
    assert stored["q_b_proj.weight"] == "F8_E4M3"


def test_an_ignore_list_that_differs_between_layers_is_refused(tmp_path: Path) -> None:
    config = copy.deepcopy(GLM_FP8)
    config["quantization_config"]["modules_to_not_convert"].remove("model.layers.40.self_attn.kv_b_proj")
    with pytest.raises(InputError, match="not the same weight of every layer"):
        load_model(written(tmp_path, config))


@pytest.mark.parametrize("name", ["Kimi-K3", "moonshotai/Kimi-K3", "KIMI-K2.6", "deepseek-ai/DeepSeek-R1", "kimi-k2"])
def test_names_are_found_in_any_case_and_with_an_owner(name: str) -> None:
    assert load_model(name).checkpoint is not None


@pytest.mark.parametrize(
    ("form", "low", "high"), [("bf16", 5.55e12, 5.57e12), ("fp8", 2.83e12, 2.85e12), ("mxfp4", 1.5608e12, 1.5609e12)]
)
def test_experts_in_another_format(form: str, low: float, high: float) -> None:
    assert low < weight_account(load_model("kimi-k3", form)).bytes < high


def changed(base: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with one field changed ("a.b"), or removed where value is `...`."""
    config = copy.deepcopy(base)
    *parents, last = path.split(".")
    part = config
    for name in parents:
        part = part[name]
    if value is ...:
        del part[last]
    else:
        part[last] = value
    return config


BAD = [
    (K3_CONFIG, "text_config.hidden_size", ..., "field 'hidden_size' is missing"),
    (K3_CONFIG, "text_config.hidden_size", -7168, "hidden_size = -7168: must be from 1"),
    (K3_CONFIG, "text_config.hidden_size", "7168", "hidden_size = '7168': must be a whole number"),
    (K3_CONFIG, "text_config.hidden_size", 7168.5, "must be a whole number"),
    (K3_CONFIG, "text_config.hidden_size", True, "must be a whole number"),
    (K3_CONFIG, "text_config.num_hidden_layers", 94, "layer 94 is in neither list"),
    (K3_CONFIG, "text_config.num_hidden_layers", 92, "layers are numbered 1 to 92"),
    (K3_CONFIG, "text_config.num_experts_per_token", 900, "more than the 896 experts"),
    (K3_CONFIG, "text_config.num_local_experts", 900, "contradict each other"),
    (K3_CONFIG, "text_config.linear_attn_config.kda_layers", [1, 1], "names a layer twice"),
    (K3_CONFIG, "text_config.linear_attn_config.full_attn_layers", [1], "contradict num_hidden_layers"),
    (K3_CONFIG, "text_config.first_k_dense_replace", 94, "is more than num_hidden_layers"),
    (K3_CONFIG, "text_config.mla_use_output_gate", "yes", "must be true or false"),
    (K3_CONFIG, "vision_config.text_hidden_size", 4096, "contradicts hidden_size"),
    (K3_CONFIG, "vision_config.merge_kernel_size", "2x2", "must be a list"),
    (K3_CONFIG, "text_config.quantization_config.quant_method", "magic", "quant_method 'magic' is not known"),
    (K3_CONFIG, "text_config.quantization_config.format", "int3", "contradicts the outer 'int3'"),
    (K3_CONFIG, "text_config.quantization_config.config_groups", {}, "exactly one group"),
    (K3_CONFIG, "text_config.quantization_config.config_groups.group_0.weights.group_size", 33, "does not divide"),
    (K3_CONFIG, "text_config.quantization_config.ignore", ["re:("], "not a regular expression"),
    (K3_CONFIG, "text_config.quantization_config.ignore", ["re:(a+)+$"], "repeats a group"),
    (K3_CONFIG, "text_config.quantization_config.ignore", ["re:(a|a)*b"], "repeats a group"),
    (K3_CONFIG, "text_config.quantization_config.ignore", ["re:" + ".*" * 30 + "!"], "repeats too often"),
    (K3_CONFIG, "text_config.quantization_config.ignore", ["re:a{99999999999999}"], "not a regular expression"),
    (K3_CONFIG, "text_config.quantization_config.config_groups.group_0.weights.strategy", "channel", "strategy"),
    (K3_CONFIG, "text_config.quantization_config.ignore", [7], "must be a string"),
    (K3_CONFIG, "model_type", "kimi_k4", None),
    (K3_CONFIG, "text_config.dtype", "float99", "dtype 'float99' is not known"),
    (V3_CONFIG, "quantization_config.weight_block_size", [128], "blocks only"),
    (K3_CONFIG, "text_config.quantization_config.config_groups.group_0.targets", ["re:.*w1"], "targets = "),
    (V3_CONFIG, "quantization_config.activation_scheme", "static", "activation_scheme is not dynamic"),
    (V3_CONFIG, "num_hidden_layers", 10**9, "must be from 1 to 10,000"),
    (V3_CONFIG, "num_nextn_predict_layers", -1, "must be from 0"),
]  # fmt: skip


@pytest.mark.parametrize(("base", "field", "value", "message"), [b for b in BAD if b[3]])
def test_a_bad_field_is_named(base: dict[str, Any], field: str, value: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_model(written(tmp_path, changed(base, field, value)))
    assert message in str(caught.value)
    assert "config.json" in str(caught.value)


@pytest.mark.parametrize(
    ("base", "field", "value", "name"),
    [
        (K3_CONFIG, "text_config.engram_config", {"size": 3}, "engram_config"),
        (K3_CONFIG, "text_config.num_memory_slots", 64, "num_memory_slots"),
        (K3_CONFIG, "text_config.use_second_gate", True, "use_second_gate"),
        (K3_CONFIG, "text_config.linear_attn_config.extra_rank", 16, "extra_rank"),
        (K3_CONFIG, "vision_config.vt_num_experts", 64, "vt_num_experts"),
        (K3_CONFIG, "text_config.quantization_config.extra_scales", {"a": 1}, "extra_scales"),
        (V3_CONFIG, "quantization_config.bits_of_norms", 8, "bits_of_norms"),
        (K3_CONFIG, "audio_config", {"layers": 3}, "audio_config"),
        (V3_CONFIG, "hc_mult", 4, "hc_mult"),
        (V3_CONFIG, "vision_config", {"depth": 3}, "vision_config"),
        ({"model_type": "rwkv9"}, "hidden_size", 8, "rwkv9"),
    ],
)
def test_an_unknown_block_is_refused_by_name(
    base: dict[str, Any], field: str, value: Any, name: str, tmp_path: Path
) -> None:
    path = written(tmp_path, changed(base, field, value))
    with pytest.raises(UnknownBlockError) as caught:
        load_model(path)
    assert caught.value.names == (name,)
    done = k3("weights", path, "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout) == {"bytes": None, "unknown_blocks": [name]}
    assert name in done.stderr


def test_a_field_can_be_ignored_at_the_users_word(tmp_path: Path) -> None:
    path = written(tmp_path, changed(K3_CONFIG, "text_config.num_memory_slots", 64))
    done = k3("weights", path, "--ignore", "num_memory_slots", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["unknown_blocks"] == ["num_memory_slots"]
    refused(k3("weights", path, "--ignore", "num_memory_slot"), "no such field", "num_memory_slots")


@pytest.mark.parametrize(
    ("base", "field", "value"),
    [
        (OTHERS["Qwen/Qwen3-30B-A3B"][0], "vision_config", {"depth": 3}),
        (K3_CONFIG, "text_config.linear_attn_config.extra_rank", 16),
        (K3_CONFIG, "vision_config.vt_num_experts", 64),
    ],
)
def test_the_remedy_that_an_error_offers_works(base: dict[str, Any], field: str, value: Any, tmp_path: Path) -> None:
    path = written(tmp_path, changed(base, field, value))
    with pytest.raises(UnknownBlockError) as caught:
        load_model(path)
    assert load_model(path, ignore=caught.value.names).ignored == caught.value.names


def test_layer_types_that_name_another_mixer_are_refused(tmp_path: Path) -> None:
    llama = OTHERS["meta-llama/Llama-3.1-70B"][0]
    with pytest.raises(InputError, match="linear_attention"):
        load_model(written(tmp_path, {**llama, "layer_types": ["linear_attention"] * 80}))


def test_a_window_keeps_a_fixed_cache(tmp_path: Path) -> None:
    mistral = {**OTHERS["meta-llama/Llama-3.1-70B"][0], "model_type": "mistral", "sliding_window": 4096}
    account = weight_account(load_model(written(tmp_path, mistral)))
    assert account.kv_bytes_per_token == 0
    assert account.state_bytes_per_sequence == 80 * 4096 * 2 * 8 * 128 * 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{",
        '{"hidden_size": NaN}',
        '{"a": 1, "a": 2}',
        "[" * 100_000,
        '{"model_type": ["llama"]}',
        "{}",
    ],
)
def test_what_is_no_configuration_gets_one_line(text: str, tmp_path: Path) -> None:
    refused(k3("weights", written(tmp_path, text)), "config.json")


def test_a_file_that_is_not_text_gets_one_line(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"\xff\xfe\x00\x01")
    refused(k3("weights", str(path)), "not UTF-8")
    refused(k3("weights", str(tmp_path / "missing.json")), "no such file")


def fields(config: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for name, value in config.items():
        found.append(prefix + name)
        if isinstance(value, dict):
            found += fields(value, f"{prefix}{name}.")
    return found


@settings(max_examples=150, deadline=None)
@given(
    field=st.sampled_from(fields(K3_CONFIG)),
    value=st.one_of(
        st.none(), st.booleans(), st.integers(-5, 10**12), st.floats(allow_nan=False), st.text(max_size=5),
        st.lists(st.integers(-3, 200), max_size=4), st.just({}), st.just(...),
    ),
)  # fmt: skip
def test_any_field_changed_to_anything_is_an_account_or_one_clear_error(
    tmp_path_factory: pytest.TempPathFactory, field: str, value: Any
) -> None:
    path = written(tmp_path_factory.mktemp("c"), changed(K3_CONFIG, field, value))
    try:
        account = weight_account(load_model(path))
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert account.bytes > 0


def test_weights_prints_a_table_and_the_same_in_json() -> None:
    text = k3("weights", "kimi-k3")
    assert text.returncode == 0
    assert "1,560,860,324,864 B" in text.stdout
    assert "difference 0 B" in text.stdout
    data = json.loads(k3("weights", "kimi-k3", "--json").stdout)
    assert data["bytes"] == data["published_bytes"] == sum(data["groups"].values())
    assert set(data) >= {"params", "active_params", "tensors", "kv_bytes_per_token", "state_bytes_per_sequence"}
    assert data["unknown_blocks"] == []


def test_a_storage_fact_of_nobody_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from k3lib.models import model as module

    stray = module.storage_facts()[0].model_copy(update={"scope": "kimi_k33"})
    monkeypatch.setattr(module, "storage_facts", lambda: (stray,))
    with pytest.raises(InputError, match=r"kimi_k33.*Did you mean 'kimi_k3'"):
        module._check_scopes()


def test_a_wrong_name_is_answered_with_the_near_one() -> None:
    refused(k3("weights", "kimi-k33"), "Did you mean 'kimi-k3'?")
    refused(k3("weights", "kimi-k3", "--format", "fp88"), "Did you mean 'fp8'?")
    refused(k3("weight", "kimi-k3"), "invalid choice")
