"""Several processes write memories at once, and one is killed at any instant: nothing is lost (P5)."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from retinue.core import MemoryId
from tests.learning.conftest import MemoryBench

PROJECT = Path(__file__).parent.parent.parent
WAIT_S = 60


def start(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.learning.memory_worker", str(folder), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=PROJECT)


def check_file(bench: MemoryBench) -> None:
    """The file is whole, and the index of terms has exactly the memories that can be recalled."""
    (file,) = (bench.data / "memories").glob("*.db")
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        database.execute("INSERT INTO memory_terms (memory_terms) VALUES ('integrity-check')")
        live = "SELECT seq FROM memories WHERE forgotten_at IS NULL AND superseded_by IS NULL ORDER BY seq"
        indexed = "SELECT rowid FROM memory_terms ORDER BY rowid"
        assert database.execute(live).fetchall() == database.execute(indexed).fetchall()
        database.rollback()


def test_two_processes_write_at_once_and_nothing_is_lost_or_doubled_P5(
    bench: MemoryBench, tmp_path: Path
) -> None:
    workers = [start(tmp_path, name, 12) for name in ("one", "two")]
    printed = [worker.communicate(timeout=WAIT_S)[0].split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    stored = {each.memory.id: each.memory for each in (*bench.memories.all(), *bench.memories.all(gone=True))}
    for ids in printed:
        assert len(ids) == 12 and set(ids) <= stored.keys()
        for old, new in zip(ids[::2], ids[1::2], strict=True):
            assert stored[MemoryId(old)].superseded_by == new
    shared = [memory.text for memory in stored.values() if memory.text.startswith("Shared")]
    assert len(shared) == len(set(shared)) == 12
    check_file(bench)


def test_a_killed_process_leaves_whole_memories_P5(bench: MemoryBench, tmp_path: Path) -> None:
    for victim in range(2):
        worker = start(tmp_path, f"victim{victim}", 1_000)
        assert worker.stdout is not None
        printed = [worker.stdout.readline().strip() for _ in range(5 + victim)]
        worker.kill()
        printed += worker.stdout.read().split()
        worker.wait(WAIT_S)
        worker.stdout.close()
        for memory_id in printed:
            memory = bench.memories.get(memory_id).memory
            assert memory.text.endswith(f"victim{victim}")
            if memory.superseded_by is not None:
                assert bench.memories.get(memory.superseded_by).memory.supersedes == (memory.id,)
        check_file(bench)
    assert bench.add("Life goes on")
    assert bench.texts("does life go on?") == ["Life goes on"]
