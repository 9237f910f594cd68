"""Builds indexes on request, for commands. A server builds them in the background after its answers."""

from __future__ import annotations

from pathlib import Path

from retinue.answers import (
    SearchScope,
    open_scope,
)
from retinue.codebase import reading_policy
from retinue.config import Settings
from retinue.core import FileLock, RootUnknown, Stop, Unavailable
from retinue.service.research import index_folder, thoughts_scope
from retinue.service.service import Service

_MAX_WAIT_S = 600.0
"""How long to wait while another process builds an index. Two at once would slow down the machine."""


def make_indexes(service: Service, stop: Stop) -> tuple[str, ...]:
    """Build or renew the index of the roots and of the historical documents. Return the indexed folders."""
    settings = service.settings
    folder = index_folder(settings)
    if folder is None:
        raise Unavailable("the index is switched off", hint="set index = true in retinue.toml")
    if not service.roots:
        raise RootUnknown("no root is configured", hint=service.root_hint)
    roots = open_scope(service.roots, reading_policy(settings), (), stop, folder)
    scopes = [scope for scope in (roots, thoughts_scope(settings, stop)) if scope is not None]
    lock = _open_lock(folder)
    try:
        if not lock.acquire(_MAX_WAIT_S):
            raise Unavailable("another process is still building an index", hint="try again later")
        for scope in scopes:
            _build_index(scope, stop)
    finally:
        lock.close()
    return tuple(searched for scope in scopes for searched in scope.searched_paths)


def can_index(settings: Settings) -> bool:
    """Whether indexes can be stored and no process is building one now."""
    folder = index_folder(settings)
    if folder is None:
        return False
    try:
        lock = _open_lock(folder)
    except Unavailable:
        return False
    try:
        return lock.try_acquire()
    finally:
        lock.close()


def _build_index(scope: SearchScope, stop: Stop) -> None:
    if not scope.locator.update_index(stop):
        raise Unavailable(
            "the index could not be written",
            hint="check that the data folder is writable and has free space",
        )


def _open_lock(folder: Path) -> FileLock:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return FileLock(folder / "making.lock")
    except OSError as error:
        raise Unavailable(f"the data folder cannot be written to: {error.strerror}") from None
