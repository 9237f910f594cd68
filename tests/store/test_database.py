"""The SQLite file with several processes, several versions and unusable folders."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from retinue.core import Conflict, FileLock, InternalError, OwnerId, RunId, RunStatus, RunUnknown, Unavailable
from retinue.store import Store
from retinue.store.data_folder import DataFolder
from retinue.store.database import Database
from retinue.store.migrations import MIGRATIONS
from tests.store.store_support import DONE, SPEC, Bench

WORKER = Path(__file__).with_name("store_worker.py")


def integrity(folder: Path) -> str:
    database = sqlite3.connect(folder / "retinue.db")
    try:
        return database.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        database.close()


def test_eight_processes_can_start_at_once_on_a_new_folder(tmp_path: Path) -> None:
    """P5: no process fails, nothing is created twice, and every record exists."""
    folder = tmp_path / "data"
    workers = [
        subprocess.Popen(
            [sys.executable, WORKER, "open", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    for worker in workers:
        assert worker.stdout and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("go\n")
        worker.stdin.flush()
    said = [worker.communicate(timeout=30)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 8
    with Store.open(folder) as store:
        assert {line.split()[1] for line in said} == {run.id for run in store.runs.list()}
    assert integrity(folder) == "ok"


def test_database_of_an_older_version_is_migrated(tmp_path: Path) -> None:
    """Every released version is migrated to the schema of a new folder."""
    old = tmp_path / "old"
    old.mkdir()
    database = sqlite3.connect(old / "retinue.db", isolation_level=None)
    MIGRATIONS[0](database)
    database.execute("PRAGMA user_version = 1")
    database.close()
    shapes: list[list[tuple[str, str]]] = []
    for folder in (old, tmp_path / "fresh"):
        with Store.open(folder) as store:
            rows = store.database.rows("SELECT name, sql FROM sqlite_master ORDER BY name")
            shapes.append([(row["name"], row["sql"]) for row in rows])
            assert store.database.rows("PRAGMA user_version")[0][0] == len(MIGRATIONS)
    assert shapes[0] == shapes[1]


def test_database_of_a_newer_version_is_refused_unchanged(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    database = sqlite3.connect(tmp_path / "retinue.db")
    database.execute("PRAGMA user_version = 999")
    database.close()
    with pytest.raises(Unavailable, match="newer version of retinue") as refused:
        Store.open(tmp_path)
    assert refused.value.hint


def test_failed_migration_leaves_nothing_behind(tmp_path: Path) -> None:
    """P5: a partial schema would be unusable."""
    database = sqlite3.connect(tmp_path / "retinue.db")
    database.execute("CREATE TABLE events (x)")  # makes the third migration fail
    database.close()
    with pytest.raises(Unavailable):
        Store.open(tmp_path)
    database = sqlite3.connect(tmp_path / "retinue.db")
    tables = database.execute("SELECT name FROM sqlite_master").fetchall()
    database.close()
    assert tables == [("events",)]


def test_file_that_is_not_a_database_is_refused_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "retinue.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(Unavailable, match="cannot be used") as refused:
        Store.open(tmp_path)
    assert "Move it away" in (refused.value.hint or "")


@pytest.mark.parametrize("name", ["retinue.db", "write.lock"])
def test_folder_in_place_of_the_database_is_refused_with_a_reason(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(Unavailable) as refused:
        Store.open(tmp_path)
    assert refused.value.hint
    assert str(tmp_path) not in refused.value.message


def test_failed_write_changes_nothing_and_notifies_nobody(bench: Bench) -> None:
    heard: list[object] = []
    bench.store.database.listen(heard.append)
    with pytest.raises(Conflict), bench.store.database.write() as tx:
        tx.execute("INSERT INTO events (run_id, at, kind, data) VALUES ('nobody', 1, 'x', '{}')")
    with pytest.raises(ZeroDivisionError), bench.store.database.write() as tx:
        tx.execute("UPDATE runs SET changed_at = 0")
        raise ZeroDivisionError
    assert heard == []
    bench.queued()
    assert len(heard) == 1


def test_nested_write_joins_the_outer_transaction(bench: Bench) -> None:
    heard: list[list[str]] = []
    bench.store.database.listen(lambda touched: heard.append(list(touched)))
    run = bench.queued()
    with bench.store.database.write():
        bench.admit()
        bench.store.runs.set_summary(run.id, "both")
        assert len(heard) == 1
    assert heard == [[run.id], [run.id]]
    assert bench.status(run.id) is RunStatus.RUNNING


def test_failed_nested_write_is_rolled_back_alone(bench: Bench) -> None:
    run, other = bench.queued(), bench.queued()

    def cancel_and_fail() -> None:
        with bench.store.database.write():
            bench.store.runs.request_cancel(other.id)
            bench.store.runs.finish(RunId.new(), DONE)

    with bench.store.database.write():
        bench.store.runs.request_cancel(run.id)
        with contextlib.suppress(RunUnknown):
            cancel_and_fail()
    assert bench.status(run.id) is RunStatus.CANCELED
    assert bench.status(other.id) is RunStatus.QUEUED


@pytest.mark.anyio
async def test_write_on_the_event_loop_is_refused(bench: Bench) -> None:
    """It could wait for another process and block the event loop."""
    with pytest.raises(InternalError, match="event loop"):
        bench.queued()


@pytest.mark.anyio
async def test_cancelled_write_that_waits_for_the_lock_is_dropped(bench: Bench) -> None:
    run = await bench.store.write(bench.queued)
    lock = FileLock(bench.store.folder.write_lock)
    assert lock.acquire(5)
    task = asyncio.create_task(bench.store.write(bench.store.runs.request_cancel, run.id))
    await asyncio.sleep(0)
    task.cancel()
    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await task
    lock.close()
    await bench.store.write(bench.store.runs.set_summary, run.id, "later")
    assert bench.status(run.id) is RunStatus.QUEUED


@pytest.mark.anyio
async def test_reads_do_not_wait_for_a_blocked_write(bench: Bench) -> None:
    run = await bench.store.write(bench.queued)
    lock = FileLock(bench.store.folder.write_lock)
    assert lock.acquire(5)
    task = asyncio.create_task(bench.store.write(bench.store.runs.request_cancel, run.id))
    await asyncio.sleep(0)
    assert bench.status(run.id) is RunStatus.QUEUED
    assert not task.done()
    lock.close()
    async with asyncio.timeout(5):
        assert (await task).status is RunStatus.CANCELED


def test_write_times_out_if_another_process_holds_the_lock(tmp_path: Path) -> None:
    """P7: never a hang."""
    lock = FileLock(tmp_path / "some.lock")
    waiting = FileLock(tmp_path / "some.lock")
    assert lock.try_acquire()
    assert not waiting.acquire(timeout=0.05)
    lock.release()
    assert waiting.acquire(timeout=0.05)
    waiting.close()
    lock.close()


def test_write_ahead_log_stays_small_under_concurrent_writes(tmp_path: Path) -> None:
    """Writers checkpoint under the lock, and nothing is lost."""
    folder = DataFolder.prepare(tmp_path)
    stores = [Store.open(tmp_path) for _ in range(3)]
    owner = OwnerId.new()
    big = "x" * 20_000
    failures: list[BaseException] = []

    def write(store: Store) -> None:
        try:
            for _ in range(150):
                run = store.runs.record(SPEC, owner)
                store.events.add(run.id, "big", {"text": big})
                store.runs.request_cancel(run.id)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=write, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    log = folder.database.with_name("retinue.db-wal")
    assert not failures
    assert log.stat().st_size < 8 * 1024 * 1024 < 450 * 20_000
    assert len(stores[0].runs.list(limit=1000)) == 450
    for store in stores:
        store.close()
    assert integrity(tmp_path) == "ok"


def test_connection_settings_prevent_corruption(bench: Bench) -> None:
    """SQLite before 3.51.3 must never checkpoint automatically while others write."""
    database = bench.store.database
    settings = {
        name: database.rows(f"PRAGMA {name}")[0][0]
        for name in ("journal_mode", "synchronous", "wal_autocheckpoint", "foreign_keys")
    }
    assert settings == {"journal_mode": "wal", "synchronous": 1, "wal_autocheckpoint": 0, "foreign_keys": 1}


def test_foreign_version_changes_only_with_writes_of_other_connections(bench: Bench) -> None:
    database = Database(bench.store.folder)
    before = database.foreign_version()
    assert database.foreign_version() == before
    with database.write() as tx:
        tx.execute("DELETE FROM ledgers")
    assert database.foreign_version() == before
    bench.queued()
    assert database.foreign_version() != before
    database.close()
