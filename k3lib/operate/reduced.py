"""A checkpoint with the first layers of another one: its configuration, its index, and its tensors byte by byte.

Of engines no public run of Kimi K3 with fewer layers by an option alone is known, so that the files are made to agree
with the configuration. Works on Hugging Face folders: config.json, model.safetensors.index.json, *.safetensors.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from k3lib.errors import InputError

LAYER = re.compile(r"\.layers\.(\d+)\.")
INDEX = "model.safetensors.index.json"
# Lists of layers, counted from 1, in the configuration of models with two kinds of attention.
LISTS = ("full_attn_layers", "kda_layers")
COPY_BYTES = 2**26
LENGTH = struct.Struct("<Q")
LONGEST_HEADER = 2**28


@dataclass(frozen=True)
class Reduced:
    """What was written, or would be. layers: of those that there were; tensors, files, bytes: of the new weights."""

    layers: int
    of_layers: int
    tensors: int
    files: int
    bytes: int


def reduce(source: Path, target: Path, layers: int, *, write: bool = True) -> Reduced:
    """Write the first `layers` layers of a checkpoint into a new folder; everything that is no layer stays.

    write: False only counts. Raises InputError for files that are not such a checkpoint, for more layers than there
    are, and for a folder that is not empty.
    """
    config, index = (_json(source / name) for name in ("config.json", INDEX))
    files = index.get("weight_map")
    text = config.get("text_config", config)
    most = text.get("num_hidden_layers") if isinstance(text, dict) else None
    if not isinstance(files, dict) or not isinstance(most, int):
        raise InputError(f"{source}: needs num_hidden_layers in config.json and a weight_map in {INDEX}")
    if not 1 <= layers <= most:
        raise InputError(f"--layers {layers}: must be from 1 to the {most} of {source.name}")
    if write and target.exists() and any(target.iterdir()):
        raise InputError(f"{target}: is not empty; name a new folder")
    kept: dict[str, list[str]] = defaultdict(list)
    for name, file in files.items():
        layer = LAYER.search(name) if "vision" not in name else None
        if layer is None or int(layer[1]) < layers:
            kept[_inside(source, file)].append(name)
    if write:
        target.mkdir(parents=True, exist_ok=True)
    total = sum(_copy(source / file, target / file if write else None, names) for file, names in sorted(kept.items()))
    if write:
        _beside(source, target, files.values())
        _write(target / "config.json", _shorter(config, layers))
        mapped = {name: file for file, names in kept.items() for name in names}
        _write(target / INDEX, {"metadata": {"total_size": total}, "weight_map": dict(sorted(mapped.items()))})
    return Reduced(layers, most, sum(map(len, kept.values())), len(kept), total)


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())  # an index of many experts is larger than any table of this project
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: must be an object")
    return found


def _inside(source: Path, file: object) -> str:
    if not isinstance(file, str) or Path(file).name != file:
        raise InputError(f"{source / INDEX}: '{file}' is not the name of a file beside it")
    return file


def _shorter(config: dict[str, Any], layers: int) -> dict[str, Any]:
    """The configuration with so many layers, and with lists of layers cut to them."""
    found = json.loads(json.dumps(config))
    text = found.get("text_config", found)
    text["num_hidden_layers"] = layers
    mixed = text.get("linear_attn_config")
    for name in LISTS:
        if isinstance(mixed, dict) and isinstance(mixed.get(name), list):
            mixed[name] = [at for at in mixed[name] if at <= layers]
    return dict(found)


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _beside(source: Path, target: Path, weights: Any) -> None:
    """Tokenizer, code and the like, which do not depend on the layers."""
    made = {*weights, "config.json", INDEX}
    for path in sorted(source.iterdir()):
        if path.is_file() and path.name not in made and path.suffix != ".safetensors":
            shutil.copyfile(path, target / path.name)


def _copy(source: Path, target: Path | None, names: list[str]) -> int:
    """Bytes of the named tensors of a file; written into another one in their order there, where a target is given."""
    try:
        with source.open("rb") as file:
            header, start = _header(file, source)
            missing = [name for name in names if name not in header]
            if missing:
                raise InputError(f"{source}: has no tensor '{missing[0]}', which {INDEX} names")
            order = sorted(names, key=lambda name: header[name]["data_offsets"][0])
            if target is None:
                return sum(_size(header[name]) for name in order)
            return _copied(file, start, header, order, target)
    except (OSError, KeyError, TypeError, IndexError) as error:
        raise InputError(f"{source}: cannot be copied ({error})") from None


def _header(file: BinaryIO, source: Path) -> tuple[dict[str, Any], int]:
    head = file.read(LENGTH.size)
    length = LENGTH.unpack(head)[0] if len(head) == LENGTH.size else LONGEST_HEADER
    try:
        found = json.loads(file.read(length)) if length < LONGEST_HEADER else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{source}: is not a file of safetensors")
    return found, LENGTH.size + length


def _size(tensor: dict[str, Any]) -> int:
    low, high = tensor["data_offsets"]
    return int(high) - int(low)


def _copied(file: BinaryIO, start: int, header: dict[str, Any], order: list[str], target: Path) -> int:
    at, made = 0, {name: header[name] for name in header if name == "__metadata__"}
    for name in order:
        made[name] = {**header[name], "data_offsets": [at, at + _size(header[name])]}
        at += _size(header[name])
    text = json.dumps(made, separators=(",", ":")).encode()
    text += b" " * (-len(text) % LENGTH.size)  # readers map the data at a multiple of eight bytes
    with target.open("wb") as out:
        out.write(LENGTH.pack(len(text)) + text)
        for name in order:
            file.seek(start + header[name]["data_offsets"][0])
            left = _size(header[name])
            while left:
                part = file.read(min(left, COPY_BYTES))
                if not part:
                    raise InputError(f"{target.name}: the source ends inside tensor '{name}'")
                out.write(part)
                left -= len(part)
    return at
