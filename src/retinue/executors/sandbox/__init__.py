"""Restricts what a program can see and change, with bubblewrap, Podman or Docker.

Knows nothing of what the program does.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.sandbox.agent_commands import (
        AgentCommands as AgentCommands,
        find_secrets as find_secrets,
        repository_of_worktree as repository_of_worktree,
    )
    from retinue.executors.sandbox.bubblewrap import (
        find_bubblewrap as find_bubblewrap,
        require_bubblewrap as require_bubblewrap,
    )
    from retinue.executors.sandbox.container import find_container_engine as find_container_engine
    from retinue.executors.sandbox.fifo_bridge import (
        FifoBridge as FifoBridge,
        create_fifo_bridge as create_fifo_bridge,
    )
    from retinue.executors.sandbox.sandbox import (
        NoSandbox as NoSandbox,
        Sandbox as Sandbox,
        SandboxAccess as SandboxAccess,
        installation_folders as installation_folders,
        sandbox_project_check as sandbox_project_check,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "agent_commands": "AgentCommands find_secrets repository_of_worktree",
            "bubblewrap": "find_bubblewrap require_bubblewrap",
            "container": "find_container_engine",
            "fifo_bridge": "FifoBridge create_fifo_bridge",
            "sandbox": "NoSandbox Sandbox SandboxAccess installation_folders sandbox_project_check",
        },
    )
