"""The files of a root that may be shown, without opening any but the ignore files.

Folders are held open while they are walked, so a folder swapped for a link lists nothing from elsewhere.
Links are not followed: what they lead to is listed where it is, or not at all.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from retinue.codebase.directory import Directory, read_fully
from retinue.codebase.ignore import IGNORE_FILES, Ignores
from retinue.codebase.omitted import Tally
from retinue.codebase.policy import Rules
from retinue.codebase.secret_names import VERSION_CONTROL
from retinue.core.stop import Stop

MAX_FILES = 200_000
"""A walk ends here: a root this large is a disk, not a project."""
MAX_DEPTH = 100
"""Each level holds a folder open."""
MAX_IGNORE_BYTES = 1_048_576


class Seen(NamedTuple):
    """Something in a folder that may be shown."""

    path: str
    name: str
    is_folder: bool
    is_file: bool
    """A regular file. What is neither this nor a folder is a link, a pipe, a device or a socket."""


class Walker:
    """Looks into the folders of one root and counts what it must not show."""

    def __init__(self, rules: Rules, tally: Tally, stop: Stop, max_files: int = MAX_FILES) -> None:
        self._max_files = max_files
        self._rules = rules
        self._tally = tally
        self._stop = stop

    def files(self, top: Directory) -> list[str]:
        """The root-relative paths of all files, sorted; fewer if time or a limit ended the walk."""
        found: list[str] = []
        self._add_files(top, "", ignores_at(top), found, 1)
        found.sort()
        return found

    def look(self, here: Directory, path: str, ignores: Ignores) -> tuple[list[Seen], Ignores]:
        """What one folder shows, and the ignore files that hold below it."""
        counts, concern, hides = self._tally.counts, self._rules.concern, self._rules.hides
        try:
            entries = here.scan()
        except OSError:
            counts["unreadable"] += 1
            return [], ignores
        ignores = ignores.below(path, _ignore_texts(here, entries))
        seen: list[Seen] = []
        for entry in entries:
            name = entry.name
            below = f"{path}/{name}" if path else name
            try:
                is_folder = entry.is_dir(follow_symlinks=False)
                is_file = not is_folder and entry.is_file(follow_symlinks=False)
            except OSError:
                counts["unreadable"] += 1
                continue
            if not name.isascii() and not _is_text(name):
                counts["unreadable"] += 1
            elif concern(name) and hides(below, folder=is_folder):
                # Nobody takes these for a part of the project, so they are not missed.
                counts["denied"] += name not in VERSION_CONTROL
            elif ignores.hide(below, name, is_folder):
                counts["ignored"] += 1
            else:
                seen.append(Seen(below, name, is_folder, is_file))
        return seen, ignores

    def _add_files(self, here: Directory, path: str, ignores: Ignores, found: list[str], depth: int) -> None:
        if self._tally.out_of_time(self._stop):
            return
        seen, ignores = self.look(here, path, ignores)
        found.extend(one.path for one in seen if one.is_file)
        if len(found) > self._max_files:
            self._tally.counts["over_limit"] += len(found) - self._max_files
            self._tally.reached("files")
            del found[self._max_files :]
        for one in seen:
            if not one.is_folder or "time" in self._tally.limits or "files" in self._tally.limits:
                continue
            if depth == MAX_DEPTH:
                self._tally.counts["over_limit"] += 1
                self._tally.reached("depth")
                continue
            try:
                folder = here.enter(one.name)
            except OSError:
                self._tally.counts["unreadable"] += 1
                continue
            try:
                self._add_files(folder, one.path, ignores, found, depth + 1)
            finally:
                folder.close()


def ignores_at(top: Directory) -> Ignores:
    """What a root ignores before any of its folders is looked into."""
    opened: list[Directory] = []
    try:
        for name in (".git", "info"):
            opened.append((opened or [top])[-1].enter(name))
        return Ignores.at_root(_text_of(opened[-1], "exclude"))
    except OSError:
        return Ignores.at_root("")
    finally:
        for folder in opened:
            folder.close()


def _ignore_texts(here: Directory, entries: list[os.DirEntry[str]]) -> dict[str, str]:
    return {entry.name: _text_of(here, entry.name) for entry in entries if entry.name in IGNORE_FILES}


def _text_of(here: Directory, name: str) -> str:
    """An ignore file's text; empty if it is a link, a pipe, or cannot be read."""
    try:
        fd, status = here.open(name)
    except OSError:
        return ""
    try:
        return read_fully(fd, min(status.st_size, MAX_IGNORE_BYTES)).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
