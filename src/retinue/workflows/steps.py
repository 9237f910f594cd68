"""The port through which workflow code touches the world. Each call has a key, and happens once for it.

An engine keeps what each call gave. When it goes on after a restart it runs the workflow's code again from
its beginning, and answers the calls it has kept without making them. So the code between two calls must be
the same each time: no clock, no chance, no file, nothing but what the calls gave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar

from retinue.core import Assignment, Decision, HandoffResponse, Json, Phase

T = TypeVar("T")

AgentStatus = Literal["success", "error", "timeout", "canceled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    agent: str
    prompt: str
    timeout_s: float | None = None
    idempotent: bool = False


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
    """Whether the executor counted the tokens. Otherwise they are estimated from the prompt and the answer."""
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """How a check command ended. Checkpoints keep it, so a field that is added later needs a default."""

    passed: bool | None
    """None if the project has no such command."""
    output: str = ""
    """The last lines it wrote."""
    command: str = ""


class Steps(Protocol):
    async def agent(self, key: str, call: AgentCall) -> AgentResult:
        """Have an agent perform a task."""
        ...

    async def check(self, key: str, name: str) -> CheckResult:
        """Run one of the project's own commands."""
        ...

    async def ask(self, key: str, questions: Sequence[str]) -> Sequence[str]:
        """Ask the user; an answer for each question, perhaps days later."""
        ...

    async def gather(self, jobs: Iterable[Callable[[], Awaitable[T]]], at_once: int) -> Sequence[T]:
        """Do several things, so many at once; a job is begun only when there is room for it."""
        ...

    async def event(self, key: str, kind: str, data: Mapping[str, Json]) -> None:
        """Note what was decided."""
        ...


# MERGED step_io: What one step hands to the next: the assignment and a short summary, never the findings (P1).

MOST_FILES = 100
LONGEST_PATH = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """All that a step is told."""

    assignment: Assignment
    summary: str | None = None
    """The `context_summary` of the step before."""
    text: str
    """For steps without a handoff: the whole answer of the step before."""
    files: tuple[str, ...] = ()
    """What was changed so far."""
    remarks: tuple[str, ...] = ()
    """Answers of the user, and failures to mend."""

    def remarked(self, *remarks: str) -> Given:
        return replace(self, remarks=(*self.remarks, *remarks))


@dataclass(frozen=True, slots=True)
class ContextSeen:
    """What one context held."""

    step: str
    tokens: int
    handed: int
    """Of these, what it was handed from before."""
    metered: bool


@dataclass(frozen=True, slots=True)
class Done:
    response: HandoffResponse
    text: str
    """The whole answer, for a step without a handoff that follows."""
    seen: tuple[ContextSeen, ...] = ()

    @property
    def proceeds(self) -> bool:
        return self.response.decision is Decision.PROCEED


def after(given: Given, done: Done) -> Given:
    """What the step that follows is told."""
    files = given.files
    if done.response.phase is Phase.WRITE:
        files = tuple(dict.fromkeys((*files, *changed_files(done.response))))
    return Given(
        assignment=given.assignment, summary=done.response.context_summary, text=done.text, files=files
    )


def changed_files(response: HandoffResponse) -> tuple[str, ...]:
    """Names of files and nothing else: a list of anything could carry the findings along."""
    named = response.findings.get("files_changed")
    if not isinstance(named, list | tuple):
        return ()
    paths = [item for item in named if isinstance(item, str)]  # pyright: ignore[reportUnknownVariableType]
    return tuple(path for path in paths if path and len(path) <= LONGEST_PATH and "\n" not in path)[
        :MOST_FILES
    ]
