"""Notebook files: read, write with stable bytes, and the form that becomes a page."""

from __future__ import annotations

import ast
import copy
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from k3lib.errors import InputError
from k3lib.results import MIME

# Grammars of a package that checks addresses take two seconds to load with nbformat, and no address is checked here.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

METADATA = "k3"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
INJECTED = "injected-parameters"


def read(path: Path) -> Any:
    """A notebook as nested dictionaries, version 4."""
    import nbformat

    return nbformat.read(path, as_version=4)


def parameter_cell_names(path: Path) -> list[str]:
    """Names that a notebook's parameters cell assigns. Raises InputError when there is no such cell."""
    try:
        cells = read(path)["cells"]
        source = "\n".join(c["source"] for c in cells if "parameters" in c["metadata"].get("tags", ()))
        found = [node.targets[0] for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    except Exception as error:  # whatever a library makes of a file that is no notebook
        raise InputError(
            f"{path.name}: cannot be read as a notebook ({error}). 'make tidy' mends missing metadata."
        ) from None
    names = [target.id for target in found if isinstance(target, ast.Name)]
    if not names:
        raise InputError(f"{path.name}: has no cell tagged 'parameters' that assigns a name")
    return names


def code_of(path: Path) -> list[str]:
    """The code cells of a notebook."""
    return [cell["source"] for cell in read(path)["cells"] if cell["cell_type"] == "code"]


def is_sound(notebook: Any) -> bool:
    """Whether this is a settled notebook, whose cells have what a page needs."""
    try:
        cells = [(cell["cell_type"], cell["source"], cell["metadata"]) for cell in notebook["cells"]]
        return bool(cells) and isinstance(notebook["metadata"][METADATA], dict)
    except (TypeError, KeyError):
        return False


def write(notebook: Any, path: Path) -> None:
    """Write with sorted keys and a final newline, so that the same notebook gives the same bytes."""
    path.write_text(json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def normalised(notebook: Any) -> Any:
    """A notebook as it is committed: no outputs, no counts, no metadata of a run."""
    cells = []
    for cell in notebook["cells"]:
        kept = {k: v for k, v in cell["metadata"].items() if k in ("tags", "mystnb")}
        source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        clean = {
            "cell_type": cell["cell_type"],
            "id": cell["id"],
            "metadata": kept,
            "source": source.rstrip().splitlines(keepends=True),
        }
        if cell["cell_type"] == "code":
            clean |= {"execution_count": None, "outputs": []}
        cells.append(clean)
    return {
        "cells": cells,
        "metadata": {"kernelspec": KERNEL, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def settle(notebook: Any, parameters: Mapping[str, Any]) -> Any:
    """An executed notebook without what changes from run to run: times, folders, random ids.

    Keeps the parameters it ran with.
    """
    notebook = copy.deepcopy(notebook)
    language = notebook["metadata"].get("language_info", {}).get("name", "python")
    notebook["metadata"] = {
        "kernelspec": KERNEL,
        "language_info": {"name": language},
        METADATA: {"parameters": dict(parameters)},
    }
    for cell in notebook["cells"]:
        for name in ("papermill", "execution"):
            cell["metadata"].pop(name, None)
        if INJECTED in cell["metadata"].get("tags", ()):
            cell["id"] = INJECTED
        for output in cell.get("outputs", ()):
            output.get("metadata", {}).pop("papermill", None)
    return notebook


def parameters_of(notebook: Any) -> dict[str, Any]:
    """The parameters that a settled notebook ran with."""
    return dict(notebook["metadata"].get(METADATA, {}).get("parameters", {}))


def fingerprint_of(notebook: Any) -> str:
    """The fingerprint of what a settled notebook was made from."""
    return str(notebook["metadata"].get(METADATA, {}).get("made_from", ""))


def page(notebook: Any) -> Any:
    """The notebook as a page of the book: recorded results are in the appendix, so their outputs are left out here."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook["cells"]:
        if "outputs" in cell:
            cell["outputs"] = [o for o in cell["outputs"] if MIME not in o.get("data", {})]
        tags = cell["metadata"].get("tags", [])
        if INJECTED in tags:
            cell["metadata"]["tags"] = [*tags, "remove-cell"]
    return notebook
