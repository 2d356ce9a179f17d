"""An engine's settings out of a log, by name: a Python dictionary, a call's keywords or JSON, whole or cut off.

Names are looked for, nothing is evaluated: a value is a number, a word in quotes, true, false or none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from k3lib.reading.text import clean

Value = str | int | float | bool
LONGEST = 200
LONGEST_TEXT = 100_000
NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,18})?([eE][+-]?\d{1,3})?")


@lru_cache(maxsize=8)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    word = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return re.compile(
        rf"""(?:(?<![\w.])["']?(?P<name>{word})["']?\s*[=:]\s*)"""
        rf"""(?:'(?P<single>[^']{{0,{LONGEST}}})'|"(?P<double>[^"]{{0,{LONGEST}}})"|(?P<bare>[^\s,'"(){{}}\[\]]{{1,60}}))"""
    )


def named_values(text: str, names: Iterable[str]) -> dict[str, Value]:
    """The first value of each of these names in a text; none and what cannot be a value are left out."""
    found: dict[str, Value] = {}
    for match in _pattern(tuple(names)).finditer(text[:LONGEST_TEXT]):
        name = match["name"]
        if name in found:
            continue
        if (quoted := match["single"] if match["single"] is not None else match["double"]) is not None:
            found[name] = clean(quoted)
        elif (value := plain_value(match["bare"])) is not None:
            found[name] = value
    return found


def plain_value(text: str) -> Value | None:
    """A bare word as a value."""
    lower = text.lower()
    if lower in ("none", "null"):
        return None
    if lower in ("true", "false"):
        return lower == "true"
    if NUMBER.fullmatch(text):
        number = float(text)
        return int(text) if re.fullmatch(r"-?\d+", text) else number if abs(number) < 1e18 else None
    return clean(text, 60) or None
