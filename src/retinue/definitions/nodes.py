"""A header as a tree that knows the line of each of its parts. Knows nothing of what the keys mean.

Scalars keep the text as it was written, so that a name may be `on` or `007` and a key may be `no`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from retinue.core import Json

ScalarKind = Literal["null", "bool", "int", "float", "text"]


@dataclass(frozen=True, slots=True)
class ScalarNode:
    text: str
    kind: ScalarKind
    line: int


@dataclass(frozen=True, slots=True)
class ListNode:
    items: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class NodeEntry:
    line: int
    """Of the key."""
    value: Node


@dataclass(frozen=True, slots=True)
class TableNode:
    entries: Mapping[str, NodeEntry]
    line: int


Node: TypeAlias = ScalarNode | ListNode | TableNode


def plain(node: Node) -> Json:
    """The value without its positions."""
    match node:
        case TableNode():
            return {key: plain(entry.value) for key, entry in node.entries.items()}
        case ListNode():
            return [plain(item) for item in node.items]
        case ScalarNode(text, "bool"):
            return text.lower() in ("true", "yes", "on")
        case ScalarNode(text, "int"):
            return int(text)
        case ScalarNode(text, "float"):
            return float(text)
        case ScalarNode(_, "null"):
            return None
        case ScalarNode(text):
            return text
