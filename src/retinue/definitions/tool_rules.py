"""Reads and checks which tools an agent's file grants and denies, in the formats of Claude Code and opencode.

Works on tool names alone. Retinue knows all of its own tools, but a CLI may have tools that Retinue does not
know, so for a CLI only a name that looks like a typo is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from retinue.core import FOREIGN_TOOLS, MCP_PREFIX, OWN_TOOLS, TOOL_SYNONYMS, ExecutorKind
from retinue.definitions.problems import DefinitionProblem, MalformedDefinition, did_you_mean, read_each
from retinue.definitions.value_readers import choice, read_flag, read_words
from retinue.definitions.yaml_tree import ListNode, Node, NodeEntry, ScalarNode, TableNode

ALL_TOOLS = frozenset({"*", "all", "all tools"})
read_decision = choice("allow", "deny", "ask")
TOOL_ALIASES = {
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
    "apply_patch": "edit",
    "read_and_patch": "edit",
    "str_replace": "edit",
    "create_file": "write",
    "run_command": "bash",
    "run": "bash",
    "run_shell_command": "bash",
    "shell": "bash",
    "agent": "task",
}
"""Other names of the same tool, in lower case."""
COMMON_CLI_TOOLS = (
    "Read",
    "Write",
    "Edit",
    "Bash",
    "Grep",
    "Glob",
    "WebFetch",
    "WebSearch",
    "Task",
    "TodoWrite",
)
"""The most common tools of coding CLIs. A name that resembles one of them is probably a typo."""


@dataclass(frozen=True, slots=True)
class ToolRules:
    """The tools that the key `tools` grants and denies."""

    granted: tuple[str, ...] | None = None
    """None for all tools."""
    denied: tuple[str, ...] = ()


def read_tools(node: Node) -> ToolRules:
    """Read a list of tools, or opencode's table of true and false."""
    if not isinstance(node, TableNode):
        named = read_words(node)
        return ToolRules(None if any(name.lower() in ALL_TOOLS for name in named) else named)
    switched = dict(read_each(_read_switch, node.entries.items()))
    off = tuple(name for name, on in switched.items() if not on and name != "*")
    if switched.get("*") is False:
        return ToolRules(tuple(name for name, on in switched.items() if on))
    return ToolRules(None, off)


def _read_switch(item: tuple[str, NodeEntry]) -> tuple[str, bool]:
    """Read one entry of opencode's table: a tool, and whether it is on."""
    name, entry = item
    return name, read_flag(entry.value)


@dataclass(frozen=True, slots=True)
class OpencodePermission:
    """The rules of opencode's key `permission`."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    denied_tools: tuple[str, ...] = ()


def read_opencode_permission(node: Node) -> OpencodePermission:
    """Read opencode's table: `allow`, `deny` or `ask` for each tool, or for each command pattern of a tool.

    `ask` needs no rule: without a rule, Retinue asks the parent, and denies the call if nobody answers.
    """
    if isinstance(node, ScalarNode):
        for_all_tools = read_decision(node)
        return OpencodePermission(
            ("*",) if for_all_tools == "allow" else (), (), ("*",) if for_all_tools == "deny" else ()
        )
    if not isinstance(node, TableNode):
        raise MalformedDefinition(node.line, "expected a table of tools with allow, deny or ask")
    decisions = [rule for rules in read_each(_read_rules, node.entries.items()) for rule in rules]
    denied = [rule for rule, decision in decisions if decision == "deny"]
    return OpencodePermission(
        allow=tuple(rule for rule, decision in decisions if decision == "allow"),
        deny=tuple(rule for rule in denied if "(" in rule),
        denied_tools=tuple(rule for rule in denied if "(" not in rule),
    )


def _read_rules(item: tuple[str, NodeEntry]) -> list[tuple[str, str]]:
    """Read the rules of one tool, each with its decision."""
    tool, entry = item
    if not isinstance(entry.value, TableNode):
        return [(tool, read_decision(entry.value))]

    def read(pattern: tuple[str, NodeEntry]) -> tuple[str, str]:
        return f"{tool}({pattern[0]})", read_decision(pattern[1].value)

    return read_each(read, entry.value.entries.items())


def canonical_tool(tool: str) -> str:
    """Normalise a tool's name: `Bash(git:*)`, `bash` and `run_command` are the same tool."""
    name = tool.partition("(")[0].strip().lower()
    return TOOL_ALIASES.get(name, name)


def tool_matches(tool: str, pattern: str) -> bool:
    """Whether a tool's name matches a pattern, after both are normalised."""
    return fnmatchcase(canonical_tool(tool), canonical_tool(pattern))


def remove_denied(granted: Sequence[str], denied: Iterable[str]) -> tuple[str, ...]:
    """Remove denied tools. Ignores rules such as `Bash(rm:*)`, which are enforced as permissions."""
    whole = [name for name in denied if "(" not in name]
    return tuple(tool for tool in granted if not any(tool_matches(tool, name) for name in whole))


def drop_missing_servers(granted: Iterable[str], servers: Collection[str]) -> tuple[str, ...]:
    """Remove tools of MCP servers that the agent does not have, because profiles list more servers."""
    return tuple(
        tool for tool in granted if not tool.startswith(MCP_PREFIX) or tool.split("__")[1] in servers
    )


def restrict_to(granted: Iterable[str], allowed: Iterable[str]) -> tuple[str, ...]:
    """Keep the tools that match any of the allowed patterns."""
    patterns = list(allowed)
    return tuple(tool for tool in granted if any(tool_matches(tool, pattern) for pattern in patterns))


def check_tool_names(
    node: Node, executor: ExecutorKind, servers: Collection[str], *, grants: bool, native: bool
) -> Iterator[DefinitionProblem]:
    """Yield problems with the names in a list of tools.

    `grants` is False for a list of denied tools. In a `native` file, an unknown tool is an error.
    """
    known = {*OWN_TOOLS, *TOOL_SYNONYMS, *FOREIGN_TOOLS}
    for name, line in _tools_with_lines(node):
        lowered = name.lower()
        if lowered.startswith(MCP_PREFIX):
            server = name.split("__")[1]
            if executor.offers_own_tools and grants and server not in servers and "*" not in server:
                hint = did_you_mean(server, servers) or "add it to `mcp_servers`"
                yield DefinitionProblem(
                    line, f"{name}: the agent has no MCP server {server!r}", hint, fatal=False
                )
        elif executor.offers_own_tools and lowered in FOREIGN_TOOLS and grants:
            yield DefinitionProblem(
                line,
                f"{name}: the executor {executor.name} does not have this tool, so it is left out",
                fatal=False,
            )
        elif lowered in known or "*" in lowered:
            continue
        elif executor.offers_own_tools:
            near = (
                did_you_mean(lowered, (*OWN_TOOLS, *TOOL_SYNONYMS)) or f"known tools: {', '.join(OWN_TOOLS)}"
            )
            yield DefinitionProblem(line, f"there is no tool {name!r}", near, fatal=native)
        elif near := did_you_mean(lowered.capitalize(), COMMON_CLI_TOOLS):
            yield DefinitionProblem(line, f"{executor.name} may have no tool {name!r}", near, fatal=False)


def _tools_with_lines(node: Node) -> Iterator[tuple[str, int]]:
    """Yield the name of each tool, without a part in parentheses, and its line."""
    if isinstance(node, TableNode):
        named = [(name, entry.line) for name, entry in node.entries.items()]
    elif isinstance(node, ListNode):
        named = [(name, item.line) for item in node.items for name in read_words(item)]
    else:
        named = [(name, node.line) for name in read_words(node)]
    for name, line in named:
        yield name.partition("(")[0].strip(), line
