"""The layout of the data folder, and the check that it is not on a network filesystem.

File locks and shared memory cannot be trusted on network filesystems. Only validated ids become part of
a path.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from retinue.core import OwnerId, RunId, Unavailable


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The paths of the files in a data folder."""

    path: Path

    @classmethod
    def prepare(cls, path: Path) -> DataFolder:
        """Create missing folders, accessible to the user only. Raises `Unavailable` on failure."""
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = cls(path.resolve())
            refuse_network_filesystem(filesystem_type(folder.path))
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


_NETWORK_FILESYSTEMS = re.compile(
    r"(nfs\d?|cifs|smb(fs|\d)?|9p|afs|afpfs|ceph|glusterfs|lustre|ncpfs|webdav|davfs2?|"
    r"fuse\.(sshfs|glusterfs|ceph|rclone|s3fs|davfs2?))",
    re.IGNORECASE,
)


def refuse_network_filesystem(kind: str | None) -> None:
    """Raise `Unavailable` if the type is a network filesystem. An unknown type passes."""
    if kind and (_NETWORK_FILESYSTEMS.fullmatch(kind) or kind == "remote"):
        raise Unavailable(
            f"the data folder is on a network filesystem ({kind}), where the store could be corrupted",
            hint="set RETINUE_DATA_DIR to a folder on a local disk",
        )


def filesystem_type(folder: Path) -> str | None:
    """The type of the filesystem: 'remote' if only that is known, None if nothing is known."""
    if sys.platform == "linux":
        try:
            return mount_type(folder, Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
        except OSError:
            return None
    if str(folder).startswith("\\\\"):
        return "remote"
    return _partition_type(folder)


def mount_type(folder: Path, mountinfo: str) -> str | None:
    """The type of the innermost mount that contains the folder, from the text of Linux's mountinfo."""
    found: str | None = None
    depth = -1
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4]))
        # If two mounts share a mount point, the later one hides the earlier one.
        if folder.is_relative_to(point) and len(point.parts) >= depth:
            found, depth = after.split(" ")[0], len(point.parts)
    return found


def _partition_type(folder: Path) -> str | None:
    """The type of the partition that contains the folder, on macOS and Windows."""
    import psutil  # heavy, and needed only on these systems

    found: str | None = None
    depth = -1
    for partition in psutil.disk_partitions(all=True):
        point = Path(partition.mountpoint)
        if folder.is_relative_to(point) and len(point.parts) >= depth:
            remote = "remote" in partition.opts.split(",")
            found, depth = "remote" if remote else partition.fstype, len(point.parts)
    return found
