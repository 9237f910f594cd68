"""One value of a header, checked: what is allowed stands in the error. Knows nothing of agents."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from retinue.core import Json, NetworkChoice
from retinue.definitions.nodes import ListNode, Node, NodeEntry, ScalarNode, TableNode, plain
from retinue.definitions.problem import MalformedDefinition, did_you_mean, each

T = TypeVar("T")
Read = Callable[[Node], T]

COMMA = re.compile(r",\s*(?![^()]*\))")
"""Outside of parentheses: `Bash(git add, git diff), Read` names two tools."""


def text(node: Node) -> str:
    if isinstance(node, ScalarNode) and node.kind != "null" and node.text.strip() and "\0" not in node.text:
        return node.text.strip()
    raise MalformedDefinition(node.line, "a text is wanted here")


def flag(node: Node) -> bool:
    if isinstance(node, ScalarNode) and node.kind == "bool":
        return bool(plain(node))
    raise MalformedDefinition(node.line, "true or false is wanted here")


def network(node: Node) -> NetworkChoice:
    if isinstance(node, ScalarNode) and node.text == "host":
        return "host"
    if isinstance(node, ScalarNode) and node.kind == "bool":
        return bool(plain(node))
    raise MalformedDefinition(node.line, "true, false or host is wanted here")


def whole(low: int, high: int = 10**15) -> Read[int]:
    def read(node: Node) -> int:
        if isinstance(node, ScalarNode) and node.kind == "int" and low <= int(node.text) <= high:
            return int(node.text)
        raise MalformedDefinition(node.line, f"a whole number from {low} to {high} is wanted here")

    return read


def dollars(node: Node) -> int:
    """Money as millionths."""
    try:
        amount = Decimal(node.text) * 1_000_000 if isinstance(node, ScalarNode) else Decimal("NaN")
    except ArithmeticError:
        amount = Decimal("NaN")
    if amount.is_finite() and 0 <= amount <= 10**12:
        return int(amount)
    raise MalformedDefinition(node.line, "an amount in dollars is wanted here, such as 0.50")


def one_of(*choices: str) -> Read[Any]:
    def read(node: Node) -> str:
        given = text(node)
        if given in choices:
            return given
        near = did_you_mean(given, choices)
        raise MalformedDefinition(node.line, f"{given!r} is none of: {', '.join(choices)}", near)

    return read


def words(node: Node) -> tuple[str, ...]:
    """A list, or the same as one text with commas."""
    if isinstance(node, ListNode):
        return tuple(each(text, node.items))
    if isinstance(node, ScalarNode) and node.kind == "null":
        return ()
    if isinstance(node, ScalarNode):
        return tuple(part.strip() for part in COMMA.split(node.text) if part.strip())
    raise MalformedDefinition(node.line, "a list of texts is wanted here")


def paths(node: Node) -> tuple[str, ...]:
    """The same, each with the home in place of its `~`."""
    return tuple(map(os.path.expanduser, words(node)))


def argv(node: Node) -> tuple[str, ...]:
    """A program and its arguments: a list, or a text that is split as a shell would, without a shell."""
    try:
        found = words(node) if isinstance(node, ListNode) else tuple(shlex.split(text(node)))
    except ValueError as error:
        raise MalformedDefinition(node.line, f"not a command line: {error}") from None
    if not found:
        raise MalformedDefinition(node.line, "a program and its arguments are wanted here")
    return found


def commands(node: Node) -> tuple[tuple[str, ...], ...]:
    items = node.items if isinstance(node, ListNode) else (node,)
    return tuple(each(argv, items))


def table(node: Node) -> TableNode:
    if isinstance(node, TableNode):
        return node
    raise MalformedDefinition(node.line, "a table of `key: value` is wanted here")


def named_texts(node: Node) -> dict[str, str]:
    """Any scalar counts as its text: a port may be written as a number."""

    def read(item: tuple[str, NodeEntry]) -> tuple[str, str]:
        name, entry = item
        if not isinstance(entry.value, ScalarNode) or "\0" in entry.value.text:
            raise MalformedDefinition(entry.line, f"{name}: a text is wanted here")
        return name, entry.value.text

    return dict(each(read, table(node).entries.items()))


def json_table(node: Node) -> Mapping[str, Json]:
    return {key: plain(entry.value) for key, entry in table(node).entries.items()}


def record(node: Node, readers: Mapping[str, Read[Any]], what: str = "this") -> dict[str, Any]:
    """A table with these keys alone."""

    def read(item: tuple[str, NodeEntry]) -> tuple[str, Any]:
        key, entry = item
        if key not in readers:
            near = did_you_mean(key, readers) or "known are: " + ", ".join(readers)
            raise MalformedDefinition(entry.line, f"{what} has no key {key!r}", near)
        return key, readers[key](entry.value)

    return dict(each(read, table(node).entries.items()))
