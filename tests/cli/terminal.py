"""A terminal for tests: a real program in a real pseudo-terminal, with job control and Ctrl-C."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

WAIT_S = 40.0
TAKE_TERMINAL = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored if the tests run in the background
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes the pseudo-terminal the controlling one, so that Ctrl-C sends a signal, and becomes the program."""


class Terminal:
    """What a person at a terminal sees and types."""

    def __init__(self, screen: int, process: subprocess.Popen[bytes]) -> None:
        self._screen = screen
        self.process = process
        self.shown = ""
        self._seen = 0
        self.settings: list[Any] = termios.tcgetattr(screen)

    def expect(self, text: str) -> str:
        """Wait until the text appears after what was expected before. Returns everything up to its end."""
        end = time.monotonic() + WAIT_S
        while (found := self.shown.find(text, self._seen)) < 0:
            is_open = self._read(0.05) or self.process.poll() is None
            in_time = time.monotonic() < end
            assert is_open and in_time, f"not shown: {text!r}\n{self.shown[self._seen :]}"
        before, self._seen = self._seen, found + len(text)
        return self.shown[before : self._seen]

    def type(self, text: str) -> None:
        """Type a line and press Enter."""
        os.write(self._screen, text.encode() + b"\n")

    def press(self, key: str) -> None:
        """Press Ctrl and a letter."""
        os.write(self._screen, bytes([ord(key) - 64]))

    def exit_code(self) -> int:
        """Wait for the program to end."""
        end = time.monotonic() + WAIT_S
        while self._read(0.05) or self.process.poll() is None:
            assert time.monotonic() < end, f"the program does not end\n{self.shown}"
        return self.process.wait(WAIT_S)

    def has_unchanged_settings(self) -> bool:
        """Whether the terminal still echoes, edits lines and so on as before."""
        return termios.tcgetattr(self._screen) == self.settings

    def _read(self, wait_s: float) -> bool:
        """Read what has been shown since. False if nothing came within `wait_s`."""
        ready, _, _ = select.select([self._screen], [], [], wait_s)
        if ready:
            chunk = os.read(self._screen, 65_536).decode(errors="replace")
            self.shown = (self.shown + chunk).replace("\r\n", "\n")
        return bool(ready)


@contextmanager
def terminal(command: Sequence[str], environment: Mapping[str, str]) -> Generator[Terminal]:
    """Run a program in a terminal of its own. It ends with the context."""
    screen, inside = os.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-IS", "-c", TAKE_TERMINAL, *command],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
            env=dict(environment),
        )
        try:
            yield Terminal(screen, process)
        finally:
            os.close(inside)
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait(WAIT_S)
    finally:
        os.close(screen)
