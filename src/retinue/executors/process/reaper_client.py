"""The server's side of the nursery: has keepers forked, and starts the nursery when there is none."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

PACKAGES = Path(__file__).parents[3]
BEGIN = """\
import sys
sys.path.append(sys.argv[1])
from retinue.executors.process.fork_server import main
main(int(sys.argv[2]))
"""
PATIENCE_S = 2.0
"""A nursery that takes no more, or does not end, for so long is left to itself."""


class Keepers:
    """Starts with the first keeper that is wanted, and ends with the last scope, or with this process."""

    def __init__(self) -> None:
        self._nursery: subprocess.Popen[bytes] | None = None
        self._orders: socket.socket | None = None
        self._scopes = 0

    @property
    def pid(self) -> int | None:
        """Of the nursery, if there is one now."""
        return None if self._nursery is None else self._nursery.pid

    @contextmanager
    def shared(self) -> Generator[None]:
        """One nursery for all that is run within the block."""
        self._scopes += 1
        try:
            yield
        finally:
            self._scopes -= 1
            if not self._scopes:
                self.close()

    def fork(self, descriptors: Sequence[int]) -> None:
        """Have a keeper forked with copies of these. If none comes of it, the copies are closed."""
        try:
            self._send(descriptors)
        except OSError:  # somebody killed it; its keepers live on
            self._give_up()
            self._send(descriptors)

    def close(self) -> None:
        """Let the nursery end. It waits for the keepers that it still has, so we wait for it not too long."""
        if self._orders is None or self._nursery is None:
            return
        self._orders.close()
        with suppress(subprocess.TimeoutExpired):
            self._nursery.wait(PATIENCE_S)
        self._orders = self._nursery = None

    def _send(self, descriptors: Sequence[int]) -> None:
        socket.send_fds(self._orders or self._start(), [b"k"], descriptors)

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(PATIENCE_S)
        with theirs:
            # -I and -S: no user's paths, no site packages. Nor has it any of our environment or streams.
            self._nursery = subprocess.Popen(
                (sys.executable, "-I", "-S", "-c", BEGIN, str(PACKAGES), str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
        self._orders = ours
        return ours

    def _give_up(self) -> None:
        if self._orders is not None and self._nursery is not None:
            self._orders.close()
            self._nursery.kill()
            self._nursery.wait()
        self._orders = self._nursery = None


reapers = Keepers()
"""Of this process: whoever runs programs shares them."""
