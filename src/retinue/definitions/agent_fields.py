"""Every key that an agent's file may have: what it takes, one sentence about it, and how it is read.

The page for users is held to this table by a test. Knows nothing of where files lie."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from retinue.core import EXECUTOR_NAMES, McpServer
from retinue.definitions import value_readers
from retinue.definitions.problems import MalformedDefinition, read_each
from retinue.definitions.tool_rules import read_opencode_permission, read_tools
from retinue.definitions.value_readers import (
    read_argv,
    read_record,
    read_string_map,
    read_text,
    read_words,
    require_table,
)
from retinue.definitions.yaml_tree import ListNode, Node, ScalarNode, TableNode

# MERGED servers: The MCP servers that an agent's file names, in each of the ways that people write them.

SERVER_READERS = {
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


@dataclass(frozen=True, slots=True)
class AgentServers:
    defined: tuple[McpServer, ...] = ()
    referred: tuple[str, ...] = ()
    """Names of servers that are defined somewhere else, in a CLI's own settings."""

    @property
    def names(self) -> frozenset[str]:
        return frozenset({*self.referred, *(server.name for server in self.defined)})


def read_servers(node: Node) -> AgentServers:
    """A list of tables with a `name`, a table by name, or a list of names and of tables by name."""
    defined: dict[str, McpServer] = {}

    def read(item: tuple[str | None, Node]) -> McpServer | str:
        name, given = item
        if name is None and isinstance(given, ScalarNode):
            return read_text(given)
        if name is None and not isinstance(given, TableNode):
            raise MalformedDefinition(
                given.line, "a server is a name, or a table with its name and command or url"
            )
        server = _read_server(name, require_table(given))
        if defined.setdefault(server.name, server) is not server:
            raise MalformedDefinition(given.line, f"the server {server.name!r} stands twice")
        return server

    found = read_each(read, _server_nodes(node))
    return AgentServers(tuple(defined.values()), tuple(name for name in found if isinstance(name, str)))


def _server_nodes(node: Node) -> Iterator[tuple[str | None, Node]]:
    """Each server, with its name where that stands before it."""
    if isinstance(node, TableNode):
        yield from ((name, entry.value) for name, entry in node.entries.items())
        return
    for item in node.items if isinstance(node, ListNode) else (node,):
        if isinstance(item, TableNode) and "name" not in item.entries:
            yield from _server_nodes(item)
        else:
            yield None, item


def _read_server(key: str | None, node: TableNode) -> McpServer:
    given = read_record(node, SERVER_READERS, "a server")
    name = given["name"] if key is None else key
    command, url = given.get("command", ()), given.get("url")
    if bool(command) == (url is not None):
        raise MalformedDefinition(node.line, f"the server {name!r} needs a command or a url, one of them")
    return McpServer(
        name=name,
        argv=(*command, *given.get("args", ())) if command else (),
        env=given.get("env") or given.get("environment") or {},
        url=url,
        headers=given.get("headers", {}),
        tools=given.get("tools"),
    )


NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""What an agent's name looks like: it becomes part of a tool's name."""
DAY_MS = 86_400_000

BUDGET_READERS: Mapping[str, value_readers.ValueReader[Any]] = {
    "files": value_readers.whole_number(0),
    "bytes": value_readers.whole_number(0),
    "steps": value_readers.whole_number(1),
    "tokens": value_readers.whole_number(1),
    "cost_usd": value_readers.read_dollars,
    "wall_ms": value_readers.whole_number(1),
}
PERMISSION_READERS: Mapping[str, value_readers.ValueReader[Any]] = {
    "allow": value_readers.read_words,
    "deny": value_readers.read_words,
}


@dataclass(frozen=True, slots=True)
class AgentField:
    key: str
    takes: str
    about: str
    read: value_readers.ValueReader[Any]


def read_agent_name(node: Node) -> str:
    given = value_readers.read_text(node)
    if not NAME_PATTERN.fullmatch(given):
        raise MalformedDefinition(
            node.line, f"{given[:80]!r} cannot be a name", "letters, digits, `-` and `_`, at most 64 of them"
        )
    return given


def read_budget(node: Node) -> dict[str, Any]:
    return value_readers.read_record(node, BUDGET_READERS)


def read_permissions(node: Node) -> dict[str, Any]:
    return value_readers.read_record(node, PERMISSION_READERS)


def keep_node(node: Node) -> Node:
    return node


FIELDS = (
    AgentField("name", "a name", "How callers name it; without it the file's name.", read_agent_name),
    AgentField(
        "description", "a text", "What it is good for; callers choose by it.", value_readers.read_text
    ),
    AgentField(
        "executor",
        ", ".join(EXECUTOR_NAMES),
        "What performs its tasks.",
        value_readers.choice(*EXECUTOR_NAMES),
    ),
    AgentField(
        "command",
        "a command line",
        "The program of the executor `command`; no shell.",
        value_readers.read_argv,
    ),
    AgentField(
        "model",
        "a tier, a name or `inherit`",
        "`fast`, `default`, `medium`, `strong`, or a model's name as it is.",
        value_readers.read_text,
    ),
    AgentField(
        "profile",
        "a profile's name",
        "The most it may be granted; `tools` narrows it further.",
        value_readers.read_text,
    ),
    AgentField("tools", "a list, or true and false by name", "The tools it may call.", read_tools),
    AgentField(
        "disallowed_tools", "a list", "Tools taken away from what it would have.", value_readers.read_words
    ),
    AgentField(
        "permissions",
        "`allow` and `deny`, lists",
        "Rules such as `Bash(curl:*)`; a denial wins.",
        read_permissions,
    ),
    AgentField(
        "permission", "allow, deny or ask by tool", "The same in opencode's words.", read_opencode_permission
    ),
    AgentField(
        "permission_mode",
        "a CLI's own word",
        "What a CLI does unasked, such as `plan`.",
        value_readers.read_text,
    ),
    AgentField(
        "mcp_servers",
        "a list of servers",
        "Each with `name` and `command`, `args`, `env`, or `url`.",
        read_servers,
    ),
    AgentField(
        "env",
        "variables",
        "For its program; `${NAME}` takes the server's own value.",
        value_readers.read_string_map,
    ),
    AgentField("folders", "a list of paths", "Further folders it may work in.", value_readers.read_paths),
    AgentField(
        "settings",
        "a list of: user, project",
        "Whose settings a CLI loads; none unless named.",
        value_readers.read_words,
    ),
    AgentField(
        "session",
        "true or false",
        "Whether a later run goes on where the last one ended.",
        value_readers.read_flag,
    ),
    AgentField(
        "allowed_callers",
        "a list",
        "Who may call it: `main` is the host, else agents.",
        value_readers.read_words,
    ),
    AgentField(
        "timeout_ms", "milliseconds", "When a run of it is ended.", value_readers.whole_number(1, DAY_MS)
    ),
    AgentField("budget", ", ".join(BUDGET_READERS), "What a run with all it starts may spend.", read_budget),
    AgentField("max_turns", "a number", "The same as `steps` in the budget.", value_readers.whole_number(1)),
    AgentField(
        "max_cost_usd", "dollars", "The same as `cost_usd` in the budget.", value_readers.read_dollars
    ),
    AgentField(
        "spawns",
        "a number",
        "Runs it may start in its turn; none unless said.",
        value_readers.whole_number(0, 1000),
    ),
    AgentField("output_format", "text or json", "What its answer is.", value_readers.choice("text", "json")),
    AgentField("output_schema", "a JSON Schema", "What its answer must fit.", value_readers.read_json_object),
    AgentField("container", "an image", "The container it runs in.", value_readers.read_text),
    AgentField(
        "sandbox",
        "auto, bwrap or none",
        "What it is shut into.",
        value_readers.choice("auto", "bwrap", "none"),
    ),
    AgentField(
        "network",
        "true, false or host",
        "Whether its sandbox has a network; `host`: a container has this machine's.",
        value_readers.read_network,
    ),
    AgentField(
        "isolation", "none or worktree", "Where a writer works.", value_readers.choice("none", "worktree")
    ),
    AgentField(
        "acceptance", "a list of command lines", "Must succeed after it.", value_readers.read_commands
    ),
    AgentField(
        "system_prompt",
        "replace or append",
        "Whether the body replaces a CLI's own system prompt.",
        value_readers.choice("replace", "append"),
    ),
    AgentField(
        "mode", "a word of opencode", "`primary` is a main agent, and left out here.", value_readers.read_text
    ),
    AgentField("disabled", "true or false", "Leaves the agent out.", value_readers.read_flag),
    AgentField(
        "hooks", "Claude Code's hooks", "Refused when it runs: nothing here would call them.", keep_node
    ),
)
FIELDS_BY_KEY = {field.key: field for field in FIELDS}

KEY_ALIASES = {
    "disable": "disabled",
    "steps": "max_turns",
    "max_steps": "max_turns",
    "max_budget_usd": "max_cost_usd",
}
"""Other programs' names for the same."""
IGNORED_KEYS = frozenset(
    {
        *("background", "color", "effort", "hidden", "initial_prompt", "memory", "options", "skills"),
        *("reasoning_effort", "temperature", "top_p", "use_cases", "variant", "version", "when_to_use"),
    }
)
"""Keys of other programs that grant nothing and forbid nothing: they may be left aside."""


def canonical_key(key: str) -> str:
    """`mcpServers` and `mcp-servers` as `mcp_servers`, and other programs' names as ours."""
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).replace("-", "_").lower()
    return KEY_ALIASES.get(snake, snake)
