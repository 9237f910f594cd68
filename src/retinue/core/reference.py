"""References to places in files, written `path`, `path:line` or `path:line:col`.

Does not check whether the file exists.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

from retinue.core.errors import InvalidInput

_NUMBER = "[1-9][0-9]{0,8}"
_SHAPE = re.compile(rf"(?P<path>.+?)(?::(?P<line>{_NUMBER}))?(?::(?P<col>{_NUMBER}))?", re.DOTALL)
_ENDS_LIKE_A_LINE = re.compile(rf".*:{_NUMBER}", re.DOTALL)


@total_ordering
@dataclass(frozen=True, slots=True)
class Reference:
    """A file, a line or a column. References sort by path, then line, then column."""

    path: str
    """Relative to its root, separated by `/`."""
    line: int | None = None
    """Counted from 1."""
    col: int | None = None
    """Counted from 1. Requires a line."""

    def __post_init__(self) -> None:
        if not self.path or "\0" in self.path:
            raise InvalidInput(f"not a path: {self.path!r}")
        if self.col is not None and self.line is None:
            raise InvalidInput(f"a column requires a line: {self.path!r}")
        for number in (self.line, self.col):
            if number is not None and not 1 <= number <= 999_999_999:
                raise InvalidInput(f"lines and columns count from 1, not {number}: {self.path!r}")

    @classmethod
    def parse(cls, text: str) -> Reference:
        """The inverse of `str`. Other colons, such as that of a drive letter, belong to the path."""
        parts = _SHAPE.fullmatch(text)
        if parts is None:
            raise InvalidInput("the reference is empty", hint="write path, path:line or path:line:col")
        line, col = (int(number) if number else None for number in parts.group("line", "col"))
        return cls(parts["path"], line, col)

    @property
    def sort_key(self) -> tuple[str, int, int]:
        """Sorts a file before its lines."""
        return self.path, self.line or 0, self.col or 0

    def __str__(self) -> str:
        # A file may be named `notes:12`. Only with both numbers is it clear where such a path ends.
        both = _ENDS_LIKE_A_LINE.fullmatch(self.path) is not None
        line = self.line or (1 if both else None)
        col = self.col or (1 if both else None)
        return ":".join(str(part) for part in (self.path, line, col) if part is not None)

    def __lt__(self, other: Reference) -> bool:
        return self.sort_key < other.sort_key
