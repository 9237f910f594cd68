"""Defines a research request: the question, where to look, and how much it may cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from retinue.answers.report_builder import MIN_TOKENS
from retinue.core import Budget, InvalidInput

MAX_TOKENS = 100_000
MAX_DEADLINE_MS = 3_600_000
_FIELD_BY_NAME = {
    "tokens": "tokens",
    "deadlineMs": "deadline_ms",
    "maxFilesRead": "max_files_read",
    "maxBytesRead": "max_bytes_read",
    "useIndex": "use_index",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchRequest:
    """One request, as the caller sent it."""

    question: str
    also: Sequence[str] = ()
    """Names or words that the caller guesses to be in the code."""
    roots: Sequence[str] = ()
    """Allowed roots or folders inside them; all roots if empty."""
    constraints: Mapping[str, int] = field(default_factory=dict[str, int])
    """Limits that the caller asks for, by the names of `ResearchConstraints`."""
    limit: int | None = None
    """The maximum number of places; the default depends on the kind of request."""
    previous: str | None = None
    """The id of an earlier report to refine, or to show in full if the question is empty."""
    artifact: bool = False
    """Whether to write a memo too."""
    web: bool = False
    """Whether to look at pages of the web too, if the user allows the web."""


@dataclass(frozen=True, slots=True)
class ResearchConstraints:
    """The limits of one request. Callers choose the length of the answer and the deadline; they can lower
    the other limits of the settings, but not raise them."""

    tokens: int = 2_000
    """Tokens of the answer."""
    deadline_ms: int = 30_000
    """Milliseconds for all roles together."""
    max_files_read: int = 50
    """Files that all roles together may read."""
    max_bytes_read: int = 1_048_576
    """Bytes that all roles together may read."""
    use_index: int = 1
    """0 searches the files themselves, without the index."""

    def narrow(self, wanted: Mapping[str, int]) -> ResearchConstraints:
        """Apply the limits of a caller. Only `tokens` and `deadline_ms` may exceed the settings."""
        most = {"tokens": MAX_TOKENS, "deadline_ms": MAX_DEADLINE_MS}
        chosen: dict[str, int] = {}
        for name, value in wanted.items():
            field = _FIELD_BY_NAME.get(name) or (name if name in _FIELD_BY_NAME.values() else None)
            if field is None:
                close = get_close_matches(name, _FIELD_BY_NAME, 1)
                meant = f"did you mean {close[0]}?" if close else f"use one of: {', '.join(_FIELD_BY_NAME)}"
                raise InvalidInput(f"no such constraint: {name}", hint=meant)
            least = {"tokens": MIN_TOKENS, "use_index": 0}.get(field, 1)
            if value < least:
                raise InvalidInput(f"{name} must be at least {least}, not {value}")
            chosen[field] = min(value, most.get(field) or getattr(self, field))
        return replace(self, **chosen)

    @property
    def budget(self) -> Budget:
        """The limits that the meter of the request's run enforces."""
        return Budget(files=self.max_files_read, bytes=self.max_bytes_read)

    def as_dict(self) -> dict[str, int]:
        """Return the limits by the names that callers use."""
        return {name: getattr(self, field) for name, field in _FIELD_BY_NAME.items()}

    def memo_lines(self) -> list[str]:
        """Return the constraints as lines of a memo."""
        return [
            f"tokens: {self.tokens}",
            f"deadline: {self.deadline_ms} ms",
            f"files read: at most {self.max_files_read}",
            f"bytes read: at most {self.max_bytes_read}",
            *(["without the index"] if not self.use_index else []),
        ]
