"""Learns from past work: memories of a project and of the user. Needs no model."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.learning.memory import (
        MAX_IMPORT_BYTES as MAX_IMPORT_BYTES,
        Memories as Memories,
        MemoryAuthor as MemoryAuthor,
        RecalledMemory as RecalledMemory,
    )
else:
    __getattr__ = lazy_exports(__name__, {"memory": "MAX_IMPORT_BYTES Memories MemoryAuthor RecalledMemory"})
