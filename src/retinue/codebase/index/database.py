"""The SQLite file of an index: where it is, how it is opened, checked and removed.

Knows nothing of the tables' contents.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from retinue.codebase.codebase import Codebase

VERSION = 9
"""Version of the tables and of everything stored in them. Each version has its own file."""
UNUSED_DAYS = 30
"""An index that no question has used for this long is removed."""
_BUSY_SECONDS = 5.0
_PAGE_BYTES = 16_384
"""A row holds all words of a file, so smaller pages would split almost every row."""


def index_file(folder: Path, codebase: Codebase) -> Path:
    """Return the path of the index for these roots, this policy and this version."""
    key = repr((VERSION, [str(root.path) for root in codebase.roots], codebase.policy))
    return folder / f"{hashlib.blake2b(key.encode(), digest_size=12).hexdigest()}.sqlite3"


def index_exists(folder: Path, codebase: Codebase) -> bool:
    """Return whether an index was built. It may be out of date or damaged."""
    return index_file(folder, codebase).exists()


def open_database(file: Path, tables: str) -> sqlite3.Connection:
    """Connect to an index file and create `tables` if it has none.

    Raises sqlite3.Error or OSError if the folder cannot hold the file.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):  # SQLite would create a file that others can read
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    database = sqlite3.connect(file, timeout=_BUSY_SECONDS, isolation_level=None)
    database.execute("PRAGMA synchronous=NORMAL")
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name='holdings'").fetchone():
        database.execute(f"PRAGMA page_size={_PAGE_BYTES}")
        database.execute("PRAGMA journal_mode=WAL")
        # In one transaction: a file with only some of the tables would look like an index forever.
        database.executescript(f"BEGIN IMMEDIATE;{tables}COMMIT;")
    return database


@contextmanager
def corrupt_row_errors() -> Generator[None]:
    """Turn errors of unpacking a row into sqlite3.DatabaseError, which SQLite raises for a damaged page."""
    try:
        yield
    except (ValueError, LookupError, TypeError) as error:
        raise sqlite3.DatabaseError("a row of the index is corrupt") from error


def discard_if_damaged(folder: Path, codebase: Codebase, *, has_corrupt_row: bool = False) -> bool:
    """Remove the index if SQLite's check fails or a corrupt row was seen. Return whether it was removed.

    An index that is only busy stays.
    """
    if not index_exists(folder, codebase):
        return False
    file = index_file(folder, codebase)
    database = sqlite3.connect(file, timeout=_BUSY_SECONDS)
    try:
        is_sound = not has_corrupt_row and database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.OperationalError:
        return False
    except sqlite3.DatabaseError:
        is_sound = False
    finally:
        database.close()
    if not is_sound:
        _remove(file)
    return not is_sound


def remove_unused_indexes(folder: Path) -> None:
    """Remove indexes that no question has used for `UNUSED_DAYS`, such as those of deleted worktrees."""
    oldest = time.time() - UNUSED_DAYS * 86_400
    for file in folder.glob("*.sqlite3"):
        with suppress(OSError):  # already removed, or open on a system that locks open files
            if file.stat().st_mtime < oldest:
                _remove(file)


def _remove(file: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
