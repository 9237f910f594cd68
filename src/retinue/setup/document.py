"""What the editors of hosts' files share: the shape of an editor and the error both raise.

An editor works on text alone and touches nothing outside our own entry; it knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

HIDDEN = "…"
"""Stands for a value that is not ours: files of hosts hold other servers' secrets."""


FOREIGN = ()
"""Stands for an entry under our name that we would never write, such as null."""


class DocumentUnreadable(ValueError):
    """The text is not such a document, or not one that can be edited safely; says what and where."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what if line is None else f"line {line}: {what}")


class Editor(Protocol):
    """The two formats hosts use. `place` is the container's key and our name in it."""

    def put(self, text: str, place: tuple[str, str], value: dict[str, object]) -> str:
        """The text with our entry added, or replaced where it stands."""
        ...

    def take(self, text: str, place: tuple[str, str]) -> str:
        """The text without our entry; its container stays."""
        ...

    def own(self, text: str, place: tuple[str, str]) -> object:
        """Our entry's value, or None."""
        ...

    def others(self, text: str, place: tuple[str, str]) -> object:
        """Everything but our entry, to compare; a container that holds nothing else does not count."""
        ...

    def masked(self, text: str, keep: Collection[str]) -> str:
        """The text for showing: keys stay, comments and values go, but for values in `keep`."""
        ...
