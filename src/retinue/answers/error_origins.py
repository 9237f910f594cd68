"""Finds the line that an error message or a stack trace comes from, and tells when it is reached.

A message in a question has values where the code has placeholders: `fixture 'db' not found` comes from
`f"fixture '{name}' not found"`. So the longest runs of neighbouring words are looked for, not the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from retinue.answers.role_context import Finding, RoleContext, soft_deadline, verify_findings
from retinue.answers.source_files import SourceDefinition, SourceFile, indentation
from retinue.codebase import Bounds, Claim, FileEntry, Place, SearchPattern, file_category
from retinue.core import UNMETERED, RoleResult, Spending, Stop, counted, join_notes

MAX_MESSAGES, MAX_MESSAGE_WORDS = 3, 30
MESSAGE_BOUNDS = Bounds(max_files=300, max_matches=1_500, max_matches_per_file=40, max_line_chars=400)
MIN_RUN = 2
"""How many neighbouring words of a message a line must have."""
SURE_RUN = 3
"""How many neighbouring words show that a text without a sign of an error is a message."""
MAX_SITES = 4
LOOKED_AT = 12
"""How many of the lines that fit a message are checked for being in a test among other code."""
MAX_FRAMES = 5
REACH_LINES = 60
"""How far above a line the condition that leads to it is looked for."""

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_VALUE = re.compile(r"(?<!\w)'[^'\n]{1,80}'(?!\w)|\"[^\"\n]{1,80}\"|`[^`\n]{1,80}`|\S*[/\\]\S*|\b0x\w+|\d+")
"""Parts of a message that the code fills in."""
_PROGRAM_NAME = re.compile(r"[a-z][\w-]*: ")
_STRING_MARK = re.compile(r"[\"'`]")
_RAISE = re.compile(
    r"\b(?:raise|throw|throws|panic|bail|abort|die|fail\w*|err(?:or)?\w*|exception\w*|warn\w*|log\w*|print\w*"
    r"|assert\w*|abort|reject|Err|msg|message|reason)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\s*(?:\}\s*)?(?:if|elif|else|unless|case|when|except|catch|match|for|while|switch|default)\b"
)

_ELSE = re.compile(r"\s*(?:\}\s*)?(?:else|default)\b(?!\s+if\b)")


@dataclass(frozen=True, slots=True)
class RaisingLine:
    """A line that raises or prints what the question quotes."""

    entry: FileEntry
    line: int
    reason: str
    is_whole: bool = True
    """Whether it has all words of a message. Otherwise it only comes nearest."""


def find_raising_lines(context: RoleContext, stop: Stop) -> list[RaisingLine]:
    """Return the lines that a trace or a message of the question comes from, most likely first."""
    found = {(one.entry, one.line): one for one in _lines_of_frames(context, stop)}
    for message in context.question.messages[:MAX_MESSAGES]:
        for one in _lines_of_message(context, message, stop):
            found.setdefault((one.entry, one.line), one)
    return list(found.values())


def prints_message(context: RoleContext, text: str, stop: Stop) -> bool:
    """Return whether the project's own code has a string with all the words of a text but its values.

    Three of them must be neighbours, or as many as the values leave together. A program may put its name in
    front: `curl: no such option`.
    """
    if (name := _PROGRAM_NAME.match(text)) and prints_message(context, text[name.end() :], stop):
        return True
    words = _constant_words(text)
    together = max(len(_WORD.findall(part)) for part in _VALUE.split(text))
    for site in _lines_of_message(context, text, stop):
        source = context.sources.peek(site.entry, stop)
        is_own = file_category(site.entry.path) in ("own", "package")
        if source is None or not is_own or site.line > len(source.lines) or site.line in source.prose_lines:
            continue
        run, _ = _fit(words, source.lines[site.line - 1])
        if site.is_whole and run >= min(SURE_RUN, together):
            return True
    return False


def _constant_words(message: str) -> list[str]:
    """Return the words of a message without the values that the code fills in."""
    constant = _VALUE.sub(" ", message)
    return [word.casefold() for word in _WORD.findall(constant) or _WORD.findall(message)][:MAX_MESSAGE_WORDS]


def _lines_of_message(context: RoleContext, message: str, stop: Stop) -> list[RaisingLine]:
    """Find the string literals that can make the message, those with the longest run of its words first."""
    words = _constant_words(message)
    if not words:
        return []
    runs = list(dict.fromkeys(pairwise(words))) or [(words[0],)]
    pattern = "|".join(r"\W{1,12}".join(map(re.escape, run)) for run in runs)
    matches = context.scope.codebase.grep(
        SearchPattern(pattern, ignore_case=True), stop, bounds=MESSAGE_BOUNDS
    ).matches
    stop.check()
    scored: list[tuple[tuple[bool, int, int, bool], RaisingLine]] = []  # own code, words, run, raises
    for match in matches:
        run, share = _fit(words, match.text)
        if run < min(MIN_RUN, len(words)) or not _STRING_MARK.search(match.text):
            continue
        own = file_category(match.entry.path) in ("own", "package")
        raises = _RAISE.search(match.text) is not None
        is_whole = share == len(set(words))
        line = RaisingLine(match.entry, match.line, "the text of the message", is_whole)
        scored.append(((own, share, run, raises), line))
    scored.sort(key=lambda one: one[0], reverse=True)
    if not scored:
        return []
    first = [
        ((own and not _is_in_test(context, line, stop), share, run, raises), line)
        for (own, share, run, raises), line in scored[:LOOKED_AT]
    ]
    scored = sorted([*first, *scored[LOOKED_AT:]], key=lambda one: one[0], reverse=True)
    best = scored[0][0]
    near = [line for (own, share, _, _), line in scored if own == best[0] and share == best[1]]
    return near[:MAX_SITES]


def _is_in_test(context: RoleContext, line: RaisingLine, stop: Stop) -> bool:
    """Return whether a line is in a test among other code: it repeats a message, but does not make it."""
    source = context.sources.peek(line.entry, stop)
    within = source.definition_around(line.line) if source is not None else None
    return source is not None and source.is_inline_test(within)


def _fit(words: Sequence[str], text: str) -> tuple[int, int]:
    """Return the longest run of the message's words in a text, and how many of its words the text has."""
    there = [word.casefold() for word in _WORD.findall(text)]
    longest = SequenceMatcher(None, words, there, autojunk=False).find_longest_match().size
    return longest, len(set(words).intersection(there))


def _lines_of_frames(context: RoleContext, stop: Stop) -> list[RaisingLine]:
    """Return the frames of a trace that are in the project's files, the innermost first."""
    found: list[RaisingLine] = []
    frames = context.question.parsed.frames[::-1]
    names = dict.fromkeys(frame.path.replace("\\", "/").rpartition("/")[2] for frame in frames)
    globs = [name for name in names if not set(name) & set("*?[]{}!")]
    if not globs:
        return []
    files = context.scope.codebase.glob(globs, stop).entries
    for frame in frames:
        entry = _best_match(frame.path, files)
        source = context.sources.peek(entry, stop) if entry is not None else None
        if entry is None or source is None:
            continue
        line = _line_of_frame(source, frame.line, frame.function)
        if line:
            found.append(RaisingLine(entry, line, "a frame of the trace"))
        if len(found) == MAX_FRAMES:
            break
    return found


def _best_match(path: str, files: Iterable[FileEntry]) -> FileEntry | None:
    """Return the file that shares most of the end of a path. A bare name must be unique."""
    wanted = path.replace("\\", "/").split("/")[::-1]
    scored: list[tuple[int, FileEntry]] = []
    for entry in files:
        parts = entry.path.split("/")[::-1]
        shared = next(
            (at for at, (one, other) in enumerate(zip(wanted, parts, strict=False)) if one != other),
            min(len(wanted), len(parts)),
        )
        if shared == len(parts) or shared == len(wanted) or shared > 1:
            scored.append((shared, entry))
    scored.sort(key=lambda one: -one[0])
    if len(scored) > 1 and scored[0][0] == scored[1][0]:
        return None
    return scored[0][1] if scored else None


def _line_of_frame(source: SourceFile, line: int, function: str) -> int:
    """Return the line of a frame, or of its function if the file has changed since; 0 if neither fits."""
    within = source.definition_around(line) if line <= len(source.lines) else None
    if line <= len(source.lines) and (not function or (within is not None and within.name == function)):
        return line
    known = source.find_definition(function) if function else None
    if known is not None:
        return known.line
    return line if line <= len(source.lines) else 0


def explain_error(
    context: RoleContext, places: Sequence[Place], stop: Stop, spending: Spending = UNMETERED
) -> RoleResult:
    """Tell where the error of the question is raised, under which condition, and in which function."""
    context = context.with_spending(spending)
    raising: list[Finding] = []
    names: list[str] = []
    is_whole = False
    with soft_deadline(stop) as soft:
        for site in find_raising_lines(context, soft.stop):
            source = context.sources.peek(site.entry, soft.stop)
            if source is None or site.line > len(source.lines):
                continue
            within = source.definition_around(site.line)
            raising.append(_finding(context, source, site.line, within))
            names += [within.qualified_name] if within else []
            is_whole |= site.is_whole
    verified = verify_findings(context, raising, stop)
    kind = "trace" if context.question.parsed.frames else "message"
    number = len(verified.texts)
    if number:
        named = f"{', first' * (number > 1)}{f' in `{names[0]}`' if names else ''}"
        comes = f"The {kind} comes from" if is_whole else "No line has the whole message. The nearest:"
        summary = f"{comes} {counted(number, 'place')}{named}."
    else:
        summary = f"Not found: no line of the code makes the {kind}. It may come from a dependency."
    return RoleResult(
        summary=summary,
        references=verified.references,
        key_findings=verified.texts,
        confidence="low" if not number or not is_whole else "high" if number == 1 else "med",
        notes=join_notes(verified.note, soft.note),
    )


def _finding(context: RoleContext, source: SourceFile, line: int, within: SourceDefinition | None) -> Finding:
    """Quote a line with the function that it is in and the condition that leads to it."""
    of = f" in `{within.qualified_name}`" if within else ""
    text = f"{context.reference(source.entry, line)}{of}: `{source.quote(line)}`"
    claims = [_claim(source, line)]
    if condition := _condition_above(source, line, within.line if within else 1):
        is_else, number = condition
        claims.append(_claim(source, number))
        how = "the other case of" if is_else else "reached by"
        text += f", {how} {context.reference(source.entry, number)}: `{source.quote(number)}`"
    return Finding(text, tuple(claims))


def _claim(source: SourceFile, line: int) -> Claim:
    text = source.lines[line - 1].strip()
    return Claim(source.entry, line, (text,) if text else ())


def _condition_above(source: SourceFile, line: int, top: int) -> tuple[bool, int] | None:
    """Return the innermost condition around a line: whether the line is its `else`, and its line."""
    depth = indentation(source.lines[line - 1])
    is_else = False
    for number in range(line - 1, max(top, line - REACH_LINES), -1):
        text = source.lines[number - 1]
        if not text.strip() or number in source.prose_lines:
            continue
        if is_else and indentation(text) == depth and _CONDITION.match(text) and not _ELSE.match(text):
            return True, number
        if indentation(text) < depth:
            depth = indentation(text)
            if is_else:
                return None
            if _ELSE.match(text):
                is_else = True
            elif _CONDITION.match(text):
                return False, number
    return None
