"""The commit messages of a root kept in its index by their words. What a commit changed is asked of git."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from retinue.codebase.evidence import Past
from retinue.codebase.history import History, Speaking, nearest, past_of
from retinue.codebase.terms import Vocabulary

TABLES = """
CREATE TABLE IF NOT EXISTS history (root INTEGER PRIMARY KEY, state TEXT, commits INTEGER);
CREATE TABLE IF NOT EXISTS commits (
    id INTEGER PRIMARY KEY AUTOINCREMENT, root INTEGER, name TEXT, words INTEGER);
CREATE VIRTUAL TABLE IF NOT EXISTS commit_words USING fts5(
    terms, content='', detail=none, columnsize=0, tokenize='ascii');
CREATE VIRTUAL TABLE IF NOT EXISTS commit_places USING fts5vocab(commit_words, instance);
"""


class Chronicle:
    def __init__(self, database: sqlite3.Connection, root: int, history: History) -> None:
        self._db = database
        self._root = root
        self._history = history

    def is_current(self) -> bool:
        row = self._db.execute("SELECT state FROM history WHERE root = ?", (self._root,)).fetchone()
        return row is not None and row[0] == self._history.state()

    def renew(self) -> None:
        """Read all messages again: that is cheap, and a rewritten branch needs no care."""
        state = self._history.state()
        messages = self._history.messages()
        self._db.execute("DELETE FROM commits WHERE root = ?", (self._root,))
        vocabulary = Vocabulary()
        for commit, distinct in messages:
            stored = self._db.execute(
                "INSERT INTO commits (root, name, words) VALUES (?, ?, ?)",
                (self._root, commit, len(distinct)),
            )
            said = " ".join(filter(None, map(vocabulary.__getitem__, distinct)))
            self._db.execute(
                "INSERT INTO commit_words (rowid, terms) VALUES (?, ?)", (stored.lastrowid, said)
            )
        self._db.execute("REPLACE INTO history VALUES (?, ?, ?)", (self._root, state, len(messages)))

    def past(self, weights: Mapping[str, float]) -> Past:
        commits = self._db.execute("SELECT commits FROM history WHERE root = ?", (self._root,)).fetchone()[0]
        near, frequency = nearest(self._speaking(list(weights)), commits, weights)
        return past_of(near, commits, frequency, self._history.files([one.commit for one in near]))

    def _speaking(self, terms: Sequence[str]) -> list[Speaking]:
        shared: dict[int, list[str]] = {}
        for term in terms:
            for (row,) in self._db.execute("SELECT doc FROM commit_places WHERE term = ?", (term,)):
                shared.setdefault(row, []).append(term)
        if not shared:
            return []
        first, last = min(shared), max(shared)
        rows = self._db.execute(
            "SELECT id, name, words FROM commits WHERE root = ? AND id BETWEEN ? AND ? ORDER BY id",
            (self._root, first, last),
        )
        return [Speaking(name, frozenset(shared[row]), count) for row, name, count in rows if row in shared]
