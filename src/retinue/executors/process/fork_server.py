"""The nursery: one small process of a server's that forks a keeper for each program the server runs.

Python takes 13 ms of CPU to start a keeper; a process that has started already forks one in a fraction of
that. The server sends it the keeper's end of a socket and the program's three streams, and it forks. When the
server closes its own socket, or dies, the nursery waits for the keepers it has and ends; they have seen the
same, each on its own. Should the nursery be killed, the keepers go on without it.

It is single, without threads, and imports nothing but the keeper. It knows nothing of programs.
"""

from __future__ import annotations

import _socket as socket  # the public module would only add enumerations
import os
import sys

from retinue.executors.process.reaper import cpu_us, keep, signal

HANDED_OVER = 4
"""For each keeper: its socket, and the program's stdin, stdout and stderr."""


def main(orders: int) -> None:
    signal.signal(signal.SIGCHLD, collect)
    cpu_us()  # imports what every keeper will need at its end
    server = socket.socket(fileno=orders)
    while (descriptors := receive(server)) is not None:
        if len(descriptors) == HANDED_OVER:
            fork_keeper(server, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)  # or the program's streams would not end with the program
    server.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        os._exit(0)


def receive(server: socket.socket) -> list[int] | None:
    """What came with one message; None when there will be no other."""
    space = socket.CMSG_SPACE(HANDED_OVER * 4)
    said, ancillary, _, _ = server.recvmsg(1, space, socket.MSG_CMSG_CLOEXEC)
    descriptors = [each for _, _, data in ancillary for each in memoryview(data).cast("i")]
    return descriptors if said else None


def fork_keeper(server: socket.socket, descriptors: list[int]) -> None:
    """A keeper that cannot be forked has a socket that ends: the server is told by that."""
    try:
        child = os.fork()
    except OSError:
        return
    if child:
        return
    try:
        server.close()
        control, *streams = descriptors
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
            os.close(stream)
        keep(control)
    except BaseException as error:  # whatever it is: this must not become a second nursery
        sys.excepthook(type(error), error, error.__traceback__)  # to the program's stderr, and so to the log
    finally:
        os._exit(0)


def collect(number: int, frame: object) -> None:
    """Keepers that have ended; `recvmsg` is taken up again after every signal."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return
