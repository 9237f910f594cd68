"""The commit messages of a root kept in its index by their words, with the files that each commit changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from retinue.codebase import postings
from retinue.codebase.evidence import Change, Past
from retinue.codebase.history import MOST_FILES, History, distinct_terms, nearest, past
from retinue.codebase.terms import Vocabulary

TABLES = """
CREATE TABLE IF NOT EXISTS history (root INTEGER PRIMARY KEY, state TEXT, commits INTEGER);
CREATE TABLE IF NOT EXISTS commits (
    root INTEGER, number INTEGER, name TEXT, words INTEGER, paths TEXT, PRIMARY KEY (root, number));
"""


_BATCH = 500
"""Commits that git is asked about at once."""


class Chronicle:
    def __init__(self, database: sqlite3.Connection, root: int, history: History) -> None:
        self._db = database
        self._root = root
        self._segment = -1 - root
        """Of the postings; those of files count upwards from 1."""
        self._history = history

    def is_current(self) -> bool:
        row = self._db.execute("SELECT state FROM history WHERE root = ?", (self._root,)).fetchone()
        return row is not None and row[0] == self._history.state()

    def renew(self) -> None:
        """Read all messages again: that is cheap, and a rewritten branch needs no care."""
        state = self._history.state()
        messages = self._history.messages()
        known: dict[str, str] = dict(
            self._db.execute("SELECT name, paths FROM commits WHERE root = ?", (self._root,)).fetchall()
        )
        unknown = [one.commit for one in messages if one.commit not in known]
        for first in range(0, len(unknown), _BATCH):
            found = self._history.files(unknown[first : first + _BATCH])
            if not found:  # git was stopped or took too long: what is not known must not pass for nothing
                return
            known |= {commit: "\0".join(paths) for commit, paths in found.items() if len(paths) <= MOST_FILES}
        self._db.execute("DELETE FROM commits WHERE root = ?", (self._root,))
        self._db.executemany(
            "INSERT INTO commits VALUES (?, ?, ?, ?, ?)",
            [
                (self._root, number, one.commit, len(one.words), known.get(one.commit, ""))
                for number, one in enumerate(messages)
            ],
        )
        postings.remove(self._db, self._segment)
        codes: dict[str, list[int]] = {}
        vocabulary = Vocabulary()
        for number, one in enumerate(messages):
            code = postings.code(number, 1)
            for term in distinct_terms(one, vocabulary):
                codes.setdefault(term, []).append(code)
        postings.write(self._db, self._segment, codes)
        self._db.execute("REPLACE INTO history VALUES (?, ?, ?)", (self._root, state, len(messages)))

    def past(self, weights: Mapping[str, float]) -> Past:
        """From what is kept if that is still the history, and otherwise from git."""
        if not self.is_current():
            return past(self._history, weights)
        commits = self._db.execute("SELECT commits FROM history WHERE root = ?", (self._root,)).fetchone()[0]
        speaking = {term: postings.read(self._db, self._segment, term)[0] for term in weights}
        near, frequency = nearest(speaking, commits, weights)
        changes: list[Change] = []
        for number, terms in near:
            row = self._db.execute(
                "SELECT words, paths FROM commits WHERE root = ? AND number = ?", (self._root, number)
            ).fetchone()
            if row[1]:
                changes.append(Change(frozenset(terms), row[0], tuple(row[1].split("\0"))))
        return Past(commits, frequency, changes)
