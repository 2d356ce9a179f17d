"""A fresh clone with nothing installed: the README's first command makes the book. CI runs the second one itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from k3lib import kept
from k3lib.facts.paths import ROOT


def test_make_book_in_a_fresh_clone(tmp_path: Path) -> None:
    """What was computed before from the same inputs is taken from here: that depends on no place and saves minutes."""
    clone = tmp_path / "a fresh clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    environment = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("VIRTUAL_ENV", "PYTEST", "MAKE", "MFLAGS", "ARGS", "PYTHON"))
    }
    environment[kept.FOLDER] = str(kept.folder())
    done = subprocess.run(["make", "book"], cwd=clone, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    address = done.stdout.strip().splitlines()[-1]
    assert address == (clone / "_build" / "html" / "index.html").as_uri()
    assert (clone / "_build" / "html" / "index.html").is_file()
    status = subprocess.run(["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True, check=True)
    assert status.stdout == "", "the build leaves files that git does not ignore"
    again = subprocess.run(["make", "book", "ARGS=--no-pdf -p cards=64"], cwd=clone, env=environment,
                           capture_output=True, text=True, check=False)  # fmt: skip
    assert again.returncode == 0, again.stderr[-3000:]


def test_committed_files_name_no_address_in_locks_and_no_output_in_notebooks() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert "uv.lock" not in listed
    for name in listed:
        if name.endswith(".lock"):
            assert "://" not in (ROOT / name).read_text(encoding="utf-8")
