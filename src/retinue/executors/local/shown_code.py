"""Finds lines, names and definitions in the code that a model was shown, and names, quotes and shortens it.

Knows nothing of questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from retinue.core import estimate_tokens
from retinue.tools import CodeExcerpt, word_coverage

MIN_EXCERPT_LINES = 8
NEAREST = "The search found these places, which nothing confirms:"
CHOSEN = " (the model chose this line)"
MAX_NEAREST = 6
NEAR_LINES = 12
"""How many lines before and after the cited one are shown when the model is asked whether they answer."""
CLOSE_LINES = 4
"""How many lines from a number a word of the question may be."""
QUOTED_LINES = 17
"""How many lines around the cited one are quoted below an answer."""
MAX_OTHERS = 2
CODE_HEADING = "Code that a search found for this task:"
MIN_QUOTE_CHARS = 6
MIN_SIMILAR, MIN_SIMILAR_CHARS = 0.85, 20
"""How similar a line must be to one that a model copies with a slip, and how long."""

_ACTION = re.compile(
    r"^(?!\s*(?:#\[|@|#include|import\b|from\b|use\b|.*\brequire\()).*(?:\w\s*\(|\b(?:if|for|while|return|match|switch|case|raise|throw)\b)"
)
COMMENT = re.compile(r"^\s*(?:#|//|/?\*|\"\"\"|--)")
_DEFINED = (
    r"(?:(?<![\w.]){name}\b[^=\n]{{0,60}}(?<![!<>])(?::=|=>?)\s*(?=[^=>])"
    + r"|#\s*define[ \t]+{name}[ \t]).*(?:{holds})"
)
NUMBER_IN_CODE = r"(?<![\w.\\])\d[\w.]*(?![\w.\\])"
"""A number that is no part of a name, nor of a text such as `"0\\r\\n"`."""
NO_VALUE = re.compile(r"[-+]=?\s*1\b(?![.\w])|\b(?:e\.g\.|for example)[^)\n]*", re.IGNORECASE)
"""Counts up or down, or gives an example: that is no value."""
_ZERO_OR_ONE = re.compile(r"[01](?:\.0*)?")
_SPACE = re.compile(r"\s+")
_QUOTATION = re.compile(r"[\"'`]")
_LINE_IN_WORDS = re.compile(r"\blines? (\d{1,7})\b", re.IGNORECASE)
_LINE_NUMBER = re.compile(r"^\s*\d+\s*:\s?")


@dataclass(frozen=True, slots=True)
class ShownExcerpts:
    """The code that a model was shown, looked up by place."""

    excerpts: Sequence[CodeExcerpt]

    def around(self, place: str) -> list[CodeExcerpt]:
        """Return the excerpts that contain a place, first those of the definition at it."""
        found = [excerpt for excerpt in self.excerpts if has_place([excerpt], place)]
        return sorted(found, key=lambda excerpt: excerpt.place != place)

    def text_around(self, place: str) -> str:
        """Return the excerpts that contain a place, as a model sees them."""
        return "\n".join(map(str, self.around(place)))

    def line_at(self, place: str) -> str:
        """Return the line at a place."""
        path, line = split_place(place)
        return self._lines_of(path).get(line, "")

    def symbol_at(self, place: str) -> str:
        """Return the name of the definition that a place is in, or an empty string."""
        path, line = split_place(place)
        names = (excerpt.symbol_at(line) for excerpt in self.excerpts if excerpt.path == path)
        return next(filter(None, names), "")

    def comment_above(self, place: str) -> list[str]:
        """Return the lines of the comment right above a place."""
        path, line = split_place(place)
        lines = self._lines_of(path)
        found: list[str] = []
        while (text := lines.get(line - 1)) is not None and COMMENT.match(text):
            found.append(text)
            line -= 1
        return found

    def lines_near(self, place: str) -> list[str]:
        """Return the lines around a place.

        A line that is not indented stands alone, as a constant among others: only it counts.
        """
        path, line = split_place(place)
        reach = CLOSE_LINES if self.line_at(place)[:1].isspace() else 0
        return [text for number, text in self._lines_of(path).items() if abs(number - line) <= reach]

    def names_and_lines_near(self, place: str) -> str:
        """Return the names of a place's file and definition, the lines around it, and its comment."""
        return "\n".join([place, self.symbol_at(place), *self.lines_near(place), *self.comment_above(place)])

    def line_with_number(self, number: str, question: str, excerpts: Sequence[CodeExcerpt]) -> str | None:
        """Return the place of the line of some excerpts that has a number, with most of a question nearby."""
        found = (
            place_at(excerpt, line)
            for excerpt in excerpts
            for line, text in excerpt.lines
            if has_word(number, NO_VALUE.sub(" ", text))
        )
        near = self.names_and_lines_near
        return max(found, key=lambda place: word_coverage(question, near(place)), default=None)

    def about(self, place: str) -> str:
        """Return all that says what the code at a place is about: also the lines of its definition."""
        told = [self.names_and_lines_near(place)]
        for excerpt in self.around(place):
            if excerpt.symbol_at(split_place(place)[1]):
                told += [text for number, text in excerpt.lines if number <= excerpt.end]
        return "\n".join(told)

    def text_of_file(self, place: str) -> str:
        """Return what was shown of the file of a place, in lower case."""
        path, _ = split_place(place)
        return "\n".join(str(excerpt) for excerpt in self.excerpts if excerpt.path == path).casefold()

    def _lines_of(self, path: str) -> dict[int, str]:
        return {number: text for one in self.excerpts if one.path == path for number, text in one.lines}


def place_of_line(quote: str, excerpts: Sequence[CodeExcerpt]) -> str | None:
    """Return the place of the line that the model copied: the longest one of several, or a similar one."""
    wanted = plain_line(_LINE_NUMBER.sub("", quote))
    if len(wanted) < MIN_QUOTE_CHARS:
        return None
    lines = [
        (plain_line(line), place_at(excerpt, number))
        for excerpt in excerpts
        for number, line in excerpt.lines
    ]
    if whole := [place for plain, place in lines if wanted in plain]:
        return whole[0]
    joined = [(len(plain), place) for plain, place in lines if plain in wanted]
    length, place = max(joined, key=lambda one: one[0], default=(0, None))
    if length >= MIN_QUOTE_CHARS:
        return place
    if len(wanted) < MIN_SIMILAR_CHARS:
        return None
    similar = [(SequenceMatcher(None, plain, wanted).ratio(), place) for plain, place in lines]
    ratio, place = max(similar, key=lambda one: one[0], default=(0.0, None))
    return place if ratio >= MIN_SIMILAR else None


def place_by_number(answer: str, excerpts: Sequence[CodeExcerpt]) -> str | None:
    """Return the place of the line that an answer names by its number, as the model saw it."""
    for found in _LINE_IN_WORDS.finditer(answer):
        for excerpt in excerpts:
            if any(number == int(found[1]) for number, _ in excerpt.lines):
                return place_at(excerpt, int(found[1]))
    return None


def definition_of(
    names: Sequence[str], excerpts: Sequence[CodeExcerpt], holds: str
) -> tuple[str, str] | None:
    """Return the place and the text of a shown line that gives one of these names a value.

    The value must match the regular expression `holds`.
    """
    for name in names:
        pattern = re.compile(_DEFINED.format(name=re.escape(name), holds=holds))
        for excerpt in excerpts:
            for number, line in excerpt.lines:
                if pattern.search(line):
                    return place_at(excerpt, number), line.strip()
    return None


def line_with_names(names: Sequence[str], excerpts: Sequence[CodeExcerpt]) -> str | None:
    """Return the place of the line that has most of these names; None if no line has one."""
    counts = {
        place_at(excerpt, number): sum(has_word(name, text) for name in names)
        for excerpt in excerpts
        for number, text in excerpt.lines
    }
    best = max(counts, key=lambda place: counts[place], default=None)
    return best if best and counts[best] else None


def number_line(values: Sequence[CodeExcerpt]) -> tuple[str, str] | None:
    """Return the place and the text of the first line with a number; None if there is none or they differ."""
    lines = [(one.place, one.first_line[1].strip()) for one in values]
    numbers = {place: re.findall(NUMBER_IN_CODE, line) for place, line in lines}
    found = [(place, line) for place, line in lines if numbers[place]]
    return found[0] if len({tuple(numbers[place]) for place, _ in found}) == 1 else None


def has_one_number(line: str) -> bool:
    """Return whether a line has one number, other than 0 and 1, which then answers "how many"."""
    numbers = re.findall(NUMBER_IN_CODE, NO_VALUE.sub(" ", line))
    return len(numbers) == 1 and not _ZERO_OR_ONE.fullmatch(numbers[0])


def acts(excerpt: CodeExcerpt, line: int) -> bool:
    """Return whether the definition that a line belongs to does something, and not only declares it."""
    first = excerpt.inside or excerpt.line
    inside = first <= line <= excerpt.end
    return any(
        _ACTION.search(text)
        for number, text in excerpt.lines
        if not COMMENT.match(text)
        and (number != first or excerpt.end == first)
        and (not inside or first <= number <= excerpt.end)
    )


def split_place(place: str) -> tuple[str, int]:
    """Return the path and the line of a place."""
    path, _, line = place.rpartition(":")
    return path, int(line)


def place_at(excerpt: CodeExcerpt, line: int) -> str:
    return f"{excerpt.path}:{line}"


def last_name(excerpt: CodeExcerpt) -> str:
    """Return the name of a definition without the class or module that it belongs to."""
    return excerpt.symbol.rpartition(".")[2]


def text_of(excerpts: Sequence[CodeExcerpt]) -> str:
    """Return the lines of some excerpts, without their numbers."""
    return "\n".join(text for excerpt in excerpts for _, text in excerpt.lines)


def has_word(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def has_name(name: str, folded: str) -> bool:
    """Return whether a text, in lower case, contains a name of an answer."""
    return name.casefold().removesuffix("()") in folded


def plain_line(text: str) -> str:
    """Return a text without differences that a model makes when it copies a line into JSON."""
    return _SPACE.sub(" ", _QUOTATION.sub("", text)).strip().casefold()


def task_with_code(task: str, excerpts: Sequence[CodeExcerpt]) -> str:
    """Return the task, followed by the code that was found for it."""
    if not excerpts:
        return task
    return "\n\n".join([task, CODE_HEADING, *map(str, excerpts)])


def nearest_places(excerpts: Sequence[CodeExcerpt], chosen: Mapping[str, str] | None = None) -> str:
    """List the places that our search found, each with a line; empty if it found none.

    The lines that the model chose (`chosen`, by place) come first.
    """
    lines = dict(chosen or {})
    for excerpt in excerpts[:MAX_NEAREST]:
        number, text = excerpt.first_line
        lines.setdefault(place_at(excerpt, number), text)
    found = [
        f"- {place}: `{' '.join(text.split())}`{CHOSEN if chosen and place in chosen else ''}"
        for place, text in lines.items()
    ]
    return "\n".join([NEAREST, *found]) if found else ""


def quoted_lines(place: str, shown: Sequence[CodeExcerpt]) -> CodeExcerpt:
    """Return the shown lines around a place. If few stand before it, more follow it."""
    path, cited = split_place(place)
    near = {line for excerpt in shown if excerpt.path == path for line in excerpt.lines}
    lines = sorted(line for line in near if abs(line[0] - cited) < QUOTED_LINES)
    before = sum(line[0] < cited for line in lines)
    first = max(0, min(before - QUOTED_LINES // 2, len(lines) - QUOTED_LINES))
    return CodeExcerpt(path, cited, tuple(lines[first : first + QUOTED_LINES]))


def fit_quotes(quotes: Sequence[CodeExcerpt], tokens: int) -> tuple[CodeExcerpt, ...]:
    """Join the quotes of each file, with as many lines around the own one of each as fit into `tokens`."""
    joined: tuple[CodeExcerpt, ...] = ()
    for most in range(QUOTED_LINES, 0, -2):
        joined = _joined_by_file([_shortened(quote, most) for quote in quotes])
        if sum(estimate_tokens(str(excerpt)) for excerpt in joined) <= tokens:
            break
    return joined


def _joined_by_file(quotes: Sequence[CodeExcerpt]) -> tuple[CodeExcerpt, ...]:
    files: dict[str, dict[int, str]] = {}
    for quote in quotes:
        files.setdefault(quote.path, {}).update(quote.lines)
    return tuple(CodeExcerpt(path, min(lines), tuple(sorted(lines.items()))) for path, lines in files.items())


def lines_around(place: str, shown: Sequence[CodeExcerpt]) -> Iterator[CodeExcerpt]:
    """Yield the shown lines around a place, up to `NEAR_LINES` before and after it.

    An excerpt that contains the place then is for its line.
    """
    path, line = split_place(place)
    first, last = line - NEAR_LINES, line + NEAR_LINES
    for excerpt in shown:
        near = tuple(shown for shown in excerpt.lines if first <= shown[0] <= last)
        if excerpt.path == path and near:
            yield replace(excerpt, lines=near, line=line if has_place([excerpt], place) else excerpt.line)


def has_place(excerpts: Sequence[CodeExcerpt], place: str) -> bool:
    """Return whether a line is in one of some excerpts."""
    path, line = split_place(place)
    return any(
        excerpt.path == path and any(number == line for number, _ in excerpt.lines) for excerpt in excerpts
    )


def is_gapless(excerpt: CodeExcerpt) -> bool:
    return excerpt.lines[-1][0] - excerpt.lines[0][0] + 1 == len(excerpt.lines)


def named_place(excerpt: CodeExcerpt) -> str:
    """Return the place of some code, with the name of its definition."""
    return f"{excerpt.place} ({excerpt.symbol})" if excerpt.symbol else excerpt.place


def may_also_be(others: Sequence[CodeExcerpt]) -> str:
    """Name the first of some other definitions. Each is named once, by its likeliest code."""
    each: dict[str, CodeExcerpt] = {}
    for one in others:
        each.setdefault(one.definition, one)
    named = " or ".join(map(named_place, list(each.values())[:MAX_OTHERS]))
    return f"It may also be {named}." if named else ""


def fit_excerpts(excerpts: Sequence[CodeExcerpt], tokens: int) -> tuple[CodeExcerpt, ...]:
    """Shorten the excerpts until they fit into `tokens`. At the end, leave out the last ones.

    Each line is in one excerpt only. The line that an excerpt is for is shown.
    """
    fitting = list(_without_repeats(excerpts))
    lines = max((len(excerpt.lines) for excerpt in excerpts), default=0)
    while fitting and sum(estimate_tokens(str(excerpt)) for excerpt in fitting) > tokens:
        if lines > MIN_EXCERPT_LINES:
            lines -= 2
            fitting = list(_without_repeats([_shortened(excerpt, lines) for excerpt in excerpts]))
        else:
            fitting.pop()
    return tuple(fitting)


def _without_repeats(excerpts: Sequence[CodeExcerpt]) -> Iterator[CodeExcerpt]:
    """Yield the excerpts without the lines that an earlier one has."""
    known: dict[str, set[int]] = {}
    for excerpt in excerpts:
        shown = known.setdefault(excerpt.path, set())
        if lines := tuple(one for one in excerpt.lines if one[0] not in shown):
            shown.update(number for number, _ in lines)
            yield replace(excerpt, lines=lines)


def _shortened(excerpt: CodeExcerpt, most: int) -> CodeExcerpt:
    """Return the first lines of an excerpt, or as many around its own line if that is further down."""
    numbers = [number for number, _ in excerpt.lines]
    own = numbers.index(excerpt.line) if excerpt.line in numbers else 0
    first = max(0, min(own - most // 2, len(numbers) - most))
    return replace(excerpt, lines=excerpt.lines[first : first + most])
