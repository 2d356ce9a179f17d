"""A model's `config.json` in Hugging Face field names, read so that no field is passed over in silence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from k3lib.errors import InputError, near
from k3lib.facts.paths import shown
from k3lib.facts.tables import read_text

MAX_CONFIG_BYTES = 4 * 2**20
MAX_FIELD = 10**9


def load_json_object(path: Path) -> dict[str, Any]:
    """A JSON object from a file. Refuses NaN, a field that stands twice, over 4 MiB, and anything not an object.

    Raises InputError that names the file and the place.
    """
    where = shown(path)
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise InputError(f"{where}: over {MAX_CONFIG_BYTES} bytes; this is not a model's config.json")
    except OSError:
        pass
    text = read_text(path)

    def no_constant(name: str) -> None:
        raise InputError(f"{where}: holds {name}, which is not a number")

    def no_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for name, value in pairs:
            if name in seen:
                raise InputError(f"{where}: field '{name}' stands twice. Remove one.")
            seen[name] = value
        return seen

    try:
        data = json.loads(text, parse_constant=no_constant, object_pairs_hook=no_twice)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}, row {error.lineno}: not valid JSON ({error.msg})") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deep to be a model's config.json") from None
    if not isinstance(data, dict):
        raise InputError(f"{where}: must be one JSON object in braces, is a {type(data).__name__}")
    return data


class Fields:
    """The fields of one configuration object; remembers which were read, so that the rest can be named.

    where: address for messages. data: the object.
    """

    def __init__(self, where: str, data: dict[str, Any]) -> None:
        self.where = where
        self.data = data
        self._read: set[str] = set()
        self._parts: dict[str, Fields] = {}

    def _find(self, names: Iterable[str]) -> tuple[str, Any]:
        names = tuple(names)
        self._read.update(names)
        given = {n: self.data[n] for n in names if self.data.get(n) is not None}
        if len({json.dumps(v, sort_keys=True) for v in given.values()}) > 1:
            pairs = ", ".join(f"{n} = {v}" for n, v in given.items())
            raise InputError(f"{self.where}: {pairs} contradict each other; they are names of the same thing")
        return next(iter(given.items()), (names[0], None))

    def _missing(self, name: str) -> InputError:
        others = [field for field, value in self.data.items() if field != name and value is not None]
        return InputError(f"{self.where}: field '{name}' is missing. {near(name, others)}")

    def whole(self, *names: str, default: int | None = None, least: int = 1, most: int = MAX_FIELD) -> int:
        """A whole number from `least` to `most`, under any of its names; without `default` it must be there."""
        name, value = self._find(names)
        if value is None:
            if default is None:
                raise self._missing(name)
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"{self.where}, field {name} = {value!r}: must be a whole number")
        if not least <= value <= most:
            raise InputError(f"{self.where}, field {name} = {value}: must be from {least} to {most:,}")
        return value

    def flag(self, *names: str, default: bool = False) -> bool:
        """True or false, under any of its names."""
        name, value = self._find(names)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InputError(f"{self.where}, field {name} = {value!r}: must be true or false")
        return value

    def word(self, *names: str, default: str | None = None) -> str:
        """A string, under any of its names; without `default` it must be there."""
        name, value = self._find(names)
        if value is None:
            if default is None:
                raise self._missing(name)
            return default
        if not isinstance(value, str):
            raise InputError(f"{self.where}, field {name} = {value!r}: must be a string")
        return value

    def listed(self, *names: str) -> list[Any] | None:
        """A list, or None where the field is absent."""
        name, value = self._find(names)
        if value is not None and not isinstance(value, list):
            raise InputError(f"{self.where}, field {name} = {value!r}: must be a list")
        return value

    def part(self, *names: str) -> Fields | None:
        """A nested object, or None where the field is absent."""
        name, value = self._find(names)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise InputError(f"{self.where}, field {name} = {value!r}: must be an object in braces")
        return self._parts.setdefault(name, Fields(f"{self.where}, {name}", value))

    def has(self, name: str) -> bool:
        """Whether the field is there and not null. Does not count as reading it."""
        return self.data.get(name) is not None

    def skip(self, *names: str) -> None:
        """Count fields as read that carry no weights here."""
        self._read.update(names)

    def unread(self) -> Iterator[tuple[str, Any]]:
        """Fields that nobody asked for, with their values; those of the parts that were opened too."""
        for name, value in self.data.items():
            if name not in self._read:
                yield name, value
        for part in self._parts.values():
            yield from part.unread()

    def names(self) -> Iterator[str]:
        """Every field name, those of the parts that were opened too."""
        yield from self.data
        for part in self._parts.values():
            yield from part.names()
