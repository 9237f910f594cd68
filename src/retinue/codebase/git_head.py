"""Which commit HEAD names, read from git's own files: a process would cost as much as the answer."""

from __future__ import annotations

import re
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_DEEPEST = 5
"""A reference may name another one."""


def head_commit(folder: Path) -> str:
    """Empty if it cannot be told: an unborn branch, or a way of storing references that is not known here."""
    try:
        if folder.is_file():  # a worktree or a submodule
            folder = folder.parent / _text(folder).removeprefix("gitdir:").strip()
        name = "HEAD"
        for _ in range(_DEEPEST):
            said = _reference(folder, name)
            if _COMMIT.fullmatch(said):
                # A shallow clone may be deepened below the same commit.
                return said + _text(folder / "shallow") if (folder / "shallow").exists() else said
            name = said.removeprefix("ref:").strip()
            if not name.startswith("refs/") or ".." in name:
                return ""
    except OSError:
        pass
    return ""


def _reference(folder: Path, name: str) -> str:
    """What a reference holds. Worktrees share all but HEAD with their repository."""
    common = folder
    if (folder / "commondir").exists():
        common = folder / _text(folder / "commondir").strip()
    for file in (folder / name, common / name):
        if file.is_file():
            return _text(file).strip()
    found = re.search(rf"^([0-9a-f]+) {re.escape(name)}$", _text(common / "packed-refs"), re.MULTILINE)
    return found[1] if found else ""


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
