"""The store of one data folder: the object through which other packages read and write persistent state."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

from retinue.store.access_tokens import ChildTokens
from retinue.store.data_folder import DataFolder
from retinue.store.database import LOCK_TIMEOUT_S, Clock, Database
from retinue.store.events import EventTable
from retinue.store.ledgers import LedgerTable
from retinue.store.messages import MessageTable
from retinue.store.meta_files import MetaFiles
from retinue.store.queue import RunQueue
from retinue.store.quotas import QuotaTable
from retinue.store.runs import RunTable
from retinue.store.user_decisions import PERMISSIONS_FILE, RememberedPermissions
from retinue.store.workflow_records import CheckpointTable, WorkflowTable

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)


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
        self.persist = database.persist
        """Like `write`, but retries while the store is unavailable. For data that must not be lost."""
        self.post = database.post
        """Like `persist`, but returns at once and writes in the background."""
        self.wait_posted = database.wait_posted
        self.folder = database.folder
        self.queue = RunQueue(database)
        self.runs = RunTable(database, self.queue)
        self.messages = MessageTable(database)
        self.events = EventTable(database)
        self.ledgers = LedgerTable(database)
        self.quotas = QuotaTable(database)
        self.child_tokens = ChildTokens(database)
        self.workflows = WorkflowTable(database)
        self.checkpoints = CheckpointTable(database)
        self.permissions = RememberedPermissions(self.folder.path / PERMISSIONS_FILE)
        self.meta_files = MetaFiles(database, self.messages)
        database.listen(self.meta_files.mark)

    @classmethod
    def open(cls, folder: Path, clock: Clock = time.time, lock_timeout_s: float = LOCK_TIMEOUT_S) -> Self:
        return cls(Database(DataFolder.prepare(folder), clock, lock_timeout_s))

    def close(self) -> None:
        self.meta_files.close()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
