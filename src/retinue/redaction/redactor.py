"""Replaces secrets in text, lines and JSON-like values with `[redacted:<kind>]`, for all output of Retinue.

Knows nothing of where text comes from or goes to. The rules are in the `*_rules.py` modules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from retinue.redaction.secret_rule import SecretSpan

if TYPE_CHECKING:
    from retinue.redaction.secret_finder import SecretFinder
    from retinue.redaction.stream_redactor import StreamRedactor

T = TypeVar("T")
RewriteString = Callable[[str, str], str]
"""Returns the replacement for a string. The second argument is the key or flag it belongs to, or ""."""

HIDDEN_VALUE = "hidden-value"
"""The kind shown for values that were passed to the redactor, as opposed to secrets that a rule found."""
MIN_HIDDEN_LENGTH = 6
"""Shorter values, such as "true" or "8080", occur by chance and are not hidden."""
MIN_ENCODED_LENGTH = 12
MIN_LINE_LENGTH = 12
"""Shorter parts of a hidden value occur by chance."""

MARKER_START, MARKER_END = b"[redacted:", b"]"
MAX_MARKER_BYTES = 80
LETTER = re.compile(rb"[a-z0-9]")
MAX_ROUNDS = 6
"""Maximum number of searches. Hiding a secret can reveal another, so the search is repeated."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text after redaction."""

    text: str
    reaches_end: bool
    """Whether a secret reaches the end of what was searched, so that it may go on behind it."""


class SecretRedactor:
    """Replaces each secret with `[redacted:<kind>]`. Redacting text twice gives the same result as once."""

    def __init__(self, hidden: Iterable[str] = (), *, finder: SecretFinder | None = None) -> None:
        """`hidden` contains known secrets to replace wherever they occur, such as a child process's token."""
        self._hidden = frozenset(value for value in hidden if len(value) >= MIN_HIDDEN_LENGTH)
        self._hidden_forms = sorted({form for value in self._hidden for form in encoded_forms(value)})
        self._known_finder = finder

    def hide(self, values: Iterable[str]) -> None:
        """Also replace these values from now on, for example secrets that a run receives."""
        new = {value for value in values if len(value) >= MIN_HIDDEN_LENGTH} - self._hidden
        if new:
            self._hidden |= new
            forms = {form for value in new for form in encoded_forms(value)}
            self._hidden_forms = sorted({*self._hidden_forms, *forms})

    def redact(self, text: str, *, before: str = "") -> str:
        """Return the text with its secrets replaced, also those that began in the text before it."""
        return self._replace(text, _encode(before)).text

    def redact_value(self, value: T) -> T:
        """Return a JSON-like value of the same shape with the secrets in its strings and keys replaced."""
        return rewrite_strings(value, self._redact_named)

    def redact_lines(self, lines: Sequence[str]) -> list[str]:
        """Return as many lines as were given. Each line of a secret that spans several is replaced."""
        return self._replace("\n".join(lines), keep_lines=True).text.split("\n")

    def stream(self) -> StreamRedactor:
        """Return a redactor for one stream of text that arrives in pieces."""
        # Imported here because most processes redact no stream.
        from retinue.redaction.stream_redactor import StreamRedactor

        return StreamRedactor(self.redact_part)

    def redact_part(self, before: str, text: str, after: str) -> Redacted:
        """Redact a part of a stream, given the text around it. Line breaks are kept.

        Finds secrets that begin in `before` or end in `after`, but returns only `text`.
        """
        return self._replace(text, _encode(before), _encode(after), keep_lines=True)

    def _redact_named(self, text: str, name: str) -> str:
        """Redact the value of the key or flag `name`, or of "" if it has none.

        The name matters: a short value may be a secret if its name is `password`.
        """
        quotation = "'" if '"' in text else '"'
        before = _encode(f'"{name}": {quotation}')
        if name and self._finder.has_keyword(before):
            text = self._replace(text, before, quotation.encode()).text
        return self._replace(text).text  # without the name: some secrets begin at the beginning of a line

    def _replace(
        self, text: str, before: bytes = b"", after: bytes = b"", *, keep_lines: bool = False
    ) -> Redacted:
        """Replace the secrets of `text`, which stands between `before` and `after`."""
        data = original = _encode(text)
        reaches_end = False
        for number in range(MAX_ROUNDS):
            found = list(self._find_secrets(self._blank_kinds(before + data + after)))
            if number == 0:
                here, all_of_it = len(before) + len(data), len(before) + len(data) + len(after)
                reaches_end = any(start < here and end == all_of_it for start, end, _ in found)
            # Merged first, so that a secret has the same kind if the text is only a part of it.
            moved = (
                SecretSpan(start - len(before), end - len(before), kind)
                for start, end, kind in merge_overlapping(found)
            )
            secrets = list(
                subtract_ranges(merge_overlapping(clip_spans(data, moved)), list(self._markers(data)))
            )
            if keep_lines:
                secrets = list(split_at_line_breaks(data, secrets))
            if not secrets:
                break
            data = insert_markers(data, secrets)
        return Redacted(
            text if data is original else data.decode("utf-8", "surrogatepass"), reaches_end=reaches_end
        )

    @property
    def _finder(self) -> SecretFinder:
        if self._known_finder is None:
            # Imported here so that rules and engine are loaded for the first text to redact, not at start-up.
            from retinue.redaction.secret_finder import default_finder

            self._known_finder = default_finder()
        return self._known_finder

    def _find_secrets(self, data: bytes) -> Iterator[SecretSpan]:
        """Yield the positions of known values and of the secrets that rules find."""
        for form in self._hidden_forms:
            at = data.find(form)
            while at >= 0:
                yield SecretSpan(at, at + len(form), HIDDEN_VALUE)
                at = data.find(form, at + 1)
        yield from self._finder.find(data)

    def _blank_kinds(self, data: bytes) -> bytes:
        """Replace the kinds in markers: `[redacted:password]` is not the name of what follows it."""
        if MARKER_START not in data:
            return data
        blanked = bytearray(data)
        for start, end in self._markers(data):
            kind = slice(start + len(MARKER_START), end)
            blanked[kind] = LETTER.sub(b"x", data[kind])
        return bytes(blanked)

    def _markers(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the positions of markers from earlier redaction.

        Only markers of known kinds count, so that text cannot protect a secret by imitating a marker.
        """
        at = data.find(MARKER_START)
        while at >= 0:
            end = data.find(MARKER_END, at, at + MAX_MARKER_BYTES)
            kind = data[at + len(MARKER_START) : end].decode("latin-1")
            if end >= 0 and (kind == HIDDEN_VALUE or kind in self._finder.kinds):
                yield at, end + len(MARKER_END)
            at = data.find(MARKER_START, at + 1)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def encoded_forms(value: str) -> Iterator[bytes]:
    """Yield a value as it is and as it appears in JSON, URLs, HTML and base64; also each line of it."""
    # Imported here because most redactors hide no values.
    import base64
    import html
    import json
    from urllib.parse import quote

    in_json = (json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    for form in (value, *in_json, quote(value, safe="", errors="surrogatepass"), html.escape(value)):
        yield _encode(form)
    data = _encode(value)
    for shift in range(3):
        # Within a longer text, only the groups of four characters that encode nothing else are known.
        encoded = base64.b64encode(bytes(shift) + data)
        known = encoded[4 if shift else 0 : -4 if (shift + len(data)) % 3 else None]
        if len(known) >= MIN_ENCODED_LENGTH:
            yield known
    if "\n" in value.strip():
        yield from (
            _encode(line) for each in value.splitlines() if len(line := each.strip()) >= MIN_LINE_LENGTH
        )


def insert_markers(data: bytes, secrets: Iterable[SecretSpan]) -> bytes:
    """Replace each secret with its marker."""
    pieces: list[bytes] = []
    at = 0
    for start, end, kind in secrets:
        pieces += data[at:start], MARKER_START, kind.encode(), MARKER_END
        at = end
    return b"".join((*pieces, data[at:]))


def split_at_line_breaks(data: bytes, spans: Iterable[SecretSpan]) -> Iterator[SecretSpan]:
    """Split spans at line breaks, which stay as they are. Blank lines are dropped."""
    for start, end, kind in spans:
        at = start
        for line in data[start:end].splitlines(keepends=True):
            content = line.rstrip(b"\r\n")
            if content.strip():
                yield SecretSpan(at, at + len(content), kind)
            at += len(line)


def clip_spans(data: bytes, spans: Iterable[SecretSpan]) -> Iterator[SecretSpan]:
    """Clip spans to the length of `data` and extend them to whole UTF-8 characters."""
    for start, end, kind in spans:
        start, end = max(start, 0), min(end, len(data))
        if start >= end:
            continue
        while start > 0 and data[start] & 0xC0 == 0x80:
            start -= 1
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        yield SecretSpan(start, end, kind)


def merge_overlapping(spans: Iterable[SecretSpan]) -> Iterator[SecretSpan]:
    """Sort spans and merge overlapping ones. The merged span has the kind of the longest."""
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
        current = SecretSpan(current.start, max(current.end, span.end), kind)
    if current:
        yield current


def subtract_ranges(spans: Iterable[SecretSpan], ranges: list[tuple[int, int]]) -> Iterator[SecretSpan]:
    """Yield the parts of spans that are outside all ranges. Spans and ranges must be sorted."""
    first = 0
    for start, end, kind in spans:
        while first < len(ranges) and ranges[first][1] <= start:
            first += 1
        at = first
        while at < len(ranges) and ranges[at][0] < end:
            if start < ranges[at][0]:
                yield SecretSpan(start, ranges[at][0], kind)
            start = ranges[at][1]
            at += 1
        if start < end:
            yield SecretSpan(start, end, kind)


def rewrite_strings(value: T, rewrite: RewriteString, name: str = "") -> T:
    """Return a JSON-like value with every string rewritten. Values of other types stay as they are."""
    return cast(T, _rewrite_any(value, rewrite, name))


def _rewrite_any(value: object, rewrite: RewriteString, name: str) -> object:
    """Rewrite a value of any type. `name` is the key or flag it belongs to, or ""."""
    if isinstance(value, str):
        return rewrite(value, name)
    if isinstance(value, dict):
        return _rewrite_members(cast(dict[object, object], value), rewrite)
    if isinstance(value, list | tuple):
        items = _rewrite_items(cast("list[object] | tuple[object, ...]", value), rewrite, name)
        return tuple(items) if isinstance(value, tuple) else items
    return value


def _rewrite_members(members: dict[object, object], rewrite: RewriteString) -> dict[object, object]:
    """Rewrite the keys and values of a dict. Each value is rewritten with its key as its name."""
    out: dict[object, object] = {}
    for key, value in members.items():
        name = key if isinstance(key, str) else ""
        if key == "value" and isinstance(members.get("name"), str):
            # {"name": "API_TOKEN", "value": "..."} is common in container specifications and HTTP recordings.
            name = str(members["name"])
        new_key = _unused_key(rewrite(key, ""), out) if isinstance(key, str) else key
        out[new_key] = _rewrite_any(value, rewrite, name)
    return out


def _rewrite_items(
    items: list[object] | tuple[object, ...], rewrite: RewriteString, name: str
) -> list[object]:
    """Rewrite the items of a list. An item after a flag such as `--token` has that flag as its name."""
    out: list[object] = []
    for index, item in enumerate(items):
        before = items[index - 1] if index else None
        # In ["--token", "..."], the flag is the name of the next item. Other items have the list's name.
        flag = before if isinstance(before, str) and before.startswith("--") and "=" not in before else name
        out.append(_rewrite_any(item, rewrite, flag))
    return out


def _unused_key(key: str, taken: dict[object, object]) -> str:
    """Append a number to a key that is already taken: two secret keys may get the same marker."""
    number = 1
    candidate = key
    while candidate in taken:
        number += 1
        candidate = f"{key}#{number}"
    return candidate
