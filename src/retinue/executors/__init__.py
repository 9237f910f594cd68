"""The executors: each performs one task, with a coding CLI, a local model or any program.

Knows nothing of queues, budgets or how runs are recorded.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.accounts import account_name as account_name
    from retinue.executors.cli import (
        AcpExecutor as AcpExecutor,
        AcpProgram as AcpProgram,
        ClaudeCli as ClaudeCli,
        CliExecutor as CliExecutor,
        CliLauncher as CliLauncher,
        CodexCli as CodexCli,
    )
    from retinue.executors.command import CommandConfig as CommandConfig, CommandExecutor as CommandExecutor
    from retinue.executors.executor_module import (
        ExecutorModule as ExecutorModule,
        LaunchPreview as LaunchPreview,
        Surroundings as Surroundings,
        WebAccess as WebAccess,
    )
    from retinue.executors.local import LocalExecutor as LocalExecutor
    from retinue.executors.process import (
        CommandTemplate as CommandTemplate,
        belongs_to_run as belongs_to_run,
        connection_is_from_run as connection_is_from_run,
        end_processes as end_processes,
        expand_variables as expand_variables,
        fork_server as fork_server,
        peer_process as peer_process,
        run_of_process as run_of_process,
        unset_variables as unset_variables,
    )
    from retinue.executors.sandbox import (
        NoSandbox as NoSandbox,
        Sandbox as Sandbox,
        find_bubblewrap as find_bubblewrap,
        find_container_engine as find_container_engine,
        require_bubblewrap as require_bubblewrap,
        sandbox_project_check as sandbox_project_check,
    )
    from retinue.executors.wrappers import (
        OutputSchema as OutputSchema,
        WithAcceptance as WithAcceptance,
        WithMemory as WithMemory,
        WithSession as WithSession,
        WithSkills as WithSkills,
        WithValidation as WithValidation,
        WithWorktree as WithWorktree,
        check_output_schema as check_output_schema,
        prune_snapshots as prune_snapshots,
        written_references as written_references,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "accounts": "account_name",
            "cli": "AcpExecutor AcpProgram ClaudeCli CliExecutor CliLauncher CodexCli",
            "command": "CommandConfig CommandExecutor",
            "executor_module": "ExecutorModule LaunchPreview Surroundings WebAccess",
            "local": "LocalExecutor",
            "process": (
                "CommandTemplate belongs_to_run connection_is_from_run end_processes expand_variables "
                "fork_server peer_process run_of_process unset_variables"
            ),
            "sandbox": (
                "NoSandbox Sandbox find_bubblewrap find_container_engine require_bubblewrap "
                "sandbox_project_check"
            ),
            "wrappers": (
                "OutputSchema WithAcceptance WithMemory WithSession WithSkills WithValidation WithWorktree "
                "check_output_schema prune_snapshots written_references"
            ),
        },
    )
