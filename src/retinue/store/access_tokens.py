"""Bearer tokens: one for the server of this data folder, and one for each run's processes.

The server's token is a file that is created on first use and that only its owner can read. With a run's
token, its processes prove which run they belong to; the store keeps only its digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

from retinue.core import RunId, Unauthorized, Unavailable
from retinue.store.data_folder import make_private_folder
from retinue.store.database import Database

TOKEN_FILE = "token"  # noqa: S105 - a file name


def load_or_create_token(data_dir: Path) -> str:
    """Return the server's token. Two servers that start at once on a new folder get the same one."""
    path = data_dir / TOKEN_FILE
    try:
        make_private_folder(data_dir)
        if not path.exists():
            _create(data_dir, path)
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a token"
        raise Unavailable(f"the token in the data folder cannot be used: {reason}", hint=_FIX) from None
    if len(token) < 32:
        raise Unavailable("the token in the data folder is too short to be safe", hint=_FIX)
    return token


def replace_token(data_dir: Path) -> str:
    """Create a new token. Running servers accept the old one until they restart."""
    (data_dir / TOKEN_FILE).unlink(missing_ok=True)
    return load_or_create_token(data_dir)


_FIX = "run `retinue token --new`, and check that the data folder (`retinue config`) is writable"


def _create(data_dir: Path, path: Path) -> None:
    # Write a draft, then link it into place: a reader never sees half a token, and of two writers the first
    # one wins.
    draft = data_dir / f".{TOKEN_FILE}-{os.getpid()}-{secrets.token_hex(4)}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
    try:
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()


class ChildTokens:
    """The tokens of runs' processes, which connect to this server."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def issue(self, run_id: RunId) -> str:
        """Create a token for this run. It replaces the run's previous token."""
        token = secrets.token_urlsafe(32)
        with self._database.write() as tx:
            tx.execute(
                "INSERT OR REPLACE INTO child_tokens (run_id, digest) VALUES (?, ?)", (run_id, _digest(token))
            )
        return token

    def run_of(self, token: str) -> RunId:
        """Return the active run that the token was issued to, or raise `Unauthorized`.

        Compares digests, so the time it takes reveals nothing about a token.
        """
        row = self._database.row(
            "SELECT runs.id FROM child_tokens JOIN runs ON runs.id = child_tokens.run_id"
            " WHERE digest = ? AND runs.ended_at IS NULL",
            (_digest(token),),
        )
        if row is None:
            raise Unauthorized(
                "the token belongs to no active run",
                hint="only programs that a run has started can connect, and only while it runs",
            )
        return RunId(row["id"])


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
