"""The commit messages of a root kept in its index by their words, with the files that each commit changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import cached_property

from retinue.codebase.index import postings
from retinue.codebase.index.database import corrupt_row_errors
from retinue.codebase.index.evidence import CommitEvidence
from retinue.codebase.index.history import (
    GitHistory,
    message_terms,
    nearest_commits,
    read_commit_evidence,
    voting_commits,
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
"""Commits that git is asked about at once."""


class CommitIndex:
    def __init__(self, database: sqlite3.Connection, root: int, history: GitHistory) -> None:
        self._db = database
        self._root = root
        self._segment = -1 - root
        """Of the postings; those of files count upwards from 1."""
        self._history = history

    @cached_property
    def _is_current(self) -> bool:
        row = self._db.execute("SELECT state FROM history WHERE root = ?", (self._root,)).fetchone()
        return row is not None and row[0] == self._history.state()

    def is_whole(self) -> bool:
        """Current, and with the files of all commits."""
        query = "SELECT 1 FROM commits WHERE root = ? AND paths IS NULL LIMIT 1"
        return self._is_current and self._db.execute(query, (self._root,)).fetchone() is None

    def renew_messages(self) -> None:
        """Read all of them again if HEAD moved: that is cheap, and a rewritten branch needs no care."""
        if self._is_current:
            return
        state = self._history.state()
        messages = self._history.messages()
        if self._history.is_cut_short or self._history.state() != state:
            return  # the next update reads them
        query = "SELECT name, paths FROM commits WHERE root = ? AND paths IS NOT NULL"
        known: dict[str, str] = dict(self._db.execute(query, (self._root,)).fetchall())
        self._db.execute("DELETE FROM commits WHERE root = ?", (self._root,))
        self._db.executemany(
            "INSERT INTO commits VALUES (?, ?, ?, ?, ?)",
            [
                (self._root, number, one.commit, len(one.words), known.get(one.commit))
                for number, one in enumerate(messages)
            ],
        )
        postings.delete_postings(self._db, self._segment)
        codes = postings.new_posting_lists()
        vocabulary = Vocabulary()
        for number, one in enumerate(messages):
            code = number << postings.COUNT_BITS | 1
            for term in message_terms(one, vocabulary):
                codes[term].append(code)
        postings.write_postings(self._db, self._segment, codes)
        self._db.execute("REPLACE INTO history VALUES (?, ?, ?)", (self._root, state, len(messages)))

    def add_files(self) -> None:
        """Which files the commits changed, where that is not known yet."""
        query = "SELECT name FROM commits WHERE root = ? AND paths IS NULL"
        unknown = [name for (name,) in self._db.execute(query, (self._root,))]
        for first in range(0, len(unknown), _COMMIT_BATCH):
            batch = unknown[first : first + _COMMIT_BATCH]
            found = self._history.files(batch)
            if not found:  # git was stopped or took too long: what is not known must not pass for nothing
                return
            self._db.executemany(
                "UPDATE commits SET paths = ? WHERE root = ? AND name = ?",
                [("\0".join(found.get(name, ())), self._root, name) for name in batch],
            )

    def past(self, weights: Mapping[str, float]) -> CommitEvidence:
        """From what is kept if that is still the history, and otherwise from git."""
        if not self._is_current:
            return read_commit_evidence(self._history, weights)
        with corrupt_row_errors():
            return self._kept(weights)

    def _kept(self, weights: Mapping[str, float]) -> CommitEvidence:
        commits = self._db.execute("SELECT commits FROM history WHERE root = ?", (self._root,)).fetchone()[0]
        speaking = {
            term: [
                code >> postings.COUNT_BITS for code in postings.read_postings(self._db, self._segment, term)
            ]
            for term in weights
        }
        near, frequency = nearest_commits(speaking, commits, weights)
        rows: list[tuple[str, int, str | None]] = [
            self._db.execute(
                "SELECT name, words, paths FROM commits WHERE root = ? AND number = ?", (self._root, number)
            ).fetchone()
            for number, _ in near
        ]
        asked = self._history.files([name for name, _, paths in rows if paths is None])
        found = [
            (terms, words, asked.get(name, ()) if paths is None else tuple(filter(None, paths.split("\0"))))
            for (_, terms), (name, words, paths) in zip(near, rows, strict=True)
        ]
        return CommitEvidence(commits, frequency, voting_commits(found))
