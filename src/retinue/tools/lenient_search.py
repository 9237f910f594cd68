"""Searches for what a model probably means when its pattern matches nothing.

Small models write patterns that no line contains: in the wrong case, as a whole sentence, or with the words
in another order. Each step searches for less of the pattern, and the note says which step found something.
Also finds the file that a slightly wrong path means.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from retinue.codebase import STOP_WORDS, Bounds, Codebase, LineMatch, SearchPattern, SearchResult
from retinue.core import InvalidInput, Stop

MAX_WORDS = 6
"""Words of a pattern that are searched for one by one."""
_WORD = re.compile(r"[^\W\d]\w{2,}")
_COMMON = STOP_WORDS | {"func", "method", "methods", "defined", "call", "calls", "called"}
"""Words that say nothing about what is searched for."""


@dataclass(frozen=True, slots=True)
class LenientSearch:
    """Searches a codebase below some paths and in files that match some globs."""

    codebase: Codebase
    stop: Stop
    below: Sequence[str] = ()
    globs: Sequence[str] = ()
    bounds: Bounds | None = None

    def find(self, text: str) -> tuple[SearchResult, str]:
        """Return the matches of a regular expression, else of less and less of it, and a note.

        The note is empty if the pattern itself matches.
        """
        pattern, note = _first_pattern(text)
        found = self._grep(pattern)
        if found.matches:
            return found, note
        if not pattern.ignore_case:
            any_case = self._grep(replace(pattern, ignore_case=True))
            if any_case.matches:
                return any_case, "nothing matches in this case; these lines match in another"
        words = _words(text)
        if len(words) > 1:
            joined = self._grep(SearchPattern(r"[\W_]*".join(map(re.escape, words)), ignore_case=True))
            if joined.matches:
                return joined, "the pattern itself matches nothing; these lines have its words together"
        return self._rarest_word(words, found, note)

    def _rarest_word(
        self, words: Sequence[str], nothing: SearchResult, note: str
    ) -> tuple[SearchResult, str]:
        """Return the lines with all words in any order, else the lines with the rarest word."""
        by_word = {word: self._grep(SearchPattern(word, fixed=True, ignore_case=True)) for word in words}
        present = {word: found for word, found in by_word.items() if found.matches}
        if not present:
            return nothing, note
        rarest = min(present, key=lambda word: _count(present[word]))
        found = present[rarest]
        with_all = tuple(match for match in found.matches if _has_all(match, words))
        if len(words) > 1 and with_all:
            return replace(found, matches=with_all), "these lines have all its words, in another order"
        if len(words) == 1:
            return found, f"the pattern itself matches nothing; these lines have `{rarest}`"
        absent = [word for word in words if word not in present]
        gone = f"; nowhere: {', '.join(absent)}" if absent else ""
        return found, f"no line has all its words; these have `{rarest}`, the rarest of them{gone}"

    def _grep(self, pattern: SearchPattern) -> SearchResult:
        return self.codebase.grep(pattern, self.stop, below=self.below, globs=self.globs, bounds=self.bounds)


def near_files(codebase: Codebase, path: str, stop: Stop) -> list[str]:
    """Return the files that a wrong path can mean: those with its name and most of its folders."""
    wanted = [part.lower() for part in reversed(PurePosixPath(path.replace("\\", "/").strip()).parts)]
    if not wanted or any(mark in wanted[0] for mark in "*?[/"):
        return []
    shared: dict[str, int] = {}
    for entry in codebase.glob([f"*{PurePosixPath(wanted[0]).suffix}"], stop).entries:
        parts = [part.lower() for part in reversed(PurePosixPath(entry.path).parts)]
        same = list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(wanted, parts, strict=False)))
        if same:
            shared[entry.path] = len(same)
    return sorted(one for one, length in shared.items() if length == max(shared.values()))


def _first_pattern(text: str) -> tuple[SearchPattern, str]:
    """Return the pattern to search for, and a note if the text is not a regular expression.

    Ignores case unless the text has capital letters.
    """
    ignore_case = text == text.lower()
    pattern = SearchPattern(text, ignore_case=ignore_case)
    try:
        pattern.regex()
    except InvalidInput:
        plain = SearchPattern(text, fixed=True, ignore_case=ignore_case)
        return plain, "Not a regular expression: taken as text."
    return pattern, ""


def _words(text: str) -> list[str]:
    """Return the distinct words that say what is searched for, in the order of the text."""
    plain = re.sub(r"\\[a-zA-Z]", " ", text)  # the b of \b is no word
    words = dict.fromkeys(word for word in _WORD.findall(plain) if word.lower() not in _COMMON)
    return list(words)[:MAX_WORDS]


def _has_all(match: LineMatch, words: Sequence[str]) -> bool:
    line = match.text.lower()
    return all(word.lower() in line for word in words)


def _count(found: SearchResult) -> int:
    return len(found.matches) + found.omitted.over_limit
