"""Finds the uses of a definition, and what the definition calls and reads, in any language.

Uses regular expressions that match calls, settings and constants; parses nothing. Knows nothing of reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from retinue.codebase import Bounds, FileEntry, LineMatch, SearchPattern, file_category, file_kind
from retinue.core import LimitExceeded, Stop
from retinue.research.role_context import RoleContext
from retinue.research.source_files import MAX_LINE_CHARS, SourceDefinition, SourceFile

USE_BOUNDS = Bounds(max_files=60, max_matches=150, max_matches_per_file=5, max_line_chars=300)
DEFINITION_BOUNDS = Bounds(max_files=40, max_matches=80, max_matches_per_file=4, max_line_chars=300)
MAX_SEARCHED_NAMES = 8
"""How many names one search for definitions covers."""
LANGUAGE_FAMILIES = (
    ".py .pyi .pyx",
    ".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte",
    ".c .h .cc .cpp .cxx .hpp .hh .hxx .m .mm",
    ".java .kt .kts .scala .groovy",
    ".rb .rake .erb",
)
"""Suffixes of files that can use each other's definitions. Any other suffix is a family of its own."""

_CALL = re.compile(
    r"(?:(\w{1,80})(?:\([^()]{0,80}\))?(?:\.|->|::)|(?<![\w$.]))"
    r"([A-Za-z_$][\w$]{1,79})\s?(?:<[\w, ]{1,40}>)?\("
)
_SELF = frozenset(("self", "this", "cls", "super"))
_CONSTANT = re.compile(r"(?<![\w$])([A-Z][A-Z0-9]*_[A-Z0-9_]+|[A-Z]{4,}[A-Z0-9_]*)(?![\w$(])")
_VARIABLE = re.compile(
    r"""(?:environ(?:\.get)?|getenv|env::var|process\.env|ENV)(?:\(|\[|\.)\s?['"]?([A-Z][A-Z0-9_]{2,79})"""
)
_SETTING = re.compile(
    r"\b((?:[\w.]{1,40}\.)?(?:settings?|config|conf|cfg|options|opts)\.(?!get\b)\w{2,60})\b(?!\()"
)
DEFINITION_KEYWORD = (
    r"(?:def|class|fn|func|function|struct|interface|trait|enum|type|const|let|var|static|module|sub|define)"
)
"""A regular expression for the keywords that define a name, in many languages."""
_STRING = re.compile(r"""(["'`])(?:(?!\1)[^\\]|\\.){0,400}\1""")
_AFTER_HASH, _AFTER_SLASHES = re.compile(r"\s#.*"), re.compile(r"\s//.*")
_IMPORT = re.compile(
    r"\s*(?:from\b.*\bimport\b|import\b|use\b|using\b|#\s*include|require\b|export\b.*\bfrom\b)"
)
_IGNORED_CALL_WORDS = """
if for while switch catch return elif else do try with not and or in is new throw raise await async
yield assert print len str int float bool list dict set tuple type isinstance super range sizeof
typeof def class func fn function lambda match case when unless until del except foreach using lock
defined self this echo sorted enumerate zip map filter min max sum any all open repr hash id iter
next vars getattr setattr hasattr callable String Number Boolean Array Object append push get format
join split strip replace items keys values Exception TypeError ValueError KeyError RuntimeError
"""
_IGNORED_CALLS = frozenset(_IGNORED_CALL_WORDS.split())
"""Words before a parenthesis that are not worth following."""


@dataclass(frozen=True, slots=True)
class Use:
    """A line that uses a definition."""

    entry: FileEntry
    line: int
    within: SourceDefinition | None
    """The definition that contains the line."""
    is_test: bool
    is_entry_point: bool
    is_sure: bool
    """Whether the line almost certainly means this definition, not another one with the same name."""


@dataclass(frozen=True, slots=True)
class Uses:
    """The uses of a definition."""

    uses: tuple[Use, ...]
    """Uses in the files that were read. If some are sure, the others are left out."""
    files: int
    """How many files use the name, including files that were not read."""

    @property
    def callers(self) -> tuple[Use, ...]:
        return tuple(use for use in self.uses if not use.is_test)

    @property
    def tests(self) -> tuple[Use, ...]:
        return tuple(use for use in self.uses if use.is_test)


def find_uses(
    context: RoleContext,
    definition: SourceDefinition,
    home: FileEntry,
    read_first: Sequence[FileEntry],
    max_files: int,
    stop: Stop,
) -> Uses:
    """Find where a definition of the file `home` is used.

    Reads at most `max_files` files: `home` and those of `read_first` before others.
    """
    # A method is called on an object, so its bare name means something else.
    name = re.escape(definition.name)
    pattern = rf"(?:\.|->|::){name}\b" if definition.owner else rf"\b{name}\b"
    found = context.scope.codebase.grep(
        SearchPattern(pattern), stop, globs=_language_globs(home.path), bounds=USE_BOUNDS
    )
    stop.check()
    lines = [
        match
        for match in found.matches
        if not _IMPORT.match(match.text) and (match.entry == home or not definition.is_local)
    ]
    rank = {entry: number for number, entry in enumerate((home, *read_first))}
    using = sorted(
        dict.fromkeys(match.entry for match in lines),
        key=lambda entry: (_is_secondary(entry), rank.get(entry, len(rank)), entry.root.path, entry.path),
    )
    uses: list[Use] = []
    for entry in using[:max_files]:
        source = context.sources.open(entry, stop)
        if source is not None:
            here = [match for match in lines if match.entry == entry]
            uses += _find_uses_in(source, definition, here, same_file=entry == home)
    only_defines = home in using and not any(use.entry == home for use in uses)
    sure = tuple(use for use in uses if use.is_sure)
    return Uses(sure or tuple(uses), len(using) - only_defines)


def _language_globs(path: str) -> list[str]:
    """Return globs for all files that can use definitions of this file."""
    suffix = PurePosixPath(path).suffix.lower()
    family = next((family for family in LANGUAGE_FAMILIES if suffix in family.split()), suffix)
    return [f"*{one}" for one in family.split()]


def _is_secondary(entry: FileEntry) -> bool:
    """Return whether a file only tests, copies or describes the code."""
    return file_category(entry.path) not in ("own", "package")


def _find_uses_in(
    source: SourceFile, used: SourceDefinition, matches: Iterable[LineMatch], *, same_file: bool
) -> Iterator[Use]:
    """Yield the uses of a definition among the matching lines of one file."""
    kind = file_kind(source.entry.path)
    for match in matches:
        if match.line > len(source.lines) or match.line in source.prose_lines:
            continue  # the file has changed since it was searched, or the line is a comment
        text = source.lines[match.line - 1]
        code = _STRING.sub("", text) if len(text) <= MAX_LINE_CHARS else ""
        within = source.definition_around(match.line)
        itself = within is not None and (within.name, within.owner) == (used.name, used.owner)
        if used.name in code and not itself:
            sure = _is_reached(code, used, within if same_file else None)
            yield Use(source.entry, match.line, within, kind == "test", kind == "entry point", sure)


def _is_reached(code: str, used: SourceDefinition, within: SourceDefinition | None) -> bool:
    """Return whether a line calls a method on something named like its type, or on `self` inside the type.

    `within` is the definition around the line if it is in the method's file: another file may have another
    type with the same name.
    """
    if used.owner is None:
        return True
    receivers = re.findall(rf"(\w+)(?:\(\))?\)?(?:\.|->|::){re.escape(used.name)}\b", code)
    inside_owner = within is not None and within.owner == used.owner
    return any(inside_owner if one in _SELF else _is_named_like(one, used.owner) for one in receivers)


def _is_named_like(receiver: str, name: str) -> bool:
    """Return whether a variable is named like a type: `policy` or `old_retry_policy2` like `RetryPolicy`.

    Go programs often use the first letter of the type.
    """
    one, other = receiver.strip("_").casefold(), name.casefold()
    last = one.replace("_", "").rstrip("0123456789")
    return one == other[:1] or (len(one) > 2 and (one in other or last.endswith(other)))


@dataclass(frozen=True, slots=True)
class Call:
    """A call in the body of a definition."""

    line: int
    """The first line with the call."""
    receiver: str
    """The object that the call is made on; empty for a plain call and for `self`."""


def find_callees(source: SourceFile, definition: SourceDefinition) -> dict[str, Call]:
    """Return the names that a body calls, in order."""
    calls: dict[str, Call] = {}
    for number, text in source.code_lines(definition):
        for receiver, name in _CALL.findall(text):
            if name not in _IGNORED_CALLS and name != definition.name and not name.startswith("__"):
                calls.setdefault(name, Call(number, "" if receiver in _SELF else receiver))
    return calls


def find_constants(source: SourceFile, definition: SourceDefinition) -> dict[str, int]:
    """Return the constants, environment variables and settings that a body reads, with their first lines."""
    read: dict[str, int] = {}
    comment = _AFTER_HASH if source.entry.path.endswith((".py", ".rb", ".sh")) else _AFTER_SLASHES
    for number, text in source.code_lines(definition):
        code = comment.sub("", _STRING.sub("", text))
        for name in (*_VARIABLE.findall(text), *_SETTING.findall(text), *_CONSTANT.findall(code)):
            if name != definition.name:
                read.setdefault(name, number)
    return read


def find_definitions(
    context: RoleContext, names: Mapping[str, str], home: SourceFile, stop: Stop
) -> dict[str, tuple[FileEntry, int]]:
    """Find where names are defined: in the file `home` if possible, else in a file of the same language.

    `names` maps each name to the object it is called on, because `log.warning` is not just any `warning`.
    """
    found: dict[str, tuple[FileEntry, int]] = {}
    for name, receiver in names.items():
        here = home.find_definition(name)
        if here is not None and (not receiver or _is_named_like(receiver, here.owner or home.entry.path)):
            found[name] = (home.entry, here.line)
    others = [name for name in names if name not in found and name.isidentifier()][:MAX_SEARCHED_NAMES]
    if not others:
        return found
    either = "|".join(others)
    definition_line = rf"^\s*(?:[\w()]+\s+)*{DEFINITION_KEYWORD}\s+(?:\([^)]*\)\s*)?(?:{either})\b"
    assignment_line = rf"^(?:{either})\s*(?::[^=]*)?="
    matches = context.scope.codebase.grep(
        SearchPattern(f"{definition_line}|{assignment_line}"),
        stop,
        globs=_language_globs(home.entry.path),
        bounds=DEFINITION_BOUNDS,
    ).matches
    stop.check()
    for match in matches:
        defined = next((name for name in others if re.search(rf"\b{name}\b", match.text)), None)
        if _is_secondary(match.entry) or defined is None or defined in found:
            continue
        if names[defined] and not _is_named_like(names[defined], PurePosixPath(match.entry.path).stem):
            continue
        try:
            context.sources.charge(match.entry, len(match.text.encode()))
        except LimitExceeded:
            break
        found[defined] = (match.entry, match.line)
    return found
