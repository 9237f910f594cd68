"""Names that configuration chooses from: the groups of tools, and the executors."""

from __future__ import annotations

TOOL_GROUPS = ("core", "research", "agents", "runs", "workflows")
"""Every group there is, in the order hosts see them."""

DEFAULT_TOOL_GROUPS = ("core", "research", "agents", "runs")
"""What a host sees if nothing else is said: every group costs each of its conversations tokens."""

EXECUTOR_NAMES = ("local", "claude", "codex", "gemini", "opencode", "acp", "command", "deterministic")
"""Every way to perform a task that an agent may name, whether it is there or not."""


# MERGED tool_names: What tools are called: ours, and those that agents written for other programs name.

ASK_PARENT = "ask_parent"
OWN_TOOLS = ("read_file", "search", "find_files", "list_folder", "outline", ASK_PARENT)
"""The tools of agents on local models; their MCP servers' come on top."""

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
"""Other programs' names for ours, in small letters."""

FOREIGN_TOOLS = frozenset(
    {
        *("write", "write_file", "edit", "multiedit", "patch", "apply_patch", "notebookedit", "notebookread"),
        *("bash", "shell", "run_command", "bashoutput", "killshell", "webfetch", "websearch", "web_research"),
        *("task", "agent", "todowrite", "skill", "slashcommand", "exitplanmode", "spawn_agent"),
    }
)
"""Tools that exist elsewhere and never here: an agent of ours reads, and asks."""

MCP_PREFIX = "mcp__"
"""What the names of tools of MCP servers begin with: `mcp__server__tool`."""
