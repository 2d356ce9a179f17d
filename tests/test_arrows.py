"""Arrows run one way: no part of the library imports what comes after it."""

from __future__ import annotations

import ast
from pathlib import Path

from k3lib.facts.paths import ROOT

ORDER = ("errors", "ranges", "units", "facts", "kept", "evaluate", "account", "results", "models", "engines", "reading",
         "deploy", "calibrate", "cost", "choose", "launch", "operate", "claims", "learn", "report", "cli")  # fmt: skip


def part_of(path: Path) -> str:
    """The part that a module belongs to: its package, or the module itself; commands are one part."""
    inside = path.relative_to(ROOT / "k3lib")
    name = inside.parts[0].removesuffix(".py")
    return "cli" if name.startswith(("cli", "__main__")) else name


def imported(path: Path) -> set[str]:
    """The parts that a module imports, wherever in it the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"k3lib.{a.name}" for a in node.names] if node.module == "k3lib" else [node.module]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("k3lib.")}
    return {"cli" if name.startswith("cli") else name for name in found}


def test_no_part_imports_one_that_comes_after_it() -> None:
    modules = [p for p in (ROOT / "k3lib").rglob("*.py") if p != ROOT / "k3lib" / "__init__.py"]
    assert len(modules) > 150 and {part_of(p) for p in modules} == set(ORDER)
    against = [(str(p.relative_to(ROOT)), name) for p in modules for name in imported(p)
               if ORDER.index(name) > ORDER.index(part_of(p))]  # fmt: skip
    assert not against
