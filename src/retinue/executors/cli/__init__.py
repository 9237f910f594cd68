"""Runs tasks with coding CLIs: claude, codex, gemini, opencode and other programs that speak ACP."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.cli.acp_clis import (
        AcpProgram as AcpProgram,
        GeminiCli as GeminiCli,
        OpencodeCli as OpencodeCli,
    )
    from retinue.executors.cli.acp_process import AcpCli as AcpCli, AcpExecutor as AcpExecutor
    from retinue.executors.cli.claude import ClaudeCli as ClaudeCli
    from retinue.executors.cli.cli_launch import (
        CliLauncher as CliLauncher,
        CodingCli as CodingCli,
        session_folder as session_folder,
    )
    from retinue.executors.cli.cli_process import CliExecutor as CliExecutor, EventStreamCli as EventStreamCli
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
            "acp_clis": "AcpProgram GeminiCli OpencodeCli",
            "acp_process": "AcpCli AcpExecutor",
            "claude": "ClaudeCli",
            "cli_launch": "CliLauncher CodingCli session_folder",
            "cli_process": "CliExecutor EventStreamCli",
            "codex": "CodexCli",
            "mcp_servers": "RETINUE_SERVER SOCKET_VARIABLE TOKEN_VARIABLE ReadyServer",
        },
    )
