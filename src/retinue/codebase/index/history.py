"""Finds commits whose messages match the question, with the files they changed, as evidence.

Reads a limited number of ancestors of HEAD with git, if the root itself is a repository. Runs no hook, pager,
external diff or signature check, and fetches nothing. Without git, the history is empty; that is no error.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from retinue.codebase.parse import QueryTerms, Vocabulary, separate_words
from retinue.core import Stop

MAX_COMMITS = 5_000
"""Commits whose messages are read. Older commits did not improve answers in our measurements."""
MAX_NEAREST_COMMITS = 40
"""Commits whose files are evidence."""
MAX_COMMIT_FILES = 30
"""A commit that changed more files is a sweeping change and says nothing about any of them."""
_MESSAGE_BYTES = 2_000
_GIT_SECONDS = 10.0

_SAFE_GIT_OPTIONS = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never"),
    *("-c", "log.showSignature=false", "-c", "diff.external=", "-c", "core.quotePath=false"),
)


@dataclass(frozen=True, slots=True)
class RelatedCommit:
    """A commit whose message has terms of the question."""

    terms: frozenset[str]
    words: int
    """Number of distinct words in its message. Long messages match by chance."""
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitEvidence:
    """The commits that match the question best, and how common its terms are in all commits."""

    commits: int = 0
    """How many commits were considered."""
    frequency: dict[str, int] = field(default_factory=dict[str, int])
    """For each term, the number of commits whose messages contain it."""
    related: Sequence[RelatedCommit] = ()
    """Best first."""


def merge_commit_evidence(parts: Sequence[CommitEvidence]) -> CommitEvidence:
    """Combine the evidence of several roots."""
    if len(parts) == 1:
        return parts[0]
    frequency: Counter[str] = Counter()
    for part in parts:
        frequency.update(part.frequency)
    related = [commit for part in parts for commit in part.related]
    return CommitEvidence(sum(part.commits for part in parts), dict(frequency), related)


def read_commit_evidence(history: GitHistory, weights: Mapping[str, float]) -> CommitEvidence:
    """Read the history with git and return the evidence for one question."""
    messages = history.messages()
    query = QueryTerms(weights)
    commits_by_term: dict[str, list[int]] = {}
    for number, (_, words) in enumerate(messages):
        for term in {term for word in words for term in query[word]}:
            commits_by_term.setdefault(term, []).append(number)
    nearest, frequency = nearest_commits(commits_by_term, len(messages), weights)
    files = history.changed_files([messages[number].commit for number, _ in nearest])
    found = (
        (terms, len(messages[number].words), files.get(messages[number].commit, ()))
        for number, terms in nearest
    )
    return CommitEvidence(len(messages), frequency, related_commits(found))


def nearest_commits(
    commits_by_term: Mapping[str, Sequence[int]], commits: int, weights: Mapping[str, float]
) -> tuple[list[tuple[int, frozenset[str]]], dict[str, int]]:
    """Return the commits that match the question best, each with its terms, and the frequency of each term.

    `commits_by_term` has the numbers of the commits that contain a term; the newest commit is 0.
    """
    frequency = {term: len(numbers) for term, numbers in commits_by_term.items() if numbers}
    rare = {term: weights[term] * math.log(1 + commits / (1 + count)) for term, count in frequency.items()}
    scores: dict[int, float] = {}
    for term in sorted(rare, key=lambda term: (rare[term], term)):
        score = rare[term]
        for number in commits_by_term[term]:
            scores[number] = scores.get(number, 0.0) + score
    # Sort by number first: the second sort is stable, so among equal scores the newest commit comes first.
    nearest = sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:MAX_NEAREST_COMMITS]
    terms: dict[int, list[str]] = {number: [] for number in nearest}
    for term in rare:
        for number in terms.keys() & commits_by_term[term]:
            terms[number].append(term)
    return [(number, frozenset(of_commit)) for number, of_commit in terms.items()], frequency


def related_commits(found: Iterable[tuple[frozenset[str], int, tuple[str, ...]]]) -> list[RelatedCommit]:
    """Return the commits that count as evidence, from the terms, words and files of each."""
    return [RelatedCommit(*one) for one in found if 0 < len(one[2]) <= MAX_COMMIT_FILES]


class CommitMessage(NamedTuple):
    """The words of one commit message."""

    commit: str
    words: list[bytes]
    """Distinct, in the order of the message."""

    def terms(self, vocabulary: Vocabulary) -> set[str]:
        return {term for word in self.words for term in vocabulary[word].split()}


class LoggedCommit(NamedTuple):
    """One commit, as a log shows it."""

    commit: str
    day: str
    """The author's date: `2026-02-28`."""
    subject: str
    paths: tuple[str, ...]
    """The files that it changed."""


def read_commits(
    root: Path, stop: Stop, paths: Sequence[str], limit: int, added_or_removed: str = ""
) -> list[LoggedCommit]:
    """Return the latest commits that changed one of the paths, or any path if there are none, newest first.

    `added_or_removed` keeps the commits that change how often this text occurs.
    """
    return GitHistory(root, stop).log(paths, limit, added_or_removed)


class GitHistory:
    """Runs git in one root. Every method returns an empty value if the root is no repository or git fails."""

    def __init__(self, root: Path, stop: Stop) -> None:
        self._root = root
        self._stop = stop
        self._git = shutil.which("git") if (root / ".git").exists() else None
        self.is_incomplete = False
        """Whether git was stopped or took too long, so that its output must not be taken as complete."""

    def state(self) -> str:
        """Return a text that changes whenever HEAD points to another commit. Usually starts no process."""
        if self._git is None:
            return ""
        return read_head_commit(self._root / ".git") or self._run("rev-parse", "HEAD").decode(
            "ascii", "replace"
        )

    def messages(self) -> list[CommitMessage]:
        """Return the messages of the latest commits, newest first."""
        output = self._run(
            *("log", f"--max-count={MAX_COMMITS}", "--no-merges", "--no-show-signature", "--encoding=UTF-8"),
            *("--no-color", "--format=%H%x00%s%n%b%x01", "HEAD", "--"),
        )
        found: list[CommitMessage] = []
        for record in output.split(b"\x01\n"):
            commit, _, message = record.strip().partition(b"\0")
            if message:
                distinct = list(dict.fromkeys(separate_words(message[:_MESSAGE_BYTES]).split()))
                found.append(CommitMessage(commit.decode("ascii", "replace"), distinct))
        return found

    def changed_files(self, commits: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the files that each commit changed."""
        if not commits:
            return {}
        output = self._run(
            *("diff-tree", "--stdin", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--root"),
            stdin="".join(f"{commit}\n" for commit in commits).encode(),
        )
        found: dict[str, list[str]] = {}
        wanted = set(commits)
        current: list[str] = []
        for part in output.split(b"\0"):
            text = part.decode(errors="replace").strip("\n")
            if text in wanted:
                current = found.setdefault(text, [])
            elif text:
                current.append(text)
        return {commit: tuple(paths) for commit, paths in found.items()}

    def log(self, paths: Sequence[str], limit: int, added_or_removed: str) -> list[LoggedCommit]:
        """Return the latest commits that changed one of the paths, newest first."""
        search = (f"-S{added_or_removed}",) if added_or_removed else ()
        output = self._run(
            *("--literal-pathspecs", "log", f"--max-count={limit}", "--no-merges", "--no-show-signature"),
            *("--encoding=UTF-8", "--no-color", "--no-ext-diff", "--no-textconv", "--date=short"),
            *(*search, "--format=%H%x00%ad%x00%s", "HEAD", "--", *paths),
        )
        found = [line.split("\0", 2) for line in output.decode("utf-8", "replace").split("\n")]
        logged = [fields for fields in found if len(fields) == 3]
        files = self.changed_files([commit for commit, _, _ in logged])
        return [LoggedCommit(commit, day, said, files.get(commit, ())) for commit, day, said in logged]

    def _run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run git and return its output; empty if it fails."""
        if self._git is None:
            return b""
        try:
            process = subprocess.Popen(
                [self._git, "--no-pager", "--no-replace-objects", *_SAFE_GIT_OPTIONS, *arguments],
                cwd=self._root,
                env=_git_environment(self._root),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return b""
        output = b""
        with process, self._stop.watch(process.kill):
            try:
                output, _ = process.communicate(stdin, timeout=_GIT_SECONDS)
            except subprocess.TimeoutExpired:
                self.is_incomplete = True
            finally:
                process.kill()
        self.is_incomplete |= self._stop.reached
        return output if process.returncode == 0 else b""


def _git_environment(root: Path) -> dict[str, str]:
    """Return only the variables that git needs, and keep it from using a repository above the root."""
    passed = {name: os.environ[name] for name in ("SYSTEMROOT", "PATH", "HOME") if name in os.environ}
    return passed | {
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }


_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MAX_REFERENCE_DEPTH = 5
"""How many references are followed; one may point to another."""


def read_head_commit(git_folder: Path) -> str:
    """Return the commit that HEAD points to, read from git's own files.

    Starting git would take as long as a whole answer. Returns an empty string for a branch without commits or
    an unknown way of storing references.
    """
    try:
        if git_folder.is_file():  # a worktree or a submodule
            git_folder = git_folder.parent / _read_text(git_folder).removeprefix("gitdir:").strip()
        name = "HEAD"
        for _ in range(_MAX_REFERENCE_DEPTH):
            value = _read_reference(git_folder, name)
            if _COMMIT.fullmatch(value):
                # A shallow clone may be deepened without a new commit.
                shallow = git_folder / "shallow"
                return value + _read_text(shallow) if shallow.exists() else value
            name = value.removeprefix("ref:").strip()
            if not name.startswith("refs/") or ".." in name:
                return ""
    except OSError:
        pass
    return ""


def _read_reference(git_folder: Path, name: str) -> str:
    """Return what a reference contains. A worktree shares all references but HEAD with its repository."""
    common = git_folder
    if (git_folder / "commondir").exists():
        common = git_folder / _read_text(git_folder / "commondir").strip()
    for file in (git_folder / name, common / name):
        if file.is_file():
            return _read_text(file).strip()
    found = re.search(rf"^([0-9a-f]+) {re.escape(name)}$", _read_text(common / "packed-refs"), re.MULTILINE)
    return found[1] if found else ""


def _read_text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
