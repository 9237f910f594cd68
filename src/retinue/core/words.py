"""Small texts for people and models: cut to a length, counted in the right number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast


def clip(text: str, limit: int) -> str:
    """At most `limit` characters, with a mark where it was cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def joined(*notes: str | None) -> str | None:
    """The notes that there are, as one."""
    return " ".join(note for note in notes if note) or None


def in_every_text(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON-like value of the same shape with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: in_every_text(item, change) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [in_every_text(item, change) for item in cast("list[Any]", value)]
    return value
