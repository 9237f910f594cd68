"""The indexed commits of a root: their messages as postings, and the files that each commit changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import cached_property

from retinue.codebase.index import postings
from retinue.codebase.index.database import corrupt_row_errors
from retinue.codebase.index.history import (
    CommitEvidence,
    CommitReach,
    GitHistory,
    nearest_commits,
    read_commit_evidence,
    related_commits,
)
from retinue.codebase.parse import Vocabulary

TABLES = """
CREATE TABLE IF NOT EXISTS history (root INTEGER PRIMARY KEY, state TEXT, commits INTEGER);
CREATE TABLE IF NOT EXISTS commits (
    root INTEGER, number INTEGER, name TEXT, words INTEGER, paths TEXT, PRIMARY KEY (root, number));
CREATE INDEX IF NOT EXISTS commit_names ON commits (root, name);
CREATE INDEX IF NOT EXISTS commits_without_files ON commits (root) WHERE paths IS NULL;
"""

_COMMIT_BATCH = 1_000
"""Commits whose files one call of git lists."""


class CommitIndex:
    """The commits of one root. The newest commit has number 0."""

    def __init__(self, database: sqlite3.Connection, root: int, history: GitHistory) -> None:
        self._db = database
        self._root = root
        self._segment = -1 - root
        """The number of this root's segment of postings. Segments of files have positive numbers."""
        self._history = history

    def is_complete(self) -> bool:
        """Return whether the commits are current and the files of all of them are known."""
        query = "SELECT 1 FROM commits WHERE root = ? AND paths IS NULL LIMIT 1"
        return self._is_current and self._db.execute(query, (self._root,)).fetchone() is None

    def evidence(self, weights: Mapping[str, float], reach: CommitReach) -> CommitEvidence:
        """Return the evidence of the latest commits for one question.

        It comes from the index if that is current, otherwise from git.
        """
        if not self._is_current:
            return read_commit_evidence(self._history, weights, reach)
        with corrupt_row_errors():
            return self._indexed_evidence(weights, reach)

    def update_messages(self) -> None:
        """Read all messages again if HEAD moved. That is cheap, and correct for a rewritten branch too."""
        if self._is_current:
            return
        state = self._history.state()
        messages = self._history.messages()
        words = [message.words for message in messages]
        if self._history.is_incomplete or self._history.state() != state:
            return  # the next update reads them
        query = "SELECT name, paths FROM commits WHERE root = ? AND paths IS NOT NULL"
        known_paths: dict[str, str] = dict(self._db.execute(query, (self._root,)).fetchall())
        self._db.execute("DELETE FROM commits WHERE root = ?", (self._root,))
        self._db.executemany(
            "INSERT INTO commits VALUES (?, ?, ?, ?, ?)",
            [
                (self._root, number, commit, len(words[number]), known_paths.get(commit))
                for number, (commit, _) in enumerate(messages)
            ],
        )
        postings.delete_postings(self._db, self._segment)
        codes = postings.new_posting_lists()
        vocabulary = Vocabulary()
        for number, of_message in enumerate(words):
            code = number << postings.COUNT_BITS | 1
            for term in {term for word in of_message for term in vocabulary[word].split()}:
                codes[term].append(code)
        postings.write_postings(self._db, self._segment, codes)
        self._db.execute("REPLACE INTO history VALUES (?, ?, ?)", (self._root, state, len(messages)))

    def update_changed_files(self) -> None:
        """Store the changed files of all commits whose files are not known yet."""
        query = "SELECT name FROM commits WHERE root = ? AND paths IS NULL"
        unknown = [name for (name,) in self._db.execute(query, (self._root,))]
        for first in range(0, len(unknown), _COMMIT_BATCH):
            batch = unknown[first : first + _COMMIT_BATCH]
            found = self._history.changed_files(batch)
            if not found:  # git was stopped or took too long: do not record these commits as empty
                return
            self._db.executemany(
                "UPDATE commits SET paths = ? WHERE root = ? AND name = ?",
                [("\0".join(found.get(name, ())), self._root, name) for name in batch],
            )

    @cached_property
    def _is_current(self) -> bool:
        row = self._db.execute("SELECT state FROM history WHERE root = ?", (self._root,)).fetchone()
        return row is not None and row[0] == self._history.state()

    def _indexed_evidence(self, weights: Mapping[str, float], reach: CommitReach) -> CommitEvidence:
        """Return the evidence for one question from the index alone, except for unknown changed files."""
        query = "SELECT commits FROM history WHERE root = ?"
        commits = min(reach.commits, self._db.execute(query, (self._root,)).fetchone()[0])
        commits_by_term = {
            term: [
                number
                for code in postings.read_postings(self._db, self._segment, term)
                if (number := code >> postings.COUNT_BITS) < commits
            ]
            for term in weights
        }
        nearest, frequency = nearest_commits(commits_by_term, commits, weights)
        rows: list[tuple[str, int, str | None]] = [
            self._db.execute(
                "SELECT name, words, paths FROM commits WHERE root = ? AND number = ?", (self._root, number)
            ).fetchone()
            for number, _ in nearest
        ]
        from_git = self._history.changed_files([name for name, _, paths in rows if paths is None])
        found = [
            (
                terms,
                words,
                from_git.get(name, ()) if paths is None else tuple(filter(None, paths.split("\0"))),
            )
            for (_, terms), (name, words, paths) in zip(nearest, rows, strict=True)
        ]
        return CommitEvidence(commits, frequency, related_commits(found), reach.weight)
