"""Finds the files of a folder that the policy hides, so that programs which read by themselves can be kept
from them. Opens nothing and follows no links.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from retinue.codebase.access.policy import VERSION_CONTROL_FOLDERS, Policy
from retinue.core import ConfigInvalid, Root, Stop

MAX_ENTRIES = 50_000
MAX_SECRETS = 200
MAX_SECONDS = 3.0
DEPENDENCIES = frozenset({"node_modules", "site-packages", "__pycache__", ".venv", "venv", ".tox", "target"})
"""Folders of other people's files, which are not searched."""


@dataclass(frozen=True, slots=True)
class SecretFiles:
    """The files and folders that the policy hides, in one or more folders."""

    paths: tuple[Path, ...] = ()
    complete: bool = True
    """False if there is more than was searched or listed."""


def find_secret_files(
    folder: Path, policy: Policy, stop: Stop, *, max_entries: int = MAX_ENTRIES
) -> SecretFiles:
    """Return what the policy hides in a folder, nearest to its top first, without version control."""
    try:
        rules = policy.rules_for(Root.at(folder))
    except ConfigInvalid:  # a folder of the system
        return SecretFiles(complete=False)
    until = time.monotonic() + MAX_SECONDS
    found: list[Path] = []
    pending = deque([""])
    seen = 0
    while pending:
        parent = pending.popleft()
        for entry in _entries(folder / parent):
            stop.check()
            seen += 1
            if seen > max_entries or len(found) >= MAX_SECRETS or time.monotonic() > until:
                return SecretFiles(tuple(found), complete=False)
            path = f"{parent}/{entry.name}" if parent else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name in VERSION_CONTROL_FOLDERS:
                continue
            if rules.hides(path, folder=is_folder):
                found.append(folder / path)
            elif is_folder and entry.name not in DEPENDENCIES:
                pending.append(path)
    return SecretFiles(tuple(found))


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        yield from entries
