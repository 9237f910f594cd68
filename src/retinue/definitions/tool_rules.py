"""Which tools an agent's file grants and denies, in the words of Claude Code and of opencode.

Knows tools by name alone; which of them exist is the executor's business.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from retinue.core import MCP_PREFIX
from retinue.definitions.nodes import Node, NodeEntry, ScalarNode, TableNode
from retinue.definitions.problem import MalformedDefinition, each
from retinue.definitions.values import flag, one_of, words

EVERYTHING = frozenset({"*", "all", "all tools"})
WORD = one_of("allow", "deny", "ask")
SAME = {
    "read_file": "read",
    "view": "read",
    "list_files": "ls",
    "list": "ls",
    "list_dir": "ls",
    "list_directory": "ls",
    "list_folder": "ls",
    "search": "grep",
    "search_files": "grep",
    "find_files": "glob",
    "write_file": "write",
    "edit_file": "edit",
    "multiedit": "edit",
    "patch": "edit",
    "run_command": "bash",
    "shell": "bash",
    "agent": "task",
}
"""Other names of the same tool, in small letters."""


@dataclass(frozen=True, slots=True)
class ToolRules:
    granted: tuple[str, ...] | None = None
    """None for everything there is."""
    denied: tuple[str, ...] = ()


def tools(node: Node) -> ToolRules:
    """A list, or opencode's table of true and false."""
    if not isinstance(node, TableNode):
        named = words(node)
        return ToolRules(None if any(name.lower() in EVERYTHING for name in named) else named)
    switched = dict(each(_switch, node.entries.items()))
    off = tuple(name for name, on in switched.items() if not on and name != "*")
    if switched.get("*") is False:
        return ToolRules(tuple(name for name, on in switched.items() if on))
    return ToolRules(None, off)


def _switch(item: tuple[str, NodeEntry]) -> tuple[str, bool]:
    name, entry = item
    return name, flag(entry.value)


@dataclass(frozen=True, slots=True)
class Permission:
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    denied_tools: tuple[str, ...] = ()


def permission(node: Node) -> Permission:
    """opencode's table: a word for each tool, or a word for each pattern of a tool's commands.

    `ask` is what happens without a rule: a question, and without an answer a denial.
    """
    if isinstance(node, ScalarNode):
        given = WORD(node)
        return Permission(("*",) if given == "allow" else (), (), ("*",) if given == "deny" else ())
    if not isinstance(node, TableNode):
        raise MalformedDefinition(node.line, "a table of tools with allow, deny or ask is wanted here")
    said = [(rule, word) for rules in each(_rules, node.entries.items()) for rule, word in rules]
    denied = [rule for rule, word in said if word == "deny"]
    return Permission(
        allow=tuple(rule for rule, word in said if word == "allow"),
        deny=tuple(rule for rule in denied if "(" in rule),
        denied_tools=tuple(rule for rule in denied if "(" not in rule),
    )


def _rules(item: tuple[str, NodeEntry]) -> list[tuple[str, str]]:
    """The rules of one tool, each with its word."""
    tool, entry = item
    if not isinstance(entry.value, TableNode):
        return [(tool, WORD(entry.value))]

    def read(pattern: tuple[str, NodeEntry]) -> tuple[str, str]:
        return f"{tool}({pattern[0]})", WORD(pattern[1].value)

    return each(read, entry.value.entries.items())


def base(tool: str) -> str:
    """`Bash(git:*)`, `bash` and `run_command` are one tool."""
    name = tool.partition("(")[0].strip().lower()
    return SAME.get(name, name)


def matches(tool: str, pattern: str) -> bool:
    return fnmatchcase(base(tool), base(pattern))


def without(granted: Sequence[str], denied: Iterable[str]) -> tuple[str, ...]:
    """What is left. A rule of a tool, such as `Bash(rm:*)`, takes nothing away here: it is a permission."""
    whole = [name for name in denied if "(" not in name]
    return tuple(tool for tool in granted if not any(matches(tool, name) for name in whole))


def of_servers(granted: Iterable[str], servers: Collection[str]) -> tuple[str, ...]:
    """Without the tools of MCP servers that are not there: a profile names more than most agents have."""
    return tuple(
        tool for tool in granted if not tool.startswith(MCP_PREFIX) or tool.split("__")[1] in servers
    )


def within(granted: Iterable[str], allowed: Iterable[str]) -> tuple[str, ...]:
    """Those that a profile allows."""
    patterns = list(allowed)
    return tuple(tool for tool in granted if any(matches(tool, pattern) for pattern in patterns))
