"""The witness: starts a program in its own place and writes its exit code into a file when it ends.

Used around the MCP servers of CLIs that do not say when one of them dies. Its arguments are the file, then
the program with its own. It starts with every run, so it imports as little as it can.
"""

from __future__ import annotations

import os
import sys

signal = sys.modules["_signal"]  # the public module costs 6 ms for its enumerations


def main() -> int:
    note, *argv = sys.argv[1:]
    try:
        child = os.posix_spawnp(argv[0], argv, os.environ)
    except OSError:
        code = 127
    else:

        def pass_on(number: int, frame: object) -> None:
            os.kill(child, number)

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, pass_on)
        os.close(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(note, "w") as file:  # noqa: PTH123 (pathlib costs 14 ms to import)
        file.write(str(code))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main())
