"""Tools that read the user's files: through the policy, within the run's budget, without secrets.

Knows nothing of agents; every answer says what it leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from retinue.codebase import Bounds, Codebase, FileEntry, LineMatch, SearchPattern, outline_text
from retinue.core import (
    UNMETERED,
    BudgetKind,
    DeadlineExceeded,
    InvalidInput,
    Redactor,
    Spending,
    Stop,
    ToolSpec,
    Unavailable,
    clip,
    counted,
)
from retinue.tools.bounded import bounded, lines_that_fit
from retinue.tools.clean_lines import CleanLines
from retinue.tools.threads import in_thread
from retinue.tools.tool import Arguments, Tool, parameters

FILE_TOOLS = ("read_file", "search", "find_files", "list_folder", "outline")

LINES = 200
"""Of one file at a time, unless more are asked for."""
MOST_LINES = 1_000
LONGEST_LINE = 300
MATCHES = Bounds(max_matches=60, max_matches_per_file=10, max_line_chars=LONGEST_LINE)
NAMES = Bounds(max_entries=300)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileTools:
    codebase: Codebase
    redactor: Redactor
    spending: Spending = UNMETERED
    seconds: float = 20.0
    """For one call."""

    def tools(self) -> tuple[Tool, ...]:
        path = ("string", "from the root, such as src/app.py")
        return (
            Tool(
                ToolSpec(
                    "read_file",
                    "Read a file, with line numbers.",
                    parameters(
                        ("path",),
                        path=path,
                        start=("integer", "first line, 1 if left out"),
                        lines=("integer", f"how many, {LINES} if left out"),
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
                        glob=("string", "only in files such as *.py"),
                    ),
                ),
                self._search,
            ),
            Tool(
                ToolSpec(
                    "find_files",
                    "Find files by name.",
                    parameters(("glob",), glob=("string", "such as *.py or src/**/test_*")),
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

    async def _read_file(self, given: Arguments, tokens: int) -> str:
        path = given.text("path", "file_path", "file", "filename")
        start = given.number("start", "offset", "start_line", "line", default=1)
        end = given.number("end", "end_line", default=0)
        wanted = end - start + 1 if end >= start else given.number("lines", "limit", default=LINES)
        bounds = Bounds(max_lines=MOST_LINES)

        def read(stop: Stop) -> str:
            found = self.codebase.read(path, stop, start=max(1, start), lines=max(1, wanted), bounds=bounds)
            if not found.lines:
                raise InvalidInput(f"{found.entry.path} has only {counted(found.total_lines, 'line')}")
            with self.codebase.opener(stop) as opener:
                clean = CleanLines(opener, self.redactor).between(found.entry, found.start, found.end)
            numbered = [f"{n}: {clip(line, LONGEST_LINE)}" for n, line in enumerate(clean, found.start)]
            shown = numbered[: max(1, lines_that_fit(numbered, tokens - len(found.entry.path) // 2 - 12))]
            last = found.start + len(shown) - 1
            self._charge([shown])
            head = f"{found.entry.path}, lines {found.start}-{last} of {found.total_lines}"
            more = f"\n[more: read_file with start={last + 1}]" if last < found.total_lines else ""
            return "\n".join([head, *shown]) + more

        return await self._beside(read)

    async def _search(self, given: Arguments, tokens: int) -> str:
        text = given.text("pattern", "query", "regex", "text")
        below = given.text("path", "folder", "directory", default=".")
        glob = given.text("glob", "include", default="")

        def search(stop: Stop) -> str:
            pattern, note = _pattern(text)
            found = self.codebase.grep(
                pattern,
                stop,
                below=() if below in (".", "/", "./") else (below,),
                globs=(glob,) if glob else (),
                bounds=MATCHES,
            )
            with self.codebase.opener(stop) as opener:
                clean = CleanLines(opener, self.redactor)
                lines = [_matching(match, clean) for match in found.matches]
            shown = lines[: lines_that_fit(lines, tokens - 30)]
            if lines and not shown:
                raise InvalidInput("no match fits into what is left of the conversation: answer now")
            self._charge(_by_file(found.matches, shown))
            cut = f"{counted(len(lines) - len(shown), 'more line')} cut: narrow the pattern or the path."
            notes = [note, cut if len(shown) < len(lines) else "", found.omitted.sentence()]
            return _said(shown or ["nothing matches"], notes)

        return await self._beside(search)

    async def _find_files(self, given: Arguments, tokens: int) -> str:
        glob = given.text("glob", "pattern", "name")

        def find(stop: Stop) -> str:
            found = self.codebase.glob([glob], stop, bounds=NAMES)
            names = [entry.path for entry in found.entries] or ["no file fits"]
            return bounded(_said(names, [found.omitted.sentence()]), tokens, "use a narrower glob")

        return await self._beside(find)

    async def _list_folder(self, given: Arguments, tokens: int) -> str:
        path = given.text("path", "folder", "directory", default=".")

        def look(stop: Stop) -> str:
            listing = self.codebase.list("." if path == "/" else path, stop, bounds=NAMES)
            names = [f"{item.path}/" if item.kind == "folder" else item.path for item in listing.items]
            said = _said(names or ["nothing is there"], [listing.omitted.sentence()])
            return bounded(said, tokens, "find_files shows some of them")

        return await self._beside(look)

    async def _outline(self, given: Arguments, tokens: int) -> str:
        path = given.text("path", "file_path", "file")

        def sketch(stop: Stop) -> str:
            entry = self.codebase.read(path, stop, lines=1).entry
            with self.codebase.opener(stop) as opener:
                clean = CleanLines(opener, self.redactor)
                whole = clean.whole(entry)
                chunks = outline_text(entry.path, "\n".join(whole).encode()).chunks
                named = {
                    chunk.line: chunk.name for chunk in chunks if chunk.name and chunk.line <= len(whole)
                }
                lines = [
                    f"{line}: {clip(''.join(clean.between(entry, line, line)).strip(), 120)}"
                    for line in named
                ]
            shown = lines[: lines_that_fit(lines, tokens - 30)]
            self._charge([shown])
            cut = (
                f"{counted(len(lines) - len(shown), 'more definition')} cut"
                if len(shown) < len(lines)
                else ""
            )
            return _said(
                [f"{entry.path}, {counted(len(whole), 'line')}", *(shown or ["defines nothing known"])], [cut]
            )

        return await self._beside(sketch)

    def _charge(self, shown: Sequence[Sequence[str]]) -> None:
        """Book the files and bytes that are about to be handed out; both or none (P2)."""
        files = [lines for lines in shown if lines]
        size = sum(len(line.encode()) + 1 for lines in files for line in lines)
        with (
            self.spending.reserve(BudgetKind.FILES, len(files)) as opened,
            self.spending.reserve(BudgetKind.BYTES, size) as read,
        ):
            opened.settle(len(files))
            read.settle(size)

    async def _beside(self, work: Callable[[Stop], T]) -> T:
        try:
            return await in_thread(work, self.seconds)
        except DeadlineExceeded:
            raise Unavailable(
                f"it took longer than {counted(self.seconds, 'second')}", hint="narrow it down"
            ) from None


def _pattern(text: str) -> tuple[SearchPattern, str]:
    """Whatever its case, unless it has capitals; as plain text, if it is no regular expression."""
    ignore_case = text == text.lower()
    pattern = SearchPattern(text, ignore_case=ignore_case)
    try:
        pattern.regex()
    except InvalidInput:
        return SearchPattern(
            text, fixed=True, ignore_case=ignore_case
        ), "Not a regular expression: taken as text."
    return pattern, ""


def _matching(match: LineMatch, clean: CleanLines) -> str:
    raw = "".join(clean.whole(match.entry)[match.line - 1 : match.line])  # changed since, perhaps
    safe = "".join(clean.between(match.entry, match.line, match.line))
    # The search cut long lines around the match, but does not know of secrets.
    text = match.text if safe == raw else clip(safe, LONGEST_LINE)
    return f"{match.entry.path}:{match.line}: {text.strip()}"


def _by_file(matches: Sequence[LineMatch], shown: Sequence[str]) -> Sequence[Sequence[str]]:
    files: dict[FileEntry, list[str]] = {}
    for match, line in zip(matches, shown, strict=False):
        files.setdefault(match.entry, []).append(line)
    return list(files.values())


def _said(lines: Sequence[str], notes: Sequence[str]) -> str:
    told = [f"[{note}]" for note in notes if note]
    return "\n".join([*lines, *told])
