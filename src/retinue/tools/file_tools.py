"""Tools that read the user's files, within the policy and the run's budget, and without secrets.

Every answer says what it leaves out. Knows nothing of agents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from retinue.codebase import (
    Bounds,
    Codebase,
    FileEntry,
    LineMatch,
    Opener,
    outline_text,
    split_lines,
)
from retinue.core import (
    UNMETERED,
    BudgetKind,
    DeadlineExceeded,
    InvalidInput,
    PathDenied,
    PathMissing,
    Redactor,
    Spending,
    Stop,
    ToolSpec,
    Unavailable,
    clip,
    counted,
    run_in_thread,
)
from retinue.tools.lenient_search import LenientSearch, near_files
from retinue.tools.seen_code import SeenCode
from retinue.tools.toolbox import Arguments, Tool, count_lines_that_fit, cut_to_tokens, parameters

DEFAULT_LINES = 200
MAX_LINES = 1_000
MAX_LINE_CHARS = 300
MAX_OUTLINE_CHARS = 120
MATCH_BOUNDS = Bounds(max_matches=60, max_matches_per_file=10, max_line_chars=MAX_LINE_CHARS)
NAME_BOUNDS = Bounds(max_entries=300)
MAX_NEAR_FILES = 5
MAX_SECRET_LINES = 401
"""No secret has more lines than this."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileTools:
    """Makes the tools that read files of a codebase."""

    codebase: Codebase
    redactor: Redactor
    spending: Spending = UNMETERED
    seconds: float = 20.0
    """Limit for one call."""
    seen: SeenCode = field(default_factory=SeenCode)
    """Remembers what the tools have shown."""

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools, in the order of `OWN_TOOLS`."""
        path = ("string", "as search and find_files write it")
        return (
            Tool(
                ToolSpec(
                    "read_file",
                    "Read a file, with line numbers.",
                    parameters(
                        ("path",),
                        path=path,
                        start=("integer", "first line, 1 if left out"),
                        lines=("integer", f"how many, {DEFAULT_LINES} if left out"),
                    ),
                ),
                self._read_file,
            ),
            Tool(
                ToolSpec(
                    "search",
                    "Find lines that match a regular expression, in all files.",
                    parameters(
                        ("pattern",),
                        pattern=("string", "what to look for"),
                        path=("string", "only below this folder or file"),
                        glob=("string", "only in files with such a name; * stands for any letters"),
                    ),
                ),
                self._search,
            ),
            Tool(
                ToolSpec(
                    "find_files",
                    "Find files by name.",
                    parameters(("glob",), glob=("string", "the name or path; * stands for any letters")),
                ),
                self._find_files,
            ),
            Tool(
                ToolSpec(
                    "list_folder",
                    "List what is in a folder.",
                    parameters(path=("string", "from the root; the root if left out")),
                ),
                self._list_folder,
            ),
            Tool(
                ToolSpec(
                    "outline",
                    "List what a file defines, with line numbers.",
                    parameters(("path",), path=path),
                ),
                self._outline,
            ),
        )

    async def _read_file(self, arguments: Arguments, tokens: int) -> str:
        path = arguments.text("path", "file_path", "file", "filename")
        start = arguments.number("start", "offset", "start_line", "line", default=1)
        end = arguments.number("end", "end_line", default=0)
        if end >= start:
            wanted = end - start + 1
        else:
            wanted = arguments.number("lines", "limit", default=DEFAULT_LINES)
        bounds = Bounds(max_lines=MAX_LINES)

        def read(stop: Stop) -> str:
            known, note = self._known_path(path, stop)
            found = self.codebase.read(known, stop, start=max(1, start), lines=max(1, wanted), bounds=bounds)
            if not found.lines:
                raise InvalidInput(
                    f"{found.entry.path} has only {counted(found.total_lines, 'line')}",
                    hint="use a smaller start",
                )
            with self.codebase.opener(stop) as opener:
                clean = RedactedLines(opener, self.redactor).between(found.entry, found.start, found.end)
            numbered = [f"{n}: {clip(line, MAX_LINE_CHARS)}" for n, line in enumerate(clean, found.start)]
            room = tokens - len(found.entry.path) // 2 - 12
            shown = numbered[: max(1, count_lines_that_fit(numbered, room))]
            last = found.start + len(shown) - 1
            self._charge([shown])
            self.seen.add_lines(found.entry.path, enumerate(clean[: len(shown)], found.start))
            head = f"{found.entry.path}, lines {found.start}-{last} of {found.total_lines}"
            more = f"more: read_file with start={last + 1}" if last < found.total_lines else ""
            return _with_notes([head, *shown], [more, note])

        return await self._in_thread(read)

    async def _search(self, arguments: Arguments, tokens: int) -> str:
        text = arguments.text("pattern", "query", "regex", "text")
        below = arguments.text("path", "folder", "directory", default=".")
        glob = arguments.text("glob", "include", default="")

        def search(stop: Stop) -> str:
            search = LenientSearch(
                self.codebase,
                stop,
                below=() if below in (".", "/", "./") else (below,),
                globs=(glob,) if glob else (),
                bounds=MATCH_BOUNDS,
            )
            elsewhere = ""
            try:
                found, note = search.find(text)
            except (PathMissing, PathDenied):
                found, note = replace(search, below=()).find(text)
                elsewhere = f"there is no {below!r} to search, so all files were searched"
            with self.codebase.opener(stop) as opener:
                redacted = RedactedLines(opener, self.redactor)
                lines = [_matching_line(match, redacted) for match in found.matches]
            shown = lines[: count_lines_that_fit(lines, tokens - 30)]
            if lines and not shown:
                raise InvalidInput("no match fits into what is left of the conversation: answer now")
            self._charge(_group_by_file(found.matches, shown))
            for match, line in zip(found.matches, shown, strict=False):
                self.seen.add_lines(match.entry.path, [(match.line, line)])
            cut = f"{counted(len(lines) - len(shown), 'more line')} cut: narrow the pattern or the path."
            notes = [elsewhere, note, cut if len(shown) < len(lines) else "", found.omitted.sentence()]
            return _with_notes(shown or ["nothing matches"], notes)

        return await self._in_thread(search)

    async def _find_files(self, arguments: Arguments, tokens: int) -> str:
        glob = arguments.text("glob", "pattern", "name")

        def find(stop: Stop) -> str:
            found = self.codebase.glob([glob], stop, bounds=NAME_BOUNDS)
            note = ""
            if not found.entries and "*" not in glob:
                found = self.codebase.glob(
                    [f"*{glob.strip('/').rsplit('/', 1)[-1]}*"], stop, bounds=NAME_BOUNDS
                )
                note = "no file has this name; these have it in theirs" if found.entries else ""
            names = [entry.path for entry in found.entries]
            self.seen.add_paths(names)
            text = _with_notes(names or ["no file matches"], [note, found.omitted.sentence()])
            return cut_to_tokens(text, tokens, "use a narrower glob")

        return await self._in_thread(find)

    async def _list_folder(self, arguments: Arguments, tokens: int) -> str:
        path = arguments.text("path", "folder", "directory", default=".")

        def list_items(stop: Stop) -> str:
            listing = self.codebase.list("." if path == "/" else path, stop, bounds=NAME_BOUNDS)
            names = [f"{item.path}/" if item.kind == "folder" else item.path for item in listing.items]
            self.seen.add_paths(item.path for item in listing.items if item.kind != "folder")
            text = _with_notes(names or ["the folder is empty"], [listing.omitted.sentence()])
            return cut_to_tokens(text, tokens, "find_files shows some of them")

        return await self._in_thread(list_items)

    async def _outline(self, arguments: Arguments, tokens: int) -> str:
        path = arguments.text("path", "file_path", "file")

        def outline(stop: Stop) -> str:
            known, note = self._known_path(path, stop)
            entry = self.codebase.read(known, stop, lines=1).entry
            with self.codebase.opener(stop) as opener:
                redacted = RedactedLines(opener, self.redactor)
                whole = redacted.unredacted(entry)
                chunks = outline_text(entry.path, "\n".join(whole).encode()).chunks
                named = dict.fromkeys(
                    chunk.line for chunk in chunks if chunk.name and chunk.line <= len(whole)
                )
                texts = {line: clip(redacted.line(entry, line).strip(), MAX_OUTLINE_CHARS) for line in named}
            lines = [f"{line}: {text}" for line, text in texts.items()]
            shown = lines[: count_lines_that_fit(lines, tokens - 30)]
            self._charge([shown])
            self.seen.add_lines(entry.path, list(texts.items())[: len(shown)])
            cut = counted(len(lines) - len(shown), "more definition") + " cut"
            head = f"{entry.path}, {counted(len(whole), 'line')}"
            notes = [note, cut if len(shown) < len(lines) else ""]
            return _with_notes([head, *(shown or ["no definitions found"])], notes)

        return await self._in_thread(outline)

    def _known_path(self, path: str, stop: Stop) -> tuple[str, str]:
        """Return the path of an existing file, and a note if the model wrote it differently."""
        try:
            return self.codebase.read(path, stop, lines=1).entry.path, ""
        except (PathMissing, PathDenied) as error:
            near = near_files(self.codebase, path, stop)
            if len(near) == 1:
                return near[0], f"there is no {path!r}; this is {near[0]}"
            if not near:
                raise
            names = ", ".join(near[:MAX_NEAR_FILES])
            raise type(error)(error.message, hint=f"files with this name: {names}") from None

    def _charge(self, shown: Sequence[Sequence[str]]) -> None:
        """Charge the files and bytes that are about to be shown, both or neither (P2).

        `shown` has the lines of each file.
        """
        files = [lines for lines in shown if lines]
        size = sum(len(line.encode()) + 1 for lines in files for line in lines)
        with (
            self.spending.reserve(BudgetKind.FILES, len(files)) as opened,
            self.spending.reserve(BudgetKind.BYTES, size) as read,
        ):
            opened.settle(len(files))
            read.settle(size)

    async def _in_thread(self, work: Callable[[Stop], T]) -> T:
        try:
            return await run_in_thread(work, self.seconds)
        except DeadlineExceeded:
            raise Unavailable(
                f"the call took longer than {counted(self.seconds, 'second')}",
                hint="name a folder, a glob or a more specific pattern",
            ) from None


class RedactedLines:
    """Returns lines of files without secrets. Serves one call and reads each file once."""

    def __init__(self, opener: Opener, redactor: Redactor) -> None:
        self._opener = opener
        self._redactor = redactor
        self._files: dict[FileEntry, list[str]] = {}

    def between(self, entry: FileEntry, first: int, last: int) -> Sequence[str]:
        """Return the redacted lines `first` to `last`, or as many of them as exist.

        A single line of a private key looks harmless, so redaction starts further up: no secret that includes
        the first line can begin before that.
        """
        above = max(0, first - 1 - MAX_SECRET_LINES)
        below = last + MAX_SECRET_LINES
        redacted = self._redactor.redact_lines(self.unredacted(entry)[above:below])
        return redacted[first - 1 - above : last - above]

    def line(self, entry: FileEntry, number: int) -> str:
        """Return one redacted line, or an empty string if the file has become shorter."""
        return "".join(self.between(entry, number, number))

    def unredacted(self, entry: FileEntry) -> list[str]:
        """Return all lines with their secrets, for counting and parsing. They must not be shown."""
        if entry not in self._files:
            self._files[entry] = split_lines(self._opener.read_text(entry).utf8.decode())
        return self._files[entry]


def _matching_line(match: LineMatch, redacted: RedactedLines) -> str:
    """Return a match as `path:line: text`, redacted."""
    original = "".join(redacted.unredacted(match.entry)[match.line - 1 : match.line])
    clean = redacted.line(match.entry, match.line)
    # `match.text` is cut around the match but not redacted, so it is shown only if there is no secret.
    text = match.text if clean == original else clip(clean, MAX_LINE_CHARS)
    return f"{match.entry.path}:{match.line}: {text.strip()}"


def _group_by_file(matches: Sequence[LineMatch], shown: Sequence[str]) -> Sequence[Sequence[str]]:
    """Return the shown lines of each file."""
    files: dict[FileEntry, list[str]] = {}
    for match, line in zip(matches, shown, strict=False):
        files.setdefault(match.entry, []).append(line)
    return list(files.values())


def _with_notes(lines: Sequence[str], notes: Sequence[str]) -> str:
    return "\n".join([*lines, *(f"[{note}]" for note in notes if note)])
