"""The keeper: a small process between the server and one program, which ends all that the program started.

Forked on Linux by the server's `nursery`, with the program's stdin, stdout and stderr as its own and one end
of a socket. It reads one order from the socket, starts the program, tells the server what happens to it, and
waits for the end of the file: the server closes the socket to end the program, and the kernel closes it when
the server dies. Either way the whole tree is ended.

Nothing escapes by daemonising: the keeper is a "child subreaper", so whoever loses its parent becomes the
keeper's own child, and "no children left" (ECHILD) is the kernel's word that nobody is left.

It is there for as long as the program, so it imports as little as it can, and nothing of Retinue. It knows
nothing of output, time limits or runs.
"""

from __future__ import annotations

import ctypes
import errno
import marshal
import os
import select
import sys
import time

TYPE_CHECKING = False  # known to type checkers by its name; importing `typing` would cost 14 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# The public `signal` module costs 6 ms for its enumerations; this is the part of it that is always loaded.
signal: Any = sys.modules["_signal"]

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 5.0
"""After this long of killing, whoever still lives cannot be killed."""
ORPHANED_GRACE = 1.0
"""The longest grace when the server has died: nobody waits for the program's last words."""
REAPED_AT_ONCE = 20
"""A family may die and be born as fast as it is collected; there is more to do than to collect it."""
PASSES = 4
"""Looks at the process table for each signal: a child may have a lower number than its parent."""

FIRST_HANDED = 100
"""The program finds what it is handed under descriptors from this number on."""

Order = tuple[str, list[str], dict[str, str], str, float, list[bytes]]
"""The program's file, its arguments, environment and directory, the seconds from TERM to KILL, and what it
is handed."""


def prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


class Keeper:
    def __init__(self, control: int) -> None:
        self.control = control
        self.child = 0
        self.wakeups, self.waker = os.pipe()
        os.set_blocking(self.waker, False)
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, note)

    def tell(self, *words: object) -> None:
        try:
            os.write(self.control, (" ".join(map(str, words)) + "\n").encode())
        except OSError:
            return  # the server has died; what remains to be done does not need it

    def keep(self, order: Order) -> None:
        *_, grace, _ = order
        self.child = launch(order, self.tell)
        if not self.child:
            return
        self.tell("started", self.child, ProcessTableEntry(self.child).started, os.getpid())
        release_streams()
        orphaned = self.wait_for_the_end()
        self.end(min(grace, ORPHANED_GRACE) if orphaned else grace)

    def wait_for_the_end(self) -> bool:
        """Return when the tree must end, or has; whether that is because the server has died."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.wakeups, select.POLLIN)
        while True:
            events = dict(poll.poll())
            if self.control in events:
                return bool(events[self.control] & select.POLLHUP)
            if not set(os.read(self.wakeups, 512)) <= {signal.SIGCHLD}:
                return False
            if not self.reap():
                return False

    def end(self, grace: float) -> None:
        left = self.reap()
        if left:
            signal_all(signal.SIGTERM)
            left = self.outlasted(grace)
        deadline = time.monotonic() + KILL_SECONDS
        while left and time.monotonic() < deadline:
            signal_all(signal.SIGKILL)
            left = self.outlasted(0.02)
        survivors = [each for each in descendants() if each.lives] if left else []
        self.tell("ended", cpu_us(), *(f"{each.pid}:{each.started}" for each in survivors))

    def outlasted(self, seconds: float) -> bool:
        """Whether somebody is left after so long; returns as soon as nobody is."""
        poll = select.poll()
        poll.register(self.wakeups, select.POLLIN)
        deadline = time.monotonic() + seconds
        while self.reap():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return True
            if poll.poll(remaining * 1000):
                os.read(self.wakeups, 512)
        return False

    def reap(self) -> bool:
        """Collect whoever has died; whether anybody is left."""
        for _ in range(REAPED_AT_ONCE):
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.child:
                self.child = 0  # its number may now be given to another
                self.tell("exited", os.waitstatus_to_exitcode(status))
        self.come_back()
        return True

    def come_back(self) -> None:
        """Many deaths may be one signal: see to it that the rest is collected without another."""
        try:
            os.write(self.waker, bytes([signal.SIGCHLD]))
        except BlockingIOError:
            return  # enough wakes us already


def note(number: int, frame: object) -> None:
    """A signal needs a handler to be written to the wakeup file."""


def launch(order: Order, tell: Callable[..., None]) -> int:
    """Start the program in a session of its own; 0 if it cannot be started, and the server was told why."""
    program, argv, environment, directory, _, handed = order
    keeper = os.getpid()
    report, problem = os.pipe()
    child = os.fork()
    if child == 0:
        step = "directory"
        try:
            os.setsid()
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != keeper:
                os._exit(1)
            for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(ignored_by_python, signal.SIG_DFL)
            os.chdir(directory)
            step = "program"
            for place, content in enumerate(handed):
                hand(content, FIRST_HANDED + place)
            os.execve(program, argv, environment)  # noqa: S606 (there is no shell: that is the point)
        except OSError as error:
            os.write(problem, f"{step} {error.errno}".encode())
        except ValueError:  # a NUL, or what no file system can spell
            os.write(problem, f"{step} {errno.EINVAL}".encode())
        finally:
            os._exit(127)
    os.close(problem)
    if reason := os.read(report, 64):
        os.waitpid(child, 0)
        tell("failed", reason.decode())
        return 0
    os.close(report)
    return child


def hand(content: bytes, descriptor: int) -> None:
    """Give the program a file that is nowhere on disk, open for reading from its beginning."""
    file = os.memfd_create("handed")
    while content:
        content = content[os.write(file, content) :]
    os.lseek(file, 0, os.SEEK_SET)
    os.dup2(file, descriptor)


def release_streams() -> None:
    """Let go of the program's streams, so that they end when the program's own copies do."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)


class ProcessTableEntry:
    """A process as the process table showed it just now; OSError if it has gone."""

    def __init__(self, pid: int) -> None:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (pathlib costs 14 ms to import)
            fields = file.read().rpartition(b")")[2].split()
        self.pid = pid
        self.lives = fields[0] not in (b"Z", b"X")
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.started = int(fields[19])  # in clock ticks since the machine's own start


def descendants() -> Iterator[ProcessTableEntry]:
    """Everybody below the keeper, parents before their children."""
    reached = {os.getpid()}
    for _ in range(PASSES):
        before = len(reached)
        for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):  # noqa: PTH208
            if pid in reached:
                continue
            try:
                process = ProcessTableEntry(pid)
            except OSError:
                continue  # it died while we looked
            if process.parent in reached:
                reached.add(pid)
                yield process
        if len(reached) == before:
            return


def signal_all(number: int) -> None:
    """Signal each process group as soon as one of its members is seen.

    A signal for a group reaches all of it at one instant, so a member cannot fork itself out of the way. The
    program began a session of its own, so no group has members that are not below the keeper.
    """
    groups = set[int]()
    for process in descendants():
        if process.group not in groups:
            groups.add(process.group)
            try:
                os.killpg(process.group, number)
            except OSError:
                continue  # gone already, or under another user: then it is told as a survivor


def receive(control: int) -> Order | None:
    """The server's one order, or None when the server died before it gave it."""
    data = b""
    size = 8
    while len(data) < size:
        chunk = os.read(control, 1 << 16)
        if not chunk:
            return None
        data += chunk
        if size == 8 and len(data) >= 8:
            size += int.from_bytes(data[:8], "little")
    return marshal.loads(data[8:])  # noqa: S302 (written by our own parent, on a socket only we two hold)


def cpu_us() -> int:
    """Of the keeper and everybody it has collected; a sandbox that is killed takes its dead along untold."""
    import resource  # not on Windows, where this file is imported for its numbers alone

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return round(sum(each.ru_utime + each.ru_stime for each in used) * 1_000_000)


def keep(control: int) -> None:
    """The whole life of a keeper, in a process of its own whose streams are the program's."""
    os.setsid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    if order := receive(control):
        Keeper(control).keep(order)
