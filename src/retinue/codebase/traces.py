"""Lines of stack traces, of compilers and of test runners: where each points. Knows nothing of files."""

from __future__ import annotations

import re
from typing import NamedTuple

_PATH = r"((?:[A-Za-z]:)?[\w.@~+/\\-]{1,300}\.[A-Za-z]\w{0,7})"
_NAME = r"([\w.$<>:~]{1,200})"


class Frame(NamedTuple):
    path: str
    line: int
    function: str
    """Its bare name; empty where the trace does not say it."""


_FORMS: tuple[tuple[re.Pattern[str], tuple[int, int, int]], ...] = (
    # Python: File "a/b.py", line 3, in f
    (re.compile(r'File "([^"\n]{1,300})", line (\d{1,7})(?:, in (\w{1,120}))?'), (1, 2, 3)),
    # Java, Kotlin, JavaScript: at a.b.C.f(C.java:3), at async f (a/b.js:3:5)
    (re.compile(rf"\bat (?:async |new )?{_NAME} ?\((?:file://)?{_PATH}:(\d{{1,7}})"), (2, 3, 1)),
    # C#: at A.B.F(String s) in /a/b.cs:line 3
    (re.compile(rf"\bat {_NAME}\([^()\n]{{0,300}}\) in {_PATH}:line (\d{{1,7}})"), (2, 3, 1)),
    # Ruby: a/b.rb:3:in `f'
    (re.compile(rf"{_PATH}:(\d{{1,7}}):in [`'](?:block in )?{_NAME}"), (1, 2, 3)),
    # PHP: #0 /a/b.php(3): A\B->f(), and: in /a/b.php on line 3
    (re.compile(rf"{_PATH}\((\d{{1,7}})\): (?:[\w\\]{{1,200}}(?:->|::))?(\w{{1,120}})\("), (1, 2, 3)),
    (re.compile(rf"\bin {_PATH} on line (\d{{1,7}})()"), (1, 2, 3)),
    # Go, Rust, C and whatever else points at a line: /a/b.go:3 +0x1d, at src/a.rs:3:5, a.c:3: error
    (re.compile(rf"(?<![\w/\\.:-]){_PATH}:(\d{{1,7}})\b()"), (1, 2, 3)),
)


def frames(text: str) -> list[Frame]:
    """Each place once, the outermost call first: Python tells it so, the others the other way round."""
    found: dict[tuple[str, int], tuple[int, Frame]] = {}
    for form, (path, line, name) in _FORMS:
        for match in form.finditer(text):
            place = match[path].removeprefix("./"), int(match[line])
            if place not in found:
                found[place] = match.start(path), Frame(*place, _bare(match[name] or ""))
    told = [frame for _, frame in sorted(found.values())]
    return told if any(frame.path.endswith(".py") for frame in told) else told[::-1]


def _bare(name: str) -> str:
    last = re.split(r"\.|::", name)[-1]
    return last if re.fullmatch(r"\w+", last) else ""
