"""Names that settings and agent files refer to: tool groups and tools."""

from __future__ import annotations

TOOL_GROUPS = ("core", "research", "agents", "runs", "workflows", "skills", "memory", "web")
"""All groups of MCP tools, in the order in which hosts see them."""

DEFAULT_TOOL_GROUPS = ("core", "research", "agents", "runs", "web")
"""The groups that are on by default; `web` only if the user allows the web. Every group costs tokens in each
conversation of the host."""

ASK_PARENT = "ask_parent"
FILE_TOOLS = ("read_file", "search", "find_files", "list_folder", "outline")
"""The built-in tools that read the user's files."""

WRITE_FILE = "write_file"
EDIT_FILE = "edit_file"
RUN_COMMAND = "run_command"
WRITING_TOOLS = (WRITE_FILE, EDIT_FILE, "apply_patch", RUN_COMMAND)
"""The built-in tools that change files or run commands. An agent gets them only if it names them, and only in
a worktree or a sandbox."""

MEMORY_TOOLS = ("remember", "recall", "forget")
"""The tools of the memory. An agent gets them if its file says `memory: true`, or names them."""

USE_SKILL = "use_skill"
"""The tool that reads a skill. Every agent with tools gets it if there are skills for it."""

LIST_AGENTS = "list_agents"
RUN_SUBAGENT = "run_subagent"
WAIT_FOR_RUNS = "wait_for_runs"
DELEGATING_TOOLS = (LIST_AGENTS, RUN_SUBAGENT, WAIT_FOR_RUNS)
"""The built-in tools that start other agents. Only agents with `spawns` have them."""

WEB_FETCH = "web_fetch"
WEB_SEARCH = "web_search"
WEB_TOOLS = (WEB_FETCH, WEB_SEARCH)
"""The built-in tools that read the web. An agent gets them only if it names them, and only if the user allows
the web."""

OWN_TOOLS = (
    *FILE_TOOLS,
    *WRITING_TOOLS,
    *WEB_TOOLS,
    ASK_PARENT,
    USE_SKILL,
    *MEMORY_TOOLS,
    *DELEGATING_TOOLS,
)
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
    "find_and_read": "read_file",
    "search_and_read": "search",
    "write": WRITE_FILE,
    "create_file": WRITE_FILE,
    "edit": EDIT_FILE,
    "multiedit": EDIT_FILE,
    "patch": EDIT_FILE,
    "read_and_patch": EDIT_FILE,
    "str_replace": EDIT_FILE,
    "replace": EDIT_FILE,
    "applypatch": "apply_patch",
    "bash": RUN_COMMAND,
    "shell": RUN_COMMAND,
    "run": RUN_COMMAND,
    "run_shell_command": RUN_COMMAND,
    "askparent": ASK_PARENT,
    "skill": USE_SKILL,
    "read_skill": USE_SKILL,
    "webfetch": WEB_FETCH,
    "fetch": WEB_FETCH,
    "websearch": WEB_SEARCH,
    "google_web_search": WEB_SEARCH,
}
"""Names that other programs use for our tools, in lower case."""

FOREIGN_TOOLS = frozenset(
    {
        *("notebookedit", "notebookread", "bashoutput", "killshell", "web_research"),
        *("task", "agent", "todowrite", "slashcommand", "exitplanmode", "spawn_agent"),
    }
)
"""Tools of other programs that agents on local models never get."""

MCP_PREFIX = "mcp__"
"""Prefix of the names of MCP server tools: `mcp__server__tool`."""
