"""A handoff: what the next one who works on this must know, as Markdown that can be read back.

The headings of a memo, and three more. Knows nothing of where it is kept, nor whether its references hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from retinue.codebase import MAX_PATTERN_CHARS, Bounds, FileEntry, SearchPattern
from retinue.core import InvalidInput, Reference, Stop
from retinue.research.artifact import bullet_list, verbatim
from retinue.research.scope import Naming
from retinue.research.source_files import HIDDEN, LONGEST_QUOTE, SourceFile, SourceFiles

TITLE = "# Research Handoff"
HANDOFF_LISTS = {
    "found": "Key Findings",
    "decided": "Decisions",
    "changed": "Changes",
    "open": "Open",
    "notes": "Notes",
}
"""Each list by its name, with its heading."""
_ROOT = "root searched: "
_NOTHING = "None."
_KEPT = re.compile(
    r"- `(?P<reference>[^`]+)`(?: \(root (?P<root>\d{1,3})\))?(?:: (?P<ticks>`+) ?(?P<text>.*?) ?(?P=ticks))?"
)


@dataclass(frozen=True, slots=True)
class KeptReference:
    """A reference with what its line said."""

    reference: Reference
    root: int = 0
    """Its place among the handoff's roots."""
    text: str = ""

    def __str__(self) -> str:
        where = f" (root {self.root + 1})" if self.root else ""
        return f"- `{self.reference}`{where}{f': {_code(self.text)}' if self.text else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffDocument:
    question: str
    summary: str
    lists: Mapping[str, tuple[str, ...]]
    """By the names of `HANDOFF_LISTS`."""
    references: tuple[KeptReference, ...]
    roots: tuple[str, ...]

    def markdown(self, constraints: Iterable[str] = ()) -> str:
        def section(name: str) -> list[str]:
            items = self.lists.get(name, ())
            return ["", f"## {HANDOFF_LISTS[name]}", "", *(bullet_list(items) or [_NOTHING])]

        lines = [TITLE, "", "## Question", "", *verbatim(self.question)]
        lines += ["", "## Summary", "", self.summary or _NOTHING]
        for name in ("found", "decided", "changed", "open"):
            lines += section(name)
        lines += ["", "## References", "", *(map(str, self.references) if self.references else [_NOTHING])]
        lines += ["", "## Constraints / Budgets", "", *bullet_list(f"{_ROOT}{root}" for root in self.roots)]
        lines += bullet_list(constraints)
        if self.lists.get("notes"):
            lines += section("notes")
        return "\n".join(lines) + "\n"

    @classmethod
    def parse(cls, text: str) -> HandoffDocument:
        """A handoff or a memo that was written before. InvalidInput for anything else."""
        sections = _sections(text)
        if not text.startswith(TITLE) or "References" not in sections:
            raise InvalidInput("the file is no handoff", hint=f"it would begin with `{TITLE}`")
        bounds = _items(sections.get("Constraints / Budgets", []))
        kept = [_KEPT.fullmatch(line) for line in sections["References"]]
        return cls(
            question=_unquoted(sections.get("Question", [])),
            summary="\n".join(sections.get("Summary", [])).strip().removeprefix(_NOTHING),
            lists={name: tuple(_items(sections.get(title, []))) for name, title in HANDOFF_LISTS.items()},
            references=tuple(
                KeptReference(Reference.parse(one["reference"]), int(one["root"] or 1) - 1, one["text"] or "")
                for one in kept
                if one is not None
            ),
            roots=tuple(one.removeprefix(_ROOT) for one in bounds if one.startswith(_ROOT)),
        )


def _code(text: str) -> str:
    """Between more backticks than it has in a row."""
    ticks = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if len(ticks) > 1 else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _sections(text: str) -> dict[str, list[str]]:
    """The lines below each heading; headings inside a fence are text."""
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


def _items(lines: Iterable[str]) -> list[str]:
    """The bullets, each with its further lines."""
    items: list[str] = []
    for line in lines:
        if line.startswith("- "):
            items.append(line[2:])
        elif line.startswith("  ") and items:
            items[-1] += f"\n{line[2:]}"
    return items


def _unquoted(lines: list[str]) -> str:
    """The question, out of the fence that may stand around it."""
    text = "\n".join(lines).strip("\n")
    first, _, rest = text.partition("\n")
    if re.fullmatch("`{3,}", first) and rest.endswith(f"\n{first}"):
        return rest.removesuffix(f"\n{first}")
    return text


# MERGED handoff_file: Which file a handoff is in. Nothing outside the artifact folder is ever one.

HANDOFF_PREFIX = "handoff"
"""What the names of handoffs begin with; memos of research lie in the same folder."""
LARGEST = 1_048_576
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


def find_handoff(folder: Path, name: str | None) -> Path:
    """One that lies directly in the folder; neither a link nor anything else than a file."""
    files = sorted(
        (path for path in folder.glob("*.md") if path.is_file() and not path.is_symlink()),
        key=lambda path: (path.stat().st_mtime_ns, path.name),
    )
    if name is None:
        newest = [path for path in files if path.name.startswith(f"{HANDOFF_PREFIX}-")][-1:]
        if not newest:
            raise InvalidInput("there is no handoff yet", hint="create_handoff writes one")
        return newest[0]
    wanted = Path(name).name if Path(name).parent in (Path(), folder, folder.resolve()) else name
    found = [path for path in files if path.name in (wanted, f"{wanted}.md")]
    if not found or not _NAME.fullmatch(wanted) or found[0].stat().st_size > LARGEST:
        near = get_close_matches(wanted, [path.name for path in files], 1)
        hint = f"did you mean {near[0]}?" if near else "leave it out for the newest"
        raise InvalidInput(f"no handoff is named {name!r}", hint=hint)
    return found[0]


# MERGED relocate: Lines remembered by what they say, to be found again when the code has moved on.

LandmarkState = Literal["unchanged", "moved", "gone", "present"]
"""`present`: the file or line is there; what it said was not kept, so nothing more can be told."""
TELLING = 12
"""Letters of a line that is looked for in other files too: a shorter one stands anywhere."""
ELSEWHERE = Bounds(max_files=5, max_matches=20)


@dataclass(frozen=True, slots=True)
class Landmark:
    entry: FileEntry
    line: int | None = None
    text: str = ""
    """The line without its indentation and secrets, cut if it is long."""


@dataclass(frozen=True, slots=True)
class Sighting:
    state: LandmarkState
    now: str | None = None
    """Where it is, if it has moved."""


@dataclass(frozen=True, slots=True)
class Surveyor:
    """Looks at lines through the limits of one request."""

    sources: SourceFiles
    naming: Naming
    stop: Stop

    def remember(self, entry: FileEntry, line: int | None) -> Landmark | None:
        """None if there is no such line, or none that may be read."""
        source = self.sources.open(entry, self.stop)
        if source is None or (line is not None and line > len(source.lines)):
            return None
        return Landmark(entry, line, source.quote(line) if line is not None else "")

    def look_again(self, mark: Landmark) -> Sighting:
        source = self.sources.open(mark.entry, self.stop)
        if source is None:
            return self._elsewhere(mark)
        if mark.line is None or not mark.text:
            is_there = mark.line is None or mark.line <= len(source.lines)
            return Sighting("present" if is_there else "gone")
        lines = _saying(source, mark.text)
        if mark.line in lines:
            return Sighting("unchanged")
        if lines:
            was = mark.line
            return self._moved(mark.entry, min(lines, key=lambda line: (abs(line - was), line)))
        return self._elsewhere(mark)

    def _elsewhere(self, mark: Landmark) -> Sighting:
        """Code moves to other files, too. A line that was cut or redacted cannot be looked for."""
        searchable = (
            TELLING <= len(mark.text) < min(LONGEST_QUOTE, MAX_PATTERN_CHARS) and HIDDEN not in mark.text
        )
        if searchable:
            found = self.naming.scope.codebase.grep(
                SearchPattern(mark.text, fixed=True), self.stop, bounds=ELSEWHERE
            ).matches
            for match in found:
                if match.text.strip() == mark.text:
                    return self._moved(match.entry, match.line)
        return Sighting("gone")

    def _moved(self, entry: FileEntry, line: int) -> Sighting:
        return Sighting("moved", str(self.naming.of(entry, line)[0]))


def _saying(source: SourceFile, text: str) -> list[int]:
    return [line for line in range(1, len(source.lines) + 1) if source.quote(line) == text]
