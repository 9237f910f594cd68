"""A typed interface to RE2: regular expressions over UTF-8 bytes that run in linear time.

Patterns come from callers and from files inside the roots, and could make a backtracking engine hang.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, Protocol


class PatternInvalid(ValueError):
    """A pattern that RE2 does not accept. The message is RE2's."""


class Re2Match(Protocol):
    """The part of RE2's match that is used here."""

    def start(self) -> int: ...

    def span(self) -> tuple[int, int]: ...


class Regex(Protocol):
    """The part of RE2's compiled pattern that is used here."""

    @property
    def programsize(self) -> int:
        """The work for each byte in the worst case."""
        ...

    def search(self, text: bytes, pos: int, endpos: int) -> Re2Match | None: ...

    def fullmatch(self, text: bytes) -> Re2Match | None: ...

    def finditer(self, text: bytes) -> Iterator[Re2Match]: ...


def compile_regex(
    pattern: str, *, ignore_case: bool = False, within_lines: bool = False, of_bytes: bool = False
) -> Regex:
    """Compile a pattern. Raises PatternInvalid.

    With `within_lines`, no match contains a line end, and `^` and `$` match at every line. With `of_bytes`,
    the text is bytes instead of UTF-8: `\\xff` is a byte, and only ASCII letters have a case.
    """
    # Loaded on first use, because that takes 10 ms or more. It has no type stubs.
    re2: Any = importlib.import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.never_nl = within_lines
    options.never_capture = True
    if of_bytes:
        options.encoding = re2.Options.Encoding.LATIN1
    flags = "(?m)" if within_lines else "(?s)"
    try:
        compiled = re2.compile(f"{flags}{pattern}".encode(), options)
        re2.purge()  # it would keep the last 128 patterns, each with up to 8 MB of states
        return compiled
    except UnicodeEncodeError:
        raise PatternInvalid("it is not valid UTF-8 text") from None
    except re2.error as error:
        message: Any = error.args[0]
        reason = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        raise PatternInvalid(reason.replace(flags, "", 1)) from None
