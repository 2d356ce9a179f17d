"""CSV tables into validated rows. One fact a row; a row that breaks its schema stops everything, with its address."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from k3lib.errors import InputError, near
from k3lib.facts.paths import shown
from k3lib.units import UNITS

Grade = Literal["exact", "measured", "derived", "assumed"]
GRADES: tuple[Grade, ...] = ("exact", "measured", "derived", "assumed")
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]*$")]
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _known_unit(value: str) -> str:
    if value not in UNITS:
        raise ValueError(f"unit '{value}' is not known. {near(str(value), UNITS)}")
    return value


def _empty_is_none(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


UnitName = Annotated[str, BeforeValidator(_known_unit)]
OptionalCount = Annotated[Count | None, BeforeValidator(_empty_is_none)]
OptionalNumber = Annotated[NonNegative | None, BeforeValidator(_empty_is_none)]
Signed = Annotated[float, Field(allow_inf_nan=False)]
OptionalSigned = Annotated[Signed | None, BeforeValidator(_empty_is_none)]


LARGEST_BYTES = 64 * 2**20


class Row(BaseModel):
    """A frozen row. Unknown columns are refused; every row names its source."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


R = TypeVar("R", bound=BaseModel)


def problem(error: ValidationError) -> str:
    """The first fault that pydantic found, as one plain sentence."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"]) or "value"
    message = first["msg"].removeprefix("Value error, ")
    given = first.get("input")
    if first["type"] == "missing":
        return f"'{field}' is missing"
    if first["type"] == "extra_forbidden":
        return f"'{field}' is not a known name"
    if not first["loc"]:
        return f"{message[0].lower()}{message[1:]}"
    shown_value = repr(given) if len(repr(given)) < 60 else repr(given)[:57] + "..."
    return f"{field} = {shown_value}: {message[0].lower()}{message[1:]}"


def read_text(path: Path) -> str:
    """A text file of the project or the user, as UTF-8 (a byte-order mark is dropped).

    Raises InputError when it is missing, a folder, unreadable or not UTF-8.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{shown(path)}: is not a file of text")
        if path.is_file() and path.stat().st_size > LARGEST_BYTES:
            raise InputError(f"{shown(path)}: over {LARGEST_BYTES:,} bytes; no file of this project is so large")
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{shown(path)}: no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{shown(path)}: not UTF-8 text (byte {error.start}). Save it as UTF-8.") from None
    except OSError as error:
        raise InputError(f"{shown(path)}: cannot be read ({error.strerror or error})") from None


def load_rows(
    path: Path, schema: type[R], key: Sequence[str], check: Callable[[R], None] | None = None
) -> tuple[R, ...]:
    """Every row of a CSV file, validated.

    `key`: columns that together name a row; no two rows may share them. `check`: raises ValueError for a row that fits
    its schema and still cannot be used. Raises InputError with file, row number (as
    a spreadsheet shows it), the row's name, what is wrong and what would be right.
    """
    text = read_text(path)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    where = shown(path)
    rows: list[R] = []
    seen: dict[tuple[str, ...], int] = {}
    try:
        header = next(reader, None)
        if not header:
            raise InputError(f"{where}: the file is empty; its first line must name the columns")
        _check_header(where, header, schema)
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            rows.append(_row(where, reader.line_num, header, cells, schema, key, seen, check))
    except csv.Error as error:
        raise InputError(
            f"{where}, row {reader.line_num}: not readable as CSV ({error}). Is a quote left open?"
        ) from None
    if not rows:
        raise InputError(f"{where}: has a header but no rows")
    return tuple(rows)


def _check_header(where: str, header: list[str], schema: type[BaseModel]) -> None:
    known = set(schema.model_fields)
    for name in header:
        if name not in known:
            raise InputError(f"{where}, row 1: column '{name}' is not known. {near(name, known)}")
        if header.count(name) > 1:
            raise InputError(f"{where}, row 1: column '{name}' stands twice. Remove one.")
    for name, field in schema.model_fields.items():
        if field.is_required() and name not in header:
            raise InputError(f"{where}, row 1: column '{name}' is missing. Add it.")


def _row(
    where: str,
    line: int,
    header: list[str],
    cells: list[str],
    schema: type[R],
    key: Sequence[str],
    seen: dict[tuple[str, ...], int],
    check: Callable[[R], None] | None,
) -> R:
    named = dict(zip(header, cells, strict=False))
    name = tuple(named.get(k, "") for k in key)
    address = f"{where}, row {line} ({' / '.join(name)})"
    if len(cells) != len(header):
        raise InputError(f"{address}: has {len(cells)} cells, the header has {len(header)}. Is a comma not quoted?")
    if name in seen:
        raise InputError(f"{address}: the same {' and '.join(key)} as row {seen[name]}. Remove one.")
    seen[name] = line
    try:
        row = schema.model_validate(named)
        if check is not None:
            check(row)
    except ValidationError as error:
        raise InputError(f"{address}: {problem(error)}") from None
    except ValueError as error:
        raise InputError(f"{address}: {error}") from None
    return row
