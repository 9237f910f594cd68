"""Parses YAML into a tree of nodes that know their lines.

Depth and number of values are limited and aliases are refused, so that no input is expensive to parse (P2).
Scalars keep their text as written, so a name can be `on` or `007`, and a key can be `no`. Knows nothing of
what keys mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeAlias, cast

from retinue.core import Json
from retinue.definitions.problems import MalformedDefinition

ScalarKind = Literal["null", "bool", "int", "float", "text"]

MAX_DEPTH = 24
MAX_VALUES = 5_000
DECIMAL_PATTERN = re.compile(r"[-+]?(0|[1-9]\d{0,17})")
FLOAT_PATTERN = re.compile(r"[-+]?\d{1,20}\.\d{1,20}")
KIND_BY_TAG: dict[str, ScalarKind] = {
    "tag:yaml.org,2002:null": "null",
    "tag:yaml.org,2002:bool": "bool",
    "tag:yaml.org,2002:int": "int",
    "tag:yaml.org,2002:float": "float",
}


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """A single value: its text as written and the type that YAML gives it."""

    text: str
    kind: ScalarKind
    line: int


@dataclass(frozen=True, slots=True)
class ListNode:
    """A YAML list."""

    items: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """The value of a key in a table, with the line of the key."""

    line: int
    value: Node


@dataclass(frozen=True, slots=True)
class TableNode:
    """A YAML mapping."""

    entries: Mapping[str, NodeEntry]
    line: int


Node: TypeAlias = ScalarNode | ListNode | TableNode


def to_json(node: Node) -> Json:
    """Convert a node to plain JSON values, without lines."""
    match node:
        case TableNode():
            return {key: to_json(entry.value) for key, entry in node.entries.items()}
        case ListNode():
            return [to_json(item) for item in node.items]
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


@dataclass(slots=True)
class _OpenNode:
    """A list or table whose end has not been read yet."""

    line: int
    is_table: bool
    items: list[Node] = field(default_factory=list[Node])
    entries: dict[str, NodeEntry] = field(default_factory=dict[str, NodeEntry])
    key: ScalarNode | None = None

    def add(self, node: Node) -> None:
        """Add an item to a list, or a key or value to a table."""
        if not self.is_table:
            self.items.append(node)
        elif self.key is None:
            if not isinstance(node, ScalarNode):
                raise MalformedDefinition(node.line, "a key must be plain text")
            if node.text in self.entries:
                first = self.entries[node.text].line
                raise MalformedDefinition(
                    node.line,
                    f"the key {node.text!r} appears twice",
                    f"the first is in line {first}",
                )
            self.key = node
        else:
            self.entries[self.key.text] = NodeEntry(self.key.line, node)
            self.key = None

    def close(self) -> Node:
        """Return the finished node."""
        return TableNode(self.entries, self.line) if self.is_table else ListNode(tuple(self.items), self.line)


def read_yaml(
    text: str, first_line: int, max_values: int = MAX_VALUES, *, strict: bool = False
) -> Node | None:
    """Parse one YAML document. Returns None if it is empty; raises `MalformedDefinition`.

    `first_line` is the number of the line in the file at which `text` begins. `strict` also refuses lists and
    tables in brackets, anchors and tags, as StrictYAML does.
    """
    import yaml  # imported here because most commands read no definitions

    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        return _build(cast("Any", yaml).parse(text, loader), first_line, max_values, strict=strict)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = first_line + (mark.line if mark else 0)
        reason = error.problem or error.context or "not valid YAML"
        raise MalformedDefinition(line, f"not valid YAML: {reason}", _hint_for(reason)) from None
    except yaml.reader.ReaderError as error:
        line = first_line + text.count("\n", 0, error.position)
        raise MalformedDefinition(
            line, "contains a character that YAML does not allow", "remove it"
        ) from None
    except yaml.YAMLError:
        raise MalformedDefinition(first_line, "not valid YAML") from None


def _build(events: Iterable[Any], first_line: int, max_values: int, *, strict: bool) -> Node | None:
    """Build the tree from the parser's events."""
    import yaml

    stack: list[_OpenNode] = []
    whole: Node | None = None
    values = 0
    for event in events:
        line: int = first_line + event.start_mark.line
        node: Node
        if isinstance(event, yaml.AliasEvent):
            raise MalformedDefinition(line, "an alias (`*name`) is not allowed here", "write the value out")
        if strict:
            _refuse_loose_syntax(event, line)
        if isinstance(event, yaml.ScalarEvent):
            node = ScalarNode(event.value, _kind(event), line)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            if len(stack) >= MAX_DEPTH:
                raise MalformedDefinition(line, f"nested more than {MAX_DEPTH} levels deep", "flatten it")
            stack.append(_OpenNode(line, isinstance(event, yaml.MappingStartEvent)))
            continue
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            node = stack.pop().close()
        elif isinstance(event, yaml.DocumentStartEvent) and whole is not None:
            raise MalformedDefinition(
                line, "a second YAML document begins here", "use only one document in a file"
            )
        else:
            continue
        values += 1
        if values > max_values:
            raise MalformedDefinition(line, f"more than {max_values} values", "shorten it")
        if stack:
            stack[-1].add(node)
        else:
            whole = node
    return whole


def _refuse_loose_syntax(event: Any, line: int) -> None:
    """Raise `MalformedDefinition` for syntax that StrictYAML does not have."""
    if getattr(event, "flow_style", False):
        raise MalformedDefinition(line, "a value in brackets is not allowed here", "write one item per line")
    if getattr(event, "anchor", None) is not None or getattr(event, "tag", None) is not None:
        raise MalformedDefinition(line, "an anchor or a tag is not allowed here", "write the plain value")


def _kind(event: Any) -> ScalarKind:
    """Return the type of a scalar by the rules of YAML 1.1, except for number formats that nobody intends."""
    import yaml

    tag: str = event.tag or _resolver().resolve(yaml.ScalarNode, event.value, event.implicit)
    kind = KIND_BY_TAG.get(tag, "text")
    # Octal and base-60 numbers, infinity and NaN count as text.
    if kind == "int" and not DECIMAL_PATTERN.fullmatch(event.value):
        return "text"
    if kind == "float" and not FLOAT_PATTERN.fullmatch(event.value):
        return "text"
    return kind


@cache
def _resolver() -> Any:
    """Return PyYAML's resolver, which decides the type of a plain scalar."""
    from yaml.resolver import Resolver

    return Resolver()


def _hint_for(reason: str) -> str:
    """Return a hint for an error message of the YAML parser."""
    if "mapping values are not allowed" in reason:
        return "quote a value that contains `: `"
    if "\\t" in reason or "tab" in reason:
        return "indent with spaces"
    return "check the quotes, brackets and indentation around this line"
