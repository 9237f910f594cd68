"""Judges whether a project has something: which words of the question occur nowhere in its own code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from retinue.answers.question import code_names, marked_names, specific_terms
from retinue.answers.role_context import RoleContext
from retinue.answers.source_files import MAX_LINE_CHARS, PROSE_FILES
from retinue.codebase import (
    Bounds,
    FileEntry,
    LineMatch,
    Place,
    SearchPattern,
    best_definitions,
    file_category,
    file_kind,
    has_searchable_text,
)
from retinue.core import Stop, counted

MAX_WORDS = 5
WORD_BOUNDS = Bounds(max_files=2_000, max_matches=2_000, max_matches_per_file=1, max_line_chars=200)
MAX_NEAREST, MAX_MENTIONS = 3, 2
NEAR_LINES = 80
"""Words this close together count as being about the same thing."""
MAX_COMPARED_FILES = 20
"""How many files that have all the words are compared line by line."""
MENTIONED = "mentions it"
"""The reason for a place in the documentation that has a word which the code lacks."""
TESTED = "a test"
"""The reason for a file of tests that has the words of a question for tests."""
_TEST_WORD = re.compile(r"(?i)(?:unit ?)?tests?|specs?")
_ASKS_FOR_TESTS = re.compile(
    r"(?i)\b(?:tests?|specs?)\s+(?:for|of|that|which|about|around|on|covering|with)\b|\b(?:tests|specs)\W*$"
    r"|\b(?:are|is) there (?:an? |any |unit |integration )*(?:tests?|specs?)\b"
)
"""Matches "are there tests for ...?", but not "a way to run a test again"."""
_PARTICLES = frozenset(["off", "on", "out", "away", "back", "over", "again", "go", "get", "itself", "later"])
"""Words that belong to a verb, as in "break off" and "go on later": they say nothing without it."""
SHORT_CHARS = 4
"""A word that is no longer is looked for at the beginning of words alone: `rate`, but not `generate`."""
_ASKED_OF = re.compile(
    r"^\W*does ([\w-]+) (?:\w+ )?(?:have|support|provide|offer|include|come)\b", re.IGNORECASE
)
"""Whom a question asks about. Without an article, this is the project itself: "does gin support ..."."""


@dataclass(frozen=True, slots=True)
class ExistenceVerdict:
    """Whether the project has what a question asks for."""

    is_found: bool
    sentence: str
    nearest: tuple[Place, ...] = ()
    """If it was not found: the places that come nearest, and those of the documentation that mention it."""
    is_sure: bool = True
    """Whether the words were found together, or are certainly absent."""
    files: frozenset[FileEntry] = frozenset()
    """If it is not sure: the files that have all the words. Places in others do not count."""
    absent: tuple[SoughtWord, ...] = ()
    """The words that the code lacks."""

    def is_mentioned(self, text: str) -> bool:
        """Return whether a text has the words that the code lacks."""
        return bool(self.absent) and all(word.pattern.search(text) for word in self.absent)


@dataclass(frozen=True, slots=True)
class SoughtWord:
    """A word of the question, and where it occurs."""

    shown: str
    pattern: re.Pattern[str]
    """Matches the word also inside longer ones, in any casing."""
    is_light: bool
    """Whether the word says little by itself."""
    own: frozenset[FileEntry] = frozenset()
    """Files of the project's own code that have it."""
    is_cut: bool = False
    """Whether the search ended before all files were searched."""
    docs: tuple[LineMatch, ...] = ()
    """The first line of each page of the documentation that has it."""


def judge_existence(context: RoleContext, places: Sequence[Place], stop: Stop) -> ExistenceVerdict:
    """Look for each word of the question in the project's own code, then for all of them together."""
    subject = _subject_words(context)
    asked = [word for word in subject if _TEST_WORD.fullmatch(word.shown)]
    if 0 < len(asked) < len(subject) and _ASKS_FOR_TESTS.search(context.request.question):
        return _judge_tests(context, [word for word in subject if word not in asked], stop)
    words = [_look_for(context, word, stop) for word in subject]
    decisive = [word for word in words if not word.is_light]
    if absent := [word for word in decisive if not word.own and not word.is_cut]:
        return _judge_absent(context, places, decisive, absent, stop)
    names = _listed(_shown(decisive))
    if found := _definitions_with(context, places, words, stop):
        verb = "occur together in" if len(words) > 1 else "names"
        return ExistenceVerdict(True, f"Probably: {_listed(_shown(words))} {verb} {_listed(found)}.")
    if len(words) == 1 and (paths := _paths_with(context, places, words[0])):
        return ExistenceVerdict(True, f"Probably: {names} is in the path of {_listed(paths)}.")
    light = _listed(_shown(word for word in words if word.is_light))
    if light and (found := _definitions_with(context, places, decisive, stop)):
        verb = "occur together in" if len(decisive) > 1 else "names"
        sentence = f"Perhaps: {names} {verb} {_listed(found)}, but not near {light}."
        return ExistenceVerdict(True, sentence, is_sure=False)
    common = frozenset[FileEntry].intersection(*(word.own for word in decisive))
    files = counted(len(common), "file")
    if len(decisive) == 1:
        found = _definitions_with(context, places, decisive, stop, in_name=False)
        where = f"{_listed(found)}" if found else files
        sentence = f"Perhaps: {names} occurs in {where}, but names nothing that was found."
        return ExistenceVerdict(True, sentence, is_sure=False, files=common)
    if common and _have_close_together(context, common, decisive, stop):
        have = "has" if len(common) == 1 else "have"
        sentence = f"Perhaps: no definition holds {names} together, but {files} {have} all of them."
        return ExistenceVerdict(True, sentence, is_sure=False)
    nor = "they are far apart in the files that have all of them" if common else "no file has all of them"
    sentence = f"Probably not: no definition holds {names} together; {nor}."
    return ExistenceVerdict(False, sentence, _nearest(context, places, decisive, stop))


def _judge_absent(
    context: RoleContext,
    places: Sequence[Place],
    words: Sequence[SoughtWord],
    absent: Sequence[SoughtWord],
    stop: Stop,
) -> ExistenceVerdict:
    """Judge a question with words that the code lacks: it may have others that mean the same."""
    present = [word for word in words if word not in absent]
    names, verb = _listed(_shown(absent)), "occurs" if len(absent) == 1 else "occur"
    other = _related_words(context, absent, stop)
    if other and any(
        _definitions_with(context, places, those, stop) for those in ((*present, *other), other)
    ):
        sentence = (
            f"Not by that name: {names} {verb} nowhere in the project's own code, "
            f"but {_listed(_shown(other))} may mean the same."
        )
        return ExistenceVerdict(True, sentence, is_sure=False)
    mentions = _mentions(absent)
    told = f" The documentation has {names}." if mentions else ""
    nearest = _nearest(context, places, present, stop) if present else _other_versions(context, absent, stop)
    another = "" if any(_is_proper(word.shown) for word in absent) else " It may have another name here."
    sentence = f"No: {names} {verb} nowhere in the project's own code.{told}{another}"
    return ExistenceVerdict(False, sentence, (*nearest, *mentions), absent=tuple(absent))


def _judge_tests(context: RoleContext, words: Sequence[SoughtWord], stop: Stop) -> ExistenceVerdict:
    """Judge whether there are tests of something: files of tests that have all of its words."""
    found: dict[FileEntry, LineMatch] = {}
    common: set[FileEntry] | None = None
    for word in words:
        matches = context.scope.codebase.grep(
            SearchPattern(word.pattern.pattern), stop, bounds=WORD_BOUNDS
        ).matches
        stop.check()
        tests = {one.entry: one for one in matches if file_category(one.entry.path) == "test"}
        found = {**tests, **found}
        common = set(tests) if common is None else common & set(tests)
    names = _listed(_shown(words))
    if not common:
        have = "has" if len(words) == 1 else "have all of"
        return ExistenceVerdict(False, f"Probably not: no test {have} {names}.")
    named = {entry: sum(word.pattern.search(entry.path) is not None for word in words) for entry in common}
    best = sorted(common, key=lambda entry: (-named[entry], entry.path))
    places = tuple(Place(entry, found[entry].line, 0.0, (TESTED,), "test") for entry in best[:MAX_NEAREST])
    sure = "Yes" if named[best[0]] else "Probably"
    verb = "is" if len(words) == 1 else "are"
    sentence = f"{sure}: {names} {verb} in {counted(len(common), 'file')} of tests."
    return ExistenceVerdict(True, sentence, places, is_sure=bool(named[best[0]]))


def _is_proper(word: str) -> bool:
    """Return whether a word is the name of something, which has no other name: `XML`, `HTTP/3`, `GraphQL`."""
    return not word.isalpha() or word != word.lower()


def _subject_words(context: RoleContext) -> list[SoughtWord]:
    """Return the words that say what is asked for. Always has at least one that is not light."""
    question = context.question
    marked = marked_names(question.text)
    terms = list(code_names(question) or specific_terms(question))
    terms = [term for term in terms if question.word_by_term.get(term, term) not in _PARTICLES] or terms
    asked_of = _ASKED_OF.match(context.request.question)
    project = asked_of[1].casefold() if asked_of else ""
    words: list[SoughtWord] = []
    for term in terms:
        shown = question.word_by_term.get(term, term)
        longer = [other for other in terms if other != term and term.casefold() in other.casefold()]
        if longer or (shown.casefold() == project and len(terms) > 1):
            continue
        is_light = question.terms.get(term, 1.0) < 1.0
        pattern = _marked_pattern(marked[term]) if term in marked else _word_pattern(term, shown)
        words.append(SoughtWord(shown, re.compile(pattern), is_light))
    if all(word.is_light for word in words):
        words = [replace(word, is_light=False) for word in words]
    return words[:MAX_WORDS]


def _word_pattern(term: str, shown: str) -> str:
    """Return a pattern for a word also inside longer ones; a short one only where a word begins."""
    if term != shown.casefold() and len(term) < SHORT_CHARS:
        term = shown.casefold().removesuffix("s")  # a stem like `rat` would begin too many other words
    if len(term) > SHORT_CHARS:
        return rf"(?i){'_?'.join(map(re.escape, term.replace('_', '')))}"
    spelled = [term.capitalize(), *([] if shown.islower() or shown.isupper() else [shown])]
    inside = "|".join(map(re.escape, dict.fromkeys(spelled)))
    return rf"(?i:(?:^|[^a-z]){re.escape(term)})|{inside}"


_MARKED_PARTS = re.compile(r"([A-Za-z]+)(\W+)(\d*)")


def _marked_pattern(name: str, number: str | None = None) -> str:
    """Return a pattern for the spellings of a name with a mark: `HTTP/3`, `http3`, `HTTP_3`; `C++`."""
    letters, mark, own_number = _MARKED_PARTS.findall(name)[0]
    if not own_number:
        return rf"(?i)(?:^|[^\w]){re.escape(letters + mark)}"
    return rf"(?i){letters}[ /_.-]?{number or own_number}(?:\D|$)"


def _look_for(context: RoleContext, word: SoughtWord, stop: Stop) -> SoughtWord:
    """Return the word with the files that have it."""
    pattern = word.pattern.pattern
    found = context.scope.codebase.grep(SearchPattern(pattern), stop, bounds=WORD_BOUNDS)
    stop.check()
    of_category = {
        match: file_category(match.entry.path)
        for match in found.matches
        if not match.entry.path.rpartition("/")[2].startswith(".")  # such as .gitignore
        and has_searchable_text(match.entry.path)
    }
    own = frozenset(one.entry for one, category in of_category.items() if category in ("own", "package"))
    docs = tuple(
        one
        for one, category in of_category.items()
        if category == "docs" and one.entry.path.endswith(PROSE_FILES)  # not drawings
    )
    is_cut = bool({"files", "matches", "time"} & set(found.omitted.limits))
    return replace(word, own=own, docs=docs, is_cut=is_cut)


def _related_words(context: RoleContext, absent: Sequence[SoughtWord], stop: Stop) -> list[SoughtWord]:
    """Return words of the code that may mean those that are absent, one for each; none if one has none."""
    question, found = context.question, list[SoughtWord]()
    shown = {term: question.word_by_term.get(term, term) for term in question.terms}
    for word in absent:
        related = [term for term, one in question.related_to.items() if shown.get(one.source) == word.shown]
        sought = (SoughtWord(term, re.compile(_word_pattern(term, term)), False) for term in related)
        held = next((one for one in sought if _look_for(context, one, stop).own), None)
        if held is None:
            return []
        found.append(held)
    return found


def _definitions_with(
    context: RoleContext,
    places: Sequence[Place],
    words: Sequence[SoughtWord],
    stop: Stop,
    *,
    in_name: bool = True,
) -> tuple[str, ...]:
    """Return the names of the best definitions that have all the words close together.

    A single word has to be in the name of the definition, unless `in_name` is false.
    """
    found: dict[str, None] = {}
    for place in places:
        source = None
        if place.line and file_category(place.path) in ("own", "package"):
            source = context.sources.open(place.entry, stop)
        if source is None:
            continue
        for line in (place.line, *(one.line for _, one in best_definitions([place]))):
            within = source.definition_around(line)
            if within is None:
                continue
            first, last = within.top or within.line, min(within.end, within.line + NEAR_LINES)
            name = text = within.qualified_name
            if len(words) > 1 or not in_name:
                text = "\n".join((place.path, name, *source.lines[first - 1 : last]))
            if all(word.pattern.search(text) for word in words):
                found[name] = None
    return tuple(found)[:MAX_NEAREST]


def _have_close_together(
    context: RoleContext, files: Iterable[FileEntry], words: Sequence[SoughtWord], stop: Stop
) -> bool:
    """Return whether a file has all the words within a few lines. Lines of minified code do not count."""
    for entry in sorted(files, key=lambda entry: entry.path)[:MAX_COMPARED_FILES]:
        source = context.sources.peek(entry, stop)
        lines = [line if len(line) < MAX_LINE_CHARS else "" for line in source.lines] if source else []
        having = [
            [number for number, line in enumerate(lines) if word.pattern.search(line)] for word in words
        ]
        rarest = min(having, key=len)
        if any(
            all(any(abs(number - at) <= NEAR_LINES // 2 for number in numbers) for numbers in having)
            for at in rarest
        ):
            return True
    return False


def _paths_with(context: RoleContext, places: Sequence[Place], word: SoughtWord) -> tuple[str, ...]:
    """Return the paths of the project's own code that have a word."""
    own = [place for place in places if place.entry in word.own]
    paths = [context.reference(place.entry).path for place in own]
    return tuple(path for path in paths if word.pattern.search(path))[:1]


def _other_versions(context: RoleContext, absent: Sequence[SoughtWord], stop: Stop) -> tuple[Place, ...]:
    """Return where the code has another number of the same thing: `HTTP/2` for `HTTP/3`."""
    found: dict[FileEntry, Place] = {}
    for word in absent:
        if word.shown in marked_names(word.shown).values() and word.shown[-1:].isdigit():
            pattern = SearchPattern(_marked_pattern(word.shown, r"\d"))
            for one in context.scope.codebase.grep(pattern, stop, bounds=WORD_BOUNDS).matches:
                if file_category(one.entry.path) in ("own", "package"):
                    found[one.entry] = Place(
                        one.entry, one.line, 0.0, ("another version",), file_kind(one.entry.path)
                    )
            stop.check()
    return tuple(found.values())[:MAX_NEAREST]


def _mentions(absent: Sequence[SoughtWord]) -> tuple[Place, ...]:
    """Return the lines of the documentation that have the words which the code lacks."""
    if not all(word.docs for word in absent):
        return ()
    matches = [word.docs[0] for word in absent][:MAX_MENTIONS]
    return tuple(Place(one.entry, one.line, 0.0, (MENTIONED,), "docs") for one in matches)


def _shown(words: Iterable[SoughtWord]) -> list[str]:
    return [word.shown for word in words]


def _listed(words: Sequence[str]) -> str:
    return " and ".join(f"`{word}`" for word in words)


def _nearest(
    context: RoleContext, places: Sequence[Place], words: Sequence[SoughtWord], stop: Stop
) -> tuple[Place, ...]:
    """Return the places whose definition is named with most of the words, in their order."""
    scored: list[tuple[int, Place]] = []
    for place in places:
        if file_category(place.path) not in ("own", "package") or not place.line:
            continue
        quoted = context.sources.quote_line(place.entry, place.line, stop)
        name = quoted.within.qualified_name if quoted and quoted.within else place.path
        scored.append((sum(word.pattern.search(name) is not None for word in words), place))
    best = sorted(scored, key=lambda one: -one[0])[:MAX_NEAREST]
    return tuple(place for _, place in best)
