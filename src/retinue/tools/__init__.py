"""The tools that the loop of a local agent may call. Every call is checked; every answer is cut and redacted.

Knows nothing of models or runs.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.tools.ask_parent import (
        ask_parent_tool as ask_parent_tool,
        wait_for_answer as wait_for_answer,
    )
    from retinue.tools.delegation import delegation_tools as delegation_tools
    from retinue.tools.edit_tools import EditTools as EditTools
    from retinue.tools.file_tools import FileTools as FileTools
    from retinue.tools.mcp_tools import McpTools as McpTools
    from retinue.tools.memory_tools import make_memory_tools as make_memory_tools
    from retinue.tools.run_command import (
        CommandEnd as CommandEnd,
        run_command_tool as run_command_tool,
    )
    from retinue.tools.seen_code import SeenCode as SeenCode
    from retinue.tools.selection import (
        Allows as Allows,
        add_server_tools as add_server_tools,
        allow_all as allow_all,
        canonical_name as canonical_name,
        select_tools as select_tools,
    )
    from retinue.tools.toolbox import Tool as Tool, Toolbox as Toolbox
    from retinue.tools.use_skill import use_skill_tool as use_skill_tool
    from retinue.tools.web_tools import WebTools as WebTools
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "ask_parent": "ask_parent_tool wait_for_answer",
            "delegation": "delegation_tools",
            "edit_tools": "EditTools",
            "file_tools": "FileTools",
            "mcp_tools": "McpTools",
            "memory_tools": "make_memory_tools",
            "run_command": "CommandEnd run_command_tool",
            "seen_code": "SeenCode",
            "selection": "Allows add_server_tools allow_all canonical_name select_tools",
            "toolbox": "Tool Toolbox",
            "use_skill": "use_skill_tool",
            "web_tools": "WebTools",
        },
    )
