"""What the commits of a root say: which changed files whose messages speak of the question.

Reads the ancestors of HEAD with git, if the root itself is a repository, and only so many of them. Runs no
hook, no pager, no external diff, no signature check, and fetches nothing. Without git there is no history,
and no error."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from retinue.codebase.index.evidence import CommitEvidence, RelatedCommit
from retinue.codebase.parse import QueryTerms, Vocabulary, separate_words
from retinue.core import Stop

# MERGED git_head: Which commit HEAD names, read from git's own files: a process would cost as much as the answer.

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MAX_REFERENCE_DEPTH = 5
"""A reference may name another one."""


def read_head_commit(folder: Path) -> str:
    """Empty if it cannot be told: an unborn branch, or a way of storing references that is not known here."""
    try:
        if folder.is_file():  # a worktree or a submodule
            folder = folder.parent / _read_text(folder).removeprefix("gitdir:").strip()
        name = "HEAD"
        for _ in range(_MAX_REFERENCE_DEPTH):
            said = _read_reference(folder, name)
            if _COMMIT.fullmatch(said):
                # A shallow clone may be deepened below the same commit.
                return said + _read_text(folder / "shallow") if (folder / "shallow").exists() else said
            name = said.removeprefix("ref:").strip()
            if not name.startswith("refs/") or ".." in name:
                return ""
    except OSError:
        pass
    return ""


def _read_reference(folder: Path, name: str) -> str:
    """What a reference holds. Worktrees share all but HEAD with their repository."""
    common = folder
    if (folder / "commondir").exists():
        common = folder / _read_text(folder / "commondir").strip()
    for file in (folder / name, common / name):
        if file.is_file():
            return _read_text(file).strip()
    found = re.search(rf"^([0-9a-f]+) {re.escape(name)}$", _read_text(common / "packed-refs"), re.MULTILINE)
    return found[1] if found else ""


def _read_text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


MAX_COMMITS = 5_000
"""How far back messages are read. Older ones were no better than none on the development sets."""
MAX_NEAREST_COMMITS = 40
"""Commits whose files vote."""
MAX_COMMIT_FILES = 30
"""A commit that changed more is a sweep: it says nothing of any one file."""
_MESSAGE_BYTES = 2_000
_GIT_SECONDS = 10.0

_SAFE_GIT_OPTIONS = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never"),
    *("-c", "log.showSignature=false", "-c", "diff.external=", "-c", "core.quotePath=false"),
)


class CommitMessage(NamedTuple):
    commit: str
    words: list[bytes]
    """Distinct, in the order of the message."""


class GitHistory:
    def __init__(self, root: Path, stop: Stop) -> None:
        self._root = root
        self._stop = stop
        self._git = shutil.which("git") if (root / ".git").exists() else None
        self.is_cut_short = False
        """Whether git was stopped or took too long: what it did not say must not pass for nothing."""

    def state(self) -> str:
        """Changes whenever HEAD comes to name another commit. Costs no process in an ordinary repository."""
        if self._git is None:
            return ""
        return read_head_commit(self._root / ".git") or self._ask("rev-parse", "HEAD").decode(
            "ascii", "replace"
        )

    def messages(self) -> list[CommitMessage]:
        """The newest first."""
        said = self._ask(
            *("log", f"--max-count={MAX_COMMITS}", "--no-merges", "--no-show-signature", "--encoding=UTF-8"),
            *("--no-color", "--format=%H%x00%s%n%b%x01", "HEAD", "--"),
        )
        found: list[CommitMessage] = []
        for record in said.split(b"\x01\n"):
            commit, _, message = record.strip().partition(b"\0")
            if message:
                distinct = list(dict.fromkeys(separate_words(message[:_MESSAGE_BYTES]).split()))
                found.append(CommitMessage(commit.decode("ascii", "replace"), distinct))
        return found

    def files(self, commits: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The files that each commit changed."""
        if not commits:
            return {}
        said = self._ask(
            *("diff-tree", "--stdin", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--root"),
            given="".join(f"{commit}\n" for commit in commits).encode(),
        )
        found: dict[str, list[str]] = {}
        wanted = set(commits)
        current: list[str] = []
        for field in said.split(b"\0"):
            text = field.decode(errors="replace").strip("\n")
            if text in wanted:
                current = found.setdefault(text, [])
            elif text:
                current.append(text)
        return {commit: tuple(paths) for commit, paths in found.items()}

    def _ask(self, *arguments: str, given: bytes = b"") -> bytes:
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
        said = b""
        with process, self._stop.watch(process.kill):
            try:
                said, _ = process.communicate(given, timeout=_GIT_SECONDS)
            except subprocess.TimeoutExpired:
                self.is_cut_short = True
            finally:
                process.kill()
        self.is_cut_short |= self._stop.reached
        return said if process.returncode == 0 else b""


def _git_environment(root: Path) -> dict[str, str]:
    """Nothing of the caller's, and no repository but the root's own."""
    passed = {name: os.environ[name] for name in ("SYSTEMROOT", "PATH", "HOME") if name in os.environ}
    return passed | {
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }


def message_terms(message: CommitMessage, vocabulary: Vocabulary) -> set[str]:
    return {term for word in message.words for term in vocabulary[word].split()}


def nearest_commits(
    speaking: Mapping[str, Sequence[int]], commits: int, weights: Mapping[str, float]
) -> tuple[list[tuple[int, frozenset[str]]], dict[str, int]]:
    """The commits that speak most of what is asked, with the terms of each, and how many have each term.

    `speaking` has the numbers of the commits with a term; the newest commit is 0.
    """
    frequency = {term: len(numbers) for term, numbers in speaking.items() if numbers}
    rare = {term: weights[term] * math.log(1 + commits / (1 + count)) for term, count in frequency.items()}
    scores: dict[int, float] = {}
    for term in sorted(rare, key=lambda term: (rare[term], term)):
        worth = rare[term]
        for number in speaking[term]:
            scores[number] = scores.get(number, 0.0) + worth
    # Numbers in order first: sorting is stable, so of equals the newest comes first.
    near = sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:MAX_NEAREST_COMMITS]
    terms: dict[int, list[str]] = {number: [] for number in near}
    for term in rare:
        for number in terms.keys() & speaking[term]:
            terms[number].append(term)
    return [(number, frozenset(of_commit)) for number, of_commit in terms.items()], frequency


def voting_commits(found: Iterable[tuple[frozenset[str], int, tuple[str, ...]]]) -> list[RelatedCommit]:
    """The commits that may vote, from the terms, words and files of each."""
    return [RelatedCommit(*one) for one in found if 0 < len(one[2]) <= MAX_COMMIT_FILES]


def read_commit_evidence(history: GitHistory, weights: Mapping[str, float]) -> CommitEvidence:
    """The history as evidence for one question, read afresh."""
    messages = history.messages()
    asked = QueryTerms(weights)
    speaking: dict[str, list[int]] = {}
    for number, (_, distinct) in enumerate(messages):
        for term in {term for word in distinct for term in asked[word]}:
            speaking.setdefault(term, []).append(number)
    near, frequency = nearest_commits(speaking, len(messages), weights)
    files = history.files([messages[number].commit for number, _ in near])
    found = (
        (terms, len(messages[number].words), files.get(messages[number].commit, ())) for number, terms in near
    )
    return CommitEvidence(len(messages), frequency, voting_commits(found))
