"""Every key that an agent file may have: the values it accepts, a description, and its reader.

A test checks that `docs/agents.md` contains the same keys and descriptions. Knows nothing of where files are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from retinue.core import EXECUTOR_NAMES, McpServer
from retinue.definitions.problems import MalformedDefinition, read_each
from retinue.definitions.tool_rules import read_opencode_permission, read_tools
from retinue.definitions.value_readers import (
    ValueReader,
    choice,
    read_argv,
    read_commands,
    read_dollars,
    read_flag,
    read_json_object,
    read_network,
    read_paths,
    read_record,
    read_string_map,
    read_text,
    read_words,
    require_table,
    whole_number,
)
from retinue.definitions.yaml_tree import ListNode, Node, ScalarNode, TableNode

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""Allowed names of agents. They become part of tool names."""
DAY_MS = 86_400_000
CLAUDE_MEMORIES = ("user", "project", "local")

BUDGET_READERS: Mapping[str, ValueReader[Any]] = {
    "files": whole_number(0),
    "bytes": whole_number(0),
    "steps": whole_number(1),
    "tokens": whole_number(1),
    "cost_usd": read_dollars,
    "wall_ms": whole_number(1),
}
PERMISSION_READERS: Mapping[str, ValueReader[Any]] = {"allow": read_words, "deny": read_words}
SERVER_READERS: Mapping[str, ValueReader[Any]] = {
    "name": read_text,
    "type": read_text,
    "transport": read_text,
    "command": read_argv,
    "args": read_words,
    "env": read_string_map,
    "environment": read_string_map,
    "url": read_text,
    "headers": read_string_map,
    "tools": read_words,
}


def read_agent_name(node: Node) -> str:
    """Read a name that matches `NAME_PATTERN`."""
    name = read_text(node)
    if not NAME_PATTERN.fullmatch(name):
        raise MalformedDefinition(
            node.line, f"{name[:80]!r} is not a valid name", "use at most 64 letters, digits, `-` and `_`"
        )
    return name


def read_fallback(node: Node) -> Literal["never", "ask"] | tuple[str, ...]:
    """Read `never`, `ask`, or the names of other agents."""
    words = read_words(node)
    if len(words) == 1 and words[0] in ("never", "ask"):
        return words[0]
    if not words:
        raise MalformedDefinition(node.line, "an empty list names no agent", "write `never` or `ask`")
    for word in words:
        if not NAME_PATTERN.fullmatch(word):
            raise MalformedDefinition(
                node.line, f"{word[:80]!r} is not the name of an agent", "write `never`, `ask`, or names"
            )
    return words


def read_memory(node: Node) -> bool:
    """Read true or false. Claude Code's own values name a folder of Claude Code, so they mean false."""
    if isinstance(node, ScalarNode) and node.text in CLAUDE_MEMORIES:
        return False
    return read_flag(node)


def read_budget(node: Node) -> dict[str, Any]:
    """Read a table of limits."""
    return read_record(node, BUDGET_READERS, "a budget")


def read_permissions(node: Node) -> dict[str, Any]:
    """Read a table with the lists `allow` and `deny`."""
    return read_record(node, PERMISSION_READERS, "`permissions`")


def keep_node(node: Node) -> Node:
    """Accept any value. Used for keys that are refused when the agent runs."""
    return node


@dataclass(frozen=True, slots=True)
class AgentServers:
    """The MCP servers that an agent's file lists."""

    defined: tuple[McpServer, ...] = ()
    referred: tuple[str, ...] = ()
    """Names of servers that are defined elsewhere, such as in a CLI's own settings."""

    @property
    def names(self) -> frozenset[str]:
        """The names of all servers, wherever they are defined."""
        return frozenset({*self.referred, *(server.name for server in self.defined)})


def read_servers(node: Node) -> AgentServers:
    """Read `mcp_servers`: a table keyed by server name, or a list.

    Each item of the list is a server's name, a table with a `name` key, or a table keyed by server name.
    """
    defined: dict[str, McpServer] = {}

    def read(item: tuple[str | None, Node]) -> McpServer | str:
        name, server_node = item
        if name is None and isinstance(server_node, ScalarNode):
            return read_text(server_node)
        if name is None and not isinstance(server_node, TableNode):
            raise MalformedDefinition(
                server_node.line,
                "a server must be a name, or a table with `name` and either `command` or `url`",
            )
        server = _read_server(name, require_table(server_node))
        if defined.setdefault(server.name, server) is not server:
            raise MalformedDefinition(
                server_node.line, f"the server {server.name!r} appears twice", "remove one"
            )
        return server

    found = read_each(read, _server_nodes(node))
    return AgentServers(tuple(defined.values()), tuple(name for name in found if isinstance(name, str)))


def _server_nodes(node: Node) -> Iterator[tuple[str | None, Node]]:
    """Yield each server's name and node. The name is None unless it is the key of a table."""
    if isinstance(node, TableNode):
        yield from ((name, entry.value) for name, entry in node.entries.items())
        return
    for item in node.items if isinstance(node, ListNode) else (node,):
        if isinstance(item, TableNode) and "name" not in item.entries:
            yield from _server_nodes(item)
        else:
            yield None, item


def _read_server(key: str | None, node: TableNode) -> McpServer:
    """Read one server. `key` is its name if the server is an entry of a table, otherwise None."""
    values = read_record(node, SERVER_READERS, "a server")
    name = values["name"] if key is None else key
    command, url = values.get("command", ()), values.get("url")
    if bool(command) == (url is not None):
        raise MalformedDefinition(node.line, f"the server {name!r} needs a command or a url, but not both")
    return McpServer(
        name=name,
        argv=(*command, *values.get("args", ())) if command else (),
        env=values.get("env") or values.get("environment") or {},
        url=url,
        headers=values.get("headers", {}),
        tools=values.get("tools"),
    )


@dataclass(frozen=True, slots=True)
class AgentField:
    """One key of an agent's file."""

    key: str
    accepts: str
    """The allowed values, for the docs."""
    description: str
    read: ValueReader[Any]


FIELDS = (
    AgentField("name", "a name", "The agent's name. Defaults to the file's name.", read_agent_name),
    AgentField(
        "description", "text", "What the agent is good for. Callers use it to choose an agent.", read_text
    ),
    AgentField(
        "executor",
        ", ".join(EXECUTOR_NAMES),
        "What runs the agent's tasks.",
        choice(*EXECUTOR_NAMES),
    ),
    AgentField(
        "command",
        "a command line",
        "The program to start, without a shell. Required for `command` and `acp`.",
        read_argv,
    ),
    AgentField(
        "model",
        "a tier, a name or `inherit`",
        "`fast`, `default`, `medium`, `strong`, or the name of a model.",
        read_text,
    ),
    AgentField(
        "profile",
        "name of a profile",
        "The set of tools that the agent may have at most. `tools` can narrow it.",
        read_text,
    ),
    AgentField(
        "tools", "a list, or a table of true and false", "The tools that the agent may call.", read_tools
    ),
    AgentField("disallowed_tools", "a list", "Tools that the agent must not call.", read_words),
    AgentField(
        "permissions",
        "`allow` and `deny`, each a list",
        "Rules such as `Bash(curl:*)`. `deny` wins over `allow`.",
        read_permissions,
    ),
    AgentField(
        "permission",
        "a table of allow, deny or ask by tool",
        "The same rules in opencode's format.",
        read_opencode_permission,
    ),
    AgentField(
        "permission_mode",
        "a mode of the CLI",
        "What the CLI may do without asking, such as `plan`.",
        read_text,
    ),
    AgentField(
        "skills",
        "a list of skills",
        "Skills whose instructions every run gets. It sees no others; `[]` means none at all.",
        read_words,
    ),
    AgentField(
        "mcp_servers",
        "a list of servers",
        "MCP servers, each with a `name` and either a `command` (with `args` and `env`) or a `url`.",
        read_servers,
    ),
    AgentField(
        "mcp",
        "a command line or a URL",
        "An MCP server that becomes the agent: it has the server's tools and no others, and gets its `env`.",
        read_argv,
    ),
    AgentField(
        "env",
        "a table of variables",
        "Environment variables. `${NAME}` is replaced by the server's own value.",
        read_string_map,
    ),
    AgentField("folders", "a list of paths", "Additional folders that the agent may work in.", read_paths),
    AgentField(
        "settings",
        "a list of user, project",
        "Which settings files a CLI loads. None by default.",
        read_words,
    ),
    AgentField(
        "session", "true or false", "Whether each run continues the session of the previous one.", read_flag
    ),
    AgentField(
        "fork",
        "true or false",
        "Whether each run starts from the conversation of the Claude Code that calls it. On `claude` only.",
        read_flag,
    ),
    AgentField(
        "memory",
        "true or false",
        "Whether each run gets what is remembered about its task, and may remember more.",
        read_memory,
    ),
    AgentField(
        "allowed_callers",
        "a list",
        "Who may run the agent: `main` (the host) or names of agents. Anyone by default.",
        read_words,
    ),
    AgentField("timeout_ms", "milliseconds", "Maximum duration of a run.", whole_number(1, DAY_MS)),
    AgentField(
        "budget",
        ", ".join(BUDGET_READERS),
        "Limits for a run, including all runs that it starts.",
        read_budget,
    ),
    AgentField("max_turns", "a number", "The same as `steps` in `budget`.", whole_number(1)),
    AgentField("max_cost_usd", "dollars", "The same as `cost_usd` in `budget`.", read_dollars),
    AgentField(
        "spawns",
        "a number",
        "Maximum number of runs that the agent may start. 0 by default.",
        whole_number(0, 1000),
    ),
    AgentField("output_format", "text or json", "Format of the agent's answer.", choice("text", "json")),
    AgentField(
        "output_schema", "a JSON Schema", "Schema that the agent's answer must match.", read_json_object
    ),
    AgentField("container", "an image", "Container image to run the agent in.", read_text),
    AgentField(
        "sandbox",
        "auto, bwrap or none",
        "Sandbox to run the agent in. `auto` uses bubblewrap if it is installed.",
        choice("auto", "bwrap", "none"),
    ),
    AgentField(
        "network",
        "true, false or host",
        "Whether the agent's sandbox has network access. `host` lets a container use this machine's network.",
        read_network,
    ),
    AgentField(
        "isolation",
        "none or worktree",
        "Whether the agent works in its own git worktree.",
        choice("none", "worktree"),
    ),
    AgentField(
        "worktree_setup",
        "a list of command lines",
        "Commands that run in each new worktree before the agent, in its sandbox.",
        read_commands,
    ),
    AgentField(
        "worktree_copy",
        "a list of paths",
        "Files and folders of the project to copy into each new worktree, such as those that git ignores.",
        read_words,
    ),
    AgentField(
        "fallback",
        "never, ask or a list of agents",
        "Who performs a task if the usage limit of the agent's account is spent. Without one, runs wait.",
        read_fallback,
    ),
    AgentField(
        "acceptance",
        "a list of command lines",
        "Commands that must succeed after the run.",
        read_commands,
    ),
    AgentField(
        "system_prompt",
        "replace or append",
        "Whether the body replaces the CLI's own system prompt or is appended to it.",
        choice("replace", "append"),
    ),
    AgentField("mode", "a mode of opencode", "`primary` marks a main agent, which is ignored.", read_text),
    AgentField("disabled", "true or false", "Whether to ignore the agent.", read_flag),
    AgentField(
        "hooks",
        "Claude Code's hooks",
        "Not supported: an agent with hooks is refused when it runs.",
        keep_node,
    ),
)
FIELDS_BY_KEY = {field.key: field for field in FIELDS}

KEY_ALIASES = {
    "disable": "disabled",
    "steps": "max_turns",
    "max_steps": "max_turns",
    "max_budget_usd": "max_cost_usd",
}
"""Names that other programs use for these keys."""
IGNORED_KEYS = frozenset(
    {
        *("background", "color", "effort", "hidden", "initial_prompt", "options"),
        *("reasoning_effort", "temperature", "top_p", "use_cases", "variant", "version", "when_to_use"),
    }
)
"""Keys of other programs. They neither grant nor forbid anything, so ignoring them is safe."""


def canonical_key(key: str) -> str:
    """Convert `mcpServers` and `mcp-servers` to `mcp_servers`, and names of other programs to ours."""
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).replace("-", "_").lower()
    return KEY_ALIASES.get(snake, snake)
