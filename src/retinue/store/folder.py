"""The data folder: which file lies where. Only checked ids ever become part of a path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from retinue.core import OwnerId, RunId, Unavailable
from retinue.store.filesystem import filesystem_of, refuse_network


@dataclass(frozen=True, slots=True)
class DataFolder:
    path: Path

    @classmethod
    def prepare(cls, given: Path) -> DataFolder:
        """Create what is missing, readable by the user alone; refuse a place that cannot be trusted."""
        try:
            given.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = cls(given.resolve())
            refuse_network(filesystem_of(folder.path))
            for needed in (folder.owners, folder.logs):
                needed.mkdir(mode=0o700, exist_ok=True)
        except FileExistsError as error:
            name = Path(error.filename).name
            raise Unavailable(
                f"the data folder cannot be used: {name} is a file where a folder must be",
                hint=f"move {name} away, or set RETINUE_DATA_DIR to another folder",
            ) from None
        except OSError as error:
            raise Unavailable(
                f"the data folder cannot be used: {error.strerror}",
                hint="set RETINUE_DATA_DIR to a folder that you may write to",
            ) from None
        return folder

    @property
    def database(self) -> Path:
        return self.path / "retinue.db"

    @property
    def write_lock(self) -> Path:
        return self.path / "write.lock"

    @property
    def owners(self) -> Path:
        return self.path / "owners"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def owner_lock(self, owner: OwnerId) -> Path:
        return self.owners / f"{OwnerId.parse(owner)}.lock"

    def log(self, run_id: RunId) -> Path:
        return self.logs / f"{RunId.parse(run_id)}.log"

    def meta(self, run_id: RunId) -> Path:
        return self.logs / f"{RunId.parse(run_id)}.meta.json"
