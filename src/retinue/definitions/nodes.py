"""A header as a tree that knows the line of each of its parts. Knows nothing of what the keys mean.

Scalars keep the text as it was written, so that a name may be `on` or `007` and a key may be `no`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from retinue.core.json_value import Json

Kind = Literal["null", "bool", "int", "float", "text"]


@dataclass(frozen=True, slots=True)
class Scalar:
    text: str
    kind: Kind
    line: int


@dataclass(frozen=True, slots=True)
class Listing:
    items: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Entry:
    line: int
    """Of the key."""
    value: Node


@dataclass(frozen=True, slots=True)
class Table:
    entries: Mapping[str, Entry]
    line: int


Node: TypeAlias = Scalar | Listing | Table


def plain(node: Node) -> Json:
    """The value without its positions."""
    match node:
        case Table():
            return {key: plain(entry.value) for key, entry in node.entries.items()}
        case Listing():
            return [plain(item) for item in node.items]
        case Scalar(text, "bool"):
            return text.lower() in ("true", "yes", "on")
        case Scalar(text, "int"):
            return int(text)
        case Scalar(text, "float"):
            return float(text)
        case Scalar(_, "null"):
            return None
        case Scalar(text):
            return text
