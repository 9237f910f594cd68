"""The doctor's checks of Python, the configuration, the roots, the data folder and SQLite.

The checks leave no files behind. Knows nothing of where the configuration comes from.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

import psutil

from retinue.core import RetinueError, counted, utc_text
from retinue.setup.check import DoctorCheck
from retinue.setup.machine import Machine

OLDEST_PYTHON = (3, 11)

ADD_A_ROOT = (
    "`retinue install HOST` lets a host's open project be read; or list the folders: "
    "`retinue install HOST --root DIR`, `roots` in retinue.toml, or the environment variable RETINUE_ROOTS"
)

FIXED_SQLITE = (3, 51, 3)
"""The first version without the WAL-reset bug."""

NETWORK_FILESYSTEMS = frozenset(
    (
        *("9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "drvfs", "fuse.glusterfs", "fuse.rclone"),
        *("fuse.sshfs", "glusterfs", "gpfs", "lustre", "nfs", "nfs3", "nfs4", "remote", "smb2", "smb3"),
        *("smbfs", "webdav"),
    )
)

DATA_SUBFOLDERS = ("owners", "logs", "index")
DATABASE = "retinue.db"
MAX_CHECKED_BYTES = 100_000_000
"""A larger database is not checked for damage, because that would take too long."""


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> list[DoctorCheck]:
    """Check that Python is new enough."""
    shown = f"{platform.python_implementation()} {'.'.join(map(str, version))}"
    if version < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        return [DoctorCheck("python", "problem", f"{shown} is too old", f"install Python {wanted} or newer")]
    return [DoctorCheck("python", "ok", shown)]


def check_parsers(missing: Sequence[str]) -> list[DoctorCheck]:
    """Check that the grammars are installed."""
    if not missing:
        return [DoctorCheck("parsers", "ok", "installed: definitions and calls come from syntax trees")]
    finding = f"{counted(len(missing), 'grammar package')} not installed ({missing[0]}, ...)"
    finding += ": in files of these languages, reports show lines without definitions and calls"
    return [DoctorCheck("parsers", "warning", finding, "`pip install .` in a clone of Retinue")]


def check_configuration(problems: Iterable[RetinueError], ignored: Iterable[str] = ()) -> list[DoctorCheck]:
    """Report the problems that were found while the configuration was loaded, and what was ignored."""
    found = [
        DoctorCheck("configuration", "problem", each.message, each.hint or "correct it") for each in problems
    ]
    remedy = "remove it from the project's file"
    found += [DoctorCheck("configuration", "warning", each, remedy) for each in ignored]
    return found or [DoctorCheck("configuration", "ok", "no problems found")]


def check_caller(*, called_by_run: bool) -> list[DoctorCheck]:
    """Report whether this terminal counts as a person's. Otherwise the commands for persons are refused."""
    if not called_by_run:
        return [DoctorCheck("caller", "ok", "commands given here count as a person's")]
    finding = "commands given here count as a run's, so those that decide for you are refused"
    remedy = "use another terminal; if this is none of a run, `ulimit -Hx` must print unlimited"
    return [DoctorCheck("caller", "warning", finding, remedy)]


def check_roots(
    roots: Iterable[str | Path],
    machine: Machine,
    hosts_with_roots: Callable[[Machine], list[str]] = lambda _: [],
) -> list[DoctorCheck]:
    """Check that each root can be read and does not contain too much, such as the home folder.

    `hosts_with_roots` returns the hosts whose own entries say what may be read.
    """
    found = [_check_root(str(root), machine) for root in roots]
    if found:
        return found
    if hosts := hosts_with_roots(machine):
        finding = f"what may be read is set in {', '.join(hosts)}; commands need --root"
        return [DoctorCheck("roots", "ok", finding)]
    return [DoctorCheck("roots", "warning", "no root is configured, so nothing can be read", ADD_A_ROOT)]


def _check_root(root: str, machine: Machine) -> DoctorCheck:
    """Check one root."""
    try:
        path = Path(root).expanduser().resolve(strict=True)
        with os.scandir(path) as entries:
            next(entries, None)
    except FileNotFoundError:
        return DoctorCheck("roots", "problem", f"{root} does not exist", "create it, or correct the path")
    except NotADirectoryError:
        return DoctorCheck("roots", "problem", f"{root} is not a folder", "use the folder that contains it")
    except (OSError, RuntimeError, ValueError):
        return DoctorCheck("roots", "problem", f"{root} cannot be read", "check its permissions")
    if path == Path(path.anchor):
        return DoctorCheck(
            "roots", "problem", f"{root} is the whole filesystem", "use the project folder instead"
        )
    if machine.home.resolve().is_relative_to(path):
        return DoctorCheck(
            "roots",
            "warning",
            f"{root} contains your whole home folder, including keys and private files",
            "use the project folder instead",
        )
    return DoctorCheck("roots", "ok", f"{root} can be read")


def filesystem_type(path: Path) -> str:
    """Return the type of the filesystem that contains the path; `remote` for a Windows network drive."""
    best, kind = -1, ""
    for part in psutil.disk_partitions(all=True):
        if path.is_relative_to(part.mountpoint) and len(part.mountpoint) >= best:
            best = len(part.mountpoint)
            kind = "remote" if "remote" in part.opts.split(",") else part.fstype.lower()
    return kind


def check_data_folder(
    folder: Path, machine: Machine, type_of: Callable[[Path], str] = filesystem_type
) -> list[DoctorCheck]:
    """Check that the data folder is writable, private and on a local disk."""
    shown = machine.display_path(folder)
    move = "set RETINUE_DATA_DIR to a writable folder on a local disk"
    if folder.exists() and not folder.is_dir():
        return [DoctorCheck("data folder", "problem", f"{shown} is not a folder", move)]
    existing = _nearest_existing(folder)
    if not _is_writable(existing):
        return [DoctorCheck("data folder", "problem", f"{shown} cannot be written to", move)]
    kind = type_of(existing.resolve())
    if kind in NETWORK_FILESYSTEMS:
        finding = f"{shown} is on a network filesystem ({kind}), where SQLite cannot lock reliably"
        return [DoctorCheck("data folder", "problem", finding, move)]
    if not folder.exists():
        return [DoctorCheck("data folder", "ok", f"{shown} will be created on first use")]
    blocked = [name for name in DATA_SUBFOLDERS if (folder / name).exists() and not (folder / name).is_dir()]
    return [*(_blocked_subfolder_check(name, shown) for name in blocked), _check_privacy(folder, shown)]


def _blocked_subfolder_check(name: str, shown: str) -> DoctorCheck:
    finding = f"{name} in {shown} is a file instead of a folder, so no run can be recorded"
    return DoctorCheck("data folder", "problem", finding, f"move {name} away; it is created on first use")


def _is_writable(folder: Path) -> bool:
    """Try to create a folder, because permission bits are wrong for `/proc` and read-only disks."""
    try:
        with tempfile.TemporaryDirectory(prefix=".retinue-doctor-", dir=folder):
            return True
    except OSError:
        return False


def _check_privacy(folder: Path, shown: str) -> DoctorCheck:
    """Check that only the user can enter the data folder."""
    name, status = "data folder", folder.stat()
    if sys.platform != "win32":
        if status.st_uid != os.geteuid():
            return DoctorCheck(name, "warning", f"{shown} belongs to another user", "use a folder you own")
        if status.st_mode & 0o077:
            finding = (
                f"other users of this machine can enter {shown} (mode {stat.S_IMODE(status.st_mode):03o})"
            )
            return DoctorCheck(name, "warning", finding, "chmod 700 " + shown.replace(" ", "\\ "))
    return DoctorCheck(name, "ok", f"{shown} is writable and private")


def check_database(folder: Path, version: tuple[int, ...] = sqlite3.sqlite_version_info) -> list[DoctorCheck]:
    """Check that SQLite works in the data folder and that the existing database is not damaged."""
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
    if damage := _find_damage(folder / DATABASE):
        finding = f"{DATABASE} in the data folder is damaged ({damage}), so no run can be recorded"
        fix = (
            f"move it away, together with {DATABASE}-wal and {DATABASE}-shm; Retinue creates a new one "
            "and keeps the logs"
        )
        return [DoctorCheck("database", "problem", finding, fix)]
    if version < FIXED_SQLITE:
        finding = (
            f"{shown} works, but is older than {wanted}: in rare cases two connections that write and "
            "checkpoint at the same moment damage the database (SQLite's WAL-reset bug)"
        )
        fix = f"use a Python that includes SQLite {wanted} or newer"
        return [DoctorCheck("database", "warning", finding, fix)]
    return [DoctorCheck("database", "ok", f"{shown} works with write-ahead logging")]


def check_quotas(folder: Path, clock: Callable[[], float] = time.time) -> list[DoctorCheck]:
    """Report the accounts whose usage limit is spent. Reads the database without changing it."""
    file = folder / DATABASE
    if not file.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=1)) as opened:
            spent = opened.execute(
                "SELECT account, reset_at FROM quotas WHERE reset_at > ? ORDER BY reset_at", (clock(),)
            ).fetchall()
    except sqlite3.Error:
        return []  # an older database has no such table; `check_database` reports the rest
    fix = "its runs wait until then; `retinue quota clear` lets it be used at once"
    return [
        DoctorCheck("quota", "warning", f"the usage limit of {account} is spent until {utc_text(at)}", fix)
        for account, at in spent
    ]


def _find_damage(file: Path) -> str:
    """Describe what is wrong with the database. Returns "" if it is fine, missing or only locked."""
    if not file.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=1)) as opened:
            opened.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if file.stat().st_size > MAX_CHECKED_BYTES:
                return ""
            result: str = opened.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError as error:
        return "" if "locked" in str(error) else str(error)
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if result == "ok" else "quick_check found an error"


def _try_wal(file: Path) -> str:
    """Write through one connection and read through another. Returns the journal mode: `wal` if it works."""
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
    """Return the folder itself or its closest parent that exists."""
    whole = folder.absolute()
    return next((each for each in (whole, *whole.parents) if each.exists()), Path(whole.anchor))
