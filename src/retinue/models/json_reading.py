"""Looking into JSON of somebody else's making, where anything may be missing or of another type."""

from __future__ import annotations

import json
from typing import cast


def parse(text: bytes | str) -> object:
    """None for what is not JSON."""
    try:
        return json.loads(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        return None


def table(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def tables(value: object) -> list[dict[str, object]]:
    return [table(item) for item in cast("list[object]", value)] if isinstance(value, list) else []


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """A number of things; None for anything else, and for none of them."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
