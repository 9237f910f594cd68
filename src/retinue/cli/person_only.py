"""Restricts commands to a person: the processes of runs are refused, or see only their own children.

Every command that changes what the user decided, that answers for the user or that shows a secret is marked
with `person_only`. Knows nothing of how a caller is recognised; see `wiring/callers.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from retinue.core import RunId, RunUnknown, Unauthorized

if TYPE_CHECKING:
    from retinue.service import RunService

F = TypeVar("F", bound=Callable[..., Any])

HINT = "only a person may do this: use your own terminal. A run can ask its parent with ask_parent"


def person_only(what: str, when: Callable[[dict[str, Any]], bool] = lambda _: True) -> Callable[[F], F]:
    """Refuse the command to processes of runs. `what` completes "a run cannot ...".

    With `when`, only calls with certain arguments are refused.
    """

    def wrap(command: F) -> F:
        @functools.wraps(command)
        def checked(*args: Any, **arguments: Any) -> Any:
            if when(arguments):
                require_person(what)
            return command(*args, **arguments)

        checked.__dict__["is_person_only"] = True
        return cast("F", checked)

    return wrap


def require_person(what: str) -> None:
    """Raise `Unauthorized` if a run started this process."""
    from retinue import wiring

    if wiring.called_by_run():
        raise Unauthorized(f"a run cannot {what}", hint=HINT)


def calling_run() -> RunId | None:
    """The run that started this process; None for a person. A run that has no token is `Unauthorized`."""
    from retinue import wiring

    return wiring.current_run(wiring.read_settings({})).id if wiring.called_by_run() else None


def check_own_children(runs: RunService, caller: RunId | None, run_ids: tuple[str, ...]) -> None:
    """Raise `RunUnknown` if a run asks about a run that it has not started."""
    for run_id in run_ids if caller is not None else ():
        if not runs.is_descendant(run_id, cast("RunId", caller)):
            raise RunUnknown(f"no such run: {run_id}", hint="a run sees only the runs that it has started")
