"""Turns code and questions into terms: splits identifiers into words, and reduces words to stems.

A stem is always a prefix of its word, so a plain substring search for the stem finds every line that can
contain the word. Scans rely on this: ripgrep searches for stems. Knows nothing of files.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple, TypeAlias

from retinue.codebase.access import Regex, compile_regex

_WORD_PART = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_ASCII_WORD_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
"""Finds the same parts as `_WORD_PART` in ASCII text, in two thirds of the time."""

_MIN_STEM = 3
_MIN_ATE_STEM = 4
_MAX_WORD_BYTES = 64
"""Longer words are data, such as hashes and encoded images."""

_ATE_SUFFIXES = ("ations", "ation", "ators", "ator", "ating", "ated", "ate")
_Y_SUFFIX = "ied"
"""The end of the past form of words that end in `y`: `retried`."""
_VERB_SUFFIXES = ("ing", "ed")
_OTHER_SUFFIXES = ("ion", "able", "ible", "ment", "ive", "ly", "er", "or")


def stem(word: str) -> str:
    """Return a lower-case word without its inflection.

    `retries` and `retry` have the same stem, as do `validation` and `validator`.
    """
    if len(word) <= _MIN_STEM or not word.isascii():
        return word
    if word[-1] == "s":
        word = _without_plural(word)
    if word.endswith(_Y_SUFFIX) and len(word) > _MIN_STEM + 2:
        return word[:-3]
    # Testing for all suffixes at once is fast, and most words have none.
    if word.endswith(_ATE_SUFFIXES) and (short := _without_suffix(word, _ATE_SUFFIXES, _MIN_ATE_STEM)):
        return short
    if word.endswith(_VERB_SUFFIXES):
        word = _without_double_letter(_without_suffix(word, _VERB_SUFFIXES, _MIN_STEM) or word)
    if word.endswith(_OTHER_SUFFIXES):
        word = _without_double_letter(_without_suffix(word, _OTHER_SUFFIXES, _MIN_STEM + 1) or word)
    if word[-1] in "ey" and len(word) > _MIN_STEM:
        word = word[:-1]
    return word


def _without_suffix(word: str, suffixes: tuple[str, ...], shortest: int) -> str:
    """Remove the first suffix that leaves at least `shortest` letters. Returns "" if none does."""
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
    """Remove a doubled last letter: `stopp`, from `stopped`, becomes `stop`."""
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
see say says like doesn don didn isn wasn won aren weren hasn haven hadn couldn wouldn shouldn cannot via
within without instead per etc eg ie vs yes ok
one two first second def class return import self none true false null var let const function public
private static void new try except catch finally elif pass lambda please thanks hi think know
seem seems look looks currently actually really still even though however since way thing things something
ones others ways vars lets letting trying getting sees seeing current non final real come likely mostly
http https www com org github html
"""
_CHATTER_WORDS = """
hello find found case happen happens happened work works working expected actual behavior behaviour result
results follow following example issue bug bugs problem describe description version reproduce step steps
file line code project repository repo codebase explain mechanism expect note thank
"""


_MIN_INFLECTED = 4
"""Shorter words have no inflection here: `seed` is no form of `see`."""


def _inflected(text: str) -> frozenset[str]:
    """Return words with their plurals and the forms of verbs."""
    words = text.split()
    long = [word for word in words if len(word) >= _MIN_INFLECTED]
    endings = [word.removesuffix("e") + ending for word in long for ending in ("ed", "es", "ing")]
    return frozenset((*words, *(f"{word}s" for word in long), *endings))


CHATTER_WORDS = _inflected(_CHATTER_WORDS)
"""Words that people write around a question but also use as names: `Version`, `Result`, `find`."""
STOP_WORDS = _inflected(_STOP_WORDS) | CHATTER_WORDS
"""Words that are neither indexed nor searched for, because they would match everything.

Words of the same stem that mean something else count: `worker`, `exception` and `theme` are none of them.
"""
CHATTER_TERMS = frozenset(map(stem, CHATTER_WORDS))


def split_identifier(identifier: str) -> list[str]:
    """Split `getHTTPResponse_code` into `get`, `http`, `response`, `code`."""
    return [part.lower() for part in _WORD_PART.findall(identifier)]


_SPACE_FOR_NON_WORD_BYTES = bytes(
    byte if byte >= 128 or chr(byte).isalnum() or chr(byte) == "_" else ord(" ") for byte in range(256)
)


def separate_words(data: bytes) -> bytes:
    """Replace every byte that belongs to no identifier by a space, so that `split()` gives the words."""
    return data.translate(_SPACE_FOR_NON_WORD_BYTES)


_WORD = r"[0-9A-Za-z_\x80-\xff]*"
_MIN_BYTES_PER_FOUND_WORD, _TRIAL_BYTES = 120, 20_000
"""If words with terms are closer to each other in the text, looking up every word costs less."""


def _spellings(term: str) -> str:
    """Return a pattern for the bytes of all words that have this term, which is ASCII.

    The letters of a term of several words may have underscores and signs beyond ASCII between them. One sign
    beyond ASCII becomes an ASCII letter in lower case: that for kelvin.
    """
    letters = (r"(?:k|\xe2\x84\xaa)" if letter == "k" else re.escape(letter) for letter in term)
    return r"[_\x80-\xff]*".join(letters)


class _StemCache(dict[str, str]):
    """Maps a lower-case word part to its stem, or to an empty string for a stop word."""

    def __init__(self, kept_stop_terms: Collection[str]) -> None:
        super().__init__()
        self._kept = kept_stop_terms

    def __missing__(self, part: str) -> str:
        found = stem(part) if len(part) > 1 else ""
        if part in STOP_WORDS and found not in self._kept:
            found = ""
        self[part] = found
        return found


class Vocabulary(dict[bytes, str]):
    """Maps a word as written in a file to its terms, separated by spaces. Computes each word once.

    The terms are the stems of the word's parts and, if there are several parts, all parts joined.
    """

    def __init__(self, kept_stop_terms: Collection[str] = ()) -> None:
        """`kept_stop_terms` are stop terms that count in this question."""
        super().__init__()
        self._stem_of = _StemCache(kept_stop_terms).__getitem__

    def __missing__(self, word: bytes) -> str:
        if len(word) > _MAX_WORD_BYTES:
            terms = ""
        elif word.isalpha() and (word.islower() or word.istitle() or word.isupper()):
            terms = self._stem_of(word.decode().lower())
        else:
            terms = self._terms_of_parts(word)
        self[word] = terms
        return terms

    def _terms_of_parts(self, word: bytes) -> str:
        """Return the terms of a word that may have several parts."""
        identifier = word.decode(errors="replace")
        if word.islower() and word.replace(b"_", b"").isalpha():
            parts = identifier.strip("_").split(
                "_"
            )  # the same parts as the regex finds, several times as fast
        else:
            pattern = _ASCII_WORD_PART if identifier.isascii() else _WORD_PART
            parts = " ".join(pattern.findall(identifier)).lower().split()
        if len(parts) < 2:
            return self._stem_of(parts[0]) if parts else ""
        found = dict.fromkeys(map(self._stem_of, parts))
        # Joined from its parts: the word may contain a space beyond ASCII, which would split the terms.
        found["".join(parts)] = None
        found.pop("", None)
        return " ".join(found)

    def distinct_terms(self, text: str) -> str:
        """Return the distinct terms of a name or a path, separated by spaces."""
        if text.isidentifier():
            return self[text.encode()]  # a single word, as most names are
        words = separate_words(text.encode()).split()
        return " ".join(dict.fromkeys(" ".join(map(self.__getitem__, words)).split()))


WordSpans: TypeAlias = "array[int]"
"""The first byte of each of some words and the byte after it, one after the other."""


def terms_of_text(text: str) -> str:
    """Return the distinct terms of a text, separated by spaces. Words that are chatter in questions count."""
    return Vocabulary(CHATTER_TERMS).distinct_terms(text.encode("utf-8", "replace").decode())


class QueryTerms(dict[bytes, tuple[str, ...]]):
    """Maps a word as written in a file to those of its terms that the question has. Most words have none."""

    def __init__(self, terms: Collection[str], kept_stop_terms: Collection[str] = ()) -> None:
        """`kept_stop_terms` are stop terms that count in this question."""
        super().__init__()
        self._wanted = frozenset(terms)
        self.vocabulary = Vocabulary(kept_stop_terms)
        self._any_term = re.compile("|".join(sorted(map(re.escape, terms))) or "(?!)")
        self._any_term_bytes = re.compile(self._any_term.pattern.encode())
        self._searched_bytes = 0
        self._found_words = 0

    def count_terms(
        self, data: bytes, starts: Sequence[int] = (0,), spans: WordSpans | None = None
    ) -> dict[str, dict[int, int]]:
        """Return how often each term of the question occurs in each section of a text that has it.

        `starts` has the first byte of each section, in order; the first is 0. No word is in two sections.
        `spans` are those of `find_words` for the same text, if they are known.
        """
        counts: dict[str, dict[int, int]] = {}
        if not self._wanted:
            return counts
        if spans is None and (spans := self.find_words(data)) is None:
            return self._count_all_words(data, starts)
        numbers = iter(spans)
        places = zip(numbers, numbers, strict=True)
        if len(starts) == 1:
            self._add_counts(counts, 0, [data[first:last] for first, last in places])
            return counts
        section, end = 0, starts[1]
        for first, last in places:
            if terms := self[data[first:last]]:
                if first >= end:
                    section = bisect_right(starts, first) - 1
                    end = starts[section + 1] if section + 1 < len(starts) else len(data)
                for term in terms:
                    of_term = counts.setdefault(term, {})
                    of_term[section] = of_term.get(section, 0) + 1
        return counts

    def _count_all_words(self, data: bytes, starts: Sequence[int]) -> dict[str, dict[int, int]]:
        """Count terms by looking up every word of the text."""
        counts: dict[str, dict[int, int]] = {}
        for section, (start, end) in enumerate(zip(starts, [*starts[1:], len(data)], strict=True)):
            self._add_counts(counts, section, separate_words(data[start:end]).split())
        return counts

    def _add_counts(self, counts: dict[str, dict[int, int]], section: int, words: list[bytes]) -> None:
        """Add the terms of some words of a section."""
        found: Counter[tuple[str, ...]] = Counter(filter(None, map(self.__getitem__, words)))
        for terms, count in found.items():
            for term in terms:
                of_term = counts.setdefault(term, {})
                of_term[section] = of_term.get(section, 0) + count

    def find_words(self, data: bytes) -> WordSpans | None:
        """Return where the words are that may have a term: for each, its first byte and the byte after it.

        Returns None if so many words have one that looking up every word costs less.
        """
        if self._found_words * _MIN_BYTES_PER_FOUND_WORD > self._searched_bytes + _TRIAL_BYTES:
            return None
        found = [match.span() for match in self._words_with_terms.finditer(data)]
        spans = array("I", chain.from_iterable(found))
        self._searched_bytes += len(data)
        self._found_words += len(spans) // 2
        return spans

    def terms_of_names(self, names: Iterable[str]) -> dict[str, str]:
        """Return the distinct terms of each name; empty for a name without a term of the question."""
        joined = "\0".join(names).encode() + b"\0"
        having: set[str] = set()
        for match in self._words_with_terms.finditer(joined):
            first, last = match.span()
            having.add(joined[joined.rfind(b"\0", 0, first) + 1 : joined.index(b"\0", last)].decode())
        terms_of = self.vocabulary.distinct_terms
        return {name: terms_of(name) if name in having else "" for name in names if name}

    @cached_property
    def _words_with_terms(self) -> Regex:
        """Matches all words that have a term of the question, and some that only contain its letters."""
        terms = [_spellings(term) for term in sorted(self._wanted) if term.isascii()]
        if len(terms) < len(self._wanted):
            terms.append(r"[\x80-\xff]")  # bytes beyond ASCII have no case, so every such word may match
        return compile_regex(f"{_WORD}(?:{'|'.join(terms)}){_WORD}", ignore_case=True, of_bytes=True)

    def __missing__(self, word: bytes) -> tuple[str, ...]:
        found: tuple[str, ...] = ()
        # In lower case and without underscores, a word contains its terms: one search rules out most words.
        if not word.isascii() or self._any_term_bytes.search(word.replace(b"_", b"").lower()):
            found = tuple(term for term in self.vocabulary[word].split() if term in self._wanted)
        self[word] = found
        return found

    def distinct_terms(self, text: str) -> tuple[str, ...]:
        """Return the distinct terms of the question in a name or a path."""
        if not self._any_term.search(text.replace("_", "").lower()):
            return ()
        words = separate_words(text.encode()).split()
        return tuple(dict.fromkeys(term for word in words for term in self[word]))


NAME_MARK, FOLDER_MARK = ".", "/"
"""Prefixes of path terms in an index, which distinguish them from the words of the text."""


class PathTerms(NamedTuple):
    """The files that have a term in their path, by term. A missing term is in no path."""

    in_name: Mapping[str, Collection[int]]
    in_folders: Mapping[str, Collection[int]]


def find_path_terms(paths: Sequence[str], query: QueryTerms) -> PathTerms:
    """Find the terms of a question in paths. Files are numbered by their position in `paths`."""
    in_name: dict[str, list[int]] = {}
    in_folders: dict[str, list[int]] = {}
    terms_by_folder: dict[str, tuple[str, ...]] = {}
    for file, path in enumerate(paths):
        for term in query.distinct_terms(name_without_suffix(path)):
            in_name.setdefault(term, []).append(file)
        folder = folder_part(path)
        if folder not in terms_by_folder:
            terms_by_folder[folder] = query.distinct_terms(folder)
        for term in terms_by_folder[folder]:
            in_folders.setdefault(term, []).append(file)
    return PathTerms(in_name, in_folders)


def name_without_suffix(path: str) -> str:
    """Return the file name of a path without its last suffix."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def folder_part(path: str) -> str:
    return path.rpartition("/")[0]
