"""The commit messages of a root kept in its index by their words. What a commit changed is asked of git."""

# Table names end in the number of a root, which is ours and an integer.
# ruff: noqa: S608

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from retinue.codebase.evidence import Past
from retinue.codebase.history import History, Speaking, nearest, past_of
from retinue.codebase.terms import Vocabulary

_TABLES = """
CREATE TABLE IF NOT EXISTS history (root INTEGER PRIMARY KEY, state TEXT, commits INTEGER);
CREATE TABLE IF NOT EXISTS commits_{root} (id INTEGER PRIMARY KEY, name TEXT, words INTEGER);
CREATE VIRTUAL TABLE IF NOT EXISTS commit_words_{root} USING fts5(
    terms, content='', detail=none, columnsize=0, tokenize='ascii');
CREATE VIRTUAL TABLE IF NOT EXISTS commit_places_{root} USING fts5vocab(commit_words_{root}, instance);
"""


def tables(root: int) -> str:
    """What a new index needs for the history of one root, known by its number."""
    return _TABLES.format(root=root)


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
        words = f"commit_words_{self._root}"
        self._db.execute(f"DELETE FROM commits_{self._root}")
        self._db.execute(f"INSERT INTO {words} ({words}) VALUES ('delete-all')")
        terms_of = Vocabulary().__getitem__
        self._db.executemany(
            f"INSERT INTO commits_{self._root} VALUES (?, ?, ?)",
            [(row, commit, len(distinct)) for row, (commit, distinct) in enumerate(messages, 1)],
        )
        self._db.executemany(
            f"INSERT INTO {words} (rowid, terms) VALUES (?, ?)",
            [
                (row, " ".join(filter(None, map(terms_of, message.words))))
                for row, message in enumerate(messages, 1)
            ],
        )
        self._db.execute("REPLACE INTO history VALUES (?, ?, ?)", (self._root, state, len(messages)))

    def past(self, weights: Mapping[str, float]) -> Past:
        commits = self._db.execute("SELECT commits FROM history WHERE root = ?", (self._root,)).fetchone()[0]
        near, frequency = nearest(self._speaking(list(weights)), commits, weights)
        return past_of(near, commits, frequency, self._history.files([one.commit for one in near]))

    def _speaking(self, terms: Sequence[str]) -> list[Speaking]:
        shared: dict[int, list[str]] = {}
        for term in terms:
            places = self._db.execute(f"SELECT doc FROM commit_places_{self._root} WHERE term = ?", (term,))
            for (row,) in places:
                shared.setdefault(row, []).append(term)
        rows = (
            self._db.execute(f"SELECT id, name, words FROM commits_{self._root} ORDER BY id")
            if shared
            else ()
        )
        return [Speaking(name, frozenset(shared[row]), count) for row, name, count in rows if row in shared]
