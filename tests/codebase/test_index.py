"""An index saves work and changes no answer, whatever happens to the files or to itself (P8, P10)."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from array import array
from pathlib import Path

import pytest

from retinue.codebase import Codebase, Located, Locator, Opener, Policy
from retinue.codebase.index import Index
from retinue.codebase.index.index import BATCH_BYTES, BATCH_FILES, MAX_UNINDEXED_FILES
from retinue.codebase.index.index_evidence import MAX_CACHED_NUMBERS, TermCountCache, index_snapshot
from retinue.codebase.index.manifest import (
    MISSING_STAMP,
    UNSTABLE_STAMP,
    changed_positions,
    file_stamp,
    load_manifests_cached,
    stable_stamp,
)
from retinue.codebase.parse.outline import MAX_CHUNKS
from retinue.core import Canceled, Root, Stop

REPORT = "The retry delay is wrong\n\nIt is computed twice."
QUESTIONS = [
    "where is the retry delay computed?",
    "`parse_invoice` fails\n\nIt raises in billing/invoice.py when the total is empty.",
    "how are widgets cached?",
    "which test covers the retry delay?",
    "größe",
    "Result",
    REPORT,
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for number in range(30):
        write(
            root, f"lib/part_{number}.py", f"def widget_{number}():\n    return cache['widget', {number}]\n"
        )
    write(
        root,
        "net/retry.py",
        "# Größe\nclass Result: pass\nclass RetryPolicy:\n    def delay(self):\n        return 1\n",
    )
    write(root, "billing/invoice.py", "def parse_invoice(text):\n    total = compute_total(text)\n")
    write(root, "tests/test_retry.py", "def test_retry_delay():\n    pass\n")
    write(root, "data.bin.txt", "a\0b")
    return root


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def build_index(indexed: Locator, root: Path) -> None:
    """Build the index of files that are old enough for a stable stamp. Others are read again anyway."""
    wait_for_stable_stamps(root)
    assert indexed.update_index(Stop())


def locators(root: Path, folder: Path) -> tuple[Locator, Locator]:
    codebase = Codebase([Root.at(root)])
    return Locator(codebase), Locator(codebase, folder)


def ask(locator: Locator, question: str) -> Located:
    return locator.locate(question, 20, Stop())


def paths(located: Located) -> list[str]:
    return [place.path for place in located.places]


def test_answers_are_the_same_with_and_without_an_index(project: Path, tmp_path: Path) -> None:
    scan, indexed = locators(project, tmp_path / "index")
    build_index(indexed, project)
    for question in QUESTIONS:
        assert ask(indexed, question) == ask(scan, question)


def test_several_batches_give_the_answers_of_a_scan(project: Path, tmp_path: Path) -> None:
    """Batches end both by the number of files and by their size."""
    for number in range(2 * BATCH_FILES):
        write(project, f"many/gadget_{number}.py", f"def gadget_{number}():\n    return retry_delay\n")
    for letter in "abc":
        text = f"def large_{letter}(): delay\n" + "    call(1)\n" * (BATCH_BYTES // 25)
        write(project, f"large/{letter}.py", text)
    scan, indexed = locators(project, tmp_path / "index")
    build_index(indexed, project)
    for question in (
        *QUESTIONS,
        "gadget_7",
        f"gadget_{2 * BATCH_FILES - 1}",
        "large_a",
        "large_b",
        "large_c",
    ):
        assert ask(indexed, question) == ask(scan, question)
    assert paths(ask(indexed, "large_c"))[0] == "large/c.py"


def test_a_file_over_the_chunk_limit_scores_as_in_a_scan(project: Path, tmp_path: Path) -> None:
    write(project, "lib/endless.py", "def widget(): cache\n" * (MAX_CHUNKS + 500))
    scan, indexed = locators(project, tmp_path / "index")
    build_index(indexed, project)
    for question in QUESTIONS:
        assert ask(indexed, question) == ask(scan, question)


def change(root: Path) -> None:
    write(root, "net/retry.py", "class Other:\n    pass\n")


def add(root: Path) -> None:
    write(root, "net/again.py", "def retry_delay(): pass\n")


def add_in_new_folder(root: Path) -> None:
    write(root, "fresh/deep/again.py", "def retry_delay(): pass\n")


def remove(root: Path) -> None:
    (root / "net/retry.py").unlink()


def rename(root: Path) -> None:
    (root / "net").rename(root / "network")


def replace_by_same_size_and_time(root: Path) -> None:
    file = root / "net/retry.py"
    status = file.stat()
    swapped = root / "net/swapped"
    swapped.write_text(
        file.read_text(encoding="utf-8").replace("RetryPolicy", "QuietPolicy"), encoding="utf-8"
    )
    os.utime(swapped, ns=(status.st_atime_ns, status.st_mtime_ns))
    swapped.replace(file)


def replace_at_the_same_instant(root: Path) -> None:
    """Replace the content twice within one clock tick, in place, with the same size."""
    file = root / "net/retry.py"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("RetryPolicy", "QuietPolicy"), encoding="utf-8")
    file.write_text(text.replace("RetryPolicy", "LoudyPolicy"), encoding="utf-8")


def ignore(root: Path) -> None:
    write(root, ".gitignore", "net/\n")


def ignore_below(root: Path) -> None:
    """Add an ignore file with a rule for folders that did not change."""
    write(root, "net/deep/er/again.py", "def retry_delay(): pass\n")
    write(root, "net/.ignore", "er/\n")


def exclude(root: Path) -> None:
    write(root, ".git/info/exclude", "retry.py\n")


def swap_by_a_link(root: Path) -> None:
    (root / "net/retry.py").unlink()
    (root / "net/retry.py").symlink_to("../billing/invoice.py")


def swap_files(root: Path) -> None:
    (root / "net/retry.py").rename(root / "net/kept")
    (root / "billing/invoice.py").rename(root / "net/retry.py")
    (root / "net/kept").rename(root / "billing/invoice.py")


def make_empty(root: Path) -> None:
    write(root, "net/retry.py", "")


@pytest.mark.parametrize(
    "edit",
    [
        *(change, add, add_in_new_folder, remove, rename, replace_by_same_size_and_time, make_empty),
        *(replace_at_the_same_instant, ignore, ignore_below, exclude, swap_by_a_link, swap_files),
    ],
)
def test_every_change_is_seen_in_the_next_answer(project: Path, tmp_path: Path, edit: object) -> None:
    """P8: answers are never stale."""
    assert callable(edit)
    scan, indexed = locators(project, tmp_path / "index")
    build_index(indexed, project)
    ask(indexed, QUESTIONS[0])
    edit(project)
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])
    assert indexed.update_index(Stop())
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])


@pytest.mark.parametrize(
    ("changed_ns", "looked_ns", "is_sure"),
    [
        (5_500_000_000, 5_500_000_000, False),
        (5_500_000_000, 5_599_999_999, False),
        (5_500_000_000, 5_600_000_000, True),
        (
            5_000_000_000,
            7_000_000_000,
            False,
        ),  # a clock with whole seconds, or one that ticks every two seconds
        (5_000_000_000, 7_100_000_000, True),
    ],
)
def test_a_file_that_may_have_changed_within_one_clock_tick_is_read_again(
    tmp_path: Path, changed_ns: int, looked_ns: int, is_sure: bool
) -> None:
    """P8: a second edit may have the same size and time as the first."""
    file = tmp_path / "a.py"
    file.touch()
    status = file.stat()
    seconds = changed_ns // 1_000_000_000
    told = os.stat_result(
        (*status[:7], seconds, seconds, seconds),
        {"st_mtime_ns": changed_ns, "st_ctime_ns": changed_ns, "st_atime_ns": 0},
    )
    assert (stable_stamp(told, looked_ns) != UNSTABLE_STAMP) == is_sure
    assert changed_positions([os.fsencode(file)], array("q", [UNSTABLE_STAMP])) == [0]
    assert changed_positions([os.fsencode(file)], array("q", [file_stamp(status)])) == []


def test_files_after_a_missing_one_are_still_checked(tmp_path: Path) -> None:
    files = [tmp_path / name for name in "abcde"]
    for file in files[1:4]:
        file.touch()
    known = array(
        "q", [MISSING_STAMP, file_stamp(files[1].stat()), file_stamp(files[2].stat()), 12345, 12345]
    )
    files[1].unlink()
    assert changed_positions(list(map(os.fsencode, files)), known) == [1, 3, 4]


def test_cached_counts_are_replaced_when_another_process_updates_the_index(
    project: Path, tmp_path: Path
) -> None:
    """P8: a process caches what it read from the index only as long as the index does not change."""
    scan, indexed = locators(project, tmp_path / "index")
    _, other = locators(project, tmp_path / "index")
    build_index(indexed, project)
    for number in range(3):
        ask(indexed, QUESTIONS[2])
        for part in range(MAX_UNINDEXED_FILES + 1):
            write(project, f"lib/part_{part}.py", f"def gadget_{part}():\n    return cache[{number}]\n")
        write(project, f"lib/widget_{number}.py", "def widget():\n    return cache\n")
        build_index(other, project)
        assert f"lib/widget_{number}.py" in paths(ask(indexed, QUESTIONS[2]))
        assert ask(indexed, QUESTIONS[2]) == ask(scan, QUESTIONS[2])


def test_cached_counts_of_one_index_are_not_used_for_another(project: Path, tmp_path: Path) -> None:
    """P6: both policies have the same files, sizes and stamps, but not the same texts."""
    write(project, "lib/long.py", "def widget(): pass\n" * 100)
    wait_for_stable_stamps(project)
    for policy, count in ((Policy(), 100), (Policy(max_file_bytes=1_000), 0), (Policy(), 100)):
        index = Index(tmp_path / "index", Codebase([Root.at(project)], policy))
        index.update_files(Stop())
        with index.reading():
            checks = index.check_manifests(Stop())
            assert checks is not None
            evidence = index.evidence(checks, ["widget"], Stop())
            assert evidence.counts["widget"].get(evidence.paths.index("lib/long.py"), 0) == count
        index.close()


def test_the_count_cache_is_bounded() -> None:
    counts = TermCountCache()
    for term in map(str, range(10)):
        counts.add(term, dict.fromkeys(range(MAX_CACHED_NUMBERS // 4), 1))
        assert counts.get(term)
        assert sum(counts.get(str(other)) is not None for other in range(10)) <= 4


def test_caches_hold_at_most_two_codebases(tmp_path: Path) -> None:
    for number in range(4):
        root = tmp_path / f"project_{number}"
        write(root, "net/retry.py", f"class RetryPolicy:\n    delay = {number}\n")
        scan, indexed = locators(root, tmp_path / "index")
        build_index(indexed, root)
        for question in QUESTIONS:
            assert ask(indexed, question) == ask(scan, question)
    for cache in (load_manifests_cached, index_snapshot):
        assert cache.cache_info().currsize == 2


def test_a_word_repeated_many_times_is_counted_as_by_a_scan(project: Path, tmp_path: Path) -> None:
    text = "def f(retry):\n    retry retry retry, retry_retry\n\ndef retrying(): retry retry\n\nretry = 1\n"
    write(project, "lib/again.py", text * 3)
    scan, indexed = locators(project, tmp_path / "index")
    build_index(indexed, project)
    assert "lib/again.py" in paths(ask(indexed, "retry"))
    assert ask(indexed, "retry") == ask(scan, "retry")


def test_a_file_in_a_folder_that_was_empty_is_seen(project: Path, tmp_path: Path) -> None:
    (project / "hollow").mkdir()
    _, indexed = locators(project, tmp_path / "index")
    build_index(indexed, project)
    write(project, "hollow/zeppelin.py", "def zeppelin(): pass\n")
    assert paths(ask(indexed, "zeppelin")) == ["hollow/zeppelin.py"]


def test_a_changed_rule_in_an_ignored_ignore_file_is_seen(project: Path, tmp_path: Path) -> None:
    """P8: no walk returns the ignore file, but it is watched nonetheless."""
    write(project, ".ignore", ".ignore\nnet/\n")
    scan, indexed = locators(project, tmp_path / "index")
    build_index(indexed, project)
    assert "net/retry.py" not in paths(ask(indexed, QUESTIONS[0]))
    write(project, ".ignore", ".ignore\nlib/\n")
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])
    assert "net/retry.py" in paths(ask(indexed, QUESTIONS[0]))


def test_a_file_added_while_the_roots_were_walked_is_seen(project: Path, tmp_path: Path) -> None:
    """P8: the stamps of folders are as old as the start of the walk."""
    _, indexed = locators(project, tmp_path / "index")
    write(project, "net/zeppelin.py", "def zeppelin(): pass\n")
    assert indexed.update_index(Stop())
    write(project, "net/zeppelin_two.py", "def zeppelin(): pass\n")
    assert set(paths(ask(indexed, "zeppelin"))) == {"net/zeppelin.py", "net/zeppelin_two.py"}


def test_joined_words_are_found_with_and_without_an_index(project: Path, tmp_path: Path) -> None:
    write(project, "net/snake.py", "def retry_pool(): pass\n")
    scan, indexed = locators(project, tmp_path / "index")
    build_index(indexed, project)
    assert "net/snake.py" in paths(ask(scan, "retrypool"))
    assert ask(indexed, "retrypool") == ask(scan, "retrypool")


def test_a_question_tells_whether_the_index_is_out_of_date(project: Path, tmp_path: Path) -> None:
    scan, indexed = locators(project, tmp_path / "index")
    assert indexed.index_is_out_of_date
    assert not scan.index_is_out_of_date
    build_index(indexed, project)
    assert indexed.update_index(Stop())
    ask(indexed, QUESTIONS[0])
    assert not indexed.index_is_out_of_date
    change(project)
    ask(indexed, QUESTIONS[0])
    assert not indexed.index_is_out_of_date  # one small file costs less to read than to index
    add(project)
    ask(indexed, QUESTIONS[0])
    assert indexed.index_is_out_of_date


def test_a_question_writes_nothing_into_the_index(project: Path, tmp_path: Path) -> None:
    _, indexed = locators(project, tmp_path / "index")
    build_index(indexed, project)
    change(project)
    [file] = (tmp_path / "index").glob("*.sqlite3")
    before = file.read_bytes()
    ask(indexed, QUESTIONS[0])
    assert file.read_bytes() == before


def test_only_changed_files_are_read_again(project: Path, tmp_path: Path) -> None:
    wait_for_stable_stamps(project)
    index = Index(tmp_path / "index", Codebase([Root.at(project)]))
    index.update_files(Stop())
    assert changed_files(index) == []
    change(project)
    assert changed_files(index) == ["net/retry.py"]
    index.close()


def changed_files(index: Index) -> list[str]:
    """Return the files that a question would read from disk."""
    checks = index.check_manifests(Stop())
    assert checks is not None
    return [one.manifest.paths[position] for one in checks for position in one.changed]


def wait_for_stable_stamps(root: Path) -> None:
    """Wait until stamps are stable, without sleeping: watch the times of new files."""
    probe = root.parent / "probe"
    first = None
    while True:
        probe.write_text("x")
        now = probe.stat().st_ctime_ns
        first = first or now
        if now - first > 110_000_000:
            return


def test_nothing_is_written_into_the_root(project: Path, tmp_path: Path) -> None:
    before = sorted(str(path) for path in project.rglob("*"))
    _, indexed = locators(project, tmp_path / "index")
    assert indexed.update_index(Stop())
    ask(indexed, QUESTIONS[0])
    assert sorted(str(path) for path in project.rglob("*")) == before


@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 100])
def test_a_damaged_index_is_replaced_by_a_scan(project: Path, tmp_path: Path, damage: bytes) -> None:
    scan, indexed = locators(project, tmp_path / "index")
    assert indexed.update_index(Stop())
    for file in (tmp_path / "index").iterdir():
        file.write_bytes(damage)
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])
    assert indexed.update_index(Stop())
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE holdings SET ids = x'010203'",
        "UPDATE holdings SET stamps = NULL",
        "UPDATE holdings SET stamps = substr(stamps, 9)",
        "UPDATE holdings SET watched = CAST(watched || x'0061' AS BLOB)",
        "UPDATE files SET places = x'01'",
        "UPDATE files SET names = names || char(10) || 'more'",
        "UPDATE files SET words = ''",
        "UPDATE blocks SET ends = x''",
        "UPDATE blocks SET codes = x'0102'",
    ],
)
def test_an_index_with_corrupt_rows_is_replaced_by_a_scan(project: Path, tmp_path: Path, damage: str) -> None:
    scan, indexed = locators(project, tmp_path / "index")
    build_index(indexed, project)
    [file] = (tmp_path / "index").glob("*.sqlite3")
    database = sqlite3.connect(file)
    database.execute(damage)
    database.commit()
    database.close()
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])
    assert indexed.update_index(Stop())
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])
    database = sqlite3.connect(file)
    [places] = database.execute("SELECT places FROM files WHERE names LIKE '%RetryPolicy%'").fetchone()
    database.close()
    assert len(places) > 1


def test_a_folder_that_cannot_hold_an_index_is_no_error(project: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    scan, indexed = locators(project, tmp_path / "file")
    assert not indexed.update_index(Stop())
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size to stand for a full disk")
def test_an_update_on_a_full_disk_is_not_retried(project: Path, tmp_path: Path) -> None:
    """P2: only a lock of another process may be free a moment later."""
    import resource

    class Counted(Codebase):
        openers = 0

        def opener(self, stop: Stop) -> Opener:
            self.openers += 1
            return super().opener(stop)

    codebase, fortunate = Counted([Root.at(project)]), Counted([Root.at(project)])
    assert Locator(fortunate, tmp_path / "elsewhere").update_index(Stop())
    Index(tmp_path / "index", codebase).close()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))
        assert not Locator(codebase, tmp_path / "index").update_index(Stop())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert codebase.openers == fortunate.openers
    scan, indexed = locators(project, tmp_path / "index")
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])


def test_a_canceled_update_leaves_the_index_as_it_was(project: Path, tmp_path: Path) -> None:
    scan, indexed = locators(project, tmp_path / "index")
    stop = Stop()
    stop.cancel()
    with pytest.raises(Exception, match="canceled"):
        indexed.update_index(stop)
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])
    assert indexed.update_index(Stop())
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])


class StopAfter(Stop):
    """Cancels itself at a given check."""

    def __init__(self, checks: int) -> None:
        super().__init__()
        self._left = checks

    def check(self) -> None:
        self._left -= 1
        if not self._left:
            self.cancel()
        super().check()


def test_an_update_canceled_midway_changes_nothing_in_the_index(project: Path, tmp_path: Path) -> None:
    """P8: the update is rolled back, so caches must not contain it either."""
    scan, indexed = locators(project, tmp_path / "index")
    build_index(indexed, project)
    ask(indexed, QUESTIONS[2])
    edited = [f"lib/part_{part}.py" for part in range(MAX_UNINDEXED_FILES + 1)]
    for path in edited:
        write(project, path, "def gadget():\n    return cache\n")
    wait_for_stable_stamps(project)
    with pytest.raises(Canceled):
        indexed.update_index(StopAfter(MAX_UNINDEXED_FILES // 2))
    index = Index(tmp_path / "index", Codebase([Root.at(project)]))
    assert changed_files(index) == sorted(edited)
    index.close()
    assert ask(indexed, QUESTIONS[2]) == ask(scan, QUESTIONS[2])


def test_threads_may_ask_and_update_at_once(project: Path, tmp_path: Path) -> None:
    scan, indexed = locators(project, tmp_path / "index")
    expected = [ask(scan, question) for question in QUESTIONS]
    answers: list[list[Located]] = []

    def work() -> None:
        assert indexed.update_index(Stop())
        answers.append([ask(indexed, question) for question in QUESTIONS])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert answers == [expected] * 4


PREPARE = """
import sys
from pathlib import Path
from retinue.codebase.codebase import Codebase
from retinue.codebase.rank.locator import Locator
from retinue.core.root import Root
from retinue.core.stop import Stop
assert Locator(Codebase([Root.at(sys.argv[1])]), Path(sys.argv[2])).update_index(Stop())
"""


def test_processes_may_build_the_same_index_at_once(project: Path, tmp_path: Path) -> None:
    """P5: no process sees an incomplete index."""
    command = [sys.executable, "-c", PREPARE, str(project), str(tmp_path / "index")]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(timeout=30) for process in running] == [0, 0, 0]
    scan, indexed = locators(project, tmp_path / "index")
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])


def test_a_process_killed_while_it_builds_leaves_a_usable_index(project: Path, tmp_path: Path) -> None:
    """P5"""
    command = [sys.executable, "-c", PREPARE, str(project), str(tmp_path / "index")]
    process = subprocess.Popen(command)
    process.kill()
    process.wait(timeout=10)
    scan, indexed = locators(project, tmp_path / "index")
    assert indexed.update_index(Stop())
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])


def test_an_index_whose_creation_stopped_at_its_tables_is_completed(project: Path, tmp_path: Path) -> None:
    """P5: whatever was written before the kill, the next process finds all tables or none."""
    folder = tmp_path / "index"
    killed = """
import os, sqlite3, sys
from pathlib import Path
from retinue.codebase.codebase import Codebase
from retinue.codebase.index.index import BATCH_BYTES, BATCH_FILES, Index
from retinue.core.root import Root

def after_two_tables(*event):
    if event[0] == sqlite3.SQLITE_CREATE_TABLE:
        seen.append(event)
        if len(seen) > 2:
            os._exit(9)
    return sqlite3.SQLITE_OK

class Watched(sqlite3.Connection):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.set_authorizer(after_two_tables)

seen = []
connect = sqlite3.connect
sqlite3.connect = lambda *arguments, **options: connect(*arguments, factory=Watched, **options)
Index(Path(sys.argv[2]), Codebase([Root.at(sys.argv[1])]))
"""
    ended = subprocess.run([sys.executable, "-c", killed, str(project), str(folder)], check=False)
    assert ended.returncode == 9
    scan, indexed = locators(project, folder)
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])
    build_index(indexed, project)
    assert ask(indexed, QUESTIONS[0]) == ask(scan, QUESTIONS[0])


def test_segments_with_many_removed_files_are_rewritten(project: Path, tmp_path: Path) -> None:
    """The rows of removed files do not accumulate."""
    wait_for_stable_stamps(project)  # else files that nobody edits are read again, now and then
    index = Index(tmp_path / "index", Codebase([Root.at(project)]))
    for number in range(40):
        for part in range(20):
            write(project, f"lib/part_{part}.py", f"def widget_{part}():\n    return 'edit{number:03}'\n")
        index.update_files(Stop())
    index.close()
    [file] = (tmp_path / "index").glob("*.sqlite3")
    database = sqlite3.connect(file)
    [rows, segments] = [
        database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
        for table in ("files", "segments")
    ]
    [old] = database.execute("SELECT count(*) FROM blocks WHERE terms LIKE '%edit000%'").fetchone()
    database.close()
    assert rows == 34
    assert segments <= 3
    assert old == 0
    scan, indexed = locators(project, tmp_path / "index")
    assert ask(indexed, "widget edit039") == ask(scan, "widget edit039")
