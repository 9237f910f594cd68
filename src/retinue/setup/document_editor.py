"""The interface shared by the JSON, TOML and YAML editors of host files, and the error that they raise.

An editor works on text only and changes nothing outside Retinue's own entry. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

HIDDEN = "…"
"""Replaces values that are not ours: a host's file may contain the secrets of other servers."""

FOREIGN = ()
"""What `read_entry` returns for an entry under our name that Retinue would never write, such as null."""


class DocumentUnreadable(ValueError):
    """The text is not valid, or cannot be edited safely. The message says what is wrong and where."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what if line is None else f"line {line}: {what}")


class DocumentEditor(Protocol):
    """Edits one entry of a document. `place` is (key of the container, key of our entry in it).

    The modules `json_editor`, `toml_editor` and `yaml_editor` each implement it with module-level functions.
    """

    def set_entry(self, text: str, place: tuple[str, str], value: dict[str, object]) -> str:
        """Return the text with our entry added, or replaced in place."""
        ...

    def remove_entry(self, text: str, place: tuple[str, str]) -> str:
        """Return the text without our entry. The container stays, even if it is empty."""
        ...

    def read_entry(self, text: str, place: tuple[str, str]) -> object:
        """Return the value of our entry, None if there is none, or `FOREIGN`."""
        ...

    def read_everything_else(self, text: str, place: tuple[str, str]) -> object:
        """Return all content except our entry, for comparison. A container with nothing else is ignored."""
        ...

    def mask_values(self, text: str, keep: Collection[str]) -> str:
        """Return the text for display: comments and values become `HIDDEN`, except the values in `keep`."""
        ...
