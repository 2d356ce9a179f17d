"""Reading a configuration into values of symbols, and naming what the account does not know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from k3lib.account.tensors import Tensor
from k3lib.errors import InputError
from k3lib.facts.configs import Fields
from k3lib.models.storing import Profile

# Configuration fields that never carry weights: identity, generation, training, routing rules, engine hints.
NO_WEIGHTS = frozenset(
    """
add_cross_attention architectures attention_dropout attention_value_scale attn_implementation attn_type auto_map
aux_loss_alpha bad_words_ids begin_suppress_tokens bos_token_id cache_implementation chunk_size_feed_forward
decoder_start_token_id dtype dual_chunk_attention_config embd_pdrop eos_token_id ep_size expert_dropout
experts_per_token finetuning_task generation_config gradient_checkpointing hidden_act id2label
ignore_keys_at_rope_validation image_token_id index_topk indexer_rope_interleave initial_context_length
initial_norm_std initializer_range is_checkpoint_fp8_serialized is_decoder is_encoder_decoder is_llama_config is_moe
label2id max_position_embeddings max_window_layers media_placeholder_token_id model_max_length model_type
moe_renormalize moe_router_activation_func moe_router_enable_expert_bias moe_router_use_grouped_topk n_group
norm_eps norm_topk_prob num_expert_group original_max_position_embeddings output_attentions output_hidden_states
output_router_logits pad_token_id partial_rotary_factor pipeline_tag pretraining_tp problem_type pruned_heads
qk_head_dim return_dict rms_norm_eps rope_interleave rope_interleaved rope_parameters rope_scaling rope_theta
routed_scaling_factor router_aux_loss_coef router_jitter_noise scoring_func seq_aux sliding_window
sliding_window_size swiglu_limit task_specific_params tf_legacy_loss tie_encoder_decoder tie_word_embeddings
tokenizer_class topk_group topk_method torch_dtype torchscript transformers_version unk_token_id use_bfloat16
use_cache use_grouped_topk use_return_dict use_sliding_window use_unified_vision_chunk video_placeholder
video_token_id vision_end_token_id vision_start_token_id vocab_padding
""".split()
)


@dataclass
class Reader:
    """Collects the values of the symbols and the weights of one model while its configuration is read."""

    config: Fields
    known: Profile
    values: dict[sp.Symbol, int] = field(default_factory=dict)
    tensors: list[Tensor] = field(default_factory=list)
    mixers: tuple[str, ...] = ()
    mlps: tuple[str, ...] = ()
    residual_block: int = 0
    longest: int = 0

    def take(self, symbol: sp.Symbol, *names: str, default: int | None = None, config: Fields | None = None) -> int:
        """Read a whole number under any of its field names and bind it to the symbol."""
        return self.bind(symbol, (config or self.config).whole(*names, default=default))

    def bind(self, symbol: sp.Symbol, value: int) -> int:
        """Bind a value to a symbol. A count of zero needs no symbol: leave its block out instead."""
        if self.values.setdefault(symbol, value) != value:
            raise InputError(f"{self.config.where}: {symbol} would be both {self.values[symbol]} and {value}")
        return value

    def add(self, *blocks: list[Tensor]) -> None:
        """Add the weights of blocks."""
        for block in blocks:
            self.tensors += block

    def refuse(self, message: str) -> InputError:
        """An error at this configuration's address."""
        return InputError(f"{self.config.where}: {message}")


def looks_like_a_block(name: str, value: Any) -> bool:
    """Whether an unread field may stand for weights: a whole number, a switch that is on, a list or an object.

    Fractions (rates, scales, limits) and words (activations, versions) do not add weights.
    """
    if name in NO_WEIGHTS or name.startswith("_"):
        return False
    return bool(value) and isinstance(value, (bool, int, list, dict))


def unknown_blocks(config: Fields) -> list[str]:
    """Fields, at any depth that was opened, that nobody read and that may stand for weights."""
    return sorted({name for name, value in config.unread() if looks_like_a_block(name, value)})
