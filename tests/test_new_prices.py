"""Every way to give a new price, from the reader's hand to the changed page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import k3

from k3lib import kept
from k3lib import results as res
from k3lib.facts.paths import DATA, ROOT
from k3lib.report import notebooks as nbs

PAGE, CAPEX, SERVERS = "what-it-costs-to-own", "cost.h20x32.capex_cny", "cost.h20x32.line.servers"
OLD, NEW, COUNT = 1_200_000, 1_500_000, 4
ROW = f"server8.h20-96,950000,{OLD},"


def on_page(html: Path, key: str) -> str:
    """What a page shows of a result."""
    text = (html / "nb" / f"{PAGE}.html").read_text(encoding="utf-8")
    (found, *_) = re.findall(rf'data-key="{re.escape(key)}"[^>]*>([^<]*)<', text)
    return found


def holds(out: Path, base: Path, name: str, rate: float = 1.0) -> None:
    """The new price has reached results, page, and the page of what changed. rate: yuan for a dollar over ours."""
    found, before = (json.loads((one / "results.json").read_text(encoding="utf-8")) for one in (out, base))
    assert found[SERVERS]["value"] == NEW * COUNT and before[SERVERS]["value"] == OLD * COUNT
    assert found[CAPEX]["value"] > before[CAPEX]["value"] + (NEW - OLD) * COUNT  # shares of the goods follow
    assert on_page(out / "html", SERVERS) == f"{NEW * COUNT / 1000:,.0f}"
    assert on_page(out / "html", CAPEX) != on_page(base / "html", CAPEX)
    assert name in (out / "html" / "what-changed.html").read_text(encoding="utf-8")
    assert found["price.fx.cny_per_usd"]["value"] == pytest.approx(before["price.fx.cny_per_usd"]["value"] * rate)


def test_a_price_by_its_parameter(book: Path, tmp_path: Path) -> None:
    prices = ("-p", f"h20_server_price_cny={NEW:.1e}", "-p", "cny_per_usd=6.9")
    done = k3("build", "--no-pdf", *prices, "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    holds(tmp_path / "out", book, "h20_server_price_cny", 6.9 / 6.7)


def test_a_file_of_prices(book: Path, tmp_path: Path) -> None:
    (header, *_), mine = (DATA / "prices.csv").read_text(encoding="utf-8").splitlines(), tmp_path / "mine.csv"
    mine.write_text(
        f"{header}\nserver8.h20-96,1400000,{NEW},1600000,CNY/server,CNY,cn,2026-11,street,assumed,own_price,q\n"
    )
    done = k3("build", "--no-pdf", "--prices", str(mine), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    holds(tmp_path / "out", book, "mine.csv")


def test_an_edited_row(book: Path, tmp_path: Path) -> None:
    """In a copy of the project, whose own base scenario then has the price."""
    copy = tmp_path / "copy"
    for name in ("k3lib", "notebooks", "book", "data", "locale"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "_config.yml", copy)
    table = copy / "data" / "prices.csv"
    text = table.read_text(encoding="utf-8")
    assert text.count(ROW) == 1
    table.write_text(text.replace(ROW, ROW.replace(f"{OLD}", f"{NEW}")), encoding="utf-8")
    done = k3("build", "--no-pdf", "--out", str(tmp_path / "out"), cwd=copy,
              env={"PYTHONPATH": str(copy), kept.FOLDER: str(kept.folder())})  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert found[SERVERS]["value"] == NEW * COUNT
    assert on_page(tmp_path / "out" / "html", SERVERS) == f"{NEW * COUNT / 1000:,.0f}"
    assert on_page(tmp_path / "out" / "html", CAPEX) != on_page(book / "html", CAPEX)


def test_the_notebook_of_costs_alone(book: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.ipynb"
    done = subprocess.run(
        [sys.executable, "-m", "papermill", str(ROOT / "notebooks" / f"{PAGE}.ipynb"), str(out), "-p", "prices",
         f"h20_server_price_cny:{NEW}"], capture_output=True, text=True, cwd=tmp_path, check=False,
        env={**os.environ, "JUPYTER_PREFER_ENV_PATH": "1", "MPLBACKEND": "agg"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    notebook = nbs.read(out)
    assert res.together(res.collect(PAGE, notebook))[SERVERS].value == NEW * COUNT
    shown = [
        o["data"]["text/html"]
        for c in notebook["cells"]
        for o in c.get("outputs", ())
        if "text/html" in o.get("data", {})
    ]
    assert any(f"{NEW * COUNT / 1000:,.0f}" in "".join(text) for text in shown)
