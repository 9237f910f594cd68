"""Finds the uses of a definition, and what the definition calls.

Calls and uses come from the syntax tree, and names are resolved by scope, import and type. A use is sure only
if it resolves to the definition, or if the definition is the only one of its name. Where the grammar is
missing or does not know the language, lines that hold the name are possible uses, and nothing is said about
calls. Knows nothing of reports.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from retinue.answers.role_context import RoleContext
from retinue.answers.source_files import MAX_LINE_CHARS, SourceDefinition, SourceFile
from retinue.codebase import (
    Bounds,
    CallSite,
    CodeFile,
    CodeImport,
    FileEntry,
    LineMatch,
    NameResolver,
    ParsedCode,
    ReceiverKind,
    SearchPattern,
    Target,
    file_category,
)
from retinue.core import Stop

USE_BOUNDS = Bounds(max_files=60, max_matches=150, max_matches_per_file=5, max_line_chars=300)
DEFINING_BOUNDS = Bounds(max_files=25, max_matches=75, max_matches_per_file=3, max_line_chars=300)
MAX_DEFINING_SEARCHES = 8
"""How many searches for definitions one role makes. What would need more stays unresolved."""
MAX_SEARCHED_NAMES = 24
"""How many names one search for definitions covers."""
MAX_RESOLVED_CALLS = 40
"""How many different calls of one body are resolved."""
LANGUAGE_FAMILIES = (
    ".py .pyi .pyx",
    ".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte",
    ".c .h .cc .cpp .cxx .hpp .hh .hxx .m .mm",
    ".java .kt .kts .scala .groovy",
    ".rb .rake .erb",
)
"""Suffixes of files that can use each other's definitions. Any other suffix is a family of its own."""

_SELF = frozenset(["self", "this", "cls", "super", "super()", "Self"])
_PATH_NODES = frozenset(["scoped_identifier", "qualified_identifier"])
"""The nodes of names with `::` in Rust and C++."""
DEFINITION_KEYWORD = (
    r"(?:def|class|fn|func|function|struct|interface|trait|enum|type|const|let|var|static|module|sub|define)"
)
"""A regular expression for the keywords that define a name, in many languages."""
_STRING = re.compile(r"""(["'`])(?:(?!\1)[^\\]|\\.){0,400}\1""")
_IMPORT = re.compile(
    r"\s*(?:from\b.*\bimport\b|import\b|use\b|using\b|#\s*include|require\b|export\b.*\bfrom\b)"
)
_COMMON_METHODS = """
get set add put pop push append extend insert remove delete clear update copy close open read write send
recv keys values items join split strip replace format find index count sort sorted reverse map filter
reduce each forEach then catch finally next iter len size length empty isEmpty contains has equals
hashCode toString fill start stop run wait notify lock unlock acquire release init new clone from into
as_ref as_str unwrap expect collect call apply bind test match exec search sub group encode decode print
println printf write_all flush seek Error Close Read Write Get Set Add Len Lock Unlock Done Wait Run Name
Type Value Key String load save parse submit cancel result results connect execute commit rollback
register process handle render build create emit accept listen resolve reject done error info debug
warning warn first last slice concat head tail take skip drop name type value key reset setup teardown
main next_ finish begin end resize reserve flatten starts_with ends_with startswith endswith startsWith
endsWith HasPrefix HasSuffix to_string to_owned to_lowercase to_uppercase toLowerCase toUpperCase lower
upper title trim trim_start trim_end lstrip rstrip lines bytes chars charAt substring indexOf lastIndexOf
includes splice shift unshift every some fold zip chain enumerate rev max min position any all sum
product is_some is_none is_ok is_err is_empty map_err and_then or_else ok_or unwrap_or as_bytes as_slice
as_mut borrow borrow_mut entry get_mut get_or_insert_with retain drain extend_from_slice contains_key
containsKey getOrDefault entrySet keySet putIfAbsent addAll removeIf stream iterator hasNext setdefault
discard union intersection difference issubset casefold partition rpartition splitlines isdigit parent
parents exists is_file is_dir is_absolute file_name file_stem extension with_extension strip_prefix
strip_suffix to_path_buf canonicalize metadata display components mkdir rename glob resolve_path
read_text write_text read_bytes write_bytes read_to_string read_line readline readlines writelines
iterdir unlink touch stat chmod with_name with_suffix relative_to is_symlink splitn rsplit trim_matches
char_indices to_vec into_iter iter_mut filter_map flat_map take_while skip_while peekable windows chunks
sort_by sort_by_key dedup truncate swap split_at concat_with as_deref as_ref_mut cloned copied
is_some_and unwrap_or_else unwrap_or_default unwrap_err expect_err ok_or_else get_or_insert insert_with
elapsed as_secs as_millis duration_since spawn join_all try_recv try_lock getClass getName getMessage
getCause printStackTrace valueOf compareTo intern isBlank toArray toList ofNullable orElse orElseGet
orElseThrow ifPresent isPresent anyMatch allMatch noneMatch findFirst findAny getBytes getKey getValue
computeIfAbsent isInterrupted interrupt schedule shutdown awaitTermination hasOwnProperty toFixed
toISOString getTime addEventListener removeEventListener setAttribute getAttribute appendChild
querySelector findIndex flatMap localeCompare matchAll padStart padEnd replaceAll trimStart trimEnd
allSettled subscribe unsubscribe once pipe setEncoding removeListener setTimeout clearTimeout stringify
"""
COMMON_METHODS = frozenset(_COMMON_METHODS.split())
"""Methods that the standard libraries define too: one definition in the project proves nothing."""


@dataclass(frozen=True, slots=True)
class Use:
    """A place that uses a definition."""

    entry: FileEntry
    line: int
    within: SourceDefinition | None
    """The definition that contains the line."""
    is_test: bool
    is_sure: bool
    """Whether the place means this definition, not another one with the same name."""
    is_call: bool = False
    """Whether it is a call that resolves to the definition."""
    is_type: bool = False
    """Whether the definition is named as the type of something."""


@dataclass(frozen=True, slots=True)
class Uses:
    """The uses of a definition."""

    uses: tuple[Use, ...]
    """Uses in the files that were read. If some are sure, the others are left out."""
    files: int
    """How many files use the name, including files that were not read."""
    left_out: int = 0
    """How many further places may use it: on objects of unknown type, or beside sure uses."""
    is_complete: bool = True
    """Whether every file with the name was found."""

    @property
    def callers(self) -> tuple[Use, ...]:
        return tuple(use for use in self.uses if not use.is_test)

    @property
    def tests(self) -> tuple[Use, ...]:
        return tuple(use for use in self.uses if use.is_test)


@dataclass(frozen=True, slots=True)
class Callee:
    """A function that a body calls, and where it is defined."""

    name: str
    line: int
    """The line of the first call."""
    entry: FileEntry
    defined: SourceDefinition
    is_sure: bool
    """Whether the call resolves to it. Otherwise it is the only definition of a method with this name."""
    is_likely: bool = True
    """Whether it resolves, or is called on a variable with the name of its type."""


class CodeNames:
    """Resolves names in the files of one role's request. Reads and charges files as the role does."""

    def __init__(self, context: RoleContext, stop: Stop) -> None:
        self._context = context
        self._stop = stop
        self._paths = frozenset(context.scope.codebase.files(stop, skip_large=True).entries)
        self._defining: dict[tuple[str, str, str | None], tuple[Target, ...] | None] = {}
        self._searches = MAX_DEFINING_SEARCHES

    @property
    def resolver(self) -> NameResolver:
        """A resolver of these files. Not kept, because the cycle would keep the files in memory."""
        return NameResolver(self)

    def parsed(self, entry: FileEntry) -> ParsedCode | None:
        """Return a parsed file of the request, or None."""
        source = self._context.sources.open(entry, self._stop) if entry in self._paths else None
        return source.code if source is not None else None

    def text(self, entry: FileEntry) -> bytes | None:
        """Return the text of a file of the request, or None."""
        source = self._context.sources.open(entry, self._stop) if entry in self._paths else None
        return source.data if source is not None else None

    def defining(self, name: str, like: FileEntry, folder: str | None = None) -> Sequence[Target] | None:
        """Return every definition of a name, or None if there may be more."""
        key = name, _language_globs(like.path)[0], folder
        if key not in self._defining:
            self.find_defining([name], like, folder)
        return self._defining.get(key)

    def find_defining(self, names: Sequence[str], like: FileEntry, folder: str | None = None) -> None:
        """Search for the definitions of several names at once."""
        globs = _language_globs(like.path)
        wanted = [name for name in dict.fromkeys(names) if (name, globs[0], folder) not in self._defining]
        wanted = [name for name in wanted if re.fullmatch(r"[\w$]{2,80}", name)][:MAX_SEARCHED_NAMES]
        if not wanted or not self._searches:
            return
        self._searches -= 1
        either = "|".join(map(re.escape, wanted))
        found = self._context.scope.codebase.grep(
            SearchPattern(_defining_pattern(like.path, either)),
            self._stop,
            globs=globs,
            below=[str(like.root.path / folder)] if folder is not None else (),
            bounds=DEFINING_BOUNDS,
        )
        self._stop.check()
        is_complete = not {"files", "matches", "time"} & set(found.omitted.limits)
        targets: dict[str, list[Target]] = defaultdict(list)
        unread = False
        word = re.compile(rf"(?<![\w$])(?:{either})(?![\w$])")
        for entry in dict.fromkeys(match.entry for match in found.matches):
            code = self.parsed(entry)
            if code is None:
                unread = True
                continue
            here = {
                name for match in found.matches if match.entry == entry for name in word.findall(match.text)
            }
            for one in code.definitions:
                if one.symbol.name in here:
                    targets[one.symbol.name].append(Target(entry, code, one))
        for name in wanted:
            known = is_complete and not unread
            self._defining[name, globs[0], folder] = tuple(targets[name]) if known else None


def _defining_pattern(path: str, either: str) -> str:
    """Return a pattern for lines that may define one of several names."""
    keyword = rf"\b{DEFINITION_KEYWORD}\s+(?:\([^)]*\)\s*)?(?:{either})\b"
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in LANGUAGE_FAMILIES[2].split():
        return (
            rf"^[A-Za-z_][^;=()]*\b(?:{either})\s*\(|^(?:{either})\s*\(|#\s*define\s+(?:{either})\b|{keyword}"
        )
    if suffix in (".java", *LANGUAGE_FAMILIES[1].split()):
        return (
            rf"{keyword}|^\s*(?:[\w<>\[\],.?@*]+\s+)*(?:{either})\s*(?:<[^>]*>)?\([^;]*$"
            rf"|\b(?:{either})\s*[:=]\s*(?:async\s*)?(?:function\b|\()"
            rf"|\b(?:record|@interface)\s+(?:{either})\b"
        )
    return rf"{keyword}|^(?:{either})\s*(?::[^=]*)?="


def find_uses(
    context: RoleContext,
    definition: SourceDefinition,
    home: FileEntry,
    read_first: Sequence[FileEntry],
    max_files: int,
    stop: Stop,
    names: CodeNames | None = None,
    *,
    recursive: bool = False,
) -> Uses:
    """Find where a definition of the file `home` is used; if `recursive`, also where it uses itself.

    Reads at most `max_files` files: `home` and those of `read_first` before others. A definition that `home`
    does not hold stands for whatever has its name.
    """
    found = context.scope.codebase.grep(
        SearchPattern(rf"\b{re.escape(definition.name)}\b"),
        stop,
        globs=_language_globs(home.path),
        bounds=USE_BOUNDS,
    )
    stop.check()
    lines = [match for match in found.matches if match.entry == home or not definition.is_local]
    rank = {entry: number for number, entry in enumerate((home, *read_first))}
    using = sorted(
        dict.fromkeys(match.entry for match in lines),
        key=lambda entry: (_is_secondary(entry), rank.get(entry, len(rank)), entry.root.path, entry.path),
    )
    names = names or CodeNames(context, stop)
    home_code = names.parsed(home)
    target = _target_of(home, home_code, definition)
    uses: list[Use] = []
    is_complete = not {"files", "matches", "time"} & set(found.omitted.limits)
    left_out, unread = 0, max(0, len(using) - max_files)
    for entry in using[:max_files]:
        source = context.sources.open(entry, stop)
        if source is None:
            unread += 1
            continue
        here = [match for match in lines if match.entry == entry]
        if source.code is not None:
            looked_at = list(
                _resolved_uses(source, CodeFile(entry, source.code), definition, target, names, recursive)
            )
            in_file = [use for use in looked_at if use is not None]
            left_out += len(looked_at) - len(in_file)
        else:
            in_file = list(_possible_uses(source, definition, here, same_file=entry == home))
            is_complete &= source.parsed is not None or len(here) < USE_BOUNDS.max_matches_per_file
        uses += in_file
    sure = tuple(use for use in uses if use.is_sure)
    listed = sure or tuple(uses)
    files = len({use.entry for use in listed}) + unread
    return Uses(listed, files, left_out + len(uses) - len(listed), is_complete)


def _target_of(home: FileEntry, code: ParsedCode | None, definition: SourceDefinition) -> Target | None:
    """Return the definition as the resolver knows it."""
    for one in code.definitions if code is not None else ():
        if (one.symbol.line, one.symbol.name) == (definition.line, definition.name) and code is not None:
            return Target(home, code, one)
    return None


def _resolved_uses(
    source: SourceFile,
    file: CodeFile,
    used: SourceDefinition,
    target: Target | None,
    names: CodeNames,
    recursive: bool,
) -> Iterator[Use | None]:
    """Yield the places of one file that use a definition, and None for each that might mean it."""
    for site in file.code.sites(used.name):
        if site.role in ("definition", "binding", "import"):
            continue
        found = names.resolver.resolve(file, site)
        is_same = found is None or target is None or found.key == target.key
        if not is_same and not _extends_namesake(target, found):
            continue
        is_sure = is_same and (found is not None or _means_only_member(file, site, target, names))
        if found is None and not is_sure and _receiver_kind(file, site, names) == "other":
            if _may_be_of_workspace(site, target):
                yield None
            continue
        if found is None and not is_sure and not _is_possible(file.code, site, target):
            if _is_unclear(file.code, site, target):
                yield None
            continue
        within = source.definition_around(site.line)
        is_itself = within is not None and (within.line, source.entry) == (used.line, target and target.entry)
        if is_itself and not recursive:
            continue
        is_call = is_sure and found is not None and site.role == "call" and found.is_function
        yield Use(
            source.entry,
            site.line,
            within,
            source.is_test(within),
            is_sure,
            is_call,
            site.role == "type",
        )


def _means_only_member(file: CodeFile, site: CallSite, target: Target | None, names: CodeNames) -> bool:
    """Return whether a call on an unknown receiver means the only method of its name."""
    if target is None or target.symbol.owner is None or not _has_unknown_receiver(file.code, site):
        return False
    only = names.resolver.only_member(site.name, file.entry) if _is_telling(site.name) else None
    is_target = only is not None and only.key == target.key
    return is_target and _receiver_kind(file, site, names) == "unknown"


def _receiver_kind(file: CodeFile, site: CallSite, names: CodeNames) -> ReceiverKind:
    """Say what is known about what stands before the dot, if anything does."""
    return names.resolver.receiver_kind(file, site.receiver) if site.receiver is not None else "unknown"


def _extends_namesake(target: Target | None, found: Target | None) -> bool:
    """Return whether a definition only adds to a type, as an `impl` of Rust, and the name is this type's."""
    if target is None or found is None or target.definition.capture != "extension":
        return False
    return found.symbol.kind == "type" and found.symbol.name == target.symbol.name


def _may_be_of_workspace(site: CallSite, target: Target | None) -> bool:
    """Return whether a call may mean a function of another package of the project: its import is unknown."""
    if target is None or site.role != "call":
        return False
    if target.symbol.owner is None:
        return target.is_function and _is_telling(site.name)
    return re.split(r"\W+", site.receiver_text)[-1] == target.symbol.owner


def _is_unclear(code: ParsedCode, site: CallSite, target: Target | None) -> bool:
    """Return whether a name that is not listed might still mean the definition: a method of any object."""
    if target is None or target.symbol.owner is None:
        return _may_be_of_workspace(site, target)
    if site.receiver is None:
        return code.family in ("java", "c") and site.role == "call"
    return target.is_function if site.role in ("call", "member") else site.role == "type"


def _has_unknown_receiver(code: ParsedCode, site: CallSite) -> bool:
    """Return whether a call is made on an object, not on an imported module nor on `self`."""
    receiver = site.receiver_text
    if not receiver or site.role != "call" or receiver in _SELF or receiver.startswith("super("):
        return False
    if site.node.parent is not None and site.node.parent.type in _PATH_NODES:
        return False  # `thread::scope` names a type or a module
    first = re.match(r"[\w$]+", receiver)
    return first is None or not isinstance(code.lookup(first[0], site.node), CodeImport)


def _is_possible(code: ParsedCode, site: CallSite, target: Target | None) -> bool:
    """Return whether an unresolved name may mean the definition: a member a method, a free name the rest."""
    if target is None:
        return True
    owner = target.symbol.owner
    if site.role == "type" and site.receiver is not None:
        return target.symbol.kind == "type" and owner is None
    if owner is not None:
        likely = _is_telling(site.name) or _is_named_like(site.receiver_text, owner)
        return likely and target.is_function and _has_unknown_receiver(code, site)
    return site.receiver is None and code.lookup(site.name, site.node) is None and not target.symbol.is_local


def _is_named_like(receiver: str, name: str) -> bool:
    """Return whether a variable is named like a type: `policy` or `old_retry_policy2` like `RetryPolicy`.

    Go programs often use the first letter of the type.
    """
    one, other = re.sub(r"\W+$", "", receiver).rpartition(".")[2].strip("_").casefold(), name.casefold()
    last = one.replace("_", "").rstrip("0123456789")
    return one == other[:1] or (len(one) > 2 and (one in other or last.endswith(other)))


def _possible_uses(
    source: SourceFile, used: SourceDefinition, matches: Iterable[LineMatch], *, same_file: bool
) -> Iterator[Use]:
    """Yield the lines of a file that hold the name, in a language whose names are not resolved."""
    lines = (
        _lines_of_sites(source.parsed, used) if source.parsed else _lines_of_matches(source, used, matches)
    )
    defined = {one.line for one in source.definitions if one.name == used.name}
    for line in lines:
        within = source.definition_around(line)
        itself = within is not None and (within.name, within.owner) == (used.name, used.owner)
        if line not in defined and not (itself and same_file):
            yield Use(source.entry, line, within, source.is_test(within), is_sure=False)


def _lines_of_sites(code: ParsedCode, used: SourceDefinition) -> list[int]:
    """Return the lines that use a name in code; a method is called, or stands behind a dot."""
    sites = (one for one in code.sites(used.name) if one.role not in ("definition", "binding", "import"))
    lines = (one.line for one in sites if not used.owner or one.receiver or one.role in ("call", "type"))
    return list(dict.fromkeys(lines))


def _lines_of_matches(
    source: SourceFile, used: SourceDefinition, matches: Iterable[LineMatch]
) -> Iterator[int]:
    """Yield the lines of a file without a grammar that hold a name, without comments and imports."""
    reached = rf"(?:\.|->|::){re.escape(used.name)}\b" if used.owner else rf"\b{re.escape(used.name)}\b"
    for match in matches:
        if match.line > len(source.lines) or match.line in source.prose_lines or _IMPORT.match(match.text):
            continue  # the file has changed since it was searched, or the line is a comment or an import
        text = source.lines[match.line - 1]
        if len(text) <= MAX_LINE_CHARS and re.search(reached, _STRING.sub("", text)):
            yield match.line


def _language_globs(path: str) -> list[str]:
    """Return globs for all files that can use definitions of this file."""
    suffix = PurePosixPath(path).suffix.lower()
    family = next((family for family in LANGUAGE_FAMILIES if suffix in family.split()), suffix)
    return [f"*{one}" for one in family.split()] or [f"*{suffix}"]


def _is_secondary(entry: FileEntry) -> bool:
    """Return whether a file only tests, copies or describes the code."""
    return file_category(entry.path) not in ("own", "package")


def find_callees(
    context: RoleContext,
    source: SourceFile,
    definition: SourceDefinition,
    stop: Stop,
    names: CodeNames | None = None,
) -> list[Callee]:
    """Return the functions that a body calls and whose definitions are certain, in order."""
    names = names or CodeNames(context, stop)
    target = _target_of(source.entry, source.code, definition)
    if target is None:
        return []
    code, entry = target.code, source.entry
    sites: dict[tuple[str, str], CallSite] = {}
    for site in code.calls_in(target.symbol):
        sites.setdefault((site.name, site.receiver_text), site)
    chosen = list(sites.values())[:MAX_RESOLVED_CALLS]
    _search_ahead(names, code, entry, chosen)
    callees: dict[tuple[FileEntry, int], Callee] = {}
    unknown: list[CallSite] = []
    for site in chosen:
        stop.check()
        found = names.resolver.resolve(CodeFile(entry, code), site)
        if found is None and _has_unknown_receiver(code, site) and _is_telling(site.name):
            unknown.append(site)
        if found is not None and found.is_function:
            _add_callee(callees, context, source, target, site, found, is_sure=True, stop=stop)
    names.find_defining([site.name for site in unknown], entry)
    for site in unknown:
        only = names.resolver.only_member(site.name, entry)
        if only is not None and _receiver_kind(CodeFile(entry, code), site, names) == "unknown":
            _add_callee(callees, context, source, target, site, only, is_sure=False, stop=stop)
    return sorted(callees.values(), key=lambda one: one.line)


def _search_ahead(names: CodeNames, code: ParsedCode, entry: FileEntry, sites: Sequence[CallSite]) -> None:
    """Search at once for the definitions that the calls of a body need."""
    free = [
        site.name for site in sites if site.receiver is None and code.lookup(site.name, site.node) is None
    ]
    if code.family == "c":
        names.find_defining(free, entry)
    elif code.family == "go":
        own = [site.name for site in sites if site.receiver is not None]
        names.find_defining([*free, *own], entry, entry.path.rpartition("/")[0])


def _add_callee(
    callees: dict[tuple[FileEntry, int], Callee],
    context: RoleContext,
    source: SourceFile,
    caller: Target,
    site: CallSite,
    found: Target,
    *,
    is_sure: bool,
    stop: Stop,
) -> None:
    """Add a callee, unless it is the caller itself or only a test defines it."""
    opened = context.sources.open(found.entry, stop)
    defined = opened.definition_at(found.symbol) if opened is not None else None
    if opened is None or defined is None or found.key == caller.key:
        return
    if opened.is_inline_test(defined) and not source.is_inline_test(source.definition_at(caller.symbol)):
        return
    if not _is_secondary(found.entry) or _is_secondary(source.entry):
        is_likely = is_sure or _is_named_like(site.receiver_text, found.symbol.owner or "")
        callees.setdefault(found.key, Callee(site.name, site.line, found.entry, defined, is_sure, is_likely))


def _is_telling(name: str) -> bool:
    """Return whether a method's name is unusual enough for its only definition to be meant."""
    return name not in COMMON_METHODS and len(name) >= 4 and not name.startswith("__")
