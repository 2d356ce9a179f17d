"""SymPy expressions as formulas of a spreadsheet, from the same equations that the library computes with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy as sp

from k3lib.errors import InputError
from k3lib.evaluate import prepared

# What Excel still takes as one formula.
LONGEST = 8192
# Functions of the same name but for the case, or another one.
FUNCTIONS = {sp.exp: "EXP", sp.log: "LN", sp.Abs: "ABS", sp.Max: "MAX", sp.Min: "MIN"}
RELATIONS = {sp.Gt: ">", sp.Ge: ">=", sp.Lt: "<", sp.Le: "<=", sp.Eq: "=", sp.Ne: "<>"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What looks like a cell, in either way of writing one, so no name may be it.
CELL = re.compile(r"[a-z]{1,3}\d+|r(\d+)?(c(\d+)?)?|c(\d+)?", re.IGNORECASE)
# How tightly parts of a formula hold together. A minus sign before a power would bind first: 0-x^2 is written for it.
_COMPARED, _ADDED, _MULTIPLIED, _RAISED, _WHOLE = range(5)


@dataclass(frozen=True)
class Formula:
    """An expression ready to be written with any cells. template: has a symbol's name in braces where a cell goes."""

    template: str
    symbols: tuple[sp.Symbol, ...]
    function: Callable[..., list[Any]]

    def text(self, cells: Mapping[sp.Symbol, str]) -> str:
        """The formula, with what each symbol is called in the sheet. Raises InputError for a symbol without a cell."""
        missing = [str(symbol) for symbol in self.symbols if symbol not in cells]
        if missing:
            raise InputError(f"formula: no cell for {', '.join(missing)}")
        written = "=" + self.template.format_map({str(symbol): cells[symbol] for symbol in self.symbols})
        if len(written) > LONGEST:
            raise InputError(f"formula of {len(written)} characters: a cell takes {LONGEST}. Use cells between.")
        return written

    def value(self, values: Mapping[sp.Symbol, float]) -> float:
        """The number that the cell shows, by NumPy."""
        return float(self.function(*(values[symbol] for symbol in self.symbols))[0])


@lru_cache(maxsize=512)
def formula(expression: sp.Expr) -> Formula:
    """An expression as a formula. Raises InputError for a function that spreadsheets lack."""
    expression = sp.sympify(expression)
    symbols, function = prepared((expression,))
    return Formula(_written(expression)[0], symbols, function)


def cell_name(text: str) -> str:
    """A name for a cell out of an identifier: letters, figures and underlines, and like no cell."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return f"_{name}" if not NAME.fullmatch(name) or CELL.fullmatch(name) else name


def _written(e: sp.Basic) -> tuple[str, int]:
    """The text of an expression and how tightly it holds together."""
    if isinstance(e, sp.Symbol):
        return f"{{{e}}}", _WHOLE
    if isinstance(e, sp.Integer):
        return (str(e), _WHOLE) if e >= 0 else (f"({e})", _WHOLE)
    if isinstance(e, sp.Rational):
        return (f"{e.p}/{e.q}", _MULTIPLIED) if e.p > 0 else (f"({e.p})/{e.q}", _MULTIPLIED)
    if isinstance(e, sp.Number | sp.NumberSymbol):
        return figure(float(e)), _WHOLE
    if isinstance(e, sp.Add) or (isinstance(e, sp.Mul) and _is_minus(e)):
        return _sum(e), _ADDED
    if isinstance(e, sp.Mul):
        return _product(e), _MULTIPLIED
    if isinstance(e, sp.Pow):
        return _power(e.base, e.exp)
    if isinstance(e, sp.ceiling | sp.floor):
        (inner,) = e.args
        text = _written(inner)[0]
        return (f"(0-INT(0-({text})))" if isinstance(e, sp.ceiling) else f"INT({text})"), _WHOLE
    if isinstance(e, sp.Piecewise):
        return _cases(e), _WHOLE
    for kind, sign in RELATIONS.items():
        if isinstance(e, kind):
            return f"{_within(e.args[0], _ADDED)}{sign}{_within(e.args[1], _ADDED)}", _COMPARED
    for kind, name in FUNCTIONS.items():
        if isinstance(e, kind):
            return f"{name}({','.join(_written(x)[0] for x in e.args)})", _WHOLE
    raise InputError(f"'{type(e).__name__}' cannot be written as a formula of a spreadsheet: {e}")


def _within(e: sp.Basic, least: int) -> str:
    """The text of a part, in brackets unless it holds together at least so tightly."""
    text, tight = _written(e)
    return text if tight >= least else f"({text})"


def figure(value: float) -> str:
    """A number as a formula has it."""
    text = repr(float(value)).removesuffix(".0").replace("e", "E").replace("+", "")
    return f"({text})" if value < 0 or "E-" in text else text


def _is_minus(e: sp.Basic) -> bool:
    coefficient, _ = e.as_coeff_Mul()
    return bool(coefficient.is_negative)


def _sum(e: sp.Expr) -> str:
    """What is added first, then what is taken away."""
    terms = sp.Add.make_args(e)
    text = "+".join(_within(x, _ADDED) for x in terms if not _is_minus(x)) or "0"
    return text + "".join(f"-{_within(-x, _MULTIPLIED)}" for x in terms if _is_minus(x))


def _product(e: sp.Mul) -> str:
    """Factors above one line of division and below it."""
    above: list[str] = []
    below: list[str] = []
    for x in e.as_ordered_factors():
        if isinstance(x, sp.Rational) and not isinstance(x, sp.Integer):
            above += [str(x.p)] if x.p != 1 else []
            below.append(str(x.q))
        elif isinstance(x, sp.Pow) and x.exp.is_Rational and x.exp.is_negative:
            below.append(_within(sp.Pow(x.base, -x.exp, evaluate=False) if x.exp != -1 else x.base, _RAISED))
        else:
            above.append(_within(x, _MULTIPLIED))
    text = "*".join(above) or "1"
    if not below:
        return text
    return f"{text}/{below[0]}" if len(below) == 1 else f"{text}/({'*'.join(below)})"


def _power(base: sp.Basic, exponent: sp.Basic) -> tuple[str, int]:
    if exponent == -1:
        return f"1/{_within(base, _RAISED)}", _MULTIPLIED
    if exponent == sp.Rational(1, 2):
        return f"SQRT({_written(base)[0]})", _WHOLE
    return f"{_within(base, _WHOLE)}^{_within(exponent, _WHOLE)}", _RAISED


def _cases(e: sp.Piecewise) -> str:
    text = "NA()"
    for value, condition in reversed(e.args):
        found = _written(value)[0]
        text = found if condition == sp.true else f"IF({_written(condition)[0]},{found},{text})"
    return text
