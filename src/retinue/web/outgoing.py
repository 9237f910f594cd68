"""Checks what is about to leave this machine: queries and addresses must not carry the user's data (P6).

Secrets, and addresses that carry data, are refused. Paths and code are cut out of a query, and the caller is
told. A page may tell a model to put what it has read into an address, so addresses are checked in every
spelling that a server would decode. Knows nothing of the network.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from retinue.core import InvalidInput, Redactor, clip, counted

MAX_QUERY_CHARS = 300
MAX_VALUE_CHARS = 300
"""Characters that one parameter of an address may have."""
_ABSOLUTE_PATH = re.compile(
    r"(?<![\w/.:-])(?:file://)?(?:[A-Za-z]:[\\/]|\\\\[\w.-]+\\|~[\w-]*/|/(?=[\w.-]+/))[^\s\"'`<>|,;:()\[\]{}]*"
)
_RELATIVE_PATH = re.compile(r"(?<![\w/.:-])\.{0,2}/?[\w.@+-]+(?:[/\\][\w.@+-]+)+")
_CODE_LINE = re.compile(
    r"[{};]\s*$|^\s*(?:[@#}\]]|//|/\*|\*/|<\w|\$ |>>> )|\b(?:def|class|function|fn|func|public|private|static"
    r"|import|from|return|const|let|var|if|for|while|elif|else|try|except|catch|raise|throw|async|await|SELECT"
    r"|INSERT|UPDATE)\b.*[(){}:=]|[\w\])]\s*(?::=|[-+*/|&]?=)\s*[\w\"'(\[{]|\w+\([^)]*\)\s*[.;{]|=>|->\s*\w|&&|\|\|"
)
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_OPAQUE = re.compile(r"[A-Za-z0-9+/=_%-]{64,}")
_WORDS = re.compile(r"[a-z]{2,}(?:[-_][a-z0-9]+){3,}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OutgoingQuery:
    """A query that may leave, and what was cut out of it."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutgoingGuard:
    """What must not leave: secrets, paths of this machine, code of the project."""

    redactor: Redactor
    roots: Sequence[Path] = ()

    def check_query(self, query: str) -> OutgoingQuery:
        """Return the query without paths and code. Raises `InvalidInput` if it contains a secret."""
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
        readings = {url, unquote(url), unquote(unquote(url)), unquote_plus(url)}
        if any(self._has_secret(each) for each in readings):
            raise InvalidInput("the address contains what looks like a secret; nothing was sent")
        for folder in (*self.roots, Path.home()):
            if len(folder.parts) > 1 and any(str(folder) in each for each in readings):
                raise InvalidInput("the address contains a path of this machine; nothing was sent")
        parts = urlsplit(url)
        values = [*parts.path.split("/"), *(part for pair in parse_qsl(parts.query, True) for part in pair)]
        values += parts.hostname.split(".") if parts.hostname else []
        for value in map(unquote, values):
            if len(value) > MAX_VALUE_CHARS or _is_data(value) or _without_code(value)[1] > 1:
                raise InvalidInput(
                    f"the address carries {len(value)} characters of data; nothing was sent",
                    hint="addresses name pages; what you know is not put into them",
                )
        return url

    def _has_secret(self, text: str) -> bool:
        return self.redactor.redact(text) != text

    def _without_paths(self, text: str) -> tuple[str, int]:
        found = 0

        def cut(match: re.Match[str]) -> str:
            nonlocal found
            found += 1
            return " "

        def cut_known(match: re.Match[str]) -> str:
            return cut(match) if self._exists(match[0]) else match[0]

        return _RELATIVE_PATH.sub(cut_known, _ABSOLUTE_PATH.sub(cut, text)), found

    def _exists(self, written: str) -> bool:
        """Return whether a relative path names something in a root, however its slashes are written."""
        path = written.replace("\\", "/").lstrip("./")
        try:
            return any((root / path).exists() for root in self.roots)
        except (OSError, ValueError):
            return False


def _without_code(text: str) -> tuple[str, int]:
    """Return the text without its lines of code, and their number. A single short line stays."""
    fenced = sum(block.strip("`\n").count("\n") + 1 for block in _FENCE.findall(text))
    rest = _FENCE.sub(" ", text) if fenced > 1 else text
    lines = rest.splitlines() or [rest]
    code = [line for line in lines if line.strip() and _CODE_LINE.search(line)]
    long_line = any(len(line) > 160 for line in code)
    if len(code) > 1 or long_line:
        kept = [line for line in lines if line not in code]
        return "\n".join(kept), len(code) + (fenced if fenced > 1 else 0)
    return rest, fenced if fenced > 1 else 0


def _is_data(value: str) -> bool:
    """Return whether a part of an address is encoded data rather than a name of several words."""
    return any(_WORDS.search(found) is None for found in _OPAQUE.findall(value))
