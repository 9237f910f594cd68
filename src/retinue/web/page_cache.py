"""Keeps the text of fetched pages on disk for some hours, so that a second question fetches nothing.

One file for each address, readable only by the user, bounded in number and size: the oldest go first. Knows
nothing of who may open an address; that is checked again before a page is taken from here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path

from retinue.core import as_object

MAX_FILES = 500
MAX_BYTES = 40 << 20
_STORED: Mapping[str, type] = {
    "address": str, "final": str, "title": str, "date": str, "text": str, "fetched_at": float, "cut": bool,
}  # fmt: skip
"""What the file of a page has."""


def read_date(written: str) -> str:
    """Return a date as `2026-03-03`, from an ISO date or the date of a mail; empty if it is neither."""
    if found := re.match(r"\d{4}-[01]\d-[0-3]\d(?![\w-])|\d{4}-[01]\d-[0-3]\d(?=T)", written):
        return found[0]
    try:
        return parsedate_to_datetime(written).strftime("%Y-%m-%d")
    except (ValueError, IndexError, TypeError):
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of the web as text. Everything in it was written by strangers."""

    address: str
    """The address that was asked for."""
    final: str
    """Where redirects led."""
    title: str
    date: str
    """When the page says it was published or changed; empty if it does not say."""
    text: str = field(repr=False)
    fetched_at: float
    """Seconds since 1970."""
    cut: bool = False
    cached: bool = False
    """Whether it was fetched by an earlier question."""

    def age_s(self, now: float | None = None) -> float:
        """Return how many seconds ago the page was fetched."""
        return max(0.0, (time.time() if now is None else now) - self.fetched_at)


@dataclass(frozen=True, slots=True)
class PageCache:
    """The pages in one folder. `max_age_s` of 0 keeps nothing. All methods block; call them in a thread."""

    folder: Path
    max_age_s: float
    max_files: int = MAX_FILES
    max_bytes: int = MAX_BYTES
    clock: Callable[[], float] = time.time

    def get(self, address: str) -> Page | None:
        """Return a page that is not too old; None if there is none, or its file is damaged."""
        try:
            stored = as_object(json.loads(self._file(address).read_bytes()))
            page = Page(**stored, cached=True)
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        if not all(isinstance(stored.get(name), kind) for name, kind in _STORED.items()):
            return None
        age = self.clock() - page.fetched_at
        return page if page.address == address and 0 <= age < self.max_age_s else None

    def put(self, page: Page) -> None:
        """Keep a page. A full disk is no error: the page is fetched again."""
        if self.max_age_s <= 0:
            return
        values = asdict(page)
        del values["cached"]
        data = json.dumps(values).encode()
        if len(data) > self.max_bytes // 4:
            return
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.folder, suffix=".new")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                Path(name).replace(self._file(page.address))
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
            self._remove_oldest()

    def size(self) -> tuple[int, int]:
        """Return how many pages there are, and their bytes."""
        files = self._files()
        return len(files), sum(size for _, size, _ in files)

    def clear(self) -> tuple[int, int]:
        """Remove all pages. Returns how many there were, and their bytes."""
        removed = size = 0
        for _, length, file in self._files():
            with suppress(OSError):
                file.unlink()
                removed, size = removed + 1, size + length
        return removed, size

    def _file(self, address: str) -> Path:
        return self.folder / f"{hashlib.sha256(address.encode()).hexdigest()}.json"

    def _files(self) -> list[tuple[float, int, Path]]:
        found: list[tuple[float, int, Path]] = []
        with suppress(OSError):
            for file in self.folder.iterdir():
                with suppress(OSError):
                    if file.suffix in (".json", ".new"):
                        state = file.lstat()
                        found.append((state.st_mtime, state.st_size, file))
        return found

    def _remove_oldest(self) -> None:
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        while files and (len(files) > self.max_files or total > self.max_bytes):
            _, size, oldest = files.pop(0)
            total -= size
            oldest.unlink(missing_ok=True)
