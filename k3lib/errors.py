"""The one error that a user of the project should ever meet, and the exit codes of the command `k3`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

EXIT_DONE = 0
EXIT_NO = 1
EXIT_BAD_INPUT = 2
LONGEST = 1_000  # characters of a message; whoever sent more than that knows what was sent
NAMES_SHOWN = 15


class InputError(ValueError):
    """Input that cannot be used. The message is one line: where (file, row or parameter), what, and the remedy."""

    def __init__(self, message: str) -> None:
        line = " ".join(message.split())
        super().__init__(line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}")


class NoSpeedError(InputError):
    """The speed of something cannot be told, while the rest of it can."""


class NoPriceError(InputError):
    """Nobody published a price of something."""


def near(name: str, known: Iterable[str]) -> str:
    """A remedy for an unknown name: the nearest known one, or the list of them all.

    Returns a phrase that ends a sentence, e.g. "Did you mean 'cards'?".
    """
    names = sorted(known)
    folded = {n.lower(): n for n in names}
    match = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    if match:
        return f"Did you mean '{folded[match[0]]}'?"
    if not names:
        return "None is known."
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"Known: {', '.join(names[:NAMES_SHOWN])}{more}."
