"""A published copy: what pages say of themselves, how a server hands them out, and what stands at the front door."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from bs4 import BeautifulSoup, SoupStrainer
from conftest import pages, shown
from PIL import Image
from playwright.sync_api import Browser, Page
from test_arrows import ORDER

from k3lib import cli, cli_read
from k3lib.facts.paths import ROOT
from k3lib.facts.scenario import load_scenario
from k3lib.report import page_head, serving

NOTEBOOKS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
LINES = ("README.md", "USING.md", "PUBLISHING.md", "CONTRIBUTING.md", "CHANGELOG.md")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


# What pages say of themselves.


def test_every_page_names_itself_and_the_book_and_says_what_it_says(book: Path) -> None:
    heads: dict[tuple[str, str], Path] = {}
    for path in pages(book):
        soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        title = soup.title.get_text(strip=True)
        (description,) = (tag["content"] for tag in soup.find_all("meta", attrs={"name": "description"}))
        chinese = "zh" in path.relative_to(book / "html").parts[:1]
        assert soup.html["lang"] == ("zh-CN" if chinese else "en"), path
        assert title.count("自己部署 Kimi K3" if chinese else "Serving Kimi K3 yourself") == 1, (path, title)
        assert 5 <= len(description) <= page_head.LONGEST and not re.search(r"[<>]|\s{2}|^\s|\s$", description), path
        if path.stem in ("404", "search", "genindex") or path.parent.name == "numbers":
            continue
        said = " ".join(soup.article.get_text(" ", strip=True).split())
        start = re.sub(r"\W", "", description)[:30]
        assert start in re.sub(r"\W", "", said), (path, description)
        assert heads.setdefault((title, description), path) == path
    results = json.loads((book / "results.json").read_text(encoding="utf-8"))
    home = (book / "html" / "index.html").read_text(encoding="utf-8")
    start = results["answer.sentence1"]["value"][:40]
    assert f'<meta name="description" content="{start}' in home.replace("\u00a0", " ")


@pytest.mark.parametrize(("body", "description"), [
    ("<p>Motto.</p><p>One <b>12&nbsp;GB</b> card holds what it needs, and &lt;this&gt; is said of it at length.</p>",
     "One 12 GB card holds what it needs, and <this> is said of it at length."),
    (f"<p>{'A sentence of forty letters, more or less. ' * 5}</p>",
     "A sentence of forty letters, more or less. " * 2 + "A sentence of forty letters, more or less."),
    (f"<p>{'word ' * 60}</p>", "word " * 31 + "word\u2026"),
    (f"<p>{'买三十二张卡，其余不买，因为贵。' * 8}</p>", "买三十二张卡，其余不买，因为贵。" * 5),
    ("<p>Short.</p>", "Short."),
    ("<table></table>", ""),
])  # fmt: skip
def test_a_description_is_whole_sentences_where_they_fit(body: str, description: str) -> None:
    found = page_head.description(body)
    assert found == description and page_head._width(found) <= page_head.LONGEST


# How a server hands them out.


class Handler(SimpleHTTPRequestHandler):
    """Files of a folder with the policy of the built book, its own page for what is missing, and no talk."""

    policy = ""

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", self.policy)
        super().end_headers()

    def send_error(self, code: int, *rest: Any) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write((Path(self.directory) / "report" / "404.html").read_bytes())

    def log_message(self, *rest: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the book on a server of this machine, one folder below its root."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "report").symlink_to(book / "html")
    conf = (book / "downloads" / serving.FILE).read_text(encoding="utf-8")
    (policy,) = re.findall(r'add_header Content-Security-Policy "([^"]+)" always;', conf)
    handler = type("Handled", (Handler,), {"policy": policy})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/report"
    server.shutdown()


def visited(browser: Browser, address: str) -> tuple[Page, list[str]]:
    """A page as a server hands it out, and what its console complains of."""
    page = browser.new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(address)
    page.wait_for_function("!window.MathJax || !MathJax.startup || MathJax.startup.promise.then(() => true)")
    page.wait_for_timeout(200)
    return page, faults


@pytest.mark.parametrize("name", ["index", "what-if", "nb/quiz", "nb/prices-and-sources", "nb/launching", "zh/index"])
def test_the_policy_lets_a_page_work(name: str, browser: Browser, site: str) -> None:
    page, faults = visited(browser, f"{site}/{name}.html")
    assert not faults
    page.close()


def test_every_inline_script_of_every_page_is_allowed_and_no_handler_is_inline(book: Path) -> None:
    policy = serving.policy(book / "html")
    assert policy in (book / "downloads" / serving.FILE).read_text(encoding="utf-8")
    assert "unsafe-eval" not in policy and "'unsafe-inline'" not in policy.partition("style-src")[0]
    for path in pages(book):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"<[^<>]*\son[a-z]+=[^<>]*>", text), path
        for script in BeautifulSoup(text, "html.parser", parse_only=SoupStrainer("script")).find_all(src=False):
            if script.get("type") != "application/json":
                digest = hashlib.sha256(script.string.encode()).digest()
                assert f"'sha256-{base64.b64encode(digest).decode()}'" in policy, path


def test_the_policy_stops_what_is_not_of_the_book(browser: Browser, site: str) -> None:
    page, faults = visited(browser, f"{site}/index.html")
    page.evaluate("""() => { const script = document.createElement("script");
        script.textContent = "window.stranger = 1"; document.body.append(script); }""")
    assert page.evaluate("window.stranger") is None and any("Content Security Policy" in fault for fault in faults)
    page.close()


def test_the_search_works_from_a_server(browser: Browser, site: str) -> None:
    page, faults = visited(browser, f"{site}/search.html?q=latent")
    page.wait_for_selector("#search-results li a")
    assert not faults
    page.close()


@pytest.mark.parametrize(("path", "home"), [
    ("nothing.html", ""), ("nb/nothing.html", ""), ("a/b/c/nothing", ""), ("zh/nb/nothing.html", "zh/")])  # fmt: skip
def test_an_address_that_does_not_exist_leads_home(path: str, home: str, browser: Browser, site: str) -> None:
    page, _ = visited(browser, f"{site}/{path}")
    page.wait_for_function("document.querySelector('a').href.startsWith('http')")
    page.wait_for_timeout(300)
    links = page.evaluate("[...document.links].map((link) => link.href)")
    assert links == [f"{site}/{home}index.html", f"{site}/{home}search.html"]
    page.close()


def test_the_page_for_missing_addresses_works_without_scripts_at_the_root(book: Path) -> None:
    soup = BeautifulSoup((book / "html" / "404.html").read_text(encoding="utf-8"), "html.parser")
    assert [link["href"] for link in soup.find_all("a")] == ["index.html", "search.html"]
    assert not (book / "html" / "zh" / "404.html").exists()


# What is to be taken away.


def test_all_downloads_are_offered(book: Path) -> None:
    page = BeautifulSoup((book / "html" / "downloads.html").read_text(encoding="utf-8"), "html.parser")
    offered = {}
    for link in page.select('article a[href*="_downloads/"]'):
        target = book / "html" / link["href"]
        offered[target.name] = target.read_bytes()
    made = {path.name: path.read_bytes() for path in (book / "downloads").rglob("*") if path.is_file()}
    missing = set(made) - set(offered) - {serving.FILE}
    assert not missing and set(NOTEBOOKS) <= set(offered)
    assert {"k3-report.pdf", "k3-brief.pdf", "k3-costs.xlsx", "results.json", "results.csv"} <= set(offered)
    for name in set(made) & set(offered):
        assert offered[name] == made[name], name
    with zipfile.ZipFile(book / "downloads" / "k3-notebooks.zip") as archive:
        assert archive.namelist() == NOTEBOOKS and archive.testzip() is None
        assert all(archive.read(name) == made[name] for name in NOTEBOOKS)
        assert all(json.loads(archive.read(name))["cells"] for name in NOTEBOOKS)


# The front door.


def test_the_citation_is_valid_and_versions_agree() -> None:
    """The schema is that of the Citation File Format 1.2.0, by its makers, CC BY 4.0."""
    citation = yaml.load(text_of("CITATION.cff"), Loader=yaml.BaseLoader)  # noqa: S506  # dates as texts
    schema = json.loads(text_of("tests/schemas/cff-1.2.0.json"))
    jsonschema.Draft7Validator(schema).validate(citation)
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    assert citation["version"] == project["version"]
    newest = re.search(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", text_of("CHANGELOG.md"), flags=re.MULTILINE)
    assert newest and newest.groups() == (citation["version"], citation["date-released"])
    author = yaml.safe_load(text_of("_config.yml"))["author"]
    assert [one["name"] for one in citation["authors"]] == [author] == [one["name"] for one in project["authors"]]
    assert citation["license"] == project["license"] == "Apache-2.0" and "Apache License" in text_of("LICENSE")
    assert citation["title"] == yaml.safe_load(text_of("_config.yml"))["title"]


def test_links_of_the_front_door_lead_somewhere() -> None:
    for name in LINES:
        for target in re.findall(r"\]\(([^)\s]+)\)", text_of(name)):
            file, _, anchor = target.partition("#")
            if "://" in target:
                continue
            assert not file or (ROOT / file).is_file(), (name, target)
            if anchor:
                heads = re.findall(r"^#+ (.*)$", text_of(file or name), flags=re.MULTILINE)
                assert anchor in {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}, target


def test_the_picture_of_the_readme_is_small_and_of_a_page() -> None:
    (name,) = re.findall(r"!\[[^\]]{20,}\]\((\S+\.png)\)", text_of("README.md"))
    assert (ROOT / name).stat().st_size < 200_000
    assert Image.open(ROOT / name).size == (1400, 900)


def test_commands_of_the_front_door_are_good(capsys: pytest.CaptureFixture[str]) -> None:
    parser = cli._parser()
    built = shown("build", text_of("README.md") + text_of("USING.md"))
    assert len(built) >= 6
    for arguments in built:
        found = parser.parse_args(arguments)
        changes = dict(one.split("=", 1) for one in found.parameters)
        load_scenario("base" if found.scenario.endswith(".yaml") else found.scenario, changes)
        assert all(f"{name}.ipynb" in NOTEBOOKS for name in found.only)
    assert [parser.parse_args(one).run for one in shown("read", text_of("README.md"))] == [cli_read.run]
    targets = set(re.findall(r"^(\w+):", text_of("Makefile"), flags=re.MULTILINE))
    for name in LINES:
        assert set(re.findall(r"(?:^|`)make (\w+)", text_of(name), flags=re.MULTILINE)) <= targets, name


def test_the_workflow_builds_with_a_target_that_exists_and_may_do_little() -> None:
    workflow = yaml.safe_load(text_of(".github/workflows/publish.yml"))
    targets = set(re.findall(r"^(\w+):", text_of("Makefile"), flags=re.MULTILINE))
    steps = [step for one in workflow["jobs"].values() for step in one["steps"]]
    commands = "\n".join(step.get("run", "") for step in steps)
    assert set(re.findall(r"make (\w+)", commands)) == {"book"} <= targets
    assert workflow["permissions"] == {"contents": "read"}
    allowed = [one.get("permissions", {}) for one in workflow["jobs"].values()]
    assert allowed == [{}, {"pages": "write", "id-token": "write"}]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[\w-]+@v\d+\.\d+\.\d+", one) for one in used)
    assert [step["with"]["path"] for step in steps if "pages-artifact" in step.get("uses", "")] == ["_build/html"]


def test_the_guide_names_every_room_in_the_order_of_imports() -> None:
    rooms = re.findall(r"^\| `k3lib/(\w+)/`", text_of("CONTRIBUTING.md"), flags=re.MULTILINE)
    assert set(rooms) == {path.parent.name for path in (ROOT / "k3lib").glob("*/__init__.py")}
    assert rooms == sorted(rooms, key=ORDER.index)
    assert len(text_of("CONTRIBUTING.md").splitlines()) < 100
