"""A reading as one of the project's benchmark rows, with what the file does not say added by the user."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError

from k3lib.engines.layout import Layout
from k3lib.errors import InputError
from k3lib.facts.benchmarks import METRICS, Run
from k3lib.facts.tables import problem
from k3lib.reading.records import RunReading
from k3lib.reading.tables import OWN_SOURCE
from k3lib.reading.text import clean

DAY = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})")


def run_fields(reading: RunReading) -> dict[str, Any]:
    """The columns of a benchmark row that the file tells. A run with warnings is shown, never used to fit."""
    if reading.own is not None:
        return reading.own.model_dump()
    day = DAY.match(reading.date)
    sizes = {name: getattr(reading, name) for name in ("tp", "pp", "ep", "dp", "dcp")}
    layout = str(Layout(**{k: v or 1 for k, v in sizes.items()})) if sizes["tp"] else ""
    fields: dict[str, Any] = {
        "use": "show" if reading.warnings else "fit",
        "reason": clean("; ".join(reading.warnings), 400),
        "as_of": "-".join(day.groups()) if day else "",
        "model": reading.model, "device": _identifier(reading.device), "cards": reading.cards, "layout": layout,
        "deployment": reading.deployment, "engine": reading.engine, "version": reading.version,
        "settings": f"requests={reading.completed}" if reading.completed else "",
        "speculation": reading.speculation, "acceptance_length": reading.acceptance_length,
        "serving": reading.serving, "prompts": reading.prompts,
        "isl": reading.isl, "osl": reading.osl, "concurrency": reading.max_concurrency,
        "grade": "measured", "source_id": OWN_SOURCE,
        **{name: getattr(reading, name) for name in METRICS},
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value not in (None, "")}


def as_run(reading: RunReading, **known: Any) -> Run:
    """The reading as a row. known: columns that the file does not tell (run_id, set_id, model, device, engine...).

    Raises InputError that names the file and the column that is missing or wrong.
    """
    fields = {**run_fields(reading), **{k: v for k, v in known.items() if v is not None}}
    place = f"{reading.file}, {reading.place}" if reading.place else reading.file
    name = _identifier(place) or "run"
    fields.setdefault("run_id", name)
    fields.setdefault("set_id", _identifier(reading.file) or "own")
    try:
        return Run.model_validate(fields)
    except ValidationError as error:
        raise InputError(f"{place}: {clean(problem(error), 300)}. Name it beside the file.") from None


def _identifier(text: str) -> str:
    """A text as an identifier: letters, digits, dots and dashes."""
    return re.sub(r"[^A-Za-z0-9_.\-]+", "-", text).strip("-._")[:120].lower()
