"""Starts programs, reads their output and ends them with everything they started.

`ProgramRun` runs one program for an executor. `ProcessGroup` is the layer below: on Linux each program runs
under a reaper, elsewhere its processes are found in the process table. Knows nothing of agents or sandboxes.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.executors.process.caller import (
        belongs_to_run as belongs_to_run,
        connection_is_from_run as connection_is_from_run,
        peer_process as peer_process,
        run_of_process as run_of_process,
    )
    from retinue.executors.process.environment import (
        RUN_ID_VARIABLE as RUN_ID_VARIABLE,
        child_environment as child_environment,
        collect_secrets as collect_secrets,
        expand_variables as expand_variables,
        mcp_server_values as mcp_server_values,
        unset_variables as unset_variables,
    )
    from retinue.executors.process.output import (
        LAST_LINES as LAST_LINES,
        MAX_OUTPUT_BYTES as MAX_OUTPUT_BYTES,
        LineDecoder as LineDecoder,
        Tail as Tail,
        Transcript as Transcript,
    )
    from retinue.executors.process.portable_process import end_processes as end_processes
    from retinue.executors.process.process_group import (
        CHUNK_BYTES as CHUNK_BYTES,
        Process as Process,
        ProcessGroup as ProcessGroup,
        run_uninterrupted as run_uninterrupted,
        spawn_process as spawn_process,
    )
    from retinue.executors.process.program import (
        SUPPORTS_SECRET_FILES as SUPPORTS_SECRET_FILES,
        CommandTemplate as CommandTemplate,
        Program as Program,
        secret_file_descriptor as secret_file_descriptor,
    )
    from retinue.executors.process.program_run import CleanUp as CleanUp, ProgramRun as ProgramRun
    from retinue.executors.process.reaped_process import fork_server as fork_server
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "caller": "belongs_to_run connection_is_from_run peer_process run_of_process",
            "environment": (
                "RUN_ID_VARIABLE child_environment collect_secrets expand_variables mcp_server_values "
                "unset_variables"
            ),
            "output": "LAST_LINES MAX_OUTPUT_BYTES LineDecoder Tail Transcript",
            "portable_process": "end_processes",
            "process_group": "CHUNK_BYTES Process ProcessGroup run_uninterrupted spawn_process",
            "program": "SUPPORTS_SECRET_FILES CommandTemplate Program secret_file_descriptor",
            "program_run": "CleanUp ProgramRun",
            "reaped_process": "fork_server",
        },
    )
