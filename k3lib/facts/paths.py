"""Where the facts stand."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
MODELS = DATA / "models"
SCENARIOS = DATA / "scenarios"
BUILD = ROOT / "_build"
# The reader's own measurements, beside those of the project and never in its repository.
OWN = ROOT / "own"


def shown(path: Path) -> str:
    """A path as a message shows it: relative to the project where it lies inside, its last two parts elsewhere."""
    try:
        return str(path.resolve().relative_to(ROOT))
    except ValueError:
        return str(Path(*path.parts[-2:]))
