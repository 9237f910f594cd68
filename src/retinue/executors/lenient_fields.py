"""Reading JSON whose shape others decide: what is not as expected counts as not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

JsonTable = Mapping[str, Any]


def table(value: object) -> JsonTable:
    return cast("JsonTable", value) if isinstance(value, Mapping) else {}


def rows(value: object) -> list[JsonTable]:
    return [table(row) for row in cast("list[object]", value)] if isinstance(value, list) else []


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def number(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
