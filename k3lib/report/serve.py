"""A process that runs notebooks for a build, one after the other, each in a fork: libraries are loaded once.

`python -m k3lib.report.serve` takes a job a line on stdin, as `Task` in JSON, and prints its exit code when it has
ended. What a job answers stands in a file: {"reads"} of facts as paths in the folder of data, or {"error", "trace"}.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from k3lib import kept
from k3lib.errors import EXIT_BAD_INPUT, EXIT_DONE, InputError

NOTEBOOK = ".ipynb"
# What most notebooks import: these load the rest.
LOADED = ("k3lib.report.notebooks", "k3lib.report.execute", "k3lib.report.workbook", "k3lib.report.costs",
          "k3lib.report.compare", "k3lib.choose.scene", "k3lib.calibrate.predict")  # fmt: skip


@dataclass(frozen=True)
class Task:
    """A notebook to run, or a module that writes a download of a scenario; where its result and answer go.

    source: the notebook's file, or the module's name. parameters: the notebook's own, or all of the scenario.
    """

    source: str
    target: str
    answer: str
    parameters: dict[str, Any]

    def as_line(self) -> str:
        """The job as the server reads it."""
        return json.dumps(asdict(self)) + "\n"


def _do(task: Task) -> int:
    """Do a job and write its answer. Returns the exit code."""
    try:
        if task.source.endswith(NOTEBOOK):
            from k3lib.report.execute import execute

            execute(Path(task.source), Path(task.target), task.parameters)
        else:
            from k3lib.facts.scenario import Scenario

            scenario = Scenario.model_validate(task.parameters)
            importlib.import_module(task.source).of_scenario(scenario, Path(task.target))
        answer: dict[str, Any] = {"reads": kept.reads()}
        code = EXIT_DONE
    except Exception as error:
        cause = error.__cause__ if isinstance(error, InputError) else error
        trace = "\n".join(getattr(cause, "traceback", None) or traceback.format_exception(cause or error))
        message = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        answer, code = {"error": message, "trace": trace}, EXIT_BAD_INPUT
    Path(task.answer).write_text(json.dumps(answer), encoding="utf-8")
    return code


def _forked(task: Task) -> int:
    """A process of its own for a job. Returns its id."""
    child = os.fork()
    if child:
        return child
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    quiet = os.open(os.devnull, os.O_RDONLY)
    os.dup2(quiet, 0)
    os.dup2(2, 1)  # stdout is the server's own
    code = EXIT_BAD_INPUT
    try:
        code = _do(task)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # nothing of the server is run here


def main() -> None:
    """Load the libraries, then take jobs until there are none."""
    kept.watch()
    for name in LOADED:
        importlib.import_module(name)
    running: list[int] = []

    def end(*_: object) -> None:
        for child in running:
            os.kill(child, signal.SIGKILL)
        os._exit(EXIT_BAD_INPUT)

    signal.signal(signal.SIGTERM, end)
    for line in sys.stdin:
        running.append(_forked(Task(**json.loads(line))))
        _, status = os.waitpid(running[0], 0)
        running.clear()
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
