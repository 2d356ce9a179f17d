"""Run one notebook in a process of its own: `python -m k3lib.report.execute IN OUT PARAMETERS.json`.

Exit code 0: OUT holds the executed notebook. 2: the last line on stdout is a JSON object {"error", "trace"}.
"""

from __future__ import annotations

import ast
import json
import sys
import traceback
from pathlib import Path
from typing import Any

from k3lib.errors import EXIT_BAD_INPUT, EXIT_DONE, InputError

LONGEST_CELL_SECONDS = 600
INPUT_ERRORS = ("InputError", "UnknownBlockError")


def parameter_cell_names(path: Path) -> list[str]:
    """Names that a notebook's parameters cell assigns. Raises InputError when there is no such cell."""
    import nbformat
    import papermill

    try:
        nbformat.read(path, as_version=4)
        names = list(papermill.inspect_notebook(str(path)))
    except Exception as error:  # whatever a library makes of a file that is no notebook
        raise InputError(
            f"{path.name}: cannot be read as a notebook ({error}). 'make tidy' mends missing metadata."
        ) from None
    if not names:
        raise InputError(f"{path.name}: has no cell tagged 'parameters' that assigns a name")
    for name in _assigned(path):
        if name not in names:
            raise InputError(f"{path.name}: its parameter '{name}' cannot be read; write one '=' on its line, no more")
    return names


def _assigned(path: Path) -> list[str]:
    """Names that the parameters cell assigns, by Python's own reading."""
    import nbformat

    cells = nbformat.read(path, as_version=4)["cells"]
    source = "".join(c["source"] for c in cells if "parameters" in c["metadata"].get("tags", ()))
    found = [node.targets[0] for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    return [target.id for target in found if isinstance(target, ast.Name)]


def execute(source: Path, target: Path, parameters: dict[str, Any]) -> None:
    """Run a notebook with papermill. Raises InputError that names the notebook, the cell and the fault."""
    import papermill
    from papermill.exceptions import PapermillExecutionError

    try:
        papermill.execute_notebook(
            str(source),
            str(target),
            parameters=parameters,
            kernel_name="python3",
            progress_bar=False,
            cwd=str(target.parent),
            log_output=False,
            execution_timeout=LONGEST_CELL_SECONDS,
            request_save_on_cell_execute=False,  # saved once, at the end: a long notebook takes seconds to write
        )
    except PapermillExecutionError as error:
        cell = f"{source.name}, cell {error.cell_index}"  # papermill counts the cell that it put in, from 0
        if error.ename in INPUT_ERRORS:
            raise InputError(f"{error.evalue} ({cell})") from error
        raise InputError(f"{cell}: {error.ename}: {error.evalue}") from error
    except Exception as error:  # a kernel that dies or never starts, a disk that is full
        raise InputError(f"{source.name}: {type(error).__name__}: {error}") from error


def main(argv: list[str]) -> int:
    """The command of this module."""
    source, target, parameters = (Path(a) for a in argv)
    try:
        execute(source, target, json.loads(parameters.read_text(encoding="utf-8")))
    except InputError as error:
        cause = error.__cause__
        trace = "\n".join(getattr(cause, "traceback", None) or traceback.format_exception(cause))
        print(json.dumps({"error": str(error), "trace": trace}))
        return EXIT_BAD_INPUT
    return EXIT_DONE


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
