"""Decides what a run does when the usage limit of its account is spent: wait, fall back, ask, or give up.

A run that waits goes back to the queue, so it holds no slot and outlives the server. Whatever is decided is
recorded as an event of the run, and its result tells it. Knows nothing of agents or of how limits are
recognised.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from retinue.core import (
    Json,
    QuotaSpent,
    Redactor,
    RetinueError,
    Run,
    RunId,
    Throttled,
    counted,
    utc_text,
)
from retinue.runtime.prepared_run import Fallback, PreparedRun
from retinue.runtime.questions import ParentReply
from retinue.store import SpentQuota, Store

RETRY_UNSTATED_S = 900.0
"""Seconds until an account is tried again if nobody says when its limit ends."""
MIN_WAIT_S = 0.5
"""Minimum number of seconds to wait for a limit: clocks differ."""
MAX_THROTTLED = 3
"""How often a throttled run is tried again."""
THROTTLE_S = 5.0
"""Seconds before the first retry of a throttled run, if the provider says nothing; doubled each time."""
MAX_THROTTLE_S = 120.0

QUOTA_EVENT, FALLBACK_EVENT, THROTTLE_EVENT = "quota", "fallback", "throttled"
WAIT_ANSWERS = ("wait", "no", "later", "never")
STOP_ANSWERS = ("stop", "cancel", "deny")

RESUMED = (
    "An earlier attempt at this task was stopped by a usage limit. What it changed in your folder is still "
    "there. Look at it first, continue from there, and do not repeat what is done.\n\n"
)

AskParentOf = Callable[[RunId, str, float | None], Awaitable[ParentReply]]
"""Sends a run's question to its parent and waits for the answer, for the given number of seconds."""


class QuotaKeeper:
    """Records spent accounts, and decides how the runs that need them go on."""

    def __init__(self, store: Store, redactor: Redactor, ask: AskParentOf | None, max_wait_s: float) -> None:
        """`max_wait_s` is how long a run may wait for a limit to end."""
        self._store = store
        self._redactor = redactor
        self._ask = ask
        self._max_wait_s = max_wait_s

    def check(self, account: str | None) -> None:
        """Raise `QuotaSpent` if the account is spent."""
        if spent := self._store.quotas.get(account):
            raise _spent_error(spent)

    def refuse_long_wait(self, account: str | None) -> None:
        """Raise `QuotaSpent` if a new run would have to wait too long for the account."""
        spent = self._store.quotas.get(account)
        if spent and spent.reset_at - self._now() > self._max_wait_s:
            raise self._too_long(spent)

    async def after_quota(
        self, run: Run, work: PreparedRun, error: QuotaSpent, *, tried: bool
    ) -> PreparedRun:
        """Put the run back into the queue, and return what performs it next.

        `tried` says whether the task had begun. Raises `QuotaSpent` if the run must not go on.
        """
        spent = self._store.quotas.get(work.account)
        if spent is None or tried:
            spent = await self._record(run, work, error)
        fallback = work.fallback
        if fallback is not None and fallback.mode == "ask":
            chosen = await self._ask_person(run, work, fallback, spent, tried)
        else:
            chosen = await self._first_usable(run, work, fallback, spent, tried)
        if chosen is not None:
            return chosen
        await self._wait(run, work, spent, tried)
        return work

    async def after_throttle(self, run: Run, work: PreparedRun, error: Throttled) -> PreparedRun:
        """Put the run back into the queue for a short time. Raises the error after too many tries."""
        before = len(self._store.events.of_run(run.id, kind=THROTTLE_EVENT))
        if before >= MAX_THROTTLED:
            raise error
        seconds = min(error.retry_after_s or THROTTLE_S * 2**before, MAX_THROTTLE_S)
        data: dict[str, Json] = {"message": self._redactor.redact(error.message), "seconds": seconds}
        await self._requeue(run, work, self._now() + seconds, THROTTLE_EVENT, data)
        return work

    def was_attempted(self, run_id: RunId) -> bool:
        """Whether the task had begun before the run went back to the queue."""
        events = (QUOTA_EVENT, FALLBACK_EVENT, THROTTLE_EVENT)
        return any(
            event.data.get("tried", True)
            for kind in events
            for event in self._store.events.of_run(run_id, kind=kind)
        )

    def facts(self, run_id: RunId) -> tuple[dict[str, Json], list[str]]:
        """What the result says about waits and fallbacks, as facts and as notes for its reader."""
        waits = [dict(event.data) for event in self._store.events.of_run(run_id, kind=QUOTA_EVENT)]
        changes = [dict(event.data) for event in self._store.events.of_run(run_id, kind=FALLBACK_EVENT)]
        facts: dict[str, Json] = {}
        notes: list[str] = []
        if waits:
            facts["quota_waits"] = [*waits]
            times = counted(len(waits), "time")
            notes.append(
                f"the run waited {times} for the usage limit of {waits[-1]['account']}"
                + ("; its task began anew after that" if any(each["tried"] for each in waits) else "")
            )
        for change in changes:
            facts["fallback"] = [*changes]
            notes.append(
                f"{change['to']} performed the task instead of {change['from']}, because the usage limit of "
                f"{change['account']} is spent until {change['reset_at']}"
            )
        return facts, notes

    def _now(self) -> float:
        return self._store.database.clock()

    async def _record(self, run: Run, work: PreparedRun, error: QuotaSpent) -> SpentQuota:
        account = work.account or f"{run.spec.executor} {run.spec.agent}"
        now = self._now()
        stated = error.reset_at is not None
        reset_at = max(error.reset_at or now + RETRY_UNSTATED_S, now + MIN_WAIT_S)
        reason = self._redactor.redact(error.message)
        await self._store.persist(lambda: self._store.quotas.spend(account, reset_at, reason, stated=stated))
        return SpentQuota(account, reset_at, now, reason, stated)

    async def _first_usable(
        self, run: Run, work: PreparedRun, fallback: Fallback | None, spent: SpentQuota, tried: bool
    ) -> PreparedRun | None:
        """Switch to the first agent of the fallback whose account can be used; None if there is none."""
        for name in () if fallback is None else fallback.names:
            try:
                other = fallback.prepare(name) if fallback else work
                self.check(other.account)
            except RetinueError:
                continue  # it cannot run either: the next one, or wait
            await self._switch(run, work, other, name, spent, tried)
            return other
        return None

    async def _ask_person(
        self, run: Run, work: PreparedRun, fallback: Fallback, spent: SpentQuota, tried: bool
    ) -> PreparedRun | None:
        """Ask who performs the task. Without an answer until the reset, its own agent goes on."""
        if self._ask is None:
            return None
        await self._store.persist(
            self._store.runs.mark_waiting_for_quota, run.id, spent.reset_at, spent.account
        )
        text = (
            f"The usage limit of {spent.account} is spent until {utc_text(spent.reset_at)}. Answer `wait`, "
            "`stop`, or the name of another agent that performs the task instead."
        )
        while (left := spent.reset_at - self._now()) > 0:
            reply = await self._ask(run.id, text, left)
            answer = (reply.answer or "").strip().strip("`'\"")
            if reply.timed_out or answer.lower() in WAIT_ANSWERS:
                return None
            if answer.lower() in STOP_ANSWERS:
                raise _spent_error(spent)
            try:
                other = fallback.prepare(answer)
                self.check(other.account)
            except RetinueError as error:
                text = f"{answer[:80]} cannot perform the task: {error.message}. {text}"[:2_000]
                continue
            await self._switch(run, work, other, answer, spent, tried)
            return other
        return None

    async def _switch(
        self, run: Run, work: PreparedRun, other: PreparedRun, name: str, spent: SpentQuota, tried: bool
    ) -> None:
        data: dict[str, Json] = {
            "from": work.spec.agent,
            "to": name,
            "account": spent.account,
            "reset_at": utc_text(spent.reset_at),
            "tried": tried,
        }
        await self._requeue(run, other, self._now(), FALLBACK_EVENT, data)

    async def _wait(self, run: Run, work: PreparedRun, spent: SpentQuota, tried: bool) -> None:
        earlier = self._store.events.of_run(run.id, kind=QUOTA_EVENT, limit=1)
        began = earlier[0].at if earlier else self._now()
        if spent.reset_at - began > self._max_wait_s:
            raise self._too_long(spent)
        data: dict[str, Json] = {
            "account": spent.account,
            "reset_at": utc_text(spent.reset_at),
            "stated": spent.stated,
            "tried": tried,
        }
        await self._requeue(run, work, spent.reset_at, QUOTA_EVENT, data, spent.account)

    async def _requeue(
        self,
        run: Run,
        work: PreparedRun,
        not_before: float,
        kind: str,
        data: dict[str, Json],
        account: str | None = None,
    ) -> None:
        def write() -> None:
            if self._store.runs.hold_back(run.id, not_before, account or work.account, work.spec.endpoint):
                self._store.events.add(run.id, kind, data)

        await self._store.persist(write)

    def _too_long(self, spent: SpentQuota) -> QuotaSpent:
        error = _spent_error(spent)
        error.message += f", and a run waits at most {counted(round(self._max_wait_s), 'second')} for it"
        return error


def _spent_error(spent: SpentQuota) -> QuotaSpent:
    when = utc_text(spent.reset_at)
    until = f"until {when}" if spent.stated else f"for an unknown time; it is tried again at {when}"
    return QuotaSpent(
        f"the usage limit of {spent.account} is spent {until}",
        reset_at=spent.reset_at,
        hint="try again after that, name a `fallback` in the agent's file, or raise `runtime.quota_wait_s`; "
        "`retinue quota list` shows all spent accounts",
        account=spent.account,
        said=spent.reason,
    )


def quota_view(spent: SpentQuota) -> dict[str, Any]:
    """A spent account as JSON."""
    return {
        "account": spent.account,
        "reset_at": utc_text(spent.reset_at),
        "stated": spent.stated,
        "spent_at": utc_text(spent.spent_at),
        "said": spent.reason,
        "waiting_runs": spent.waiting,
    }
