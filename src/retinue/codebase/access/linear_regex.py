"""A typed interface to RE2: regular expressions over UTF-8 bytes that run in linear time.

Patterns come from callers and from files inside the roots, and could make a backtracking engine hang.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol


class PatternInvalid(ValueError):
    """A pattern that RE2 does not accept. The message is RE2's."""


class Re2Match(Protocol):
    """The part of RE2's match that is used here."""

    def start(self) -> int: ...


class Regex(Protocol):
    """The part of RE2's compiled pattern that is used here."""

    @property
    def programsize(self) -> int:
        """The work for each byte in the worst case."""
        ...

    def search(self, text: bytes, pos: int, endpos: int) -> Re2Match | None: ...

    def fullmatch(self, text: bytes) -> Re2Match | None: ...


def compile_regex(pattern: str, *, ignore_case: bool = False, within_lines: bool = False) -> Regex:
    """Compile a pattern. Raises PatternInvalid.

    With `within_lines`, no match contains a line end, and `^` and `$` match at every line.
    """
    # Loaded on first use, because that takes 10 ms or more. It has no type stubs.
    re2: Any = importlib.import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.never_nl = within_lines
    options.never_capture = True
    flags = "(?m)" if within_lines else "(?s)"
    try:
        return re2.compile(f"{flags}{pattern}".encode(), options)
    except UnicodeEncodeError:
        raise PatternInvalid("it is not valid UTF-8 text") from None
    except re2.error as error:
        message: Any = error.args[0]
        reason = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        raise PatternInvalid(reason.replace(flags, "", 1)) from None
