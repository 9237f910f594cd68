"""Defines search patterns and translates them for ripgrep.

RE2 decides what matches. Ripgrep only narrows down the files that RE2 then searches, so its pattern must
match at least as much; if that is uncertain, ripgrep is not used. `\\d`, `\\w`, `\\s` and `\\b` mean ASCII,
`.` and case follow Unicode, and nothing matches across lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retinue.codebase.access import PatternInvalid, Regex, compile_regex
from retinue.core import InvalidInput

MAX_PATTERN_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class SearchPattern:
    """The pattern of a search. Raises InvalidInput if it is empty, too long or spans lines."""

    text: str
    fixed: bool = False
    """Whether the text is plain text, not a regular expression."""
    ignore_case: bool = False
    word: bool = False
    """Whether the match must begin and end at word boundaries."""

    def __post_init__(self) -> None:
        if not self.text:
            raise InvalidInput("the pattern is empty", hint="name the text to look for")
        if len(self.text) > MAX_PATTERN_CHARS:
            raise InvalidInput(
                f"the pattern has {len(self.text)} characters, over the limit of {MAX_PATTERN_CHARS}",
                hint="search for a shorter text",
            )
        if "\0" in self.text:
            raise InvalidInput("a pattern cannot contain a zero byte")
        if "\n" in self.text or (not self.fixed and re.search(r"(?<!\\)(?:\\\\)*\\n", self.text)):
            raise InvalidInput(
                "a pattern cannot span lines", hint="search for one line, with context around it"
            )

    def regex(self) -> Regex:
        """Compile the pattern. Raises InvalidInput if RE2 does not accept it."""
        try:
            return compile_regex(self._re2_source(), ignore_case=self.ignore_case, within_lines=True)
        except PatternInvalid as error:
            raise InvalidInput(
                f"not a valid pattern: {error}",
                hint="the syntax is RE2's: no lookaround, no backreferences; set fixed for plain text",
            ) from None

    def ripgrep_pattern(self) -> str | None:
        """Return a pattern for ripgrep that matches at least as much, or None if that is uncertain."""
        return _to_rust_regex(self._re2_source())

    def _re2_source(self) -> str:
        """Return the regular expression in RE2's syntax."""
        if not self.fixed:
            return rf"\b(?:{self.text})\b" if self.word else self.text
        # `\b` needs a word character beside it: for `$name`, only the end gets one.
        before, after = (
            r"\b" if self.word and _is_word_char(end) else "" for end in (self.text[0], self.text[-1])
        )
        return f"{before}{re.escape(self.text)}{after}"


def _is_word_char(char: str) -> bool:
    return char == "_" or (char.isascii() and char.isalnum())


_DIGIT, _WORD, _SPACE = "0-9", "0-9A-Za-z_", r"\t\f\r\x20"
_CLASSES = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_CONTROLS = {"t": 9, "f": 12, "r": 13, "v": 11, "a": 7}
_POSIX_CLASS = re.compile(r"\[:[a-z]+:\]")
_REPEAT = re.compile(r"\{\d+(?:,\d*)?\}")
_GROUP = re.compile(r"\(\?(?::|P?<\w+>)")
_CASE_FLAG = re.compile(r"\(\?-?i[:)]")
_HEX = re.compile(r"\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")
_LATIN1_BYTE = r"(?-u:[\x80-\xFF])"


class _Untranslatable(Exception):
    """The pattern uses a construct that may mean different things in the two syntaxes."""


def _to_rust_regex(source: str) -> str | None:
    """Translate an RE2 pattern to Rust's syntax, for ripgrep on raw bytes. Returns None if that is uncertain.

    RE2 sees decoded text with `\\n` line ends; ripgrep sees the bytes of the file. So whatever may match a
    character beyond ASCII may also match one byte of Latin-1, and a line may end before `\\r`. Files with a
    byte-order mark are handled by the caller.
    """
    try:
        return _RustTranslator(source).translate()
    except _Untranslatable:
        return None


def _or_latin1_byte(regex: str) -> str:
    return f"(?:{regex}|{_LATIN1_BYTE})"


class _RustTranslator:
    """Translates a pattern, which RE2 has accepted, from left to right."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.position = 0

    def translate(self) -> str:
        pieces: list[str] = []
        while self.position < len(self.source):
            pieces.append(self.translate_piece())
        return "".join(pieces)

    def take_match(self, shape: re.Pattern[str]) -> re.Match[str] | None:
        found = shape.match(self.source, self.position)
        if found:
            self.position = found.end()
        return found

    def translate_piece(self) -> str:
        char = self.source[self.position]
        if char == "\\":
            return self.translate_escape()
        if char == "[":
            return self.translate_class()
        if char == "(":
            return self.translate_group()
        if char == "{" and (repeat := self.take_match(_REPEAT)):
            return repeat[0]
        self.position += 1
        if char == ".":
            return _or_latin1_byte(".")
        if char == "$":
            return "(?R:$)"  # also matches before `\r\n`; older ripgreps reject it and are not used
        return char if char in "|)*+?^" else _rust_literal(ord(char))

    def translate_group(self) -> str:
        if flag := self.take_match(_CASE_FLAG):
            return flag[0]
        if self.take_match(_GROUP):
            return "(?:"
        if self.source.startswith("(?", self.position):
            raise _Untranslatable
        self.position += 1
        return "(?:"

    def translate_escape(self) -> str:
        name = self.source[self.position + 1]
        if name in "bB":
            self.position += 2
            return rf"(?-u:\{name})"
        if name.lower() in _CLASSES:
            self.position += 2
            members = _CLASSES[name.lower()]
            return f"[{members}]" if name in _CLASSES else _or_latin1_byte(f"[^{members}]")
        return _rust_literal(self.read_escaped_char())

    def read_escaped_char(self) -> int:
        """Return the character that an escape stands for."""
        if found := self.take_match(_HEX):
            return int(found[1] or found[2], 16)
        name = self.source[self.position + 1]
        self.position += 2
        if name in _CONTROLS:
            return _CONTROLS[name]
        if name.isascii() and not name.isalnum() and name != "_":
            return ord(name)
        raise _Untranslatable

    def translate_class(self) -> str:
        self.position += 1
        negated = self.source[self.position] == "^"
        self.position += negated
        members: list[str] = []
        beyond_ascii = negated
        while self.source[self.position] != "]" or not members:
            if found := self.take_match(_POSIX_CLASS):
                members.append(found[0])
                continue
            name = self.source[self.position + 1] if self.source[self.position] == "\\" else ""
            if name and name.lower() in _CLASSES:
                self.position += 2
                members.append(_CLASSES[name] if name in _CLASSES else f"[^{_CLASSES[name.lower()]}]")
                beyond_ascii = beyond_ascii or name not in _CLASSES
                continue
            low = high = self.read_class_member()
            if self.source[self.position] == "-" and self.source[self.position + 1] != "]":
                self.position += 1
                high = self.read_class_member()
            members.append(rf"\x{{{low:X}}}-\x{{{high:X}}}")
            beyond_ascii = beyond_ascii or high > 127
        self.position += 1
        whole = f"[{'^' if negated else ''}{''.join(members)}]"
        return _or_latin1_byte(whole) if beyond_ascii else whole

    def read_class_member(self) -> int:
        char = self.source[self.position]
        if char == "\\":
            return self.read_escaped_char()
        if char == "[" and self.source[self.position + 1] in ":.=":
            raise _Untranslatable
        self.position += 1
        return ord(char)


def _rust_literal(char: int) -> str:
    """Return a pattern for one character."""
    plain = chr(char)
    if char > 127:
        return _or_latin1_byte(rf"\x{{{char:X}}}")
    return plain if plain.isalnum() or plain == "_" else rf"\x{{{char:X}}}"
