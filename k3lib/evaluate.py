"""Equations and values into numbers: exact integers for one point, fast arrays for many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from k3lib.errors import InputError

# Points of one pass: the intermediate arrays of a pass stay in the processor's cache.
CHUNK_POINTS = 16_384

Array = npt.NDArray[np.float64]


def exact(expression: sp.Expr, values: Mapping[sp.Symbol, int]) -> int | Fraction:
    """The expression's value, without rounding. Whole values come as int.

    Raises InputError for a symbol without a value.
    """
    expression = sp.sympify(expression)
    return _exact(expression, tuple(values.get(x) for x in _symbols(expression)))


@lru_cache(maxsize=1 << 12)
def _symbols(expression: sp.Expr) -> tuple[sp.Symbol, ...]:
    return tuple(sorted(expression.free_symbols, key=str))


# Layouts of one cluster share most of their lines, so that most values are asked for many times.
@lru_cache(maxsize=1 << 16)
def _exact(expression: sp.Expr, given: tuple[int | None, ...]) -> int | Fraction:
    known = zip(_symbols(expression), given, strict=True)
    result = expression.xreplace({x: sp.Integer(value) for x, value in known if value is not None})
    if result.free_symbols:
        missing = ", ".join(sorted(str(x) for x in result.free_symbols))
        raise InputError(f"no value for: {missing}")
    ratio = sp.Rational(result)
    return int(ratio) if ratio.q == 1 else Fraction(int(ratio.p), int(ratio.q))


def whole(expression: sp.Expr, values: Mapping[sp.Symbol, int]) -> int:
    """As `exact`, for a value that must be whole. Raises InputError where it is not."""
    result = exact(expression, values)
    if not isinstance(result, int):
        raise InputError(f"{expression} is not whole: {result}")
    return result


@lru_cache(maxsize=256)
def prepared(expressions: tuple[sp.Expr, ...]) -> tuple[tuple[sp.Symbol, ...], Any]:
    """The symbols that the expressions use, in the order in which the returned function takes their values.

    For inner loops: nothing is checked, numbers and arrays are passed on as they come.
    """
    used = tuple(sorted({x for e in expressions for x in e.free_symbols}, key=str))
    return used, sp.lambdify(used, list(expressions), modules="numpy", cse=True)


def arrays(expressions: Mapping[str, sp.Expr], values: Mapping[sp.Symbol, Any]) -> dict[str, Array]:
    """Each expression at every point, in one call.

    values: numbers or one-dimensional arrays of the same length n, for every symbol that the expressions use.
    Returns float64 arrays of shape (n,), or of shape (1,) where all values are numbers. Exact up to 2^53.
    Raises InputError for a missing value, unequal lengths, or a value that is not finite, negative, or 0 where a symbol
    cannot be.
    """
    used, function = prepared(tuple(sp.sympify(e) for e in expressions.values()))
    missing = [str(x) for x in used if x not in values]
    if missing:
        raise InputError(f"no value for: {', '.join(missing)}")
    columns = [_column(x, values[x]) for x in used]
    lengths = {c.size for c in columns if c.size != 1}
    if len(lengths) > 1:
        raise InputError(f"arrays of unequal length: {', '.join(str(n) for n in sorted(lengths))}")
    points = lengths.pop() if lengths else 1
    results = [np.empty(points) for _ in expressions]
    for start in range(0, points, CHUNK_POINTS):
        part = slice(start, min(start + CHUNK_POINTS, points))
        for out, value in zip(results, function(*_part(columns, part)), strict=True):
            out[part] = value
    return dict(zip(expressions, results, strict=True))


def _part(columns: Sequence[Array], part: slice) -> list[Any]:
    return [c[part] if c.size > 1 else c[0] for c in columns]


def _column(symbol: sp.Symbol, value: Any) -> Array:
    column = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if column.ndim != 1:
        raise InputError(f"{symbol}: must be a number or a one-dimensional array")
    if not np.all(np.isfinite(column)) or not np.all(column > 0 if symbol.is_positive else column >= 0):
        raise InputError(f"{symbol}: every value must be finite and {'above' if symbol.is_positive else 'at least'} 0")
    return column
