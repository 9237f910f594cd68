"""Small texts for people and models: cut to a length, counted in the right number."""

from __future__ import annotations

import json


def clip(text: str, limit: int) -> str:
    """At most `limit` characters, with a mark where it was cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def counted(number: float, noun: str, plural: str = "") -> str:
    """`1 file`, `2 files`; `1 reply`, `2 replies` with the plural given."""
    shown = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{shown} {noun if number == 1 else plural or noun + 's'}"


def join_notes(*notes: str | None) -> str | None:
    """The notes that there are, as one."""
    return " ".join(note for note in notes if note) or None


def toml_string(text: str) -> str:
    """Return a text as a TOML string.

    It is written as JSON. U+007F is escaped too: JSON allows it in a string, TOML does not.
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
