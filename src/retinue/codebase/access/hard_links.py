"""Hard links to hidden files: a second name of a hidden file is hidden too.

Only a file with more than one name needs this check, and such files are rare in source trees. For the first
one, every hidden file of the roots is looked up, even in ignored folders. The result is cached as long as it
can be valid.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from retinue.codebase.access.directory import MAX_DEPTH, POSIX, Directory
from retinue.codebase.access.policy import PolicyRules
from retinue.core import Root, Stop

CLOCK_SLACK_NS = 2_000_000_000
"""File systems store times as coarsely as this, and network file systems use another machine's clock."""

Inode = tuple[int, int]
"""Device and inode number."""


class HiddenHardLinks:
    """Knows the inodes of all hidden files. All threads that read the same roots share it."""

    def __init__(
        self, rules: Mapping[Root, PolicyRules], open_directory: Callable[[Path], Directory]
    ) -> None:
        self._rules = rules
        self._open_directory = open_directory
        self._lock = threading.Lock()
        self._hidden: frozenset[Inode] = frozenset()
        self._collected_ns: int | None = None

    def includes(self, status: os.stat_result, stop: Stop) -> bool:
        """Return whether another name of this file is hidden in a root."""
        with self._lock:
            if not self._is_covered(status):
                started_ns = time.time_ns()
                try:
                    self._hidden = self._collect(stop)
                except OSError:
                    return True  # part of a root cannot be read: deny what cannot be ruled out
                self._collected_ns = started_ns
            return (status.st_dev, status.st_ino) in self._hidden

    def _is_covered(self, status: os.stat_result) -> bool:
        """Return whether the last collection was made after the file last changed.

        A new name or new content changes a file's ctime. On Windows, ctime is the time of creation and says
        nothing.
        """
        return (
            POSIX
            and self._collected_ns is not None
            and status.st_ctime_ns < self._collected_ns - CLOCK_SLACK_NS
        )

    def _collect(self, stop: Stop) -> frozenset[Inode]:
        found: set[Inode] = set()
        for root, rules in self._rules.items():
            try:
                top = self._open_directory(root.path)
            except FileNotFoundError:
                continue
            try:
                _collect_hidden(top, "", rules, found, stop)
            finally:
                top.close()
        return frozenset(found)


def _collect_hidden(
    here: Directory, path: str, rules: PolicyRules | None, found: set[Inode], stop: Stop
) -> None:
    """Add the hidden files below `here`, or all files if `rules` is None. OSError if one may be missing."""
    stop.check()
    device = here.lstat(".").st_dev
    for entry in here.scan():
        is_folder = entry.is_dir(follow_symlinks=False)
        below = f"{path}/{entry.name}" if path else entry.name
        hidden = rules is None or rules.hides(below, folder=is_folder)
        if is_folder:
            if below.count("/") == MAX_DEPTH:
                raise OSError(errno.ENAMETOOLONG, "too deep")
            try:
                folder = here.enter(entry.name)
            except (FileNotFoundError, NotADirectoryError):
                continue  # removed or replaced since the folder was scanned
            try:
                _collect_hidden(folder, below, None if hidden else rules, found, stop)
            finally:
                folder.close()
        elif hidden:
            found.add((device, entry.inode()))
