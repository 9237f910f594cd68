"""Every key that an agent's file may have: what it takes, one sentence about it, and how it is read.

The page for users is held to this table by a test. Knows nothing of where files lie.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retinue.core import EXECUTOR_NAMES
from retinue.definitions import values
from retinue.definitions.nodes import Node
from retinue.definitions.problem import MalformedDefinition
from retinue.definitions.servers import servers
from retinue.definitions.tool_rules import permission, tools

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""What an agent's name looks like: it becomes part of a tool's name."""
DAY_MS = 86_400_000

BUDGET: Mapping[str, values.Read[Any]] = {
    "files": values.whole(0),
    "bytes": values.whole(0),
    "steps": values.whole(1),
    "tokens": values.whole(1),
    "cost_usd": values.dollars,
    "wall_ms": values.whole(1),
}
PERMISSIONS: Mapping[str, values.Read[Any]] = {"allow": values.words, "deny": values.words}


@dataclass(frozen=True, slots=True)
class Field:
    key: str
    takes: str
    about: str
    read: values.Read[Any]


def agent_name(node: Node) -> str:
    given = values.text(node)
    if not NAME.fullmatch(given):
        raise MalformedDefinition(
            node.line, f"{given[:80]!r} cannot be a name", "letters, digits, `-` and `_`, at most 64 of them"
        )
    return given


def budget(node: Node) -> dict[str, Any]:
    return values.record(node, BUDGET)


def permissions(node: Node) -> dict[str, Any]:
    return values.record(node, PERMISSIONS)


def anything(node: Node) -> Node:
    return node


FIELDS = (
    Field("name", "a name", "How callers name it; without it the file's name.", agent_name),
    Field("description", "a text", "What it is good for; callers choose by it.", values.text),
    Field("executor", ", ".join(EXECUTOR_NAMES), "What performs its tasks.", values.one_of(*EXECUTOR_NAMES)),
    Field("command", "a command line", "The program of the executor `command`; no shell.", values.argv),
    Field(
        "model",
        "a tier, a name or `inherit`",
        "`fast`, `default`, `medium`, `strong`, or a model's name as it is.",
        values.text,
    ),
    Field(
        "profile", "a profile's name", "The most it may be granted; `tools` narrows it further.", values.text
    ),
    Field("tools", "a list, or true and false by name", "The tools it may call.", tools),
    Field("disallowed_tools", "a list", "Tools taken away from what it would have.", values.words),
    Field(
        "permissions",
        "`allow` and `deny`, lists",
        "Rules such as `Bash(curl:*)`; a denial wins.",
        permissions,
    ),
    Field("permission", "allow, deny or ask by tool", "The same in opencode's words.", permission),
    Field("permission_mode", "a CLI's own word", "What a CLI does unasked, such as `plan`.", values.text),
    Field(
        "mcp_servers",
        "a list of servers",
        "Each with `name` and `command`, `args`, `env`, or `url`.",
        servers,
    ),
    Field("env", "variables", "For its program; `${NAME}` takes the server's own value.", values.named_texts),
    Field("folders", "a list of paths", "Further folders it may work in.", values.paths),
    Field(
        "settings", "a list of: user, project", "Whose settings a CLI loads; none unless named.", values.words
    ),
    Field("session", "true or false", "Whether a later run goes on where the last one ended.", values.flag),
    Field("allowed_callers", "a list", "Who may call it: `main` is the host, else agents.", values.words),
    Field("timeout_ms", "milliseconds", "When a run of it is ended.", values.whole(1, DAY_MS)),
    Field("budget", ", ".join(BUDGET), "What a run with all it starts may spend.", budget),
    Field("max_turns", "a number", "The same as `steps` in the budget.", values.whole(1)),
    Field("max_cost_usd", "dollars", "The same as `cost_usd` in the budget.", values.dollars),
    Field("spawns", "a number", "Runs it may start in its turn; none unless said.", values.whole(0, 1000)),
    Field("output_format", "text or json", "What its answer is.", values.one_of("text", "json")),
    Field("output_schema", "a JSON Schema", "What its answer must fit.", values.json_table),
    Field("container", "an image", "The container it runs in.", values.text),
    Field("sandbox", "auto, bwrap or none", "What it is shut into.", values.one_of("auto", "bwrap", "none")),
    Field(
        "network",
        "true, false or host",
        "Whether its sandbox has a network; `host`: a container has this machine's.",
        values.network,
    ),
    Field("isolation", "none or worktree", "Where a writer works.", values.one_of("none", "worktree")),
    Field("acceptance", "a list of command lines", "Must succeed after it.", values.commands),
    Field(
        "system_prompt",
        "replace or append",
        "Whether the body replaces a CLI's own system prompt.",
        values.one_of("replace", "append"),
    ),
    Field("mode", "a word of opencode", "`primary` is a main agent, and left out here.", values.text),
    Field("disabled", "true or false", "Leaves the agent out.", values.flag),
    Field("hooks", "Claude Code's hooks", "Refused when it runs: nothing here would call them.", anything),
)
BY_KEY = {field.key: field for field in FIELDS}

ALSO = {
    "disable": "disabled",
    "steps": "max_turns",
    "max_steps": "max_turns",
    "max_budget_usd": "max_cost_usd",
}
"""Other programs' names for the same."""
NOT_USED = frozenset(
    {
        *("background", "color", "effort", "hidden", "initial_prompt", "memory", "options", "skills"),
        *("reasoning_effort", "temperature", "top_p", "use_cases", "variant", "version", "when_to_use"),
    }
)
"""Keys of other programs that grant nothing and forbid nothing: they may be left aside."""


def canonical(key: str) -> str:
    """`mcpServers` and `mcp-servers` as `mcp_servers`, and other programs' names as ours."""
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).replace("-", "_").lower()
    return ALSO.get(snake, snake)
