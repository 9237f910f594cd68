"""Runs tasks with coding CLIs: claude, codex, gemini, opencode and other programs that speak ACP."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.cli.acp_process import AcpExecutor as AcpExecutor
    from retinue.executors.cli.acp_program import AcpProgram as AcpProgram
    from retinue.executors.cli.claude import ClaudeCli as ClaudeCli
    from retinue.executors.cli.cli_launch import CliLauncher as CliLauncher
    from retinue.executors.cli.cli_process import CliExecutor as CliExecutor
    from retinue.executors.cli.codex import CodexCli as CodexCli
    from retinue.executors.cli.mcp_servers import (
        RETINUE_SERVER as RETINUE_SERVER,
        SOCKET_VARIABLE as SOCKET_VARIABLE,
        TOKEN_VARIABLE as TOKEN_VARIABLE,
        ReadyServer as ReadyServer,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "acp_process": "AcpExecutor",
            "acp_program": "AcpProgram",
            "claude": "ClaudeCli",
            "cli_launch": "CliLauncher",
            "cli_process": "CliExecutor",
            "codex": "CodexCli",
            "mcp_servers": "RETINUE_SERVER SOCKET_VARIABLE TOKEN_VARIABLE ReadyServer",
        },
    )
