"""`Steps`, the port through which workflow code acts, and the input and result of a step.

Each call of the port has a key and happens once for that key. An engine stores the result of each call.
After a restart it runs the workflow's code again from the beginning, and returns the stored results without
making the calls. So the code between two calls must be deterministic: no clock, no random numbers, no
files, only the results of calls.

A step passes only the assignment and a short summary to the next one, never its findings (P1).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar

from retinue.core import Assignment, Decision, HandoffResponse, Json, Phase

T = TypeVar("T")

AgentStatus = Literal["success", "error", "timeout", "canceled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    """An agent's task in a step. An idempotent call may run again after an interruption."""

    agent: str
    prompt: str
    timeout_s: float | None = None
    idempotent: bool = False
    start: str | None = None
    """The branch with the work so far, which the agent's worktree begins with."""
    acceptance: tuple[tuple[str, ...], ...] = ()
    """Commands that must succeed after the run, in a worktree of its own."""
    accept_checks: tuple[str, ...] = ()
    """Names of the project's checks that must succeed there, too."""
    schema: Mapping[str, Json] | None = None
    """The JSON Schema of the answer, for executors that can enforce one; None for plain text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """How an agent's run ended. Checkpoints keep it, so a field that is added later needs a default."""

    status: AgentStatus
    output: str
    """The answer, or what an agent that failed left behind."""
    reason: str = ""
    """Why the agent failed."""
    tokens: int = 0
    """The tokens that the agent read and wrote."""
    metered: bool = False
    """Whether the executor counted the tokens; otherwise they are estimated from prompt and answer."""
    run: str = ""
    branch: str | None = None
    """The branch with the agent's work; None if it changed nothing, or did not work in a worktree."""
    files: tuple[str, ...] | None = None
    """The files that the work changes; None if the agent did not work in a worktree."""
    diff: str = ""
    """The beginning of these changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """How a check command ended. Checkpoints keep it, so a field that is added later needs a default."""

    passed: bool | None
    """None if the project has no such command."""
    output: str = ""
    """The last lines it wrote."""
    command: str = ""
    could_not_start: bool = False
    """Whether its program is missing, so that nothing was checked and no agent can mend it."""


class Steps(Protocol):
    """The operations of workflow code. `key` identifies each call."""

    async def agent(self, key: str, call: AgentCall) -> AgentResult:
        """Run an agent on a task."""
        ...

    async def check(self, key: str, name: str, start: str | None = None) -> CheckResult:
        """Run one of the project's check commands: in the project's folder, or on the work of a branch."""
        ...

    async def ask(self, key: str, questions: Sequence[str]) -> Sequence[str]:
        """Ask the user and return an answer for each question, possibly days later."""
        ...

    async def gather(self, jobs: Iterable[Callable[[], Awaitable[T]]], at_once: int) -> Sequence[T]:
        """Run the jobs, at most `at_once` of them at the same time, and return their results in order."""
        ...

    async def event(self, key: str, kind: str, data: Mapping[str, Json]) -> None:
        """Record a decision."""
        ...


MAX_FILES = 100
MAX_PATH_CHARACTERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInput:
    """Everything that a step knows."""

    assignment: Assignment
    summary: str | None = None
    """The `context_summary` of the previous step."""
    text: str
    """The complete answer of the previous step, for steps without a handoff."""
    files: tuple[str, ...] = ()
    """The files changed so far."""
    remarks: tuple[str, ...] = ()
    """Answers of the user, and failures to fix."""
    branch: str | None = None
    """The branch with the work so far; None if nobody has changed anything in a worktree."""

    def with_remarks(self, *remarks: str) -> StepInput:
        return replace(self, remarks=(*self.remarks, *remarks))


@dataclass(frozen=True, slots=True)
class ContextUsage:
    """The size of the context of one agent call."""

    step: str
    tokens: int
    inherited: int
    """How many of the tokens came from the previous step."""
    metered: bool


@dataclass(frozen=True, slots=True)
class StepResult:
    """The response of a step, and what later steps and the savings report need."""

    response: HandoffResponse
    text: str
    """The complete answer, for a following step without a handoff."""
    contexts: tuple[ContextUsage, ...] = ()
    branch: str | None = None
    """The branch with the work of the step and of those before it; None if it changed nothing."""
    diff: str = ""
    """The beginning of these changes."""

    @property
    def proceeds(self) -> bool:
        return self.response.decision is Decision.PROCEED


def next_input(step_input: StepInput, result: StepResult) -> StepInput:
    """The input of the following step."""
    files = step_input.files
    if result.response.phase is Phase.WRITE:
        files = tuple(dict.fromkeys((*files, *changed_files(result.response))))
    return StepInput(
        assignment=step_input.assignment,
        summary=result.response.context_summary,
        text=result.text,
        files=files,
        branch=result.branch or step_input.branch,
    )


def changed_files(response: HandoffResponse) -> tuple[str, ...]:
    """The changed files. Accepts only short one-line strings, so that findings cannot slip through (P1)."""
    named = response.findings.get("files_changed")
    if not isinstance(named, list | tuple):
        return ()
    paths = [item for item in named if isinstance(item, str)]  # pyright: ignore[reportUnknownVariableType]
    return tuple(path for path in paths if path and len(path) <= MAX_PATH_CHARACTERS and "\n" not in path)[
        :MAX_FILES
    ]
