"""Hard links: a second name of a hidden file is as hidden as the first.

Only a file with more than one name asks for this, and such files are rare in source trees. Then every
hidden file of the roots is looked up once, those in ignored folders too, and the answer is kept for as
long as it can be true.
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
"""File systems keep times as coarsely as this, and a network one by another clock."""

Inode = tuple[int, int]


class HiddenHardLinks:
    """Shared by all threads that read the same roots."""

    def __init__(self, rules: Mapping[Root, PolicyRules], directory_at: Callable[[Path], Directory]) -> None:
        self._rules = rules
        self._directory_at = directory_at
        self._lock = threading.Lock()
        self._hidden: frozenset[Inode] = frozenset()
        self._looked_ns: int | None = None

    def lead_to_hidden(self, status: os.stat_result, stop: Stop) -> bool:
        """Whether one of the other names of this file is hidden in a root."""
        with self._lock:
            if not self._still_knows(status):
                looked_ns = time.time_ns()
                try:
                    self._hidden = self._look(stop)
                except OSError:
                    return True  # part of a root cannot be looked into: what cannot be ruled out is denied
                self._looked_ns = looked_ns
            return (status.st_dev, status.st_ino) in self._hidden

    def _still_knows(self, status: os.stat_result) -> bool:
        """A new name or new content changes a file's ctime: an older ctime was seen by the last look.

        On Windows ctime is the time of creation and tells nothing.
        """
        return POSIX and self._looked_ns is not None and status.st_ctime_ns < self._looked_ns - CLOCK_SLACK_NS

    def _look(self, stop: Stop) -> frozenset[Inode]:
        found: set[Inode] = set()
        for root, rules in self._rules.items():
            try:
                top = self._directory_at(root.path)
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
    """Add the hidden files below `here`, all if there are no rules. OSError if one may have been missed."""
    stop.check()
    device = here.status(".").st_dev
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
                continue  # gone, or replaced, since the folder was scanned
            try:
                _collect_hidden(folder, below, None if hidden else rules, found, stop)
            finally:
                folder.close()
        elif hidden:
            found.add((device, entry.inode()))
