"""Tools that change files of one folder: write, replace a text, apply a patch.

Paths go through `FileWriter`, so links, secrets and the files of version control are refused. What remains is
decided by `permit`, call by call. Every answer shows the lines as they are now. Knows nothing of worktrees.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from retinue.codebase import Codebase, FileEntry, FileWriter, split_lines
from retinue.core import (
    EDIT_FILE,
    WRITE_FILE,
    DeadlineExceeded,
    InvalidInput,
    PathMissing,
    Permit,
    Redactor,
    Root,
    Stop,
    ToolRequest,
    ToolSpec,
    Unauthorized,
    Unavailable,
    clip,
    counted,
    run_in_thread,
)
from retinue.tools.file_tools import MAX_LINE_CHARS
from retinue.tools.lenient_search import near_files
from retinue.tools.patches import apply_hunks, describe_nearest, parse_patch
from retinue.tools.seen_code import SeenCode
from retinue.tools.toolbox import Arguments, Tool, parameters

CONTEXT_LINES = 3
"""Lines that an answer shows above and below a change."""
MAX_SHOWN_LINES = 40
LINE_END_BYTES = 65_536
"""The beginning of a file that tells how its lines end."""
MAX_FILES = 50
"""Files that one patch may change."""
PATH_NAMES = ("path", "file_path", "filePath", "file", "filename")
OLD_NAMES = ("old", "old_string", "old_str", "oldString", "old_text", "search")
NEW_NAMES = ("new", "new_string", "new_str", "newString", "new_text", "replace")
PATCH_NAMES = ("patch", "diff", "input", "patch_text")
_REDACTED = re.compile(r"\[redacted:[\w -]+\]")
_NUMBERED = re.compile(r"\s*\d+: ?(.*)")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change that a call makes to one file."""

    entry: FileEntry
    before: str | None
    """The content now; None if there is no such file."""
    after: str | None
    """The content afterwards; None removes the file."""

    @property
    def tool(self) -> str:
        """The name that permission rules use for such a change."""
        return "Write" if self.before is None else "Edit"


@dataclass(frozen=True, slots=True)
class EditTools:
    """Makes the tools that change files below one root of a codebase."""

    codebase: Codebase
    root: Root
    permit: Permit
    redactor: Redactor
    seconds: float = 20.0
    """Limit for one call, without the wait for a permission."""
    seen: SeenCode = field(default_factory=SeenCode)
    """Remembers what the tools have shown."""

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools, in the order of `WRITING_TOOLS`."""
        path = ("string", "from the root")
        return (
            Tool(
                ToolSpec(
                    WRITE_FILE,
                    "Create a file, or replace all of it.",
                    parameters(
                        ("path", "content"), path=path, content=("string", "the whole content of the file")
                    ),
                ),
                self._write_file,
            ),
            Tool(
                ToolSpec(
                    EDIT_FILE,
                    "Replace a text in a file. The old text must occur exactly once.",
                    parameters(
                        ("path", "old", "new"),
                        path=path,
                        old=("string", "the text to replace, exactly as in the file, without line numbers"),
                        new=("string", "the text that takes its place"),
                        all=("boolean", "replace every occurrence"),
                    ),
                ),
                self._edit_file,
            ),
            Tool(
                ToolSpec(
                    "apply_patch",
                    "Apply a unified diff to one or more files.",
                    parameters(("patch",), patch=("string", "the diff")),
                ),
                self._apply_patch,
            ),
        )

    async def _write_file(self, arguments: Arguments, tokens: int) -> str:
        path = arguments.text(*PATH_NAMES)
        content = arguments.content("content", "contents", "text", "file_text", "body")

        def plan(stop: Stop) -> list[FileChange]:
            entry = self._writer.entry(path)
            before = self._read(entry, stop) if self._writer.exists(entry) else None
            if before == content:
                raise InvalidInput(f"{entry.path} has this content already")
            ending = "" if not content or content.endswith("\n") else "\n"
            return [FileChange(entry, before, content + ending)]

        return await self._change(plan)

    async def _edit_file(self, arguments: Arguments, tokens: int) -> str:
        if arguments.has(*PATCH_NAMES) and not arguments.has(*OLD_NAMES):
            return await self._apply_patch(arguments, tokens)
        path = arguments.text(*PATH_NAMES)
        old, new = arguments.content(*OLD_NAMES), arguments.content(*NEW_NAMES)
        everywhere = arguments.flag("all", "replace_all", "replaceAll")

        def plan(stop: Stop) -> list[FileChange]:
            entry, before = self._existing(path, stop)
            return [FileChange(entry, before, replace_text(entry.path, before, old, new, everywhere))]

        return await self._change(plan)

    async def _apply_patch(self, arguments: Arguments, tokens: int) -> str:
        patches = parse_patch(arguments.content(*PATCH_NAMES))
        if len(patches) > MAX_FILES:
            raise InvalidInput(f"the patch changes {len(patches)} files", hint=f"at most {MAX_FILES} at once")

        def plan(stop: Stop) -> list[FileChange]:
            changes: dict[FileEntry, FileChange] = {}
            for patch in patches:
                if patch.is_new:
                    entry, before = self._writer.entry(patch.path), None
                    if self._writer.exists(entry):
                        raise InvalidInput(f"{entry.path} exists already", hint="edit it instead")
                elif (known := changes.get(self._writer.entry(patch.path))) and known.after is not None:
                    entry, before = known.entry, known.after  # the patch changes the same file twice
                else:
                    entry, before = self._existing(patch.path, stop)
                after = None
                if patch.target is not None:
                    after = apply_hunks(entry.path, before or "", patch.hunks)
                    after += "" if not after or after.endswith("\n") else "\n"
                first = changes[entry].before if entry in changes else before
                if patch.target is not None and patch.target != patch.path:
                    target = self._writer.entry(patch.target)
                    if self._writer.exists(target):
                        raise InvalidInput(f"{target.path} exists already", hint="choose another name")
                    changes[entry] = FileChange(entry, first, None)
                    changes[target] = FileChange(target, None, after)
                else:
                    changes[entry] = FileChange(entry, first, after)
            return list(changes.values())

        return await self._change(plan)

    @property
    def _writer(self) -> FileWriter:
        return self.codebase.writer(self.root)

    def _existing(self, path: str, stop: Stop) -> tuple[FileEntry, str]:
        """Return a file that exists, and its content."""
        entry = self._writer.entry(path)
        if self._writer.exists(entry):
            return entry, self._read(entry, stop)
        near = near_files(self.codebase, path, stop)
        hint = f"files with this name: {', '.join(near[:5])}" if near else "write_file creates new files"
        raise PathMissing(f"there is no file {entry.path!r}", hint=hint)

    def _read(self, entry: FileEntry, stop: Stop) -> str:
        with self.codebase.opener(stop) as opener:
            found = opener.read_text(entry)
        if found.encoding != "utf-8":
            raise InvalidInput(f"{entry.path} is {found.encoding}", hint="only UTF-8 files can be changed")
        return found.utf8.decode()

    async def _change(self, plan: Callable[[Stop], list[FileChange]]) -> str:
        """Make all changes of a call, or none if one of them is refused."""
        changes = await self._in_thread(plan)
        for change in changes:
            if change.after is not None:
                _refuse_removed_secrets(change)
            request = ToolRequest.of(change.tool, {"file_path": change.entry.path}, str(self.root.path))
            verdict = await self.permit(request)
            if not verdict.allowed:
                raise Unauthorized(f"{change.entry.path} may not be changed: {verdict.reason}")

        def apply(stop: Stop) -> str:
            if plan(stop) != changes:
                raise InvalidInput("the files have changed in the meantime", hint="read them again")
            for change in changes:
                if change.after is None:
                    self._writer.remove(change.entry)
                else:
                    self._writer.write(change.entry, self._encoded(change, stop))
            return "\n".join(text for change in changes for text in self._describe(change))

        return await self._in_thread(apply)

    def _encoded(self, change: FileChange, stop: Stop) -> bytes:
        """Return the new content with the line ends of the file."""
        data = (change.after or "").encode("utf-8", "replace")
        if change.before is None or "\n" not in change.before:
            return data
        with self.codebase.opener(stop) as opener:
            fd, _ = opener.open(change.entry)
        with os.fdopen(fd, "rb") as file:
            has_windows_ends = b"\r\n" in file.read(LINE_END_BYTES)
        return data.replace(b"\n", b"\r\n") if has_windows_ends else data

    def _describe(self, change: FileChange) -> Iterator[str]:
        """Yield the model's view of a change: the lines around it, and any syntax error."""
        path = change.entry.path
        if change.after is None:
            yield f"removed {path}"
            return
        lines = split_lines(change.after)
        before = split_lines(change.before or "")
        self.seen.add_lines(path, enumerate(lines, 1), are_own=change.before is None)
        if change.before is None:
            yield f"created {path}, {counted(len(lines), 'line')}"
        else:
            first, last = _changed_lines(before, lines)
            shown = range(max(1, first - CONTEXT_LINES), min(len(lines), last + CONTEXT_LINES) + 1)
            yield f"changed {path}, which has {counted(len(lines), 'line')} now"
            clean = self.redactor.redact_lines(lines)
            yield from (f"{n}: {clip(clean[n - 1], MAX_LINE_CHARS)}" for n in shown[:MAX_SHOWN_LINES])
        if problem := syntax_problem(path, change.after):
            yield f"[{path} {problem}]"

    async def _in_thread(self, work: Callable[[Stop], T]) -> T:
        try:
            return await run_in_thread(work, self.seconds)
        except DeadlineExceeded:
            raise Unavailable(f"the call took longer than {counted(self.seconds, 'second')}") from None


def replace_text(path: str, text: str, old: str, new: str, everywhere: bool) -> str:
    """Replace a text that occurs once, or everywhere. Raises `InvalidInput` with what helps to correct it."""
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if not old:
        raise InvalidInput("edit_file: `old` is empty", hint="copy the lines to replace from the file")
    if old not in text and (unnumbered := _without_numbers(old)) is not None and unnumbered in text:
        old, new = unnumbered, _without_numbers(new) or new
    if old == new:
        raise InvalidInput("edit_file: `old` and `new` are the same")
    count = text.count(old)
    if count == 1 or (count and everywhere):
        return text.replace(old, new)
    if count:
        lines = [str(line) for line in _lines_of(text, old)]
        more = ", …" if count > len(lines) else ""
        raise InvalidInput(
            f"`old` occurs {count} times in {path}, in lines {', '.join(lines)}{more}",
            hint="add the line above or below to `old`, or set `all`",
        )
    if new and new in text:
        raise InvalidInput(f"{path} has the new text already, and not the old one")
    raise InvalidInput(
        f"{path} does not have this text: {describe_nearest(text, old)}",
        hint="copy the text exactly as the file has it, with its spaces and without line numbers",
    )


def _without_numbers(text: str) -> str | None:
    """Return lines without the numbers that read_file shows; None if a line has no number."""
    found = [_NUMBERED.fullmatch(line) for line in text.strip("\n").split("\n")]
    return "\n".join(each[1] for each in found if each) if all(found) else None


def _lines_of(text: str, part: str, limit: int = 8) -> Iterator[int]:
    """Yield the lines in which a part of a text begins."""
    at = text.find(part)
    while at >= 0 and limit:
        yield text.count("\n", 0, at) + 1
        at, limit = text.find(part, at + len(part)), limit - 1


def _changed_lines(before: list[str], after: list[str]) -> tuple[int, int]:
    """Return the first and the last line of the new text that differ from the old one."""
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    end = 0
    while end < min(len(before), len(after)) - same and before[-1 - end] == after[-1 - end]:
        end += 1
    return same + 1, max(same + 1, len(after) - end)


def _refuse_removed_secrets(change: FileChange) -> None:
    """Refuse a text in which the model repeats the mark of a secret that it was not shown (P6)."""
    known = set(_REDACTED.findall(change.before or ""))
    for mark in _REDACTED.findall(change.after or ""):
        if mark not in known:
            raise InvalidInput(
                f"the text contains {mark}, which stands for a secret that the file has",
                hint="leave that line as it is: change only other lines, with edit_file",
            )


def syntax_problem(path: str, text: str) -> str:
    """Return what is wrong with the syntax of a Python file; empty if nothing is."""
    if not path.endswith(".py"):
        return ""
    try:
        ast.parse(text)
    except SyntaxError as error:
        return f"is not valid Python: line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError):
        return "is not valid Python"
    return ""
