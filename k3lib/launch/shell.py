"""Commands as a shell takes them: every word quoted, one option a line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from k3lib.launch.records import Command, Shell

NEXT = " \\\n  "


def quoted(word: str) -> str:
    """A word that the shell takes as it is; what the shell fills in stands in double quotes."""
    return f'"{word}"' if isinstance(word, Shell) else shlex.quote(word)


def one_line(words: Iterable[str]) -> str:
    """A command on one line."""
    return " ".join(quoted(word) for word in words)


def script(command: Command) -> str:
    """What one node runs: variables, what comes before, the file of options, then the program."""
    lines = [f"export {o.row.name}={quoted(o.value or '')}" for o in command.env]
    lines += [one_line(words) for words in command.before]
    if command.file:
        name, text = command.file
        lines.append(f"cat > {quoted(name)} <<'END'\n{text}END")
    if command.program:
        lines.append(NEXT.join([one_line(command.program), *(one_line(o.words) for o in command.options)]))
    return "\n".join(lines)
