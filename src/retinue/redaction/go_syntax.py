"""From the regular expressions of Go and RE2 to those of Python's `re`.

Covers what the rules use: flags in the middle of a group, `\\z`, a strict `$`, and POSIX classes.
Also bounds `.*`, over which `re`, unlike RE2, would backtrack through a whole text. Knows nothing of secrets.
"""

from __future__ import annotations

import re

TOKEN = re.compile(
    r"""
    (?P<escape>\\.)
  | (?P<cls>\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\])
  | (?P<flags>\(\?[a-zA-Z]+\))
  | (?P<open>\((?:\?P?<\w+>|\?[a-zA-Z-]*:)?)
  | (?P<close>\))
  | (?P<alternative>\|)
  | (?P<end>\$)
  | (?P<wild>\.[*])
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
POSIX_CLASSES = {"[:alnum:]": "a-zA-Z0-9", "[:alpha:]": "a-zA-Z", "[:digit:]": "0-9", "[:space:]": r"\s"}
BOUNDED_WILD = ".{0,200}"


def to_python(regex: str) -> str:
    """The same expression for `re`."""
    out: list[str] = []
    # For each open group, the flags set inside it so far: they hold to the group's end, over every `|`.
    flags: list[list[str]] = [[]]
    for token in TOKEN.finditer(regex):
        kind, text = str(token.lastgroup), token.group()
        if kind == "flags":
            flags[-1].append(text[:-1] + ":")
            out.append(flags[-1][-1])
        elif kind == "open":
            flags.append([])
            out.append(text)
        elif kind == "close":
            out.append(")" * len(flags.pop()) + ")")
        elif kind == "alternative":
            out.append(")" * len(flags[-1]) + "|" + "".join(flags[-1]))
        else:
            out.append(leaf(kind, text))
    return "".join(out) + ")" * len(flags[0])


def leaf(kind: str, text: str) -> str:
    if kind == "end" or text == r"\z":
        return r"\Z"
    if kind == "wild":
        return BOUNDED_WILD
    if kind == "cls":
        for name, members in POSIX_CLASSES.items():
            text = text.replace(name, members)
        # A bare bracket inside a class is literal; `re` warns that it may not stay so.
        return "[" + text[1:-1].replace("[", r"\[").replace(r"\\[", r"\[") + "]"
    return text
