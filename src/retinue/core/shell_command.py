"""Parses a command line as a shell would, to find every command that it may run.

What only the shell can know, such as the value of a variable, is marked in the words. Anything that shells
read differently, or that is not understood, raises `UnclearCommand`. Knows nothing of permissions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

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


SHELLS = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "yash", "fish", "csh", "tcsh", "rbash"}
)
WRAPPERS = frozenset(
    {
        *("env", "sudo", "doas", "su", "runuser", "pkexec", "run0", "gosu", "setpriv", "fakeroot", "chroot"),
        *("xargs", "parallel", "find", "fd", "fdfind", "entr", "watch", "repeat", "at", "batch", "flock"),
        *("nohup", "nice", "ionice", "chrt", "taskset", "numactl", "prlimit", "setsid", "stdbuf", "unbuffer"),
        *(
            "time",
            "timeout",
            "command",
            "exec",
            "builtin",
            "coproc",
            "noglob",
            "nocorrect",
            "-",
            "caffeinate",
        ),
        *("busybox", "toybox", "unshare", "nsenter", "setarch", "linux32", "linux64", "bwrap", "firejail"),
        *("strace", "ltrace", "gdb", "valgrind", "perf", "script", "rlwrap", "systemd-run", "xvfb-run"),
        *("dbus-run-session", "start-stop-daemon", "tini", "dumb-init", "proxychains", "torsocks"),
    }
)
"""Programs that run the program that their arguments name."""
PROJECT_RUNNERS = frozenset(
    {"uv", "poetry", "pipenv", "pdm", "hatch", "rye", "mise", "direnv", "devbox", "bundle"}
)
"""Programs with a command, such as `run`, that runs the program that their arguments name."""
_SEARCH_ACTIONS = frozenset(
    {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-x", "-X"}
)
"""Options of `find` and `fd` that run programs, or delete or write files."""
_SCRIPT_LETTERS = frozenset(" \t\n;&|()<>$`'\"\\")
MAX_WRAPPED_WORDS = 500


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
    return _parse(text, 0)


@lru_cache(maxsize=256)
def possible_commands(text: str) -> tuple[tuple[str, ...], ...]:
    """Return every command that a command line may run, those that `sudo`, `xargs` or `sh -c` run too.

    Some of them are never run, because every argument of such a program may be a program. A command whose
    program is `SPLIT` may be any. Raises `UnclearCommand`.
    """
    found: list[tuple[str, ...]] = []
    for command in parse_command(text).commands:
        _add_possible(command, found, 0)
    return tuple(found)


def plain_commands(text: str) -> tuple[tuple[str, ...], ...] | None:
    """Return the commands that a command line runs, if that is certain and nothing else happens; else None.

    None also if it sets variables, reads or writes files by redirection, or depends on variables. Wrappers
    without a say in what is run, such as `timeout 5`, are left out. Raises `UnclearCommand`.
    """
    line = parse_command(text)
    if not line.is_plain or not line.commands:
        return None
    for command in line.commands:
        if command.assigns or not command.words or any(file != "/dev/null" for file in command.files):
            return None
    return tuple(_unwrapped(command.words) for command in line.commands)


def runs_another_program(words: tuple[str, ...]) -> bool:
    """Whether the command runs a program or a script that its arguments or its input name."""
    name, arguments = program_name(words[0]), words[1:]
    if name in SHELLS:
        return not arguments or arguments[0].startswith(("-", "+", "/dev/", "/proc/", UNKNOWN, SPLIT))
    if name in ("find", "fd", "fdfind"):
        known = all(UNKNOWN not in word and SPLIT not in word for word in arguments if word[:1] in "-\0\1")
        return not known or any(_is_search_action(word) for word in arguments)
    return (name in WRAPPERS or name in ("eval", "trap", "source", ".") or _is_loader(name)) and bool(
        arguments
    )


def program_name(word: str) -> str:
    """Return the name of a program without its folder."""
    name = word.replace("\\", "/").rpartition("/")[2].casefold()
    return name.removesuffix(".exe") or word


def _is_loader(name: str) -> bool:
    return name.startswith(("ld-", "ld.so"))


def _is_search_action(word: str) -> bool:
    return word in _SEARCH_ACTIONS or word.startswith(("--exec", "-exec"))


def _unwrapped(words: tuple[str, ...]) -> tuple[str, ...]:
    """Remove wrappers that only run a program: `nohup`, `nice`, `nice -n 5`, `timeout 5`."""
    while len(words) > 1:
        if words[0] == "timeout" and re.fullmatch(r"\d+(\.\d+)?[smhd]?", words[1]):
            rest = words[2:]
        elif words[:2] == ("nice", "-n") and len(words) > 3 and re.fullmatch(r"-?\d+", words[2]):
            rest = words[3:]
        elif words[0] in ("nohup", "nice"):
            rest = words[1:]
        else:
            break
        if not rest or rest[0][:1] in ("-", UNKNOWN, SPLIT):
            break
        words = rest
    return words


def _add_possible(
    command: ShellCommand, found: list[tuple[str, ...]], depth: int, *, nested: bool = False
) -> None:
    """Add a command and what it runs. If it is `nested`, the wrapper before it adds what it wraps."""
    words = command.words
    if not words:
        return
    if len(found) > MAX_COMMANDS * 2 or depth > MAX_DEPTH:
        raise UnclearCommand("the command runs too many others")
    found.append(words)
    name, arguments = program_name(words[0]), words[1:]
    if name in SHELLS:
        _add_shell(arguments, command.inputs, found, depth)
    elif name == "eval":
        _add_script(" ".join(arguments), found, depth)
    elif name == "trap":
        for argument in arguments[:2]:
            _add_script(argument, found, depth)
    elif name in ("source", "."):
        if not arguments or arguments[0].startswith(("/dev/", "/proc/", UNKNOWN, SPLIT)):
            found.append((SPLIT,))
    elif (name in WRAPPERS or name in PROJECT_RUNNERS or _is_loader(name)) and not nested:
        _add_wrapped(name, arguments, command.inputs, found, depth)


def _add_shell(
    arguments: tuple[str, ...], inputs: list[str], found: list[tuple[str, ...]], depth: int
) -> None:
    """Add what a shell runs: the script after `-c`, or its input."""
    operands = [word for word in arguments if not word.startswith(("-", "+"))]
    options = [word for word in arguments if word.startswith("-")]
    if any("c" in option.casefold() for option in options):
        for operand in operands:
            _add_script(operand, found, depth)
    elif any(UNKNOWN in word or SPLIT in word for word in arguments):
        found.append((SPLIT,))
    elif inputs:
        for text in inputs:
            _add_script(text, found, depth)
    elif not operands or "-s" in options or operands[0].startswith(("/dev/", "/proc/", "-")):
        found.append((SPLIT,))


def _add_wrapped(
    name: str, arguments: tuple[str, ...], inputs: list[str], found: list[tuple[str, ...]], depth: int
) -> None:
    """Add every argument that may be the program, with the arguments after it."""
    if len(arguments) > MAX_WRAPPED_WORDS:
        raise UnclearCommand("a program that runs another one has too many arguments")
    begins = range(len(arguments))
    if name in ("xargs", "parallel", "find", "fd", "fdfind"):
        arguments = (*_without_placeholders(arguments), SPLIT)
        if name == "xargs":
            begins = _after_xargs_options(arguments) or begins
        elif name == "find":
            begins = [place + 1 for place in begins if _is_search_action(arguments[place])]
    for begin in begins:
        argument = arguments[begin]
        _add_possible(
            ShellCommand(arguments[begin:], False, (), inputs),
            found,
            depth + 1,
            nested=name not in ("xargs", "find"),
        )
        for script in _scripts_in(argument):
            _add_script(script, found, depth)
            found.append((script, *arguments[begin + 1 :]))


_XARGS_OPTION = re.compile(
    r"-[0rtxpo]*(?:[IJnPLsdEaRS](?P<value>.*)|[ile].*)?|--(?!replace$)[\w-]+(?:=.*)?", re.DOTALL
)


def _after_xargs_options(arguments: tuple[str, ...]) -> list[int]:
    """Return the place of the program among the arguments of `xargs`; empty if it is not certain."""
    place = 0
    while place < len(arguments) and arguments[place].startswith("-"):
        option = _XARGS_OPTION.fullmatch(arguments[place])
        if option is None or UNKNOWN in arguments[place][:2] or SPLIT in arguments[place]:
            return []
        if arguments[place].startswith("--") and "=" not in arguments[place]:
            return []  # the next argument may be a value or the program
        place += 2 if option["value"] == "" else 1
    return [place] if place < len(arguments) else []


def _scripts_in(argument: str) -> Iterator[str]:
    """Yield what may be a script: the argument, or the value that is attached to an option (`-S'rm x'`)."""
    if argument.startswith("-"):
        yield from (argument[letters:] for letters in range(2, min(len(argument), 6)))
        yield from filter(None, [argument.partition("=")[2]])
    elif not _SCRIPT_LETTERS.isdisjoint(argument):
        yield argument


def _without_placeholders(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Mark the places where `xargs -I NAME`, `find` and `parallel` put in what they read."""
    placeholders = {"{}"}
    for option, value in zip_longest(arguments, arguments[1:], fillvalue=""):
        if option in ("-I", "-J", "--replace") and value:
            placeholders.add(value)
        elif option.startswith(("-I", "-i", "-J")) and len(option) > 2:
            placeholders.add(option[2:])
        elif option.startswith("--replace="):
            placeholders.add(option.partition("=")[2] or "{}")
    marked: list[str] = []
    for argument in arguments:
        for placeholder in placeholders:
            argument = argument.replace(placeholder, UNKNOWN) if not argument.startswith("-") else argument
        marked.append(argument)
    return tuple(marked)


def _add_script(script: str, found: list[tuple[str, ...]], depth: int) -> None:
    if UNKNOWN in script or SPLIT in script:
        found.append((SPLIT,))
        return
    for command in _parse(script, depth + 1).commands:
        _add_possible(command, found, depth + 1)


def _parse(text: str, depth: int) -> CommandLine:
    if len(text) > MAX_CHARACTERS:
        raise UnclearCommand(f"the command has more than {MAX_CHARACTERS} characters")
    if odd := _ODD.search(text):
        raise UnclearCommand(f"the command contains the character {odd[0]!a}")
    parser = _Parser(text, depth)
    parser.parse()
    return CommandLine(tuple(parser.found), parser.is_plain)


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
            raise UnclearCommand(f"a second {quote} is missing")
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
        self.found += _parse(inner, self._depth + 1).commands
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
