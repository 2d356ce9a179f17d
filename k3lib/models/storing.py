"""Which weight is stored in which format: the configuration's quantisation entry plus what storage.csv knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace

import sympy as sp

from k3lib.account import storage as st
from k3lib.account import symbols as s
from k3lib.account.tensors import Tensor
from k3lib.errors import InputError, near
from k3lib.facts.catalog import StorageFact
from k3lib.facts.configs import Fields
from k3lib.models.excluding import LayerNumbers, exclusion

# Roles that a quantiser for linear layers touches, unless the configuration's ignore list names them. Routers,
# token tables and the projections into a latent of experts stay as they are in every published checkpoint here.
LINEAR_ROLES = frozenset({"attention", "mlp", "expert", "shared"})


@dataclass(frozen=True)
class Profile:
    """What a configuration does not tell about storage. Fields are the items of data/models/storage.csv."""

    norm_dtype: str = ""
    index_norm_dtype: str = ""
    head_norm_dtype: str = ""
    convolution_dtype: str = ""
    decay_dtype: str = "F32"
    router_bias_dtype: str = "F32"
    buffer_dtype: str = ""
    scale_dtype: str = "F32"
    inv_freq: int = 0
    decay_entries: int = 0
    mtp_layers: int = 0
    mtp_copies: int = 0


def profile(facts: Iterable[StorageFact]) -> Profile:
    """The storage profile that facts add up to; later ones win.

    Raises InputError for an item that is not known or a value of the wrong kind.
    """
    kinds = {f.name: f.type for f in fields(Profile)}
    result = Profile()
    for row in facts:
        where = f"data/models/storage.csv ({row.scope} / {row.item})"
        if row.item not in kinds:
            raise InputError(f"{where}: item is not known. {near(row.item, kinds)}")
        if kinds[row.item] == "int":
            if not row.value.isdigit():
                raise InputError(f"{where}: value '{row.value}' must be a whole number")
            result = replace(result, **{row.item: int(row.value)})  # type: ignore[arg-type]
        elif row.value not in st.DTYPE_BITS:
            raise InputError(f"{where}: value '{row.value}' is no data type. {near(row.value, st.DTYPE_BITS)}")
        else:
            result = replace(result, **{row.item: row.value})  # type: ignore[arg-type]
    return result


TORCH_DTYPES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}


@dataclass(frozen=True)
class Quantisation:
    """The format of quantised weights, which weights get it, and the values of the format's symbols."""

    form: st.Format
    applies: Callable[[Tensor], bool]
    values: dict[sp.Symbol, int]


def quantisation(config: Fields, scale_dtype: str, layers: LayerNumbers) -> Quantisation | None:
    """What the configuration's `quantization_config` says. Raises InputError for a method that is not known."""
    part = config.part("quantization_config")
    if part is None or not part.data:
        return None
    method = part.word("quant_method")
    readers = {"fp8": _fp8, "mxfp4": _mxfp4_fused, "compressed-tensors": _compressed_tensors}
    if method not in readers:
        raise InputError(f"{part.where}: quant_method '{method}' is not known. {near(method, readers)}")
    return readers[method](part, scale_dtype, layers)


def _applies(excluded: Callable[[Tensor], bool]) -> Callable[[Tensor], bool]:
    return lambda tensor: tensor.role in LINEAR_ROLES and not excluded(tensor)


def _fp8(part: Fields, scale_dtype: str, layers: LayerNumbers) -> Quantisation:
    if part.word("activation_scheme", default="dynamic") != "dynamic":
        raise InputError(
            f"{part.where}: activation_scheme is not dynamic: stored scales of activations are not known here"
        )
    block = part.listed("weight_block_size")
    if block is None or len(block) != 2 or not all(isinstance(b, int) and b > 0 for b in block):
        raise InputError(
            f"{part.where}: weight_block_size = {block}: FP8 is known here with blocks only, as [128, 128]"
        )
    excluded = exclusion(part.where, part.listed("modules_to_not_convert", "ignored_layers") or [], layers)
    return Quantisation(st.fp8_block(scale_dtype), _applies(excluded), {s.block_rows: block[0], s.block_cols: block[1]})


def _mxfp4_fused(part: Fields, scale_dtype: str, layers: LayerNumbers) -> Quantisation:
    part.skip("modules_to_not_convert")  # only the experts are stored so, whatever the list says
    group = part.whole("group_size", "block", default=st.MXFP4_GROUP)
    return Quantisation(st.mxfp4_blocks(), lambda tensor: tensor.role == "expert", {s.group_size: group})


def _compressed_tensors(part: Fields, scale_dtype: str, layers: LayerNumbers) -> Quantisation:
    groups = part.part("config_groups")
    if groups is None or len(groups.data) != 1:
        raise InputError(f"{part.where}: config_groups must hold exactly one group; mixed formats are not known here")
    group = groups.part(next(iter(groups.data)))
    weights = group.part("weights") if group else None
    if group is None or weights is None:
        raise InputError(f"{groups.where}: 'weights' is missing in the group")
    if (group.listed("targets") or ["Linear"]) != ["Linear"]:
        raise InputError(f"{group.where}: targets = {group.data['targets']}: only all linear layers are known here")
    group.skip("input_activations", "output_activations")
    if weights.word("strategy", default="group") != "group":
        raise InputError(f"{weights.where}: strategy is not 'group'; other ways to share scales are not known here")
    name = part.word("format", default="")
    if group.word("format", default=name) != name:
        raise InputError(f"{group.where}: format '{group.data['format']}' contradicts the outer '{name}'")
    bits, kind = weights.whole("num_bits"), weights.word("type")
    forms: dict[tuple[str, int, str], st.Format] = {
        ("mxfp4-pack-quantized", 4, "float"): st.mxfp4(),
        ("nvfp4-pack-quantized", 4, "float"): st.nvfp4(input_scale=group.has("input_activations")),
        ("pack-quantized", 4, "int"): st.int4_packed(),
    }
    if (name, bits, kind) not in forms:
        known = ", ".join(f"{n} ({b}-bit {k})" for n, b, k in forms)
        raise InputError(f"{part.where}: format '{name}' with {bits}-bit {kind} weights is not known. Known: {known}.")
    if weights.has("symmetric") and not weights.flag("symmetric"):
        raise InputError(f"{weights.where}: symmetric = false: zero points are not known here")
    return Quantisation(
        forms[name, bits, kind],
        _applies(exclusion(part.where, part.listed("ignore") or [], layers)),
        {s.group_size: weights.whole("group_size")},
    )


def in_format(quant: Quantisation | None, form: st.Format, values: dict[sp.Symbol, int]) -> Quantisation:
    """The same choice of weights in another format; all linear weights where the checkpoint quantises none."""
    return Quantisation(form, quant.applies if quant else _applies(lambda tensor: False), values)


def format_rule(base: str, known: Profile, quant: Quantisation | None) -> Callable[[Tensor], st.Format]:
    """The rule that says how each weight is stored. `base`: data type of everything that has no rule of its own."""
    own = {
        "norm": known.norm_dtype,
        "index_norm": known.index_norm_dtype or known.norm_dtype,
        "head_norm": known.head_norm_dtype,
        "convolution": known.convolution_dtype,
        "decay": known.decay_dtype,
        "router_bias": known.router_bias_dtype,
        "buffer": known.buffer_dtype,
    }

    def format_of(tensor: Tensor) -> st.Format:
        if quant and quant.applies(tensor):
            return quant.form
        return st.plain(own.get(tensor.role) or base)

    return format_of
