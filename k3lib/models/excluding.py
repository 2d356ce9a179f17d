"""The ignore list of a quantised checkpoint: which weights it leaves alone, the same in every layer or not at all."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import sympy as sp

from k3lib.account import symbols as s
from k3lib.account.tensors import Tensor
from k3lib.errors import InputError

LayerNumbers = Mapping[sp.Symbol, Sequence[int]]
LONGEST_PATTERN = 200
MOST_REPEATS = 6


def layer_numbers(mixers: Sequence[str], mlps: Sequence[str], extra: int) -> dict[sp.Symbol, list[int]]:
    """The numbers of the layers that each layer-counting symbol counts; extra layers come behind the trunk's."""
    total = len(mixers)
    by_kind = {
        s.layers_mla: ("mla", mixers),
        s.layers_kda: ("kda", mixers),
        s.layers_gqa: ("gqa", mixers),
        s.layers_gdn: ("gdn", mixers),
        s.layers_dense: ("dense", mlps),
        s.layers_moe: ("moe", mlps),
    }
    numbers = {symbol: [i for i, k in enumerate(kinds) if k == kind] for symbol, (kind, kinds) in by_kind.items()}
    return {**numbers, s.layers: list(range(total)), s.layers_mtp: list(range(total, total + extra))}


def exclusion(where: str, entries: Iterable[object], layers: LayerNumbers) -> Callable[[Tensor], bool]:
    """Whether the list excludes a weight. Entries are module names, parts of them, `*` patterns, or `re:` patterns.

    Raises InputError for an entry that is no pattern, and for a list that treats layers of one kind differently.
    """
    patterns, names = [], set()
    for entry in entries:
        if not isinstance(entry, str) or len(entry) > LONGEST_PATTERN:
            raise InputError(f"{where}: ignore entry {str(entry)[:40]!r} must be a string of at most 200 characters")
        if entry.startswith("re:"):
            patterns.append(_compiled(where, entry.removeprefix("re:")))
        elif "*" in entry:
            patterns.append(re.compile(fnmatch.translate(entry + "*")))
        else:
            names.add(entry)

    def listed(module: str) -> bool:
        parts = module.split(".")
        paths = (".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1))
        return any(path in names for path in paths) or any(p.match(module) for p in patterns)

    def excluded(tensor: Tensor) -> bool:
        modules = _modules(tensor, layers)
        found = [module for module in modules if listed(module)]
        if found and len(found) < len(modules):
            raise InputError(
                f"{where}: the ignore list names '{found[0]}' and not the same weight of every layer; "
                "formats that differ between layers are not known here"
            )
        return bool(found)

    return excluded


def _compiled(where: str, pattern: str) -> re.Pattern[str]:
    # A repeated group, or many repeats, can take for ever to fail; no published list needs either.
    if re.search(r"\)[*+{?]", pattern) or sum(pattern.count(sign) for sign in "*+{") > MOST_REPEATS:
        raise InputError(f"{where}: ignore pattern '{pattern}' repeats a group, or repeats too often; write it without")
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(f"{where}: ignore pattern '{pattern}' is not a regular expression ({error})") from None


def _modules(tensor: Tensor, layers: LayerNumbers) -> list[str]:
    """The names under which one weight stands in the checkpoint, one a layer; the first expert stands for all."""
    name = tensor.name.removesuffix(".weight").replace("{e}", "0").replace("{b}", "0")
    for symbol, numbers in layers.items():
        if symbol in tensor.count.free_symbols and numbers:
            own_count = name.startswith("mtp.")  # such extra layers are numbered from 0
            return [name.replace("{l}", str(i)).replace("{m}", str(i - own_count * numbers[0])) for i in numbers]
    return [name]
