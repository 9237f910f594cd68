"""`<run-id>.meta.json` files, which follow the database."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from retinue.core import Ending, Run, RunStatus
from retinue.store import Owner, Store
from tests.store.store_support import ANYTHING, DONE, ROOMY, SPEC, Bench


def shown(bench: Bench, run: Run) -> dict[str, object]:
    bench.store.meta_files.close()
    return json.loads(bench.store.folder.meta(run.id).read_text())


def test_file_shows_the_state_of_the_run(bench: Bench) -> None:
    """P8"""
    run = bench.running()
    message = bench.store.messages.ask(run.id, "which?")
    bench.store.messages.reply(message.id, "this")
    bench.admit(ROOMY)
    bench.store.messages.acknowledge(message.id)
    bench.store.runs.finish(run.id, Ending(status=RunStatus.ERROR, exit_code=2, summary="no"))
    moment = "1970-01-12T13:46:40.000Z"
    assert shown(bench, run) == {
        "id": run.id,
        "agentName": "tester",
        "command": None,
        "status": "error",
        "startTime": moment,
        "endTime": moment,
        "exitCode": 2,
        "summary": "no",
        "messages": [
            {
                "messageId": message.id,
                "question": "which?",
                "answer": "this",
                "messageStatus": "acknowledged_by_subagent",
                "askedAt": moment,
                "repliedAt": moment,
                "acknowledgedAt": moment,
                "closedAt": None,
            }
        ],
    }


def test_future_times_and_results_are_null(bench: Bench) -> None:
    running = shown(bench, bench.running())
    assert (running["status"], running["messages"]) == ("running", [])
    assert running["startTime"]
    assert (running["endTime"], running["exitCode"], running["summary"]) == (None, None, None)


def test_queued_run_has_no_file_until_it_starts_or_ends(bench: Bench) -> None:
    queued, canceled = bench.queued(), bench.queued()
    bench.store.runs.request_cancel(canceled.id)
    assert shown(bench, canceled)["startTime"] is None
    assert not bench.store.folder.meta(queued.id).exists()


def test_a_reader_never_sees_half_a_file(bench: Bench) -> None:
    run = bench.running()
    bench.store.meta_files.write(run.id)
    path = bench.store.folder.meta(run.id)
    done = threading.Event()
    failures: list[ValueError] = []

    def read() -> None:
        while not done.is_set():
            try:
                json.loads(path.read_text())
            except ValueError as error:
                failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(100):
        bench.store.meta_files.write(run.id)
    done.set()
    reader.join(5)
    assert not failures


def test_concurrent_writers_leave_the_newest_state(tmp_path: Path) -> None:
    """Two processes that write the file at the same time leave the newer state."""
    stores = [Store.open(tmp_path) for _ in range(3)]
    owner = Owner.register(stores[0].folder)
    for _ in range(10):
        run = stores[0].runs.record(SPEC, owner.id)
        start = threading.Barrier(len(stores))

        def write(store: Store, run: Run = run, start: threading.Barrier = start) -> None:
            start.wait(5)
            if store is stores[0]:
                store.queue.admit(owner.id, ROOMY, ANYTHING)
                store.runs.finish(run.id, DONE)
            store.meta_files.write(run.id)

        threads = [threading.Thread(target=write, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
        assert json.loads(stores[0].folder.meta(run.id).read_text())["status"] == "success"
    owner.close()
    for store in stores:
        store.close()
    assert not list((tmp_path / "logs").glob("*.tmp"))


def test_file_that_cannot_be_written_does_not_end_the_run(bench: Bench) -> None:
    run = bench.running()
    bench.store.folder.meta(run.id).mkdir()
    bench.store.meta_files.write(run.id)
    assert bench.store.runs.finish(run.id, DONE)
