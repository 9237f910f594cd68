"""Runs one program for an executor: starts it, reads its output, enforces its deadline and cleans up.

Every executor that starts a program uses `ProgramRun`:

    run = ProgramRun(program, transcript, seconds=ctx.seconds, on_start=ctx.started)
    async with run.start(stdin=prompt):
        await run.wait()
    return Outcome(transcript.answer.text, exit_code=run.exit_code, error=run.error, usage=run.usage, ...)

Inside the block the executor talks to the program. After the block the whole process tree has ended, all
output was delivered, and the fields say how the program ended. Knows nothing of agents or sandboxes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from retinue.core import (
    DeadlineExceeded,
    InternalError,
    LimitExceeded,
    ModelFailed,
    OnProcessStart,
    ProcessIdentity,
    ProgramFailed,
    RetinueError,
    StreamName,
)
from retinue.executors.process.process_group import ProcessGroup, ignore_start, run_uninterrupted
from retinue.executors.process.program import Program

FLUSH_SECONDS = 1.0
"""How long `output.finish` may take after the program has ended."""

CleanUp = Callable[[Program], Awaitable[None]]
"""Removes what a program that was ended may leave behind, such as its container."""


class OutputReader(Protocol):
    """Receives the output of a program. `Transcript` is one."""

    @property
    def bytes(self) -> int:
        """Bytes received so far."""
        ...

    async def take(self, stream: StreamName, chunk: bytes) -> None:
        """Receive a chunk. `LimitExceeded` ends the program."""

    async def finish(self) -> None:
        """Handle the text after the last newline. May raise `LimitExceeded` too."""


class ProgramRun:
    """One run of a program, from its start to the end of its last process."""

    def __init__(
        self,
        program: Program,
        output: OutputReader,
        *,
        name: str | None = None,
        seconds: float | None = None,
        on_start: OnProcessStart = ignore_start,
        clean_up: CleanUp | None = None,
    ) -> None:
        """Prepare a run; `start` begins it.

        `name` is the program's name in error messages. `seconds` is the deadline. `clean_up` removes what a
        program leaves behind if it did not exit by itself, such as its container.
        """
        self.exit_code: int | None = None
        """None if the program did not exit by itself."""
        self.error: RetinueError | None = None
        """Why the run ended early: its deadline, a limit, a lost program or a failed dialogue with it. A
        failing exit code is not an error here, because its meaning depends on the program."""
        self.survivors: tuple[ProcessIdentity, ...] = ()
        """Processes that could not be ended."""
        self._program = program
        self._output = output
        self._name = name or program.name
        self._seconds = seconds
        self._on_start = on_start
        self._clean_up = clean_up
        self._group: ProcessGroup | None = None
        self._duration_ms = 0

    @asynccontextmanager
    async def start(self, stdin: bytes | None) -> AsyncGenerator[ProcessGroup]:
        """Start the program, and end it with everything it started at the end of the block.

        Writes `stdin` to the program and closes its stdin; if it is None, the caller writes to `group.stdin`.

        Raises if the program cannot start. The errors that `error` describes end the block and are
        stored there. All other errors pass through.
        """
        began = time.monotonic()
        deadline = asyncio.timeout(self._seconds)
        try:
            async with (
                deadline,
                ProcessGroup.start(
                    self._program, stdin=stdin, on_output=self._output.take, on_start=self._on_start
                ) as self._group,
            ):
                yield self._group
        except TimeoutError:
            if not deadline.expired():
                raise
            self.error = DeadlineExceeded(
                f"{self._name} had not ended after {self._seconds:g} seconds", seconds=self._seconds
            )
        except (LimitExceeded, ProgramFailed, ModelFailed) as error:
            self.error = error
        finally:
            if self._group is not None:
                self.survivors = tuple(self._group.survivors)
            await run_uninterrupted(self._finish())
            self._duration_ms = round((time.monotonic() - began) * 1000)

    async def wait(self) -> int:
        """Wait until the program exits, and return its exit code. A cancelled caller may wait again."""
        if self._group is None:
            raise InternalError("wait() was called before start()")
        self.exit_code = await self._group.wait()
        return self.exit_code

    @property
    def usage(self) -> dict[str, int]:
        """Duration and output size, as an `Outcome` reports them."""
        return {"duration_ms": self._duration_ms, "output_bytes": self._output.bytes}

    async def _finish(self) -> None:
        """Clean up after a program that was ended, and deliver the rest of its output."""
        if self._clean_up is not None and self.exit_code is None:
            await self._clean_up(self._program)
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._output.finish()
        except TimeoutError:
            pass  # the listener is too slow; the run must not wait for it
        except LimitExceeded as error:
            self.error = self.error or error
