"""Writes and reads handoff documents: Markdown with everything that a person or agent needs to continue.

A handoff has the headings of a memo and three more, and can be parsed again. Each reference includes the text
of its line, so that `LineFinder` can find the line again after the code has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from retinue.answers import MAX_QUOTE_CHARS, REDACTED_LINE, ReferenceNamer, SourceFile, SourceFiles
from retinue.codebase import MAX_PATTERN_CHARS, Bounds, FileEntry, SearchPattern
from retinue.core import InvalidInput, Reference, Stop
from retinue.research.artifact import MEMO_TITLE, bullet_list, quote_text

HANDOFF_LISTS = {
    "found": "Key Findings",
    "decided": "Decisions",
    "changed": "Changes",
    "open": "Open",
    "notes": "Notes",
}
"""Maps the name of each list to its heading."""
_ROOT = "root searched: "
_NOTHING = "None."
_REFERENCE = re.compile(
    r"- `(?P<reference>[^`]+)`(?: \(root (?P<root>\d{1,3})\))?(?:: (?P<ticks>`+) ?(?P<text>.*?) ?(?P=ticks))?"
)


@dataclass(frozen=True, slots=True)
class HandoffReference:
    """A reference with the text of its line."""

    reference: Reference
    root: int = 0
    """The number of its root in the document."""
    text: str = ""

    def __str__(self) -> str:
        where = f" (root {self.root + 1})" if self.root else ""
        return f"- `{self.reference}`{where}{f': {_code_span(self.text)}' if self.text else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffDocument:
    """The content of a handoff document."""

    question: str
    summary: str
    lists: Mapping[str, tuple[str, ...]]
    """The items of each list, by the names of `HANDOFF_LISTS`."""
    references: tuple[HandoffReference, ...]
    roots: tuple[str, ...]
    """Absolute paths of the searched folders."""

    def to_markdown(self) -> str:
        def section(name: str) -> list[str]:
            items = self.lists.get(name, ())
            return ["", f"## {HANDOFF_LISTS[name]}", "", *(bullet_list(items) or [_NOTHING])]

        lines = [MEMO_TITLE, "", "## Question", "", *quote_text(self.question)]
        lines += ["", "## Summary", "", self.summary or _NOTHING]
        for name in ("found", "decided", "changed", "open"):
            lines += section(name)
        lines += ["", "## References", "", *(map(str, self.references) if self.references else [_NOTHING])]
        lines += ["", "## Constraints / Budgets", "", *bullet_list(f"{_ROOT}{root}" for root in self.roots)]
        if self.lists.get("notes"):
            lines += section("notes")
        return "\n".join(lines) + "\n"

    @classmethod
    def parse(cls, text: str) -> HandoffDocument:
        """Read a handoff document or a memo. Raises `InvalidInput` for any other text."""
        sections = _split_sections(text)
        if not text.startswith(MEMO_TITLE) or "References" not in sections:
            raise InvalidInput("the file is not a handoff", hint=f"a handoff begins with `{MEMO_TITLE}`")
        budgets = _list_items(sections.get("Constraints / Budgets", []))
        references = [_REFERENCE.fullmatch(line) for line in sections["References"]]
        return cls(
            question=_unquote_text(sections.get("Question", [])),
            summary="\n".join(sections.get("Summary", [])).strip().removeprefix(_NOTHING),
            lists={
                name: tuple(_list_items(sections.get(title, []))) for name, title in HANDOFF_LISTS.items()
            },
            references=tuple(
                HandoffReference(
                    Reference.parse(one["reference"]), int(one["root"] or 1) - 1, one["text"] or ""
                )
                for one in references
                if one is not None
            ),
            roots=tuple(one.removeprefix(_ROOT) for one in budgets if one.startswith(_ROOT)),
        )


def _code_span(text: str) -> str:
    """Return a Markdown code span, with more backticks than the text has in a row."""
    ticks = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if len(ticks) > 1 else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _split_sections(text: str) -> dict[str, list[str]]:
    """Return the lines below each heading. A heading inside a fence counts as text."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if fence or re.fullmatch("`{3,}", line):
            fence = "" if line == fence else fence or line
        elif line.startswith("## "):
            lines = found.setdefault(line[3:], [])
            continue
        lines.append(line)
    return found


def _list_items(lines: Iterable[str]) -> list[str]:
    """Return the items of a Markdown list, each with its indented lines."""
    items: list[str] = []
    for line in lines:
        if line.startswith("- "):
            items.append(line[2:])
        elif line.startswith("  ") and items:
            items[-1] += f"\n{line[2:]}"
    return items


def _unquote_text(lines: list[str]) -> str:
    """Undo `quote_text`."""
    text = "\n".join(lines).strip("\n")
    first, _, rest = text.partition("\n")
    if re.fullmatch("`{3,}", first) and rest.endswith(f"\n{first}"):
        return rest.removesuffix(f"\n{first}")
    return text


HANDOFF_PREFIX = "handoff"
"""The beginning of the file names of handoffs. Memos are in the same folder."""
MAX_FILE_BYTES = 1_048_576
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


def find_handoff_file(folder: Path, name: str | None) -> Path:
    """Return the handoff with this name, or the newest one if `name` is None.

    Finds only regular files directly in the folder, no links.
    """
    files = sorted(
        (path for path in folder.glob("*.md") if path.is_file() and not path.is_symlink()),
        key=lambda path: (path.stat().st_mtime_ns, path.name),
    )
    if name is None:
        newest = [path for path in files if path.name.startswith(f"{HANDOFF_PREFIX}-")][-1:]
        if not newest:
            raise InvalidInput("there is no handoff yet", hint="use create_handoff to write one")
        return newest[0]
    wanted = Path(name).name if Path(name).parent in (Path(), folder, folder.resolve()) else name
    found = [path for path in files if path.name in (wanted, f"{wanted}.md")]
    if not found or not _FILE_NAME.fullmatch(wanted) or found[0].stat().st_size > MAX_FILE_BYTES:
        similar = get_close_matches(wanted, [path.name for path in files], 1)
        hint = f"did you mean {similar[0]}?" if similar else "omit the name to get the newest handoff"
        raise InvalidInput(f"no handoff is named {name!r}", hint=hint)
    return found[0]


LineState = Literal["unchanged", "moved", "gone", "present"]
"""`present`: the file or line exists, but its text was not stored, so it cannot be compared."""
MIN_SEARCHED_CHARS = 12
"""Shorter lines are not searched for in other files, because they occur in too many."""
OTHER_FILES_BOUNDS = Bounds(max_files=5, max_matches=20)


@dataclass(frozen=True, slots=True)
class RememberedLine:
    """A line and the text that it had when it was remembered."""

    entry: FileEntry
    line: int | None = None
    text: str = ""
    """The redacted line without indentation, cut if it is long."""


@dataclass(frozen=True, slots=True)
class LineStatus:
    """The present state of a remembered line."""

    state: LineState
    now: str | None = None
    """The new reference, if the line has moved."""


@dataclass(frozen=True, slots=True)
class LineFinder:
    """Remembers lines by their text and finds them again, within the limits of one request."""

    sources: SourceFiles
    namer: ReferenceNamer
    stop: Stop

    def remember(self, entry: FileEntry, line: int | None) -> RememberedLine | None:
        """Return the line with its text; None if it does not exist or cannot be read."""
        source = self.sources.open(entry, self.stop)
        if source is None or (line is not None and line > len(source.lines)):
            return None
        return RememberedLine(entry, line, source.quote(line) if line is not None else "")

    def find(self, remembered: RememberedLine) -> LineStatus:
        """Find a line again: at its place, elsewhere in its file, or in another file."""
        source = self.sources.open(remembered.entry, self.stop)
        if source is None:
            return self._find_in_other_files(remembered)
        if remembered.line is None or not remembered.text:
            exists = remembered.line is None or remembered.line <= len(source.lines)
            return LineStatus("present" if exists else "gone")
        lines = _lines_with(source, remembered.text)
        if remembered.line in lines:
            return LineStatus("unchanged")
        if lines:
            was = remembered.line
            return self._moved(remembered.entry, min(lines, key=lambda line: (abs(line - was), line)))
        return self._find_in_other_files(remembered)

    def _find_in_other_files(self, remembered: RememberedLine) -> LineStatus:
        """Search all files for the text, unless it is short, cut or redacted."""
        text = remembered.text
        is_whole = len(text) < min(MAX_QUOTE_CHARS, MAX_PATTERN_CHARS) and REDACTED_LINE not in text
        if is_whole and len(text) >= MIN_SEARCHED_CHARS:
            found = self.namer.scope.codebase.grep(
                SearchPattern(text, fixed=True), self.stop, bounds=OTHER_FILES_BOUNDS
            ).matches
            for match in found:
                if match.text.strip() == text:
                    return self._moved(match.entry, match.line)
        return LineStatus("gone")

    def _moved(self, entry: FileEntry, line: int) -> LineStatus:
        return LineStatus("moved", str(self.namer.name(entry, line)[0]))


def _lines_with(source: SourceFile, text: str) -> list[int]:
    """Return the numbers of the lines whose quote is this text."""
    return [line for line in range(1, len(source.lines) + 1) if source.quote(line) == text]
