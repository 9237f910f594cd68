"""The errors that users and hosts see.

RetinueError                 base class: a stable `code`, a message, a hint
├── ConfigInvalid            config_invalid      a setting or definition is unknown or has a wrong value
├── InvalidInput             invalid_input       an argument is missing or wrong
├── RootUnknown              root_unknown        the root is not on the list of allowed roots
├── PathDenied               path_denied         the path is outside the roots, or the policy forbids it
├── PathMissing              path_missing        there is no readable file or directory at the path
├── AddressDenied            address_denied      the web address is not allowed, or is in a private network
├── FetchFailed              fetch_failed        a page of the web could not be fetched or read; data: status
├── LimitExceeded            limit_exceeded      a limit was reached; data: kind, used, limit
│   └── BudgetExceeded       budget_exceeded     the budget of a tree of runs is spent
├── QueueFull                saturated           the queue is full; nothing was recorded, try again later
├── QuotaSpent               quota_spent         a usage limit is spent; data: account, reset_at
├── Throttled                throttled           a provider asks to send fewer requests; data: retry_after_s
├── RunUnknown               run_unknown         no run or message has this id
├── Conflict                 conflict            the current state does not allow the change
├── Unauthorized             unauthorized        the caller did not prove that it may do this
├── Unavailable              unavailable         a program, folder or service that is needed is missing
├── ProgramFailed            program_failed      a program that performed a task failed; data: its exit code
│   └── AcceptanceFailed     acceptance_failed   an acceptance command failed after the task
├── WorkflowStopped          workflow_stopped    a workflow phase decided STOP or is blocked
├── ModelFailed              model_failed        a model server returned a reply that cannot be used
│   ├── ContextOverflow      context_overflow    the conversation is longer than the model's context
│   ├── ToolsUnsupported     tools_unsupported   the server or the model does not support tools
│   ├── EmptyReply           empty_reply         the server reported success but sent no reply
│   ├── OutputInvalid        output_invalid      the model gave no answer that matches the output schema
│   └── Unverified           unverified          the answer names nothing that the agent has seen
├── Stopped                  stopped             the caller ended the work
│   ├── DeadlineExceeded     deadline_exceeded   the time limit passed before the work was done
│   └── Canceled             canceled            the work was canceled
└── InternalError            internal_error      a bug in Retinue; the log has the details

Hosts receive `code`, `message`, `hint` and `data`, and scripts may rely on the codes. None of them may
contain a path outside the roots, an environment value or a stack trace.
"""

from __future__ import annotations

import json
import time
from typing import ClassVar

from retinue.core.lenient_json import Json


class RetinueError(Exception):
    """Base class of all errors that are shown to users and hosts.

    `str(error)` says what went wrong, `hint` says what to do about it, `data` holds the details as values.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str | None = None, **data: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.data = data

    def as_dict(self) -> dict[str, object]:
        """The error as hosts and `--json` output show it."""
        shown: dict[str, object] = {"code": self.code, "message": self.message}
        if self.hint:
            shown["hint"] = self.hint
        if self.data:
            shown["data"] = self.data
        return shown

    def as_json(self) -> dict[str, Json]:
        """The same as pure JSON, for the store. Values that are not JSON are converted with `str`."""
        return json.loads(json.dumps(self.as_dict(), default=str))


class ConfigInvalid(RetinueError):
    """A setting or a definition is unknown or has a wrong value."""

    code = "config_invalid"


class InvalidInput(RetinueError):
    """An argument is missing or wrong."""

    code = "invalid_input"


class RootUnknown(RetinueError):
    """The root is not on the list of allowed roots."""

    code = "root_unknown"


class PathDenied(RetinueError):
    """The path is outside the roots, or the policy forbids it."""

    code = "path_denied"


class PathMissing(RetinueError):
    """There is no readable file or directory at the path."""

    code = "path_missing"


class AddressDenied(RetinueError):
    """The address of the web is not allowed, or leads into a private network."""

    code = "address_denied"


class FetchFailed(RetinueError):
    """A page of the web could not be fetched or read."""

    code = "fetch_failed"


class LimitExceeded(RetinueError):
    """A limit was reached. `data` holds `kind`, `used` and `limit`."""

    code = "limit_exceeded"

    def __init__(self, kind: str, used: float, limit: float, *, hint: str | None = None) -> None:
        super().__init__(
            f"{kind}: {_format_amount(used)} would exceed the limit of {_format_amount(limit)}",
            hint=hint,
            kind=kind,
            used=used,
            limit=limit,
        )
        self.kind = kind
        self.used = used
        self.limit = limit


def _format_amount(amount: float) -> str:
    """Format a number with all its digits, so that 16777216 is not shown as `1.68e+07`."""
    return str(int(amount)) if amount == int(amount) else f"{amount:g}"


class BudgetExceeded(LimitExceeded):
    """The budget of a tree of runs is spent."""

    code = "budget_exceeded"

    def __init__(self, kind: str, used: float, limit: float, *, hint: str | None = None) -> None:
        where = "`spawns` of the agent or `runs` of the workflow" if kind == "spawns" else "the budget"
        advice = f"a budget does not refill, so do not wait: raise {where}, or start a new request"
        super().__init__(kind, used, limit, hint=hint or advice)


class QueueFull(RetinueError):
    """The queue of runs is full. Nothing was recorded; try again later."""

    code = "saturated"


class QuotaSpent(RetinueError):
    """The usage limit of an account is spent. `reset_at` is when it ends, or None if nobody says."""

    code = "quota_spent"

    def __init__(
        self,
        message: str,
        *,
        reset_at: float | None = None,
        hint: str | None = None,
        **data: object,
    ) -> None:
        known = {} if reset_at is None else {"reset_at": utc_text(reset_at)}
        super().__init__(message, hint=hint, **data, **known)
        self.reset_at = reset_at


def utc_text(at: float) -> str:
    """A time as text, to the second: `2026-11-16T14:00:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


class Throttled(RetinueError):
    """A provider asks to send fewer requests. The limit ends within seconds or minutes."""

    code = "throttled"

    def __init__(self, message: str, *, retry_after_s: float | None = None, hint: str | None = None) -> None:
        known = {} if retry_after_s is None else {"retry_after_s": retry_after_s}
        super().__init__(message, hint=hint, **known)
        self.retry_after_s = retry_after_s


class RunUnknown(RetinueError):
    """No run or message has this id."""

    code = "run_unknown"


class Conflict(RetinueError):
    """The current state does not allow the change."""

    code = "conflict"


class Unauthorized(RetinueError):
    """The caller did not prove that it may do this."""

    code = "unauthorized"


class Unavailable(RetinueError):
    """A program, folder or service that is needed is missing."""

    code = "unavailable"


class ProgramFailed(RetinueError):
    """A program that performed a task failed."""

    code = "program_failed"


class AcceptanceFailed(ProgramFailed):
    """An acceptance command failed after the task."""

    code = "acceptance_failed"


class WorkflowStopped(RetinueError):
    """A workflow phase decided STOP or is blocked."""

    code = "workflow_stopped"


class ModelFailed(RetinueError):
    """A model server returned a reply that cannot be used."""

    code = "model_failed"


class ContextOverflow(ModelFailed):
    """The conversation is longer than the model's context."""

    code = "context_overflow"


class ToolsUnsupported(ModelFailed):
    """The model server or the model does not support tools."""

    code = "tools_unsupported"


class EmptyReply(ModelFailed):
    """The model server reported success but sent no reply."""

    code = "empty_reply"


class OutputInvalid(ModelFailed):
    """The model gave no answer that matches the output schema."""

    code = "output_invalid"


class Unverified(ModelFailed):
    """The answer names nothing that the agent has seen."""

    code = "unverified"


class Stopped(RetinueError):
    """The caller ended the work."""

    code = "stopped"


class DeadlineExceeded(Stopped):
    """The time limit passed before the work was done."""

    code = "deadline_exceeded"


class Canceled(Stopped):
    """The work was canceled."""

    code = "canceled"


class InternalError(RetinueError):
    """A bug in Retinue. The log has the details."""

    code = "internal_error"
