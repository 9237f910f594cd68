"""A handoff: what the next one who works on this must know, as Markdown that can be read back.

The headings of a memo, and three more. Knows nothing of where it is kept, nor whether its references hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from retinue.core import InvalidInput, Reference
from retinue.research.artifact import bullets, verbatim

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
            return ["", f"## {HANDOFF_LISTS[name]}", "", *(bullets(items) or [_NOTHING])]

        lines = [TITLE, "", "## Question", "", *verbatim(self.question)]
        lines += ["", "## Summary", "", self.summary or _NOTHING]
        for name in ("found", "decided", "changed", "open"):
            lines += section(name)
        lines += ["", "## References", "", *(map(str, self.references) if self.references else [_NOTHING])]
        lines += ["", "## Constraints / Budgets", "", *bullets(f"{_ROOT}{root}" for root in self.roots)]
        lines += bullets(constraints)
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
