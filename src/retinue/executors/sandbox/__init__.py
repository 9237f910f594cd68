"""Shuts a program in: bubblewrap, Podman, Docker. Knows nothing of what the program does."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.sandbox.bubblewrap import (
        demand_bubblewrap as demand_bubblewrap,
        find_bubblewrap as find_bubblewrap,
    )
    from retinue.executors.sandbox.container import find_container_engine as find_container_engine
    from retinue.executors.sandbox.fifo_bridge import PipeDoor as PipeDoor, door_of as door_of
    from retinue.executors.sandbox.in_container import InContainer as InContainer
    from retinue.executors.sandbox.project_checks import sandboxed_check as sandboxed_check
    from retinue.executors.sandbox.sandbox import (
        NoSandbox as NoSandbox,
        Sandbox as Sandbox,
        SandboxPlace as SandboxPlace,
        installation as installation,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "bubblewrap": "demand_bubblewrap find_bubblewrap",
            "container": "find_container_engine",
            "fifo_bridge": "PipeDoor door_of",
            "in_container": "InContainer",
            "project_checks": "sandboxed_check",
            "sandbox": "NoSandbox Sandbox SandboxPlace installation",
        },
    )
