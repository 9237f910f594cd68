"""What one step hands to the next: the assignment and a short summary, never the findings (P1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from retinue.core import Assignment, Decision, HandoffResponse, Phase, WorkflowNode
from retinue.workflows.steps import Steps

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


class PerformNode(Protocol):
    """How a node is performed; given to patterns, because they hold each other."""

    async def __call__(self, steps: Steps, node: WorkflowNode, path: str, given: Given) -> Done: ...


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
