"""The executors: each performs one task, with a coding CLI, a local model or any program.

Knows nothing of queues, budgets or how runs are recorded.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.cli import (
        AcpCli as AcpCli,
        AcpExecutor as AcpExecutor,
        AcpProgram as AcpProgram,
        ClaudeCli as ClaudeCli,
        CliExecutor as CliExecutor,
        CliLauncher as CliLauncher,
        CodexCli as CodexCli,
        CodingCli as CodingCli,
        EventStreamCli as EventStreamCli,
        GeminiCli as GeminiCli,
        OpencodeCli as OpencodeCli,
        session_folder as session_folder,
    )
    from retinue.executors.command import (
        CommandConfig as CommandConfig,
        CommandExecutor as CommandExecutor,
        WithPreamble as WithPreamble,
    )
    from retinue.executors.launch_preview import (
        LaunchPreview as LaunchPreview,
        preview_cli as preview_cli,
        preview_command as preview_command,
        preview_context as preview_context,
    )
    from retinue.executors.local import (
        CONTEXT_SHARE as CONTEXT_SHARE,
        MAX_STEPS as MAX_STEPS,
        MAX_TOKENS as MAX_TOKENS,
        LocalExecutor as LocalExecutor,
        without_thoughts as without_thoughts,
    )
    from retinue.executors.process import (
        CommandTemplate as CommandTemplate,
        end_processes as end_processes,
        fork_server as fork_server,
    )
    from retinue.executors.sandbox import (
        CommandInContainer as CommandInContainer,
        NoSandbox as NoSandbox,
        Sandbox as Sandbox,
        find_bubblewrap as find_bubblewrap,
        find_container_engine as find_container_engine,
        require_bubblewrap as require_bubblewrap,
        sandbox_project_check as sandbox_project_check,
    )
    from retinue.executors.wrappers import (
        JSON_ONLY_PROMPT as JSON_ONLY_PROMPT,
        OutputSchema as OutputSchema,
        WithAcceptance as WithAcceptance,
        WithSession as WithSession,
        WithValidation as WithValidation,
        WithWorktree as WithWorktree,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "cli": (
                "AcpCli AcpExecutor AcpProgram ClaudeCli CliExecutor CliLauncher CodexCli CodingCli "
                "EventStreamCli GeminiCli OpencodeCli session_folder"
            ),
            "command": "CommandConfig CommandExecutor WithPreamble",
            "launch_preview": "LaunchPreview preview_cli preview_command preview_context",
            "local": "CONTEXT_SHARE MAX_STEPS MAX_TOKENS LocalExecutor without_thoughts",
            "process": "CommandTemplate end_processes fork_server",
            "sandbox": (
                "CommandInContainer NoSandbox Sandbox find_bubblewrap find_container_engine "
                "require_bubblewrap sandbox_project_check"
            ),
            "wrappers": (
                "JSON_ONLY_PROMPT OutputSchema WithAcceptance WithSession WithValidation WithWorktree"
            ),
        },
    )
