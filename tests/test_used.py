"""What a kept run of a notebook depends on: the library's modules that its code can reach, and no others."""

import subprocess
import sys

import pytest

from k3lib.facts.paths import ROOT
from k3lib.report import notebooks as nbs
from k3lib.report.used import RUNNERS, modules_of

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def names(sources):
    return {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for p in modules_of(sources)}


def test_imports_are_followed_into_modules_and_out_of_functions():
    found = names(["from k3lib.report import show"])
    assert {"k3lib", "k3lib.report", "k3lib.report.show", "k3lib.report.trail", "k3lib.units", *RUNNERS} <= found
    assert "k3lib.cost.own" not in found
    assert "k3lib.report.sphinx_ext" not in found


def test_code_that_cannot_be_read_uses_what_runs_it():
    assert names(["def broken(:"]) == names([])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_no_notebook_depends_on_how_pages_are_made(path):
    found = names(nbs.code_of(path))
    assert not found & {"k3lib.report.build", "k3lib.report.sphinx_ext", "k3lib.report.editions", "k3lib.cli"}


@pytest.mark.parametrize("name", ["what-a-token-costs", "side-by-side", "what-it-costs-to-own"])
def test_what_python_loads_for_a_notebook_is_what_its_text_says(name):
    lines = "\n".join(nbs.code_of(ROOT / "notebooks" / f"{name}.ipynb")).splitlines()
    imports = "\n".join(line for line in lines if line.startswith(("from k3lib", "import k3lib")) and "(" not in line)
    code = f"{imports}\nimport sys\nprint(*(m for m in sys.modules if m.split('.')[0] == 'k3lib'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(done.stdout.split()) <= names([imports])
