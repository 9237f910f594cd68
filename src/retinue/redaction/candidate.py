"""What a rule matched, and what stands around it: all that tells a secret from something else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import log2

from retinue.redaction.rule import SecretRule, Target

TOKEN_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
IDENTIFIER_BYTES = TOKEN_BYTES | frozenset(b".")
NAME_BYTES = IDENTIFIER_BYTES | frozenset(b":*")
LONGEST_NAME = 50
LINE_REACH = 400
"""A minified file is one line, and it would be copied for each match."""


@dataclass(frozen=True, slots=True)
class Candidate:
    rule: SecretRule
    text: bytes
    matched: tuple[int, int]
    start: int
    end: int

    @property
    def secret(self) -> bytes:
        return self.text[self.start : self.end]

    @property
    def end_of_token(self) -> int:
        """Where the secret's last word ends, if it goes on after what the rule saw of it."""
        end = self.end
        while end < len(self.text) and self.text[end - 1] in TOKEN_BYTES and self.text[end] in TOKEN_BYTES:
            end += 1
        return end

    def seen_as(self, target: Target) -> bytes:
        """What an allowlist with this target looks at."""
        start, end = self.matched
        if target == "secret":
            return self.secret
        if target == "line":
            return self._line()
        if target == "name":
            start = self._start_of(NAME_BYTES)
        elif self.rule.after_identifier:
            start = self._start_of(IDENTIFIER_BYTES)
        return self.text[start:end]

    def _start_of(self, letters: frozenset[int]) -> int:
        start = self.matched[0]
        furthest = max(0, start - LONGEST_NAME)
        while start > furthest and self.text[start - 1] in letters:
            start -= 1
        return start

    def _line(self) -> bytes:
        first, last = max(0, self.start - LINE_REACH), min(len(self.text), self.end + LINE_REACH)
        line_start = self.text.rfind(b"\n", first, self.start) + 1
        line_end = self.text.find(b"\n", self.end, last)
        return self.text[line_start or first : line_end if line_end >= 0 else last]


def entropy(secret: bytes) -> float:
    """Shannon's, in bits per byte."""
    shares = [count / len(secret) for count in Counter(secret).values()]
    return -sum(share * log2(share) for share in shares)
