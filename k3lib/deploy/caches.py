"""What is left for caches, and what it holds: vLLM's one pool of blocks, SGLang's two pools."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp

from k3lib.account import sharding
from k3lib.account import symbols as s
from k3lib.deploy import ledger as led
from k3lib.engines import sglang, vllm
from k3lib.engines.layout import Layout
from k3lib.engines.rules import Engine
from k3lib.errors import InputError
from k3lib.evaluate import whole
from k3lib.models.model import Model


@dataclass(frozen=True)
class Settings:
    """What an operator sets; None is the engine's default.

    utilisation: share of a card that the engine manages. max_model_len: longest request. chunk_tokens: tokens of a
    prefill pass. draft_tokens: tokens that a draft model proposes at a time. cache_dtype, state_dtype: as the engines
    name them. kv_memory_bytes: memory for caches, one value a stage or one for all, in place of what the ledger leaves.
    """

    utilisation: float | None = None
    max_model_len: int = 32_768
    max_num_seqs: int = 256
    chunk_tokens: int | None = None
    cache_dtype: str = "auto"
    state_dtype: str = "float32"
    prefix_caching: bool = False
    graphs: bool = True
    state_ratio: float | None = None
    cache_strategy: str = "extra_buffer"
    draft_tokens: int = 0
    pp_partition: tuple[int, ...] | None = None
    kv_memory_bytes: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Caches:
    """What the caches hold. kv_tokens, max_concurrency: as the engine prints them. kv_tokens_physical: tokens that
    the pool could hold if all of it held tokens. max_context: longest single request in tokens.
    """

    kv_tokens: int
    kv_tokens_physical: int
    max_concurrency: float
    state_slots: int
    max_running_requests: int
    block_tokens: int
    max_context: int


def caches(model: Model, layout: Layout, engine: Engine, settings: Settings, runs: Sequence[range],
           free: Sequence[float]) -> Caches | None:  # fmt: skip
    """The caches of a plan; None where nothing fits.

    runs: layers of every stage. free: memory for caches on a card of every stage, in B.
    """
    if any(left <= 0 for left in free):
        return None
    cache, state = led.CACHE_DTYPES[settings.cache_dtype], led.STATE_DTYPES[settings.state_dtype]
    values = led.engine_values(engine, model, layout, cache, state)
    packed = settings.cache_dtype == led.PACKED
    token, kept = led.token_bytes(model, values, packed), led.state_bytes(model, values)
    if engine.paged:
        return _paged(model, layout, engine, settings, runs, free, token, kept)
    return _pooled(model, layout, engine, settings, runs, free, token, kept)


def _paged(model: Model, layout: Layout, engine: Engine, settings: Settings, runs: Sequence[range],
           free: Sequence[float], token: int, kept: int) -> Caches | None:  # fmt: skip
    """vLLM: one pool of blocks; a request takes blocks for its tokens and for each group of state layers."""
    plain, multiple = engine.whole("plain_block_tokens"), engine.whole("block_token_multiple")
    length = vllm.block_length(token, kept, multiple, plain)
    groups, largest = vllm.layer_groups(model.mixers, list(runs), engine.rule("group_slack").value)
    size = sharding.block_bytes(sp.Integer(token))
    blocks = min(
        math.floor(left / whole(size, {s.block_tokens: length, s.group_layers: n}))
        for left, n in zip(free, largest, strict=True)
        if n
    )
    each = vllm.blocks_of_request(
        settings.max_model_len, length, layout.dcp, groups, settings.prefix_caching, settings.draft_tokens
    )
    states = vllm.blocks_of_request(0, length, layout.dcp, groups, settings.prefix_caching, settings.draft_tokens)
    concurrency = blocks / each
    longest = max(0, blocks - 1 - states) * length * layout.dcp  # one block is kept empty
    longest = min(longest, model.longest or longest)
    if blocks < 1:
        return None
    return Caches(
        kv_tokens=math.floor(concurrency * settings.max_model_len),
        kv_tokens_physical=blocks * length * layout.dcp,
        max_concurrency=concurrency,
        state_slots=blocks // states if states else 0,
        max_running_requests=min(settings.max_num_seqs, math.floor(concurrency)),
        block_tokens=length,
        max_context=longest,
    )


def _pooled(model: Model, layout: Layout, engine: Engine, settings: Settings, runs: Sequence[range],
            free: Sequence[float], token: int, kept: int) -> Caches | None:  # fmt: skip
    """SGLang: state slots and tokens in two pools whose sizes stand in a set ratio.

    With pipeline stages the slots are counted as though a stage held the states of all layers, and the first stage
    decides. Source: the slots that mm_sglang_pp4 and mm_sglang_tp16 report.
    """
    ratio = engine.rule("state_ratio").value if settings.state_ratio is None else settings.state_ratio
    if not 0 < ratio < math.inf:
        raise InputError(f"--mamba-full-memory-ratio {ratio}: must be above 0")
    page = engine.whole("plain_block_tokens")
    slots, tokens = math.inf, math.inf
    for layers, left in zip(runs, free, strict=True):
        mixers = [model.mixers[i] for i in layers]
        states = sum(m in ("kda", "gdn") for m in mixers) * kept
        draft = engine.in_bytes("draft_bytes_per_token")[0] if settings.draft_tokens else 0.0
        cell = draft + (len(mixers) - sum(m in ("kda", "gdn") for m in mixers)) * token
        for_states = left * ratio / (1 + ratio) if states else 0.0
        if states and layers.start == 0:
            counted = sum(m in ("kda", "gdn") for m in model.mixers) * kept
            slots = math.floor(for_states / counted) - 1  # one slot beyond those that requests use
        if cell:
            tokens = min(tokens, (math.floor((left - for_states) / cell) - page) // page * page)
    if tokens < 1 or slots < 1:
        return None
    per_request = sglang.slots_per_request(settings.cache_strategy, layout.pp > 1) + settings.draft_tokens
    running = math.floor(slots / per_request) if math.isfinite(slots) else settings.max_num_seqs
    tokens = int(tokens)
    return Caches(
        kv_tokens=tokens,
        kv_tokens_physical=tokens,
        max_concurrency=tokens / settings.max_model_len,
        state_slots=int(slots) if math.isfinite(slots) else 0,
        max_running_requests=min(settings.max_num_seqs, running),
        block_tokens=page,
        max_context=min(tokens, model.longest or tokens),
    )
