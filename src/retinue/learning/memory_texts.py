"""The texts of memories: how they are cleaned before they are stored, and how a reader sees them.

Memories are data: where they reach a prompt or a page, each line is quoted. Knows nothing of stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from retinue.core import (
    MAX_MEMORY_CHARACTERS,
    InvalidInput,
    Memory,
    MemoryScope,
    Redactor,
    clip,
    counted,
    escape_invisible_characters,
    strip_control_characters,
)

DAY_S = 86_400.0


class MemoryCleaner:
    """Cleans what is to be stored as a memory, or searched for."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def text_to_store(self, text: str) -> tuple[str, bool]:
        """Return the text as it may be stored, and whether a secret was removed from it (P6)."""
        cleaned = self.clean(text).strip()
        if not cleaned:
            raise InvalidInput("the memory is empty", hint="write one fact")
        if len(cleaned) > MAX_MEMORY_CHARACTERS:
            raise InvalidInput(
                f"the memory has {len(cleaned)} characters; at most {MAX_MEMORY_CHARACTERS} are allowed",
                hint="write one fact, and cite the place instead of its code",
            )
        redacted = self._redactor.redact(cleaned)
        return redacted, redacted != cleaned

    def clean(self, text: str) -> str:
        """Remove control characters and show invisible ones, so that people see all that a model sees."""
        visible = strip_control_characters(text)
        # Two joiners are part of ordinary words in some languages.
        return "\u200d".join(
            "\u200c".join(map(escape_invisible_characters, part.split("\u200c")))
            for part in visible.split("\u200d")
        )

    def short_text(self, text: str, limit: int) -> str:
        """Return a name or a place as it may be stored."""
        return clip(self._redactor.redact(self.clean(text)), limit)


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """A memory as a reader sees it."""

    memory: Memory
    scope: MemoryScope
    text: str
    """The text, cut to the share of characters that it may have."""
    age_s: float
    cites: Sequence[str] = ()
    """Where the cited places are now."""
    changed: Sequence[str] = ()
    """The cited places whose code has changed."""
    score: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        memory = self.memory
        shown: dict[str, Any] = {
            "id": memory.id,
            "text": self.text,
            "kind": memory.kind,
            "state": memory.state,
            "scope": self.scope,
            "age": format_age(self.age_s),
            "by": memory.author,
            "run": memory.source,
            "corrects": list(memory.supersedes),
            "cites": list(self.cites),
        }
        shown = {name: value for name, value in shown.items() if value not in (None, "", [])}
        if self.changed:
            shown["changed"] = list(self.changed)
            shown["warning"] = "the code that this cites has changed since: check it first"
        return shown

    def quoted(self) -> str:
        """The memory as quoted lines for a prompt."""
        facts = [self.memory.kind.replace("_", " "), self.memory.state, f"{format_age(self.age_s)} old"]
        facts += [f"the cited {', '.join(self.changed)} has changed since"] if self.changed else []
        return f"> [{self.memory.id}] {', '.join(facts)}:\n{quote(self.text)}"


def format_age(seconds: float) -> str:
    """An age in the largest unit that fits: `3 days`, `2 hours`."""
    for unit, size in (("day", DAY_S), ("hour", 3_600.0), ("minute", 60.0)):
        if seconds >= size:
            return counted(int(seconds // size), unit)
    return "less than a minute"


def quote(text: str, mark: str = "> ") -> str:
    """Return the text with a mark before each of its lines."""
    return "\n".join(mark + line for line in text.splitlines())


def one_of(value: str, allowed: Sequence[str], what: str) -> str:
    """Return a value of a table such as `MEMORY_KINDS`; anything else is refused."""
    if value not in allowed:
        raise InvalidInput(f"{value[:80]!r} is not a {what}", hint=f"use one of: {', '.join(allowed)}")
    return value
