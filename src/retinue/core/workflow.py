"""Workflows as data: phases and decisions, and nested chains, parallels and branches of steps.

Knows nothing of runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from retinue.core.budget import UNLIMITED, Budget

# The names and docstrings of these four enums are part of the JSON schema of a handoff.


class Phase(StrEnum):
    RESEARCH = "research"
    WRITE = "write"
    VALIDATE = "validate"

    @property
    def expected(self) -> Expected:
        """The kind of findings that the phase must return."""
        return _EXPECTED[self]


class Expected(StrEnum):
    """The kind of findings that a phase must return."""

    FINDINGS = "structured_findings"
    FILES = "files_changed"
    VALIDATION = "validation_result"


class Decision(StrEnum):
    PROCEED = "PROCEED"
    STOP = "STOP"
    CLARIFY = "CLARIFY"


class Progress(StrEnum):
    COMPLETE = "complete"
    PARTIAL = "partial"
    BLOCKED = "blocked"


_EXPECTED = {
    Phase.RESEARCH: Expected.FINDINGS,
    Phase.WRITE: Expected.FILES,
    Phase.VALIDATE: Expected.VALIDATION,
}


FieldType: TypeAlias = 'tuple[str, ...] | Literal["string", "number", "integer", "boolean"]'
"""The required type of a field of the findings. A tuple lists the allowed values."""
QuorumRule = Literal["all", "any", "majority"]
PARALLEL_LIMIT = 8
"""How many steps of a `Parallel` run at the same time by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One agent on one task, or the checks of the project, or checks followed by an agent that reviews the
    result."""

    id: str
    agent: str | None = None
    phase: Phase = Phase.RESEARCH
    plain: bool = False
    """Whether the step works without a handoff, as in teams: the output of the previous step is the task,
    and the answer is plain text."""
    instructions: str = ""
    constraints: tuple[str, ...] = ()
    finding: Mapping[str, FieldType] = field(default_factory=dict[str, FieldType])
    checks: tuple[str, ...] = ()
    """Names of the project checks that the server runs. If one fails, the decision is STOP whatever the
    agent says."""
    timeout_s: float | None = None
    """Time limit of the step, if it is shorter than that of the agent."""
    idempotent: bool = False
    """Whether the step may run again without asking after its server died."""
    acceptance: tuple[tuple[str, ...], ...] = ()
    """Commands that must succeed after the agent's run, in a worktree of its own."""
    accept_checks: tuple[str, ...] = ()
    """Names of the project's checks that must succeed there, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Runs its steps one after the other."""

    id: str
    steps: tuple[WorkflowNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    """Runs its steps at the same time."""

    id: str
    steps: tuple[WorkflowNode, ...]
    rule: QuorumRule = "all"
    """How many steps must decide PROCEED for the parallel to proceed."""
    at_once: int = PARALLEL_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Continues with one of its cases, chosen by a field of the previous findings."""

    id: str
    on: str
    """The name of the field."""
    cases: Mapping[str, Chain]
    otherwise: Chain | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOf:
    """Gives the same task to several agents, or several times to one, and keeps the best work.

    Each works in a worktree of its own. Commands decide whose work counts; a judge, who does not know whose
    work is whose, chooses only among that."""

    id: str
    tries: tuple[Step, ...]
    judge: str | None = None
    """The agent that chooses if several pass. Without one, the smallest change is the best."""
    at_once: int = PARALLEL_LIMIT


WorkflowNode: TypeAlias = Step | Chain | Parallel | Branch | BestOf


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A workflow or team as its file defines it."""

    name: str
    description: str
    body: Chain
    source: str
    """The file that defines it, or `built in`, or `given`."""
    kind: Literal["workflow", "team"]
    text: str
    """The text of the file. It is stored with each run, so that a later edit does not change an active
    run."""
    budget: Budget = UNLIMITED

    def agents(self) -> frozenset[str]:
        """The names of the agents in its steps."""
        named = [step.agent for step in steps_of(self.body)]
        judges = [node.judge for node in _nodes_of(self.body) if isinstance(node, BestOf)]
        return frozenset(name for name in (*named, *judges) if name is not None)

    def checks(self) -> frozenset[str]:
        """The names of the project checks in its steps."""
        steps = steps_of(self.body)
        return frozenset(check for step in steps for check in (*step.checks, *step.accept_checks))

    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The command lines in its steps."""
        return tuple(command for step in steps_of(self.body) for command in step.acceptance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The input of a workflow: the part of the handoff context that is the same for every phase."""

    feature: str
    spec_path: str | None = None
    relevant_files: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


def steps_of(node: WorkflowNode) -> Iterator[Step]:
    """Yield every step in a node, in written order."""
    return (each for each in _nodes_of(node) if isinstance(each, Step))


def _nodes_of(node: WorkflowNode) -> Iterator[WorkflowNode]:
    """Yield the node and every node inside it, in written order."""
    yield node
    inside: tuple[WorkflowNode, ...] = ()
    match node:
        case Step():
            return
        case Chain() | Parallel():
            inside = node.steps
        case BestOf():
            inside = node.tries
        case Branch():
            inside = (*node.cases.values(), *([node.otherwise] if node.otherwise is not None else []))
    for each in inside:
        yield from _nodes_of(each)
