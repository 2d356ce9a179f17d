"""The main job: notebooks under a scenario, their results, the book, published in one step."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tqdm import tqdm

from k3lib import results as res
from k3lib.errors import InputError, near
from k3lib.facts import registry, version
from k3lib.facts.paths import BUILD, DATA, ROOT, shown
from k3lib.facts.prices import prices_with
from k3lib.facts.scenario import Scenario, in_words, load_scenario, parameter_names
from k3lib.facts.tables import read_text
from k3lib.report import downloads, operating, pdf, serving
from k3lib.report import notebooks as nbs
from k3lib.report.changes import Changes, compare, inputs
from k3lib.report.editions import UNTRANSLATED, write_editions
from k3lib.report.publish import publish, staging
from k3lib.report.run import ALERTS, WHATIF, WORKBOOK, Job, Runner, made_from
from k3lib.report.whatif.names import PAGE, SCRIPT

NOTEBOOKS = ROOT / "notebooks"
BOOK = ROOT / "book"
CONFIG = ROOT / "_config.yml"
PRINT = BOOK / "_print"
LOG = "build.log"


def build(
    scenario_name: str = "base",
    overrides: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    out: Path | None = None,
    fresh: bool = False,
    prices: Path | None = None,
    with_pdf: bool = True,
) -> Path:
    """Run the notebooks, collect their results, build the book with warnings as errors, publish it.

    fresh: run every notebook, also those that ran before from the same inputs. prices: a file of prices in place of the
    scenario's. with_pdf: also print the PDFs; a book whose PDFs cannot be made is published without them, with one line
    on stderr that says why.
    Prints the address of the home page last and returns its path. Raises InputError for anything that stops it;
    what was published before then stays as it was.
    """
    out = (out or ROOT / "_build").absolute()
    scenario, price_file = with_price_file(load_scenario(scenario_name, overrides), prices)
    jobs = plan(scenario)
    registry.check_all()
    with staging(out) as stage:
        chosen = _chosen(jobs, only)
        with tqdm(total=len(chosen) + 5, desc="k3 build", unit="step", file=sys.stderr, disable=None) as bar:
            executed = _executed(jobs, chosen, stage, out, bar, fresh, price_file, scenario)
            results = _collected(executed, scenario)
            _lay_out(stage, executed, results, _from_base(scenario, results))
            bar.set_postfix_str("book")
            untranslated = write_editions(stage, out, out / LOG)
            bar.update()
            bar.set_postfix_str("pdf")
            missing = _finish(stage / "ready", with_pdf, fresh)
            bar.update()
            bar.set_postfix_str("publish")
            publish(stage / "ready", out)
            bar.update()
            bar.set_postfix_str("")
    if untranslated:
        print(f"The Chinese edition has {untranslated} texts in English: {shown(out / UNTRANSLATED)}", file=sys.stderr)
    if missing:
        print(f"k3 build: {missing}", file=sys.stderr)
    index = out / "html" / "index.html"
    print(f"{len(results)} results from {len(jobs)} notebooks. Open this address in a browser; it needs no network:")
    print(index.as_uri())
    return index


def with_price_file(scenario: Scenario, prices: Path | None = None) -> tuple[Scenario, Path | None]:
    """The scenario with its file of prices by name and content, as the book names it, and where the file is.

    prices: a file in place of the scenario's. Raises InputError for a file that cannot be used.
    """
    path = prices or (Path(scenario.price_file) if scenario.price_file else None)
    if path is None:
        return scenario, None
    prices_with(path)
    name = f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()[:8]}"
    return scenario.model_copy(update={"price_file": name}), path.absolute()


def plan(scenario: Scenario) -> list[Job]:
    """Every notebook with its share of the scenario. Raises InputError for a parameter the scenario does not have."""
    values = scenario.model_dump()
    pages = set(re.findall(r"file: *(\S+)", read_text(BOOK / "_toc.yml")))
    jobs = []
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not path.is_file():
            raise InputError(f"{shown(path)}: is not a file")
        names = nbs.parameter_cell_names(path)
        for name in names:
            if name not in values:
                raise InputError(
                    f"{shown(path)}: its parameter '{name}' is in no scenario. {near(name, parameter_names())}"
                )
        if f"nb/{path.stem}" not in pages:
            raise InputError(f"{shown(path)}: has no place in the book. Add '- file: nb/{path.stem}' to book/_toc.yml.")
        jobs.append(Job(path, {name: values[name] for name in names}))
    if not jobs:
        raise InputError(f"{shown(NOTEBOOKS)}: holds no notebook")
    return jobs


def results_of(scenario: Scenario) -> dict[str, res.Result]:
    """All results of a scenario; notebooks that ran before from the same inputs are not run again."""
    scenario, price_file = with_price_file(scenario)
    jobs = plan(scenario)
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as stage, tqdm(disable=True) as bar:
        executed = _executed(jobs, jobs, Path(stage), BUILD, bar, False, price_file)
    return _collected(executed, scenario)


def _collected(executed: Mapping[str, Any], scenario: Scenario) -> dict[str, res.Result]:
    recorded = (r for name, nb in executed.items() for r in res.collect(name, nb))
    return res.together([*recorded, *_scenario(scenario)])


def _scenario(scenario: Scenario) -> list[res.Result]:
    """What every page may say of the scenario that it shows, and of the facts behind it."""
    said = {"name": in_words(scenario), "data_newest": version.newest(), "data_version": version.version()}
    return [res.make(f"scenario.{key}", value, unit="", grade="assumed" if key == "name" else "exact",
                     sources=["k3lib_assumed"]) for key, value in said.items()]  # fmt: skip


def _chosen(jobs: Sequence[Job], only: Sequence[str]) -> list[Job]:
    names = {job.name: job for job in jobs}
    wanted = [name.removesuffix(".ipynb").rsplit("/", 1)[-1] for name in only]
    for name in wanted:
        if name not in names:
            raise InputError(f"--only {name}: no such notebook. {near(name, names)}")
    return [names[name] for name in dict.fromkeys(wanted)] if wanted else list(jobs)


def _executed(jobs: Sequence[Job], chosen: Sequence[Job], stage: Path, out: Path, bar: Any, fresh: bool,
              price_file: Path | None, scenario: Scenario | None = None) -> dict[str, Any]:  # fmt: skip
    """All executed notebooks by name: the chosen ones run now, side by side; the others as they last ran.

    scenario: of the workbook, the alerts and the what-if page, which are written beside them, and last, when the speeds
    that they take are known.
    """
    ready = {job.name: _last_run(job, out) for job in jobs if job not in chosen}
    work = stage / "executed"
    work.mkdir()
    with (Runner(work, out / LOG, fresh, price_file) as runner,
          ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool):  # fmt: skip
        futures: dict[Future[Any], str] = {pool.submit(runner.notebook, job): job.name for job in chosen}
        if scenario is not None:
            futures[pool.submit(runner.workbook, scenario, stage / WORKBOOK)] = WORKBOOK
            futures[pool.submit(runner.alerts, scenario, stage)] = ALERTS
            futures[pool.submit(runner.whatif, scenario, stage)] = WHATIF
        try:
            for future in as_completed(futures):
                ready[futures[future]] = future.result()
                bar.set_postfix_str(futures[future])
                bar.update()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            runner.stop()
            raise
    return {job.name: ready[job.name] for job in jobs}


def _last_run(job: Job, out: Path) -> Any:
    path = out / "executed" / f"{job.name}.ipynb"
    if not path.is_file():
        raise InputError(f"--only: notebook '{job.name}' has not run yet. Run 'k3 build' without --only first.")
    notebook = nbs.read(path)
    before = nbs.parameters_of(notebook)
    changed = [n for n, v in job.parameters.items() if before.get(n) != v]
    if changed:
        n = changed[0]
        raise InputError(
            f"--only: notebook '{job.name}' last ran with {n} = {before.get(n)}, this build has "
            f"{n} = {job.parameters[n]}. Run 'k3 build' without --only."
        )
    if nbs.fingerprint_of(notebook) != made_from(job.path):
        raise InputError(
            f"--only: the data, the library or notebook '{job.name}' changed since it last ran. "
            "Run 'k3 build' without --only."
        )
    return notebook


def _from_base(scenario: Scenario, results: Mapping[str, res.Result]) -> Changes | None:
    """What differs from the base scenario; None for the base one itself."""
    base = load_scenario()
    if scenario == base:
        return None
    return compare(results_of(base), results, inputs(base.model_dump(), scenario.model_dump()))


def _lay_out(
    stage: Path, executed: Mapping[str, Any], results: Mapping[str, res.Result], changes: Changes | None
) -> None:
    """The book's sources with everything generated beside them, and what is published apart from the book."""
    book, ready = stage / "book", stage / "ready"
    shutil.copytree(BOOK, book)
    shutil.copytree(DATA, book / "_data")
    shutil.copy(CONFIG, stage / "_config.yml")
    for folder in (
        book / "_generated" / "notebooks",
        book / "nb",
        ready / "downloads" / "notebooks",
        ready / "executed",
    ):
        folder.mkdir(parents=True)
    for name, notebook in executed.items():
        nbs.write(notebook, ready / "executed" / f"{name}.ipynb")
        page = book / "nb" / f"{name}.ipynb"
        nbs.write(nbs.page(notebook), page)
        for folder in (book / "_generated" / "notebooks", ready / "downloads" / "notebooks"):
            shutil.copy(page, folder)
    downloads.pack((ready / "downloads" / "notebooks").glob("*.ipynb"), stage / downloads.ARCHIVE)
    for folder in (ready / "downloads", book / "_generated"):
        for made in (WORKBOOK, downloads.ARCHIVE, *operating.FILES):
            shutil.copy(stage / made, folder)
    for made in (SCRIPT, PAGE):
        shutil.copy(stage / made, book / "_generated")
    changed = json.dumps(changes and changes.as_json(), indent=1, sort_keys=True, ensure_ascii=False)
    (book / "_generated" / "changes.json").write_text(changed + "\n", encoding="utf-8", newline="\n")
    for name, text in (("results.json", res.to_json(results)), ("results.csv", res.to_csv(results))):
        for folder in (ready, ready / "downloads", book / "_generated"):
            (folder / name).write_text(text, encoding="utf-8", newline="\n")


def _finish(ready: Path, with_pdf: bool, fresh: bool) -> str | None:
    """Make of the pages in `ready` the PDFs, where they are wanted, and the settings of a server.

    Returns what stopped the PDFs in one line, or None.
    """
    stopped = None
    (ready / "pdf").mkdir()
    if with_pdf:
        try:
            pdf.add(ready, PRINT, date=version.newest(), fresh=fresh)
        except InputError as error:
            stopped = str(error)
    downloads.settle(ready / "html", pdf=with_pdf and stopped is None)
    server = serving.nginx(ready / "html")
    (ready / "downloads" / serving.FILE).write_text(server, encoding="utf-8", newline="\n")
    return stopped
