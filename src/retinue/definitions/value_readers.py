"""One value of a header, checked: what is allowed stands in the error. Knows nothing of agents."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from retinue.core import Json, NetworkChoice
from retinue.definitions.problems import MalformedDefinition, did_you_mean, read_each
from retinue.definitions.yaml_tree import ListNode, Node, NodeEntry, ScalarNode, TableNode, to_json

T = TypeVar("T")
ValueReader = Callable[[Node], T]

COMMA_OUTSIDE_PARENTHESES = re.compile(r",\s*(?![^()]*\))")
"""Outside of parentheses: `Bash(git add, git diff), Read` names two tools."""


def read_text(node: Node) -> str:
    if isinstance(node, ScalarNode) and node.kind != "null" and node.text.strip() and "\0" not in node.text:
        return node.text.strip()
    raise MalformedDefinition(node.line, "a text is wanted here")


def read_flag(node: Node) -> bool:
    if isinstance(node, ScalarNode) and node.kind == "bool":
        return bool(to_json(node))
    raise MalformedDefinition(node.line, "true or false is wanted here")


def read_network(node: Node) -> NetworkChoice:
    if isinstance(node, ScalarNode) and node.text == "host":
        return "host"
    if isinstance(node, ScalarNode) and node.kind == "bool":
        return bool(to_json(node))
    raise MalformedDefinition(node.line, "true, false or host is wanted here")


def whole_number(low: int, high: int = 10**15) -> ValueReader[int]:
    def read(node: Node) -> int:
        if isinstance(node, ScalarNode) and node.kind == "int" and low <= int(node.text) <= high:
            return int(node.text)
        raise MalformedDefinition(node.line, f"a whole number from {low} to {high} is wanted here")

    return read


def read_dollars(node: Node) -> int:
    """Money as millionths."""
    try:
        amount = Decimal(node.text) * 1_000_000 if isinstance(node, ScalarNode) else Decimal("NaN")
    except ArithmeticError:
        amount = Decimal("NaN")
    if amount.is_finite() and 0 <= amount <= 10**12:
        return int(amount)
    raise MalformedDefinition(node.line, "an amount in dollars is wanted here, such as 0.50")


def choice(*choices: str) -> ValueReader[Any]:
    def read(node: Node) -> str:
        given = read_text(node)
        if given in choices:
            return given
        near = did_you_mean(given, choices)
        raise MalformedDefinition(node.line, f"{given!r} is none of: {', '.join(choices)}", near)

    return read


def read_words(node: Node) -> tuple[str, ...]:
    """A list, or the same as one text with commas."""
    if isinstance(node, ListNode):
        return tuple(read_each(read_text, node.items))
    if isinstance(node, ScalarNode) and node.kind == "null":
        return ()
    if isinstance(node, ScalarNode):
        return tuple(part.strip() for part in COMMA_OUTSIDE_PARENTHESES.split(node.text) if part.strip())
    raise MalformedDefinition(node.line, "a list of texts is wanted here")


def read_paths(node: Node) -> tuple[str, ...]:
    """The same, each with the home in place of its `~`."""
    return tuple(map(os.path.expanduser, read_words(node)))


def read_argv(node: Node) -> tuple[str, ...]:
    """A program and its arguments: a list, or a text that is split as a shell would, without a shell."""
    try:
        found = read_words(node) if isinstance(node, ListNode) else tuple(shlex.split(read_text(node)))
    except ValueError as error:
        raise MalformedDefinition(node.line, f"not a command line: {error}") from None
    if not found:
        raise MalformedDefinition(node.line, "a program and its arguments are wanted here")
    return found


def read_commands(node: Node) -> tuple[tuple[str, ...], ...]:
    items = node.items if isinstance(node, ListNode) else (node,)
    return tuple(read_each(read_argv, items))


def require_table(node: Node) -> TableNode:
    if isinstance(node, TableNode):
        return node
    raise MalformedDefinition(node.line, "a table of `key: value` is wanted here")


def read_string_map(node: Node) -> dict[str, str]:
    """Any scalar counts as its text: a port may be written as a number."""

    def read(item: tuple[str, NodeEntry]) -> tuple[str, str]:
        name, entry = item
        if not isinstance(entry.value, ScalarNode) or "\0" in entry.value.text:
            raise MalformedDefinition(entry.line, f"{name}: a text is wanted here")
        return name, entry.value.text

    return dict(read_each(read, require_table(node).entries.items()))


def read_json_object(node: Node) -> Mapping[str, Json]:
    return {key: to_json(entry.value) for key, entry in require_table(node).entries.items()}


def read_record(node: Node, readers: Mapping[str, ValueReader[Any]], what: str = "this") -> dict[str, Any]:
    """A table with these keys alone."""

    def read(item: tuple[str, NodeEntry]) -> tuple[str, Any]:
        key, entry = item
        if key not in readers:
            near = did_you_mean(key, readers) or "known are: " + ", ".join(readers)
            raise MalformedDefinition(entry.line, f"{what} has no key {key!r}", near)
        return key, readers[key](entry.value)

    return dict(read_each(read, require_table(node).entries.items()))
