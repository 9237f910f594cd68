"""What tools are called: ours, and those that agents written for other programs name."""

from __future__ import annotations

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
