"""The stores of the memories of one project and of the user, each opened when it is first needed.

Knows nothing of what memories say.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from retinue.core import MEMORY_SCOPES, InvalidInput, Memory, MemoryId, MemoryScope
from retinue.learning.recall import TERMS_VERSION, memory_terms
from retinue.store import MemoryStore, memory_file


class MemoryStores:
    """The stores of one project and of the user. Safe to share between threads."""

    def __init__(self, data_dir: Path, project: Path, clock: Callable[[], float]) -> None:
        self._data_dir = data_dir
        self._clock = clock
        self._names: Mapping[MemoryScope, str] = {"project": project_key(project), "user": "user"}
        self._opened: dict[MemoryScope, MemoryStore] = {}
        self._opening = threading.Lock()
        self.close = weakref.finalize(self, _close_all, self._opened)
        """Closes the files; called at the latest when the process ends."""

    def existing(self, scopes: Sequence[MemoryScope]) -> list[tuple[MemoryScope, MemoryStore]]:
        """The stores of the scopes that have memories. Reading creates no file."""
        return [
            (scope, self.open(scope)) for scope in scopes if scope in self._opened or self._has_file(scope)
        ]

    def _has_file(self, scope: MemoryScope) -> bool:
        try:
            return memory_file(self._data_dir, self._names[scope]).exists()
        except OSError:  # nobody knows; opening it tells the user why
            return True

    def open(self, scope: MemoryScope) -> MemoryStore:
        """Return the store of a scope. Creates its file if there is none."""
        with self._opening:
            if scope not in self._opened:
                self._opened[scope] = MemoryStore.open(
                    self._data_dir,
                    self._names[scope],
                    memory_terms,
                    terms_version=TERMS_VERSION,
                    clock=self._clock,
                )
            return self._opened[scope]

    def find(self, memory_id: str) -> tuple[MemoryScope, MemoryStore, Memory]:
        """Return a memory by its id, or by a part of it, with its scope and store. Raises `InvalidInput`."""
        wanted = memory_id.strip()
        stores = self.existing(MEMORY_SCOPES)
        if MemoryId.is_part(wanted):
            found: list[tuple[MemoryScope, MemoryStore, Memory]]
            found = [(scope, store, each) for scope, store in stores for each in store.with_part(wanted)]
            if len(found) == 1:
                return found[0]
            if found:
                ids = ", ".join(memory.id for *_, memory in found)
                raise InvalidInput(f"several memories have {wanted} in their ids", hint=f"pass one: {ids}")
        else:
            wanted = MemoryId.parse(wanted)
            for scope, store in stores:
                if (memory := store.get(wanted)) is not None:
                    return scope, store, memory
        raise InvalidInput(f"no memory has the id {wanted}", hint="recall or `memory list` shows the ids")


def _close_all(stores: dict[MemoryScope, MemoryStore]) -> None:
    while stores:
        stores.popitem()[1].close()


def project_key(project: Path) -> str:
    """The name of a project's file of memories."""
    return hashlib.sha256(str(project).encode("utf-8", "replace")).hexdigest()[:16]
