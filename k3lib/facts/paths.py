"""Where the facts stand."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
MODELS = DATA / "models"
SCENARIOS = DATA / "scenarios"


def shown(path: Path) -> str:
    """A path as a message shows it: relative to the project where it lies inside, its last two parts elsewhere."""
    try:
        return str(path.resolve().relative_to(ROOT))
    except ValueError:
        return str(Path(*path.parts[-2:]))
