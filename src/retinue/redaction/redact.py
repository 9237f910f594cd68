"""Takes secrets out of text and leaves everything around them: the door through which all output passes.

Knows nothing of where text comes from or goes to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from retinue.redaction.lines import LineRedactor
from retinue.redaction.spans import Span, joined, outside, within
from retinue.redaction.values import rewritten

if TYPE_CHECKING:
    from retinue.redaction.finder import Finder

T = TypeVar("T")

HIDDEN_VALUE = "hidden-value"
SHORTEST_HIDDEN = 6
"""Shorter values, such as "true" or "8080", occur by chance."""

MARKER_START, MARKER_END = b"[redacted:", b"]"
LONGEST_MARKER = 80
MAX_ROUNDS = 6
"""Hiding a secret can bare another, so the search repeats until it finds none; hostile text ends it here."""


class SecretRedactor:
    """Replaces each secret by `[redacted:<kind>]`. Redacting twice changes nothing."""

    def __init__(self, hidden: Iterable[str] = (), *, finder: Finder | None = None) -> None:
        """`hidden` are values to take out wherever they occur, such as tokens given to a child process."""
        self._hidden = frozenset(value for value in hidden if len(value) >= SHORTEST_HIDDEN)
        self._hidden_forms = sorted({form for value in self._hidden for form in forms_of(value)})
        self._given_finder = finder

    def with_hidden(self, values: Iterable[str]) -> SecretRedactor:
        """A redactor that hides these values too."""
        return SecretRedactor(self._hidden.union(values), finder=self._given_finder)

    def hide(self, values: Iterable[str]) -> None:
        """Hide these values from now on: secrets that a run was just given."""
        new = {value for value in values if len(value) >= SHORTEST_HIDDEN} - self._hidden
        if new:
            self._hidden |= new
            forms = {form for value in new for form in forms_of(value)}
            self._hidden_forms = sorted({*self._hidden_forms, *forms})

    def redact(self, text: str) -> str:
        """The text without its secrets."""
        return self._redact(text, "")

    def redact_value(self, value: T) -> T:
        """A JSON-like value of the same shape, with the secrets taken out of its strings and keys."""
        return rewritten(value, self._redact)

    def lines(self) -> LineRedactor:
        """The same for a text that comes line by line; one for each stream."""
        return LineRedactor(self.redact)

    def _redact(self, text: str, name: str) -> str:
        """`name` is what the text is the value of, or "": under `password` a short text may be secret."""
        data = original = text.encode("utf-8", "surrogatepass")
        quotation = "'" if '"' in text else '"'
        before = f'"{name}": {quotation}'.encode("utf-8", "surrogatepass") if name else b""
        after = quotation.encode() if name else b""
        for _ in range(MAX_ROUNDS):
            found = self._found(before + data + after)
            moved = (Span(start - len(before), end - len(before), kind) for start, end, kind in found)
            secrets = list(outside(joined(within(data, moved)), list(self._markers(data))))
            if not secrets:
                break
            data = with_markers(data, secrets)
        return text if data is original else data.decode("utf-8", "surrogatepass")

    @property
    def _finder(self) -> Finder:
        # Imported here: rules and engine are loaded by the first text, not by the start of the program.
        from retinue.redaction.finder import default_finder

        return self._given_finder or default_finder()

    def _found(self, data: bytes) -> Iterator[Span]:
        for form in self._hidden_forms:
            at = data.find(form)
            while at >= 0:
                yield Span(at, at + len(form), HIDDEN_VALUE)
                at = data.find(form, at + 1)
        yield from self._finder.find(data)

    def _markers(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Only a known kind makes a marker: brackets around a token do not protect it."""
        at = data.find(MARKER_START)
        while at >= 0:
            end = data.find(MARKER_END, at, at + LONGEST_MARKER)
            kind = data[at + len(MARKER_START) : end].decode("latin-1")
            if end >= 0 and (kind == HIDDEN_VALUE or kind in self._finder.kinds):
                yield at, end + len(MARKER_END)
            at = data.find(MARKER_START, at + 1)


def forms_of(value: str) -> Iterator[bytes]:
    """A value as it is, and as JSON, a URL or HTML would write it."""
    # Imported here: most redactors hide no values.
    import html
    import json
    from urllib.parse import quote

    in_json = (json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    for form in (value, *in_json, quote(value, safe="", errors="surrogatepass"), html.escape(value)):
        yield form.encode("utf-8", "surrogatepass")


def with_markers(data: bytes, secrets: Iterable[Span]) -> bytes:
    pieces: list[bytes] = []
    at = 0
    for start, end, kind in secrets:
        pieces += data[at:start], MARKER_START, kind.encode(), MARKER_END
        at = end
    return b"".join((*pieces, data[at:]))
