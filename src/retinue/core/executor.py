"""What passes between the runtime and whatever performs a task. Knows nothing of how it is performed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from retinue.core.budget import UNMETERED, Spending
from retinue.core.errors import Canceled, DeadlineExceeded, RetinueError
from retinue.core.lenient_json import Json
from retinue.core.message import Message
from retinue.core.permission import Permit, deny_all

StreamName = Literal["stdout", "stderr", "event"]
"""What was said, what was said beside it, and what happened meanwhile."""
OutcomeStatus = Literal["success", "error", "timeout", "canceled"]


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, never to be confused with a later one that got the same number."""

    pid: int
    started: str
    """When it started, in a form that only equality may look at."""


@dataclass(frozen=True, slots=True)
class OutputLine:
    stream: StreamName
    text: str
    """Without its newline."""
    complete: bool = True
    """False where no newline follows: a piece of a line too long to hold, or the last words of a stream."""


Emit = Callable[[OutputLine], Awaitable[None]]
HideSecrets = Callable[[Iterable[str]], None]
OnProcessStart = Callable[[ProcessIdentity], Awaitable[None]]
AskParent = Callable[[str, float | None], Awaitable[Message]]
"""Puts a question to the run's parent and waits for the answer, for so many seconds; then it is closed."""


@dataclass(frozen=True, slots=True)
class Task:
    agent: str
    prompt: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """The session of an earlier run, with what it had used by then."""

    session_id: str
    cost_micros: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class RunContext:
    run_id: str
    cwd: Path
    """Where the work is done: an existing directory."""
    seconds: float | None
    """Wall time for the whole task; None for as long as it takes."""
    emit: Emit
    """Given every line of output as it comes; while it waits, the task waits."""
    started: OnProcessStart
    """Given the process that performs the task, before any of its output."""
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables through which the task can reach us again."""
    spending: Spending = UNMETERED
    """Asked before anything is spent."""
    ask: AskParent | None = None
    """None where there is nobody to ask."""
    resume: Resumed | None = None
    """The session to go on with; None to begin one."""
    hide: HideSecrets = lambda values: None
    """Given the secrets that the task gets to know, before it can tell them."""
    permit: Permit = deny_all
    """Asked before the task does what its agent is neither allowed nor denied."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task ended. What prevented it from starting is raised instead; so is its cancellation."""

    output: str
    """The answer of a task that succeeded, else the last lines it wrote."""
    cut: bool = False
    """Whether `output` lacks its beginning; the log has all of it."""
    value: Json = None
    """The answer in a shape of its own, where it has one; `output` says it in words."""
    result: Any = None
    """A typed result for whoever started the run in this process. It is not recorded."""
    exit_code: int | None = None
    """The program's own, negative for a signal; None when it did not end by itself."""
    error: RetinueError | None = None
    usage: Mapping[str, int] = field(default_factory=dict[str, int])
    """What was measured, by name: `duration_ms`, `output_bytes`, `steps`, `tokens`, `cost_micros`."""
    facts: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What else happened, by name: the effective `model`, the `session_id`, the `isolation`."""
    survivors: tuple[ProcessIdentity, ...] = ()
    """Processes that the task started and nothing could end."""
    notes: tuple[str, ...] = ()
    """What a reader of the output should know of it: what was missing, cut or found untrue."""

    @property
    def status(self) -> OutcomeStatus:
        match self.error:
            case None:
                return "success"
            case DeadlineExceeded():
                return "timeout"
            case Canceled():
                return "canceled"
            case _:
                return "error"


# MERGED ports: The shapes that one room asks of another: whatever has the shape qualifies, fakes too.

T = TypeVar("T")


class Redactor(Protocol):
    """Takes secrets out of what leaves."""

    def redact(self, text: str) -> str: ...

    def hide(self, values: Iterable[str]) -> None:
        """Take these values out too, from now on."""
        ...

    def redact_value(self, value: T) -> T:
        """The same for a JSON-like value, whose names help to find them."""
        ...

    def lines(self) -> Callable[[str], str]:
        """The same for a text that comes line by line: it remembers what began in an earlier line."""
        ...


class Executor(Protocol):
    """A way to perform one task."""

    async def run(self, task: Task, ctx: RunContext) -> Outcome: ...
