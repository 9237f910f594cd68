"""A workflow as data: chains, parallel work and branches over steps, freely nested. Knows nothing of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from retinue.core.budget import UNLIMITED, Budget

# MERGED phase: The few words of a handoff that everybody needs: phases, decisions, states. Knows nothing of validation.


class Phase(StrEnum):
    RESEARCH = "research"
    WRITE = "write"
    VALIDATE = "validate"

    @property
    def expected(self) -> Expected:
        return _EXPECTED[self]


class Expected(StrEnum):
    """What the findings of a phase must hold."""

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
"""A field of the findings that is held to its type; a tuple names the only values it may have."""
QuorumRule = Literal["all", "any", "majority"]
PARALLEL_LIMIT = 8
"""Branches of a parallel that are under way at the same time, if nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One agent on one task; or the project's checks; or an agent that reviews what the checks let pass."""

    id: str
    agent: str | None = None
    phase: Phase = Phase.RESEARCH
    plain: bool = False
    """Without a handoff: what came before is the task, and the answer is plain text. So do teams work."""
    instructions: str = ""
    constraints: tuple[str, ...] = ()
    finding: Mapping[str, FieldType] = field(default_factory=dict[str, FieldType])
    checks: tuple[str, ...] = ()
    """The project's commands that the server runs; their failure is a STOP whatever the agent says."""
    timeout_s: float | None = None
    """Less than the agent's own, if given."""
    idempotent: bool = False
    """Whether it may be run again, unasked, after a server died in the middle of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    id: str
    steps: tuple[WorkflowNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    id: str
    steps: tuple[WorkflowNode, ...]
    rule: QuorumRule = "all"
    """How many must proceed for the whole to proceed."""
    at_once: int = PARALLEL_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Goes on with one of its cases, by a field of what the step before has found."""

    id: str
    on: str
    cases: Mapping[str, Chain]
    otherwise: Chain | None = None


WorkflowNode: TypeAlias = Step | Chain | Parallel | Branch


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    name: str
    description: str
    body: Chain
    source: str
    """The file it comes from, or `built in`, or `given`."""
    kind: Literal["workflow", "team"]
    text: str
    """The file's text, kept with each of its runs: a later edit does not change what is under way."""
    budget: Budget = UNLIMITED

    def agents(self) -> frozenset[str]:
        return frozenset(step.agent for step in steps_of(self.body) if step.agent is not None)

    def checks(self) -> frozenset[str]:
        return frozenset(check for step in steps_of(self.body) for check in step.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What a workflow is to be done on: the part of a handoff's context that is the same for every phase."""

    feature: str
    spec_path: str | None = None
    relevant_files: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


def steps_of(node: WorkflowNode) -> Iterator[Step]:
    """Every step below a node, in the order they are written."""
    match node:
        case Step():
            yield node
        case Chain() | Parallel():
            for each in node.steps:
                yield from steps_of(each)
        case Branch():
            for case in node.cases.values():
                yield from steps_of(case)
            if node.otherwise is not None:
                yield from steps_of(node.otherwise)
