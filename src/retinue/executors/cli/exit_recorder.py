"""Runs a program and writes its exit code into a file when it ends.

Started as a script in front of the MCP servers of CLIs that do not report when one of them dies. Its
arguments are the file, then the program with its arguments. It imports nothing of Retinue.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def main() -> int:
    exit_file, *argv = sys.argv[1:]
    try:
        child = os.posix_spawnp(argv[0], argv, os.environ)
    except OSError:
        code = 127
    else:

        def forward_signal(number: int, frame: object) -> None:
            os.kill(child, number)

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, forward_signal)
        os.close(0)  # only the program reads stdin
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    Path(exit_file).write_text(str(code), encoding="ascii")
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main())
