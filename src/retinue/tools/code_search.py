"""Finds the code that answers a question, without a model: excerpts of the best definitions, and value lines.

An agent on a small model starts from these excerpts, because choosing and reading places is what such models
do worst. Also tells which words of a question occur nowhere in the project's own code.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from retinue.codebase import (
    Bounds,
    Codebase,
    FileEntry,
    Located,
    Locator,
    Place,
    PlaceDefinition,
    SearchPattern,
    file_category,
    parse_question,
)
from retinue.core import (
    UNMETERED,
    BudgetKind,
    InvalidInput,
    LimitExceeded,
    PathDenied,
    PathMissing,
    Redactor,
    Spending,
    Stop,
    Stopped,
    clip,
    run_in_thread,
)
from retinue.tools.definition_order import (
    LINES_ABOVE,
    code_first,
    code_first_definitions,
    extent_around,
    extents_of,
    shares_of_words,
    stems_of,
)
from retinue.tools.file_tools import MAX_LINE_CHARS, RedactedLines
from retinue.tools.question_words import (
    NAME_LIKE,
    WHAT_HAPPENS,
    any_form,
    asking_clause,
    content_words,
    is_everyday,
    is_name,
    is_yes_or_no,
)
from retinue.tools.seen_code import SeenCode

MAX_SECONDS = 8.0
"""Limit for one search."""
MAX_RANKED = 24
"""Places of which the excerpts are chosen."""
MIN_LINES = 14
"""A short definition is shown with the lines that follow it, up to so many."""
MIN_NEW_LINES = 3
"""A definition with fewer lines that are not shown yet is left out."""
BLOCK_LINES = 14
"""How many lines of a long definition are shown as one block."""
VALUE_FILES = 10
"""How many of the best files are searched for lines that hold a value."""
MAX_VALUE_LINES = 5
LINES_BESIDE = 1
"""How many lines before and after one with a value are shown. With one, a model says more surely that the
right line answers: its chance is 0.61 instead of 0.52 for 11 right lines, and as before for 57 others."""
PASSAGE_LINES = 8
"""How many lines of the documentation are shown beside the code."""
MAX_NAMES = 8
"""How many names are followed to a value."""
VALUE_BOUNDS = Bounds(max_files=400, max_matches=60, max_matches_per_file=12, max_line_chars=MAX_LINE_CHARS)
WORD_BOUNDS = Bounds(max_files=400, max_matches=400, max_matches_per_file=1, max_line_chars=200)

_ASKS_FOR_VALUE = re.compile(
    r"\bhow (?:many|much|long|often|large|big|old|far|deep|wide)\b"
    rf"|^(?!\W*(?:where|how|who|why|{WHAT_HAPPENS})\b)"
    r".*\b(?:what|which)\b",
    re.IGNORECASE,
)
_HOLDS_VALUE = re.compile(r"(?:=|:|=>|,|\(|\breturn)\s*[*&]?(?:[-+]?\.?\d|[\"'`]|\w+(?:\.\w+)*\s*\*\s*\d)")
_ASSIGNS = re.compile(r"[\w\])]\s*(?::[^=:]+)?(?::=|=)(?!=)\s*\S|^\s*[\"']?[\w.-]+[\"']?\s*:\s*\S")
_ASSIGNED = (
    r"(?:define[ \t]+(?:{names})[ \t]|\b(?:{names})\b(?:[^=<>!()]{{0,60}}=|[^=:(\w]{{0,3}}:))"
    r"[ \t]*([\w\"'`(+.-].*)"
)
"""A line that gives a name something."""
_IS_VALUE = re.compile(r"(?<!\w)\d|[\"'`]")
_IS_OTHER_NAME = re.compile(r"(?:\w+\.)*([A-Za-z_]\w{3,})[,;)]?$")
_COMMENT = re.compile(r"^\s*(?:#(?!define\b)|//|/?\*|\"\"\"|--)")
_IMPORT = re.compile(
    r"\s*(?:(?:import|from|use|pub use|mod|pub mod|package|#include|export \*|export \{|module\.exports)\b.*"
    r"|(?:const|let|var|[\w.]+) .*\brequire\(.*|[\w$.\"' ]+(?: as [\w$]+)?[,;]?|[\[\](){},;]*)$"
)
_HIDDEN = re.compile(r"(?:^|/)\.\w")
"""Hidden files and folders: the settings of CI and of other tools."""
_OWN_CATEGORIES = ("own", "package", "example")
"""Examples count: a folder named `benchmark` is among them, and may hold the program itself."""
_NO_LETTER = re.compile(r"[\W_]+")
_WITHOUT = re.compile(r"\bwithout\b[^,.;?]*", re.IGNORECASE)
_EXAMPLE = re.compile(
    r",?\s(?:like|such as|for example|for instance|e\.g\.)[\s,]\s*[`\"']?[^\s,;?]+", re.IGNORECASE
)
_KEY = re.compile(
    r"(?:ctrl|control|alt|shift|cmd|command)[+-](?:\w|f\d+|tab|enter|escape|esc|delete|del|space)$",
    re.IGNORECASE,
)
_INLINE_TESTS = re.compile(r"\s*#\[cfg\(.*\btest\b")


@dataclass(frozen=True, slots=True)
class CodeExcerpt:
    """Some lines of a file around a definition. Lines may be left out in between."""

    path: str
    line: int
    """The line of the definition."""
    lines: tuple[tuple[int, str], ...]
    """Each line with its number."""
    symbol: str = ""
    """The name of the definition; empty if it has none."""
    end: int = 0
    """The last line of the definition, or of a part of it if it has more than 3,000 bytes."""
    inside: int = 0
    """The line of the definition if this is a block further down in it; `line` is then the block's."""

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def definition(self) -> str:
        """The place of the definition that the lines belong to."""
        return f"{self.path}:{self.inside or self.line}"

    @property
    def first_line(self) -> tuple[int, str]:
        """The line of the definition with its number, or the first one that is shown and not blank."""
        said = [numbered for numbered in self.lines if numbered[1].strip()] or list(self.lines)
        return next((numbered for numbered in said if numbered[0] == self.line), said[0])

    def symbol_at(self, line: int) -> str:
        """Return the name of the definition that a line belongs to, or an empty string."""
        return self.symbol if (self.inside or self.line) <= line <= self.end else ""

    def __str__(self) -> str:
        shown = [f"{self.path}:"]
        last = self.lines[0][0] - 1 if self.lines else 0
        for number, text in self.lines:
            if number != last + 1:
                shown.append("...")
            shown.append(f"{number}: {text}")
            last = number
        return "\n".join(shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSearch:
    """Searches a codebase for an agent, within its budget."""

    codebase: Codebase
    locator: Locator
    redactor: Redactor
    spending: Spending = UNMETERED
    seen: SeenCode = field(default_factory=SeenCode)
    """What the agent has seen. The caller adds the excerpts that it shows."""

    @property
    def project(self) -> str:
        """The name of the folder that is searched."""
        return self.codebase.roots[0].path.name

    async def find(
        self, question: str, sizes: Sequence[int], skip: Collection[str] = (), words: str = ""
    ) -> tuple[CodeExcerpt, ...]:
        """Return the best excerpts, one for each of the sizes, which limit their lines.

        A question that asks for a value also gets lines that may hold it. `words` are searched for instead of
        the question's own. Leaves out the places in `skip`. Returns nothing if the search finds nothing, or
        fails.
        """

        wants_values = _ASKS_FOR_VALUE.search(asking_clause(question)) is not None
        text = words or question

        def search(stop: Stop) -> tuple[CodeExcerpt, ...]:
            try:
                located = self.locator.locate(text, MAX_RANKED, stop)
                visible = [place for place in located.places if not _HIDDEN.search(place.path)]
                found = replace(located, places=tuple(visible) or located.places)
                return tuple(self._excerpts(found, text, sizes, skip, stop, wants_values=wants_values))
            except (InvalidInput, Stopped):
                return ()

        return await run_in_thread(search, MAX_SECONDS)

    async def widened(self, excerpt: CodeExcerpt, most: int) -> CodeExcerpt:
        """Return an excerpt with all lines of its definition, or the first `most` and those that it has.

        A block gets the lines before and after it.
        """
        known = dict(excerpt.lines)
        first = min(excerpt.line, excerpt.lines[0][0])
        if excerpt.inside:
            first = max(excerpt.inside, excerpt.line - (most - len(known)) // 2)
        numbers = range(first, min(excerpt.end, first + most - 1) + 1)
        if all(number in known for number in numbers):
            return excerpt

        def read(stop: Stop) -> CodeExcerpt:
            try:
                entry = self._entry(excerpt, stop)
                with self.codebase.opener(stop) as opener:
                    found = _excerpt(entry, excerpt.line, numbers, RedactedLines(opener, self.redactor), {})
                    if found is not None:
                        self._charge(found)
                        known.update(found.lines)
            except (InvalidInput, PathDenied, PathMissing, LimitExceeded, Stopped):
                return excerpt
            return replace(excerpt, lines=tuple(sorted(known.items())))

        return await run_in_thread(read, MAX_SECONDS)

    async def blocks_inside(
        self, excerpts: Sequence[CodeExcerpt], question: str, most: int
    ) -> tuple[CodeExcerpt, ...]:
        """Return the blocks with most words of a question in the definitions of some excerpts.

        An excerpt shows only a part of a long definition. Leaves out lines that the agent has seen.
        """

        def read(stop: Stop) -> tuple[CodeExcerpt, ...]:
            blocks: list[CodeExcerpt] = []
            with suppress(Stopped), self.codebase.opener(stop) as opener:
                redacted = RedactedLines(opener, self.redactor)
                for excerpt in {one.definition: one for one in excerpts}.values():
                    with suppress(InvalidInput, PathDenied, PathMissing, LimitExceeded):
                        blocks += self._blocks(excerpt, redacted, stop)
            shares = shares_of_words(question, [stems_of(f"{one.symbol}\n{one}") for one in blocks])
            ranked = sorted(zip(shares, blocks, strict=True), key=lambda pair: -pair[0])
            best: list[CodeExcerpt] = []
            with suppress(LimitExceeded):
                for share, block in ranked[:most]:
                    if share:
                        self._charge(block)
                        best.append(block)
            return tuple(best)

        return await run_in_thread(read, MAX_SECONDS)

    def _blocks(self, excerpt: CodeExcerpt, redacted: RedactedLines, stop: Stop) -> Iterator[CodeExcerpt]:
        """Yield the blocks of an excerpt's definition that were not seen, each below its first line."""
        first = excerpt.inside or excerpt.line
        unseen = [
            number
            for number in range(first + 1, excerpt.end + 1)
            if not self.seen.has_line(excerpt.path, number)
        ]
        entry: FileEntry | None = None
        for at in range(min(unseen, default=excerpt.end), excerpt.end + 1, BLOCK_LINES):
            numbers = range(at, min(at + BLOCK_LINES, excerpt.end + 1))
            if len(set(numbers) & set(unseen)) < MIN_NEW_LINES:
                continue
            entry = entry or self._entry(excerpt, stop)
            block = _excerpt(entry, first, [first, *numbers], redacted, {})
            told = [number for number, text in block.lines[1:] if text.strip()] if block else []
            if block is not None and len(told) >= MIN_NEW_LINES and not _only_imports(block):
                yield replace(block, line=told[0], symbol=excerpt.symbol, end=excerpt.end, inside=first)

    def _entry(self, excerpt: CodeExcerpt, stop: Stop) -> FileEntry:
        return self.codebase.read(excerpt.path, stop, start=excerpt.line, lines=1).entry

    async def absent_words(self, question: str) -> tuple[str, ...]:
        """Return words of a question that the project's own code does not contain, if they decide it.

        If the question can be answered with yes or no, nothing says that the thing exists: then a name
        decides, such as `SQLite`, or one word of the clause that asks. In any other question a name of that
        clause decides if the code has no other name of the question: who asks how `--hashes` works on macOS
        asks about `--hashes`. Without names, all words that say what is asked for must be absent. Everyday
        words, such as "wrong", never decide it, and neither does what a question wants to do without, or an
        example such as `X_User` in "what happens to a header like X_User?".
        """
        question = _WITHOUT.sub(" ", question)
        if not is_yes_or_no(question):
            question = _EXAMPLE.sub(" ", question)
        occurs = await self._occurrences(question)
        absent = _telling(occurs, question)
        names = tuple(word for word in absent if is_name(word, question))
        asked = content_words(asking_clause(question))
        if is_yes_or_no(question):
            return names or tuple(word for word in absent if word in asked)
        if names := tuple(word for word in names if word in asked):
            return () if any(is_name(word, question) for word in occurs if occurs[word]) else names
        return absent if len(absent) > 1 and not any(occurs.values()) else ()

    async def missing_words(self, question: str) -> tuple[str, ...]:
        """Return all words that say what is asked for and that the project's own code does not contain.

        Neither the name of the project nor an everyday word is one of them.
        """
        return _telling(await self._occurrences(question), question)

    async def _occurrences(self, question: str) -> dict[str, bool]:
        """Return for each word of a question whether the project's own code contains it.

        Leaves out the name of the project. Empty if the search fails.
        """

        def search(stop: Stop) -> dict[str, bool]:
            told = [*content_words(asking_clause(question)), *content_words(question)]
            words = [word for word in dict.fromkeys(told) if not self._is_project(word)]
            try:
                return {word: self._occurs(word, stop) for word in words}
            except (InvalidInput, Stopped):
                return {}

        return await run_in_thread(search, MAX_SECONDS)

    def _is_project(self, word: str) -> bool:
        """Return whether a word is the name of the project: `AcmeClient` for a folder `acme-client`."""
        name, project = (_NO_LETTER.sub("", text).casefold() for text in (word, self.project))
        return name == project

    async def values_of(self, names: Sequence[str]) -> tuple[CodeExcerpt, ...]:
        """Return the lines of the project's own code that give these names a number or a text.

        A name that is given another name is followed to the value of that one.
        """

        def search(stop: Stop) -> tuple[CodeExcerpt, ...]:
            found: list[CodeExcerpt] = []
            with suppress(InvalidInput, Stopped, LimitExceeded), self.codebase.opener(stop) as opener:
                redacted = RedactedLines(opener, self.redactor)
                known: set[str] = set()
                wanted = set(names)
                while wanted and not found and len(known) < MAX_NAMES:
                    known |= wanted
                    assigned = list(self._assigned(sorted(wanted), stop))
                    for entry, line, given in assigned:
                        if _IS_VALUE.search(given):
                            found += self._line_excerpt(entry, line, redacted)
                    others = (_IS_OTHER_NAME.match(given.strip()) for _, _, given in assigned)
                    wanted = {other[1] for other in others if other} - known
            return tuple(found[:MAX_VALUE_LINES])

        return await run_in_thread(search, MAX_SECONDS) if names else ()

    def _assigned(self, names: Sequence[str], stop: Stop) -> Iterator[tuple[FileEntry, int, str]]:
        """Yield each line that gives one of these names something, and what it gives."""
        pattern = _ASSIGNED.format(names="|".join(map(re.escape, names)))
        for match in self.codebase.grep(SearchPattern(pattern), stop, bounds=VALUE_BOUNDS).matches:
            given = re.search(pattern, match.text)
            if (
                given
                and file_category(match.entry.path) in _OWN_CATEGORIES
                and not _COMMENT.match(match.text)
            ):
                yield match.entry, match.line, given[1]

    def _line_excerpt(self, entry: FileEntry, line: int, redacted: RedactedLines) -> list[CodeExcerpt]:
        """Return one line with those beside it as an excerpt; nothing if it may not be shown."""
        try:
            excerpt = _excerpt(entry, line, _with_neighbours(entry, [line], redacted), redacted, {}, least=1)
        except (PathDenied, PathMissing):
            return []
        if excerpt is None:
            return []
        self._charge(excerpt)
        return [excerpt]

    def _occurs(self, word: str, stop: Stop) -> bool:
        """Return whether the project's own code contains a word, in any form and also inside longer words."""
        parts = re.split(r"[\W_]+", word)
        if NAME_LIKE.search(word):
            return self._matches(r"[\W_]?".join(map(re.escape, parts)), stop)
        return all(self._matches(any_form(part), stop) for part in parts if len(part) > 2)

    def _matches(self, regex: str, stop: Stop) -> bool:
        found = self.codebase.grep(SearchPattern(regex, ignore_case=True), stop, bounds=WORD_BOUNDS).matches
        stop.check()
        return any(file_category(match.entry.path) in _OWN_CATEGORIES for match in found)

    def _excerpts(
        self,
        located: Located,
        question: str,
        sizes: Sequence[int],
        skip: Collection[str],
        stop: Stop,
        *,
        wants_values: bool,
    ) -> Iterator[CodeExcerpt]:
        with self.codebase.opener(stop) as opener:
            redacted = RedactedLines(opener, self.redactor)
            shown: dict[str, set[int]] = {}
            values: list[tuple[FileEntry, list[int]]] = []
            if wants_values:
                values = _value_lines(code_first(located.places, question), question, redacted, stop)
            made = 0
            for place, definition in self._without_inline_tests(located.places, question, redacted):
                if made == len(sizes):
                    break
                if f"{place.path}:{definition.line}" in skip:
                    continue
                try:
                    numbers, end = _window(place, definition, redacted, sizes[made])
                    excerpt = _excerpt(place.entry, definition.line, numbers, redacted, shown)
                    if excerpt is None or _only_imports(excerpt):
                        continue
                    excerpt = replace(excerpt, symbol=definition.symbol, end=end)
                    self._charge(excerpt)
                except (PathDenied, PathMissing):
                    continue
                except LimitExceeded:
                    return
                made += 1
                yield excerpt
                if made == 1:
                    yield from _value_excerpts(values, redacted, shown, skip)

    def _without_inline_tests(
        self, ranked: Sequence[Place], question: str, redacted: RedactedLines
    ) -> list[tuple[Place, PlaceDefinition]]:
        """Return the definitions, best first. Tests inside files of code come last, like other tests."""
        found = code_first_definitions(ranked, question, redacted)
        if "test" in question.lower():
            return found

        def is_test(place: Place, line: int) -> bool:
            try:
                lines = redacted.unredacted(place.entry)
                is_marked = place.path.endswith(".rs") and any(
                    map(_INLINE_TESTS.match, lines[max(0, line - 3) : line])
                )
                return is_marked or line >= first_inline_test(place.path, lines)
            except (PathDenied, PathMissing):
                return False

        return sorted(found, key=lambda pair: is_test(pair[0], pair[1].line))

    def _charge(self, excerpt: CodeExcerpt) -> None:
        size = sum(len(line.encode()) + 1 for _, line in excerpt.lines)
        with (
            self.spending.reserve(BudgetKind.FILES, 1) as opened,
            self.spending.reserve(BudgetKind.BYTES, size) as read,
        ):
            opened.settle(1)
            read.settle(size)


def _telling(occurs: Mapping[str, bool], question: str) -> tuple[str, ...]:
    """Return the words that occur nowhere and that are names, or no everyday words.

    Keys are left out: code has many names for `Ctrl-C`.
    """
    return tuple(
        word
        for word, does in occurs.items()
        if not does and not _KEY.match(word) and (is_name(word, question) or not is_everyday(word))
    )


def first_inline_test(path: str, lines: Sequence[str]) -> float:
    """Return the line where the tests inside a Rust file begin; infinity if it has none."""
    if path.endswith(".rs"):
        for number, line in enumerate(lines, 1):
            if _INLINE_TESTS.match(line) and any("mod " in text for text in lines[number - 1 : number + 2]):
                return number
    return math.inf


def _window(
    place: Place, definition: PlaceDefinition, redacted: RedactedLines, size: int
) -> tuple[list[int], int]:
    """Return the numbers of the lines to show, and the last line of the definition.

    Shows the beginning of a definition, and the lines around its best line if that is far.
    """
    whole = redacted.unredacted(place.entry)
    first, last = extent_around(extents_of(place.path, whole), definition.line, len(whole))
    first = max(first, definition.line - LINES_ABOVE)
    end = max(last, definition.focus)  # chunks end where nested definitions begin
    last = min(max(end, definition.line + MIN_LINES, definition.focus + size // 2), len(whole))
    if definition.focus < first + size:
        return list(range(first, min(last, first + size - 1) + 1)), end
    head = range(definition.line, definition.line + 1)
    around = max(head.stop, definition.focus - size // 2)
    return [*head, *range(around, min(last, around + size - len(head) - 1) + 1)], end


def _excerpt(
    entry: FileEntry,
    line: int,
    numbers: Sequence[int],
    redacted: RedactedLines,
    shown: dict[str, set[int]],
    least: int = MIN_NEW_LINES,
) -> CodeExcerpt | None:
    """Return an excerpt of some lines; None if too few of them are new, or if the file is too short by now.

    It also has the lines that are shown elsewhere: a model looks at each excerpt alone.
    """
    known = shown.setdefault(entry.path, set())
    if len(set(numbers) - known) < min(least, len(numbers)):
        return None
    known.update(numbers)
    lines: list[tuple[int, str]] = []
    for _, group in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        texts = redacted.between(entry, run[0], run[-1])
        lines += [(number, clip(text, MAX_LINE_CHARS)) for number, text in zip(run, texts, strict=False)]
    return CodeExcerpt(entry.path, line, tuple(lines)) if lines else None


def _only_imports(excerpt: CodeExcerpt) -> bool:
    """Return whether an excerpt only imports or lists names, as the index of a package does."""
    return all(_IMPORT.match(line) or _COMMENT.match(line) for _, line in excerpt.lines)


def _value_excerpts(
    values: Sequence[tuple[FileEntry, list[int]]],
    redacted: RedactedLines,
    shown: dict[str, set[int]],
    skip: Collection[str],
) -> Iterator[CodeExcerpt]:
    """Yield the lines that were not shown yet, by file, with those beside them.

    Each excerpt has the place of its first such line.
    """
    for entry, numbers in values:
        new = [number for number in numbers if number not in shown.get(entry.path, ())]
        if not new:
            continue
        excerpt = _excerpt(entry, new[0], _with_neighbours(entry, new, redacted), redacted, shown, least=1)
        if excerpt is not None and excerpt.place not in skip:
            yield excerpt


def _with_neighbours(entry: FileEntry, numbers: Sequence[int], redacted: RedactedLines) -> list[int]:
    """Return the numbers of some lines and of those beside them, which say what the lines are for."""
    last = len(redacted.unredacted(entry))
    beside = {near for number in numbers for near in range(number - LINES_BESIDE, number + LINES_BESIDE + 1)}
    return sorted(number for number in beside if 1 <= number <= last)


def _value_lines(
    places: Sequence[Place], question: str, redacted: RedactedLines, stop: Stop
) -> list[tuple[FileEntry, list[int]]]:
    """Return the lines of the best files that may hold the value a question asks for, by file."""
    terms = [
        term
        for term in parse_question(question).terms
        if len(term) > 2 and term not in ("man", "numb", "valu", "default")
    ]
    found: list[tuple[frozenset[str], float, FileEntry, int]] = []
    files = 0
    for place in places:
        if place.kind in ("test", "docs") or files >= VALUE_FILES:
            continue
        stop.check()
        try:
            lines = redacted.unredacted(place.entry)
        except (PathDenied, PathMissing):
            continue
        files += 1
        for number, line in enumerate(lines, 1):
            if not _HOLDS_VALUE.search(line) or _COMMENT.match(line) or len(line) > MAX_LINE_CHARS:
                continue
            folded = line.lower()
            above = " ".join(
                each for each in lines[max(0, number - 3) : number - 1] if _COMMENT.match(each)
            ).lower()
            named = frozenset(term for term in terms if term in folded)
            if named:
                bonus = 0.5 * sum(term in above for term in terms if term not in named)
                found.append((named, bonus + (0.5 if _ASSIGNS.search(line) else 0.0), place.entry, number))
    counts = {term: sum(term in named for named, *_ in found) for term in terms}
    weights = {term: 1.0 / math.log2(2 + counts[term]) for term in terms}
    ranked = sorted(
        found, key=lambda one: -(sum(weights[term] for term in one[0]) + 0.3 * one[1] + 0.15 * len(one[0]))
    )
    best = [one for one in ranked if len(one[0]) > 1 or counts[next(iter(one[0]))] <= MAX_VALUE_LINES]
    by_file: dict[FileEntry, list[int]] = {}
    for _, _, entry, number in best[:MAX_VALUE_LINES]:
        by_file.setdefault(entry, []).append(number)
    return [(entry, sorted(numbers)) for entry, numbers in by_file.items()]
