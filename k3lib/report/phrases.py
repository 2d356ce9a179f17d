"""Texts that the library makes, in another language: whole texts or patterns, with numbers and names kept apart.

A book of phrases is one or more files in gettext's format. In a phrase `{0}`, `{1}` stand for numbers in their order,
`{a}`, `{b}` for words that are looked up themselves, and `<0>words</0>` or `<0/>` for what is set apart in the text: a
link, a formula. A translation may change their order, and `{0:x100}` multiplies: "15 million yuan" is "1500 万元".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from babel.messages.pofile import read_po

from k3lib.errors import InputError
from k3lib.facts.paths import shown
from k3lib.units import number as in_digits

NUMBER = re.compile(r"(?<![\w.<])(?<!</)[+\u2212-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)(?![.,]\d)")
PLACE = re.compile(r"\{(\d+|[a-z])(?::x(\d+(?:\.\d+)?))?\}")
MARK = re.compile(r"</?\d+/?>")
SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z0-9<\u201c\"'(])")
# Where a text may be taken apart, and what stands there in Chinese.
JOINTS = (("; ", "\uff1b"), (" = ", " = "), (": ", "\uff1a"), (" \u00b7 ", " \u00b7 "), (", ", "\uff0c"))
IN_BRACKETS = re.compile(r"(?P<before>.*\S) ?\((?P<within>[^()]*)\)(?P<after>.*)")
# What reads the same in every language: names of the trade with a capital inside or a digit, code, units.
KEPT = re.compile(
    r"https?://\S+|--[\w-]+|[\w.-]*_[\w.-]*|[a-z]\w*(?:\.[\w-]+)+|\w*\d[\w.+/@-]*|[A-Za-z]+(?:/[A-Za-z0-9]+)+|"
    r"[A-Z]+s?\b|[a-z]+[A-Z]\w*"
)
LETTER, WORD = re.compile(r"[A-Za-z]"), re.compile(r"[A-Za-z]{2,}")
# A blank stands between Chinese and Latin letters or digits, and none beside a Chinese sign.
HAN, _LATIN, _SIGN = "\u4e00-\u9fff", "A-Za-z0-9", "\uff0c\u3002\uff1b\uff1a\u3001\uff08\uff09\u201c\u201d"
_CLOSE = re.compile(f"(?<=[{HAN}])(?=[{_LATIN}])|(?<=[{_LATIN}%])(?=[{HAN}])")
_WIDE = re.compile(f"(?<=[{_SIGN}]) +| +(?=[{_SIGN}])")
# A piece that is set apart before a text, and tags around the whole of it.
LEADING = re.compile(r"(?P<before><\d+/>[ ]?)(?P<text>.*\w.*)(?P<after>)")
WRAPPED = re.compile(r"(?P<before><(\d+)>)(?P<text>(?:(?!</\2>).)*)(?P<after></\2>)")
FULL_STOPS = {".": "\u3002", "!": "\uff01", "?": "\uff1f"}


@dataclass(frozen=True)
class Pattern:
    """A phrase with open places for words. literal: characters that it says itself, by which phrases are ranked."""

    found: re.Pattern[str]
    places: tuple[str, ...]
    translation: str
    literal: int


@dataclass
class PhraseBook:
    """Phrases of one language. names: words that stay as they are. missing: phrases that were asked for in vain."""

    phrases: Mapping[str, str]
    names: frozenset[str] = frozenset()
    missing: dict[str, str] = field(default_factory=dict)
    _known: dict[str, str | None] = field(default_factory=dict)

    def text(self, text: str) -> str:
        """The text in the other language; as it is, and noted as missing, where no phrase says how."""
        stripped = text.strip()
        if not LETTER.search(stripped):
            return text
        start = text[: len(text) - len(text.lstrip())]
        end = text[len(text.rstrip()) :]
        plain = " ".join(stripped.split())
        said = self._whole(plain)
        return text if said == plain else f"{start}{spaced(said)}{end}"

    def exact(self, phrase: str) -> str:
        """The translation of a phrase as it is written in a page script; the phrase itself, and noted, without one."""
        found = self.phrases.get(phrase)
        if not found and not self.is_kept(phrase):
            self.missing.setdefault(phrase, phrase)
        return found or phrase

    def _whole(self, text: str) -> str:
        found = self._found(text)
        if found is not None:
            return found
        for pieces, joint in ((SENTENCE.split(text), ""), (text.split("; "), "\uff1b")):
            if len(pieces) > 1:
                return joint.join(self._whole(piece) for piece in pieces)
        self.missing.setdefault(phrase_of(text), text)
        return text

    def _found(self, text: str) -> str | None:
        """The translation, or None. Answers are kept: the same few thousand texts come again and again."""
        if text not in self._known:
            self._known[text] = None  # a phrase that leads back to itself has no translation
            self._known[text] = self._looked_up(text)
        return self._known[text]

    def _looked_up(self, text: str) -> str | None:
        phrase, numbers = phrase_of(text), NUMBER.findall(text)
        for spelling in (phrase, phrase[:1].lower() + phrase[1:], phrase[:1].upper() + phrase[1:]):
            if self.phrases.get(spelling):
                return filled(self.phrases[spelling], numbers)
        if self.is_kept(text):
            return text
        for spelling in dict.fromkeys((text, text[:1].lower() + text[1:])):
            for form in self._forms:
                match = form.found.fullmatch(spelling)
                answer = self._by_form(form, match) if match else None
                if answer is not None:
                    return answer
        return self._in_parts(text)

    def _by_form(self, form: Pattern, match: re.Match[str]) -> str | None:
        numbers, words = [], {}
        for place, part in zip(form.places, match.groups(), strict=True):
            if place.isdigit():
                numbers.append(part)
                continue
            found = None if "; " in part or len(SENTENCE.split(part)) > 1 else self._found(part)
            if found is None:
                return None
            words[place] = found
        return filled(form.translation, numbers, words)

    def _in_parts(self, text: str) -> str | None:
        """The text taken apart at its marks or its punctuation, if every part has a translation."""
        around = LEADING.fullmatch(text) or WRAPPED.fullmatch(text)
        if around:
            found = self._found(around["text"])
            return None if found is None else around["before"] + found + around["after"]
        pieces = SENTENCE.split(text)
        if len(pieces) > 1:
            return _joined((self._found(piece) for piece in pieces), "")
        if text[-1] in FULL_STOPS and WORD.search(text):
            found = self._found(text[:-1])
            return None if found is None else found + FULL_STOPS[text[-1]]
        for joint, chinese in JOINTS:
            pieces = text.split(joint)
            answer = _joined((self._found(piece) for piece in pieces), chinese) if len(pieces) > 1 else None
            if answer is not None:
                return answer
        match = IN_BRACKETS.fullmatch(text)
        if match and not MARK.search(text):
            parts = [self._found(p) if p.strip() else p for p in (match["before"], match["within"], match["after"])]
            if None not in parts:
                return f"{parts[0]}\uff08{parts[1]}\uff09{parts[2]}"
        return None

    def is_kept(self, text: str) -> bool:
        """Whether a text has no word to translate: numbers, code, units, names."""
        bare = KEPT.sub(" ", MARK.sub(" ", PLACE.sub(" ", text)))
        return all(word in self.names for word in WORD.findall(bare))

    @cached_property
    def _forms(self) -> list[Pattern]:
        """Phrases with places for words, those that say most first."""
        forms = [_pattern(phrase, text) for phrase, text in self.phrases.items()
                 if text and any(not place[0].isdigit() for place in PLACE.findall(phrase))]  # fmt: skip
        return sorted(forms, key=lambda form: (-form.literal, form.found.pattern))


def phrase_of(text: str) -> str:
    """A text with places for its numbers."""
    count = iter(range(len(text)))
    return NUMBER.sub(lambda _: f"{{{next(count)}}}", text)


def filled(translation: str, numbers: list[str], words: Mapping[str, str] | None = None) -> str:
    """A translation with its numbers and words."""

    def value(match: re.Match[str]) -> str:
        place, factor = match.groups()
        if not place.isdigit():
            return (words or {})[place]
        return multiplied(numbers[int(place)], float(factor)) if factor else numbers[int(place)]

    return PLACE.sub(value, translation)


def multiplied(written: str, factor: float) -> str:
    """A number as it is written, times a factor, with no more digits after the point than it had."""
    digits = len(written.partition(".")[2])
    value = float(written.replace(",", "").replace("\u2212", "-")) * factor
    exact = f"{value:.{digits}f}" if digits else f"{value:.0f}"
    return in_digits(float(exact), ",.0f") if float(exact).is_integer() else f"{float(exact):,.{digits}f}".rstrip("0")


def spaced(text: str) -> str:
    """Chinese with its blanks where they belong."""
    return _WIDE.sub("", _CLOSE.sub(" ", text))


def _pattern(phrase: str, translation: str) -> Pattern:
    parts: list[str] = []
    places: list[str] = []
    done = literal = 0
    for match in PLACE.finditer(phrase):
        said = phrase[done : match.start()]
        literal += len(said)
        parts += [re.escape(said), f"({NUMBER.pattern})" if match[1].isdigit() else "(.+?)"]
        places.append(match[1])
        done = match.end()
    parts.append(re.escape(phrase[done:]))
    return Pattern(re.compile("".join(parts)), tuple(places), translation, literal + len(phrase[done:]))


def _joined(parts: Iterable[str | None], joint: str) -> str | None:
    found = []
    for part in parts:
        if part is None:
            return None
        found.append(part)
    return joint.join(found)


def read_phrases(folder: Path) -> PhraseBook:
    """All phrases of a folder of `.po` files, and its `names.txt`.

    Raises InputError for two translations of one phrase, and for a translation with other places than its phrase.
    """
    phrases: dict[str, str] = {}
    for path in sorted(folder.glob("*.po")):
        with path.open("rb") as file:
            catalogue = read_po(file, locale="zh_CN")
        for message in catalogue:
            phrase, translation = str(message.id), str(message.string or "")
            if not phrase:
                continue
            if translation and phrases.get(phrase, translation) != translation:
                raise InputError(f"{shown(path)}: '{phrase}' has another translation in another file. Keep one.")
            _check(path, phrase, translation)
            if translation:
                phrases[phrase] = translation
    names = (folder / "names.txt").read_text(encoding="utf-8").split()
    return PhraseBook(phrases, frozenset(names))


def _check(path: Path, phrase: str, translation: str) -> None:
    known = {place for place, _ in PLACE.findall(phrase)} | set(MARK.findall(phrase))
    used = {place for place, _ in PLACE.findall(translation)} | set(MARK.findall(translation))
    wrong = used - known if translation else set()
    lost = {mark for mark in known - used if mark.startswith("<")} if translation else set()
    if wrong or lost:
        raise InputError(f"{shown(path)}: '{phrase}': its translation {'has' if wrong else 'lacks'} "
                         f"{', '.join(sorted(wrong or lost))}.")  # fmt: skip
