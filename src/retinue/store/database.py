"""The SQLite file of the data folder: transactions, reads, and a thread that writes.

Many processes share the file. Every write and every checkpoint happens under one lock, on a separate file.
SQLite before 3.51.3 can corrupt a database when one connection commits while another checkpoints; under the
lock that cannot happen. The lock also spares writers SQLite's coarse waiting: a write takes well under a
millisecond.

Another process may hold the lock for a long time. So code on an event loop awaits `Database.submit`: it
writes at once if the lock is free, and otherwise leaves the write to a thread that waits for the lock. Reads
use a connection of their own and never wait for a writer, because the database is in WAL mode.

Knows nothing of runs.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from retinue.core import Conflict, FileLock, InternalError, RetinueError, RunId, Unavailable, wait_shielded
from retinue.store.data_folder import DataFolder, create_private_file
from retinue.store.migrations import MIGRATIONS, Migration, migrate

P = ParamSpec("P")
T = TypeVar("T")
Clock = Callable[[], float]
Listener = Callable[[Iterable[RunId]], None]
Row = sqlite3.Row

log = logging.getLogger(__name__)

_HINT = "make the data folder writable and free some space, or set RETINUE_DATA_DIR to another folder"
_DAMAGED = (
    "{name} in the data folder is damaged. Move it away together with {name}-wal and {name}-shm; "
    "Retinue then creates a new one."
)
LOCK_TIMEOUT_S = 10.0
"""How long a write waits for other processes before it fails with `Unavailable`."""
_RETRY_S = 0.5
"""Seconds between two tries of a write that must not be lost."""
_CLOSE_TIMEOUT_S = 2.0
_LOCK_POLL_S = 0.02
_BUSY_TIMEOUT_S = 1.0
_CHECKPOINT_BYTES = 4 * 1024 * 1024
_LOG_BYTES_KEPT = 1024 * 1024
_COMMITS_BETWEEN_CHECKS = 64


def insert_into(table: str, columns: Iterable[str]) -> str:
    """The statement that inserts a mapping with these keys as a row."""
    return _insert_statement(table, tuple(columns))


@cache
def _insert_statement(table: str, columns: tuple[str, ...]) -> str:
    places = ", ".join(f":{column}" for column in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"


class Transaction:
    """One write transaction. `touch` marks the runs whose watchers are notified after the commit."""

    def __init__(self, connection: sqlite3.Connection, now: float) -> None:
        self.execute = connection.execute
        self.now = now
        self.touched: dict[RunId, None] = {}
        self._connection = connection
        self._changes_before = connection.total_changes

    @property
    def has_changes(self) -> bool:
        return self._connection.total_changes != self._changes_before

    def touch(self, run_id: RunId) -> None:
        self.touched[run_id] = None


@dataclass(eq=False)
class _Job:
    """A write that waits for the writer thread."""

    call: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Any]
    deadline: float
    abandoned: bool = field(default=False, init=False)

    def resolve(self, result: Any = None, error: BaseException | None = None) -> None:
        """Report the result to the event loop that waits for it, if it still runs."""

        def settle() -> None:
            if not self.done.done():
                if error is None:
                    self.done.set_result(result)
                else:
                    self.done.set_exception(error)

        try:
            self.loop.call_soon_threadsafe(settle)
        except RuntimeError:  # the loop has been closed
            log.debug("nobody waits for a write any more")


@dataclass(frozen=True, slots=True)
class DatabaseFile:
    """Where a database is, the file whose lock its writers take, and the steps that make its tables."""

    path: Path
    lock: Path
    migrations: Sequence[Migration]
    erase: bool = False
    """Whether what is deleted is overwritten in the file."""


class Database:
    """The SQLite database of a data folder, or another one with its own tables.

    Safe to share between threads. A thread that runs an event loop calls `submit` instead of `write`.
    """

    def __init__(
        self,
        folder: DataFolder,
        clock: Clock = time.time,
        lock_timeout_s: float = LOCK_TIMEOUT_S,
        file: DatabaseFile | None = None,
    ) -> None:
        self.folder = folder
        self._file = file or DatabaseFile(folder.database, folder.write_lock, MIGRATIONS)
        self.clock = clock
        self._lock_timeout_s = lock_timeout_s
        self._listeners: list[Listener] = []
        self._commits = 0
        self._writing = threading.RLock()
        self._current: Transaction | None = None
        self._current_thread = 0
        self._reading = threading.Lock()
        self._jobs: deque[_Job] = deque()
        self._has_jobs = threading.Condition()
        self._closing = False
        self._checkpoint_is_due = False
        self._foreign_version = 0
        self._posted: set[asyncio.Task[None]] = set()
        self._writer_thread: threading.Thread | None = None
        try:
            self._file_lock = FileLock(self._file.lock)
            self._writer = self._connect()
        except OSError as error:
            raise Unavailable("the store cannot be opened", hint=_HINT) from error
        try:
            self._set_up()
            self._writer.execute("PRAGMA busy_timeout = 0")  # `_begin` waits instead
            self._reader = self._connect()
        except BaseException:
            self._close_connections(self._writer)
            raise

    def _connect(self) -> sqlite3.Connection:
        create_private_file(self._file.path)
        try:
            connection = sqlite3.connect(
                self._file.path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            connection.row_factory = sqlite3.Row
            for pragma in (
                "synchronous = NORMAL",
                "wal_autocheckpoint = 0",
                f"journal_size_limit = {_LOG_BYTES_KEPT}",
                "foreign_keys = ON",
                f"secure_delete = {'ON' if self._file.erase else 'OFF'}",
            ):
                connection.execute(f"PRAGMA {pragma}")
        except sqlite3.DatabaseError as error:
            raise self._unavailable(error) from error
        return connection

    def _set_up(self) -> None:
        """Bring the tables up to date. Takes the lock only if they are not."""
        try:
            version: int = self._writer.execute("PRAGMA user_version").fetchone()[0]
            if version == len(self._file.migrations):
                return
        except sqlite3.DatabaseError as error:
            raise self._unavailable(error) from error
        if not self._file_lock.acquire(self._lock_timeout_s):
            raise _busy()
        try:
            with self._translate_errors():
                self._writer.execute("PRAGMA journal_mode = WAL")
                migrate(self._writer, self._file.migrations)
        finally:
            self._file_lock.release()

    # Writing

    @contextmanager
    def write(self, wait_s: float | None = None) -> Generator[Transaction]:
        """Open a transaction. Listeners are called after the commit.

        `wait_s` is how long it waits for other processes; by default, as long as every other write.

        A nested `write` joins the outer transaction; if it fails, only its own changes are rolled back. The
        call may wait for other processes, so it raises `InternalError` on a thread whose event loop is
        running. Use `await submit(...)` there.
        """
        if self.in_transaction:
            with self._nested() as transaction:
                yield transaction
            return
        _refuse_event_loop()
        deadline = time.monotonic() + (self._lock_timeout_s if wait_s is None else wait_s)
        with self._translate_errors():
            while not self._begin(_LOCK_POLL_S):
                if time.monotonic() >= deadline:
                    raise _busy()
            with self._transaction() as transaction:
                yield transaction
        self._announce(transaction)

    async def submit(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that writes, as one transaction, and return its result.

        The call happens here and now if the lock is free, otherwise in the writer thread. Raises
        `Unavailable` if other processes hold the lock for longer than the timeout. A task that is cancelled
        while its write waits drops the write; a write that has begun finishes first.
        """
        if not self._jobs and not self._closing:
            with self._translate_errors():
                if self._begin(0.0):
                    with self._transaction(checkpoint=False) as transaction:
                        result = call(*args, **kwargs)
                    self._announce(transaction)
                    return result
        loop = asyncio.get_running_loop()
        job = _Job(
            partial(call, *args, **kwargs),
            loop,
            loop.create_future(),
            time.monotonic() + self._lock_timeout_s,
        )
        self._enqueue(job)
        try:
            return await asyncio.shield(job.done)
        except asyncio.CancelledError:
            job.abandoned = True
            with self._has_jobs:
                self._has_jobs.notify()
            await wait_shielded(job.done)
            if not job.done.cancelled():
                job.done.exception()  # nobody reads it any more
            raise

    async def persist(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `submit`, but retry while the store is unavailable. For data that must not be lost."""
        warned = False
        while True:
            try:
                return await self.submit(call, *args, **kwargs)
            except Unavailable as error:
                if not warned:
                    log.warning("the store refuses a write, retrying: %s", error.message)
                    warned = True
                await asyncio.sleep(_RETRY_S)

    def post(self, call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Like `persist`, but return at once and write in the background. A write that fails is logged.

        On a thread without an event loop it writes directly.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            call(*args, **kwargs)
            return

        async def deliver() -> None:
            try:
                await self.persist(call, *args, **kwargs)
            except RetinueError as error:
                log.info("a write was refused: %s", error.message)

        task = loop.create_task(deliver())
        self._posted.add(task)
        task.add_done_callback(self._posted.discard)

    async def wait_posted(self) -> None:
        """Wait until every posted write is done."""
        while self._posted:
            await asyncio.wait(tuple(self._posted))

    def _enqueue(self, job: _Job) -> None:
        """Add a job to the queue, and start the writer thread with the first one."""
        with self._has_jobs:
            if self._closing:
                raise Unavailable("the store is closed")
            self._jobs.append(job)
            self._wake_writer()

    def _wake_writer(self) -> None:
        """Have the writer thread look for work. The caller holds the condition."""
        if self._writer_thread is None:
            self._writer_thread = threading.Thread(
                target=self._write_jobs, name="retinue store writer", daemon=True
            )
            self._writer_thread.start()
        self._has_jobs.notify()

    def _write_jobs(self) -> None:
        """The writer thread: waits for the lock as long as a job waits for it, and writes job after job."""
        while True:
            with self._has_jobs:
                while not (self._jobs or self._closing or self._checkpoint_is_due):
                    self._has_jobs.wait()
                if not (self._jobs or self._checkpoint_is_due):
                    return
            self._drop_late_jobs()
            try:
                has_begun = self._begin(_LOCK_POLL_S)
            except sqlite3.DatabaseError as error:
                self._fail_jobs(self._unavailable(error))
                continue
            if has_begun:
                self._write_job(self._next_job())

    def _write_job(self, job: _Job | None) -> None:
        """Write one job in the open transaction. An error is raised in the caller that waits for the job."""
        try:
            with self._translate_errors(), self._transaction() as transaction:
                result = None if job is None or job.abandoned else job.call()
        except BaseException as error:
            if job is not None:
                job.resolve(error=error)
            return
        self._announce(transaction)
        if job is not None:
            job.resolve(result)

    def _drop_late_jobs(self) -> None:
        """Fail the jobs that waited too long, and drop the abandoned ones."""
        with self._has_jobs:
            waiting = list(self._jobs)
            self._jobs.clear()
            now = time.monotonic()
            for job in waiting:
                if job.abandoned:
                    job.resolve()
                elif now >= job.deadline:
                    job.resolve(error=_busy())
                else:
                    self._jobs.append(job)

    def _fail_jobs(self, error: Unavailable) -> None:
        with self._has_jobs:
            self._checkpoint_is_due = False
            while self._jobs:
                self._jobs.popleft().resolve(error=error)

    def _next_job(self) -> _Job | None:
        with self._has_jobs:
            return self._jobs.popleft() if self._jobs else None

    def _begin(self, wait_s: float) -> bool:
        """Lock the file among threads and processes and begin a transaction, if that works within the time.

        `_transaction` must follow. Between two tries others get their turn.
        """
        if not self._writing.acquire(timeout=wait_s) if wait_s else not self._writing.acquire(blocking=False):
            return False
        try:
            if self._file_lock.acquire(wait_s):
                try:
                    self._writer.execute("BEGIN IMMEDIATE")
                    return True
                except sqlite3.OperationalError as error:
                    self._file_lock.release()
                    if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                        raise
                    time.sleep(wait_s)  # a program that does not know our lock writes to the database
        except BaseException:
            self._writing.release()
            raise
        self._writing.release()
        return False

    @contextmanager
    def _transaction(self, *, checkpoint: bool = True) -> Generator[Transaction]:
        """The transaction that `_begin` has begun: committed if the block succeeds. Then unlocks the file.

        A checkpoint that is due may take a while: with `checkpoint=False` it is left to the writer thread.
        """
        transaction = Transaction(self._writer, self.clock())
        self._current_thread, self._current = threading.get_ident(), transaction
        try:
            yield transaction
            self._writer.execute("COMMIT")
            self._checkpoint_if_due(here=checkpoint)
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise
        finally:
            self._current = None
            self._file_lock.release()
            self._writing.release()

    @contextmanager
    def _nested(self) -> Generator[Transaction]:
        """Join the current transaction. If the block fails, only its own changes are rolled back."""
        transaction = cast("Transaction", self._current)
        # The first part of a transaction needs no savepoint: before it there is nothing to keep.
        begin, undo, end = (
            ("SAVEPOINT part", ("ROLLBACK TO part", "RELEASE part"), "RELEASE part")
            if transaction.has_changes
            else (None, ("ROLLBACK", "BEGIN IMMEDIATE"), None)
        )
        if begin:
            self._writer.execute(begin)
        try:
            with self._translate_errors():
                yield transaction
        except BaseException:
            if self._writer.in_transaction:  # some errors, such as a full disk, roll back everything
                for statement in undo:
                    self._writer.execute(statement)
            raise
        if end:
            self._writer.execute(end)

    def _announce(self, transaction: Transaction) -> None:
        if transaction.touched:
            for listener in tuple(self._listeners):
                listener(transaction.touched)

    @property
    def in_transaction(self) -> bool:
        """Whether the calling thread is within a write."""
        return self._current is not None and self._current_thread == threading.get_ident()

    # Reading

    def rows(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Row]:
        """Read the committed state, or, inside a write, the state that the write has produced so far."""
        try:
            if self.in_transaction:
                return self._writer.execute(sql, values).fetchall()
            with self._reading:
                return self._reader.execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise Unavailable(f"the store cannot be read: {error}") from error

    def row(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> Row | None:
        found = self.rows(sql, values)
        return found[0] if found else None

    def foreign_version(self) -> int:
        """Return a number that changes when another process commits. Never waits for a writer.

        While this process writes, it returns the previous number.
        """
        if self._writing.acquire(blocking=False):
            try:
                self._foreign_version = self._writer.execute("PRAGMA data_version").fetchone()[0]
            except sqlite3.DatabaseError as error:
                raise Unavailable(f"the store cannot be read: {error}") from error
            finally:
                self._writing.release()
        return self._foreign_version

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after every write, in the writing thread. Returns a function that stops it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _checkpoint_if_due(self, *, here: bool) -> None:
        """Runs under the lock, so nobody commits meanwhile; the next writer then starts the log afresh."""
        self._commits += 1
        if self._commits % _COMMITS_BETWEEN_CHECKS == 0:
            wal = self._file.path.with_name(self._file.path.name + "-wal")
            self._checkpoint_is_due |= wal.stat().st_size >= _CHECKPOINT_BYTES
        if not self._checkpoint_is_due:
            return
        if here:
            self._checkpoint_is_due = False
            self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        else:
            with self._has_jobs:
                self._wake_writer()

    def empty_log(self) -> None:
        """Move the log into the file, so that nothing of what was deleted is left in it."""
        with self._writing, self._translate_errors():
            if not self._file_lock.acquire(self._lock_timeout_s):
                raise _busy()
            try:
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                self._file_lock.release()

    def close(self) -> None:
        """Write the queued jobs, waiting at most `_CLOSE_TIMEOUT_S` for the lock, and close the file."""
        with self._has_jobs:
            self._closing = True
            end = time.monotonic() + _CLOSE_TIMEOUT_S
            for job in self._jobs:
                job.deadline = min(job.deadline, end)
            self._has_jobs.notify()
        if self._writer_thread is not None:
            self._writer_thread.join()
        self._close_connections(self._reader, self._writer)

    def _close_connections(self, *connections: sqlite3.Connection) -> None:
        """Close under the lock, because SQLite checkpoints when the last connection closes."""
        locked = self._file_lock.acquire(_CLOSE_TIMEOUT_S)
        for connection in connections:
            connection.close()
        if locked:
            self._file_lock.release()
        self._file_lock.close()

    @contextmanager
    def _translate_errors(self) -> Generator[None]:
        """Turn SQLite's exceptions into `Conflict` and `Unavailable`."""
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise Conflict(f"the store refused the change: {error}") from error
        except sqlite3.DatabaseError as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: sqlite3.DatabaseError) -> Unavailable:
        damaged = _DAMAGED.format(name=self._file.path.relative_to(self.folder.path).as_posix())
        hint = _HINT if isinstance(error, sqlite3.OperationalError) else damaged
        return Unavailable(f"the store cannot be used: {error}", hint=hint)


def _busy() -> Unavailable:
    return Unavailable(
        "the store is busy: another process holds its lock",
        hint="look for a stopped retinue process and end it",
    )


def _refuse_event_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise InternalError("a write was called on the event loop; await Store.write instead")
