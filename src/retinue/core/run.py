"""A run: one execution of one agent on one task, and the allowed changes of its status.

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
    """The states of a run. The values are part of the tools' answers."""

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
        """Whether the run is over."""
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
"""The allowed changes of status. Triggers in the database enforce the same table."""

RESUMABLE_CHANGES: Mapping[RunStatus, frozenset[RunStatus]] = {
    **STATUS_CHANGES,
    RunStatus.RUNNING: STATUS_CHANGES[RunStatus.RUNNING] | {RunStatus.QUEUED},
    RunStatus.WAITING: STATUS_CHANGES[RunStatus.WAITING] | {RunStatus.QUEUED},
}
"""The same for runs that return to the queue: resumable ones when their process ends, others while they wait
for their account."""


def check_status_change(run_id: RunId, before: RunStatus, after: RunStatus) -> None:
    """Raise `Conflict` unless a run may change from one status to the other."""
    if after not in STATUS_CHANGES[before]:
        raise Conflict(
            f"run {run_id} is {before} and cannot become {after}",
            hint="check the status of the run again: another process may have ended it",
            run_id=run_id,
            status=before.value,
        )


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Something that serves a limited number of runs at the same time, such as a local model."""

    key: str
    slots: int


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Time and budget limits of a run. None means no limit."""

    queue_s: float | None = None
    """Seconds a run may wait in the queue."""
    run_s: float | None = None
    """Seconds a run may take, not counting the time it waits for replies of its parent."""
    budget: Budget = UNLIMITED
    """What the run may spend. For the first run of a tree: what the whole tree may spend."""


UNBOUNDED = RunLimits()


TRIAL_CALLER = "evolve"
"""The caller of runs that the evolver starts, such as those that try a draft. They are not evidence of what
people do, and nothing of them is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """Everything that is known about a run before it starts."""

    agent: str
    task: str
    executor: str
    caller: str = "host"
    """Who started the run: the name of a host, the command line, or the agent of the parent run."""
    parent: RunId | None = None
    model: str | None = None
    """The model in use, after all overrides."""
    tools: tuple[str, ...] = ()
    """The tools in use, after applying all permissions."""
    limits: RunLimits = UNBOUNDED
    endpoint: Endpoint | None = None
    needs_slot: bool = True
    """False for a run that only coordinates other runs, because it would hold a slot that its children
    need."""
    command: str | None = None
    """The command line that performs the run, redacted; None if there is none. Before the start of a coding
    CLI: its program."""
    resumable: bool = False
    """Whether another process can continue the run after its server has ended."""
    account: str | None = None
    """The account whose usage limit the run needs; None if it needs none."""
    cwd: str | None = None
    """The working folder, for a process that adopts the run while it waits for its account."""

    @property
    def is_trial(self) -> bool:
        """Whether the evolver started the run, so that nothing of it may be kept."""
        return self.caller == TRIAL_CALLER


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTiming:
    """When the run was queued, started and ended, in seconds since 1970."""

    enqueued_at: float
    started_at: float | None = None
    ended_at: float | None = None
    deadline_at: float | None = None
    """While the run is queued: when it gives up waiting. After its start: when it must have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended."""

    status: RunStatus
    result: Json = None
    error: Json = None
    summary: str | None = None
    """None keeps the summary that was reported while the run was active."""
    exit_code: int | None = None
    usage: Usage | None = None
    """None keeps the usage that was recorded while the run was active."""

    def __post_init__(self) -> None:
        if not self.status.ended:
            raise ValueError(f"{self.status} does not end a run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as stored, at one point in time."""

    id: RunId
    request: RunId
    """The first run of the tree. A run without a parent has its own id here."""
    spec: RunSpec
    status: RunStatus
    timing: RunTiming
    owner: OwnerId
    """The server process that performs the run."""
    host: str
    holds_slot: bool = False
    not_before: float | None = None
    """When a queued run may start, if it waits for its account: in seconds since 1970."""
    cancel_requested: bool = False
    process: ProcessIdentity | None = None
    usage: Usage = NOTHING_SPENT
    result: Json = None
    error: Json = None
    summary: str | None = None
    exit_code: int | None = None
