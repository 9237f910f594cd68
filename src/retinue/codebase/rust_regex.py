"""From RE2's syntax to Rust's, for ripgrep over raw bytes. The result matches at least what RE2 matches.

RE2 sees text: decoded, with `\\n` line ends. Ripgrep sees the file's bytes. So whatever may match a character
beyond ASCII may here also match one byte of Latin-1, and a line may end before `\\r`. Files with a byte-order
mark are not its business. Expects a pattern that RE2 has already accepted.
"""

from __future__ import annotations

import re

DIGIT, WORD, SPACE = "0-9", "0-9A-Za-z_", r"\t\f\r\x20"
CLASSES = {"d": DIGIT, "w": WORD, "s": SPACE}
CONTROLS = {"t": 9, "f": 12, "r": 13, "v": 11, "a": 7}
POSIX_CLASS = re.compile(r"\[:[a-z]+:\]")
REPEAT = re.compile(r"\{\d+(?:,\d*)?\}")
GROUP = re.compile(r"\(\?(?::|P?<\w+>)")
CASE_FLAG = re.compile(r"\(\?-?i[:)]")
HEX = re.compile(r"\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")
ANY_LATIN1_BYTE = r"(?-u:[\x80-\xFF])"


class CannotTell(Exception):
    """The pattern uses something whose meaning in the two syntaxes is not known to agree."""


def to_rust(source: str) -> str | None:
    try:
        return _Rewriter(source).rewrite()
    except CannotTell:
        return None


def or_latin1(regex: str) -> str:
    return f"(?:{regex}|{ANY_LATIN1_BYTE})"


class _Rewriter:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0

    def rewrite(self) -> str:
        pieces: list[str] = []
        while self.at < len(self.source):
            pieces.append(self.piece())
        return "".join(pieces)

    def take(self, shape: re.Pattern[str]) -> re.Match[str] | None:
        found = shape.match(self.source, self.at)
        if found:
            self.at = found.end()
        return found

    def piece(self) -> str:
        char = self.source[self.at]
        if char == "\\":
            return self.escape()
        if char == "[":
            return self.character_class()
        if char == "(":
            return self.group()
        if char == "{" and (repeat := self.take(REPEAT)):
            return repeat[0]
        self.at += 1
        if char == ".":
            return or_latin1(".")
        if char == "$":
            return "(?R:$)"  # also before `\r\n`; older ripgreps refuse it, and then are not used
        return char if char in "|)*+?^" else literal(ord(char))

    def group(self) -> str:
        if flag := self.take(CASE_FLAG):
            return flag[0]
        if self.take(GROUP):
            return "(?:"
        if self.source.startswith("(?", self.at):
            raise CannotTell
        self.at += 1
        return "(?:"

    def escape(self) -> str:
        name = self.source[self.at + 1]
        if name in "bB":
            self.at += 2
            return rf"(?-u:\{name})"
        if name.lower() in CLASSES:
            self.at += 2
            members = CLASSES[name.lower()]
            return f"[{members}]" if name in CLASSES else or_latin1(f"[^{members}]")
        return literal(self.escaped_char())

    def escaped_char(self) -> int:
        """The character that an escape stands for."""
        if found := self.take(HEX):
            return int(found[1] or found[2], 16)
        name = self.source[self.at + 1]
        self.at += 2
        if name in CONTROLS:
            return CONTROLS[name]
        if name.isascii() and not name.isalnum() and name != "_":
            return ord(name)
        raise CannotTell

    def character_class(self) -> str:
        self.at += 1
        negated = self.source[self.at] == "^"
        self.at += negated
        members: list[str] = []
        beyond_ascii = negated
        while self.source[self.at] != "]" or not members:
            if found := self.take(POSIX_CLASS):
                members.append(found[0])
                continue
            name = self.source[self.at + 1] if self.source[self.at] == "\\" else ""
            if name and name.lower() in CLASSES:
                self.at += 2
                members.append(CLASSES[name] if name in CLASSES else f"[^{CLASSES[name.lower()]}]")
                beyond_ascii = beyond_ascii or name not in CLASSES
                continue
            low = high = self.member()
            if self.source[self.at] == "-" and self.source[self.at + 1] != "]":
                self.at += 1
                high = self.member()
            members.append(rf"\x{{{low:X}}}-\x{{{high:X}}}")
            beyond_ascii = beyond_ascii or high > 127
        self.at += 1
        whole = f"[{'^' if negated else ''}{''.join(members)}]"
        return or_latin1(whole) if beyond_ascii else whole

    def member(self) -> int:
        char = self.source[self.at]
        if char == "\\":
            return self.escaped_char()
        if char == "[" and self.source[self.at + 1] in ":.=":
            raise CannotTell
        self.at += 1
        return ord(char)


def literal(char: int) -> str:
    plain = chr(char)
    if char > 127:
        return or_latin1(rf"\x{{{char:X}}}")
    return plain if plain.isalnum() or plain == "_" else rf"\x{{{char:X}}}"
