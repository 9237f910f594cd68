"""The SQLite file: one connection, one write at a time over all processes. Knows nothing of runs.

Every write, and every checkpoint, happens under one lock on a file of our own. SQLite before 3.51.3 can
corrupt a database when one connection commits while another checkpoints; under the lock that cannot
happen. The lock also spares writers SQLite's coarse waiting: a write takes well under a millisecond.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from retinue.core import Conflict, InternalError, RunId, Unavailable
from retinue.store.file_lock import FileLock
from retinue.store.folder import DataFolder
from retinue.store.migrations import migrate

Clock = Callable[[], float]
Listener = Callable[[Iterable[RunId]], None]
Row = sqlite3.Row

_HINT = "see that the data folder can be written to, or set RETINUE_DATA_DIR to another one"
_DAMAGED = (
    "retinue.db in the data folder is damaged: move it away, with retinue.db-wal and retinue.db-shm, and a "
    "new one is made; the logs of its runs stay"
)
LOCK_TIMEOUT_S = 10.0
_CHECKPOINT_BYTES = 4 * 1024 * 1024
_LOG_BYTES_KEPT = 1024 * 1024
_COMMITS_BETWEEN_LOOKS = 64


@cache
def _insertion(table: str, columns: tuple[str, ...]) -> str:
    places = ", ".join(f":{column}" for column in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"


class Transaction:
    """One write. `touch` names the runs whose watchers must hear of it."""

    def __init__(self, connection: sqlite3.Connection, now: float) -> None:
        self._connection = connection
        self.now = now
        self.touched: dict[RunId, None] = {}
        self.failed = False
        """Whether a write within this one failed: then none of it may be kept."""

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(sql, values)

    def insert(self, table: str, values: Mapping[str, Any]) -> None:
        self._connection.execute(_insertion(table, tuple(values)), values)

    def touch(self, run_id: RunId) -> None:
        self.touched[run_id] = None


class Database:
    """Safe to share between threads; calls take turns."""

    def __init__(self, folder: DataFolder, clock: Clock = time.time) -> None:
        self.folder = folder
        self.clock = clock
        self._turn = threading.RLock()
        self._listeners: list[Listener] = []
        self._current: Transaction | None = None
        self._commits = 0
        try:
            self._file_lock = FileLock(folder.write_lock)
            self._connection = sqlite3.connect(
                folder.database, timeout=LOCK_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise Unavailable("the store cannot be opened", hint=_HINT) from error
        self._connection.row_factory = sqlite3.Row
        try:
            self._set_up()
        except BaseException:
            self.close()
            raise

    def _set_up(self) -> None:
        with self._locked():
            for pragma in (
                "journal_mode = WAL",
                "synchronous = NORMAL",
                "wal_autocheckpoint = 0",
                f"journal_size_limit = {_LOG_BYTES_KEPT}",
                "foreign_keys = ON",
            ):
                self._connection.execute(f"PRAGMA {pragma}")
            migrate(self._connection)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """The lock among processes, and SQLite's own faults as ours."""
        if not self._file_lock.acquire(LOCK_TIMEOUT_S):
            raise Unavailable(
                "the store is busy: another process has held its lock for too long",
                hint="look for a stopped retinue process and end it",
            )
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise Conflict(f"the store refused the change: {error}") from error
        except sqlite3.DatabaseError as error:
            hint = _HINT if isinstance(error, sqlite3.OperationalError) else _DAMAGED
            raise Unavailable(f"the store cannot be used: {error}", hint=hint) from error
        finally:
            self._file_lock.release()

    @contextmanager
    def write(self) -> Generator[Transaction]:
        """All or nothing; watchers hear of it after the commit. A write within a write is part of it.

        Never await within: another task's write would become part of this one.
        """
        with self._turn:
            if self._current is not None:
                yield from self._part_of(self._current)
                return
            with self._locked():
                self._connection.execute("BEGIN IMMEDIATE")
                self._current = transaction = Transaction(self._connection, self.clock())
                try:
                    yield transaction
                    if transaction.failed:
                        raise InternalError("a part of a write failed, so the whole is undone")
                    self._connection.execute("COMMIT")
                except BaseException:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                    raise
                finally:
                    self._current = None
                self._checkpoint_if_due()
        if transaction.touched:
            for listener in tuple(self._listeners):
                listener(transaction.touched)

    def _part_of(self, whole: Transaction) -> Generator[Transaction]:
        try:
            yield whole
        except BaseException:
            whole.failed = True
            raise

    @property
    def writing(self) -> bool:
        """Whether the calling thread is within a write."""
        with self._turn:
            return self._current is not None

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """One consistent reading."""
        with self._turn:
            try:
                return self._connection.execute(sql, values).fetchall()
            except sqlite3.DatabaseError as error:
                raise Unavailable(f"the store cannot be read: {error}") from error

    def row(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        found = self.rows(sql, values)
        return found[0] if found else None

    def others_version(self) -> int:
        """A number that changes when any other connection commits."""
        return self.rows("PRAGMA data_version")[0][0]

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call it after every write through this object, in the writing thread; returns how to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _checkpoint_if_due(self) -> None:
        """Held under the lock, so nobody commits meanwhile; the next writer then starts the log afresh."""
        self._commits += 1
        if self._commits % _COMMITS_BETWEEN_LOOKS:
            return
        log = self.folder.database.with_name(self.folder.database.name + "-wal")
        if log.stat().st_size >= _CHECKPOINT_BYTES:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """The last connection to close checkpoints, therefore under the lock."""
        with self._turn:
            locked = self._file_lock.acquire(LOCK_TIMEOUT_S)
            self._connection.close()
            if locked:
                self._file_lock.release()
            self._file_lock.close()
