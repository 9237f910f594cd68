"""A server process that tests start, race and kill.

Prints what the store has confirmed, one fact per line. Every printed fact must survive a kill.
"""

from __future__ import annotations

import sys
from pathlib import Path

from retinue.core import Budget, BudgetKind, Ending, ProcessIdentity, RunLimits, RunSpec, RunStatus
from retinue.store import Capacity, LogStream, LogWriter, Owner, Store

ROOMY = Capacity(1000, 1000)


def say(*words: object) -> None:
    print(*words, flush=True)


def open_and_record(folder: Path) -> None:
    """Open the folder on a signal, at the same time as other processes, and record one run."""
    say("ready")
    sys.stdin.readline()
    with Store.open(folder) as store:
        owner = Owner.register(store.folder)
        run = store.runs.record(RunSpec(agent="a", task="t", executor="scripted"), owner.id)
        store.runs.finish(run.id, Ending(status=RunStatus.CANCELED))
        say("recorded", run.id)
        owner.close()


def live_many_lives(folder: Path) -> None:
    """Make every kind of change in a loop until killed."""
    store = Store.open(folder)
    owner = Owner.register(store.folder)
    say("owner", owner.id)
    while True:
        spec = RunSpec(
            agent="a", task="t" * 2000, executor="scripted", limits=RunLimits(budget=Budget(files=10))
        )
        run = store.runs.record(spec, owner.id)
        say("recorded", run.id)
        store.queue.admit(owner.id, ROOMY, [run.id])
        store.runs.set_process(run.id, ProcessIdentity(1_000_000_000, "1.5"))
        say("started", run.id)
        with LogWriter(store.folder.log(run.id)) as log:
            log.append(LogStream.STDOUT, "some output, ")
        say("logged", run.id)
        message = store.messages.ask(run.id, "?")
        say("asked", run.id, message.id)
        store.messages.reply(message.id, "!")
        store.queue.admit(owner.id, ROOMY, [run.id])
        store.messages.acknowledge(message.id)
        say("taken", run.id, message.id)
        store.ledgers.take(run.id, BudgetKind.FILES, 3)
        store.messages.ask(run.id, "another?")
        store.runs.finish(run.id, Ending(status=RunStatus.SUCCESS, result={"text": "r" * 3000}))
        say("ended", run.id)


if __name__ == "__main__":
    {"open": open_and_record, "live": live_many_lives}[sys.argv[1]](Path(sys.argv[2]))
