"""Walks JSON-like values and rewrites their strings. Knows nothing of secrets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

T = TypeVar("T")
Rewrite = Callable[[str, str], str]
"""From a string, and the name it is the value of or "", to the string that takes its place."""


def rewritten(value: T, rewrite: Rewrite, name: str = "") -> T:
    """The same shape with every string rewritten; numbers and whatever is not JSON stay."""
    return cast(T, walk(value, rewrite, name))


def walk(value: object, rewrite: Rewrite, name: str) -> object:
    if isinstance(value, str):
        return rewrite(value, name)
    if isinstance(value, dict):
        return walk_members(cast(dict[object, object], value), rewrite)
    if isinstance(value, list | tuple):
        items = walk_items(cast("list[object] | tuple[object, ...]", value), rewrite, name)
        return tuple(items) if isinstance(value, tuple) else items
    return value


def walk_members(members: dict[object, object], rewrite: Rewrite) -> dict[object, object]:
    out: dict[object, object] = {}
    for key, value in members.items():
        name = key if isinstance(key, str) else ""
        if key == "value" and isinstance(members.get("name"), str):
            # {"name": "API_TOKEN", "value": "..."}, as in container specifications and recorded HTTP headers.
            name = str(members["name"])
        new_key = unused(rewrite(key, ""), out) if isinstance(key, str) else key
        out[new_key] = walk(value, rewrite, name)
    return out


def walk_items(items: list[object] | tuple[object, ...], rewrite: Rewrite, name: str) -> list[object]:
    out: list[object] = []
    for index, item in enumerate(items):
        before = items[index - 1] if index else None
        # ["--token", "..."], as in command lines; else a list's items are values of the list's own name.
        flag = before if isinstance(before, str) and before.startswith("--") and "=" not in before else name
        out.append(walk(item, rewrite, flag))
    return out


def unused(key: str, taken: dict[object, object]) -> str:
    """Two keys that become the same marker must stay two members."""
    number = 1
    candidate = key
    while candidate in taken:
        number += 1
        candidate = f"{key}#{number}"
    return candidate
