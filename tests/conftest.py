"""What several tests share: a built book, run once, and a browser."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from playwright.sync_api import Browser, sync_playwright

from k3lib import results as res
from k3lib.cli import main
from k3lib.facts.paths import DATA, ROOT
from k3lib.report.run import Job, Runner

# The same examples in every run: a check that passes here passes everywhere.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None)
hypothesis.settings.load_profile("fixed")

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def k3(*arguments: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it."""
    return subprocess.run(
        [sys.executable, "-m", "k3lib", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
        env={**os.environ, **(env or {})},
    )


def k3_here(capsys: pytest.CaptureFixture[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in this process: without the seconds that a process of its own takes to start."""
    capsys.readouterr()
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    return subprocess.CompletedProcess(["k3", *arguments], code, out, err)


# Loaded by every Python process of a build: a connection that leaves this machine is an error.
NO_NETWORK = """
import socket
real = socket.socket.connect
def connect(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"the build asked the network for {address}")
    return real(self, address)
socket.socket.connect = connect
def getaddrinfo(host, *rest, real=socket.getaddrinfo, **named):
    if host not in (None, "", "127.0.0.1", "::1", "localhost"):
        raise OSError(f"the build asked the network for {host}")
    return real(host, *rest, **named)
socket.getaddrinfo = getaddrinfo
"""


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """Exit code 2, exactly one line on stderr, which holds every word."""
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0], (word, lines[0])


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that is filled once for all processes of a test run."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            make(folder)
            (folder / "done").touch()
    return folder


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the book as `k3 build` publishes it, and the results; built once, written to by no test."""

    def build(folder: Path) -> None:
        guard = folder / "guard"
        guard.mkdir(exist_ok=True)  # a build that failed is tried again, so that each test shows why
        (guard / "sitecustomize.py").write_text(NO_NETWORK, encoding="utf-8")
        done = k3("build", "--out", str(folder / "published"), env={"PYTHONPATH": str(guard)})
        assert done.returncode == 0, done.stderr

    return once(tmp_path_factory, "book", build) / "published"


def run_notebook(name: str, folder: Path, **parameters: object) -> Any:
    """A notebook as a build executes it, under these parameters."""
    with Runner(folder, folder / "build.log") as runner:
        return runner.notebook(Job(ROOT / "notebooks" / f"{name}.ipynb", parameters))


def results_of(name: str, folder: Path, **parameters: object) -> dict[str, res.Result]:
    """Results of one notebook under these parameters."""
    return {r.key: r for r in res.collect(name, run_notebook(name, folder, **parameters))}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The real browser. Its absence is a failure, never a skip."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "no Chromium on this machine: run 'make test' as root, or install it"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield opened
        opened.close()


def changed_data(tmp_path: Path, table: str, old: str, new: str) -> Path:
    """A copy of the data folder with one text changed in one table."""
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    text = (folder / table).read_text(encoding="utf-8")
    assert old in text
    (folder / table).write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


def shown(verb: str, text: str) -> list[list[str]]:
    """Every command of a verb that a text shows, as its arguments."""
    lines = re.findall(rf"^\s*(?:\.venv/bin/)?k3 ({verb} .*?)(?:  .*)?$", text, flags=re.MULTILINE)
    return [shlex.split(line) for line in lines]


def pages(out: Path) -> list[Path]:
    """Every page of a published book."""
    return sorted(p for p in (out / "html").rglob("*.html") if "_static" not in p.parts)
