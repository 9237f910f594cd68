"""The layout of the data folder, its permissions, and the check that it is not on a network filesystem.

The folder contains questions and answers as they were written, so only its user may enter it. File locks and
shared memory cannot be trusted on network filesystems. Only validated ids become part of a path.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import suppress
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
            make_private_folder(path)
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


def make_private_folder(path: Path) -> None:
    """Create a folder that only its user can enter, or make an existing one so, with everything in it.

    Raises `Unavailable` if others can enter the folder and that cannot be changed.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if sys.platform == "win32" or not path.stat().st_mode & 0o077:
        return
    if path.stat().st_uid == os.geteuid():
        path.chmod(0o700)
        for folder, folders, files in os.walk(path):
            for name in (*folders, *files):
                _remove_access(Path(folder, name))
    if path.stat().st_mode & 0o077:
        raise Unavailable(
            "other users of this machine can enter the data folder, and it cannot be made private",
            hint="set RETINUE_DATA_DIR to a folder that belongs to you",
        )


def _remove_access(path: Path) -> None:
    """Take the rights of others away from a file or folder. Leaves links alone."""
    with suppress(OSError):
        status = path.lstat()
        if not stat.S_ISLNK(status.st_mode) and status.st_mode & 0o077:
            path.chmod(stat.S_IMODE(status.st_mode) & 0o700)


def create_private_file(path: Path) -> None:
    """Create an empty file that only its user can read, or take away the rights of others on an existing one.

    For databases: SQLite would create a file that others can read. It gives its further files the same
    rights. An existing file is not opened, because closing it would drop the locks of SQLite in this process.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        if sys.platform != "win32":
            for suffix in ("", "-wal", "-shm"):
                _remove_access(path.with_name(path.name + suffix))
    except OSError:
        return  # whoever opens the file next reports the reason


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
