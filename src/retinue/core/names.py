"""Names that settings and agent files refer to: tool groups and tools."""

from __future__ import annotations

TOOL_GROUPS = ("core", "research", "agents", "runs", "workflows")
"""All groups of MCP tools, in the order in which hosts see them."""

DEFAULT_TOOL_GROUPS = ("core", "research", "agents", "runs")
"""The groups that are on by default. Every group costs tokens in each conversation of the host."""

ASK_PARENT = "ask_parent"
FILE_TOOLS = ("read_file", "search", "find_files", "list_folder", "outline")
"""The built-in tools that read the user's files."""

OWN_TOOLS = (*FILE_TOOLS, ASK_PARENT)
"""The built-in tools of agents on local models. Tools of MCP servers are added to these."""

TOOL_SYNONYMS = {
    "read": "read_file",
    "view": "read_file",
    "grep": "search",
    "search_files": "search",
    "glob": "find_files",
    "ls": "list_folder",
    "list_files": "list_folder",
    "list_directory": "list_folder",
    "outline_file": "outline",
    "askparent": ASK_PARENT,
}
"""Names that other programs use for our tools, in lower case."""

FOREIGN_TOOLS = frozenset(
    {
        *("write", "write_file", "edit", "multiedit", "patch", "apply_patch", "notebookedit", "notebookread"),
        *("bash", "shell", "run_command", "bashoutput", "killshell", "webfetch", "websearch", "web_research"),
        *("task", "agent", "todowrite", "skill", "slashcommand", "exitplanmode", "spawn_agent"),
    }
)
"""Tools of other programs that agents on local models never get, because these agents only read and ask."""

MCP_PREFIX = "mcp__"
"""Prefix of the names of MCP server tools: `mcp__server__tool`."""
