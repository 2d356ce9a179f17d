"""The modules of the library that a notebook's code can reach: what a kept run of it depends on."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from k3lib.facts.paths import ROOT

PACKAGE = "k3lib"
# What runs a notebook, whatever it imports.
RUNNERS = ("k3lib.report.serve", "k3lib.report.shell", "k3lib.report.execute", "k3lib.results")


def modules_of(sources: Iterable[str]) -> list[Path]:
    """The files of the library that these pieces of code import, and what those import in turn, sorted."""
    waiting = {name for source in sources for name in _imported(source, "")} | set(RUNNERS)
    found: set[Path] = set()
    while waiting:
        for path in _files(waiting.pop()):
            if path not in found:
                found.add(path)
                waiting |= _imports_of(path, path.stat().st_mtime_ns)
    return sorted(found)


@lru_cache(maxsize=2048)
def _imports_of(path: Path, changed_ns: int) -> frozenset[str]:
    package = ".".join(path.relative_to(ROOT).parent.parts)
    return frozenset(_imported(path.read_text(encoding="utf-8"), package))


def _imported(source: str, package: str) -> set[str]:
    """Names of the library that some code imports, anywhere in it: modules, and what may be one.

    package: the one that the code belongs to.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:  # it will not run either, and then says why
        return set()
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [node.module])])
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return {name for name in names if name.split(".")[0] == PACKAGE}


def _files(name: str) -> list[Path]:
    """The file of a module and those of the packages around it; only these for a name that is no module."""
    parts = name.split(".")
    places = [ROOT.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    found = [place / "__init__.py" for place in places] + [place.with_suffix(".py") for place in places]
    return [path for path in found if path.is_file()]
