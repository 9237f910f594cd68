"""Reads patches as models write them, and applies them to texts. Touches no file.

Two formats are read: unified diffs, as `git diff` and `diff -u` write them, and the format of Codex's tool
`apply_patch`. Line numbers in a diff are only a hint, because models miscount: a hunk applies where its old
lines are, if that is one place only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from retinue.core import InvalidInput, clip

_HUNK = re.compile(r"@@+ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_FENCE = re.compile(r"\A\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)
_CODEX_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_CODEX_MOVE = re.compile(r"\*\*\* Move to: (.+)")
_IGNORED = ("diff --git ", "index ", "new file mode", "deleted file mode", "similarity index", "old mode")
NO_FILE = "/dev/null"
MAX_COMPARED_LINES = 5_000
"""Lines of a file that are compared with old lines that it does not have."""
MAX_SHOWN_LINES = 12
FORMAT_HINT = (
    "write a unified diff: --- a/FILE, +++ b/FILE, @@ -1,3 +1,3 @@, then lines that begin with ' ', - or +"
)


@dataclass(slots=True)
class Hunk:
    """Lines to replace, with the lines around them."""

    old: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])
    line: int | None = None
    """Where the patch says that the old lines begin."""


@dataclass(slots=True)
class FilePatch:
    """The part of a patch for one file."""

    path: str
    target: str | None
    """The path after the patch; None if the file is removed."""
    is_new: bool = False
    hunks: list[Hunk] = field(default_factory=list[Hunk])


def parse_patch(text: str) -> list[FilePatch]:
    """Read a patch. Raises `InvalidInput` if it changes no file or cannot be read."""
    if fenced := _FENCE.match(text):
        text = fenced[1]
    lines = text.replace("\r\n", "\n").split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    is_codex = any(_CODEX_FILE.fullmatch(line.rstrip()) for line in lines)
    found = list(_read_codex(lines) if is_codex else _read_unified(lines))
    if not found:
        raise InvalidInput("the patch names no file", hint=FORMAT_HINT)
    for patch in found:
        if patch.target is not None and not patch.hunks and patch.target == patch.path and not patch.is_new:
            raise InvalidInput(f"the patch has no change for {patch.path}", hint=FORMAT_HINT)
    return found


def _read_unified(lines: Sequence[str]) -> Iterator[FilePatch]:
    current: FilePatch | None = None
    before: str | None = None
    renamed: str | None = None
    for number, line in enumerate(lines):
        follows_header = number + 1 < len(lines) and lines[number + 1].startswith("+++ ")
        if line.startswith("--- ") and follows_header:
            before = _path(line[4:])
        elif line.startswith("+++ ") and before is not None:
            if current is not None:
                yield current
            after = _path(line[4:])
            path = after if before == NO_FILE else before
            target = None if after == NO_FILE else after
            current = FilePatch(path, target, is_new=before == NO_FILE)
            before = None
        elif line.startswith("rename from "):
            renamed = line.removeprefix("rename from ").strip()
        elif line.startswith("rename to ") and renamed is not None:
            if current is not None:
                yield current
            current, renamed = FilePatch(renamed, line.removeprefix("rename to ").strip()), None
        elif line.startswith("@@"):
            if current is None:
                raise InvalidInput("the patch does not say which file it changes", hint=FORMAT_HINT)
            found = _HUNK.match(line)
            current.hunks.append(Hunk(line=int(found[1]) if found else None))
        elif not line.startswith(_IGNORED) and current is not None:
            _add_line(current, line)
    if current is not None:
        yield current


def _read_codex(lines: Sequence[str]) -> Iterator[FilePatch]:
    current: FilePatch | None = None
    for line in lines:
        if found := _CODEX_FILE.fullmatch(line.rstrip()):
            if current is not None:
                yield current
            path, kind = found[2].strip(), found[1]
            current = FilePatch(path, None if kind == "Delete" else path, is_new=kind == "Add")
            if current.is_new:
                current.hunks.append(Hunk())
        elif current is not None and (moved := _CODEX_MOVE.fullmatch(line.rstrip())):
            current.target = moved[1].strip()
        elif line.startswith(("*** Begin Patch", "*** End")):
            continue
        elif current is not None and line.startswith("@@"):
            current.hunks.append(Hunk())
        elif current is not None:
            if not current.hunks:
                current.hunks.append(Hunk())
            _add_line(current, line)
    if current is not None:
        yield current


def _add_line(patch: FilePatch, line: str) -> None:
    if not patch.hunks or line.startswith("\\ No newline"):
        return
    hunk = patch.hunks[-1]
    mark, text = line[:1], line[1:]
    match mark:
        case "-":
            hunk.old.append(text)
        case "+":
            hunk.new.append(text)
        case " " | "":  # editors and models drop the space of an empty line
            hunk.old.append(text)
            hunk.new.append(text)
        case _:
            raise InvalidInput(
                f"a line of the patch begins with {mark!r}: {clip(line, 80)!r}", hint=FORMAT_HINT
            )


def _path(written: str) -> str:
    path = written.split("\t")[0].strip().strip('"')
    return path[2:] if path.startswith(("a/", "b/")) else path


def apply_hunks(path: str, text: str, hunks: Sequence[Hunk]) -> str:
    """Return the text with all hunks applied. Raises `InvalidInput` if one does not fit."""
    lines = text.split("\n")
    after = 0
    for number, hunk in enumerate(hunks, 1):
        old, new = _without_blank_end(hunk, lines)
        at = _find(lines, old, hunk.line, after) if old else (0 if number == 1 and text == "" else len(lines))
        if at is None:
            places = [place + 1 for place in _places(lines, old)]
            what = f"hunk {number} of {path}"
            if places:
                shown = ", ".join(map(str, places[:5]))
                raise InvalidInput(
                    f"{what} fits at lines {shown}", hint="add lines around the change, so that it fits once"
                )
            raise InvalidInput(
                f"{what} does not fit: {describe_nearest(text, chr(10).join(old))}",
                hint="copy the old lines exactly as the file has them",
            )
        if not old and lines[-1:] == [""]:
            at = len(lines) - 1  # before the end of the last line
        lines[at : at + len(old)] = new
        after = at + len(new)
    return "\n".join(lines)


def _without_blank_end(hunk: Hunk, lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Leave out empty context lines at the end of a hunk, which a patch may have from its own end."""
    old, new = list(hunk.old), list(hunk.new)
    while old and new and old[-1] == new[-1] == "" and not _places(lines, old):
        old.pop()
        new.pop()
    return old, new


def _find(lines: Sequence[str], old: Sequence[str], line: int | None, after: int) -> int | None:
    """Return where the old lines are: at the given line, or else at the only place; None if unclear."""
    places = _places(lines, old)
    if line is not None and line - 1 in places:
        return line - 1
    later = [place for place in places if place >= after]
    if line is not None and later:
        return min(later, key=lambda place: abs(place - line + 1))
    if len(later) == 1:
        return later[0]
    return places[0] if len(places) == 1 else None


def _places(lines: Sequence[str], old: Sequence[str]) -> list[int]:
    size, wanted = len(old), list(old)
    return [
        at
        for at in range(len(lines) - size + 1)
        if lines[at] == wanted[0] and list(lines[at : at + size]) == wanted
    ]


def describe_nearest(text: str, wanted: str) -> str:
    """Describe the lines of a text that resemble the wanted ones most."""
    lines, parts = text.split("\n")[:MAX_COMPARED_LINES], wanted.strip("\n").split("\n")[:MAX_SHOWN_LINES]
    plain = ["".join(line.split()) for line in lines]
    sought = ["".join(part.split()) for part in parts]
    size = len(parts)
    best, most = None, 0.0
    for at in range(max(1, len(lines) - size + 1)):
        window = plain[at : at + size]
        likeness = sum(map(_likeness, window, sought)) / size
        if likeness > most:
            best, most = at, likeness
    if best is None or most < 0.5:
        return "the file has no lines like these"
    shown = "\n".join(f"{number}: {line}" for number, line in enumerate(lines[best : best + size], best + 1))
    if most > 0.999:
        return f"these lines differ only in spaces:\n{shown}"
    return f"the nearest lines are:\n{shown}"


def _likeness(one: str, other: str) -> float:
    """Return 1 for equal lines and 0 for lines without anything in common."""
    if one == other:
        return 1.0
    if not one or not other or abs(len(one) - len(other)) > max(len(one), len(other)) * 0.6:
        return 0.0
    common = len(_pairs(one) & _pairs(other))
    return 0.9 * 2 * common / max(1, len(_pairs(one)) + len(_pairs(other)))


def _pairs(text: str) -> frozenset[str]:
    return frozenset(text[at : at + 2] for at in range(min(len(text), 400) - 1))
