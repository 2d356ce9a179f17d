"""A notebook's cells, run in this process; what they show comes back as a notebook stores it."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_output
from traitlets import Type
from traitlets.config import Config


class _Hook(DisplayHook):
    """Keeps the value of a cell's last line."""

    def write_output_prompt(self) -> None:
        """No prompt: the notebook has its own."""

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        """Keep it in every form that it has."""
        shell: Any = self.shell
        shell.shown.append(new_output("execute_result", format_dict, metadata=md_dict or {},
                                      execution_count=shell.execution_count))  # fmt: skip

    def finish_displayhook(self) -> None:
        """No empty line after it."""
        self._is_active = False


class _Publisher(DisplayPublisher):
    """Keeps what is displayed."""

    def publish(self, data: Any, metadata: Any = None, *_: Any, **__: Any) -> None:
        """Keep it in every form that it has."""
        self.shell.shown.append(new_output("display_data", data, metadata=metadata or {}))

    def clear_output(self, wait: bool = False) -> None:
        """Forget what this cell has shown so far."""
        self.shell.shown.clear()


class _Stream(io.TextIOBase):
    """Keeps what is printed, one output for text that follows on text."""

    def __init__(self, name: str, shown: list[Any]) -> None:
        super().__init__()
        self._name, self._shown = name, shown

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Keep a text."""
        last = self._shown[-1] if self._shown else {}
        if last.get("name") == self._name:
            last["text"] += text
        elif text:
            self._shown.append(new_output("stream", name=self._name, text=text))
        return len(text)


class Shell(InteractiveShell):
    """IPython without a terminal, a history or files of its user. shown: the outputs of the cell that runs."""

    displayhook_class = Type(_Hook)
    display_pub_class = Type(_Publisher)

    def __init__(self, folder: Path) -> None:
        settings = Config()
        settings.HistoryManager.enabled = False
        settings.HistoryManager.hist_file = ":memory:"
        self.shown: list[Any] = []
        super().__init__(ipython_dir=str(folder), config=settings)

    def run(self, source: str) -> list[Any]:
        """The outputs of a cell; the last one is of the type 'error' where it fails."""
        self.shown = []
        with redirect_stdout(_Stream("stdout", self.shown)), redirect_stderr(_Stream("stderr", self.shown)):
            done = self.run_cell(source, store_history=True)
        if not done.success and not any(one["output_type"] == "error" for one in self.shown):
            self.shown.append(new_output("error", ename="Error", evalue="the cell did not run", traceback=[]))
        return self.shown

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        self.shown.append(new_output("error", ename=etype.__name__, evalue=str(evalue), traceback=list(stb)))
