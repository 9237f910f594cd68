"""Trees of a given number of files, made of one tree's files under several names."""

from __future__ import annotations

import shutil
from pathlib import Path

from retinue.codebase import Codebase
from retinue.codebase.parse import has_searchable_text
from retinue.core import Root, Stop


def compose(tree: Path, into: Path, files: int) -> Path:
    """Evenly drawn from the tree if it has more, all of it again and again if it has fewer."""
    entries = Codebase([Root.at(tree)]).files(Stop()).entries
    paths = [entry.path for entry in entries if has_searchable_text(entry.path)]
    for number in range(files):
        copy, place = divmod(number, len(paths)) if files > len(paths) else (0, number * len(paths) // files)
        target = into / f"part{copy}" / paths[place]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tree / paths[place], target)
    return into
