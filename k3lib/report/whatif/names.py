"""Names of the page's files, and limits that its form and its facts share."""

from __future__ import annotations

SCRIPT = "k3-whatif-model.js"
PAGE = "whatif.json"
MOST_NICS = 16  # network cards of a node that the page offers
