"""The port through which workflow code touches the world. Each call has a key, and happens once for it.

An engine keeps what each call gave. When it goes on after a restart it runs the workflow's code again from
its beginning, and answers the calls it has kept without making them. So the code between two calls must be
the same each time: no clock, no chance, no file, nothing but what the calls gave.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from retinue.core import Json

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
