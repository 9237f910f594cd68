"""Takes secrets out of text and leaves everything around them: the door through which all output passes.

Knows nothing of where text comes from or goes to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    from retinue.redaction.secret_finder import SecretFinder


# MERGED spans: Stretches of bytes that are to be replaced. Knows nothing of how they were found.


class Span(NamedTuple):
    start: int
    end: int
    kind: str


def clip_to(data: bytes, spans: Iterable[Span]) -> Iterator[Span]:
    """The parts of spans that lie in `data`, widened to whole UTF-8 characters."""
    for start, end, kind in spans:
        start, end = max(start, 0), min(end, len(data))
        if start >= end:
            continue
        while start > 0 and data[start] & 0xC0 == 0x80:
            start -= 1
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        yield Span(start, end, kind)


def merge_overlapping(spans: Iterable[Span]) -> Iterator[Span]:
    """In order, and overlapping spans as one, which takes the kind of the longest."""
    current, longest = None, 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        length = span.end - span.start
        if current is None or span.start >= current.end:
            if current:
                yield current
            current, longest = span, length
            continue
        kind = span.kind if length > longest else current.kind
        longest = max(longest, length)
        current = Span(current.start, max(current.end, span.end), kind)
    if current:
        yield current


def cut_gaps(spans: Iterable[Span], gaps: list[tuple[int, int]]) -> Iterator[Span]:
    """The parts of spans that lie in none of the gaps; both are in order."""
    first = 0
    for start, end, kind in spans:
        while first < len(gaps) and gaps[first][1] <= start:
            first += 1
        at = first
        while at < len(gaps) and gaps[at][0] < end:
            if start < gaps[at][0]:
                yield Span(start, gaps[at][0], kind)
            start = gaps[at][1]
            at += 1
        if start < end:
            yield Span(start, end, kind)


# MERGED values: Walks JSON-like values and rewrites their strings. Knows nothing of secrets.

RewriteString = Callable[[str, str], str]
"""From a string, and the name it is the value of or "", to the string that takes its place."""


def rewrite_strings(value: T, rewrite: RewriteString, name: str = "") -> T:
    """The same shape with every string rewritten; numbers and whatever is not JSON stay."""
    return cast(T, _rewrite_any(value, rewrite, name))


def _rewrite_any(value: object, rewrite: RewriteString, name: str) -> object:
    if isinstance(value, str):
        return rewrite(value, name)
    if isinstance(value, dict):
        return _rewrite_members(cast(dict[object, object], value), rewrite)
    if isinstance(value, list | tuple):
        items = _rewrite_items(cast("list[object] | tuple[object, ...]", value), rewrite, name)
        return tuple(items) if isinstance(value, tuple) else items
    return value


def _rewrite_members(members: dict[object, object], rewrite: RewriteString) -> dict[object, object]:
    out: dict[object, object] = {}
    for key, value in members.items():
        name = key if isinstance(key, str) else ""
        if key == "value" and isinstance(members.get("name"), str):
            # {"name": "API_TOKEN", "value": "..."}, as in container specifications and recorded HTTP headers.
            name = str(members["name"])
        new_key = _unused_key(rewrite(key, ""), out) if isinstance(key, str) else key
        out[new_key] = _rewrite_any(value, rewrite, name)
    return out


def _rewrite_items(
    items: list[object] | tuple[object, ...], rewrite: RewriteString, name: str
) -> list[object]:
    out: list[object] = []
    for index, item in enumerate(items):
        before = items[index - 1] if index else None
        # ["--token", "..."], as in command lines; else a list's items are values of the list's own name.
        flag = before if isinstance(before, str) and before.startswith("--") and "=" not in before else name
        out.append(_rewrite_any(item, rewrite, flag))
    return out


def _unused_key(key: str, taken: dict[object, object]) -> str:
    """Two keys that become the same marker must stay two members."""
    number = 1
    candidate = key
    while candidate in taken:
        number += 1
        candidate = f"{key}#{number}"
    return candidate


# MERGED lines: Redaction of text that comes line by line: remembers that a private key has begun. Knows no other rule.

KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----")
KEY_END = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----")
MAX_KEY_LINES = 400
PRIVATE_KEY_MARKER = "[redacted:private-key]"


class LineRedactor:
    """For one stream. A key is hidden from its first line to its last, or as far as a key can be long."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._left = 0

    def __call__(self, line: str) -> str:
        if self._left:
            self._left = 0 if KEY_END.search(line) else self._left - 1
            return PRIVATE_KEY_MARKER
        if (begun := KEY_BEGIN.search(line)) and not KEY_END.search(line, begun.end()):
            self._left = MAX_KEY_LINES
            return self._redact(line[: begun.start()]) + PRIVATE_KEY_MARKER
        return self._redact(line)


T = TypeVar("T")

HIDDEN_VALUE = "hidden-value"
MIN_HIDDEN_LENGTH = 6
"""Shorter values, such as "true" or "8080", occur by chance."""

MARKER_START, MARKER_END = b"[redacted:", b"]"
MAX_MARKER_BYTES = 80
MAX_ROUNDS = 6
"""Hiding a secret can bare another, so the search repeats until it finds none; hostile text ends it here."""


class SecretRedactor:
    """Replaces each secret by `[redacted:<kind>]`. Redacting twice changes nothing."""

    def __init__(self, hidden: Iterable[str] = (), *, finder: SecretFinder | None = None) -> None:
        """`hidden` are values to take out wherever they occur, such as tokens given to a child process."""
        self._hidden = frozenset(value for value in hidden if len(value) >= MIN_HIDDEN_LENGTH)
        self._hidden_forms = sorted({form for value in self._hidden for form in encoded_forms(value)})
        self._given_finder = finder

    def with_hidden(self, values: Iterable[str]) -> SecretRedactor:
        """A redactor that hides these values too."""
        return SecretRedactor(self._hidden.union(values), finder=self._given_finder)

    def hide(self, values: Iterable[str]) -> None:
        """Hide these values from now on: secrets that a run was just given."""
        new = {value for value in values if len(value) >= MIN_HIDDEN_LENGTH} - self._hidden
        if new:
            self._hidden |= new
            forms = {form for value in new for form in encoded_forms(value)}
            self._hidden_forms = sorted({*self._hidden_forms, *forms})

    def redact(self, text: str) -> str:
        """The text without its secrets."""
        return self._redact(text, "")

    def redact_value(self, value: T) -> T:
        """A JSON-like value of the same shape, with the secrets taken out of its strings and keys."""
        return rewrite_strings(value, self._redact)

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
            secrets = list(cut_gaps(merge_overlapping(clip_to(data, moved)), list(self._markers(data))))
            if not secrets:
                break
            data = with_markers(data, secrets)
        return text if data is original else data.decode("utf-8", "surrogatepass")

    @property
    def _finder(self) -> SecretFinder:
        # Imported here: rules and engine are loaded by the first text, not by the start of the program.
        from retinue.redaction.secret_finder import default_finder

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
            end = data.find(MARKER_END, at, at + MAX_MARKER_BYTES)
            kind = data[at + len(MARKER_START) : end].decode("latin-1")
            if end >= 0 and (kind == HIDDEN_VALUE or kind in self._finder.kinds):
                yield at, end + len(MARKER_END)
            at = data.find(MARKER_START, at + 1)


def encoded_forms(value: str) -> Iterator[bytes]:
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
