"""The store of one data folder: the object through which other packages read and write persistent state."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

from retinue.core import RetinueError, Unavailable
from retinue.store.access_tokens import ChildTokens
from retinue.store.data_folder import DataFolder
from retinue.store.database import LOCK_TIMEOUT_S, Clock, Database
from retinue.store.events import EventTable
from retinue.store.ledgers import LedgerTable
from retinue.store.messages import MessageTable
from retinue.store.meta_files import MetaFiles
from retinue.store.queue import RunQueue
from retinue.store.runs import RunTable
from retinue.store.user_decisions import PERMISSIONS_FILE, RememberedPermissions
from retinue.store.workflow_records import CheckpointTable, WorkflowTable

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)

RETRY_S = 0.5
"""Seconds between two tries of a write that must not be lost."""


class Store:
    """The tables and files of one data folder.

    Reads are synchronous, take well under a millisecond, and never wait for a writer.

    Methods that write may wait for other processes. Code on an event loop calls them through `write`,
    `persist` or `post`; other threads call them directly.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.write = database.submit
        """Calls a method that writes, as one transaction. Raises `Unavailable` if the store stays locked."""
        self.folder = database.folder
        self.runs = RunTable(database)
        self.queue = RunQueue(database)
        self.messages = MessageTable(database)
        self.events = EventTable(database)
        self.ledgers = LedgerTable(database)
        self.child_tokens = ChildTokens(database)
        self.workflows = WorkflowTable(database)
        self.checkpoints = CheckpointTable(database)
        self.permissions = RememberedPermissions(self.folder.path / PERMISSIONS_FILE)
        self.meta_files = MetaFiles(database, self.messages)
        self._posted: set[asyncio.Task[None]] = set()
        database.listen(self.meta_files.mark)

    @classmethod
    def open(cls, folder: Path, clock: Clock = time.time, lock_timeout_s: float = LOCK_TIMEOUT_S) -> Self:
        return cls(Database(DataFolder.prepare(folder), clock, lock_timeout_s))

    async def persist(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `write`, but retry while the store is unavailable. For data that must not be lost."""
        warned = False
        while True:
            try:
                return await self.write(call, *args, **kwargs)
            except Unavailable as error:
                if not warned:
                    log.warning("the store refuses a write, retrying: %s", error.message)
                    warned = True
                await asyncio.sleep(RETRY_S)

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

    def close(self) -> None:
        self.meta_files.close()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
