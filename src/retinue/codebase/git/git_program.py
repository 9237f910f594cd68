"""Runs git: an absolute program, an environment of our own, and limits of time, output and memory.

The only place that starts git. It runs on a `GitView`, so it reads no configuration but ours. Its whole
process group is killed at a limit, at a deadline and at a cancel.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from retinue.codebase.git.git_view import GitView
from retinue.core import (
    DeadlineExceeded,
    LimitExceeded,
    ProgramFailed,
    Stop,
    Unavailable,
    clip,
    look_up_program,
)

MEMORY_BYTES = 2 << 30
"""Memory of one git process, besides the files that it maps. Linux alone can enforce it."""
CHUNK_BYTES = 1 << 16
ERROR_BYTES = 4_096
"""How much of git's error messages is kept."""
END_SECONDS = 2.0
"""How long a killed git may take to end."""

FIXED_VARIABLES: Mapping[str, str] = {
    # no configuration of the system and of the user
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    # no network: old versions of git know only the list of allowed protocols
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    # no questions, no replaced objects, no writes that nobody asked for
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": ":",
    "GIT_PAGER": "cat",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}


@dataclass(frozen=True, slots=True)
class Git:
    """An installed git."""

    program: Path
    seconds: float = 10.0
    """Time limit of one call."""
    max_bytes: int = 64 << 20
    """Limit of the output of one call."""

    def run(
        self,
        view: GitView,
        *arguments: str,
        stop: Stop,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
    ) -> bytes:
        """Run git and return its output. Raises what `stream` raises."""
        return b"".join(self.stream(view, *arguments, stop=stop, stdin=stdin, variables=variables))

    def stream(
        self,
        view: GitView,
        *arguments: str,
        stop: Stop,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
    ) -> Generator[bytes]:
        """Run git and yield its output in chunks. Kills git if the caller stops early.

        `variables` are those of `GitView.variables`, by default of the view alone. Raises ProgramFailed if
        git fails, LimitExceeded, DeadlineExceeded, and Canceled.
        """
        stop.check()
        process = self._start(view, arguments, {**(variables or view.variables())}, stdin)
        output: queue.Queue[bytes | None] = queue.Queue(16)
        errors: list[bytes] = []
        ended = threading.Event()
        own = Stop(self.seconds)

        def kill() -> None:
            _kill_group(process)
            ended.set()

        with ExitStack() as scope:
            scope.callback(_reap, process)
            scope.callback(kill)
            _in_thread(_feed, process.stdin, stdin)
            complaining = _in_thread(_collect, process.stderr, errors)
            _in_thread(_forward, process.stdout, output, ended)
            scope.enter_context(stop.watch(kill))
            scope.enter_context(own.watch(kill))
            size = 0
            while (chunk := _next_chunk(output, ended)) is not None:
                size += len(chunk)
                if size > self.max_bytes:
                    raise LimitExceeded("bytes of git's output", size, self.max_bytes)
                yield chunk
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS if ended.is_set() else self.seconds + END_SECONDS)
            complaining.join(END_SECONDS)
            stop.check()
            if own.reached:
                raise DeadlineExceeded(f"git {arguments[0]} took longer than {self.seconds:g} seconds")
        if process.returncode:
            reason = clip(b"".join(errors).decode("utf-8", "replace").strip(), 300)
            raise ProgramFailed(f"git {arguments[0]} failed: {reason}", exit_code=process.returncode)

    def _start(
        self, view: GitView, arguments: Iterable[str], variables: Mapping[str, str], stdin: bytes
    ) -> subprocess.Popen[bytes]:
        environment = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
        environment |= FIXED_VARIABLES
        # Old versions of git ignore GIT_CONFIG_GLOBAL, so they get a home directory without a `.gitconfig`.
        home = str(view.folder)
        environment |= {"HOME": home, "XDG_CONFIG_HOME": home, "PATH": str(self.program.parent), **variables}
        try:
            process = subprocess.Popen(
                [str(self.program), "--no-pager", *arguments],
                cwd=view.folder,
                env=environment,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(f"git cannot start: {error.strerror}", program="git") from None
        if sys.platform == "linux":
            import resource  # exists only there

            with contextlib.suppress(OSError, ValueError):  # it has ended already, or its limit is lower
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        return process


def find_git(outside: Iterable[Path], *, seconds: float = 10.0, search_path: str | None = None) -> Git:
    """Return the git on PATH, unless it is in one of the folders `outside`. Raises Unavailable."""
    found = look_up_program("git", search_path, outside)
    if found.path is None:
        hint = "; ".join(found.refused) or "install git"
        raise Unavailable("git is not installed", hint=hint, program="git")
    return Git(found.path, seconds)


def _next_chunk(output: queue.Queue[bytes | None], ended: threading.Event) -> bytes | None:
    """Return the next chunk. None at the end, or if git was killed and a process still holds the pipe."""
    while True:
        try:
            return output.get(timeout=0.5)
        except queue.Empty:
            if ended.is_set():
                return None


def _in_thread(work: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


def _feed(pipe: IO[bytes] | None, data: bytes) -> None:
    if pipe is not None:
        with contextlib.suppress(OSError), pipe:
            pipe.write(data)


def _collect(pipe: IO[bytes], kept: list[bytes]) -> None:
    """Keep the first error messages and read the others, so that git does not wait for a reader."""
    with contextlib.suppress(OSError, ValueError), pipe:
        kept.append(pipe.read(ERROR_BYTES))
        while pipe.read(CHUNK_BYTES):
            pass


def _forward(pipe: IO[bytes], output: queue.Queue[bytes | None], ended: threading.Event) -> None:
    """Pass the output on, at most as fast as it is taken.

    Git writes a few kilobytes at a time. Handing over each of these pieces would cost more than the rest.
    """
    with contextlib.suppress(OSError, ValueError), pipe:
        while chunk := pipe.read(CHUNK_BYTES):
            while not ended.is_set():
                with contextlib.suppress(queue.Full):
                    output.put(chunk, timeout=0.5)
                    break
            else:
                return
    with contextlib.suppress(queue.Full):
        output.put(None, timeout=END_SECONDS)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
    elif process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _reap(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)
