"""Git repositories: finds them, reads their references, and runs git on them.

A repository may be hostile. Git never reads its configuration, so nothing in there can start a program, and
we read its files as carefully as any other file. Knows nothing of questions and agents.
"""

from typing import TYPE_CHECKING

from retinue._lazy import lazy_exports

if TYPE_CHECKING:
    from retinue.codebase.git.git_program import Git as Git, find_git as find_git
    from retinue.codebase.git.git_view import GitView as GitView
    from retinue.codebase.git.repository import (
        GitRepository as GitRepository,
        read_git_file as read_git_file,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "git_program": "Git find_git",
            "git_view": "GitView",
            "repository": "GitRepository read_git_file",
        },
    )
