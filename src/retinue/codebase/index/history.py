"""Finds commits whose messages match the question, with the files they changed, as evidence.

Reads a limited number of ancestors of HEAD with git, if the root itself is a repository. Without git, the
history is empty, which is not an error. The same holds for a repository that borrows objects of another.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from retinue.codebase.git import Git, GitRepository, GitView, find_git
from retinue.codebase.parse import ParsedQuestion, QueryTerms, separate_words
from retinue.core import LimitExceeded, RetinueError, Stop, Stopped

MAX_COMMITS = 5_000
"""Commits whose messages are read. Older commits did not improve answers in our measurements."""
SMALL_ROOT_FILES, SMALL_ROOT_WEIGHT = 1_000, 0.2
"""In a root with fewer files, one commit for each file is read for a question of one line, and they count so
much. The words of the files alone found as much there, and git took longer for 5,000 messages than the rest
of a scan took. For bug reports, which resemble the messages of commits, a shorter history found less."""
TINY_ROOT_FILES, TINY_ROOT_COMMITS = 400, 500
"""In a root with fewer files, so many commits are read for a bug report, and none for a question of one line:
starting git twice takes about as long as reading and searching all files."""
MAX_NEAREST_COMMITS = 40
"""Commits whose files are evidence."""
MAX_COMMIT_FILES = 30
"""A commit that changed more files is a sweeping change and says nothing about any of them."""
_MESSAGE_BYTES = 2_000
_RECORD_BYTES = 4_096
"""How much of one commit's message or of one path is kept. Systems limit paths to this length."""
_GIT_SECONDS = 10.0
_TELLING_CHARS = 8
"""A shorter line, such as a brace or `else`, occurs everywhere."""


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
    weight: float = 1.0
    """How much the commits count."""


def merge_commit_evidence(parts: Sequence[CommitEvidence]) -> CommitEvidence:
    """Combine the evidence of several roots."""
    if len(parts) == 1:
        return parts[0]
    frequency: Counter[str] = Counter()
    for part in parts:
        frequency.update(part.frequency)
    related = [commit for part in parts for commit in part.related]
    weight = max((part.weight for part in parts), default=1.0)
    return CommitEvidence(sum(part.commits for part in parts), dict(frequency), related, weight)


class CommitReach(NamedTuple):
    """How much of a history is evidence."""

    commits: int
    """So many of the latest commits are read."""
    weight: float = 1.0
    """How much they count."""


def commit_reach(question: ParsedQuestion, files: int) -> CommitReach:
    """Return how much of the history is read for a question about a root with so many files."""
    if files >= SMALL_ROOT_FILES:
        return CommitReach(MAX_COMMITS)
    if question.is_report:
        return CommitReach(MAX_COMMITS if files >= TINY_ROOT_FILES else TINY_ROOT_COMMITS)
    return CommitReach(files if files >= TINY_ROOT_FILES else 0, SMALL_ROOT_WEIGHT)


def read_commit_evidence(
    history: GitHistory, weights: Mapping[str, float], reach: CommitReach
) -> CommitEvidence:
    """Read the latest commits with git and return the evidence for one question."""
    messages = history.messages(reach.commits) if reach.commits else []
    starts = [0, *accumulate(len(message.text) + 1 for message in messages)]
    text = b"\n".join(message.text for message in messages)
    found_terms = QueryTerms(weights).count_terms(text, starts[:-1]) if messages else {}
    commits_by_term = {term: list(counts) for term, counts in found_terms.items()}
    nearest, frequency = nearest_commits(commits_by_term, len(messages), weights)
    files = history.changed_files([messages[number].commit for number, _ in nearest])
    found = (
        (terms, len(messages[number].words), files.get(messages[number].commit, ()))
        for number, terms in nearest
    )
    return CommitEvidence(len(messages), frequency, related_commits(found), reach.weight)


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
    """The beginning of one commit message."""

    commit: str
    text: bytes

    @property
    def words(self) -> list[bytes]:
        """The distinct words, in the order of the message."""
        return list(dict.fromkeys(separate_words(self.text).split()))


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
        self.is_incomplete = False
        """Whether git was stopped or took too long, so that its output must not be taken as complete."""

    def state(self) -> str:
        """Return a text that changes whenever HEAD points to another commit. Usually starts no process."""
        return "" if self._repository is None else self._repository.state() or self._head_by_git()

    def messages(self, limit: int = MAX_COMMITS) -> list[CommitMessage]:
        """Return the messages of the latest commits, newest first."""
        head = self._head()
        if not head:
            return []
        found: list[CommitMessage] = []
        for record in self._records(
            b"\x01\n",
            *("log", f"--max-count={limit}", "--no-merges", "--no-show-signature", "--encoding=UTF-8"),
            *("--no-color", "--no-mailmap", "--format=%H%x00%s%n%b%x01", head, "--"),
        ):
            commit, _, message = record.strip().partition(b"\0")
            if message:
                found.append(CommitMessage(commit.decode("ascii", "replace"), message[:_MESSAGE_BYTES]))
        return found

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
        except Stopped:
            self.is_incomplete = True
            return
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
