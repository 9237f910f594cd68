"""Functions that check and convert YAML values. Knows nothing of agents or workflows.

Each takes a node and returns its value, or raises a `MalformedDefinition` that says what is allowed.
"""

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
"""`Bash(git add, git diff), Read` is a list of two tools."""


def read_text(node: Node) -> str:
    """Read a string that is not empty."""
    if isinstance(node, ScalarNode) and node.kind != "null" and node.text.strip() and "\0" not in node.text:
        return node.text.strip()
    raise MalformedDefinition(node.line, "expected text")


def read_flag(node: Node) -> bool:
    """Read true or false."""
    if isinstance(node, ScalarNode) and node.kind == "bool":
        return bool(to_json(node))
    raise MalformedDefinition(node.line, "expected true or false")


def read_network(node: Node) -> NetworkChoice:
    """Read true, false or `host`."""
    if isinstance(node, ScalarNode) and node.text == "host":
        return "host"
    if isinstance(node, ScalarNode) and node.kind == "bool":
        return bool(to_json(node))
    raise MalformedDefinition(node.line, "expected true, false or host")


def whole_number(low: int, high: int = 10**15) -> ValueReader[int]:
    """Make a reader for integers in a range."""

    def read(node: Node) -> int:
        if isinstance(node, ScalarNode) and node.kind == "int" and low <= int(node.text) <= high:
            return int(node.text)
        raise MalformedDefinition(node.line, f"expected a whole number from {low} to {high}")

    return read


def read_dollars(node: Node) -> int:
    """Read an amount in dollars as millionths of a dollar."""
    try:
        amount = Decimal(node.text) * 1_000_000 if isinstance(node, ScalarNode) else Decimal("NaN")
    except ArithmeticError:
        amount = Decimal("NaN")
    if amount.is_finite() and 0 <= amount <= 10**12:
        return int(amount)
    raise MalformedDefinition(node.line, "expected an amount in dollars, such as 0.50")


def choice(*choices: str) -> ValueReader[Any]:
    """Make a reader that accepts only these strings."""

    def read(node: Node) -> str:
        text = read_text(node)
        if text in choices:
            return text
        near = did_you_mean(text, choices)
        raise MalformedDefinition(node.line, f"{text!r} is not one of: {', '.join(choices)}", near)

    return read


def read_words(node: Node) -> tuple[str, ...]:
    """Read a list of strings, or one string with commas between the items."""
    if isinstance(node, ListNode):
        return tuple(read_each(read_text, node.items))
    if isinstance(node, ScalarNode) and node.kind == "null":
        return ()
    if isinstance(node, ScalarNode):
        return tuple(part.strip() for part in COMMA_OUTSIDE_PARENTHESES.split(node.text) if part.strip())
    raise MalformedDefinition(node.line, "expected a list of strings")


def read_paths(node: Node) -> tuple[str, ...]:
    """Read a list of paths and expand `~` to the home folder."""
    return tuple(map(os.path.expanduser, read_words(node)))


def read_argv(node: Node) -> tuple[str, ...]:
    """Read a program and its arguments: a list, or one string that is split like a shell command."""
    try:
        found = read_words(node) if isinstance(node, ListNode) else tuple(shlex.split(read_text(node)))
    except ValueError as error:
        raise MalformedDefinition(node.line, f"not a command line: {error}") from None
    if not found:
        raise MalformedDefinition(node.line, "expected a program and its arguments")
    return found


def read_commands(node: Node) -> tuple[tuple[str, ...], ...]:
    """Read a list of command lines, or a single one."""
    items = node.items if isinstance(node, ListNode) else (node,)
    return tuple(read_each(read_argv, items))


def require_table(node: Node) -> TableNode:
    """Return the node if it is a table."""
    if isinstance(node, TableNode):
        return node
    raise MalformedDefinition(node.line, "expected a table of `key: value` pairs")


def read_string_map(node: Node) -> dict[str, str]:
    """Read a table of strings. Numbers are read as written, so a port needs no quotes."""

    def read(item: tuple[str, NodeEntry]) -> tuple[str, str]:
        name, entry = item
        if not isinstance(entry.value, ScalarNode) or "\0" in entry.value.text:
            raise MalformedDefinition(entry.line, f"{name}: expected text")
        return name, entry.value.text

    return dict(read_each(read, require_table(node).entries.items()))


def read_json_object(node: Node) -> Mapping[str, Json]:
    """Read a table as plain JSON values."""
    return {key: to_json(entry.value) for key, entry in require_table(node).entries.items()}


def read_record(node: Node, readers: Mapping[str, ValueReader[Any]], what: str = "this") -> dict[str, Any]:
    """Read a table with one reader for each allowed key. Error messages call the table `what`."""

    def read(item: tuple[str, NodeEntry]) -> tuple[str, Any]:
        key, entry = item
        if key not in readers:
            near = did_you_mean(key, readers) or "known keys: " + ", ".join(readers)
            raise MalformedDefinition(entry.line, f"{what} has no key {key!r}", near)
        return key, readers[key](entry.value)

    return dict(read_each(read, require_table(node).entries.items()))
