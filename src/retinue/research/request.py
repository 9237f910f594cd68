"""What one request may spend. Callers may ask for less than the settings allow, not for more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from retinue.core import InvalidInput
from retinue.research.report_builder import FEWEST_TOKENS

MOST_TOKENS = 100_000
_NAMES = {
    "tokens": "tokens",
    "deadlineMs": "deadline_ms",
    "maxFilesRead": "max_files_read",
    "maxBytesRead": "max_bytes_read",
}


@dataclass(frozen=True, slots=True)
class ResearchConstraints:
    tokens: int = 2_000
    """Tokens of the answer."""
    deadline_ms: int = 30_000
    """Milliseconds for all roles together."""
    max_files_read: int = 50
    """Files that all roles together may read."""
    max_bytes_read: int = 1_048_576
    """Bytes that all roles together may read."""

    def narrowed(self, wanted: Mapping[str, int]) -> ResearchConstraints:
        """With what a caller asked for. The size of an answer is the caller's own choice, the rest is not."""
        chosen: dict[str, int] = {}
        for name, value in wanted.items():
            field = _NAMES.get(name) or (name if name in _NAMES.values() else None)
            if field is None:
                close = get_close_matches(name, _NAMES, 1)
                meant = f"did you mean {close[0]}?" if close else f"there are: {', '.join(_NAMES)}"
                raise InvalidInput(f"no such constraint: {name}", hint=meant)
            least = FEWEST_TOKENS if field == "tokens" else 1
            if value < least:
                raise InvalidInput(f"{name} must be at least {least}, not {value}")
            most = MOST_TOKENS if field == "tokens" else getattr(self, field)
            chosen[field] = min(value, most)
        return replace(self, **chosen)

    def lines(self) -> list[str]:
        """For a memo."""
        return [
            f"tokens: {self.tokens}",
            f"deadline: {self.deadline_ms} ms",
            f"files read: at most {self.max_files_read}",
            f"bytes read: at most {self.max_bytes_read}",
        ]
