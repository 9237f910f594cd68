"""Tokens by which a run's own processes prove which run they belong to. Only digests are kept."""

from __future__ import annotations

import hashlib
import secrets

from retinue.core import RunId, Unauthorized
from retinue.store.database import Database


class ChildTokens:
    def __init__(self, database: Database) -> None:
        self._database = database

    def issue(self, run_id: RunId) -> str:
        """A token for this run alone; a later one replaces it."""
        token = secrets.token_urlsafe(32)
        with self._database.write() as tx:
            tx.execute(
                "INSERT OR REPLACE INTO child_tokens (run_id, digest) VALUES (?, ?)", (run_id, _digest(token))
            )
        return token

    def run_of(self, token: str) -> RunId:
        """The active run that the token was issued to. Digests are compared, so timing tells nothing."""
        row = self._database.row(
            "SELECT runs.id FROM child_tokens JOIN runs ON runs.id = child_tokens.run_id"
            " WHERE digest = ? AND runs.ended_at IS NULL",
            (_digest(token),),
        )
        if row is None:
            raise Unauthorized(
                "the token belongs to no run that is active",
                hint="only programs that a run has started can reach it, and only while it runs",
            )
        return RunId(row["id"])


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
