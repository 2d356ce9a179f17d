"""Which layer is of which kind: token mixer and MLP of every decoder layer, read from the configuration."""

from __future__ import annotations

from typing import Any

from k3lib.errors import InputError
from k3lib.facts.configs import Fields

Kinds = tuple[str, ...]


def _refuse(config: Fields, message: str) -> InputError:
    return InputError(f"{config.where}: {message}")


def _numbers(config: Fields, name: str, layers: int, first: int) -> list[int]:
    values: list[Any] = config.listed(name) or []
    for v in values:
        if isinstance(v, bool) or not isinstance(v, int) or not first <= v < layers + first:
            raise _refuse(config, f"field {name} holds {v!r}; layers are numbered {first} to {layers + first - 1}")
    if len(set(values)) != len(values):
        raise _refuse(config, f"field {name} names a layer twice")
    return values


def _typed(config: Fields, name: str, layers: int, words: dict[str, str]) -> Kinds | None:
    """A list with one word a layer, translated; None where the field is absent."""
    values = config.listed(name)
    if values is None:
        return None
    if len(values) != layers:
        raise _refuse(config, f"{name} has {len(values)} entries, num_hidden_layers is {layers}")
    for v in values:
        if v not in words:
            raise _refuse(config, f"{name} holds {v!r}; known: {', '.join(words)}")
    return tuple(words[v] for v in values)


def dense_then_moe(config: Fields, layers: int) -> Kinds:
    """The first k layers dense, then experts in every `moe_layer_freq`-th layer."""
    dense = config.whole("first_k_dense_replace", default=0, least=0)
    every = config.whole("moe_layer_freq", default=1)
    if dense > layers:
        raise _refuse(config, f"first_k_dense_replace = {dense} is more than num_hidden_layers = {layers}")
    kinds = tuple("moe" if i >= dense and i % every == 0 else "dense" for i in range(layers))
    named = _typed(config, "mlp_layer_types", layers, {"dense": "dense", "sparse": "moe"})
    if named and config.has("first_k_dense_replace") and named != kinds:
        raise _refuse(config, "mlp_layer_types and first_k_dense_replace contradict each other")
    return named or kinds


def sparse_steps(config: Fields, layers: int) -> Kinds:
    """Experts in every `decoder_sparse_step`-th layer, but for those in `mlp_only_layers` (counted from 0)."""
    step = config.whole("decoder_sparse_step", default=1)
    dense = _numbers(config, "mlp_only_layers", layers, first=0)
    return tuple("moe" if (i + 1) % step == 0 and i not in dense else "dense" for i in range(layers))


def linear_and_full(config: Fields, layers: int) -> Kinds:
    """KDA and MLA layers by their two lists (counted from 1), which must name every layer exactly once."""
    full = _numbers(config, "full_attn_layers", layers, first=1)
    linear = _numbers(config, "kda_layers", layers, first=1)
    both = set(full) & set(linear)
    missing = set(range(1, layers + 1)) - set(full) - set(linear)
    if both or missing:
        which = f"layer {min(both)} is in both lists" if both else f"layer {min(missing)} is in neither list"
        raise _refuse(config, f"full_attn_layers and kda_layers contradict num_hidden_layers = {layers}: {which}")
    return tuple("mla" if i + 1 in full else "kda" for i in range(layers))


def interval(config: Fields, layers: int, full: str, linear: str) -> Kinds:
    """Full attention in every `full_attention_interval`-th layer or as `layer_types` says; the rest linear."""
    every = config.whole("full_attention_interval", default=0, least=0)
    kinds = tuple(full if every and (i + 1) % every == 0 else linear for i in range(layers))
    named = _typed(config, "layer_types", layers, {"full_attention": full, "linear_attention": linear})
    if named and every and named != kinds:
        raise _refuse(config, "layer_types and full_attention_interval contradict each other")
    if not named and not every:
        raise _refuse(config, "field 'full_attention_interval' (or 'layer_types') is missing")
    return named or kinds


def indexers(config: Fields, layers: int) -> Kinds:
    """Which layers store an indexer of their own ("full") and which share the one before ("shared").

    Source: the schedule of GLM-5 configurations (types, pattern, or frequency with an offset).
    """
    named = _typed(config, "indexer_types", layers, {"full": "full", "shared": "shared"})
    pattern = config.word("index_topk_pattern", default="")
    every = config.whole("index_topk_freq", default=1)
    offset = config.whole("index_skip_topk_offset", default=2, least=0)
    if named:
        return named
    if pattern:
        if len(pattern) != layers or set(pattern) - {"F", "S"}:
            raise _refuse(config, f"index_topk_pattern must be {layers} letters F or S")
        return tuple("full" if letter == "F" else "shared" for letter in pattern)
    return tuple("full" if max(i - offset + 1, 0) % every == 0 else "shared" for i in range(layers))


def windows(config: Fields, layers: int) -> int | None:
    """How many attention layers keep only a window, by `layer_types`; None where the configuration has no such list."""
    kinds = _typed(config, "layer_types", layers, {"sliding_attention": "window", "full_attention": "full"})
    return None if kinds is None else kinds.count("window")
