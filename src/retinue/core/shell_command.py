"""Parses a command line as a shell would, to find every command in it.

What only the shell can know, such as the value of a variable, is marked in the words. Anything that shells
read differently, or that is not understood, raises `UnclearCommand`. Knows nothing of permissions.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from retinue.core.text import clip

UNKNOWN = "\0"
"""Stands in a word for text that only the shell knows, within this word."""
SPLIT = "\1"
"""Stands in a word for text that only the shell knows and that may become several words, or none."""

MAX_CHARACTERS = 32_768
MAX_COMMANDS = 1_000
MAX_DEPTH = 12

_KEYWORDS = frozenset({"if", "then", "elif", "else", "fi", "while", "until", "do", "done", "!", "{", "}"})
_ODD = re.compile(r"[\0-\x08\x0b-\x1f\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]")
"""Control characters, and spaces that look like a separator but are none."""
_DESCRIPTOR = re.compile(r"(?:\d+|\{\w+\})(?=[<>])")
_REDIRECTION = re.compile(r"<<<|<<-|<<|<>|<&|>&|>\||>>|&>>|&>|<|>")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_OPEN_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*\[[^\]]*$")
_VARIABLE = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_ANSI_ESCAPE = re.compile(
    r"\\(?:x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL
)
_ANSI_LETTERS = dict(zip("abefnrtvE", "\a\b\x1b\f\n\r\t\v\x1b", strict=True))


class UnclearCommand(ValueError):
    """The command is not understood, or shells read it differently."""


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command with its arguments."""

    words: tuple[str, ...]
    """The program and its arguments, without quotes, with `UNKNOWN` and `SPLIT` for what is not known."""
    assigns: bool
    """Whether variables are set before it: `FOO=1 program`."""
    files: tuple[str, ...]
    """The files that its input and output are redirected to."""
    inputs: list[str]
    """The texts that are redirected to its input."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A parsed command line."""

    commands: tuple[ShellCommand, ...]
    """Every command in it, those in substitutions and groups too."""
    is_plain: bool
    """Whether it is one command, or a list or pipe of commands, and no word depends on a variable."""


@lru_cache(maxsize=256)
def parse_command(text: str) -> CommandLine:
    """Parse a command line. Raises `UnclearCommand`."""
    return parse_nested(text, 0)


def parse_nested(text: str, depth: int) -> CommandLine:
    """Parse a command line that is inside `depth` others. Raises `UnclearCommand`."""
    if len(text) > MAX_CHARACTERS:
        raise UnclearCommand(f"the command has more than {MAX_CHARACTERS} characters")
    if odd := _ODD.search(text):
        raise UnclearCommand(f"the command contains the character {odd[0]!a}")
    parser = _Parser(text, depth)
    parser.parse()
    return CommandLine(tuple(parser.found), parser.is_plain)


def words_without_shell(text: str) -> tuple[str, ...] | None:
    """Return the program and the arguments of a command line; None if only a shell can run it."""
    try:
        line, words = parse_command(text), tuple(shlex.split(text))
    except ValueError:  # `UnclearCommand` is one, too
        return None
    match line.commands:
        case [ShellCommand(found, assigns=False, files=(), inputs=[])] if line.is_plain and found == words:
            return words
        case _:
            return None


@dataclass(slots=True)
class _HereDocument:
    """A text that follows on the next lines."""

    delimiter: str
    is_quoted: bool
    is_indented: bool
    inputs: list[str]
    """Gets the text, once it is read."""


class _Parser:
    """Reads a command line from left to right. Finds too many commands rather than too few."""

    def __init__(self, text: str, depth: int) -> None:
        self.found: list[ShellCommand] = []
        self.is_plain = True
        self._text = text
        self._at = 0
        self._depth = depth
        self._documents: list[_HereDocument] = []
        self._arithmetic = 0
        """How many `((` are open. There, `<<` is a shift."""

    def parse(self) -> None:
        self._list("")
        if self._documents:
            raise UnclearCommand("the text after << is missing")

    def _list(self, closer: str) -> None:
        """Read commands until `closer`, which stays: nothing (the end), `)`, or `;;` (also `esac`)."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnclearCommand("the command is nested too deeply")
        while True:
            self._skip_blanks()
            letter = self._peek()
            if not letter:
                if closer:
                    raise UnclearCommand(f"{closer} is missing")
                break
            if letter == ")":
                if closer != ")":
                    raise UnclearCommand("( is missing")
                break
            if closer == ";;" and self._text.startswith((";;", ";&"), self._at):
                break
            if letter == "\n":
                self._newline()
            elif letter == "#":
                self._comment()
            elif letter in ";&|" and not self._text.startswith("&>", self._at):
                self._at += 1
            elif letter == "(":
                self._group()
            elif self._command(closer):
                break
        self._depth -= 1

    def _group(self) -> None:
        """Read `( commands )`, also as part of `(( arithmetic ))`."""
        self.is_plain = False
        arithmetic = self._text.startswith("((", self._at)
        documents, self._documents = self._documents, []
        self._arithmetic += arithmetic
        self._at += 1
        self._list(")")
        self._at += 1
        self._arithmetic -= arithmetic
        if self._documents:
            raise UnclearCommand("the text after << is missing")
        self._documents = documents

    def _command(self, closer: str) -> bool:
        """Read one command. Returns whether it is an `esac` that ends the list."""
        words: list[str] = []
        files: list[str] = []
        inputs: list[str] = []
        assigns = timed = False
        while True:
            self._skip_blanks()
            letter = self._peek()
            if letter in ("", "\n", ";", "|", ")") or (
                letter == "&" and not self._text.startswith("&>", self._at)
            ):
                break
            if letter == "#":
                self._comment()
                continue
            if found := _DESCRIPTOR.match(self._text, self._at):
                self._at = found.end()
            if self._redirection(files, inputs):
                continue
            if letter == "(":
                if len(words) != 1 or words[0] == "time":
                    if words:
                        raise UnclearCommand("( in the middle of a command")
                    break
                self._function_parentheses()
                words.clear()
                continue
            begin = self._at
            word = self._progress(self._word)
            raw = self._text[begin : self._at].replace("\\\n", "")
            if not words and _OPEN_SUBSCRIPT.match(raw):
                raise UnclearCommand("a subscript with a space in it")
            if self._peek() == "(" and raw.endswith("="):
                self._array()
                word += UNKNOWN
            if words:
                words.append(word)
            elif raw == "esac" and closer == ";;":
                self._at = begin
                return True
            elif raw == "time" or (timed and raw in ("-p", "--")):
                timed = True
            elif timed and raw.startswith("-"):
                words += ["time", word]
            elif raw in _KEYWORDS or raw in ("case", "for", "select", "[[", "function"):
                self._keyword(raw)
            elif _ASSIGNMENT.match(raw):
                assigns = True
            else:
                # zsh: =program is the path of a program, and {program } is a group.
                words.append(SPLIT if raw[0] in "={" else word)
        if words or files or inputs or assigns:
            self.found.append(ShellCommand(tuple(words), assigns, tuple(files), inputs))
            if len(self.found) > MAX_COMMANDS:
                raise UnclearCommand(f"there are more than {MAX_COMMANDS} commands")
        return False

    def _keyword(self, keyword: str) -> None:
        """Read what belongs to a keyword, up to the next command."""
        self.is_plain = False
        match keyword:
            case "case":
                self._case()
            case "for" | "select":
                self._loop_variable()
            case "[[":
                self._condition()
            case "function":
                self._skip_blanks()
                self._word()
                self._skip_blanks()
                if self._peek() == "(":
                    self._function_parentheses()
            case _:
                return

    def _function_parentheses(self) -> None:
        self.is_plain = False
        self._at += 1
        self._skip_blanks()
        self._expect(")")

    def _array(self) -> None:
        """Read the values of `name=(...)`."""
        self.is_plain = False
        self._at += 1
        while True:
            self._skip_blanks(newlines=True)
            if self._peek() == ")":
                break
            self._progress(self._word)
        self._at += 1

    def _case(self) -> None:
        self._skip_blanks()
        self._progress(self._word)
        self._skip_blanks(newlines=True)
        self._expect("in")
        while True:
            self._skip_blanks(newlines=True)
            if re.compile(r"esac(?![^\s;&|)<>])").match(self._text, self._at):
                self._at += 4
                return
            if self._peek() == "(":
                self._at += 1
            while True:
                self._skip_blanks()
                if self._peek() == ")":
                    break
                if self._peek() == "|":
                    self._at += 1
                else:
                    self._progress(self._word)
            self._at += 1
            self._list(";;")
            while self._peek() in (";", "&"):
                self._at += 1

    def _loop_variable(self) -> None:
        """Read the `name in values` of a loop."""
        self._skip_blanks()
        if self._peek() == "(":
            return  # the arithmetic for ((...)) is read as a group
        self._progress(self._word)
        self._skip_blanks(newlines=True)
        if re.compile(r"in(?=[\s;])").match(self._text, self._at):
            self._at += 2
            while True:
                self._skip_blanks()
                if self._peek() in ("", ";", "\n"):
                    break
                self._progress(self._word)
        elif self._peek() != ";" and not re.compile(r"do\s").match(self._text, self._at):
            raise UnclearCommand("a loop that is not understood")

    def _condition(self) -> None:
        """Read `[[ ... ]]`."""
        while True:
            self._skip_blanks(newlines=True)
            if re.compile(r"\]\](?![^\s;&|)<>])").match(self._text, self._at):
                self._at += 2
                return
            if self._peek() in tuple("<>()&|") and not self._text.startswith(("<(", ">("), self._at):
                self._at += 1
            else:
                self._progress(self._word)

    def _redirection(self, files: list[str], inputs: list[str]) -> bool:
        """Read a redirection, if there is one."""
        if self._text.startswith(("<(", ">("), self._at):
            return False
        operator = _REDIRECTION.match(self._text, self._at)
        if operator is None:
            return False
        self._at = operator.end()
        self._skip_blanks()
        begin = self._at
        target = self._progress(self._word)
        raw = self._text[begin : self._at]
        match operator[0]:
            case "<<" | "<<-":
                if self._arithmetic or UNKNOWN in target or SPLIT in target or "\n" in raw:
                    raise UnclearCommand("<< is not understood here")
                self.is_plain = False
                is_quoted = any(quote in raw for quote in "'\"\\")
                self._documents.append(_HereDocument(target, is_quoted, operator[0] == "<<-", inputs))
            case "<<<":
                self.is_plain = False
                inputs.append(target)
            case ">&" | "<&" if re.fullmatch(r"\d+-?|-", target):
                pass
            case _:
                files.append(target)
        return True

    def _newline(self) -> None:
        """Read a line break, and the texts that << announced."""
        self._at += 1
        for document in self._documents:
            lines: list[str] = []
            while True:
                if self._at >= len(self._text):
                    raise UnclearCommand(f"the line {clip(document.delimiter, 80)!r} is missing")
                line, _, _ = self._text[self._at :].partition("\n")
                self._at = min(len(self._text), self._at + len(line) + 1)
                if document.is_indented:
                    line = line.lstrip("\t")
                if line == document.delimiter:
                    break
                lines.append(line)
            body = "".join(f"{line}\n" for line in lines)
            if not document.is_quoted:
                if "\\\n" in body:
                    raise UnclearCommand("shells join the lines after << differently")
                body = self._expanded(body)
            document.inputs.append(body)
        self._documents = []

    def _expanded(self, body: str) -> str:
        """Read the substitutions in a text after <<."""
        inner = _Parser(body, self._depth)
        text = inner._double_quoted(ends="")
        self.found += inner.found
        return text

    def _comment(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _word(self) -> str:
        """Read one word and return it without its quotes."""
        parts: list[str] = []
        text = self._text
        has_brace = has_list = False
        bracket: int | None = None
        while self._at < len(text):
            letter = text[self._at]
            if letter in " \t\n;&|()":
                break
            self._at += 1
            match letter:
                case "<" | ">":
                    if not text.startswith("(", self._at):
                        self._at -= 1
                        break
                    self._group()
                    parts.append(UNKNOWN)
                case "\\":
                    if self._at >= len(text):
                        raise UnclearCommand("the command ends with a backslash")
                    parts.append(text[self._at].replace("\n", ""))
                    self._at += 1
                case "'":
                    parts.append(self._until("'"))
                case '"':
                    parts.append(self._double_quoted())
                case "$":
                    parts.append(self._dollar(is_quoted=False))
                case "`":
                    parts.append(self._backtick(is_quoted=False))
                case "*" | "?":
                    parts.append(SPLIT)
                case "[":
                    bracket = len(parts) if bracket is None else bracket
                    parts.append(letter)
                case "]" if bracket is not None:
                    parts[bracket:] = SPLIT
                    bracket = None
                case "{":
                    has_brace = True
                    parts.append(letter)
                case "," | "." if has_brace:
                    has_list = has_list or letter == "," or text.startswith(".", self._at)
                    parts.append(letter)
                case _:
                    parts.append(letter)
        return SPLIT if has_list else "".join(parts)

    def _until(self, quote: str) -> str:
        end = self._text.find(quote, self._at)
        if end < 0:
            raise UnclearCommand(f"the closing {quote} is missing")
        inside = self._text[self._at : end]
        self._at = end + 1
        return inside

    def _double_quoted(self, ends: str = '"') -> str:
        """Read up to the closing double quote, or up to the end of the text if `ends` is empty."""
        parts: list[str] = []
        text = self._text
        while True:
            if self._at >= len(text):
                if ends:
                    raise UnclearCommand('a second " is missing')
                return "".join(parts)
            letter = text[self._at]
            self._at += 1
            match letter:
                case '"' if ends:
                    return "".join(parts)
                case "\\" if self._peek() and self._peek() in '$`"\\\n':
                    parts.append(text[self._at].replace("\n", ""))
                    self._at += 1
                case "$":
                    parts.append(self._dollar(is_quoted=True))
                case "`":
                    parts.append(self._backtick(is_quoted=True))
                case _:
                    parts.append(letter)

    def _dollar(self, *, is_quoted: bool) -> str:
        """Read what follows a `$`."""
        while self._text.startswith("\\\n", self._at):
            self._at += 2
        result = UNKNOWN if is_quoted else SPLIT
        letter = self._peek()
        if letter == "(":
            self._group()
            return result
        if letter == "{":
            begin = self._at
            self._at += 1
            self._parameter(is_quoted)
            return SPLIT if "@" in self._text[begin : self._at] else result
        if letter == "[":
            raise UnclearCommand("$[ is not understood")
        if letter == "'" and not is_quoted:
            return self._ansi_quoted()
        if letter == '"' and not is_quoted:
            return ""  # the quoted text follows
        if found := _VARIABLE.match(self._text, self._at):
            self.is_plain = False
            self._at = found.end()
            return SPLIT if found[0] == "@" else result
        return "$"

    def _parameter(self, is_quoted: bool) -> None:
        """Read the rest of `${...}`."""
        self.is_plain = False
        while True:
            letter = self._peek()
            self._at += 1
            match letter:
                case "":
                    raise UnclearCommand("} is missing")
                case "}":
                    return
                case "\\":
                    self._at += 1
                case "'":
                    if is_quoted:
                        raise UnclearCommand("shells read ' in ${...} differently")
                    self._until("'")
                case '"':
                    self._double_quoted()
                case "$":
                    self._dollar(is_quoted=is_quoted)
                case "`":
                    self._backtick(is_quoted=is_quoted)
                case _:
                    continue

    def _ansi_quoted(self) -> str:
        self._at += 1
        inside = self._until("'")
        if inside.replace("\\\\", "").endswith("\\"):
            raise UnclearCommand("shells read \\' differently")
        decoded = _ANSI_ESCAPE.sub(_ansi_letter, inside)
        if _ODD.search(decoded):
            raise UnclearCommand("the command contains an escaped control character")
        return decoded

    def _backtick(self, *, is_quoted: bool) -> str:
        self.is_plain = False
        begin = self._at
        while self._peek() != "`":
            if not self._peek():
                raise UnclearCommand("a second ` is missing")
            self._at += 2 if self._peek() == "\\" else 1
        escaped = r'\\([`$\\"])' if is_quoted else r"\\([`$\\])"
        inner = re.sub(escaped, r"\1", self._text[begin : self._at])
        self._at += 1
        self.found += parse_nested(inner, self._depth + 1).commands
        return UNKNOWN if is_quoted else SPLIT

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip_blanks(self, *, newlines: bool = False) -> None:
        while True:
            letter = self._peek()
            if letter and letter in " \t":
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif newlines and letter == "\n":
                self._newline()
            elif newlines and letter == "#":
                self._comment()
            else:
                return

    def _expect(self, text: str) -> None:
        if not self._text.startswith(text, self._at):
            raise UnclearCommand(f"{text} is missing")
        self._at += len(text)

    def _progress(self, read: Callable[[], str]) -> str:
        """Read something that must not be empty."""
        begin = self._at
        result = read()
        if self._at == begin:
            raise UnclearCommand(f"{self._peek() or 'the end'!r} comes too early")
        return result


def _ansi_letter(found: re.Match[str]) -> str:
    """Decode one escape of `$'...'`."""
    escape = found[0][1:]
    kind, digits = escape[0], escape[1:]
    if kind in "xuU" and digits:
        number = int(digits, 16)
    elif kind in "01234567":
        number = int(escape, 8) & 0xFF
    elif kind == "c":
        number = ord(digits or "@") & 0x1F
    else:
        return _ANSI_LETTERS.get(kind, kind)
    if number in (0, 1) or number > 0x10FFFF:
        raise UnclearCommand("the command contains an escaped control character")
    return chr(number)
