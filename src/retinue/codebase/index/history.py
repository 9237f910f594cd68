"""Reads the latest commits of a root with git, for questions about changes.

Reads ancestors of HEAD, if the root itself is a repository. Without git, the
history is empty, which is not an error. The same holds for a repository that borrows objects of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from retinue.codebase.git import Git, GitRepository, GitView, find_git
from retinue.core import LimitExceeded, RetinueError, Stop

MAX_COMMIT_FILES = 30
"""At most one more changed file of a commit is listed."""
_RECORD_BYTES = 4_096
"""How much of one commit's message or of one path is kept. Systems limit paths to this length."""
_GIT_SECONDS = 10.0
_TELLING_CHARS = 8
"""A shorter line, such as a brace or `else`, occurs everywhere."""


class LoggedCommit(NamedTuple):
    """One commit, as a log shows it."""

    commit: str
    day: str
    """The author's date: `2026-02-28`."""
    subject: str
    paths: tuple[str, ...]
    """The files that it changed."""


class AddedLine(NamedTuple):
    """A line that a commit added."""

    path: str
    text: str
    """Without the spaces around it."""


def read_added_lines(
    root: Path, stop: Stop, commits: Sequence[str], paths: Sequence[str]
) -> dict[str, list[AddedLine]]:
    """Return what each commit added to some paths: the first telling line of each hunk."""
    return GitHistory(root, stop).added_lines(commits, paths)


def read_commits(
    root: Path, stop: Stop, paths: Sequence[str], limit: int, added_or_removed: str = ""
) -> list[LoggedCommit]:
    """Return the latest commits that changed one of the paths, or any path if there are none, newest first.

    `added_or_removed` keeps the commits that change how often this text occurs.
    """
    return GitHistory(root, stop).log(paths, limit, added_or_removed)


class GitHistory:
    """Reads the history of one root. Methods return an empty value if it is not a repository or git fails."""

    def __init__(self, root: Path, stop: Stop, roots: Sequence[Path] = ()) -> None:
        """`roots` are all folders that may be read. No program in one of them is started."""
        self._stop = stop
        self._outside = (root, *roots)
        repository = GitRepository.at(root)
        self._repository = None if repository is None or repository.borrows_objects else repository

    def changed_files(self, commits: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the files that each commit changed, at most one more than `MAX_COMMIT_FILES`."""
        if not commits:
            return {}
        found: dict[str, list[str]] = {}
        wanted = set(commits)
        current: list[str] = []
        for part in self._records(
            b"\0",
            *("diff-tree", "--stdin", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--root"),
            stdin="".join(f"{commit}\n" for commit in commits).encode(),
        ):
            text = part.decode(errors="replace").strip("\n")
            if text in wanted:
                current = found.setdefault(text, [])
            elif text and len(current) <= MAX_COMMIT_FILES:
                current.append(text)
        return {commit: tuple(paths) for commit, paths in found.items()}

    def log(self, paths: Sequence[str], limit: int, added_or_removed: str) -> list[LoggedCommit]:
        """Return the latest commits that changed one of the paths, newest first."""
        head = self._head()
        if not head:
            return []
        search = (f"-S{added_or_removed}",) if added_or_removed else ()
        records = self._records(
            b"\n",
            *("--literal-pathspecs", "log", f"--max-count={limit}", "--no-merges", "--no-show-signature"),
            *("--encoding=UTF-8", "--no-color", "--no-mailmap", "--no-ext-diff", "--no-textconv"),
            *("--date=short", *search, "--format=%H%x00%ad%x00%s", head, "--", *paths),
        )
        found = [record.decode("utf-8", "replace").split("\0", 2) for record in records]
        logged = [fields for fields in found if len(fields) == 3]
        files = self.changed_files([commit for commit, _, _ in logged])
        return [LoggedCommit(commit, day, said, files.get(commit, ())) for commit, day, said in logged]

    def added_lines(self, commits: Sequence[str], paths: Sequence[str]) -> dict[str, list[AddedLine]]:
        """Return the lines that each commit added to some paths: the first telling line of each hunk."""
        found: dict[str, list[AddedLine]] = {}
        if not commits or not paths:
            return found
        wanted, commit, path, is_open = set(commits), "", "", False
        for record in self._records(
            b"\n",
            *("--literal-pathspecs", "diff-tree", "--stdin", "-r", "-p", "-U0", "--no-color", "--no-renames"),
            *("--no-ext-diff", "--no-textconv", "--root", "--", *paths),
            stdin="".join(f"{commit}\n" for commit in commits).encode(),
        ):
            text = record.decode(errors="replace")
            if text in wanted:
                commit, is_open = text, False
            elif text.startswith("+++ b/"):
                path = text.removeprefix("+++ b/").rstrip("\t")
            elif text.startswith("@@ "):
                is_open = True
            elif is_open and text.startswith("+") and len(text.strip("+ \t{}()[];,")) >= _TELLING_CHARS:
                found.setdefault(commit, []).append(AddedLine(path, text[1:].strip()))
                is_open = False
        return found

    def _head(self) -> str:
        if self._repository is None:
            return ""
        return self._repository.head_commit() or self._head_by_git()

    def _head_by_git(self) -> str:
        """Ask git for the commit of HEAD, if the repository stores its references in git's binary format."""
        if self._repository is None or not self._repository.has_reftable:
            return ""
        try:
            with GitView(self._repository, with_references=True) as view:
                variables = view.variables(self._repository.git_dir)
                output = self._git.run(view, "rev-parse", "HEAD", stop=self._stop, variables=variables)
        except (RetinueError, OSError):
            return ""
        return output.decode("ascii", "replace").strip()

    def _records(self, separator: bytes, *arguments: str, stdin: bytes = b"") -> Iterator[bytes]:
        """Run git and yield its output, split at the separator, until git's limit is reached.

        Yields only the beginning of a longer record. Yields nothing if git fails.
        """
        if self._repository is None:
            return
        records: list[bytes] = []
        splitter = RecordSplitter(separator, _RECORD_BYTES)
        try:
            with GitView(self._repository) as view:
                for chunk in self._git.stream(view, *arguments, stop=self._stop, stdin=stdin):
                    records += splitter.split(chunk)
        except LimitExceeded:
            pass  # the newest commits are enough
        except (RetinueError, OSError):
            return
        yield from records
        yield splitter.finish()

    @cached_property
    def _git(self) -> Git:
        return find_git(self._outside, seconds=_GIT_SECONDS)


class RecordSplitter:
    """Splits a stream of bytes into records, and keeps at most `limit` bytes of each."""

    def __init__(self, separator: bytes, limit: int) -> None:
        self._separator = separator
        self._limit = limit
        self._tail = b""
        """The last bytes of the stream, which may be the beginning of a separator."""
        self._rest = b""

    def split(self, chunk: bytes) -> list[bytes]:
        """Return the records that this chunk completes."""
        *ended, last = (self._tail + chunk).split(self._separator)
        found: list[bytes] = []
        for part in ended:
            found.append((self._rest + part)[: self._limit])
            self._rest = b""
        kept = len(last) - len(self._separator) + 1
        self._rest = (self._rest + last[: max(kept, 0)])[: self._limit]
        self._tail = last[max(kept, 0) :]
        return found

    def finish(self) -> bytes:
        """Return what came after the last separator."""
        return (self._rest + self._tail)[: self._limit]
