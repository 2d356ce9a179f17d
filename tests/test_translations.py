"""The catalogues of the Chinese edition: what is marked in a text is marked in its translation."""

import re
from collections import Counter
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from k3lib.facts.paths import ROOT
from k3lib.report.editions import CHINESE, LOCALE, phrases

MESSAGES = sorted((LOCALE / CHINESE / "LC_MESSAGES").rglob("*.po"))
ROLE = re.compile(r"\{[\w:-]+\}`[^`]*`")
CODE = re.compile(r"(?<![`}])`[^`]+`")
TARGET = re.compile(r"\]\(([^)]*)\)")
FORMULA = re.compile(r"\$[^$]+\$")
HALF_WIDTH = re.compile(r"[\u4e00-\u9fff][,;:!?](?=[\u4e00-\u9fff])")


def messages(path: Path):
    with path.open("rb") as file:
        return [(str(m.id), str(m.string or "")) for m in read_po(file, locale=CHINESE) if m.id]


@pytest.mark.parametrize("path", MESSAGES, ids=lambda p: p.stem)
def test_roles_code_links_and_formulas_stay(path):
    for text, translation in messages(path):
        if not translation:
            continue
        assert roles(translation) == roles(text), f"{path.name}: {text}"
        bare, bare_translation = ROLE.sub("", text), ROLE.sub("", translation)
        for found in (CODE, TARGET, FORMULA):
            assert Counter(found.findall(bare_translation)) == Counter(found.findall(bare)), f"{path.name}: {text}"


def roles(text: str):
    """The roles of a text; of one with a title of its own, as in {download}`title <file>`, only the target."""
    return Counter(re.sub(r"`[^`<]*<([^`>]*)>`", r"`\1`", role) for role in ROLE.findall(text))


def test_phrases_are_consistent():
    assert phrases(CHINESE).phrases


@pytest.mark.parametrize(
    "path", [*MESSAGES, *sorted((LOCALE / CHINESE / "phrases").glob("*.po"))], ids=lambda p: p.stem
)
def test_chinese_is_written_with_its_own_signs(path):
    for _, translation in messages(path):
        assert not HALF_WIDTH.search(translation), translation


def test_every_page_has_a_catalogue():
    pages = set(re.findall(r"file: *(\S+)|root: *(\S+)", (ROOT / "book" / "_toc.yml").read_text(encoding="utf-8")))
    names = {str(p.relative_to(LOCALE / CHINESE / "LC_MESSAGES").with_suffix("")) for p in MESSAGES}
    assert {a or b for a, b in pages} <= names
