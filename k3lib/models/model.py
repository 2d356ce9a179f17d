"""A model: its stored weights as expressions, and the values of the symbols in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import sympy as sp

from k3lib.account import symbols as s
from k3lib.account.storage import NAMED
from k3lib.account.tensors import Stored, Tensor, stored
from k3lib.errors import InputError, near
from k3lib.evaluate import exact
from k3lib.facts.catalog import Checkpoint, StorageFact, model_names, storage_facts
from k3lib.facts.configs import Fields, load_json_object
from k3lib.facts.paths import MODELS, shown
from k3lib.facts.scenario import model_list
from k3lib.models import parts
from k3lib.models.excluding import layer_numbers
from k3lib.models.families import FAMILIES, VISION_BIAS
from k3lib.models.reading import Reader, unknown_blocks
from k3lib.models.storing import TORCH_DTYPES, format_rule, in_format, profile, quantisation


class UnknownBlockError(InputError):
    """A configuration with parts that the account does not know. `names`: the fields or the model type."""

    def __init__(self, message: str, names: Collection[str]) -> None:
        super().__init__(message)
        self.names = tuple(names)


@dataclass(frozen=True)
class Model:
    """name: its id or the file's name. arrays: what stands on disk. values: the symbols' values.

    mixers, mlps: the kind of every decoder layer ("mla", "kda", "gqa", "gdn"; "dense", "moe").
    checkpoint: what was published of it, for a known model. ignored: fields left out at the user's word.
    storage: the storage facts that went into it, beside the configuration. residual_block: layers of one block of
    attention residuals, 0 without them. longest: tokens that a request may have at most, 0 where not told.
    """

    name: str
    tensors: tuple[Tensor, ...]
    arrays: tuple[Stored, ...]
    values: Mapping[sp.Symbol, int]
    mixers: tuple[str, ...]
    mlps: tuple[str, ...]
    checkpoint: Checkpoint | None
    ignored: tuple[str, ...] = ()
    storage: tuple[StorageFact, ...] = ()
    residual_block: int = 0
    longest: int = 0

    @property
    def sources(self) -> tuple[str, ...]:
        """Sources of what the account was derived from: the configuration and the storage facts, no published total."""
        config = self.checkpoint.config_source_id.split() if self.checkpoint else []
        return tuple(dict.fromkeys([*config, *(i for fact in self.storage for i in fact.source_ids)]))


def load_model(name_or_file: str, form: str | None = None, ignore: tuple[str, ...] = ()) -> Model:
    """A known model by name, or the user's own `config.json` (or the folder that holds it).

    form: store the quantised weights (all linear ones, where the checkpoint has none) in this format instead.
    ignore: fields that the user says carry no weights. Raises InputError for an unknown name, a missing or
    contradictory field, and UnknownBlockError for a part that the account does not know.
    """
    if form is not None and form not in NAMED:
        raise InputError(f"format '{form}' is not known. {near(form, NAMED)}")
    path = Path(name_or_file)
    inside = path / "config.json"
    if inside.is_file():
        return _build(inside, None, form, ignore)
    if path.is_file() or name_or_file.endswith(".json"):
        return _build(path, None, form, ignore)
    names = model_names()
    row = names.get(name_or_file.lower().rsplit("/", 1)[-1])
    if row is None:
        raise InputError(f"model '{name_or_file}' is not known and is no file. {near(name_or_file, names)}")
    return _known_model(row, form, ignore)


@lru_cache(maxsize=64)
def _known_model(row: Checkpoint, form: str | None, ignore: tuple[str, ...]) -> Model:
    return _build(MODELS / f"{row.config}.config.json", row, form, ignore)


def _build(path: Path, row: Checkpoint | None, form: str | None, ignore: tuple[str, ...]) -> Model:
    data = load_json_object(path)
    where = shown(path)
    outer = Fields(where, data)
    text = outer.part("text_config") or outer
    family = _family(outer, text)
    _check_scopes()
    scopes = [family] + ([row.model_id] if row else [])
    facts = [fact for scope in scopes for fact in storage_facts() if fact.scope == scope]
    reader = Reader(text, profile(facts))
    FAMILIES[family](reader)
    if "vision_config" not in ignore and (vision := outer.part("vision_config")):
        if family not in VISION_BIAS:
            raise _unknown(where, ["vision_config"])
        parts.vision(reader, vision, bias=VISION_BIAS[family])
    model = _stored(reader, outer, text, row, str(path), form)
    for field in ignore:
        if field not in outer.names():
            raise InputError(f"--ignore {field}: {where} has no such field. {near(field, outer.names())}")
    strange = [name for name in unknown_blocks(outer) if name not in ignore]
    if strange:
        raise _unknown(where, strange)
    return replace(
        model, ignored=ignore, storage=tuple(facts), residual_block=reader.residual_block, longest=reader.longest
    )


def _check_scopes() -> None:
    """Every storage fact belongs to a family or a known checkpoint, or it would be left out in silence."""
    known = {*FAMILIES, *(row.model_id for row in model_names().values())}
    for fact in storage_facts():
        if fact.scope not in known:
            raise InputError(f"data/models/storage.csv ({fact.scope} / {fact.item}): scope is not known. "
                             f"{near(fact.scope, known)}")  # fmt: skip


def _family(outer: Fields, text: Fields) -> str:
    """The family by `model_type`; the outer one wins, since a text part often carries its base model's type."""
    found = [t for t in (outer.word("model_type", default=""), text.word("model_type", default="")) if t]
    if not found:
        raise InputError(f"{outer.where}: field 'model_type' is missing")
    for name in found:
        if name in FAMILIES:
            return name
    raise UnknownBlockError(
        f"{outer.where}: model_type '{found[0]}' is not known. {near(found[0], FAMILIES)}", found[:1]
    )


def _unknown(where: str, names: list[str]) -> UnknownBlockError:
    fields = ", ".join(f"'{n}'" for n in names)
    return UnknownBlockError(
        f"{where}: {fields} may stand for weights that the account does not know, so no total is given. "
        f"If it adds none, say so: --ignore {names[0]}",
        names,
    )


def _stored(
    reader: Reader,
    outer: Fields,
    text: Fields,
    row: Checkpoint | None,
    name: str,
    form: str | None,
) -> Model:
    holder = text if text.has("quantization_config") else outer
    extra = reader.values.get(s.layers_mtp, 0)
    quant = quantisation(holder, reader.known.scale_dtype, layer_numbers(reader.mixers, reader.mlps, extra))
    if form is not None:
        quant = in_format(quant, *NAMED[form])
    torch_dtype = text.word("torch_dtype", "dtype", default=outer.word("torch_dtype", "dtype", default="bfloat16"))
    if torch_dtype not in TORCH_DTYPES:
        raise InputError(f"{outer.where}: dtype '{torch_dtype}' is not known. {near(torch_dtype, TORCH_DTYPES)}")
    values = dict(reader.values)
    if quant:
        values |= quant.values
    arrays = stored(reader.tensors, format_rule(TORCH_DTYPES[torch_dtype], reader.known, quant))
    _check_groups(outer.where, arrays, values)
    return Model(
        row.model_id if row else name,
        tuple(reader.tensors),
        arrays,
        MappingProxyType(values),
        reader.mixers,
        reader.mlps,
        row if form is None else None,
    )


def _check_groups(where: str, arrays: tuple[Stored, ...], values: Mapping[sp.Symbol, int]) -> None:
    """Packed rows and groups must come out even, or the file could not exist."""
    for array in arrays:
        for size in array.shape:
            side = exact(size, values)
            if not isinstance(side, int):
                raise InputError(
                    f"{where}: '{array.name}' would have a side of {side}; "
                    "the group size does not divide the weight's width"
                )


def published_models(names: str) -> list[Model]:
    """Those of the named models (see `facts.scenario.model_list`) whose total was published.

    Raises InputError for an unknown name, or when there is none besides Kimi K3 itself.
    """
    known = model_names()
    for name in model_list(names):
        if name not in known:
            raise InputError(f"reference_models: '{name}' is not a known model. {near(name, known)}")
    rows = dict.fromkeys(known[name] for name in model_list(names))
    models = [load_model(row.model_id) for row in rows if row.published_bytes is not None]
    if not any(model.name != "kimi-k3" for model in models):
        raise InputError(f"reference_models: nothing in '{names}' has a published total, besides Kimi K3 itself")
    return models
