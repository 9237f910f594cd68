"""Finds out what programs a command line runs, those that `sudo`, `xargs`, `find` or `sh -c` run too.

`possible_commands` finds too many rather than too few, `plain_commands` only what is certain. Knows nothing
of permissions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import zip_longest

from retinue.core.shell_command import (
    MAX_COMMANDS,
    MAX_DEPTH,
    SPLIT,
    UNKNOWN,
    ShellCommand,
    UnclearCommand,
    parse_command,
    parse_nested,
)

SHELLS = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "yash", "fish", "csh", "tcsh", "rbash"}
)
WRAPPERS = frozenset(
    {
        *("env", "sudo", "doas", "su", "runuser", "pkexec", "run0", "gosu", "setpriv", "fakeroot", "chroot"),
        *("xargs", "parallel", "find", "fd", "fdfind", "entr", "watch", "repeat", "at", "batch", "flock"),
        *("nohup", "nice", "ionice", "chrt", "taskset", "numactl", "prlimit", "setsid", "stdbuf", "unbuffer"),
        *("time", "timeout", "command", "exec", "builtin", "hash", "coproc", "noglob", "nocorrect", "-"),
        *("busybox", "toybox", "unshare", "nsenter", "setarch", "linux32", "linux64", "bwrap", "firejail"),
        *("strace", "ltrace", "gdb", "valgrind", "perf", "script", "rlwrap", "systemd-run", "xvfb-run"),
        *("dbus-run-session", "start-stop-daemon", "tini", "dumb-init", "caffeinate", "proxychains"),
        *(
            "torsocks",
            "cpulimit",
            "choom",
            "uclampset",
            "i386",
            "x86_64",
            "uname26",
            "sg",
            "ssh-agent",
            "logsave",
        ),
        *("capsh", "mapfile", "readarray", "compgen", "complete"),
    }
)
"""Programs that run the program that their arguments name."""
PROJECT_RUNNERS = frozenset(
    {"uv", "poetry", "pipenv", "pdm", "hatch", "rye", "mise", "direnv", "devbox", "bundle"}
)
"""Programs with a command, such as `run`, that runs the program that their arguments name."""
FINDERS = frozenset({"find", "fd", "fdfind"})
_SEARCH_ACTIONS = frozenset(
    {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-x", "-X"}
)
"""Options of `find` and `fd` that run programs, or delete or write files."""
INERT = frozenset(
    {"echo", "cat", "ls", "head", "tail", "wc", "grep", "egrep", "fgrep", "cd", "mkdir", "touch", "which"}
    | {"type", "stat", "file", "cut", "tr", "pwd", "true", "false", "basename", "dirname"}
)
"""Programs that run nothing, whatever their arguments are."""
_SCRIPT_LETTERS = frozenset(" \t\n;&|()<>$`'\"\\")
MAX_WRAPPED_WORDS = 500


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
    that only start a program, such as `timeout 5`, are removed. Raises `UnclearCommand`.
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
    if name in FINDERS:
        known = all(UNKNOWN not in word and SPLIT not in word for word in arguments if word[:1] in "-\0\1")
        return not known or any(_is_search_action(word) for word in arguments)
    return (
        name in WRAPPERS or name in ("eval", "trap", "alias", "source", ".") or _is_loader(name)
    ) and bool(arguments)


def searches_current_folder(words: tuple[str, ...]) -> bool:
    """Whether the command reads all files of its folder, because it names no other."""
    name, arguments = program_name(words[0]), words[1:]
    if name == "git" and "grep" in arguments:
        name, arguments = "rg", arguments[arguments.index("grep") + 1 :]
    options = [word for word in arguments if word.startswith("-")]
    recursive = any(
        word in ("--recursive", "--dereference-recursive", "--directories=recurse")
        or (not word.startswith("--") and "r" in word.casefold())
        for word in options
    )
    searches = name in ("rg", "ag", "ack") or (name in ("grep", "egrep", "fgrep") and recursive)
    return searches and len(arguments) - len(options) < 2


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
    elif name == "alias":
        for argument in arguments:
            _add_script(argument.partition("=")[2], found, depth)
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
    if name in ("xargs", "parallel") or name in FINDERS:
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
    for command in parse_nested(script, depth + 1).commands:
        _add_possible(command, found, depth + 1)
