"""A memory: a stored fact with its kind, its state, where it comes from and the places that it cites.

Also defines `RunMemory`, the port through which an agent remembers and recalls. Knows nothing of how memories
are stored or found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from retinue.core.errors import InvalidInput
from retinue.core.ids import Id
from retinue.core.reference import Reference

MemoryKind = Literal["fact", "decision", "preference", "procedure", "dead_end"]
"""What a memory says. A `dead_end` is what was tried and does not work."""
MemoryState = Literal["tentative", "confirmed"]
"""`confirmed` means that a person said it or that it was checked."""
MemoryTier = Literal["hot", "archive"]
MemoryScope = Literal["project", "user"]
"""Whether a memory belongs to one project, or to the user in every project."""

MEMORY_KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
MEMORY_STATES: tuple[MemoryState, ...] = get_args(MemoryState)
MEMORY_TIERS: tuple[MemoryTier, ...] = get_args(MemoryTier)
MEMORY_SCOPES: tuple[MemoryScope, ...] = get_args(MemoryScope)

MAX_MEMORY_CHARACTERS = 2_000
"""Maximum length of the text of one memory."""
MAX_CITED_PLACES = 8
"""Maximum number of places that one memory cites."""

_PLACE = re.compile(r"(?P<path>.+?):(?P<first>[1-9][0-9]{0,8})(?:-(?P<last>[1-9][0-9]{0,8}))?", re.DOTALL)


class MemoryId(Id):
    """The id of a memory."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CitedPlace:
    """Lines of a file, written `path:line` or `path:line-line`; `path` alone is the whole file."""

    path: str
    """Relative to the project, separated by `/`."""
    first: int | None = None
    last: int | None = None
    digest: str = ""
    """The hash of the lines when the memory was written; empty if they could not be read."""

    @classmethod
    def parse(cls, text: str) -> CitedPlace:
        """Read a place as it is written. The hash is empty."""
        text = text.strip()
        if (found := _PLACE.fullmatch(text)) is None:
            return cls(Reference(text).path)
        first = int(found["first"])
        last = int(found["last"] or first)
        if last < first:
            raise InvalidInput(f"{text[:200]!r} ends before it begins", hint="write path:first-last")
        return cls(Reference(found["path"]).path, first, last)

    def __str__(self) -> str:
        if self.first is None:
            return self.path
        return f"{self.path}:{self.first}" + (f"-{self.last}" if self.last != self.first else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One memory as it is stored."""

    id: MemoryId
    text: str
    kind: MemoryKind = "fact"
    state: MemoryState = "tentative"
    tier: MemoryTier | None = "hot"
    """None in entries of older files, until the first hygiene run sets it."""
    created_at: float
    """Seconds since 1970, like all times here."""
    last_used_at: float | None = None
    """When it was last recalled, or written. None like `tier`."""
    uses: int = 0
    """How often it was recalled."""
    author: str = ""
    """Who wrote it: `person`, the name of the host, or of the agent."""
    source: str | None = None
    """The id of the run that wrote it; None if no run did."""
    cites: tuple[CitedPlace, ...] = ()
    supersedes: tuple[MemoryId, ...] = ()
    """The memories that this one corrects."""
    superseded_by: MemoryId | None = None
    """The memory that corrects this one. A superseded memory is never recalled."""
    forgotten_at: float | None = None
    """When it was deleted. It can be restored for a while."""

    @property
    def is_live(self) -> bool:
        """Whether it can be recalled."""
        return self.forgotten_at is None and self.superseded_by is None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A fact that a caller wants to store, before it is checked."""

    text: str
    kind: str = "fact"
    scope: str = "project"
    cites: Sequence[str] = ()
    corrects: str = ""
    """The id of the memory that this one replaces, or its text."""
    confirmed: bool = False


class RunMemory(Protocol):
    """The memory as one run sees it. Answers are JSON-like, redacted, and within a limit of characters."""

    async def remember(self, new: NewMemory) -> Mapping[str, Any]:
        """Store a memory as tentative, with the run as its source."""
        ...

    async def recall(self, query: str, limit: int = 5) -> Mapping[str, Any]:
        """Return the memories that answer the query, best first."""
        ...

    async def forget(self, memory_id: str) -> Mapping[str, Any]:
        """Delete a tentative memory."""
        ...

    async def prompt_block(self, task: str) -> str:
        """Return the memories for a task as quoted text within the budget; empty if there are none."""
        ...

    async def tidy(self) -> None:
        """Run hygiene. Never raises: a failure is logged."""
        ...
