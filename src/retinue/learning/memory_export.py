"""The file that memories are exported to and imported from: JSON with all that is known of each memory.

What is read is redacted and checked like any other memory. Knows nothing of stores.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from retinue.core import (
    MEMORY_KINDS,
    MEMORY_SCOPES,
    MEMORY_STATES,
    MEMORY_TIERS,
    CitedPlace,
    InvalidInput,
    LimitExceeded,
    Memory,
    MemoryId,
    MemoryKind,
    MemoryScope,
    MemoryState,
    MemoryTier,
    RunId,
)
from retinue.learning.memory_texts import MemoryCleaner, one_of

FORMAT = "retinue-memories-1"
MAX_IMPORT_BYTES = 64 << 20
_DIGEST = re.compile("[0-9a-f]{32}")


def export_document(memories: Iterable[tuple[MemoryScope, Memory]]) -> dict[str, Any]:
    """Return memories in the format that `ExportReader` reads."""
    return {
        "format": FORMAT,
        "memories": [{"scope": scope, **_as_exported(each)} for scope, each in memories],
    }


@dataclass(frozen=True, slots=True)
class ReadExport:
    """The memories of an export, and what is wrong with the others."""

    memories: dict[MemoryScope, list[Memory]]
    problems: list[str]


class ExportReader:
    """Reads what `export_document` made. Nothing in it is believed."""

    def __init__(self, cleaner: MemoryCleaner, clock: Callable[[], float] = time.time) -> None:
        self._cleaner = cleaner
        self._clock = clock

    def read(self, data: bytes, scope: MemoryScope | None) -> ReadExport:
        """Read the memories. With `scope`, all of them get that one."""
        if len(data) > MAX_IMPORT_BYTES:
            raise LimitExceeded("bytes", len(data), MAX_IMPORT_BYTES, hint="import a smaller file")
        try:
            document: Any = json.loads(data)
        except (ValueError, RecursionError):
            raise InvalidInput("this is not a file of memories: not JSON") from None
        match document:
            case {"format": str(name), "memories": [*entries]} if name == FORMAT:
                listed = entries
            case _:
                hint = "`retinue memory export` writes such files"
                raise InvalidInput(f"this is not a file of memories (format {FORMAT})", hint=hint)
        read = ReadExport({}, [])
        for number, each in enumerate(listed, 1):
            try:
                place, memory = self._memory(each, scope)
                read.memories.setdefault(place, []).append(memory)
            except InvalidInput as error:
                read.problems.append(f"memory {number}: {error.message}")
        return read

    def _memory(self, value: Any, scope: MemoryScope | None) -> tuple[MemoryScope, Memory]:
        if not isinstance(value, dict):
            raise InvalidInput("not a table")
        entry = cast("dict[str, Any]", value)
        text = entry.get("text")
        if not isinstance(text, str):
            raise InvalidInput("it has no text")
        wanted = one_of(str(scope or entry.get("scope", "project")), MEMORY_SCOPES, "scope")
        tier, superseded = entry.get("tier"), entry.get("superseded_by")
        memory_id = entry.get("id")
        return cast("MemoryScope", wanted), Memory(
            id=MemoryId.new() if memory_id is None else MemoryId.parse(memory_id),
            text=self._cleaner.text_to_store(text)[0],
            kind=cast("MemoryKind", one_of(str(entry.get("kind", "fact")), MEMORY_KINDS, "kind")),
            state=cast("MemoryState", one_of(str(entry.get("state", "tentative")), MEMORY_STATES, "state")),
            tier=None if tier is None else cast("MemoryTier", one_of(str(tier), MEMORY_TIERS, "tier")),
            created_at=_time(entry.get("created_at"), self._clock()),
            last_used_at=None if entry.get("last_used_at") is None else _time(entry["last_used_at"], 0.0),
            author=self._cleaner.short_text(str(entry.get("author", "")), 80),
            source=None if entry.get("source") is None else RunId.parse(entry["source"]),
            cites=tuple(self._place(each) for each in _list(entry.get("cites"))),
            supersedes=tuple(MemoryId.parse(each) for each in _list(entry.get("supersedes"))),
            superseded_by=None if superseded is None else MemoryId.parse(superseded),
        )

    def _place(self, value: Any) -> CitedPlace:
        match value:
            case {"place": str(written), "digest": str(digest)}:
                place = CitedPlace.parse(self._cleaner.short_text(written[:1_000], 1_000))
                return replace(place, digest=digest if _DIGEST.fullmatch(digest) else "")
            case _:
                raise InvalidInput("a cited place must have `place` and `digest`")


def _as_exported(memory: Memory) -> dict[str, Any]:
    return {
        "id": memory.id,
        "text": memory.text,
        "kind": memory.kind,
        "state": memory.state,
        "tier": memory.tier,
        "created_at": memory.created_at,
        "last_used_at": memory.last_used_at,
        "author": memory.author,
        "source": memory.source,
        "cites": [{"place": str(place), "digest": place.digest} for place in memory.cites],
        "supersedes": list(memory.supersedes),
        "superseded_by": memory.superseded_by,
    }


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list) or len(cast("list[Any]", value)) > 100:
        raise InvalidInput("expected a list of at most 100 items")
    return cast("list[Any]", value)


def _time(value: Any, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
        raise InvalidInput("a time must be a number of seconds since 1970")
    return float(value)
