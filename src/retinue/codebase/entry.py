"""One file inside a root, known by its name alone. Says nothing of whether it still exists."""

from __future__ import annotations

from typing import NamedTuple

from retinue.core import Root


class FileEntry(NamedTuple):
    """A tuple, not a dataclass: a walk makes tens of thousands of them."""

    root: Root
    path: str
    """Relative to the root, `/`-separated, spelled as on disk."""
