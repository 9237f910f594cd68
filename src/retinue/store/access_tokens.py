"""The bearer token of this data folder: made on first use, readable by its owner alone."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

from retinue.core import RunId, Unauthorized, Unavailable
from retinue.store.database import Database

TOKEN_FILE = "token"


def token_of(data_dir: Path) -> str:
    """The token; two servers that start at once on a fresh folder agree on it."""
    path = data_dir / TOKEN_FILE
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _create(data_dir, path)
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a token"
        raise Unavailable(f"the token in the data folder cannot be used: {reason}", hint=_FIX) from None
    if len(token) < 32:
        raise Unavailable("the token in the data folder is too short to be safe", hint=_FIX)
    return token


def new_token(data_dir: Path) -> str:
    """Replace the token; servers that run keep the old one until they are restarted."""
    (data_dir / TOKEN_FILE).unlink(missing_ok=True)
    return token_of(data_dir)


_FIX = "run `retinue token --new`, and check that the data folder (`retinue config`) is writable"


def _create(data_dir: Path, path: Path) -> None:
    # Written whole under another name, then linked into place: a reader never sees half a token, and of two
    # writers the first one wins.
    draft = data_dir / f".{TOKEN_FILE}-{os.getpid()}-{secrets.token_hex(4)}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
    try:
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()


# MERGED child_tokens: Tokens by which a run's own processes prove which run they belong to. Only digests are kept.


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
