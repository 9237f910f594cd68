"""Making indexes at once, for commands: a server renews them behind its answers instead."""

from __future__ import annotations

from pathlib import Path

from retinue.config import Settings
from retinue.core import RootUnknown, Stop, Unavailable
from retinue.research import SearchScope, search_scope
from retinue.service.research import index_folder, policy_of, thoughts_of
from retinue.service.service import ADD_A_ROOT, Service
from retinue.store import FileLock

_TURN_S = 600.0
"""How long to wait for another that makes one: two at once would only take the machine from its user."""


def make_indexes(service: Service, stop: Stop) -> tuple[str, ...]:
    """Make or renew the index of the roots, and of the historical documents; which folders that are."""
    settings = service.settings
    folder = index_folder(settings)
    if folder is None:
        raise Unavailable("the index is switched off", hint="set index = true in retinue.toml")
    if not service.roots:
        raise RootUnknown("no root is configured", hint=ADD_A_ROOT)
    roots = search_scope(service.roots, policy_of(settings), (), stop, folder)
    scopes = [scope for scope in (roots, thoughts_of(settings, stop)) if scope is not None]
    lock = _lock(folder)
    try:
        if not lock.acquire(_TURN_S):
            raise Unavailable("another process has been making an index for long", hint="try again later")
        for scope in scopes:
            _make(scope, stop)
    finally:
        lock.close()
    return tuple(searched for scope in scopes for searched in scope.searched)


def can_index(settings: Settings) -> bool:
    """Whether there is a place for them, and no process makes some just now."""
    folder = index_folder(settings)
    if folder is None:
        return False
    try:
        lock = _lock(folder)
    except Unavailable:
        return False
    try:
        return lock.try_acquire()
    finally:
        lock.close()


def _make(scope: SearchScope, stop: Stop) -> None:
    if not scope.locator.update_index(stop):
        raise Unavailable(
            "the index could not be written", hint="is there room in the data folder, and is it writable?"
        )


def _lock(folder: Path) -> FileLock:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / "making.lock")
    except OSError as error:
        raise Unavailable(f"the data folder cannot be written to: {error.strerror}") from None
