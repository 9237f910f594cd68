"""Accounts whose usage limit is spent, and the runs that wait for them. All processes share the state.

An account is named by its executor and by what the provider tells accounts apart by. The name never contains
a key. A queued run with a `not_before` gets no slot before that time, and outlives its server.
"""

from __future__ import annotations

from dataclasses import dataclass

from retinue.core import RunId
from retinue.store.database import Database, Row, Transaction

FORGET_AFTER_S = 7 * 86_400.0
"""Seconds after its end until a limit is removed from the table."""


@dataclass(frozen=True, slots=True)
class SpentQuota:
    """A usage limit that is spent."""

    account: str
    reset_at: float
    """When the account can be used again, in seconds since 1970."""
    spent_at: float
    reason: str
    """What the provider or the program said, redacted."""
    stated: bool
    """Whether the provider said when the limit ends. If not, `reset_at` is when to try again."""
    waiting: int = 0
    """How many runs wait for it."""


class QuotaTable:
    """The spent accounts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, account: str | None) -> SpentQuota | None:
        """The spent limit of an account; None if the account can be used."""
        row = account and self._database.row(
            "SELECT *, 0 AS waiting FROM quotas WHERE account = ? AND reset_at > ?",
            (account, self._database.clock()),
        )
        return _quota_from_row(row) if row else None

    def list(self) -> list[SpentQuota]:
        """The accounts that are spent now, the first to end first."""
        rows = self._database.rows(
            "SELECT *, (SELECT count(*) FROM runs WHERE ended_at IS NULL AND runs.account = quotas.account"
            " AND not_before > :now) AS waiting FROM quotas WHERE reset_at > :now ORDER BY reset_at",
            {"now": self._database.clock()},
        )
        return [_quota_from_row(row) for row in rows]

    def spend(self, account: str, reset_at: float, reason: str, *, stated: bool) -> None:
        """Record that an account is spent, and hold back its queued runs."""
        with self._database.write() as tx:
            tx.execute("DELETE FROM quotas WHERE reset_at < ?", (tx.now - FORGET_AFTER_S,))
            tx.execute(
                "INSERT OR REPLACE INTO quotas (account, reset_at, spent_at, reason, stated)"
                " VALUES (?, ?, ?, ?, ?)",
                (account, reset_at, tx.now, reason, stated),
            )
            _move_waiting(tx, account, reset_at)

    def clear(self, account: str) -> bool:
        """Let an account be used again, and its runs start. False if it is not spent."""
        with self._database.write() as tx:
            cleared = tx.execute(
                "DELETE FROM quotas WHERE account = ? AND reset_at > ?", (account, tx.now)
            ).rowcount
            _move_waiting(tx, account, tx.now)
        return bool(cleared)


def _move_waiting(tx: Transaction, account: str, not_before: float) -> None:
    """Set when the queued runs of an account may start."""
    waiting = tx.execute(
        "SELECT id FROM runs WHERE ended_at IS NULL AND status = 'queued' AND account = ?", (account,)
    ).fetchall()
    tx.execute(
        "UPDATE runs SET not_before = ?, changed_at = ?"
        " WHERE ended_at IS NULL AND status = 'queued' AND account = ?",
        (not_before, tx.now, account),
    )
    for row in waiting:
        tx.touch(RunId(row["id"]))


def _quota_from_row(row: Row) -> SpentQuota:
    return SpentQuota(
        account=row["account"],
        reset_at=row["reset_at"],
        spent_at=row["spent_at"],
        reason=row["reason"],
        stated=bool(row["stated"]),
        waiting=row["waiting"],
    )
