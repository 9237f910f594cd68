"""Choosing among paths by globs, as ripgrep's `--glob` does. Knows nothing of the file system."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from retinue.codebase.globs import matcher


def chooser(globs: Sequence[str]) -> Callable[[str], bool]:
    """Whether a root-relative path fits one of the globs and none of those that begin with `!`.

    A glob without `/` speaks of names at any depth; one with `/` of the path from the root.
    """
    wanted = matcher(*(_anywhere(glob) for glob in globs if not glob.startswith("!")))
    unwanted = matcher(*(_anywhere(glob[1:]) for glob in globs if glob.startswith("!")))
    wants_all = all(glob.startswith("!") for glob in globs)
    return lambda path: (wants_all or wanted(path)) and not unwanted(path)


def _anywhere(glob: str) -> str:
    glob = glob.removeprefix("./")
    return glob.removeprefix("/") if "/" in glob else f"**/{glob}"
