"""Arrows between the parts of the library run one way."""

from __future__ import annotations

import ast
from pathlib import Path

from k3lib.facts.paths import ROOT

# Parts from the ground up; those in one line may not need each other, unless they say so.
ORDER = (
    {"errors", "units"}, {"ranges"}, {"facts", "account"}, {"evaluate", "kept"}, {"results", "models"}, {"engines"},
    {"deploy", "reading"}, {"calibrate"}, {"choose", "cost"}, {"operate"}, {"report"},
    {"cli_compare", "cli_plan", "cli_read", "cli_reduce", "cli_search", "cli_speed"}, {"cli"}, {"__main__", "__init__"},
)  # fmt: skip
HEIGHT = {part: at for at, parts in enumerate(ORDER) for part in parts}
LIBRARY = ROOT / "k3lib"


def part_of(path: Path) -> str:
    """The part of the library that a file belongs to."""
    return path.relative_to(LIBRARY).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Parts of the library that a file imports anywhere, types included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "k3lib":
            names = node.module.split(".")[1:2] or [alias.name for alias in node.names]
            found |= set(names)
    return found


def test_no_part_imports_one_above_it() -> None:
    files = sorted(LIBRARY.rglob("*.py"))
    assert len(files) > 150
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in imports(path)
        if HEIGHT.get(name, -1) > HEIGHT[part_of(path)]
    ]
    assert not wrong, wrong
