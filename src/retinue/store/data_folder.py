"""The data folder: which file lies where. Only checked ids ever become part of a path."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from retinue.core import OwnerId, RunId, Unavailable

# MERGED filesystem: Whether a folder lies on a network filesystem, where file locks and shared memory cannot be trusted.

_NETWORK = re.compile(
    r"(nfs\d?|cifs|smb(fs|\d)?|9p|afs|afpfs|ceph|glusterfs|lustre|ncpfs|webdav|davfs2?|"
    r"fuse\.(sshfs|glusterfs|ceph|rclone|s3fs|davfs2?))",
    re.IGNORECASE,
)


def refuse_network(kind: str | None) -> None:
    """Raise for the type of a filesystem that is one; an unknown type passes."""
    if kind and (_NETWORK.fullmatch(kind) or kind == "remote"):
        raise Unavailable(
            f"the data folder lies on a network filesystem ({kind}), where the store could be corrupted",
            hint="set RETINUE_DATA_DIR to a folder on a local disk",
        )


def filesystem_of(folder: Path) -> str | None:
    """The type of the filesystem, 'remote' where only that is known, None where nothing is."""
    if sys.platform == "linux":
        try:
            return mounted_type(folder, Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
        except OSError:
            return None
    if str(folder).startswith("\\\\"):
        return "remote"
    return _type_by_partition(folder)


def mounted_type(folder: Path, mountinfo: str) -> str | None:
    """The type of the innermost mount that holds the folder, from the text of Linux's mountinfo."""
    found: str | None = None
    depth = -1
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4]))
        # Of two mounts on one point the later hides the earlier.
        if folder.is_relative_to(point) and len(point.parts) >= depth:
            found, depth = after.split(" ")[0], len(point.parts)
    return found


def _type_by_partition(folder: Path) -> str | None:
    import psutil  # heavy, and needed on these systems only

    found: str | None = None
    depth = -1
    for partition in psutil.disk_partitions(all=True):
        point = Path(partition.mountpoint)
        if folder.is_relative_to(point) and len(point.parts) >= depth:
            remote = "remote" in partition.opts.split(",")
            found, depth = "remote" if remote else partition.fstype, len(point.parts)
    return found


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
