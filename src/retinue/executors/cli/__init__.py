"""Performs tasks with coding CLIs: claude, codex, gemini, opencode and other ACP programs."""

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
    from retinue.executors.cli.cli_job import Cli as Cli
    from retinue.executors.cli.cli_launch import CliLauncher as CliLauncher, Launches as Launches
    from retinue.executors.cli.cli_mcp import (
        OURS as OURS,
        SOCKET as SOCKET,
        TOKEN as TOKEN,
        ReadyServer as ReadyServer,
    )
    from retinue.executors.cli.cli_process import CliExecutor as CliExecutor
    from retinue.executors.cli.cli_state import session_folder as session_folder
    from retinue.executors.cli.codex import CodexCli as CodexCli
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "acp_clis": "AcpProgram GeminiCli OpencodeCli",
            "acp_process": "AcpCli AcpExecutor",
            "claude": "ClaudeCli",
            "cli_job": "Cli",
            "cli_launch": "CliLauncher Launches",
            "cli_mcp": "OURS SOCKET TOKEN ReadyServer",
            "cli_process": "CliExecutor",
            "cli_state": "session_folder",
            "codex": "CodexCli",
        },
    )
