"""The folder that runs are recorded in, and whether SQLite works there. Changes nothing that stays."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil

from retinue.setup.checks.check import DoctorCheck
from retinue.setup.machine import Machine

FIXED_SQLITE = (3, 51, 3)
"""The first version without the WAL-reset bug."""

NETWORK_FILESYSTEMS = frozenset(
    (
        *("9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "drvfs", "fuse.glusterfs", "fuse.rclone"),
        *("fuse.sshfs", "glusterfs", "gpfs", "lustre", "nfs", "nfs3", "nfs4", "remote", "smb2", "smb3"),
        *("smbfs", "webdav"),
    )
)


FOLDERS = ("owners", "logs", "index")
"""That lie in the data folder."""
DATABASE = "retinue.db"
LARGEST_CHECKED = 100_000_000
"""Bytes of a database that is read through: a larger one would take the time of all checks."""


def filesystem_type(path: Path) -> str:
    """The kind of filesystem the path lies on; `remote` for a network drive of Windows."""
    best, kind = -1, ""
    for part in psutil.disk_partitions(all=True):
        if path.is_relative_to(part.mountpoint) and len(part.mountpoint) >= best:
            best = len(part.mountpoint)
            kind = "remote" if "remote" in part.opts.split(",") else part.fstype.lower()
    return kind


def data_folder(
    folder: Path, machine: Machine, kind_of: Callable[[Path], str] = filesystem_type
) -> list[DoctorCheck]:
    shown = machine.shown(folder)
    move = "set RETINUE_DATA_DIR to a folder on a local disk that you may write to"
    if folder.exists() and not folder.is_dir():
        return [DoctorCheck("data folder", "problem", f"{shown} is not a folder", move)]
    existing = _nearest_existing(folder)
    if not _can_be_written_to(existing):
        return [DoctorCheck("data folder", "problem", f"{shown} cannot be written to", move)]
    kind = kind_of(existing.resolve())
    if kind in NETWORK_FILESYSTEMS:
        finding = f"{shown} lies on a network filesystem ({kind}), where SQLite cannot lock reliably"
        return [DoctorCheck("data folder", "problem", finding, move)]
    if not folder.exists():
        return [DoctorCheck("data folder", "ok", f"{shown} will be made on first use")]
    in_the_way = [name for name in FOLDERS if (folder / name).exists() and not (folder / name).is_dir()]
    return [*(_blocked(name, shown) for name in in_the_way), _privacy(folder, shown)]


def _blocked(name: str, shown: str) -> DoctorCheck:
    finding = f"{name} in {shown} is a file where a folder must be: no run can be recorded"
    return DoctorCheck("data folder", "problem", finding, f"move {name} away; it is made anew on first use")


def _can_be_written_to(folder: Path) -> bool:
    """Tried, not asked: what rights say is not all, as `/proc` and read-only disks show."""
    try:
        with tempfile.TemporaryDirectory(prefix=".retinue-doctor-", dir=folder):
            return True
    except OSError:
        return False


def _privacy(folder: Path, shown: str) -> DoctorCheck:
    name, found = "data folder", folder.stat()
    if sys.platform != "win32":
        if found.st_uid != os.geteuid():
            return DoctorCheck(
                name, "warning", f"{shown} belongs to another user", "use a folder of your own"
            )
        if found.st_mode & 0o077:
            finding = (
                f"other users of this machine can enter {shown} (mode {stat.S_IMODE(found.st_mode):03o})"
            )
            return DoctorCheck(name, "warning", finding, "chmod 700 " + shown.replace(" ", "\\ "))
    return DoctorCheck(name, "ok", f"{shown} is writable and private")


def database(folder: Path, version: tuple[int, ...] = sqlite3.sqlite_version_info) -> list[DoctorCheck]:
    """Writes through one connection and reads through another, in a passing folder beside the data."""
    shown = f"SQLite {'.'.join(map(str, version))}"
    wanted = ".".join(map(str, FIXED_SQLITE))
    move = "free some space, or set RETINUE_DATA_DIR to a folder on a local disk"
    try:
        with tempfile.TemporaryDirectory(prefix=".retinue-doctor-", dir=_nearest_existing(folder)) as scratch:
            mode = _try_wal(Path(scratch) / "try.db")
    except (OSError, sqlite3.Error) as error:
        finding = f"{shown} cannot keep a database in the data folder ({type(error).__name__})"
        return [DoctorCheck("database", "problem", finding, move)]
    if mode != "wal":
        finding = f"{shown} cannot use write-ahead logging in the data folder"
        return [DoctorCheck("database", "problem", finding, move)]
    if damage := _damage(folder / DATABASE):
        finding = f"{DATABASE} in the data folder is damaged ({damage}): no run can be recorded"
        fix = f"move it away, with {DATABASE}-wal and {DATABASE}-shm; a new one is made, and the logs stay"
        return [DoctorCheck("database", "problem", finding, fix)]
    if version < FIXED_SQLITE:
        finding = (
            f"{shown} works, but is older than {wanted}: in rare cases two connections that write and "
            "checkpoint at the same moment damage the database (SQLite's WAL-reset bug)"
        )
        fix = f"use a Python that comes with SQLite {wanted} or newer"
        return [DoctorCheck("database", "warning", finding, fix)]
    return [DoctorCheck("database", "ok", f"{shown} works with write-ahead logging")]


def _damage(file: Path) -> str:
    """What is wrong with the runs' own database; nothing if there is none, or it is merely busy."""
    if not file.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=1)) as opened:
            opened.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if file.stat().st_size > LARGEST_CHECKED:
                return ""
            said: str = opened.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError as error:
        return "" if "locked" in str(error) else str(error)
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if said == "ok" else "quick_check finds a fault"


def _try_wal(file: Path) -> str:
    with (
        closing(sqlite3.connect(file, timeout=1)) as writer,
        closing(sqlite3.connect(file, timeout=1)) as reader,
    ):
        mode: str = writer.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        writer.execute("CREATE TABLE t (x)")
        writer.execute("INSERT INTO t VALUES (1)")
        writer.commit()
        seen = reader.execute("SELECT x FROM t").fetchone()
        return mode if seen == (1,) else "unreadable"


def _nearest_existing(folder: Path) -> Path:
    whole = folder.absolute()
    return next((each for each in (whole, *whole.parents) if each.exists()), Path(whole.anchor))
