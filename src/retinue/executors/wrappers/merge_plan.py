"""Tries how a run's branch merges with those of its siblings, and in which order they apply.

Nothing is merged and no file is touched: `git merge-tree` merges commits in the object database alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from retinue.codebase import Git, GitView
from retinue.core import Json, ProgramFailed, RetinueError, Stop, clip

MAX_BRANCHES = 12
"""Branches that are compared; each pair takes git some milliseconds."""
MAX_FILES = 20
MAX_NAME_CHARS = 200
CONFLICT = 1
"""The exit code of `git merge-tree` for a merge with conflicts."""


@dataclass(frozen=True, slots=True)
class _Merge:
    """The result of one trial merge."""

    tree: str
    files: tuple[str, ...]
    """Files in conflict; empty if the merge is clean."""


def plan_merges(
    git: Git, view: GitView, base: str, branches: Mapping[str, str], identity: Mapping[str, str], stop: Stop
) -> dict[str, Json]:
    """Return the order in which the branches apply to `base`, and which of them conflict.

    `branches` are commits by the name of their branch. `identity` are git's variables for new commits.
    """
    chosen = dict(list(branches.items())[:MAX_BRANCHES])
    try:
        return _plan(git, view, base, chosen, identity, stop)
    except ProgramFailed as error:  # before git 2.38, `merge-tree` could not do this
        return {"unknown": f"the merge could not be tried: {clip(error.message, 200)}"}


def _plan(
    git: Git, view: GitView, base: str, branches: Mapping[str, str], identity: Mapping[str, str], stop: Stop
) -> dict[str, Json]:
    conflicts: list[Json] = []
    clashes = dict.fromkeys(branches, 0)
    for first, second in combinations(branches, 2):
        merged = _try_merge(git, view, branches[first], branches[second], stop)
        if merged.files:
            clashes[first] += 1
            clashes[second] += 1
            conflicts.append({"branches": [first, second], "files": list(merged.files)})
    order: list[Json] = []
    left: list[Json] = []
    current = base
    for name in sorted(branches, key=lambda each: (clashes[each], each)):  # those that disturb least first
        merged = _try_merge(git, view, current, branches[name], stop)
        if merged.files:
            left.append(name)
            continue
        order.append(name)
        commit = ("commit-tree", merged.tree, "-p", current, "-p", branches[name], "-m", "trial merge")
        variables = {**view.variables(), **identity}
        current = git.run(view, *commit, stop=stop, variables=variables).decode().strip()
    plan: dict[str, Json] = {"order": order}
    if left:
        plan["after_these_by_hand"] = left
    if conflicts:
        plan["conflicts"] = conflicts
    return plan


def _try_merge(git: Git, view: GitView, ours: str, theirs: str, stop: Stop) -> _Merge:
    output: list[bytes] = []
    arguments = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
    try:
        for chunk in git.stream(view, *arguments, stop=stop):
            output.append(chunk)
    except RetinueError as error:
        if error.data.get("exit_code") != CONFLICT:
            raise
    tree, *names = b"".join(output).decode("utf-8", "replace").split("\0")
    files = tuple(dict.fromkeys(clip(name, MAX_NAME_CHARS) for name in names if name))
    return _Merge(tree, files[:MAX_FILES])
