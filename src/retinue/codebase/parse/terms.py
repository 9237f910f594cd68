"""Words of code and of questions: identifiers split into stems. Knows nothing of files.

A stem is always a prefix of the word it came from, so a plain substring search for the stem
finds every line that can hold the word. Cold answers rely on that: ripgrep narrows by stems."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

_WORD_PART = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_ASCII_WORD_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
"""What the other finds in ASCII, in two thirds of its time."""

_MIN_STEM = 3
_MIN_AT_STEM = 4
_MAX_WORD_BYTES = 64
"""Bytes; longer ones are data: hashes, encoded images."""


_AT_SUFFIXES = ("ations", "ation", "ators", "ator", "ating", "ated", "ate")
_VERB_SUFFIXES = ("ing", "ed")
_OTHER_SUFFIXES = ("ion", "able", "ible", "ment", "ive", "ly", "er", "or")


def stem(word: str) -> str:
    """A word in lower case without inflection: `retries` and `retry`, `validation` and `validator` agree."""
    if len(word) <= _MIN_STEM or not word.isascii():
        return word
    if word[-1] == "s":
        word = _without_plural(word)
    # Asking for all suffixes at once is fast, and most words have none.
    if word.endswith(_AT_SUFFIXES) and (short := _without_suffix(word, _AT_SUFFIXES, _MIN_AT_STEM)):
        return short
    if word.endswith(_VERB_SUFFIXES):
        word = _without_double_letter(_without_suffix(word, _VERB_SUFFIXES, _MIN_STEM) or word)
    if word.endswith(_OTHER_SUFFIXES):
        word = _without_double_letter(_without_suffix(word, _OTHER_SUFFIXES, _MIN_STEM + 1) or word)
    if word[-1] in "ey" and len(word) > _MIN_STEM:
        word = word[:-1]
    return word


def _without_suffix(word: str, suffixes: tuple[str, ...], shortest: int) -> str:
    """Without the first suffix that leaves enough; empty if none does."""
    for suffix in suffixes:
        if word.endswith(suffix) and len(word) - len(suffix) >= shortest:
            return word[: -len(suffix)]
    return ""


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 5:
        return word[:-3]
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if word.endswith("s") and word[-2] not in "siu":
        return word[:-1]
    return word


def _without_double_letter(word: str) -> str:
    if len(word) > _MIN_STEM and word[-1] == word[-2] and word[-1] not in "lsz":
        return word[:-1]
    return word


_STOP_WORDS = """
a an the and or but if then else when while for of to in on at by with from into onto as is are was were
be been being am do does did done doing have has had having i you he she it we they me him her us them my
your his its our their this that these those there here what which who whom whose why how where not no
nor so than too very can could should would may might must shall will just only also about above after
again all any because before below between both down during each few more most other out over own same
some such through under until up get gets got make makes made use uses used using want wants need needs
see say says like doesn don didn isn wasn won cannot via within without instead per etc eg ie vs yes ok
one two first second def class return import self none true false null var let const function public
private static void new try except catch finally elif pass lambda please thanks hi think know
seem seems look looks currently actually really still even though however since way thing things something
http https www com org github html
"""
_CHATTER_WORDS = """
hello find found case happen happens happened work works working expected actual behavior behaviour result
results following example issue bug problem describe description version reproduce steps file line code
project repository repo codebase explain mechanism
"""


def _with_stems(text: str) -> frozenset[str]:
    return frozenset(text.split()) | {stem(word) for word in text.split()}


CHATTER_TERMS = _with_stems(_CHATTER_WORDS)
"""What people say around a question, and also what they call things: `Version`, `Result`, `find`."""
STOP_TERMS = _with_stems(_STOP_WORDS) | CHATTER_TERMS
"""Found nowhere and looked for nowhere: they would match everything."""


def split_identifier(identifier: str) -> list[str]:
    """`getHTTPResponse_code` as `get`, `http`, `response`, `code`."""
    return [part.lower() for part in _WORD_PART.findall(identifier)]


class _StemCache(dict[str, str]):
    """Part in lower case to its stem; one that says nothing has none."""

    def __init__(self, kept: Collection[str]) -> None:
        super().__init__()
        self._dropped = STOP_TERMS.difference(kept)

    def __missing__(self, part: str) -> str:
        found = stem(part) if len(part) > 1 else ""
        self[part] = found = "" if found in self._dropped else found
        return found


class Vocabulary(dict[bytes, str]):
    """A word as it stands in a file to what it is found by, each worked out once.

    The terms are the stems of the word's parts and, when there are several, the whole; space between.
    """

    def __init__(self, kept: Collection[str] = ()) -> None:
        """`kept` are stop terms that count nonetheless."""
        super().__init__()
        self._stem_of = _StemCache(kept).__getitem__

    def __missing__(self, word: bytes) -> str:
        if len(word) > _MAX_WORD_BYTES:
            terms = ""
        elif word.isalpha() and (word.islower() or word.istitle() or word.isupper()):
            terms = self._stem_of(word.decode().lower())
        else:
            terms = self._of_parts(word)
        self[word] = terms
        return terms

    def _of_parts(self, word: bytes) -> str:
        identifier = word.decode(errors="replace")
        if word.islower() and word.replace(b"_", b"").isalpha():
            pieces = identifier.strip("_").split("_")  # what an expression would find, several times as fast
        else:
            part = _ASCII_WORD_PART if identifier.isascii() else _WORD_PART
            pieces = " ".join(part.findall(identifier)).lower().split()
        if len(pieces) < 2:
            return self._stem_of(pieces[0]) if pieces else ""
        found = dict.fromkeys(map(self._stem_of, pieces))
        # Of its pieces alone: a space beyond ASCII, which belongs to none, would part the terms.
        found["".join(pieces)] = None
        found.pop("", None)
        return " ".join(found)

    def distinct(self, text: str) -> str:
        """The terms of a name or a path, every one once."""
        if text.isidentifier():
            return self[text.encode()]  # one word, as most names are
        return " ".join(
            dict.fromkeys(" ".join(map(self.__getitem__, separate_words(text.encode()).split())).split())
        )


_SPACE_FOR_NON_WORD_BYTES = bytes(
    byte if byte >= 128 or chr(byte).isalnum() or chr(byte) == "_" else ord(" ") for byte in range(256)
)


def separate_words(data: bytes) -> bytes:
    """`data` with a space for every byte that belongs to no identifier; `split()` gives the words."""
    return data.translate(_SPACE_FOR_NON_WORD_BYTES)


class QueryTerms(dict[bytes, tuple[str, ...]]):
    """A word as it stands in a file to those of its terms that a question has; for most words none."""

    def __init__(self, terms: Collection[str], kept: Collection[str] = ()) -> None:
        super().__init__()
        self._asked = frozenset(terms)
        self.vocabulary = Vocabulary(kept)
        self._any = re.compile("|".join(sorted(map(re.escape, terms))) or "(?!)")
        self._any_bytes = re.compile(self._any.pattern.encode())

    def __missing__(self, word: bytes) -> tuple[str, ...]:
        found: tuple[str, ...] = ()
        # Without underscores and in lower case a word holds all of its terms, so most are told at a glance.
        if not word.isascii() or self._any_bytes.search(word.replace(b"_", b"").lower()):
            found = tuple(term for term in self.vocabulary[word].split() if term in self._asked)
        self[word] = found
        return found

    def within(self, text: str) -> tuple[str, ...]:
        """The asked terms of a name or a path, each once."""
        if not self._any.search(text.replace("_", "").lower()):
            return ()
        return tuple(
            dict.fromkeys(term for word in separate_words(text.encode()).split() for term in self[word])
        )


# MERGED path_words: Which files have a term in their name or in their folders.

NAME_MARK, FOLDER_MARK = ".", "/"
"""Before a term that an index keeps of a path."""


class PathTerms(NamedTuple):
    """Term to files; a term that is missing is in none."""

    in_name: Mapping[str, Collection[int]]
    in_folders: Mapping[str, Collection[int]]


def name_without_suffix(path: str) -> str:
    """Without its last suffix."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def folder_part(path: str) -> str:
    return path.rpartition("/")[0]


def find_path_terms(paths: Sequence[str], asked: QueryTerms) -> PathTerms:
    in_name: dict[str, list[int]] = {}
    in_folders: dict[str, list[int]] = {}
    of_folders: dict[str, tuple[str, ...]] = {}
    for file, path in enumerate(paths):
        for term in asked.within(name_without_suffix(path)):
            in_name.setdefault(term, []).append(file)
        folders = folder_part(path)
        if folders not in of_folders:
            of_folders[folders] = asked.within(folders)
        for term in of_folders[folders]:
            in_folders.setdefault(term, []).append(file)
    return PathTerms(in_name, in_folders)
