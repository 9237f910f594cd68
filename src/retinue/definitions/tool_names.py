"""Whether the tools that an agent's file names exist. Where the list of tools is not ours, only a name that
looks like a slip is told: a CLI has tools that we have never heard of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from retinue.core import FOREIGN_TOOLS, MCP_PREFIX, OWN_TOOLS, TOOL_SYNONYMS
from retinue.definitions.nodes import ListNode, Node, TableNode
from retinue.definitions.problem import DefinitionProblem, did_you_mean
from retinue.definitions.values import words

CLAUDE = ("Read", "Write", "Edit", "Bash", "Grep", "Glob", "WebFetch", "WebSearch", "Task", "TodoWrite")
"""What people give agents on coding CLIs most."""


def doubtful(
    node: Node, executor: str, servers: Collection[str], *, grants: bool, ours: bool
) -> Iterator[DefinitionProblem]:
    """What is wrong with a list of tools that an agent is given, or denied."""
    known = {*OWN_TOOLS, *TOOL_SYNONYMS, *FOREIGN_TOOLS}
    for name, line in _named(node):
        small = name.lower()
        if small.startswith(MCP_PREFIX):
            server = name.split("__")[1]
            if executor == "local" and grants and server not in servers and "*" not in server:
                hint = did_you_mean(server, servers) or "name it in `mcp_servers`"
                yield DefinitionProblem(
                    line, f"{name}: there is no server {server!r} here", hint, fatal=False
                )
        elif executor == "local" and small in FOREIGN_TOOLS and grants:
            yield DefinitionProblem(
                line, f"{name}: agents of the executor local cannot do this; left out", fatal=False
            )
        elif small in known or "*" in small:
            continue
        elif executor == "local":
            near = did_you_mean(small, (*OWN_TOOLS, *TOOL_SYNONYMS)) or f"there are: {', '.join(OWN_TOOLS)}"
            yield DefinitionProblem(line, f"there is no tool {name!r}", near, fatal=ours)
        elif near := did_you_mean(small.capitalize(), CLAUDE):
            yield DefinitionProblem(line, f"{executor} may have no tool {name!r}", near, fatal=False)


def _named(node: Node) -> Iterator[tuple[str, int]]:
    """Each tool without the part in parentheses, and its line."""
    if isinstance(node, TableNode):
        named = [(name, entry.line) for name, entry in node.entries.items()]
    elif isinstance(node, ListNode):
        named = [(name, item.line) for item in node.items for name in words(item)]
    else:
        named = [(name, node.line) for name in words(node)]
    for name, line in named:
        yield name.partition("(")[0].strip(), line
