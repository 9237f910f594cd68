"""Other ways to write a tool call so that it still does the same: commands, paths and addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

PROGRAM = "rm"
"""The program that the rewritten commands run."""
WRAPPING_PROGRAMS = (
    *(
        "true",
        "echo",
        "cat",
        "env",
        "nohup",
        "nice",
        "timeout",
        "command",
        "exec",
        "sh",
        "bash",
        "eval",
        "xargs",
    ),
    *("find", "sudo", "setsid", "stdbuf", "trap", "time", "if", "then", "test", "printf", "busybox", "cd"),
)
"""Every other program in the rewritten commands."""
ADDRESS_PARTS = (
    *("http", "https", "://", "//", "/", ":", "\\", "@", "u:p@", "#", "?", ":80", "[", "]"),
    *("a.org", "b.org", "A.ORG", "a", "org", ".", "%61", "%2e", "%00", "127.1", "0x7f.1", "x"),
    *(" ", "\t", "\n", "ａ", "。", "\u00ad"),
)
"""Pieces of addresses, some of which parsers read in different ways."""


def rewrite_command(random: Random, folder: str, *, depth: int = 3) -> str:
    """Return a command line that runs `rm x`; `folder` holds the program."""
    text = _simple(random, folder)
    for _ in range(random.randrange(depth + 1)):
        text = random.choice(_AROUND)(random, text)
    return text


def _blank(random: Random) -> str:
    return random.choice([" ", " ", "  ", "\t", " \t", " \\\n"])


def spell(random: Random, word: str) -> str:
    """Return a word with quotes and escapes that the shell removes."""
    letters: list[str] = []
    for letter in word:
        match random.randrange(8):
            case 0:
                letters.append(f"\\{letter}")
            case 1:
                letters.append(f"'{letter}'")
            case 2:
                letters.append(f'"{letter}"')
            case 3:
                letters.append(f'{letter}""')
            case 4:
                letters.append(f"{letter}\\\n")
            case _:
                letters.append(letter)
    return "".join(letters)


def _simple(random: Random, folder: str) -> str:
    blank = _blank(random)
    program = random.choice(
        [
            PROGRAM,
            PROGRAM,
            spell(random, PROGRAM),
            spell(random, PROGRAM),
            f"{folder}/{PROGRAM}",
            f"{folder}/../{folder.rpartition('/')[2]}/{spell(random, PROGRAM)}",
            f"{folder}/r?",
            f"{folder}/[r]m",
            "$(echo rm)",
            '"$(echo rm)"',
            "`echo rm`",
        ]
    )
    command = random.choice(
        [
            f"{program}{blank}x",
            f"{program}{blank}-f{blank}x",
            f"{program}{blank}x{blank}2>&1",
            f">/dev/null{blank}{program} x",
            f"A=1{blank}{program}{blank}x",
            f"A='1 2' B=$(true) {program} x",
            f"X=rm; $X{blank}x",
            f"X=r; ${{X}}m{blank}x",
            "set -- rm x; $@",
            'set -- rm x; "$@"',
            "rm<x",
        ]
    )
    return random.choice(["", "", " ", "\t", "\n", "# nothing\n", "true\n"]) + command


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _backtick(random: Random, text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("`", "\\`").replace("$", "\\$")
    return f"echo `{escaped}`"


def _here(random: Random, text: str) -> str:
    quote = random.choice(["'", "\\"])
    start = f"{quote}END{quote}" if quote == "'" else "\\END"
    return f"sh <<{start}\n{text}\nEND"


_AROUND: Sequence[Callable[[Random, str], str]] = (
    lambda random, text: random.choice(
        [f"true;{text}", f"true && {text}", f"false || {text}", f"true\n{text}"]
    ),
    lambda random, text: (
        f"true |{text}" if not text.lstrip(" \t").startswith(("#", "\n")) else f"true\n{text}"
    ),
    lambda random, text: f"{text}\ntrue",
    lambda random, text: f"( {text}\n)",
    lambda random, text: f"{{\n{text}\n}}",
    lambda random, text: f"if true; then\n{text}\nfi",
    lambda random, text: f"if {text}\nthen true; else true; fi",
    lambda random, text: f"while true; do {text}\nbreak; done",
    lambda random, text: f"for i in 1; do\n{text}\ndone",
    lambda random, text: f"case a in b) true;; a)\n{text}\n;; esac",
    lambda random, text: f"f() {{\n{text}\n}}; f",
    lambda random, text: f"echo $(\n{text}\n)",
    lambda random, text: f'echo "$(\n{text}\n)"',
    lambda random, text: f"echo ${{y:-$(\n{text}\n)}}",
    _backtick,
    _here,
    lambda random, text: f"cat <<END\n$(\n{text}\n)\nEND",
    lambda random, text: f"sh -c{_blank(random)}{_quoted(text)}",
    lambda random, text: f"bash -c {_quoted(text)} name x",
    lambda random, text: f"env A=1 sh -c {_quoted(text)}",
    lambda random, text: f"eval {_quoted(text)}",
    lambda random, text: f"trap {_quoted(text)} EXIT",
    lambda random, text: f"echo {_quoted(text)} | sh" if "\\" not in text else f"sh -c {_quoted(text)}",
    lambda random, text: f"nohup env nice sh -c {_quoted(text)}",
    lambda random, text: f"timeout 5 sh -c {_quoted(text)}",
    lambda random, text: f"sudo -n sh -c {_quoted(text)}",
    lambda random, text: f"command exec sh -c {_quoted(text)}",
    lambda random, text: f"echo x | xargs -I% sh -c {_quoted(text)}",
    lambda random, text: f"find . -maxdepth 0 -exec sh -c {_quoted(text)} \\;",
    lambda random, text: "echo x | xargs rm",
    lambda random, text: "echo rm x | xargs env",
    lambda random, text: "echo rm | xargs -I% % x",
    lambda random, text: "find . -maxdepth 0 -exec rm x \\;",
    lambda random, text: "env -S 'rm x'",
    lambda random, text: "env A=1 rm x",
    lambda random, text: "sudo -u root rm x",
)
"""Each puts a command line into another one that runs it."""


def rewrite_path(random: Random, folder: str, path: str, *, absolute: bool | None = None) -> str:
    """Return another spelling of a path that is relative to `folder`."""
    parts = path.split("/")
    spelled: list[str] = []
    for place, part in enumerate(parts):
        spelled += random.choice(
            [[], [], ["."], ["src", ".."], ["", "."], [parts[0], ".."] if place == 0 else []]
        )
        spelled.append(part)
    text = "/".join(spelled).lstrip("/")
    outside = random.random() < 0.4 if absolute is None else absolute
    if outside:
        return random.choice(
            [f"{folder}/{text}", f"{folder}//{text}", f"{folder}/./{text}", f"//{folder.lstrip('/')}/{text}"]
        )
    return random.choice([text, f"./{text}", f".//{text}", f"../{folder.rpartition('/')[2]}/{text}"])


def rewrite_address(random: Random, host: str) -> str:
    """Return a URL that a client reads as one of `host`."""
    name = "".join(letter.upper() if random.random() < 0.3 else letter for letter in host)
    scheme = random.choice(["http", "https", "HTTP", "hTTps"])
    user = random.choice(["", "", "", "me@", "me:secret@", "b.org@", "b.org:80@"])
    port = random.choice(["", "", ":80", ":443", ":8080", ":"])
    dot = random.choice(["", "", "."])
    path = random.choice(["", "/", "/a/b", "?q=1", "#x", "/@b.org/", "/\\b.org"])
    return f"{scheme}://{user}{name}{dot}{port}{path}"
