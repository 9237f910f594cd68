"""Gemini's records of its sessions, kept from itself while it loads one. Knows nothing of how it is started.

    HOME/.gemini/tmp/PROJECT/chats/session-2026-01-31T12-00-0123abcd.jsonl

It opens a new record before it has loaded the old one, and names both by the minute and the session's id. In
the minute of the session's beginning that is the same file, and what was said in it is lost.
"""

from __future__ import annotations

from pathlib import Path

SHORT_ID = 8
KEPT = "session-kept-{}.jsonl"
"""Still a session's record by its name, and never the one of a minute."""


def set_aside(home: Path, session_id: str) -> None:
    """Give the session's record a name that no later one gets; empty records beside it go."""
    own = session_id[:SHORT_ID]
    if not own.isalnum():
        return
    for chats in (home / ".gemini" / "tmp").glob("*/chats"):
        if not chats.resolve().is_relative_to(home.resolve()):
            continue  # a link that a run has planted
        kept = chats / KEPT.format(own)
        records = sorted(chats.glob(f"session-*-{own}.jsonl"), key=lambda file: file.stat().st_size)
        if records and not kept.exists():
            records.pop().rename(kept)
        for record in records:
            if record != kept:
                record.unlink()
