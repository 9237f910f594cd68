"""A git directory of our own that shows a repository's objects and references, with our own configuration.

Git runs on this view and not on the repository. So no setting of the repository counts: no hook, filter,
watcher, pager, signature program, text converter, alias, included file or remote. A list of dangerous
settings to switch off would always miss one, because their names are open-ended and each version adds some.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from retinue.codebase.git.repository import GitRepository
from retinue.core import Unavailable

LINKED = ("refs", "packed-refs", "reftable", "worktrees")
"""What a view with references shares with the repository."""


class GitView:
    """A temporary git directory for one repository. A context manager; removed at its end."""

    def __init__(self, repository: GitRepository, *, with_references: bool = False) -> None:
        """`with_references` shows the repository's references and worktrees, which git may then change.

        Without them, git can only read objects.
        """
        self.repository = repository
        self.with_references = with_references
        self._temporary = tempfile.TemporaryDirectory(prefix="retinue-git-")
        self.folder = Path(self._temporary.name).resolve()
        try:
            self._fill()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._temporary.cleanup()

    def variables(self, git_dir: Path | None = None, work_tree: Path | None = None) -> dict[str, str]:
        """Return the variables that make git use this view.

        With `git_dir`, git uses the HEAD and the index of that folder, which is the one of a worktree. With
        `work_tree`, it reads and writes files there.
        """
        found = {
            "GIT_DIR": str(git_dir or self.folder),
            "GIT_COMMON_DIR": str(self.folder),
            "GIT_OBJECT_DIRECTORY": str(self.repository.common_dir / "objects"),
        }
        return found if work_tree is None else {**found, "GIT_WORK_TREE": str(work_tree)}

    def _fill(self) -> None:
        settings = self.repository.settings()
        extensions: dict[str, str] = {}
        if settings.pop("extensions.objectformat", "sha1") == "sha256":
            extensions["objectformat"] = "sha256"
        if self.with_references and self.repository.has_reftable:
            extensions["refstorage"] = "reftable"
        core = {
            "repositoryformatversion": "1" if extensions else "0",
            "bare": "true",
            "hooksPath": os.devnull,
            "fsmonitor": "false",
            **{name.removeprefix("core."): value for name, value in settings.items()},
        }
        sections = {"core": core, "gc": {"auto": "0"}, "extensions": extensions}
        config = "".join(
            f"[{section}]\n" + "".join(f"\t{name} = {value}\n" for name, value in values.items())
            for section, values in sections.items()
            if values
        )
        (self.folder / "config").write_text(config, encoding="utf-8")
        (self.folder / "HEAD").write_text("ref: refs/heads/retinue-none\n", encoding="utf-8")
        if shallow := self.repository.shallow():
            (self.folder / "shallow").write_bytes(shallow)
        if self.with_references:
            self._link()
        else:
            (self.folder / "refs").mkdir()

    def _link(self) -> None:
        """Link what git shares with the repository. A link of the repository itself is refused."""
        if excludes := self.repository.excludes():
            (self.folder / "info").mkdir()
            (self.folder / "info" / "exclude").write_bytes(excludes)
        for name in LINKED:
            shared = self.repository.common_dir / name
            if shared.is_symlink():
                raise Unavailable(f"the repository's {name} is a link, so git is not run on it")
            if shared.exists():
                try:
                    (self.folder / name).symlink_to(shared, target_is_directory=shared.is_dir())
                except OSError as error:
                    raise Unavailable(
                        "git worktrees need symbolic links, which this system refuses",
                        hint="on Windows, switch on the developer mode",
                    ) from error
