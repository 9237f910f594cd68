"""Work ends at its deadline or when it is canceled (P2)."""

from __future__ import annotations

import threading

import pytest

from retinue.core import Canceled, DeadlineExceeded, Stop


def test_nothing_stops_work_without_deadline_or_cancel() -> None:
    stop = Stop()
    stop.check()
    assert stop.remaining() is None
    assert not stop.reached


def test_passed_deadline_ends_the_work() -> None:
    with pytest.raises(DeadlineExceeded):
        Stop(0).check()


def test_cancel_ends_the_work_and_wins_over_the_deadline() -> None:
    stop = Stop(0)
    stop.cancel()
    with pytest.raises(Canceled):
        stop.check()


@pytest.mark.parametrize("cancel", [True, False], ids=["cancel", "deadline"])
def test_watcher_is_called_once_while_work_blocks(cancel: bool) -> None:
    stop = Stop() if cancel else Stop(0.01)
    calls: list[int] = []
    called = threading.Event()

    def on_stop() -> None:
        calls.append(1)
        called.set()

    with stop.watch(on_stop):
        if cancel:
            threading.Thread(target=stop.cancel).start()
        assert called.wait(5)
        stop.cancel()
    assert calls == [1]


def test_watcher_of_finished_work_is_not_called() -> None:
    stop = Stop()
    calls: list[int] = []
    with stop.watch(lambda: calls.append(1)):
        pass
    stop.cancel()
    assert calls == []


def test_watcher_is_called_at_once_when_already_stopped() -> None:
    stop = Stop(0)
    calls: list[int] = []
    with stop.watch(lambda: calls.append(1)):
        assert calls == [1]
