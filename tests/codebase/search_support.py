"""Searches created files, for the tests of searching."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from retinue.codebase import Codebase, SearchPattern
from retinue.codebase.search import Ripgrep, SearchResult
from retinue.codebase.search.searcher import MIN_FILES_FOR_RIPGREP
from tests.codebase.file_support import bounded_stop, create_root

Files = dict[str, str | bytes]
FILLER: Files = {f"zz/{number:03}.filler": "" for number in range(MIN_FILES_FOR_RIPGREP)}
"""Enough other files for ripgrep to be worth starting."""
LINES = st.text(alphabet="abkKéßẞλx1_ .-]&[#~{}\t\r\u212a\ufeff", max_size=8)


class Grep:
    """Searches created files and shows matches as `path:line:column:text`."""

    def __init__(self, folder: Path, ripgrep: Ripgrep | None) -> None:
        self.folder = folder
        self.ripgrep = ripgrep

    def codebase(self, files: Files) -> Codebase:
        return Codebase([create_root(self.folder, {**files, **FILLER})], ripgrep=lambda: self.ripgrep)

    def __call__(self, files: Files, pattern: str | SearchPattern) -> list[str]:
        wanted = SearchPattern(pattern) if isinstance(pattern, str) else pattern
        return as_lines(self.codebase(files).grep(wanted, bounded_stop()))


def as_lines(found: SearchResult) -> list[str]:
    return [f"{match.entry.path}:{match.line}:{match.column}:{match.text}" for match in found.matches]
