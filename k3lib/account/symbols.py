"""The vocabulary: each symbol once, with LaTeX name, unit and meaning. The notation table is printed from here."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from k3lib.errors import InputError
from k3lib.units import unit as known_unit


@dataclass(frozen=True)
class Quantity:
    """A declared symbol. `name` is the Python identifier, `latex` what a reader sees."""

    name: str
    latex: str
    unit: str
    meaning: str
    topic: str
    symbol: sp.Symbol


REGISTRY: dict[str, Quantity] = {}


def quantity(name: str, latex: str, unit: str, meaning: str, topic: str) -> sp.Symbol:
    """Declare a symbol. All are positive integers: sizes, counts and widths.

    Raises InputError when the name or the LaTeX is taken or the unit is unknown.
    """
    return _declare(name, latex, unit, meaning, topic, {"integer": True, "positive": True})


def measure(name: str, latex: str, unit: str, meaning: str, topic: str, *, zero: bool = False) -> sp.Symbol:
    """Declare a symbol whose value need not be whole: a rate, a time, a share. zero: whether it may be 0.

    Raises InputError as `quantity` does.
    """
    return _declare(name, latex, unit, meaning, topic, {"nonnegative" if zero else "positive": True})


def _declare(name: str, latex: str, unit: str, meaning: str, topic: str, kind: dict[str, bool]) -> sp.Symbol:
    known_unit(unit)
    if name in REGISTRY or any(q.latex == latex for q in REGISTRY.values()):
        raise InputError(f"symbol '{name}' ({latex}) is declared twice in the vocabulary")
    symbol = sp.Symbol(name, **kind)
    REGISTRY[name] = Quantity(name, latex, unit, meaning, topic, symbol)
    return symbol


def declared(expression: sp.Expr) -> list[Quantity]:
    """The vocabulary entries an expression uses, by name. Raises InputError for a symbol that is not declared."""
    entries = []
    for symbol in sorted(expression.free_symbols, key=str):
        entry = REGISTRY.get(str(symbol))
        if entry is None or entry.symbol != symbol:
            raise InputError(f"symbol '{symbol}' is used but not declared in k3lib/account/symbols.py")
        entries.append(entry)
    return entries


def latex(expression: sp.Expr) -> str:
    """The expression as LaTeX in the book's notation. Raises InputError for an undeclared symbol."""
    return str(sp.latex(expression, symbol_names={q.symbol: q.latex for q in declared(expression)}))


_TRUNK = "trunk"
hidden = quantity("hidden", "H", "features", "width of the residual stream", _TRUNK)
vocabulary = quantity("vocabulary", "V", "tokens", "entries of the token table, padding included", _TRUNK)
layers = quantity("layers", "L", "layers", "decoder layers", _TRUNK)
layers_dense = quantity("layers_dense", "L_{dense}", "layers", "decoder layers with a dense MLP", _TRUNK)
layers_moe = quantity("layers_moe", "L_{moe}", "layers", "decoder layers with routed experts", _TRUNK)
layers_mtp = quantity("layers_mtp", "L_{mtp}", "layers", "extra layers stored for multi-token prediction", _TRUNK)
dense_width = quantity("dense_width", "I", "features", "inner width of the dense MLP", _TRUNK)

_ATTENTION = "attention"
heads = quantity("heads", "N", "heads", "query heads", _ATTENTION)
kv_heads = quantity("kv_heads", "N_{kv}", "heads", "key-value heads of grouped-query attention", _ATTENTION)
head_dim = quantity("head_dim", "D", "features", "width of a head in grouped-query attention", _ATTENTION)
layers_gqa = quantity("layers_gqa", "L_{gqa}", "layers", "layers with grouped-query attention", _ATTENTION)
layers_mla = quantity(
    "layers_mla", "L_{mla}", "layers", "layers with multi-head latent attention; they keep a token cache", _ATTENTION
)
latent_q = quantity("latent_q", "R_q", "features", "width of MLA's compressed query latent", _ATTENTION)
latent_kv = quantity("latent_kv", "R_{kv}", "features", "width of MLA's compressed key-value latent", _ATTENTION)
nope = quantity("nope", "D_{nope}", "features", "per-head part of an MLA key without position", _ATTENTION)
rope = quantity(
    "rope", "D_{rope}", "features", "MLA's shared positional key; cached even where no rotation is applied", _ATTENTION
)
value_dim = quantity("value_dim", "D_v", "features", "width of a value head in MLA", _ATTENTION)
layers_index = quantity(
    "layers_index", "L_{idx}", "layers", "layers that store an indexer for sparse attention", _ATTENTION
)
index_heads = quantity("index_heads", "N_{idx}", "heads", "heads of the indexer", _ATTENTION)
index_dim = quantity("index_dim", "D_{idx}", "features", "width of an indexer head", _ATTENTION)
inv_freq = quantity(
    "inv_freq", "n_{freq}", "features", "stored rotary frequencies a layer, a buffer and not a parameter", _ATTENTION
)

_LINEAR = "linear attention"
layers_kda = quantity(
    "layers_kda", "L_{kda}", "layers", "layers with Kimi Delta Attention; they keep a state per sequence", _LINEAR
)
kda_heads = quantity("kda_heads", "N_{kda}", "heads", "heads of KDA", _LINEAR)
kda_dim = quantity(
    "kda_dim", "D_{kda}", "features", "width of a KDA head; also the rank of its low-rank gates", _LINEAR
)
decay_entries = quantity("decay_entries", "n_A", "features", "stored entries of KDA's decay vector A_log", _LINEAR)
conv_taps = quantity("conv_taps", "C", "positions", "length of the short convolution", _LINEAR)
layers_gdn = quantity("layers_gdn", "L_{gdn}", "layers", "layers with a gated delta net", _LINEAR)
gdn_key_heads = quantity("gdn_key_heads", "N_{gk}", "heads", "key heads of the gated delta net", _LINEAR)
gdn_value_heads = quantity("gdn_value_heads", "N_{gv}", "heads", "value heads of the gated delta net", _LINEAR)
gdn_key_dim = quantity("gdn_key_dim", "D_{gk}", "features", "width of a key head of the gated delta net", _LINEAR)
gdn_value_dim = quantity("gdn_value_dim", "D_{gv}", "features", "width of a value head of the gated delta net", _LINEAR)

_EXPERTS = "experts"
experts = quantity("experts", "E", "experts", "routed experts of a layer", _EXPERTS)
experts_per_token = quantity(
    "experts_per_token", "k", "experts", "routed experts that one token uses in a layer", _EXPERTS
)
expert_width = quantity("expert_width", "I_{moe}", "features", "inner width of one routed expert", _EXPERTS)
expert_input = quantity(
    "expert_input",
    "Z",
    "features",
    "latent width that a routed expert reads and writes; H in models without a latent",
    _EXPERTS,
)
shared_width = quantity("shared_width", "I_{sh}", "features", "inner width of the shared experts together", _EXPERTS)

_VISION = "vision"
vision_layers = quantity("vision_layers", "L_{vis}", "layers", "blocks of the vision tower", _VISION)
vision_hidden = quantity("vision_hidden", "H_{vis}", "features", "width of the vision tower", _VISION)
vision_qkv = quantity("vision_qkv", "A_{vis}", "features", "width of the vision tower's attention, all heads", _VISION)
vision_mlp = quantity("vision_mlp", "I_{vis}", "features", "inner width of the vision tower's MLP", _VISION)
patch = quantity("patch", "p_{vis}", "pixels", "side of an image patch", _VISION)
channels = quantity("channels", "n_{rgb}", "features", "colour channels of an image", _VISION)
grid_height = quantity("grid_height", "G_h", "positions", "rows of the learned position grid", _VISION)
grid_width = quantity("grid_width", "G_w", "positions", "columns of the learned position grid", _VISION)
merge = quantity("merge", "M", "positions", "patches merged into one token by the projector", _VISION)

_STORAGE = "storage"
group_size = quantity("group_size", "g", "weights", "weights that share one scale along a row", _STORAGE)
block_rows = quantity("block_rows", "g_r", "weights", "rows of a block that shares one scale", _STORAGE)
block_cols = quantity("block_cols", "g_c", "weights", "columns of a block that shares one scale", _STORAGE)

_CACHE = "caches"
cache_bytes = quantity("cache_bytes", "b_{kv}", "B", "storage of one cached element of a token", _CACHE)
state_bytes = quantity("state_bytes", "b_{state}", "B", "storage of one element of a recurrent state", _CACHE)
conv_bytes = quantity("conv_bytes", "b_{conv}", "B", "storage of one element of a convolution's memory", _CACHE)
layers_window = quantity(
    "layers_window", "L_{win}", "layers", "attention layers that keep only a window of tokens", _CACHE
)
window = quantity("window", "W", "tokens", "length of that window", _CACHE)

_LAYOUT = "layout"
tensor_parallel = quantity("tensor_parallel", "n_{tp}", "cards", "cards that share each split weight", _LAYOUT)
experts_held = quantity("experts_held", "E_{card}", "experts", "routed experts of a layer that one card holds", _LAYOUT)
width_held = quantity(
    "width_held",
    "I_{card}",
    "features",
    "columns of each of these experts that one card holds, padding included",
    _LAYOUT,
)
projection_padding = quantity(
    "projection_padding", "n_{pad}", "features", "rows that pad the fused KDA projection of a card", _LAYOUT
)
chunk_tokens = quantity("chunk_tokens", "T_{chunk}", "tokens", "tokens of one prefill pass", _LAYOUT)
residual_rows = quantity(
    "residual_rows", "n_{row}", "1", "rows of width H that attention residuals keep for each token of a pass", _LAYOUT
)
block_tokens = quantity("block_tokens", "T_{block}", "tokens", "tokens of one block of the cache", _LAYOUT)
group_layers = quantity(
    "group_layers", "L_{group}", "layers", "layers that share one block table, the largest group of a stage", _LAYOUT
)

_READING = "readings of the articles"
nominal_params = quantity("nominal_params", "P", "parameters", "parameter count as the articles round it", _READING)
nominal_bits = quantity("nominal_bits", "q", "bit/weight", "bits of a weight as the articles count them", _READING)
card_memory = quantity("card_memory", "m_{card}", "B", "memory of one card", _READING)
cards = quantity("cards", "n_{card}", "cards", "accelerator cards of the plan", _READING)

_TIME = "time of a pass"
decode_tokens = measure("decode_tokens", "B", "tokens", "tokens that a pass generates, one a request", _TIME, zero=True)
prompt_tokens = measure("prompt_tokens", "P_t", "tokens", "prompt tokens that a pass reads", _TIME, zero=True)
context_tokens = measure("context_tokens", "S", "tokens", "cached tokens of each generating request", _TIME, zero=True)
seen_tokens = measure(
    "seen_tokens",
    "S_p",
    "tokens",
    "tokens that a prompt token attends to, on average half of its prompt",
    _TIME,
    zero=True,
)
drafted_tokens = measure(
    "drafted_tokens", "d", "tokens", "tokens that a draft adds to each generated one", _TIME, zero=True
)
stage_bytes = measure("stage_bytes", "W_s", "B", "weights that a pass reads on a card of a stage, experts apart", _TIME)
stage_work = measure("stage_work", "w_s", "FLOP/token", "arithmetic of these weights for one token", _TIME)
card_bandwidth = measure("card_bandwidth", r"\beta", "MB/s", "memory bandwidth of a card, its peak", _TIME)
card_rate = measure("card_rate", "F", "MFLOPS", "arithmetic of a card for the weights' data type, its peak", _TIME)
cache_rate = measure("cache_rate", "F_{16}", "MFLOPS", "arithmetic of a card in BF16, its peak", _TIME)
stream_share = measure("stream_share", r"\eta_w", "1", "share of the bandwidth that streaming weights reaches", _TIME)
matrix_share = measure("matrix_share", r"\eta_f", "1", "share of the arithmetic that large matrices reach", _TIME)
state_share = measure(
    "state_share", r"\eta_s", "1", "share of the bandwidth that reading and writing states reaches", _TIME
)
cache_share = measure("cache_share", r"\eta_c", "1", "share of the bandwidth that reading a token cache reaches", _TIME)
mla_share = measure("mla_share", r"\eta_a", "1", "share of the arithmetic that MLA reaches when it generates", _TIME)
flash_share = measure("flash_share", r"\eta_p", "1", "share of the arithmetic that attention reaches on prompts", _TIME)
context_shares = quantity(
    "context_shares", "n_{dcp}", "cards", "cards that share the tokens of a cache when they generate", _TIME
)
head_block = quantity(
    "head_block", "N_{block}", "heads", "heads that an MLA kernel computes together, filled or not", _TIME
)
skew = measure("skew", r"\sigma", "1", "spread of the experts' popularity, of its logarithm", _TIME, zero=True)
most_over_mean = measure(
    "most_over_mean", "z", "1", "largest of the cards' random loads, in standard deviations", _TIME, zero=True
)
expert_us = measure("expert_us", "f", "us", "measured kernel time for one expert that is used, on one card", _TIME)
expert_floor_us = measure(
    "expert_floor_us", "f_0", "us", "time to read one expert on one card at the full bandwidth", _TIME
)
expert_scale = measure("expert_scale", r"\kappa", "1", "kernel time in the engine over that of the kernel alone", _TIME)
kda_prompt_us = measure("kda_prompt_us", r"\tau_{kda}", "us/token", "KDA's time for a prompt token in a layer", _TIME)
prompt_us = measure(
    "prompt_us", r"\gamma", "us/token", "all else that grows with prompt tokens, in a layer", _TIME, zero=True
)
layer_us = measure("layer_us", "a", "us", "time of a layer that depends on neither bytes nor arithmetic", _TIME)
pass_work_us = measure(
    "pass_work_us", "t_w", "us", "time of a pass when its kernels are ready at once", _TIME, zero=True
)
launch_us = measure(
    "launch_us", "a_P", "us", "time to launch a layer's kernels one by one, when no graph is captured", _TIME
)
step_us = measure("step_us", "t_{step}", "us", "time of the engine itself in a pass", _TIME)
draft_us = measure("draft_us", "t_d", "us", "time of a draft model for one token that it proposes", _TIME)
exchange_us = measure("exchange_us", "t_x", "us", "time of the all-reduce after attention", _TIME, zero=True)
experts_exchange_us = measure(
    "experts_exchange_us",
    "t_e",
    "us",
    "time of the exchange after the MLP, over all cards of the experts",
    _TIME,
    zero=True,
)
cache_exchange_us = measure(
    "cache_exchange_us", "t_c", "us", "time to exchange queries and results where cards share a cache", _TIME, zero=True
)
token_groups = quantity(
    "token_groups", "n_{group}", "1", "groups of requests whose tokens meet in the same experts", _TIME
)
exchange_start_us = measure("exchange_start_us", r"\alpha", "us", "start-up of an all-reduce between nodes", _TIME)
nic_rate = measure(
    "nic_rate", r"\beta_{nic}", "MB/s", "bytes of an all-reduce over its time, for one network card", _TIME
)
nics = quantity("nics", "n_{nic}", "cards", "network cards of a node that the exchange uses", _TIME)
hop_start_us = measure("hop_start_us", "t_h", "us", "start-up of handing a pass to the next stage", _TIME)
hop_rate = measure("hop_rate", r"\beta_h", "MB/s", "bandwidth of handing over", _TIME)

_OFFLOAD = "experts in main memory"
resident_share = measure(
    "resident_share",
    "c",
    "1",
    "share of a layer's experts that lie on the cards, the most used ones",
    _OFFLOAD,
    zero=True,
)
expert_bytes = measure("expert_bytes", "b_E", "B", "stored bytes of one routed expert of one layer", _OFFLOAD)
link_rate = measure("link_rate", r"\beta_{link}", "MB/s", "rate of the link from main memory to one card", _OFFLOAD)
links = measure("links", "n_{link}", "cards", "such links of a node that copy at once", _OFFLOAD)
host_rate = measure("host_rate", r"\beta_{host}", "MB/s", "bandwidth of a node's main memory, its peak", _OFFLOAD)
copy_share = measure("copy_share", r"\eta_{copy}", "1", "share of it that copying to the cards reaches", _OFFLOAD)
host_share = measure("host_share", r"\eta_{host}", "1", "share of it that processors reach on experts", _OFFLOAD)
host_work = measure("host_work", "F_{host}", "MFLOPS", "arithmetic of a node's processors", _OFFLOAD)
fetch_us = measure("fetch_us", "t_f", "us", "time to ask for the missing experts of a layer", _OFFLOAD, zero=True)
card_us = measure("card_us", "t_{card}", "us", "time of the pass if all experts lay on the cards", _OFFLOAD, zero=True)
