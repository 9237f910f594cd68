"""The two helper processes behind every program on Linux: the fork server and the reaper.

The *fork server* is one small process per Retinue server. Starting Python for every program would cost more
CPU time than most programs need, and a process that is already running forks in a fraction of that. It
receives the reaper's end of a socket and the program's three streams, and forks a reaper. It ends when the
Retinue server closes its socket or dies, after the last reaper has ended. Reapers survive its death.

A *reaper* is a small process between the Retinue server and one program. It ends everything that the program
started. It reads one order from its socket, starts the program, reports what happens to it and waits for
end-of-file: the Retinue server closes the socket to end the program, and the kernel closes it if the server
dies. A daemon cannot escape, because the reaper is a "child subreaper": any descendant that loses its parent
becomes the reaper's child, so "no child processes" (ECHILD) means that nothing is left. It also marks the
program with a resource limit, by which `caller.py` knows the processes of runs.

`reaped_process.py` is the server's side and starts this file as a script. It imports nothing of Retinue and
knows nothing of output, time limits or runs.
"""

from __future__ import annotations

import array
import errno
import marshal
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator

if sys.platform != "win32":  # this module is imported there for its constants
    import resource

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
REAPER_VARIABLE = "RETINUE_REAPER"
"""Set for the fork server and its reapers, so that a process can find a reaper among its ancestors."""
RLIMIT_LOCKS = 10
"""A limit that Linux has ignored since version 2.4.25, but still hands on to every child."""
RUN_MARK = 0x52455449
"""The value of this limit for all processes of runs. Without privileges, a hard limit cannot be raised."""
DESCRIPTORS_PER_REAPER = 4
"""The reaper's socket, and the program's stdin, stdout and stderr."""
KILL_SECONDS = 5.0
"""How long the reaper repeats SIGKILL before it reports the rest as survivors."""
ORPHANED_GRACE = 1.0
"""The longest time from SIGTERM to SIGKILL after the server has died."""
MAX_REAPED_AT_ONCE = 20
"""Processes that are collected before the reaper looks at its socket again; a tree may fork without end."""
PROCESS_TABLE_PASSES = 4
"""Reads of the process table for each signal; a child may have a lower process number than its parent."""

Order = tuple[str, list[str], dict[str, str], str, float, list[tuple[int, bytes]]]
"""The program's file, arguments, environment and directory, the seconds from SIGTERM to SIGKILL, and its
secret files, each with the descriptor under which the program reads it."""


def serve_as_fork_server(descriptor: int) -> None:
    """Fork a reaper for each message on the socket, until the server closes it."""
    signal.signal(signal.SIGCHLD, collect_reapers)
    server = socket.socket(fileno=descriptor)
    while (descriptors := receive_descriptors(server)) is not None:
        if len(descriptors) == DESCRIPTORS_PER_REAPER:
            fork_reaper(server, descriptors)
        for each in descriptors:
            os.close(each)  # otherwise the program's streams would stay open after the program
    server.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        os._exit(0)


def collect_reapers(number: int, frame: object) -> None:
    """Handle SIGCHLD: collect the reapers that have ended. `recvmsg` resumes after the signal."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return


def receive_descriptors(server: socket.socket) -> list[int] | None:
    """Return the file descriptors of the next message, or None after the last one."""
    size = array.array("i").itemsize
    space = socket.CMSG_SPACE(DESCRIPTORS_PER_REAPER * size)
    message, ancillary, _, _ = server.recvmsg(1, space, socket.MSG_CMSG_CLOEXEC)
    descriptors = [each for _, _, data in ancillary for each in memoryview(data).cast("i")]
    return descriptors if message else None


def fork_reaper(server: socket.socket, descriptors: list[int]) -> None:
    """Fork a reaper. If that fails, its socket closes, which the server reports as an error."""
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
        serve_as_reaper(control)
    except BaseException as error:  # whatever happens, this process must not continue as a fork server
        sys.excepthook(type(error), error, error.__traceback__)  # stderr is the program's, so it is logged
    finally:
        os._exit(0)


def serve_as_reaper(control: int) -> None:
    """Run a reaper from its order to its end, in a process whose streams are the program's."""
    os.setsid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    if order := receive_order(control):
        Reaper(control).run(order)


def receive_order(control: int) -> Order | None:
    """Read the order, which follows its length; None if the server died before it sent all of it."""
    data = b""
    size = 8
    while len(data) < size:
        chunk = os.read(control, 1 << 16)
        if not chunk:
            return None
        data += chunk
        if size == 8 and len(data) >= 8:
            size += int.from_bytes(data[:8], "little")
    return marshal.loads(data[8:])  # noqa: S302 (only our own server holds the other end of the socket)


class Reaper:
    """Starts one program and ends its whole process tree.

    Reports over the socket, one line each: `started PID TICKS REAPER_PID` or `failed STEP ERRNO`, then
    `exited CODE`, then `ended CPU_MICROSECONDS [PID:TICKS...]` with the processes that could not be killed.
    """

    def __init__(self, control: int) -> None:
        self.control = control
        self.child = 0
        """The program's process number until it has been collected; then 0."""
        self.wakeups, self.waker = os.pipe()
        os.set_blocking(self.waker, False)
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, ignore_signal)

    def run(self, order: Order) -> None:
        """Start the program, wait for its end, and end its tree."""
        *_, grace, _ = order
        self.child = start_program(order, self.report)
        if not self.child:
            return
        self.report("started", self.child, ProcessTableEntry(self.child).started, os.getpid())
        release_streams()
        server_died = self.wait_for_end()
        self.end_tree(min(grace, ORPHANED_GRACE) if server_died else grace)

    def report(self, *words: object) -> None:
        """Send one line to the server."""
        try:
            os.write(self.control, (" ".join(map(str, words)) + "\n").encode())
        except OSError:
            return  # the server has died; ending the tree does not need it

    def wait_for_end(self) -> bool:
        """Wait until the tree has ended or must end. Returns whether the server has died."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.wakeups, select.POLLIN)
        while True:
            events = dict(poll.poll())
            if self.control in events:
                return bool(events[self.control] & select.POLLHUP)
            if not set(os.read(self.wakeups, 512)) <= {signal.SIGCHLD}:
                return False
            if not self.collect_ended():
                return False

    def end_tree(self, grace: float) -> None:
        """Send SIGTERM, wait for `grace` seconds, then repeat SIGKILL. Report the processes that are left."""
        any_left = self.collect_ended()
        if any_left:
            signal_tree(signal.SIGTERM)
            any_left = self.any_left_after(grace)
        deadline = time.monotonic() + KILL_SECONDS
        while any_left and time.monotonic() < deadline:
            signal_tree(signal.SIGKILL)
            any_left = self.any_left_after(0.02)
        survivors = [each for each in descendants() if each.is_alive] if any_left else []
        self.report("ended", cpu_microseconds(), *(f"{each.pid}:{each.started}" for each in survivors))

    def any_left_after(self, seconds: float) -> bool:
        """Return False as soon as no descendant is left, or True after `seconds`."""
        poll = select.poll()
        poll.register(self.wakeups, select.POLLIN)
        deadline = time.monotonic() + seconds
        while self.collect_ended():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return True
            if poll.poll(remaining * 1000):
                os.read(self.wakeups, 512)
        return False

    def collect_ended(self) -> bool:
        """Collect descendants that have ended. Returns whether any are left."""
        for _ in range(MAX_REAPED_AT_ONCE):
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.child:
                self.child = 0  # the kernel may reuse the number from now on
                self.report("exited", os.waitstatus_to_exitcode(status))
        self.wake_again()
        return True

    def wake_again(self) -> None:
        """Write a wakeup for ended processes that are left, because several may cause only one signal."""
        try:
            os.write(self.waker, bytes([signal.SIGCHLD]))
        except BlockingIOError:
            return  # the pipe is full of wakeups already


def ignore_signal(number: int, frame: object) -> None:
    """Do nothing. Python writes a signal to the wakeup pipe only if it has a handler."""


def start_program(order: Order, report: Callable[..., None]) -> int:
    """Start the program in its own session. Returns its process number, or 0 after reporting the failure."""
    program, argv, environment, directory, _, secret_files = order
    reaper = os.getpid()
    failure, write_failure = os.pipe()
    child = os.fork()
    if child == 0:
        step = "directory"
        try:
            os.setsid()
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != reaper:
                os._exit(1)
            for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(ignored_by_python, signal.SIG_DFL)
            os.chdir(directory)
            step = "program"
            mark_process()
            for descriptor, content in secret_files:
                open_secret_file(content, descriptor)
            os.execve(program, argv, environment)  # noqa: S606 (started without a shell on purpose)
        except OSError as error:
            os.write(write_failure, f"{step} {error.errno}".encode())
        except ValueError:  # a NUL character, or one that the file system cannot encode
            os.write(write_failure, f"{step} {errno.EINVAL}".encode())
        finally:
            os._exit(127)
    os.close(write_failure)
    if reason := os.read(failure, 64):
        os.waitpid(child, 0)
        report("failed", reason.decode())
        return 0
    os.close(failure)
    return child


def mark_process() -> None:
    """Mark this process, and with it everything it will start, as part of a run."""
    _, hard = resource.getrlimit(RLIMIT_LOCKS)
    if hard == resource.RLIM_INFINITY or hard > RUN_MARK:
        resource.setrlimit(RLIMIT_LOCKS, (RUN_MARK, RUN_MARK))


def open_secret_file(content: bytes, descriptor: int) -> None:
    """Open a file that exists only in memory, for reading, as this descriptor."""
    file = os.memfd_create("secret")
    while content:
        content = content[os.write(file, content) :]
    os.lseek(file, 0, os.SEEK_SET)
    os.dup2(file, descriptor)


def release_streams() -> None:
    """Close the reaper's copies of the program's streams, so that they end with the program."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)


def signal_tree(number: int) -> None:
    """Signal the process group of each descendant, as soon as one member is seen.

    The signal reaches the whole group at once, so no member can fork before it arrives. The program began
    its own session, so every group contains only descendants.
    """
    groups = set[int]()
    for process in descendants():
        if process.group not in groups:
            groups.add(process.group)
            try:
                os.killpg(process.group, number)
            except OSError:
                continue  # already gone, or owned by another user and then reported as a survivor


def descendants() -> Iterator[ProcessTableEntry]:
    """Yield all processes below the reaper, parents before their children."""
    reached = {os.getpid()}
    for _ in range(PROCESS_TABLE_PASSES):
        before = len(reached)
        for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):  # noqa: PTH208
            if pid in reached:
                continue
            try:
                process = ProcessTableEntry(pid)
            except OSError:
                continue  # it ended in the meantime
            if process.parent in reached:
                reached.add(pid)
                yield process
        if len(reached) == before:
            return


class ProcessTableEntry:
    """One process as /proc shows it. Raises `OSError` if the process does not exist."""

    def __init__(self, pid: int) -> None:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (pathlib is not needed for this)
            fields = file.read().rpartition(b")")[2].split()
        self.pid = pid
        self.is_alive = fields[0] not in (b"Z", b"X")
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.started = int(fields[19])
        """Clock ticks from the start of the machine to the start of the process."""


def cpu_microseconds() -> int:
    """Return the CPU time of the reaper and of all processes that it has collected."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return round(sum(each.ru_utime + each.ru_stime for each in used) * 1_000_000)


def prctl(option: int, value: int) -> None:
    import ctypes  # imported here because the server reads this module's constants and needs no ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    serve_as_fork_server(int(sys.argv[1]))
