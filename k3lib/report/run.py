"""Running notebooks, each in a process of its own, and what a run is made from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from k3lib import kept
from k3lib.calibrate.own import CONSTANTS, RUNS, folder_of_own
from k3lib.errors import InputError
from k3lib.facts.paths import DATA, ROOT, shown
from k3lib.facts.price_parameters import PRICES_FILE
from k3lib.facts.scenario import Scenario
from k3lib.report import notebooks as nbs
from k3lib.report.serve import NOTEBOOK, Task
from k3lib.report.used import modules_of

WORKBOOK = "k3-costs.xlsx"
ALERTS = "alerts"
WHATIF = "what-if page"


@dataclass(frozen=True)
class Job:
    """One notebook to run, with the parameters that its parameters cell asks for."""

    path: Path
    parameters: dict[str, Any]

    @property
    def name(self) -> str:
        """The notebook's name without ending."""
        return self.path.stem


@dataclass
class Runner:
    """Runs notebooks, several at once. work: a folder of the build. log: where a fault's trace is written.

    fresh: also those that ran before from the same inputs. price_file: the reader's own prices.
    """

    work: Path
    log: Path
    fresh: bool = False
    price_file: Path | None = None
    _servers: list[subprocess.Popen[str]] = field(default_factory=list)
    _idle: list[subprocess.Popen[str]] = field(default_factory=list)
    _stopped: bool = False
    _lock: Lock = field(default_factory=Lock)

    def notebook(self, job: Job) -> Any:
        """An executed notebook. Raises InputError that names the notebook, the cell and the fault."""
        name = kept.digest([job.path, *_own(), *modules_of(nbs.code_of(job.path))], job.parameters)
        found = None if self.fresh else _kept(name)
        if found is None:
            found, read = self._run(job)
            kept.keep(name, read)
            kept.keep(_of_facts(name, read), found)
        found["metadata"][nbs.METADATA]["made_from"] = made_from(job.path)
        return found

    def workbook(self, scenario: Scenario, target: Path) -> None:
        """Write the workbook of costs. Raises InputError with what stopped it."""
        self._done(WORKBOOK, "k3lib.report.workbook", target, scenario.model_dump(mode="json"))

    def alerts(self, scenario: Scenario, folder: Path) -> None:
        """Write the rules of alerts and the dashboard. Raises InputError with what stopped it."""
        self._done(ALERTS, "k3lib.report.operating", folder, scenario.model_dump(mode="json"))

    def whatif(self, scenario: Scenario, folder: Path) -> None:
        """Write the script of the what-if page and what its form is made of. Raises InputError with what stopped it."""
        self._done(WHATIF, "k3lib.report.whatif.start", folder, scenario.model_dump(mode="json"))

    def stop(self) -> None:
        """End what runs: its results are not wanted any more."""
        with self._lock:
            self._stopped = True
            for server in self._servers:
                server.terminate()

    def _run(self, job: Job) -> tuple[Any, list[str]]:
        """The executed notebook, and the facts that it read, as paths in the folder of data."""
        target = self.work / f"{job.name}.ipynb"
        read = self._done(job.path.name, str(job.path), target, job.parameters)
        return nbs.settle(nbs.read(target), job.parameters), read

    def _done(self, name: str, source: str, target: Path, parameters: dict[str, Any]) -> list[str]:
        """The facts that a task read, once it is done. Raises InputError with what stopped it."""
        answer = self.work / f"{name}.answer"
        with self._server() as server:
            if server.stdin is None or server.stdout is None:  # they are pipes
                raise AssertionError
            try:
                server.stdin.write(Task(source, str(target), str(answer), parameters).as_line())
                server.stdin.flush()
                code = server.stdout.readline().strip()
            except BrokenPipeError:
                code = ""
        if self._stopped:  # what it says now is of no use to anybody
            raise InputError("stopped, because another notebook failed")
        try:
            said = json.loads(answer.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            printed = self._errors.read_text(encoding="utf-8", errors="replace") if self._errors.is_file() else ""
            said = {"error": f"{name}: its process died, with code {code or server.poll()}", "trace": printed}
        if "reads" in said:
            return list(said["reads"])
        message = said["error"] if source.endswith(NOTEBOOK) else f"{name}: {said['error']}"
        write_log(self.log, f"{message}\n\n{said['trace']}\n")
        raise InputError(f"{message} (the whole trace: {shown(self.log)})" if said["trace"] else message)

    @property
    def _errors(self) -> Path:
        return self.work / "errors.txt"

    @contextmanager
    def _server(self) -> Iterator[subprocess.Popen[str]]:
        """A process that runs tasks: one that waits, else a new one."""
        with self._lock:
            if self._stopped:
                raise InputError("stopped, because another notebook failed")
            server = self._idle.pop() if self._idle else self._started()
        try:
            yield server
        finally:
            with self._lock:
                self._idle.append(server)

    def _started(self) -> subprocess.Popen[str]:
        more = {PRICES_FILE: str(self.price_file)} if self.price_file else {}
        with self._errors.open("a", encoding="utf-8") as errors:
            server = subprocess.Popen([sys.executable, "-m", "k3lib.report.serve"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=errors, text=True,
                                      env={**environment(), **more}, cwd=self.work)  # fmt: skip
        self._servers.append(server)
        return server

    def __enter__(self) -> Runner:
        """Servers start when they are needed."""
        return self

    def __exit__(self, *_: object) -> None:
        """Servers end when there is nothing more to run."""
        for server in self._servers:
            server.terminate()
            server.communicate()


def _kept(name: str) -> Any | None:
    """The notebook of an earlier run from the same inputs, or None."""
    read = kept.find(name)
    found = kept.find(_of_facts(name, read)) if isinstance(read, list) else None
    return found if nbs.is_sound(found) else None


def _of_facts(name: str, read: Sequence[str]) -> str:
    """A name for a run that read these facts as they are now."""
    files = [DATA / one for one in read if isinstance(one, str)]
    return kept.digest([path for path in files if path.is_file()], name, len(files))


def made_from(notebook: Path) -> str:
    """A fingerprint of all that a notebook's results may come from: itself, every fact, and the library."""
    library = [p for p in sorted((ROOT / "k3lib").rglob("*.py")) if "report" not in p.parts]
    return kept.digest([notebook, *sorted(p for p in DATA.rglob("*") if p.is_file()), *_own(), *library])


def _own() -> list[Path]:
    """The reader's own measurements, where there are any."""
    return [p for p in (folder_of_own() / name for name in (RUNS, CONSTANTS)) if p.is_file()]


def environment() -> dict[str, str]:
    """Environment of the processes that a build starts: the project's own kernel, no display, stable hashes."""
    return {
        **os.environ,
        "JUPYTER_PREFER_ENV_PATH": "1",
        "JUPYTER_PLATFORM_DIRS": "1",
        "MPLBACKEND": "agg",
        "PYTHONHASHSEED": "0",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTHONUTF8": "1",
        "NO_COLOR": "1",
    }


def write_log(path: Path, text: str) -> None:
    """Keep what a build printed."""
    path.write_text(text, encoding="utf-8")
