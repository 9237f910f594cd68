"""Starts a program and writes its exit code into a file when it ends. Runs as a small program of its own.

Used for coding CLIs that do not report when one of their MCP servers dies. The arguments are the file, then
the program with its arguments. It starts with every run, so it imports as little as possible.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Run the program, pass on signals to it, and return its exit code as a shell would."""
    exit_code_file, *argv = sys.argv[1:]
    try:
        child = os.posix_spawnp(argv[0], argv, os.environ)
    except OSError:
        code = 127
    else:

        def forward_signal(number: int, frame: object) -> None:
            os.kill(child, number)

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, forward_signal)
        os.close(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(exit_code_file, "w") as file:  # noqa: PTH123 (pathlib costs 14 ms to import)
        file.write(str(code))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main())
