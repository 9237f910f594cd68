"""The store of one data folder, opened: the one object that other rooms hold."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Self

from retinue.store.checkpoints import CheckpointTable
from retinue.store.child_tokens import ChildTokens
from retinue.store.database import Clock, Database
from retinue.store.events import EventTable
from retinue.store.folder import DataFolder
from retinue.store.ledgers import LedgerTable
from retinue.store.messages import MessageTable
from retinue.store.meta_files import MetaFiles
from retinue.store.permissions import PERMISSIONS_FILE, RememberedPermissions
from retinue.store.queue import RunQueue
from retinue.store.runs import RunTable
from retinue.store.workflows import WorkflowTable


class Store:
    """Calls are synchronous, mostly well under a millisecond, and safe from any thread."""

    def __init__(self, database: Database) -> None:
        self.database = database
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
        database.listen(self.meta_files.mark)

    @classmethod
    def open(cls, folder: Path, clock: Clock = time.time) -> Self:
        return cls(Database(DataFolder.prepare(folder), clock))

    def close(self) -> None:
        self.meta_files.close()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
