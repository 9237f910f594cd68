"""Checks what is about to leave this machine: queries and addresses must not carry the user's data (P6).

Secrets, and addresses that carry data, are refused. Paths and code are cut out of a query, and the caller is
told. A page may tell a model to put what it has read into an address, so addresses are checked in every
spelling that a server would decode. Knows nothing of the network.
"""

from __future__ import annotations

import base64
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from retinue.core import InvalidInput, Redactor, clip, counted

MAX_QUERY_CHARS = 300
MAX_ASKED_CHARS = 20_000
"""Characters of a question that are looked at. A longer one is refused."""
MAX_VALUE_CHARS = 300
"""Characters that one parameter of an address may have."""
MAX_VALUES_CHARS = 600
"""Characters that all parameters of an address may have together."""
MAX_OPAQUE_CHARS = 100
"""Characters of an address that may be ids, such as those of commits."""
MAX_LABEL_CHARS = 31
"""Characters of letters and digits that one part of a host may have: names that people choose are shorter."""
MAX_CODE_TOKENS = 5
"""Pieces of code, such as `client(timeout=3)`, that one line of a query may have."""
_PATH_END = r"[^\s\"'`<>|,;:()\[\]{}]*"
_ABSOLUTE_PATH = re.compile(
    r"(?<![A-Za-z0-9_/.\\-])(?:file://)?"
    r"(?:[A-Za-z]:[\\/]|\\\\[\w.-]+\\|~[\w-]*/|\$\{?\w+\}?[\\/]|%\w+%[\\/]|\.\.[\\/]|\.[\\/](?=[\w.-]+[\\/])"
    rf"|/(?=[\w.-]+/)){_PATH_END}(?: [\w.-]+[\\/]{_PATH_END})*"
)
"""A path that says where it begins. A folder's name may have a blank in it."""
_RELATIVE_PATH = re.compile(r"(?<![A-Za-z0-9_/.:-])\.{0,2}/?[\w.@+-]+(?:[/\\][\w.@+-]+)+")
_OWN_PATH = re.compile(
    r"(?:^|[=\s])(?:file:|[A-Za-z]:\\|\\\\\w|/(?:home|Users|root)/|~/|\$\{?HOME\b|%USERPROFILE%)",
    re.IGNORECASE,
)
_LINE_NUMBER = re.compile(r"(?::\d+)+$|#L\d+$")
_ENCODED_PATH = re.compile(r"\S*%(?:25)?(?:2f|5c)\S*", re.IGNORECASE)
MAX_WALKED = 20_000
"""Files and folders of a root that are compared with a path."""
_CODE_LINE = re.compile(
    r"[{};]\s*$|^\s*(?:[@#}\]]|//|/\*|\*/|<\w|\$ |>>> )|\b(?:def|class|function|fn|func|public|private|static"
    r"|import|from|return|const|let|var|if|for|while|elif|else|try|except|catch|raise|throw|async|await|SELECT"
    r"|INSERT|UPDATE)\b.*[(){}:=]|[\w\])]\s*(?::=|[-+*/|&]?=)\s*[\w\"'(\[{]|\w+\([^()]*\)\s*[.;{]|=>|->\s*\w|&&|\|\|"
    r"|\s[=<>!]=?\s"
)
_CODE_TOKEN = re.compile(
    r"[(){}\[\]=;$*\\|<>&^]|::|->|^--\w|^[+@#/-].*\w.*[=:(]|\w_\w|^\W*[-+/%!]\W*$|^[\"'].*[\"']:,?$"
)
_SETTING_LINE = re.compile(r"\s*-?\s*[\"']?[\w.-]+[\"']?:(?:\s+\S+){0,2}\s*")
"""A line such as `host: db` of a file of settings."""
_MESSAGE = re.compile(
    r"\s*(?:\S+: )?[\w.:$-]*(?:Error|Exception|Warning|Panic|Fault)\b"
    r"|\s*(?:error|fatal|panic|warning|failed)\b",
    re.IGNORECASE,
)
"""A line that is a message about an error, which people search for as it is."""
_MIN_PROSE_WORDS = 4
_LIBRARIES = frozenset(("node_modules", "site-packages", "vendor", "__pycache__"))
"""Folders with code of others, whose paths say nothing about the user."""
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_OPAQUE = re.compile(r"[A-Za-z0-9+/=_%-]{64,}")
_ID = re.compile(r"[A-Za-z0-9+/=_%-]{16,}")
_WORDS = re.compile(r"[a-z]{2,}(?:[-_][a-z0-9]+){3,}", re.IGNORECASE)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){16,}")
_PIECE = r"(?=\S*[A-Za-z])(?=\S*\d)[\w+/=-]{6,}"
_PIECES = re.compile(rf"(?<!\S){_PIECE}(?:\s+{_PIECE})+(?!\S)")
"""Pieces of letters and digits that follow each other: a secret that a line break or a blank has cut."""
_SHORT = r"(?![a-z]{2,}(?![A-Za-z0-9]))[A-Za-z0-9_]{1,12}"
_SPLIT = re.compile(rf"(?<![A-Za-z0-9]){_SHORT}([-./,|+ ]){_SHORT}(?:\1{_SHORT})+(?![A-Za-z0-9])")
"""Short pieces, not words, with the same sign between them: a secret can be cut into such pieces."""
_ENCODED = (re.compile(r"[A-Za-z0-9+_-]{16,}={0,2}"), re.compile(r"[A-Za-z0-9+/]{16,}={0,2}"))
"""Base64 in its two spellings, and base32."""


@dataclass(frozen=True, slots=True)
class OutgoingQuery:
    """A query that may leave, and what was cut out of it."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutgoingGuard:
    """Keeps secrets, paths of this machine and code of the project from leaving."""

    redactor: Redactor
    roots: Sequence[Path] = ()

    def check_query(self, query: str) -> OutgoingQuery:
        """Return the query without paths and code. Raises `InvalidInput` if it contains a secret."""
        if len(query) > MAX_ASKED_CHARS:
            raise InvalidInput(
                f"a question of {len(query):,} characters is too long to be searched for; nothing was sent",
                hint="ask in a sentence",
            )
        if self._has_secret(query):
            raise InvalidInput(
                "the question contains what looks like a secret; nothing was sent",
                hint="ask again without it",
            )
        notes: list[str] = []
        text, cut_lines = _without_code(query)
        if cut_lines:
            notes.append(f"{counted(cut_lines, 'line')} of code left out of the query")
        text, paths = self._without_paths(text)
        if paths:
            notes.append(f"{counted(paths, 'path')} left out of the query")
        text, data = _OPAQUE.subn(lambda found: " " if _is_data(found[0]) else found[0], text)
        if data and any(map(_is_data, query.split())):
            notes.append("encoded data left out of the query")
        text = " ".join(text.split())
        if len(text) > MAX_QUERY_CHARS:
            text = clip(text, MAX_QUERY_CHARS).rstrip("…")
            notes.append(f"the query was cut to {MAX_QUERY_CHARS} characters")
        if len(re.findall(r"\w{2,}", text)) < 1:
            raise InvalidInput(
                "nothing is left to search for without the paths and the code in the question",
                hint="ask in words, with the name of the library or the error message",
            )
        return OutgoingQuery(text, tuple(notes))

    def check_address(self, url: str) -> str:
        """Return the address. Raises `InvalidInput` if it carries a secret, a path or other data."""
        if len(url) > MAX_ASKED_CHARS:
            raise InvalidInput("the address is too long; nothing was sent")
        try:
            parts = urlsplit(url)
        except ValueError:
            raise InvalidInput("the address cannot be read; nothing was sent") from None
        path = [unquote(part) for part in parts.path.split("/")]
        given = [part for pair in parse_qsl(parts.query, True) for part in pair]
        if self._has_secret(url) or self._has_secret("".join(path)) or self._has_secret("".join(given[1::2])):
            raise InvalidInput("the address contains what looks like a secret; nothing was sent")
        readings = _readings(url)
        if any(
            len(folder.parts) > 1 and any(str(folder) in each for each in readings)
            for folder in (*self.roots, Path.home())
        ) or any(_OWN_PATH.search(value) or self._exists(value) for value in given):
            raise InvalidInput("the address contains a path of this machine; nothing was sent")
        host = parts.hostname or ""
        if size := _carried(host, path, given):
            raise InvalidInput(
                f"the address carries {size} characters of data; nothing was sent",
                hint="pass the address of a page, without data in its path or query",
            )
        return url

    def _has_secret(self, text: str) -> bool:
        return any(self.redactor.redact(each) != each for each in _readings(text))

    def _without_paths(self, text: str) -> tuple[str, int]:
        found = 0

        def cut(match: re.Match[str]) -> str:
            nonlocal found
            found += 1
            return " "

        def cut_known(match: re.Match[str]) -> str:
            return cut(match) if self._exists(match[0]) else match[0]

        def cut_encoded(match: re.Match[str]) -> str:
            plain = unquote(unquote(match[0]))
            return cut(match) if _ABSOLUTE_PATH.search(plain) or self._exists(plain) else match[0]

        text = _ENCODED_PATH.sub(cut_encoded, text)
        return _RELATIVE_PATH.sub(cut_known, _ABSOLUTE_PATH.sub(cut, text)), found

    def _exists(self, written: str) -> bool:
        """Return whether a relative path names something in a root or in a folder of it."""
        path = _LINE_NUMBER.sub("", written.replace("\\", "/").lstrip("./"))
        if "/" not in path:
            return False
        try:
            return any((root / path).exists() or _is_below(root, path) for root in self.roots)
        except (OSError, ValueError):
            return False


def _is_below(root: Path, path: str) -> bool:
    """Return whether a folder below a root has a path, such as `billing/invoice.py` below `src`."""
    first = path.partition("/")[0]
    walked = 0
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if not name.startswith(".") and name not in _LIBRARIES]
        walked += len(names) + len(files)
        if first in names and Path(folder, path).exists():
            return True
        if walked > MAX_WALKED:
            return False
    return False


def _readings(text: str) -> set[str]:
    """Return a text in the spellings that hide a secret: encoded, in other letters, or cut into pieces."""
    found = {text, unquote(text), unquote(unquote(text)), unquote_plus(text), unescape(text)}
    found |= {unicodedata.normalize("NFKC", each) for each in tuple(found)}
    found |= {_PIECES.sub(lambda pieces: "".join(pieces[0].split()), each) for each in tuple(found)}
    found |= {_SPLIT.sub(lambda split: split[0].replace(split[1], ""), each) for each in tuple(found)}
    for each in tuple(found):
        found |= set(_decoded(each))
    return found


def _decoded(text: str) -> Iterator[str]:
    """Yield the texts that parts of a text stand for in hex, base64 and base32."""
    for digits in _HEX.findall(text):
        yield bytes.fromhex(digits).decode("latin-1")
    for token in (token for pattern in _ENCODED for token in pattern.findall(text)):
        plain = token.rstrip("=").replace("-", "+").replace("_", "/")
        for decode, size, written in ((base64.b64decode, 4, plain), (base64.b32decode, 8, plain.upper())):
            try:
                decoded = decode(written + "=" * (-len(written) % size)).decode("ascii")
            except ValueError:
                continue
            if decoded.isprintable():
                yield decoded


def _carried(host: str, path: Sequence[str], given: Sequence[str]) -> int:
    """Return how many characters of data an address carries; 0 if it only names a page."""
    for value in (*path, *given):
        if len(value) > MAX_VALUE_CHARS or _is_data(value):
            return len(value)
    labels = [label for label in host.split(".") if not label.startswith("xn--")]
    for label in labels:
        if len(label) > MAX_LABEL_CHARS and _is_id(label):
            return len(label)
    if (size := sum(map(len, given))) > MAX_VALUES_CHARS:
        return size
    if sum(bool(_CODE_LINE.search(line)) for value in given for line in value.splitlines()) > 1:
        return sum(map(len, given))
    ids = sum(len(one) for value in (*path, *given, *labels) for one in _ID.findall(value) if _is_id(one))
    return ids if ids > MAX_OPAQUE_CHARS else 0


def _is_id(value: str) -> bool:
    return bool(re.search(r"\d", value)) and not _WORDS.search(value)


def _without_code(text: str) -> tuple[str, int]:
    """Return the text without its lines of code, and their number. A short piece of code stays.

    If the text has several lines, only sentences and error messages stay: no list of languages is complete.
    If it has one line with many pieces of code, everything from the first to the last piece is cut.
    """
    fenced = sum(block.strip("`\n").count("\n") + 1 for block in _FENCE.findall(text))
    fenced = fenced if fenced > 1 else 0
    rest = _FENCE.sub(" ", text) if fenced else text
    lines = rest.splitlines() or [rest]
    code = {at for at, line in enumerate(lines) if line.strip() and _is_code(line, len(lines) > 1)}
    if code and len(lines) > 1:  # what is indented, or a word or two beside code, belongs to it
        for at, line in enumerate(lines):
            beside = bool({at - 1, at + 1} & code) and len(line.split()) <= 2 and at > 0
            if (beside or line.startswith(("  ", "\t"))) and line.strip() and not _MESSAGE.match(line):
                code.add(at)
    if len(code) <= 1 and not any(len(lines[at]) > 160 or _is_dense(lines[at]) for at in code):
        code = set[int]()
    kept = [_without_span(line) if at in code and len(lines) == 1 else line for at, line in enumerate(lines)]
    if len(lines) > 1:
        kept = [line for at, line in enumerate(lines) if at not in code]
    return "\n".join(kept), len(code) + fenced


def _is_code(line: str, is_one_of_many: bool) -> bool:
    """Return whether a line is more likely code than a sentence or a message about an error."""
    if _MESSAGE.match(line):
        return False
    if _CODE_LINE.search(line) or _is_dense(line):
        return True
    if not is_one_of_many:
        return False
    words = line.split()
    pieces = len(_code_tokens(line))
    is_prose = pieces == 0 or (len(words) >= _MIN_PROSE_WORDS and pieces <= len(words) / 3)
    return not is_prose or bool(_SETTING_LINE.fullmatch(line))


def _is_dense(line: str) -> bool:
    return len(_code_tokens(line)) > MAX_CODE_TOKENS


def _code_tokens(line: str) -> list[int]:
    """Return the places of the words in a line that are pieces of code."""
    return [at for at, word in enumerate(line.split()) if _CODE_TOKEN.search(word.strip("`,.?!"))]


def _without_span(line: str) -> str:
    """Return a line without what is between its first and its last piece of code."""
    words, places = line.split(), _code_tokens(line)
    return " ".join((*words[: places[0]], *words[places[-1] + 1 :])) if places else ""


def _is_data(value: str) -> bool:
    """Return whether a part of an address is encoded data rather than a name of several words."""
    return any(_WORDS.search(found) is None for found in _OPAQUE.findall(value))
