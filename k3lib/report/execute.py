"""Run one notebook in this process, which should be there for nothing else."""

from __future__ import annotations

import faulthandler
import signal
from pathlib import Path
from typing import Any

import papermill
from papermill.engines import Engine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from k3lib.errors import InputError
from k3lib.report.shell import Shell

LONGEST_CELL_SECONDS, LONGEST_NOTEBOOK_SECONDS = 600, 3600
INPUT_ERRORS = ("InputError", "UnknownBlockError")


class _InThisProcess(Engine):
    """Runs a notebook's cells here. Its process is a fork that has the libraries already, and ends with it."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> None:
        """Papermill calls this with the notebook, its parameters filled in."""
        shell = Shell.instance(folder=options["folder"])
        for index, cell in enumerate(nb_man.nb.cells):
            if cell.cell_type != "code" or not cell.source.strip():
                continue
            nb_man.cell_start(cell, index)
            signal.alarm(LONGEST_CELL_SECONDS)
            cell.outputs = shell.run(cell.source)
            signal.alarm(0)
            cell.execution_count = shell.execution_count - 1
            if any(output.output_type == "error" for output in cell.outputs):
                nb_man.cell_exception(cell, index)
                return
            nb_man.cell_complete(cell, index)


ENGINE = "k3"
papermill_engines.register(ENGINE, _InThisProcess)


def execute(source: Path, target: Path, parameters: dict[str, Any]) -> None:
    """Run a notebook with papermill. Raises InputError that names the notebook, the cell and the fault."""
    signal.signal(signal.SIGALRM, _too_long)
    # A cell that no alarm can reach ends its process.
    faulthandler.dump_traceback_later(LONGEST_NOTEBOOK_SECONDS, exit=True)
    try:
        papermill.execute_notebook(
            str(source),
            str(target),
            engine_name=ENGINE,
            parameters=parameters,
            kernel_name="python3",
            progress_bar=False,
            cwd=str(target.parent),
            log_output=False,
            request_save_on_cell_execute=False,  # saved once, at the end: a long notebook takes seconds to write
            folder=target.parent,
        )
    except PapermillExecutionError as error:
        cell = f"{source.name}, cell {error.cell_index}"  # papermill counts the cell that it put in, from 0
        if error.ename in INPUT_ERRORS:
            raise InputError(f"{error.evalue} ({cell})") from error
        raise InputError(f"{cell}: {error.ename}: {error.evalue}") from error
    except Exception as error:  # a disk that is full
        raise InputError(f"{source.name}: {type(error).__name__}: {error}") from error


def _too_long(*_: object) -> None:
    raise TimeoutError(f"it runs for more than {LONGEST_CELL_SECONDS} s")
