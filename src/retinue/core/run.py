"""A run: one execution of one agent on one task, and the only ways its status may change.

Knows nothing of how runs are stored or performed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from retinue.core.budget import NOTHING_SPENT, UNLIMITED, Budget, Usage
from retinue.core.errors import Conflict
from retinue.core.executor import ProcessIdentity
from retinue.core.ids import OwnerId, RunId
from retinue.core.lenient_json import Json


class RunStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting_parent_reply"
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELED = "canceled"
    INTERRUPTED = "interrupted"

    @property
    def ended(self) -> bool:
        return self in ENDED_STATUSES


ENDED_STATUSES = frozenset(
    {RunStatus.SUCCESS, RunStatus.ERROR, RunStatus.TIMEOUT, RunStatus.CANCELED, RunStatus.INTERRUPTED}
)
ACTIVE_STATUSES = frozenset(RunStatus) - ENDED_STATUSES

STATUS_CHANGES: Mapping[RunStatus, frozenset[RunStatus]] = {
    RunStatus.QUEUED: frozenset({RunStatus.RUNNING}) | ENDED_STATUSES - {RunStatus.SUCCESS},
    RunStatus.RUNNING: frozenset({RunStatus.WAITING}) | ENDED_STATUSES,
    RunStatus.WAITING: frozenset({RunStatus.RUNNING}) | ENDED_STATUSES,
    **{ended: frozenset[RunStatus]() for ended in ENDED_STATUSES},
}
"""From each status, where it may go. The database holds the same table and has the last word."""

RESUMABLE_CHANGES: Mapping[RunStatus, frozenset[RunStatus]] = {
    **STATUS_CHANGES,
    RunStatus.RUNNING: STATUS_CHANGES[RunStatus.RUNNING] | {RunStatus.QUEUED},
    RunStatus.WAITING: STATUS_CHANGES[RunStatus.WAITING] | {RunStatus.QUEUED},
}
"""The same for runs that another process can go on with: they queue again when nobody performs them."""


def check_status_change(run_id: RunId, before: RunStatus, after: RunStatus) -> None:
    """Raise `Conflict` unless a run may go from one status to the other."""
    if after not in STATUS_CHANGES[before]:
        raise Conflict(
            f"run {run_id} is {before} and cannot become {after}",
            hint="look at the run's status again: somebody else may have ended it",
            run_id=run_id,
            status=before.value,
        )


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Something that serves a few runs at a time, a local model for example."""

    key: str
    slots: int


@dataclass(frozen=True, slots=True)
class RunLimits:
    queue_s: float | None = None
    """Seconds a run may wait for its first slot."""
    run_s: float | None = None
    """Seconds from its start to its end, not counting the time it waits for its parent's reply."""
    budget: Budget = UNLIMITED
    """What it may spend; for the first run of a tree, what the whole tree may spend."""


UNBOUNDED = RunLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What is asked for: everything known of a run before it starts."""

    agent: str
    task: str
    executor: str
    caller: str = "host"
    """Who asked: a host, the command line, or the agent of the parent run."""
    parent: RunId | None = None
    model: str | None = None
    """The effective model, after every override."""
    tools: tuple[str, ...] = ()
    """The effective tools, after every permission."""
    limits: RunLimits = UNBOUNDED
    endpoint: Endpoint | None = None
    needs_slot: bool = True
    """False for a run that only coordinates others: it would hold a slot its children wait for."""
    command: str | None = None
    """The program, where there is one, without its arguments' values."""
    resumable: bool = False
    """Whether another process can go on with it: then it outlives its server, in the queue or waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTiming:
    """Seconds since 1970."""

    enqueued_at: float
    started_at: float | None = None
    ended_at: float | None = None
    deadline_at: float | None = None
    """While queued, when the wait ends; once started, when the run must have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended."""

    status: RunStatus
    result: Json = None
    error: Json = None
    summary: str | None = None
    """None keeps the summary that the run gave of itself while it ran."""
    exit_code: int | None = None
    usage: Usage | None = None
    """None keeps the usage recorded while it ran."""

    def __post_init__(self) -> None:
        if not self.status.ended:
            raise ValueError(f"{self.status} does not end a run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as the store holds it at one moment."""

    id: RunId
    request: RunId
    """The first run of its tree; its own id for a run without a parent."""
    spec: RunSpec
    status: RunStatus
    timing: RunTiming
    owner: OwnerId
    """The server process that performs it."""
    host: str
    holds_slot: bool = False
    cancel_requested: bool = False
    process: ProcessIdentity | None = None
    usage: Usage = NOTHING_SPENT
    result: Json = None
    error: Json = None
    summary: str | None = None
    exit_code: int | None = None
