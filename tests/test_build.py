"""The main job: what it publishes, what stops it, and that nothing that stops it loses the last good book."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from conftest import k3, refused
from tqdm import tqdm

from k3lib import kept
from k3lib import results as res
from k3lib.errors import InputError
from k3lib.facts.paths import ROOT
from k3lib.facts.scenario import load_scenario
from k3lib.report import build as job
from k3lib.report import notebooks as nbs
from k3lib.report import publish, run
from k3lib.report.run import Runner

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
KEYS = {
    "k3.weights.bytes": 1_560_860_324_864,
    "k3.weights.tensors": 497_220,
    "k3.params.total": 2_779_931_837_184,
    "k3.params.routed": 2_722_740_830_208,
    "k3.params.active": 104_189_614_848,
    "k3.weights.routed_bytes": 1_446_456_066_048,
    "k3.weights.scale_bytes": 85_085_650_944,
    "k3.weights.expert_bytes": 17_547_264,
    "k3.weights.difference_bytes": 0,
    "reference.largest_difference_bytes": 0,
    "article.fp16.bytes": 5_600_000_000_000,
    "article.fp8.bytes": 2_800_000_000_000,
    "article.int4.bytes": 1_400_000_000_000,
    "article.mxfp4.bytes": 1_487_500_000_000,
    "article.naive.routed_params": 5_445_481_660_416,
    "k3.kv.bytes_per_token": 27_648,
    "k3.state.bytes_per_sequence": 449_372_160,
    "plan.main.fits": True,
    "plan.main.block_tokens": 768,
    "plan.h20x16-tp16ep16.fits": False,
    "plan.h100x32-tp32.fits": False,
    "plan.h200x8-tp8.fits": False,
    "plan.h20x32-tp32ep32.fits": True,
    "cluster.memory_nominal": 3_072_000_000_000,
    "cluster.memory_shown": 32 * 97_871 * 2**20,
}


def prints(folder: Path) -> dict[str, str]:
    """A fingerprint of every published file."""
    found = {}
    for name in ("html", "pdf", "downloads", "executed", "results.json", "results.csv"):
        path = folder / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                found[str(file.relative_to(folder))] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def test_the_results_that_others_rely_on(book: Path) -> None:
    results = json.loads((book / "results.json").read_text(encoding="utf-8"))
    for key, value in KEYS.items():
        assert results[key]["value"] == value, key
    for name in ("deepseek-v3", "kimi-k2-instruct", "kimi-k2.5", "kimi-linear-48b", "gpt-oss-120b", "qwen3-next-80b"):
        assert (
            results[f"model.{name}.weights.bytes"]["value"] == results[f"model.{name}.weights.published_bytes"]["value"]
        )
    for name in ("main", "h20x32-tp32ep32"):
        for part in ("weights_gib_per_card", "kv_tokens", "state_slots", "max_concurrency"):
            assert f"plan.{name}.{part}" in results
    record = {"value", "unit", "grade", "low", "high", "equation", "inputs", "sources", "notebook"}
    for key, result in results.items():
        assert set(result) == record, key
        assert result["notebook"] in {p.stem for p in NOTEBOOKS} or key.startswith("scenario."), key


def test_what_is_published(book: Path) -> None:
    assert {p.name for p in book.iterdir() if not p.name.startswith(".")} == {
        "html", "pdf", "downloads", "executed", "results.json", "results.csv", "build.log", "untranslated.json",
    }  # fmt: skip
    assert not list(book.glob(f"{publish.STAGING_PREFIX}*"))
    for path in NOTEBOOKS:
        assert (book / "downloads" / "notebooks" / path.name).is_file()


def test_no_path_of_this_machine_is_published(book: Path) -> None:
    for file in book.rglob("*"):
        if file.is_file() and file.suffix in (".html", ".json", ".csv", ".ipynb", ".js", ".svg", ".css"):
            text = file.read_text(encoding="utf-8")
            assert str(ROOT) not in text, file
            assert str(book) not in text, file
            assert publish.STAGING_PREFIX not in text, file


def test_the_same_inputs_give_the_same_bytes(book: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "mit Leerzeichen 书"
    done = k3(
        "build", "--fresh", "--out", str(other), env={"TZ": "Asia/Shanghai", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == (other / "html" / "index.html").as_uri()
    assert prints(other) == prints(book)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one notebook that takes no time, with its kept runs in a folder of their own."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    notebook = nbs.read(ROOT / "notebooks" / "what-a-token-costs.ipynb")
    notebook["cells"] = [c for c in notebook["cells"] if "parameters" in c["metadata"].get("tags", ())]
    reads = {**notebook["cells"][0], "id": "reads", "metadata": {}}
    reads["source"] = "from k3lib.facts.named import loads\nloads()"
    notebook["cells"].append(reads)
    nbs.write(notebook, folder / "what-a-token-costs.ipynb")
    monkeypatch.setattr(job, "NOTEBOOKS", folder)
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "kept"))
    return folder / "what-a-token-costs.ipynb"


def executed(*, fresh: bool = False, **parameters: object) -> tuple[dict[str, object], int]:
    """The executed notebooks of the small project by name, and how many of them were run for it."""
    runs: list[str] = []
    jobs = job.plan(load_scenario("base", parameters))
    with tempfile.TemporaryDirectory() as stage, pytest.MonkeyPatch.context() as patch:
        real = Runner._run
        patch.setattr(Runner, "_run", lambda runner, one: runs.append(one.name) or real(runner, one))
        found = job._executed(jobs, jobs, Path(stage), Path(stage), tqdm(disable=True), fresh, None)
    return found, len(runs)


def test_a_notebook_runs_again_when_anything_that_it_reads_has_changed(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, runs = executed()
    assert runs == 1
    assert executed() == (first, 0)
    assert executed(fresh=True) == (first, 1)
    assert executed(cards=64)[1] == ("cards" in nbs.parameters_of(first["what-a-token-costs"]))
    notebook = nbs.read(small)
    notebook["cells"][0]["source"] += "\n# a word"
    nbs.write(notebook, small)
    assert executed()[1] == 1
    data = tmp_path / "data"
    shutil.copytree(ROOT / "data", data)
    monkeypatch.setattr(run, "DATA", data)
    assert executed()[1] == 0
    with (data / "sources.csv").open("a", encoding="utf-8") as table:  # a table that it does not read
        table.write("one_more,A source,somewhere,page,2026,\n")
    assert executed()[1] == 0
    with (data / "loads.csv").open("a", encoding="utf-8") as table:
        table.write("one-more,one more,1,1,\n")
    assert executed()[1] == 1


@pytest.mark.parametrize("content", [b"", b"\xff{", b'{"cells": [{}]}', b"[1]"])
def test_a_kept_run_that_cannot_be_read_is_run_again(small: Path, content: bytes) -> None:
    first, _ = executed()
    for path in kept.folder().glob("*.json"):
        path.write_bytes(content)
    assert executed() == (first, 1)
    assert executed() == (first, 0)


def test_runs_that_were_not_asked_for_longest_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_FILES", 2)
    monkeypatch.setenv(kept.FOLDER, str(tmp_path))
    for at, name in ((2, "a"), (1, "b")):
        kept.keep(name, [name])
        os.utime(tmp_path / f"{name}.json", (at, at))
    assert kept.find("b") == ["b"]
    kept.keep("d", ["d"])
    assert {path.stem for path in tmp_path.iterdir()} == {"b", "d"}


def test_a_changed_parameter_changes_the_page(book: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(book, out)
    done = k3("build", "--no-pdf", "--out", str(out), "-p", "cards=64")
    assert done.returncode == 0, done.stderr
    assert "64\u00a0cards" in (out / "html" / "index.html").read_text(encoding="utf-8")
    before, after = (json.loads((f / "results.json").read_text()) for f in (book, out))
    assert after["cluster.memory_shown"]["value"] == 2 * before["cluster.memory_shown"]["value"]
    assert after["k3.weights.bytes"] == before["k3.weights.bytes"]


BAD_CALLS = [
    (["-p", "cards=-1"], ["cards", "greater than or equal to 1"]),
    (["-p", "cards=nan"], ["cards"]),
    (["-p", "cards=lots"], ["cards"]),
    (["-p", "cards"], ["write it as name=value"]),
    (["-p", "cards=40"], ["not a multiple", ".ipynb"]),
    (["-p", "layout=tp3"], ["does not divide vocabulary"]),
    (["-p", "crads=32"], ["Did you mean 'cards'?"]),
    (["-p", "cards=1", "-p", "cards=2"], ["given twice"]),
    (["-p", "cards=32", "-p", " cards=64"], ["given twice"]),
    (["--scenario", "bose"], ["Did you mean 'base'?"]),
    (["--scenario", "missing.yaml"], ["no such file"]),
    (["--only", "how-large-is-k2"], ["Did you mean 'how-large-is-k3'?"]),
    (["--only", "how-large-is-k3", "-p", "reference_models=deepseek-v3"], ["last ran with", "without --only"]),
    (["-p", "reference_models=kimi-k3.1-pro"], ["has a published total"]),
    (["-p", "device=h20-69"], ["Did you mean 'h20-96'?"]),
    (["-p", "reference_models=deepseek-v4"], ["Did you mean 'deepseek-v3'?"]),
]


@pytest.fixture(scope="session")
def victim(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("victim") / "out"
    shutil.copytree(book, out)
    return out


@pytest.mark.parametrize(("arguments", "words"), BAD_CALLS)
def test_bad_input_stops_with_one_line_and_keeps_the_book(arguments: list[str], words: list[str], victim: Path) -> None:
    before = prints(victim)
    refused(k3("build", "--out", str(victim), *arguments), *words)
    assert prints(victim) == before
    assert not list(victim.glob(f"{publish.STAGING_PREFIX}*"))


def test_a_folder_that_is_not_ours_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "theirs.html").write_text("theirs")
    refused(k3("build", "--out", str(tmp_path)), "holds 'html'", "Choose an empty folder")
    assert [p.name for p in tmp_path.rglob("*")] == ["html", "theirs.html"]
    file = tmp_path / "file"
    file.write_text("x")
    refused(k3("build", "--out", str(file)), "cannot be written")


FAULTS = """# Faults

{val}`k3.weights.byte` and {val}`k3.weights.bytes in tokens` and {val}`k3.weights.bytes in Gib`
and {val}`k3.weights.bytes:zz` and [nowhere](nowhere.md) and {cite:p}`nobody1999`.
"""


@pytest.mark.parametrize("name", ["downloads", "results.csv", "executed"])
def test_nothing_of_the_users_is_replaced(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.txt").write_text("mine")
    refused(k3("build", "--out", str(tmp_path)), f"holds '{name}'")
    assert (tmp_path / name / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("place", ["book", "data/x", "notebooks", "k3lib", "."])
def test_a_book_is_not_published_among_the_sources(place: str) -> None:
    refused(k3("build", "--out", str(ROOT / place)), "among the project's own files")


def test_a_book_is_not_published_inside_another(book: Path) -> None:
    refused(k3("build", "--out", str(book / "html" / "more")), "inside a published book")


def test_only_refuses_results_of_other_data(victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    shutil.copytree(ROOT / "data", data)
    with (data / "sources.csv").open("a", encoding="utf-8") as table:
        table.write("one_more,A source,somewhere,page,2026,\n")
    monkeypatch.setattr(run, "DATA", data)
    with pytest.raises(InputError, match="changed since it last ran"):
        job.build(out=victim, only=["does-the-account-close"])


def test_a_plan_that_is_too_small_is_called_so(book: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(book, out)
    done = k3("build", "--no-pdf", "--out", str(out), "-p", "cards=8", "-p", "layout=tp8")
    assert done.returncode == 0, done.stderr
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert results["cluster.weights_fit"]["value"] is False
    assert results["plan.main.fits"]["value"] is False
    assert results["plan.main.kv_tokens"]["value"] == 0
    text = (out / "html" / "index.html").read_text(encoding="utf-8")
    assert 'data-key="cluster.weights_fit" href="numbers/cluster.html#n-cluster-weights_fit">No</a>' in text


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}']
)
def test_a_file_that_is_no_notebook_is_named(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (folder / "how-large-is-k3.ipynb").write_text(content)
    monkeypatch.setattr(job, "NOTEBOOKS", folder)
    with pytest.raises(InputError, match=r"how-large-is-k3\.ipynb"):
        job.build(out=tmp_path / "out")


def test_a_notebook_without_a_place_in_the_book_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    shutil.copy(NOTEBOOKS[0], folder / "another.ipynb")
    monkeypatch.setattr(job, "NOTEBOOKS", folder)
    with pytest.raises(InputError, match=r"Add '- file: nb/another' to book/_toc\.yml"):
        job.build(out=tmp_path / "out")


def test_what_nobody_foresaw_is_one_line_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    from k3lib import cli

    pages = tmp_path / "book"
    shutil.copytree(ROOT / "book", pages)
    (pages / "nb").mkdir()
    monkeypatch.setattr(job, "BOOK", pages)
    monkeypatch.setattr(job, "plan", lambda scenario: [])
    monkeypatch.delenv("K3_TRACE", raising=False)
    assert cli.main(["build", "--out", str(tmp_path / "out")]) == 2
    errors = capsys.readouterr().err.strip().splitlines()
    assert errors[-1].startswith("k3 build: not foreseen: FileExistsError")
    monkeypatch.setenv("K3_TRACE", "1")
    with pytest.raises(FileExistsError):
        cli.main(["build", "--out", str(tmp_path / "out")])


def test_a_faulty_page_fails_the_build_and_keeps_the_book(
    victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = tmp_path / "book"
    shutil.copytree(ROOT / "book", pages)
    (pages / "notation.md").write_text(FAULTS, encoding="utf-8")
    monkeypatch.setattr(job, "BOOK", pages)
    before = prints(victim)
    with pytest.raises(InputError, match="the book was not built"):
        job.build(out=victim, only=["how-large-is-k3"])
    log = (victim / job.LOG).read_text(encoding="utf-8")
    for word in ("Did you mean 'k3.weights.bytes'?", "cannot be shown in 'tokens'", "Did you mean 'GiB'?",
                 "format 'zz' does not fit", "nowhere.md", "nobody1999"):  # fmt: skip
        assert word in log, word
    assert prints(victim) == before


def test_a_notebook_that_fails_is_named_with_its_cell(
    victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "notebooks"
    shutil.copytree(ROOT / "notebooks", folder)
    path = folder / "how-large-is-k3.ipynb"
    notebook = nbs.read(path)
    notebook["cells"][4]["cell_type"] = "code"
    notebook["cells"][4] |= {"source": "1 / 0", "outputs": [], "execution_count": None}
    nbs.write(notebook, path)
    monkeypatch.setattr(job, "NOTEBOOKS", folder)
    before = prints(victim)
    with pytest.raises(InputError, match=r"how-large-is-k3\.ipynb, cell \d+: ZeroDivisionError"):
        job.build(out=victim, only=["how-large-is-k3"])
    assert "ZeroDivisionError" in (victim / job.LOG).read_text(encoding="utf-8")
    assert prints(victim) == before


def test_a_fault_stops_the_notebooks_that_still_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for name, line in (("what-a-token-costs", "import time; time.sleep(300)"), ("how-large-is-k3", "1 / 0")):
        notebook = nbs.read(ROOT / "notebooks" / f"{name}.ipynb")
        notebook["cells"] = [c for c in notebook["cells"] if "parameters" in c["metadata"].get("tags", ())]
        notebook["cells"][0]["source"] += f"\n{line}"
        nbs.write(notebook, folder / f"{name}.ipynb")
    monkeypatch.setattr(job, "NOTEBOOKS", folder)
    started = time.monotonic()
    with pytest.raises(InputError, match="ZeroDivisionError"):
        job.build(out=tmp_path / "out")
    assert time.monotonic() - started < 60


def test_a_process_that_dies_is_named(victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "notebooks"
    shutil.copytree(ROOT / "notebooks", folder)
    path = folder / "what-a-token-costs.ipynb"
    notebook = nbs.read(path)
    notebook["cells"][2]["source"] = "import os\nos._exit(9)"
    nbs.write(notebook, path)
    monkeypatch.setattr(job, "NOTEBOOKS", folder)
    before = prints(victim)
    with pytest.raises(InputError, match=r"what-a-token-costs\.ipynb: its process died, with code 9"):
        job.build(out=victim, only=["what-a-token-costs"])
    assert prints(victim) == before


@pytest.mark.parametrize("seconds", [1.0, 4.0, 8.0])
def test_a_killed_build_leaves_the_last_book_and_the_next_one_works(seconds: float, victim: Path) -> None:
    before = prints(victim)
    running = subprocess.Popen(
        [sys.executable, "-m", "k3lib", "build", "--no-pdf", "--out", str(victim), "-p", "cards=64"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(victim.glob(f"{publish.STAGING_PREFIX}*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(seconds)
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    now = prints(victim)
    assert now == before or json.loads((victim / "results.json").read_text())["cluster.cards"]["value"] == 64
    assert k3("build", "--out", str(victim)).returncode == 0
    assert prints(victim) == before
    assert not list(victim.glob(f"{publish.STAGING_PREFIX}*"))


def test_two_builds_at_once_do_not_mix(tmp_path: Path) -> None:
    running = [
        subprocess.Popen([sys.executable, "-m", "k3lib", "build", "--no-pdf", "--out", str(tmp_path),
                          "-p", f"cards={cards}"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for cards in (64, 96)
    ]  # fmt: skip
    for process in running:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    cards = json.loads((tmp_path / "results.json").read_text())["cluster.cards"]["value"]
    assert cards in (64, 96)
    for page in ("index.html", "numbers/cluster.html", "nb/how-large-is-k3.html"):
        text = (tmp_path / "html" / page).read_text(encoding="utf-8")
        shown = re.findall(r'(?:data-key="cluster\.cards"[^>]*>|<code>cluster\.cards</code> <strong>)([^<]*)<', text)
        assert shown and set(shown) == {f"{cards}\u00a0cards"}, page


def test_an_exchange_in_two_renames_is_mended_by_the_next_build(tmp_path: Path) -> None:
    abandoned = tmp_path / f"{publish.STAGING_PREFIX}x"
    (abandoned / "ready" / "html.old").mkdir(parents=True)
    (abandoned / "ready" / "html.old" / "index.html").write_text("last good")
    (abandoned / publish.LOCK).touch()
    with publish.staging(tmp_path):
        assert (tmp_path / "html" / "index.html").read_text() == "last good"
    assert not abandoned.exists()


def test_plain_papermill_works_and_refuses_too(tmp_path: Path) -> None:
    def papermill(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "papermill", str(ROOT / "notebooks" / "how-large-is-k3.ipynb")]
        return subprocess.run([*command, str(tmp_path / "out.ipynb"), *arguments], capture_output=True, text=True,
                              cwd=tmp_path, check=False)  # fmt: skip

    done = papermill("-p", "cards", "16")
    assert done.returncode == 0, done.stderr
    found = res.together(res.collect("x", nbs.read(tmp_path / "out.ipynb")))
    assert found["cluster.cards"].value == 16
    done = papermill("-p", "cards", "-16")
    assert done.returncode != 0
    assert "greater than or equal to 1" in done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebooks_are_committed_in_their_normal_form(path: Path, tmp_path: Path) -> None:
    nbs.write(nbs.normalised(nbs.read(path)), tmp_path / path.name)
    assert (tmp_path / path.name).read_text(encoding="utf-8") == path.read_text(encoding="utf-8"), "run 'make tidy'"


def test_parameter_cells_hold_the_defaults_of_the_base_scenario() -> None:
    import papermill

    defaults = load_scenario().model_dump()
    for path in NOTEBOOKS:
        found = papermill.inspect_notebook(str(path))
        assert list(found) == nbs.parameter_cell_names(path), path.name  # else papermill's own command warns of one
        for name, parameter in found.items():
            assert eval(parameter["default"], {}) == defaults[name], (path.name, name)  # noqa: S307


def test_help_shows_examples_that_parse() -> None:
    from k3lib.cli import _parser

    text = k3("--help").stdout + k3("build", "--help").stdout + k3("weights", "--help").stdout
    examples = [line.split("   ")[0].strip() for line in text.splitlines() if line.startswith("  k3 ")]
    assert len(examples) >= 8
    for example in examples:
        _parser().parse_args(example.split()[1:])
