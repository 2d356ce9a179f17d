"""A number with its trail, and the file that holds them all: `results.json`, with `results.csv` beside it.

Notebooks make results through `record`; the record travels inside the executed notebook, where a build finds it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import sympy as sp

from k3lib.account import estimate_symbols as _estimates  # noqa: F401 - declares its part of the vocabulary
from k3lib.account import money_symbols as _money  # noqa: F401 - declares its part of the vocabulary
from k3lib.account import operate_symbols as _operate  # noqa: F401 - declares its part of the vocabulary
from k3lib.account.symbols import REGISTRY, latex
from k3lib.errors import InputError, near
from k3lib.facts.catalog import sources as known_sources
from k3lib.facts.tables import GRADES, read_text
from k3lib.units import unit

MIME = "application/vnd.k3.result+json"
KEY = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)+")
CSV_COLUMNS = ("key", "value", "unit", "grade", "low", "high", "equation", "inputs", "sources", "notebook")

Value = int | float | bool | str


@dataclass(frozen=True)
class Result:
    """One number of the book.

    value: finite number in `unit`, or a verdict (text, true, false) whose unit is "". low, high: range in the same
    unit; None where the grade is "exact". equation: LaTeX. inputs: symbol name or result key -> value and unit.
    sources: ids in data/sources.csv. notebook: who made it.
    """

    key: str
    value: Value
    unit: str
    grade: str
    low: float | None = None
    high: float | None = None
    equation: str = ""
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sources: Sequence[str] = ()
    notebook: str = ""

    @property
    def is_number(self) -> bool:
        """Whether the value can be formatted, converted and ranged."""
        return not isinstance(self.value, (bool, str))


def check(result: Result) -> Result:
    """The same result, or InputError that names its key, what is wrong and what would be right."""
    where = f"result '{result.key}'"
    if not isinstance(result.value, (bool, int, float, str)):
        raise InputError(f"{where}: value {result.value!r} is neither a number nor a verdict")
    if not KEY.fullmatch(result.key):
        raise InputError(f"{where}: a key is dotted and lower case, as 'k3.weights.bytes'")
    if result.grade not in GRADES:
        raise InputError(f"{where}: grade '{result.grade}' is not known. {near(result.grade, GRADES)}")
    _check_value(where, result)
    unknown = [s for s in result.sources if s not in known_sources()]
    if unknown:
        raise InputError(
            f"{where}: source '{unknown[0]}' is not in data/sources.csv. {near(unknown[0], known_sources())}"
        )
    if not result.sources and not result.inputs:
        raise InputError(f"{where}: names neither a source nor an input; a number without a trail is not recorded")
    return result


def _check_value(where: str, result: Result) -> None:
    if not result.is_number:
        if result.unit:
            raise InputError(f"{where}: a verdict has no unit; write unit=''")
        return
    unit(result.unit)
    for name, number in (("value", result.value), ("low", result.low), ("high", result.high)):
        if isinstance(number, (int, float)) and not math.isfinite(number):
            raise InputError(f"{where}: {name} = {number} is not finite")
    if result.grade == "exact":
        if result.low is not None or result.high is not None:
            raise InputError(f"{where}: is graded exact, so it has no low and high")
    elif result.low is None or result.high is None:
        raise InputError(f"{where}: is graded {result.grade}, so it needs low and high")
    elif not result.low <= result.value <= result.high:  # type: ignore[operator]
        raise InputError(f"{where}: {result.value} is not between low {result.low} and high {result.high}")


def _plain(value: Any) -> Any:
    """A number of any library as a plain Python one; whole numbers stay int."""
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, (Fraction, sp.Rational)):
        return int(value) if value == int(value) else float(value)
    if hasattr(value, "item"):
        value = value.item()
    return float(value) if isinstance(value, (float, sp.Float)) else value


def _inputs(inputs: Mapping[Any, Any]) -> dict[str, dict[str, Any]]:
    """Inputs given as symbol -> value, or as results, in the form that is stored."""
    stored: dict[str, dict[str, Any]] = {}
    for name, value in inputs.items():
        if isinstance(value, Result):
            stored[value.key] = {"value": value.value, "unit": value.unit}
        elif isinstance(name, sp.Symbol) and str(name) in REGISTRY:
            stored[str(name)] = {"value": _plain(value), "unit": REGISTRY[str(name)].unit}
        else:
            raise InputError(f"input {name!r} is neither a declared symbol nor a result")
    return dict(sorted(stored.items()))


def used_values(expression: sp.Expr, values: Mapping[sp.Symbol, Any]) -> dict[sp.Symbol, Any]:
    """The values that an expression uses, for `inputs`."""
    return {x: values[x] for x in sorted(expression.free_symbols, key=str)}


@lru_cache(maxsize=512)
def _written(equation: sp.Expr) -> str:
    """An equation as LaTeX; many results share one."""
    return latex(equation)


def make(
    key: str,
    value: Any,
    *,
    unit: str,
    grade: str,
    low: Any = None,
    high: Any = None,
    equation: sp.Expr | str = "",
    inputs: Mapping[Any, Any] | Iterable[Result] = (),
    sources: Iterable[str] = (),
) -> Result:
    """A checked result from numbers, SymPy expressions and symbols. Raises InputError as `check` does."""
    if not isinstance(inputs, Mapping):
        inputs = {r.key: r for r in inputs}
    if isinstance(sources, str):
        sources = sources.split()
    text = _written(equation) if isinstance(equation, sp.Expr) else equation
    return check(
        Result(key, _plain(value), unit, grade, _plain(low), _plain(high), text, _inputs(inputs), tuple(sources))
    )


def record(key: str, value: Any, **trail: Any) -> Result:
    """Make a result (see `make`) and publish it from the notebook that runs this."""
    from IPython.display import display

    result = make(key, value, **trail)
    payload = asdict(result)
    display({MIME: payload, "text/plain": f"{key} = {result.value} {result.unit} ({result.grade})"}, raw=True)
    return result


def from_dict(key: str, data: Any) -> Result:
    """A checked result from its stored form. Raises InputError for anything else."""
    names = set(Result.__dataclass_fields__) - {"key"}
    if not isinstance(data, dict) or set(data) - names or {"value", "unit", "grade"} - set(data):
        raise InputError(f"result '{key}': must be an object with {', '.join(sorted(names))}")
    return check(Result(key, **data))


def collect(notebook_name: str, notebook: Mapping[str, Any]) -> list[Result]:
    """The results that an executed notebook recorded."""
    found = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            payload = output.get("data", {}).get(MIME)
            if payload is not None:
                result = from_dict(payload["key"], {k: v for k, v in payload.items() if k != "key"})
                found.append(replace(result, notebook=notebook_name))
    return found


def together(results: Iterable[Result]) -> dict[str, Result]:
    """All results by key. Raises InputError when two notebooks, or two cells, record the same key."""
    table: dict[str, Result] = {}
    for result in results:
        if result.key in table:
            raise InputError(
                f"result '{result.key}' is recorded twice: in notebook {table[result.key].notebook} and in "
                f"{result.notebook}. Give one of them another key."
            )
        table[result.key] = result
    return dict(sorted(table.items()))


def to_json(results: Mapping[str, Result]) -> str:
    """`results.json`: sorted keys, UTF-8, final newline."""
    table = {key: {k: v for k, v in asdict(r).items() if k != "key"} for key, r in results.items()}
    return json.dumps(table, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(results: Mapping[str, Result]) -> str:
    """`results.csv`: one row a key; inputs as JSON, sources separated by spaces."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for key, r in sorted(results.items()):
        inputs = json.dumps(r.inputs, sort_keys=True, ensure_ascii=False)
        writer.writerow(
            [key, r.value, r.unit, r.grade, r.low, r.high, r.equation, inputs, " ".join(r.sources), r.notebook]
        )
    return out.getvalue()


def load(path: Path) -> dict[str, Result]:
    """Results from a `results.json`. Raises InputError when it is missing, not JSON or not such a file."""
    try:
        data = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path.name}, row {error.lineno}: not valid JSON ({error.msg})") from None
    if not isinstance(data, dict):
        raise InputError(f"{path.name}: must be an object of results by key")
    return {key: from_dict(key, value) for key, value in data.items()}
