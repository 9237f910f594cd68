"""What an agent's loop may call, each call checked, bounded and redacted. Knows nothing of models or runs."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.tools.file_tools import FileTools as FileTools
    from retinue.tools.mcp_tools import McpTools as McpTools
    from retinue.tools.names import (
        Allows as Allows,
        add_server_tools as add_server_tools,
        allow_all as allow_all,
        select_tools as select_tools,
    )
    from retinue.tools.parent_tools import answer_of as answer_of, ask_parent_tool as ask_parent_tool
    from retinue.tools.threads import in_thread as in_thread
    from retinue.tools.tool import Tool as Tool
    from retinue.tools.toolbox import Toolbox as Toolbox
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "file_tools": "FileTools",
            "mcp_tools": "McpTools",
            "names": "Allows add_server_tools allow_all select_tools",
            "parent_tools": "answer_of ask_parent_tool",
            "threads": "in_thread",
            "tool": "Tool",
            "toolbox": "Toolbox",
        },
    )
