"""The SQLite file under several processes, several versions and bad places."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from retinue.core import Conflict, InternalError, OwnerId, RunId, RunStatus, RunUnknown, Unavailable
from retinue.store import FileLock, Store
from retinue.store.data_folder import DataFolder, filesystem_type, mount_type, refuse_network_filesystem
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


def test_eight_processes_may_start_at_once_on_a_fresh_folder(tmp_path: Path) -> None:
    """P5: none fails, nothing is created twice, every record is there."""
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


def test_the_folder_of_an_older_version_is_brought_up_to_date(tmp_path: Path) -> None:
    """Each released step, applied alone, leads to what a fresh folder gets."""
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


def test_the_folder_of_a_newer_version_is_refused_untouched(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    database = sqlite3.connect(tmp_path / "retinue.db")
    database.execute("PRAGMA user_version = 999")
    database.close()
    with pytest.raises(Unavailable, match="newer version of retinue") as refused:
        Store.open(tmp_path)
    assert refused.value.hint


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """P5: half a schema is no schema."""
    database = sqlite3.connect(tmp_path / "retinue.db")
    database.execute("CREATE TABLE events (x)")  # in the way of the third step
    database.close()
    with pytest.raises(Unavailable):
        Store.open(tmp_path)
    database = sqlite3.connect(tmp_path / "retinue.db")
    tables = database.execute("SELECT name FROM sqlite_master").fetchall()
    database.close()
    assert tables == [("events",)]


def test_a_file_that_is_no_database_is_refused_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "retinue.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(Unavailable, match="cannot be used") as refused:
        Store.open(tmp_path)
    assert "Move it away" in (refused.value.hint or "")


def test_file_where_a_folder_must_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "owners").write_text("garbage")
    with pytest.raises(Unavailable, match="owners is a file where a folder must be") as refused:
        Store.open(tmp_path)
    assert "move owners away" in (refused.value.hint or "")
    assert str(tmp_path) not in str(refused.value.as_dict())


@pytest.mark.parametrize("name", ["retinue.db", "write.lock"])
def test_a_folder_in_place_of_a_file_is_refused_with_a_reason(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(Unavailable) as refused:
        Store.open(tmp_path)
    assert refused.value.hint
    assert str(tmp_path) not in refused.value.message


def test_a_place_that_cannot_be_a_folder_is_refused_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Unavailable) as refused:
        Store.open(tmp_path / "file" / "data")
    assert refused.value.hint and "RETINUE_DATA_DIR" in refused.value.hint


def test_a_failed_write_changes_nothing_and_tells_nobody(bench: Bench) -> None:
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


def test_a_write_within_a_write_is_part_of_it(bench: Bench) -> None:
    heard: list[list[str]] = []
    bench.store.database.listen(lambda touched: heard.append(list(touched)))
    run = bench.queued()
    with bench.store.database.write():
        bench.admit()
        bench.store.runs.set_summary(run.id, "both")
        assert len(heard) == 1
    assert heard == [[run.id], [run.id]]
    assert bench.status(run.id) is RunStatus.RUNNING


def test_part_of_a_write_that_failed_is_undone_alone_when_its_error_is_swallowed(bench: Bench) -> None:
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
    """It could wait for another process, and everything else with it."""
    with pytest.raises(InternalError, match="event loop"):
        bench.queued()


@pytest.mark.anyio
async def test_cancelled_write_that_waits_for_the_lock_is_given_up(bench: Bench) -> None:
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
async def test_reads_do_not_wait_for_a_write_that_waits(bench: Bench) -> None:
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


def test_a_write_does_not_wait_for_ever_for_a_stuck_process(tmp_path: Path) -> None:
    """P7: never a hang."""
    lock = FileLock(tmp_path / "some.lock")
    waiting = FileLock(tmp_path / "some.lock")
    assert lock.try_acquire()
    assert not waiting.acquire(timeout=0.05)
    lock.release()
    assert waiting.acquire(timeout=0.05)
    waiting.close()
    lock.close()


def test_the_write_ahead_log_stays_small_while_all_write(tmp_path: Path) -> None:
    """Checkpoints are made, under the lock, by whoever writes; nothing is lost by them."""
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


def test_the_connection_is_set_up_as_the_guard_against_corruption_needs(bench: Bench) -> None:
    """SQLite before 3.51.3 must never checkpoint by itself while others write."""
    database = bench.store.database
    settings = {
        name: database.rows(f"PRAGMA {name}")[0][0]
        for name in ("journal_mode", "synchronous", "wal_autocheckpoint", "foreign_keys")
    }
    assert settings == {"journal_mode": "wal", "synchronous": 1, "wal_autocheckpoint": 0, "foreign_keys": 1}


def test_the_version_changes_with_every_write_of_another_connection_only(bench: Bench) -> None:
    database = Database(bench.store.folder)
    before = database.foreign_version()
    assert database.foreign_version() == before
    with database.write() as tx:
        tx.execute("DELETE FROM ledgers")
    assert database.foreign_version() == before
    bench.queued()
    assert database.foreign_version() != before
    database.close()


MOUNTS = """\
22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
30 22 0:40 / /home/me/net rw - nfs4 server:/export rw
31 22 0:41 / /home/me/with\\040space rw - cifs //server/share rw
32 30 0:42 / /home/me/net/local rw - tmpfs tmpfs rw
33 22 0:43 / /mnt/c rw - 9p drvfs rw
34 22 0:44 / /remote rw - ext4 /dev/sdb rw
35 22 0:45 / /remote rw - fuse.sshfs me@server: rw
broken line
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/me/.local/share/retinue", "ext4"),
        ("/home/me/net", "nfs4"),
        ("/home/me/net/deep/er", "nfs4"),
        ("/home/me/network", "ext4"),
        ("/home/me/with space/x", "cifs"),
        ("/home/me/net/local/x", "tmpfs"),
        ("/mnt/c/Users", "9p"),
        ("/remote/x", "fuse.sshfs"),
    ],
)
def test_the_filesystem_of_a_folder_is_that_of_its_innermost_mount(folder: str, kind: str) -> None:
    assert mount_type(Path(folder), MOUNTS) == kind


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "remote"]
)
def test_a_network_filesystem_is_refused_with_what_to_do(kind: str) -> None:
    """P5: locks and shared memory cannot be trusted there."""
    with pytest.raises(Unavailable, match="network filesystem") as refused:
        refuse_network_filesystem(kind)
    assert refused.value.hint and "RETINUE_DATA_DIR" in refused.value.hint


@pytest.mark.parametrize("kind", ["ext4", "btrfs", "apfs", "NTFS", "tmpfs", "overlay", "fuse.ntfs-3g", None])
def test_a_local_filesystem_is_accepted(kind: str | None) -> None:
    refuse_network_filesystem(kind)


def test_the_filesystem_of_this_very_folder_is_known_and_accepted(tmp_path: Path) -> None:
    kind = filesystem_type(tmp_path.resolve())
    assert kind
    refuse_network_filesystem(kind)
