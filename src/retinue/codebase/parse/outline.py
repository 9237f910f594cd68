"""Splits a file into chunks of about the size of a definition, and finds its imports, for ranking.

A cheap guess by lines: parsing every file would take several times as long as the rest of an index. What a
report says about definitions comes from `parsed_code`. Works on UTF-8 bytes: splitting and counting bytes is
several times as fast as decoding them first.
"""

from __future__ import annotations

import functools
import re
from itertools import islice
from typing import NamedTuple

CHUNK_BYTES = 3_000
"""About 80 lines. A longer definition is split into several chunks with the same name."""
MAX_CHUNKS = 4_000
"""Limit for one file. The last chunk contains the rest."""
_MAX_IMPORTS = 80
_IMPORT_BYTES = 16_000
"""How much of a file is searched for imports: in most languages they come first."""

_LEADING_LINE = re.compile(rb"[ \t]{0,64}(?:#(?![ \t]{0,8}(?:define|include|if|endif))|//|/\*|\*|@|\[|--)")
"""A line above a definition that belongs to it: a comment, a decorator or an attribute."""
_MAX_LEADING_LINES = 12


# Patterns for lines that seem to define something. Each starts with the newline before its line, which the
# regex engine finds as fast as a plain byte search, and its last group is the name. Every repetition is
# bounded and unambiguous, so that hostile text takes no longer than ordinary text.
_GAP, _MAYBE, _INDENT = r"[ \t]{1,8}+", r"[ \t]{0,8}+", r"[ \t]{0,64}+"
_NAME = r"([\w$]{1,120}+)"
_TO_END, _TO_BRACE = _MAYBE + r"\([^;\n]{0,300}+(?=\n)", _MAYBE + r"\([^;\n]{0,300}\{[ \t]{0,8}+(?=\n)"
_TO_ARROW = _MAYBE + r"\([^;{\n]{0,300}?\)" + _MAYBE + "=>"
_PARAMETERS_BELOW = (
    r"\((?=\n(?:[^;{}\n]{1,200}\n){1,16}?[ \t]{0,64}\)[ \t]{0,8}+(?::[^;=\n]{0,120})?\{\}?[ \t]{0,8}+\n)"
)
_MODIFIERS = (
    r"(?:(?:export|default|declare|abstract|public|private|protected|internal|static|final|async|unsafe|"
    r"extern|sealed|partial|override|virtual|readonly|open|data|inline|const|suspend|case|local|cdef|"
    r"pub(?:\([^)\n]{0,40}\))?)" + _GAP + r"){0,6}"
)
_KEYWORD = (
    _INDENT
    + _MODIFIERS
    + r"(?:(?:def|defp|defmodule|defmacro|class|cpdef|interface|struct|enum|trait|record|union|type|object|"
    r"protocol|extension|namespace|module|mod|fn|func|fun|function\*?|sub|proc|init|@interface|macro_rules!)"
    + _GAP
    + r"|impl(?:<[^>\n]{0,120}>)?[ \t]{1,8}+(?:[^{\n]{0,160}[ \t]for[ \t]{1,8}+)?)"
    + r"(?:\([^)\n]{0,120}\)[ \t]{0,8}+|<[^>\n]{0,80}>[ \t]{0,8}+|self\.|&)?"
)
"""A line with a keyword for definitions, in any language, as far as the name."""
_CONSTANT = r"([A-Z][A-Z0-9_]{2,80})(?:[ \t]{0,8}+:[^=\n]{0,80})?[ \t]{0,8}+=[^=]"
_NO_CALL = (
    r"(?!(?:if|for|while|switch|catch|return|else|do|new|throw|function|await|typeof|using|lock|sizeof|"
    r"defined|foreach|and|or|not|case|goto|delete|yield)\b)"
)
_TYPE = r"[\w:@<>\[\],.?]{1,80}+"
_TYPED = (
    # A glance ahead rules out most statements: a type is followed by a blank, and `(` comes before any `=`.
    rf"(?={_TYPE}[ \t*&][^(=;\n]{{1,1000}}+\()" + _NO_CALL + rf"(?:{_TYPE}[ \t*&]{{1,8}}+){{1,6}}" + _NO_CALL
)
"""What comes before the name of a function: its type, and words such as `static`."""
_SCRIPT_VALUE = (
    r"(?:async[ \t]{0,8}+)?(?:function\b|\([^)\n]{0,200}+\)[^=\n]{0,80}+=>|\w{1,60}+[ \t]{0,8}+=>)"
)
_C_TYPE = (
    r"(?:(?:typedef|static|const)[ \t]{1,8}+){0,2}"
    r"(?:class|struct|union|enum(?:[ \t]{1,8}+class)?|namespace)[ \t]{1,8}+"
    r"(?:\w{1,80}+[ \t]{1,8}+(?!final\b)(?=\w))?"  # a macro such as `API`
    + _NAME
    + r"(?:<[^;\n]{0,120}>)?(?:[ \t]{1,8}+final\b)?[ \t]{0,8}+(?=[:{]|//|/\*|\n[ \t]{0,16}[:{])"
)
_C_NAME = r"((?:\w{1,80}+::){0,4}~?\w{1,120}+)"
_TYPE_ABOVE = r"(?:[A-Za-z_][\w \t*&:<>,]{0,120}+(?<=[\w*&>])\n)?"
_TO_BRACE_BELOW = r"[ \t]{0,8}+\((?=[^;{}\n]{0,300}+(?:\n[ \t)][^;{}\n]{0,200}+){0,16}+(?<=[\w) \t])\n?\{)"
_C_TABLE = _NAME + r"(?:\[[^\]\n]{0,80}+\]){0,3}[ \t]{0,8}+=[ \t]{0,8}+\{?(?=\n)"

_LINES: dict[str, tuple[str, ...]] = {
    ".py .pyi .pyx .pxd": ("acdA-Z", _KEYWORD + _NAME, _CONSTANT),
    ".rb .rake": (
        "cdmA-Z",
        _KEYWORD + r"([\w:?!]{1,120}|\[\]=?|[<=>+*/%~^&|-]{1,3})",
        r"[ \t]{0,16}+" + _CONSTANT,
    ),
    ".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte": (
        r"\w$#*",
        _KEYWORD + _NAME,
        rf"{_INDENT}{_MODIFIERS}(?:(?:let|var){_GAP})?([\w$.]{{1,120}}+){_MAYBE}"
        rf"(?::[^=\n]{{0,120}})?[=:]{_MAYBE}{_SCRIPT_VALUE}",
        rf"(?:export{_GAP})?const{_GAP}([\w$]{{1,120}}+){_MAYBE}(?::[^=\n]{{0,120}})?=",
        rf"{_INDENT}{_MODIFIERS}(?:[gs]et{_GAP})?\*?{_NO_CALL}(#?[\w$]{{1,120}}+){_MAYBE}"
        rf"(?:<[^>\n]{{0,80}}+>)?(?:{_TO_BRACE}|{_PARAMETERS_BELOW})",
    ),
    ".go .rs .php": (
        r"\w",
        _KEYWORD + _NAME,
        rf"{_INDENT}{_MODIFIERS}(?:const|static|var){_GAP}(?:mut{_GAP})?{_NAME}",
        rf"\t{_NAME}[ \t]{{1,40}}+(?:struct|interface)\b",
    ),
    ".java .cs .kt .kts .scala .sc .swift .dart .groovy": (
        r"\w@\[",
        _KEYWORD + r"(?:\w{1,80}\.)?" + _NAME,
        rf"{_INDENT}{_MODIFIERS}(?:val|var){_GAP}{_NAME}",
        rf"[ \t]{{1,64}}+{_TYPED}{_NAME}(?:<[^>(\n]{{0,80}}+>)?(?:{_TO_END}|{_TO_BRACE}|{_TO_ARROW})",
    ),
    ".c .h .cc .cpp .cxx .hpp .hh .hxx .m .mm .cu": (
        r"\w#",
        r"[ \t]{0,16}+" + _C_TYPE,
        rf'(?:extern[ \t]{{1,8}}"C"[ \t]{{1,8}})?{_TYPED}{_C_NAME}(?:{_TO_END}|{_TO_BRACE})',
        rf"{_NO_CALL}{_TYPE_ABOVE}{_NO_CALL}{_C_NAME}{_TO_BRACE_BELOW}",
        rf"[ \t]{{2,16}}+{_TYPED}{_NAME}{_TO_BRACE}",
        rf"(?=[^(;=\n]{{1,200}}=[ \t]{{0,8}}\{{?\n){_NO_CALL}(?:{_TYPE}[ \t*]{{1,8}}+){{1,6}}{_C_TABLE}",
        rf"{_MAYBE}#{_MAYBE}define{_GAP}{_NAME}",
    ),
    ".sh .bash .zsh .mk makefile": (
        r"\w",
        rf"(?:function{_GAP})?([\w-]{{1,120}}){_MAYBE}\(\)",
        r"([\w./-]{1,120}):(?!=)",
    ),
    ".md .markdown .mdx": ("#", r"#{1,6}[ \t]{1,8}+([^\n]{1,200})"),
    ".rst .txt": (r"\S", r"(\S[^\n]{0,200}+)\n[=\-~^\"'`#*+]{3,200}+(?=\n)"),
    ".toml .ini .cfg .conf .yaml .yml .properties dockerfile": (
        r"\w\[",
        r"\[{1,2}([^\]\n]{1,120})\]",
        r"([\w.-]{1,120}):",
    ),
    "": ("a-z@", _KEYWORD + r"([\w.:]{1,120})", rf"{_INDENT}{_MODIFIERS}(?:let|local){_GAP}{_NAME}"),
}
"""For each group of suffixes and names of files: the characters that a line which defines something can begin
with, after its indentation, and the forms of such lines. The last row is for all other files."""
_GROUP_OF = {suffix: group for group in _LINES for suffix in group.split()}

_PYTHON_IMPORT = (
    rb"\n[ \t]{0,16}+(?:from[ \t]{1,8}+([.\w]{1,120})[ \t]{1,8}+import\b|import[ \t]{1,8}+([.\w]{1,120}))"
)
"""Many lines of Python's code and docstrings begin with the keywords of other languages."""
_IMPORT = (
    rb"\n(?=[ \t]{0,16}+[fiurcelv#])[ \t]{0,16}+(?:from[ \t]{1,8}+([.\w]{1,120})[ \t]{1,8}+import\b"
    rb"|(?:import|use|using|require|require_relative|include|#[ \t]{0,4}+include)[ \t(]{1,8}"
    rb"(?:static[ \t]{1,8}+|type[ \t]{1,8}+|\w{1,40}[ \t]{1,8}+(?=\"))?[\"'<(]{0,2}([\w./:@\\-]{1,120})"
    rb"|(?:import|export)\b[^\n'\"]{0,200}\bfrom[ \t]{1,8}+['\"]([\w./@-]{1,120})"
    rb"|(?:const|let|var)[ \t][^\n=]{1,120}=[ \t]{0,8}+require\(['\"]([\w./@-]{1,120}))"
)


class Chunk(NamedTuple):
    """A definition with the comments above it, or a part of the text that defines nothing."""

    start: int
    end: int
    """The chunk is `data[start:end]`."""
    line: int
    """The line with the name, below comments and decorators, or else the first line. Counted from 1."""
    name: str
    """The defined name, a heading, or an empty string."""


class Outline(NamedTuple):
    """The chunks and imports of one file."""

    chunks: list[Chunk]
    """The whole file in order, split where definitions begin."""
    imports: list[str]
    """Modules, paths and headers that the file imports."""


class ChunkColumns(NamedTuple):
    """The chunks of a file as columns. Each chunk ends where the next begins; the last ends with the file."""

    starts: list[int]
    lines: list[int]
    names: list[str]


def outline_text(path: str, data: bytes) -> Outline:
    """Return the chunks and imports of a file. The suffix of the path determines the language."""
    starts, lines, names = chunk_columns(path, data)
    chunks = list(map(Chunk, starts, [*starts[1:], len(data)], lines, names))
    return Outline(chunks, _find_imports(path, data))


def _find_imports(path: str, data: bytes) -> list[str]:
    """Return the distinct modules, paths and headers that a file imports."""
    pattern = _compile(_PYTHON_IMPORT if path.endswith((".py", ".pyi")) else _IMPORT)
    found = pattern.finditer(b"\n" + data[: _IMPORT_BYTES - 1])
    names = dict.fromkeys(match[match.lastindex or 0].decode(errors="replace") for match in found)
    return list(names)[:_MAX_IMPORTS]


def chunk_columns(path: str, data: bytes) -> ChunkColumns:
    """Return the chunks as columns, which saves a tenth of the time compared with `Chunk` objects."""
    starts, lines, names = [0], [1], [b""]
    start, counted, lines_passed = 0, 0, 0
    padded = b"\n" + data  # every line, the first one included, now follows a newline
    for match in islice(_definition_pattern(_group_of(path)).finditer(padded), MAX_CHUNKS):
        here = match.start()  # the newline's position in `padded` is the line's position in `data`
        # Most definitions follow an empty line and have no comment above.
        begin = here if data[here - 2 : here - 1] == b"\n" else _start_of_leading_lines(data, here, start)
        if begin == start:
            del starts[-1], lines[-1], names[-1]
        elif begin - start > CHUNK_BYTES:
            _split_last_chunk(
                data, begin, lines_passed + 1 - data.count(b"\n", start, counted), starts, lines, names
            )
        lines_passed += data.count(b"\n", counted, here)
        counted, start = here, begin
        starts.append(begin)
        named = match.lastindex or 0  # the name may be on the line below its type
        lines.append(lines_passed + 1 + padded.count(b"\n", here + 1, match.start(named)))
        names.append(match[named])
    _split_last_chunk(
        data, len(data), lines_passed + 1 - data.count(b"\n", start, counted), starts, lines, names
    )
    all_names = b"\n".join(names).decode(errors="replace").split("\n")
    kept = MAX_CHUNKS if data else 0
    return ChunkColumns(starts[:kept], lines[:kept], list(map(str.strip, all_names[:kept])))


def _group_of(path: str) -> str:
    name = path.rpartition("/")[2].lower()
    return _GROUP_OF.get(name) or _GROUP_OF.get("." + name.rpartition(".")[2], "")


@functools.cache
def _definition_pattern(group: str) -> re.Pattern[bytes]:
    """Compile a pattern when it is first needed: compiling all of them would slow down every start."""
    first, *forms = _LINES[group]
    joined = rf"\n(?={_INDENT}[{first}])" + "(?:" + "|".join(f"(?:{form})" for form in forms) + ")"
    # `\\w` matches letters beyond ASCII too, which are two or more bytes from 0x80 on.
    in_class = joined.replace(r"[\w", r"[\w\x80-\xff")
    return _compile(re.sub(r"(?<!\[)\\w", lambda _: r"[\w\x80-\xff]", in_class).encode())


@functools.cache
def _compile(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern)


def _split_last_chunk(
    data: bytes, end: int, line: int, starts: list[int], lines: list[int], names: list[bytes]
) -> None:
    """Split the last chunk, which starts on `line` and ends at byte `end`, if it is too long."""
    start, name = starts[-1], names[-1]
    while end - start > CHUNK_BYTES and (cut := data.rfind(b"\n", start, start + CHUNK_BYTES) + 1) > start:
        line += data.count(b"\n", start, cut)
        start = cut
        starts.append(start)
        lines.append(line)
        names.append(name)


def _start_of_leading_lines(data: bytes, start: int, floor: int) -> int:
    """Return where the comments and decorators directly above the line at `start` begin, at least `floor`."""
    for _ in range(_MAX_LEADING_LINES):
        above = data.rfind(b"\n", floor, max(floor, start - 1)) + 1 or floor
        if above >= start or not _LEADING_LINE.match(data, above, start):
            break
        start = above
    return start
