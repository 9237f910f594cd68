"""The ways to perform one task. Knows nothing of queues, budgets or what a run is recorded as."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.cli import (
        AcpCli as AcpCli,
        AcpExecutor as AcpExecutor,
        AcpProgram as AcpProgram,
        ClaudeCli as ClaudeCli,
        Cli as Cli,
        CliExecutor as CliExecutor,
        CliLauncher as CliLauncher,
        CodexCli as CodexCli,
        GeminiCli as GeminiCli,
        Launches as Launches,
        OpencodeCli as OpencodeCli,
        session_folder as session_folder,
    )
    from retinue.executors.command import CommandConfig as CommandConfig, CommandExecutor as CommandExecutor
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
        Template as Template,
        end_processes as end_processes,
        reapers as reapers,
    )
    from retinue.executors.sandbox import (
        InContainer as InContainer,
        NoSandbox as NoSandbox,
        Sandbox as Sandbox,
        demand_bubblewrap as demand_bubblewrap,
        find_bubblewrap as find_bubblewrap,
        find_container_engine as find_container_engine,
        sandboxed_check as sandboxed_check,
    )
    from retinue.executors.wrappers import (
        JSON_ALONE as JSON_ALONE,
        OutputSchema as OutputSchema,
        WithAcceptance as WithAcceptance,
        WithPreamble as WithPreamble,
        WithSession as WithSession,
        WithValidation as WithValidation,
        WithWorktree as WithWorktree,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "cli": (
                "AcpCli AcpExecutor AcpProgram ClaudeCli Cli CliExecutor CliLauncher CodexCli "
                "GeminiCli Launches OpencodeCli session_folder"
            ),
            "command": "CommandConfig CommandExecutor",
            "launch_preview": "LaunchPreview preview_cli preview_command preview_context",
            "local": "CONTEXT_SHARE MAX_STEPS MAX_TOKENS LocalExecutor without_thoughts",
            "process": "Template end_processes reapers",
            "sandbox": (
                "InContainer NoSandbox Sandbox demand_bubblewrap find_bubblewrap find_container_engine "
                "sandboxed_check"
            ),
            "wrappers": (
                "JSON_ALONE OutputSchema WithAcceptance WithPreamble WithSession WithValidation WithWorktree"
            ),
        },
    )
