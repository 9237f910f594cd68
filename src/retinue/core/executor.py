"""The `Executor` port, and the values that pass between the runtime and an executor.

Knows nothing of how a task is performed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from retinue.core.budget import UNMETERED, Spending
from retinue.core.errors import Canceled, DeadlineExceeded, RetinueError
from retinue.core.lenient_json import Json
from retinue.core.message import Message
from retinue.core.permission import Permit, deny_all
from retinue.core.receipt import Activity

if TYPE_CHECKING:  # few agents have a memory or skills, and every start loads this module
    from retinue.core.memory import RunMemory
    from retinue.core.skill import SkillNotes

StreamName = Literal["stdout", "stderr", "event"]
"""The two output streams of a program, and `event` for what happened besides."""
OutcomeStatus = Literal["success", "error", "timeout", "canceled"]


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Identifies one process, even if the system later gives its pid to another process."""

    pid: int
    started: str
    """The start time of the process. The format differs by platform; compare it only for equality."""


@dataclass(frozen=True, slots=True)
class OutputLine:
    """One line of output, several lines that arrived together, or a part of a line that is too long."""

    stream: StreamName
    text: str
    """The line without its newline. Several lines have newlines between them."""
    complete: bool = True
    """False if no newline follows: a part of a long line, or the unterminated end of a stream."""


Emit = Callable[[OutputLine], Awaitable[None]]
"""Receives output: a line, or the lines that arrived together."""
HideSecrets = Callable[[Iterable[str]], None]
"""Receives values that must be redacted from now on."""
OnProcessStart = Callable[[ProcessIdentity], Awaitable[None]]
"""Receives the process that performs a task."""
AskParent = Callable[[str, float | None], Awaitable[Message]]
"""Asks the parent of the run a question and waits for the answer.

Closes the question if no answer arrives within the given number of seconds.
"""


class Delegate(Protocol):
    """Starts other agents on behalf of a run."""

    def agents(self) -> Sequence[Mapping[str, Any]]:
        """Return the agents that the run may start, each with its `name` and `description`."""
        ...

    async def start(self, agent: str, task: str) -> str:
        """Start a run of an agent and return its id."""
        ...

    async def wait(self, run_ids: Sequence[str], wait_s: float | None) -> Mapping[str, Any]:
        """Wait until these runs have ended, and return the view of each in `runs`."""
        ...


@dataclass(frozen=True, slots=True)
class Task:
    """The task that an executor performs."""

    agent: str
    prompt: str
    background: str = ""
    """Text that may help with the task, such as recalled memories. It is data: it instructs nobody."""

    @property
    def whole_prompt(self) -> str:
        """The prompt, after the background if there is any."""
        return f"{self.background}\n\n{self.prompt}" if self.background else self.prompt


@dataclass(frozen=True, slots=True)
class Resumed:
    """The session of an earlier run that a task continues, with what the session has used so far."""

    session_id: str
    cost_micros: int = 0
    tokens: int = 0
    is_fork: bool = False
    """Whether the task continues in a session of its own and leaves this one as it is."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """Everything an executor gets besides the task: limits, callbacks and permissions."""

    run_id: str
    cwd: Path
    """The working directory. It exists."""
    seconds: float | None
    """Time limit for the whole task; None for no limit."""
    emit: Emit
    """Called with every line of output. The task waits until it returns."""
    started: OnProcessStart
    """Called with the process that performs the task, before any of its output."""
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Environment variables through which the task can connect to this server."""
    spending: Spending = UNMETERED
    """The budget of the run. Executors reserve an amount before they spend it."""
    ask: AskParent | None = None
    """Asks the parent of the run; None if there is nobody to ask."""
    resume: Resumed | None = None
    """The session to continue; None to start a new one."""
    hide: HideSecrets = lambda values: None
    """Called with the secrets that the task receives, before it can print them."""
    launching: Callable[[Sequence[str]], None] = lambda argv: None
    """Called with the command line that performs the task, before it starts."""
    activity: Activity = field(default_factory=Activity)
    """Where the executor records what the run does, when it happens."""
    siblings: Callable[[], Iterable[str]] = tuple
    """Returns the ids of the runs that work beside this one, for the same caller in the same folder."""
    event: Callable[[str, Mapping[str, Json]], None] = lambda kind, data: None
    """Records something that happened to the run: its kind, and small data."""
    permit: Permit = deny_all
    """Called before each tool call that the rules of the agent neither allow nor deny."""
    skills: SkillNotes | None = None
    """The skills of the run; None if it has none."""
    start: str | None = None
    """The branch of an earlier run whose work this run continues, if it works in a worktree. With `^` after
    it, the run begins where the earlier one began."""
    memory: RunMemory | None = None
    """What the run may remember and recall; None if its agent has no memory."""
    delegate: Delegate | None = None
    """Starts other agents; None if the run may start none."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task ended. If the task cannot start or is cancelled, `Executor.run` raises instead."""

    output: str
    """The answer if the task succeeded, else the last lines it wrote."""
    cut: bool = False
    """Whether the beginning of `output` is missing. The stream `stdout` of the log has all of it."""
    before: str = ""
    """The end of the missing text, for redaction only: a secret may have begun there."""
    value: Json = None
    """The answer as JSON, if the agent promises JSON; `output` holds it as text."""
    result: Any = None
    """A typed result for the code in this process that started the run. It is not stored."""
    exit_code: int | None = None
    """The exit code of the program, negative for a signal; None if it did not end by itself."""
    error: RetinueError | None = None
    usage: Mapping[str, int] = field(default_factory=dict[str, int])
    """Measured amounts by name: `duration_ms`, `output_bytes`, `steps`, `tokens`, `cost_micros`."""
    facts: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Further facts by name, such as the effective `model`, the `session_id` and the `isolation`."""
    survivors: tuple[ProcessIdentity, ...] = ()
    """Processes that the task started and that could not be killed."""
    notes: tuple[str, ...] = ()
    """Notes for the reader of the output: what is missing, was cut or turned out to be untrue."""

    @property
    def status(self) -> OutcomeStatus:
        """The status that follows from `error`."""
        match self.error:
            case None:
                return "success"
            case DeadlineExceeded():
                return "timeout"
            case Canceled():
                return "canceled"
            case _:
                return "error"


class Executor(Protocol):
    """A way to perform a task: a model loop, a coding CLI, any other program."""

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        """Perform the task and return how it ended."""
        ...
