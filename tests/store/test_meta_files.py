"""`<run-id>.meta.json`: a view that follows the database."""

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


def test_the_file_tells_how_the_run_stands(bench: Bench) -> None:
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


def test_what_has_not_happened_yet_is_null(bench: Bench) -> None:
    running = shown(bench, bench.running())
    assert (running["status"], running["messages"]) == ("running", [])
    assert running["startTime"]
    assert (running["endTime"], running["exitCode"], running["summary"]) == (None, None, None)


def test_a_run_has_a_file_from_its_start_or_its_end_on(bench: Bench) -> None:
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


def test_of_many_writers_the_last_file_shows_the_last_state(tmp_path: Path) -> None:
    """Two processes that write the view at once leave the newer one."""
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


def test_a_view_that_cannot_be_written_does_not_end_the_run(bench: Bench) -> None:
    run = bench.running()
    bench.store.folder.meta(run.id).mkdir()
    bench.store.meta_files.write(run.id)
    assert bench.store.runs.finish(run.id, DONE)
