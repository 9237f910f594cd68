"""Starts programs and ends them with everything they started. Knows nothing of agents or sandboxes."""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.process.environment import (
        MARK as MARK,
        child_environment as child_environment,
        expanded as expanded,
        secrets_of as secrets_of,
        templates_of as templates_of,
    )
    from retinue.executors.process.output import (
        LAST_LINES as LAST_LINES,
        Lines as Lines,
        Tail as Tail,
        Transcript as Transcript,
    )
    from retinue.executors.process.process_group import (
        CHUNK as CHUNK,
        Process as Process,
        ProcessGroup as ProcessGroup,
        spawn_process as spawn_process,
        uninterrupted as uninterrupted,
    )
    from retinue.executors.process.process_tree import end_processes as end_processes
    from retinue.executors.process.program import (
        CAN_HAND as CAN_HAND,
        Program as Program,
        handed_descriptor as handed_descriptor,
    )
    from retinue.executors.process.reaper_client import reapers as reapers
    from retinue.executors.process.template import Template as Template
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "environment": "MARK child_environment expanded secrets_of templates_of",
            "output": "LAST_LINES Lines Tail Transcript",
            "process_group": "CHUNK Process ProcessGroup spawn_process uninterrupted",
            "process_tree": "end_processes",
            "program": "CAN_HAND Program handed_descriptor",
            "reaper_client": "reapers",
            "template": "Template",
        },
    )
