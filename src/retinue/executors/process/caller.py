"""Tells whether a process belongs to a run, by what the operating system knows about it.

A program can drop the variables that Retinue gives it, start a new session, or leave its parents. It cannot
undo these two things, which decide on Linux:

- The mark: the reaper lowers a hard resource limit that the kernel hands on to every child (`reaper.py`).
  Only a privileged process can raise it again.
- Its ancestors: a process that loses its parent becomes a child of the reaper, so that the reaper stays among
  its ancestors. The environment with which an ancestor was started cannot be changed by its descendants.

Other systems have neither. There a process belongs to a run if an ancestor was started with a run's
variables, is a program that an active run started, or is in its session. In doubt the answer
is yes: a process counts as part of a run if its ancestors cannot be read while a run is active, or if the
oldest of them lost its parent and is younger than an active run. Applications of macOS have no parent either
and are exempt.

Not recognised: a process that another program starts at the request of a run, such as a job of `cron` or
`systemd-run`, and a process of root that raised the limit and ended the reaper. Knows nothing of the store.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from retinue.core import Run
from retinue.executors.process.environment import RUN_ID_VARIABLE
from retinue.executors.process.identity import is_alive
from retinue.executors.process.reaper import REAPER_VARIABLE

if TYPE_CHECKING:
    import psutil

ActiveRuns = Callable[[], Sequence[Run]]
"""Reads the active runs. Not called on Linux."""
SocketAddress = tuple[str, int]

MARKS = tuple(f"{name}=".encode() for name in (RUN_ID_VARIABLE, "RETINUE_CHILD_TOKEN", REAPER_VARIABLE))
WALKS = 5
"""How often to begin again because a process ended while its ancestors were read."""
CLOCK_SLACK_S = 2.0
"""How far the start of a process and the time of a run may be off; some systems round to seconds."""
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, NETLINK_HEADER = 4, 20, 1, 16
LOCAL_PEERPID = 2
"""The socket option of macOS for the process at the other end."""

started_programs: dict[int, str] = {}
"""The run of each program that this process has started and not yet ended. By the number of its reaper, or of
the program itself if it has none."""


def belongs_to_run(pid: int, active_runs: ActiveRuns) -> bool:
    """Whether a run started this process, directly or not."""
    if sys.platform == "linux":
        return _belongs_on_linux(pid)
    return belongs_by_process_table(pid, active_runs())


def run_of_process(pid: int) -> str | None:
    """The id of the run of this server that the process belongs to; None if it belongs to none."""
    found = _ancestors_on_linux(pid) if sys.platform == "linux" else ancestors_by_process_table(pid)
    return next((started_programs[each] for each in found or () if each in started_programs), None)


def connection_is_from_run(client: SocketAddress, server: SocketAddress, active_runs: ActiveRuns) -> bool:
    """Whether a process of a run holds the client's end of this TCP connection. Blocks for milliseconds."""
    if sys.platform == "linux":
        return _connection_on_linux(client, server)
    return connection_by_process_table(client, active_runs())


def peer_process(connection: socket.socket) -> int | None:
    """The number of the process at the other end of a Unix socket; None if the system does not tell."""
    with suppress(OSError):
        if sys.platform == "linux":
            size = struct.calcsize("3i")
            return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[0]
        if sys.platform == "darwin":
            return struct.unpack("i", connection.getsockopt(0, LOCAL_PEERPID, 4))[0]
    return None


# Linux


def _belongs_on_linux(pid: int) -> bool:
    ancestors = _ancestors_on_linux(pid)
    return ancestors is None or any(map(_is_marked, ancestors))


def _ancestors_on_linux(pid: int) -> list[int] | None:
    """The process and its ancestors, as far as this user can see them; None if they change too quickly."""
    for _ in range(WALKS):
        found, current = list[int](), pid
        while current > 0 and current not in found:
            found.append(current)
            parent = _parent_on_linux(current)
            if parent is None:
                break
            current = parent
        if current <= 0 or _is_hidden(current):
            return found
    return None


def _parent_on_linux(pid: int) -> int | None:
    """The parent; None if the process has ended or is hidden."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return int(stat.rpartition(b")")[2].split()[1])


def _is_hidden(pid: int) -> bool:
    """Whether another user's process exists that /proc does not show (mount option `hidepid`)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _is_marked(pid: int) -> bool:
    """Whether the process has the limit of runs' processes, or was started with their variables."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/limits").read_bytes().splitlines():
            if line.startswith(b"Max file locks") and line.split()[4] != b"unlimited":
                return True
    with suppress(OSError):
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return any(variable.startswith(MARKS) for variable in variables)
    return False


def _connection_on_linux(client: SocketAddress, server: SocketAddress) -> bool:
    found = ask_kernel_for_socket(client, server)
    if found is None:
        if not _is_own_address(client[0]):
            return False  # another machine
        found = find_socket_in_tables(client, server)
    if found is None:  # the client has closed it
        return True
    return _is_held_by_run(*found)


@lru_cache(maxsize=256)
def _is_held_by_run(inode: str, owner: int) -> bool:
    """Whether a process of a run has this socket open. Cached, because a connection has many requests.

    A program can hide a socket from the lists of open files, in a message or in a thread's own table. While
    runs are active, a socket of this user that nobody else has open therefore counts as theirs.
    """
    name, unreadable = f"socket:[{inode}]", False
    suspects = _run_processes_on_linux()
    for pid in suspects:
        try:
            if _holds(pid, name):
                return True
        except PermissionError:
            unreadable = True
    may_be_hidden = unreadable or (bool(suspects) and owner == os.geteuid())
    return may_be_hidden and not _is_held_by_others(name, suspects)


def _run_processes_on_linux() -> set[int]:
    """All processes of runs, from one reading of the process table."""
    children: dict[int, list[int]] = {}
    for pid in _all_processes():
        children.setdefault(_parent_on_linux(pid) or 0, []).append(pid)
    pending = [pid for pids in children.values() for pid in pids if _is_marked(pid)]
    found = set[int]()
    while pending:
        pid = pending.pop()
        if pid not in found:
            found.add(pid)
            pending += children.get(pid, ())
    return found


def _is_held_by_others(name: str, suspects: Iterable[int]) -> bool:
    """Whether a process outside of runs has this file open, or may have: sshd does not show its files."""
    may_be = False
    for pid in set(_all_processes()) - set(suspects):
        try:
            if _holds(pid, name):
                return True
        except PermissionError:
            may_be = may_be or _is_ssh_session(pid)
    return may_be


def _is_ssh_session(pid: int) -> bool:
    """Whether the process forwards ports for this user's ssh connection."""
    with suppress(OSError):
        folder = Path(f"/proc/{pid}")
        fields = (folder / "status").read_bytes().splitlines()
        owners = next((line.split()[1] for line in fields if line.startswith(b"Uid:")), b"")
        return (folder / "comm").read_bytes().startswith(b"sshd") and owners == b"%d" % os.geteuid()
    return False


def _all_processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 (pathlib is slower)


def _holds(pid: int, name: str) -> bool:
    """Whether the process has this file open. Raises `PermissionError` if it may not be known."""
    folder = f"/proc/{pid}/fd"
    try:
        descriptors = os.listdir(folder)  # noqa: PTH208
    except PermissionError:
        raise
    except OSError:
        return False
    for descriptor in descriptors:
        with suppress(FileNotFoundError, ProcessLookupError):
            if os.readlink(f"{folder}/{descriptor}") == name:  # noqa: PTH115
                return True
    return False


def ask_kernel_for_socket(client: SocketAddress, server: SocketAddress) -> tuple[str, int] | None:
    """The inode and the owner of the client's socket; None if it does not exist or the kernel does not tell.

    Asks for this one connection (sock_diag(7)). The tables of /proc grow with the connections of all clients.
    """
    family, ends = socket.AF_INET, list[bytes]()
    for host, _ in (client, server):
        address = host.partition("%")[0].removeprefix("::ffff:")
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        ends.append(socket.inet_pton(family, address).ljust(16, b"\0"))
    ports = struct.pack("!HH", client[1], server[1])
    anyone = b"\xff" * 8
    wanted = struct.pack("=BBxxI", family, socket.IPPROTO_TCP, 0xFFFFFFFF) + ports + b"".join(ends)
    question = wanted + bytes(4) + anyone
    header = struct.pack("=IHHII", NETLINK_HEADER + len(question), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
            kernel.settimeout(1)
            kernel.send(header + question)
            answer = kernel.recv(1 << 13)
    except OSError:
        return None
    if struct.unpack_from("=H", answer, 4)[0] != SOCK_DIAG_BY_FAMILY:
        return None  # an error: mostly that there is no such connection
    # A socket that listens at the client's address is the answer if there is no connection.
    is_connection = answer[NETLINK_HEADER + 4 : NETLINK_HEADER + 8] == ports
    owner, inode = struct.unpack_from("=II", answer, NETLINK_HEADER + 64)
    return (str(inode), owner) if is_connection and inode else None


def find_socket_in_tables(client: SocketAddress, server: SocketAddress) -> tuple[str, int] | None:
    """The inode and the owner of the client's socket, from the tables of all connections."""
    wanted = {
        (f"{local}:{client[1]:04X}", f"{remote}:{server[1]:04X}")
        for local, remote in zip(_spellings(client[0]), _spellings(server[0]), strict=False)
    }
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError), open(table, encoding="ascii") as rows:  # noqa: PTH123
            for row in rows:
                fields = row.split()
                if (fields[1], fields[2]) in wanted and fields[9] != "0":
                    return fields[9], int(fields[7])
    return None


def _is_own_address(host: str) -> bool:
    """Whether an address is one of this machine's, of any of its networks."""
    address = host.removeprefix("::ffff:")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((address, 0))
        return True
    return False


def _spellings(host: str) -> Iterator[str]:
    """An address as /proc/net/tcp and tcp6 write it: in words of this machine's byte order."""
    address = host.partition("%")[0]
    if ":" in address:
        packed = socket.inet_pton(socket.AF_INET6, address)
        mapped = packed[:12] == b"\0" * 10 + b"\xff\xff"
        yield _words(packed[12:]) if mapped else ""
        yield _words(packed)
    else:
        packed = socket.inet_pton(socket.AF_INET, address)
        yield _words(packed)
        yield _words(b"\0" * 10 + b"\xff\xff" + packed)


def _words(packed: bytes) -> str:
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))


# Other systems


def belongs_by_process_table(pid: int, runs: Sequence[Run]) -> bool:
    """Whether a process belongs to a run, by the process table alone."""
    import psutil  # takes 30 ms to import, and Linux does not need it

    try:
        chain = _ancestors(psutil.Process(pid))
    except psutil.Error:
        return bool(runs)
    programs = {run.process.pid for run in runs if run.process is not None and is_alive(run.process)}
    if any(each.pid in programs or _session(each.pid) in programs or _has_variables(each) for each in chain):
        return True
    begun = [run.timing.started_at for run in runs if run.timing.started_at is not None]
    return bool(begun) and _lost_its_parent_after(chain[-1], min(begun))


def connection_by_process_table(client: SocketAddress, runs: Sequence[Run]) -> bool:
    """Whether a process of a run holds this end of a connection, by the process table alone."""
    import psutil

    for process in psutil.process_iter():
        try:
            ours = any(
                connection.laddr and tuple(connection.laddr) == client
                for connection in process.net_connections("tcp")
            )
        except psutil.Error:
            continue  # another user's
        if ours and belongs_by_process_table(process.pid, runs):
            return True
    return False


def ancestors_by_process_table(pid: int) -> list[int]:
    """The process and its ancestors; empty if it has ended or they cannot be read."""
    import psutil

    try:
        return [each.pid for each in _ancestors(psutil.Process(pid))]
    except psutil.Error:
        return []


def _ancestors(process: psutil.Process) -> list[psutil.Process]:
    """The process and its ancestors below process 1."""
    return [process, *(parent for parent in process.parents() if parent.pid > 1)]


def _has_variables(process: psutil.Process) -> bool:
    import psutil

    try:
        return any(f"{name}=".encode() in MARKS for name in process.environ())
    except psutil.Error:
        return False


def _session(pid: int) -> int | None:
    if sys.platform == "win32":
        return None
    with suppress(OSError):
        return os.getsid(pid)
    return None


def _lost_its_parent_after(oldest: psutil.Process, instant: float) -> bool:
    """Whether the oldest ancestor began after an instant and has no parent, as a daemon."""
    import psutil

    try:
        parent = oldest.ppid()
        is_orphan = parent == 1 or not psutil.pid_exists(parent)
        is_application = ".app/Contents/MacOS/" in oldest.exe()
        return is_orphan and not is_application and oldest.create_time() > instant - CLOCK_SLACK_S
    except psutil.Error:
        return True
