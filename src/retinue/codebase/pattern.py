"""What a search looks for, in the one dialect that RE2 and ripgrep share.

RE2 decides what matches. For ripgrep, which only narrows down the files that RE2 then looks at, the pattern
is rewritten so that it matches at least as much; where that cannot be told, ripgrep is not asked.
`\\d`, `\\w`, `\\s` and `\\b` mean ASCII, `.` and case are Unicode's, and nothing matches across lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retinue.codebase.linear_regex import PatternInvalid, Regex, compile_regex
from retinue.codebase.rust_regex import to_rust
from retinue.core import InvalidInput

MAX_PATTERN_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class SearchPattern:
    text: str
    fixed: bool = False
    """The text itself, not a regular expression."""
    ignore_case: bool = False
    word: bool = False
    """Only where the match begins and ends at a word's edge."""

    def __post_init__(self) -> None:
        if not self.text:
            raise InvalidInput("the pattern is empty", hint="give the text to look for")
        if len(self.text) > MAX_PATTERN_CHARS:
            raise InvalidInput(
                f"the pattern has {len(self.text)} characters, over the limit of {MAX_PATTERN_CHARS}"
            )
        if "\0" in self.text:
            raise InvalidInput("a pattern cannot hold a zero byte")
        if "\n" in self.text or (not self.fixed and re.search(r"(?<!\\)(?:\\\\)*\\n", self.text)):
            raise InvalidInput(
                "a pattern cannot span lines", hint="look for one line, and ask for context around it"
            )

    def source(self) -> str:
        """The regular expression in RE2's syntax."""
        if not self.fixed:
            return rf"\b(?:{self.text})\b" if self.word else self.text
        # Beside a sign there is no edge of a word: `$name` as a word ends like one but begins as it is.
        before, after = (
            r"\b" if self.word and _is_word(end) else "" for end in (self.text[0], self.text[-1])
        )
        return f"{before}{re.escape(self.text)}{after}"

    def regex(self) -> Regex:
        try:
            return compile_regex(self.source(), ignore_case=self.ignore_case, within_lines=True)
        except PatternInvalid as error:
            raise InvalidInput(
                f"not a pattern: {error}",
                hint="the syntax is RE2's: no lookaround, no backreferences; set fixed for plain text",
            ) from None

    def for_ripgrep(self) -> str | None:
        """The same, or a little more, in the syntax of Rust's regex; None if that cannot be told."""
        return to_rust(self.source())


def _is_word(char: str) -> bool:
    return char == "_" or (char.isascii() and char.isalnum())
