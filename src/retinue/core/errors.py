"""Everything that can go wrong and be told to somebody.

RetinueError                 a stable `code`, a sentence, and what to do about it
├── ConfigInvalid            config_invalid      a setting is unknown, mistyped or impossible
├── InvalidInput             invalid_input       an argument is missing or wrong
├── RootUnknown              root_unknown        the named root is not on the allowlist
├── PathDenied               path_denied         the path is outside the roots or the policy hides it
├── PathMissing              path_missing        nothing readable is there
├── LimitExceeded            limit_exceeded      a bound was reached: kind, used, limit
│   └── BudgetExceeded       budget_exceeded     a request tree has spent what it was given
├── QueueFull                saturated           the queue is full: nothing was recorded, try again later
├── RunUnknown               run_unknown         no run (or message) has that id
├── Conflict                 conflict            the state has moved on and does not allow the change
├── Unauthorized             unauthorized        whoever asks has not shown that they may
├── Unavailable              unavailable         something needed is not there: a program, a folder, a service
├── ProgramFailed            program_failed      a program that was to do the work ended badly: its exit code
│   └── AcceptanceFailed     acceptance_failed   a command that was to prove the work did not succeed
├── WorkflowStopped                   workflow_stopped    a phase of a workflow said STOP, or is blocked: the reason
├── ModelFailed              model_failed        a model's server answered, but with nothing that can be used
│   ├── ContextOverflow      context_overflow    the conversation is longer than the loaded model can hold
│   ├── ToolsUnsupported     tools_unsupported   the server or the model takes no tools
│   ├── EmptyReply           empty_reply         success was said and nothing came
│   └── OutputInvalid        output_invalid      the model gave no answer that fits its schema
├── Stopped                                      the caller ended the work
│   ├── DeadlineExceeded     deadline_exceeded
│   └── Canceled             canceled
└── InternalError            internal_error      a fault of ours; the details stay in the log

The code and the data go to hosts; scripts may rely on them. Neither may carry a path outside the roots,
an environment value or a stack trace.
"""

from __future__ import annotations

import json
from typing import ClassVar

from retinue.core.lenient_json import Json


class RetinueError(Exception):
    """The root of the tree. `str(error)` is one sentence; `hint` says what to do."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str | None = None, **data: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.data = data

    def as_dict(self) -> dict[str, object]:
        """The structured form that hosts and `--json` receive."""
        shown: dict[str, object] = {"code": self.code, "message": self.message}
        if self.hint:
            shown["hint"] = self.hint
        if self.data:
            shown["data"] = self.data
        return shown

    def as_json(self) -> dict[str, Json]:
        """The same as a record keeps it: whatever is no JSON by itself, as its text."""
        return json.loads(json.dumps(self.as_dict(), default=str))


class ConfigInvalid(RetinueError):
    code = "config_invalid"


class InvalidInput(RetinueError):
    code = "invalid_input"


class RootUnknown(RetinueError):
    code = "root_unknown"


class PathDenied(RetinueError):
    code = "path_denied"


class PathMissing(RetinueError):
    code = "path_missing"


class LimitExceeded(RetinueError):
    code = "limit_exceeded"

    def __init__(self, kind: str, used: float, limit: float, *, hint: str | None = None) -> None:
        super().__init__(
            f"{kind}: {_plain(used)} would exceed the limit of {_plain(limit)}",
            hint=hint,
            kind=kind,
            used=used,
            limit=limit,
        )
        self.kind = kind
        self.used = used
        self.limit = limit


def _plain(amount: float) -> str:
    """A whole number with all of its digits: sixteen million bytes are not `1.68e+07`."""
    return str(int(amount)) if amount == int(amount) else f"{amount:g}"


class BudgetExceeded(LimitExceeded):
    code = "budget_exceeded"


class QueueFull(RetinueError):
    code = "saturated"


class RunUnknown(RetinueError):
    code = "run_unknown"


class Conflict(RetinueError):
    code = "conflict"


class Unauthorized(RetinueError):
    code = "unauthorized"


class Unavailable(RetinueError):
    code = "unavailable"


class ProgramFailed(RetinueError):
    code = "program_failed"


class AcceptanceFailed(ProgramFailed):
    code = "acceptance_failed"


class WorkflowStopped(RetinueError):
    code = "workflow_stopped"


class ModelFailed(RetinueError):
    code = "model_failed"


class ContextOverflow(ModelFailed):
    code = "context_overflow"


class ToolsUnsupported(ModelFailed):
    code = "tools_unsupported"


class EmptyReply(ModelFailed):
    code = "empty_reply"


class OutputInvalid(ModelFailed):
    code = "output_invalid"


class Stopped(RetinueError):
    code = "stopped"


class DeadlineExceeded(Stopped):
    code = "deadline_exceeded"


class Canceled(Stopped):
    code = "canceled"


class InternalError(RetinueError):
    code = "internal_error"
