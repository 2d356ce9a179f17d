"""Bring the notebooks into the form they are committed in: no outputs, no counts, steady ids, sorted keys."""

from k3lib.facts.paths import ROOT
from k3lib.report import notebooks


def main() -> None:
    """Rewrite every notebook that is not in that form."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebooks.write(notebooks.normalised(notebooks.read(path)), path)


if __name__ == "__main__":
    main()
