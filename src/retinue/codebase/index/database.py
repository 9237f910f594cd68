"""Rows that make no sense: then the index is damaged, and no answer may rest on it."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def corrupt_row_errors() -> Generator[None]:
    """Around the unpacking of a row. Raises sqlite3.DatabaseError, as SQLite does for a damaged page."""
    try:
        yield
    except (ValueError, LookupError, TypeError) as error:
        raise sqlite3.DatabaseError("a row of the index makes no sense") from error
