"""Expressions as formulas: what a spreadsheet makes of them is what NumPy makes of them."""

from __future__ import annotations

import math

import openpyxl
import pytest
import spreadsheet
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from k3lib.account import costs as eq
from k3lib.account import money_symbols as m
from k3lib.errors import InputError
from k3lib.report import formulas
from k3lib.report.formulas import cell_name, formula

X, Y, Z = sp.symbols("x y z", positive=True)
NUMBERS = st.integers(-4, 4) | st.fractions(-3, 3, max_denominator=8) | st.floats(-2.5, 2.5, allow_nan=False)
LEAVES = st.sampled_from([X, Y, Z]) | NUMBERS.map(sp.sympify)
POINTS = st.floats(0.05, 6.0, allow_nan=False)


def grown(parts: st.SearchStrategy[sp.Expr]) -> st.SearchStrategy[sp.Expr]:
    pairs = st.tuples(parts, parts)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] - p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        pairs.map(lambda p: p[0] / (sp.Abs(p[1]) + 1)),
        pairs.map(lambda p: sp.Max(p[0], p[1])),
        pairs.map(lambda p: sp.Piecewise((p[0], p[0] > p[1]), (p[1] - 1, True))),
        parts.map(lambda p: p**2),
        parts.map(lambda p: -p),
        parts.map(lambda p: (sp.Abs(p) + sp.Rational(1, 2)) ** sp.Rational(-3, 2)),
        parts.map(lambda p: sp.sqrt(sp.Abs(p) + 1)),
        parts.map(lambda p: sp.log(sp.Abs(p) + 2)),
        parts.map(lambda p: sp.ceiling(p) + sp.floor(p / 3)),
        pairs.map(lambda p: (sp.Abs(p[0]) + 1) ** sp.Min(p[1], 3)),
        parts.map(lambda p: sp.exp(-sp.Abs(p))),
    )


def drawn() -> list[tuple[sp.Expr, dict[sp.Symbol, float]]]:
    """Expressions and a point for each, the same in every run."""
    found: list[tuple[sp.Expr, dict[sp.Symbol, float]]] = []

    @settings(max_examples=250, database=None)
    @given(st.recursive(LEAVES, grown, max_leaves=8), POINTS, POINTS, POINTS)
    def collect(expression: sp.Expr, x: float, y: float, z: float) -> None:
        found.append((expression, {X: x, Y: y, Z: z}))

    collect()
    return found


def steady(expression: sp.Expr, point: dict[sp.Symbol, float]) -> bool:
    """Whether the point lies away from steps, where the last digit of an input decides, and from huge values."""
    value = formula(expression).value(point)
    near = [formula(expression).value({k: v * s for k, v in point.items()}) for s in (1 - 1e-9, 1 + 1e-9)]
    return all(map(math.isfinite, (value, *near))) and max(abs(x - value) for x in near) <= 1e-6 * max(1, abs(value))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[sp.Expr, float, object]]:
    """Expressions with their value by NumPy and what LibreOffice shows for their formula."""
    folder = tmp_path_factory.mktemp("formulas")
    many = [(e, p) for e, p in drawn() if steady(e, p)]
    book = openpyxl.Workbook()
    for row, (expression, point) in enumerate(many, 1):
        for column, value in enumerate(point.values(), 1):
            book.active.cell(row, column, value)
        cells = {symbol: f"{letter}{row}" for symbol, letter in zip(point, "ABC", strict=True)}
        book.active.cell(row, 4, formula(expression).text(cells))
    path = folder / "drawn.xlsx"
    book.save(path)
    (seen,) = spreadsheet.values(spreadsheet.recalculated([path], folder)["drawn"]).values()
    return [(e, formula(e).value(p), seen.get(f"D{row}")) for row, (e, p) in enumerate(many, 1)]


def test_a_spreadsheet_gives_what_numpy_gives(shown: list[tuple[sp.Expr, float, object]]) -> None:
    assert len(shown) > 150
    for expression, value, seen in shown:
        assert isinstance(seen, int | float), (expression, seen)
        assert seen == pytest.approx(value, rel=1e-9, abs=1e-9), expression


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (-(X**2), "=0-A1^2"),
        (-(X**2) + Y, "=B1-A1^2"),
        (X ** (Y**2), "=A1^(B1^2)"),
        ((X + Y) ** 2 / Z, "=(A1+B1)^2/C1"),
        (1 / (X * Y), "=1/(A1*B1)"),
        (sp.Rational(-3, 7) * X / Y**2, "=0-3*A1/(7*B1^2)"),
        (sp.sqrt(X) / 3, "=SQRT(A1)/3"),
        (sp.ceiling(X / Y), "=(0-INT(0-(A1/B1)))"),
        (sp.Piecewise((X, X > Y), (Z, True)), "=IF(A1>B1,A1,C1)"),
        (sp.Float(1e-7) * X, "=(1E-07)*A1"),
        (X * 0, "=0"),
    ],
)
def test_how_a_formula_is_written(expression: sp.Expr, text: str) -> None:
    """No sign of minus stands before a power: a spreadsheet would take it first, and 2^3^2 from the left."""
    assert formula(expression).text({X: "A1", Y: "B1", Z: "C1"}) == text


@pytest.mark.parametrize("name", [n for n in dir(eq) if n.endswith(("_cny", "_mtok", "_months", "_hours", "served"))])
def test_every_equation_of_costs_is_a_formula(name: str) -> None:
    made = getattr(eq, name)
    if name == "line_cny":
        made = lambda: eq.line_cny("energy", "USD")  # noqa: E731
    ready = formula(made())
    assert ready.text({symbol: f"used_{symbol}" for symbol in ready.symbols}).startswith("=")


def test_refusals() -> None:
    with pytest.raises(InputError, match="'gamma' cannot be written as a formula"):
        formula(sp.gamma(X))
    with pytest.raises(InputError, match="no cell for life"):
        formula(eq.api_levelled()).text({m.capital_rate: "A1", m.api_decline: "A2"})
    with pytest.raises(InputError, match="Use cells between"):
        formula(X + Y).text({X: "A" * formulas.LONGEST, Y: "B1"})


@pytest.mark.parametrize(
    ("text", "name"),
    [("server8.h20-96", "server8_h20_96"), ("h20", "_h20"), ("R1C1", "_R1C1"), ("r", "_r"), ("c7", "_c7"),
     ("rag", "rag"), ("1x", "_1x"), ("XFD1", "_XFD1"), ("a" * 20 + "1", "a" * 20 + "1")],
)  # fmt: skip
def test_names_are_no_cells(text: str, name: str) -> None:
    assert cell_name(text) == name
