"""RE2 behind a typed door: regular expressions over UTF-8 bytes whose time grows with the text alone.

Patterns come from callers and from files inside the roots; a backtracking engine can be made to hang.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol


class PatternInvalid(ValueError):
    """What RE2 says is wrong with a pattern."""


class RegexMatch(Protocol):
    def start(self) -> int: ...


class Regex(Protocol):
    @property
    def programsize(self) -> int:
        """How much there is to do for each byte at worst."""
        ...

    def search(self, text: bytes, pos: int, endpos: int) -> RegexMatch | None: ...

    def fullmatch(self, text: bytes) -> RegexMatch | None: ...


def compile_regex(pattern: str, *, ignore_case: bool = False, within_lines: bool = False) -> Regex:
    """`within_lines`: no match holds a line's end, and `^` and `$` stand at every line's ends."""
    # Loaded on first use: it costs 10 ms or more, and has no type stubs.
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
        raise PatternInvalid("it is not text that UTF-8 can hold") from None
    except re2.error as error:
        said: Any = error.args[0]
        why = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise PatternInvalid(why.replace(flags, "", 1)) from None
