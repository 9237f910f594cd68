"""How definitions look in each family of languages: a table of regular expressions over UTF-8 bytes.

They read lines that look like definitions; they do not parse. Every pattern starts with the newline before
its line, which the regex engine finds as fast as a plain byte search, and every repetition is bounded and
unambiguous, so that hostile text costs no more than ordinary text. Blanks give none of themselves back
(`}+`): else a line that defines nothing would be tried once for each of them, which doubled the cost of all.
"""

from __future__ import annotations

import functools
import re

_GAP = r"[ \t]{1,8}+"
_INDENT = r"[ \t]{0,64}+"
_NAME = r"(\w{1,120})"
_TO_BRACE = r"[ \t]{0,8}+\([^;\n]{0,300}\{[ \t]{0,8}+(?=\n)"
_TO_END = r"[ \t]{0,8}+\([^;\n]{0,300}(?=\n)"
_NO_CALL = (
    r"(?!(?:if|for|while|switch|catch|return|else|do|new|throw|function|await|typeof|using|lock|sizeof|"
    r"defined|foreach|and|or|not|case|goto|delete|yield)\b)"
)
_TYPED = r"(?:[\w:@<>\[\],.?]{1,80}[ \t*&]{1,8}){1,6}"
_MODIFIERS = (
    r"(?:(?:export|default|declare|abstract|public|private|protected|internal|static|final|async|unsafe|extern|"
    r"sealed|partial|override|virtual|readonly|open|data|inline|pub|const|suspend|case)" + _GAP + r"){0,6}"
)
_TYPE_WORDS = (
    r"(?:class|interface|enum|record|struct|trait|object|protocol|extension|namespace|module|union|"
    r"@interface)"
)


def _pattern(first: str, *alternatives: str) -> bytes:
    """`first` is the set of characters with which a definition's line can begin, after its indentation."""
    ahead = rf"\n(?={_INDENT}[{first}])"
    joined = ahead + "(?:" + "|".join(f"(?:{alternative})" for alternative in alternatives) + ")"
    return _beyond_ascii(joined).encode()


def _beyond_ascii(pattern: str) -> str:
    """A letter beyond ASCII is two or more bytes from 0x80 on."""
    in_class = pattern.replace(r"[\w", r"[\w\x80-\xff")
    return re.sub(r"(?<!\[)\\w", lambda _: r"[\w\x80-\xff]", in_class)


_PYTHON = _pattern(
    "acdA-Z",
    _INDENT + r"(?:async" + _GAP + r")?(?:def|class|cdef class|cpdef)" + _GAP + _NAME,
    r"([A-Z][A-Z0-9_]{2,80})(?:[ \t]{0,8}+:[^=\n]{0,80})?[ \t]{0,8}+=[^=]",
)
_SCRIPT = _pattern(
    r"\w$#*",
    _INDENT + _MODIFIERS + r"(?:function\*?|class|interface|type|enum|namespace)" + _GAP + r"([\w$]{1,120})",
    _INDENT
    + r"(?:export"
    + _GAP
    + r")?(?:(?:let|var|const|static|public|private|readonly)"
    + _GAP
    + r"){0,3}([\w$.]{1,120})[ \t]{0,8}+(?::[^=\n]{0,120})?[=:][ \t]{0,8}+"
    + r"(?:async[ \t]{0,8}+)?(?:function\b|\([^)\n]{0,200}\)[^=\n]{0,80}=>|\w{1,60}[ \t]{0,8}+=>)",
    r"(?:export" + _GAP + r")?const" + _GAP + r"([\w$]{1,120})[ \t]{0,8}+(?::[^=\n]{0,120})?=",
    _INDENT
    + r"(?:(?:public|private|protected|static|async|get|set|override|readonly)"
    + _GAP
    + r"){0,4}[*#]?"
    + _NO_CALL
    + r"([\w$]{1,120})[ \t]{0,8}+(?:<[^>\n]{0,80}>)?"
    + _TO_BRACE,
)
_GO = _pattern(
    r"\w",
    r"func" + _GAP + r"(?:\([^)\n]{0,120}\)[ \t]{0,8}+)?" + _NAME,
    r"(?:type|var|const)" + _GAP + _NAME,
    r"\t" + _NAME + r"[ \t]{1,40}+(?:struct|interface)\b",
)
_RUST = _pattern(
    "a-z",
    _INDENT
    + r"(?:pub(?:\([^)\n]{0,40}\))?"
    + _GAP
    + r')?(?:(?:async|const|unsafe|default|extern(?:[ \t]{1,8}+"[^"\n]{0,20}")?)'
    + _GAP
    + r"){0,4}(?:fn|struct|enum|trait|type|mod|union|static|const|macro_rules!)"
    + _GAP
    + r"(?:mut[ \t]{1,8}+)?"
    + _NAME,
    _INDENT + r"impl(?:<[^>\n]{0,120}>)?" + _GAP + r"(?:[^{\n]{0,160}[ \t]for[ \t]{1,8}+)?" + _NAME,
)
_CURLY = _pattern(
    r"\w@\[",
    _INDENT + _MODIFIERS + _TYPE_WORDS + _GAP + _NAME,
    _INDENT
    + _MODIFIERS
    + r"(?:fun|func|def|init|val|var)"
    + _GAP
    + r"(?:<[^>\n]{0,80}>[ \t]{0,8}+)?(?:\w{1,80}\.)?"
    + _NAME,
    r"[ \t]{1,64}+" + _NO_CALL + _TYPED + _NO_CALL + _NAME + r"(?:" + _TO_BRACE + "|" + _TO_END + ")",
)
_C = _pattern(
    r"\w#",
    r"[ \t]{0,16}+(?:typedef"
    + _GAP
    + r")?(?:class|struct|union|enum(?:[ \t]{1,8}+class)?|namespace)"
    + _GAP
    + _NAME
    + r"[^;\n]{0,200}(?=\n)",
    _NO_CALL + _TYPED + _NO_CALL + r"((?:\w{1,80}::){0,4}~?\w{1,120})(?:" + _TO_BRACE + "|" + _TO_END + ")",
    r"[ \t]{2,16}+" + _NO_CALL + _TYPED + _NO_CALL + _NAME + _TO_BRACE,
    r"[ \t]{0,8}+#[ \t]{0,8}+define" + _GAP + _NAME,
)
_RUBY = _pattern(
    "dcmA-Z",
    _INDENT + r"(?:def|class|module)" + _GAP + r"(?:self\.)?([\w:?!]{1,120})",
    r"[ \t]{0,16}+([A-Z][A-Z0-9_]{2,80})[ \t]{0,8}+=",
)
_PHP = _pattern(
    "a-z",
    _INDENT
    + r"(?:(?:abstract|final|public|private|protected|static|readonly)"
    + _GAP
    + r"){0,5}(?:function|class|interface|trait|enum|const)"
    + _GAP
    + r"&?"
    + _NAME,
)
_SHELL = _pattern(
    r"\w", r"(?:function" + _GAP + r")?([\w-]{1,120})[ \t]{0,8}+\(\)", r"([\w./-]{1,120}):(?!=)"
)
_MARKDOWN = _pattern("#", r"#{1,6}" + _GAP + r"([^\n]{1,200})")
_RST = _pattern(r"\S", r"(\S[^\n]{0,200}+)\n[=\-~^\"'`#*+]{3,200}+(?=\n)")
_CONFIG = _pattern(r"\w\[", r"\[{1,2}([^\]\n]{1,120})\]", r"([\w.-]{1,120}):")
_OTHER = _pattern(
    "a-z",
    _INDENT
    + r"(?:(?:pub|public|private|local|export|static|async)"
    + _GAP
    + r"){0,3}(?:def|defp|defmodule|defmacro|function|func|fun|fn|class|module|sub|proc|struct|interface|"
    + r"trait|type|let|protocol|object)"
    + _GAP
    + r"([\w.:]{1,120})",
)

_FAMILIES = {
    suffix: pattern
    for suffixes, pattern in (
        (".py .pyi .pyx .pxd", _PYTHON),
        (".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte", _SCRIPT),
        (".go", _GO),
        (".rs", _RUST),
        (".java .cs .kt .kts .scala .swift .dart .groovy", _CURLY),
        (".c .h .cc .cpp .cxx .hpp .hh .hxx .m .mm .cu", _C),
        (".rb .rake", _RUBY),
        (".php", _PHP),
        (".sh .bash .zsh .mk", _SHELL),
        (".md .markdown .mdx", _MARKDOWN),
        (".rst .txt", _RST),
        (".toml .ini .cfg .conf .yaml .yml .properties", _CONFIG),
    )
    for suffix in suffixes.split()
}
_NAMED = {"makefile": _SHELL, "dockerfile": _CONFIG}

_PYTHON_IMPORT = (
    rb"\n[ \t]{0,16}+(?:from[ \t]{1,8}+([.\w]{1,120})[ \t]{1,8}+import\b|import[ \t]{1,8}+([.\w]{1,120}))"
)
_IMPORT = (
    rb"\n(?=[ \t]{0,16}+[fiurcelv#])[ \t]{0,16}+(?:from[ \t]{1,8}+([.\w]{1,120})[ \t]{1,8}+import\b"
    rb"|(?:import|use|using|require|require_relative|include|#[ \t]{0,4}+include)[ \t(]{1,8}"
    rb"(?:static[ \t]{1,8}+|type[ \t]{1,8}+|\w{1,40}[ \t]{1,8}+(?=\"))?[\"'<(]{0,2}([\w./:@\\-]{1,120})"
    rb"|(?:import|export)\b[^\n'\"]{0,200}\bfrom[ \t]{1,8}+['\"]([\w./@-]{1,120})"
    rb"|(?:const|let|var)[ \t][^\n=]{1,120}=[ \t]{0,8}+require\(['\"]([\w./@-]{1,120}))"
)


def pattern_for(path: str) -> re.Pattern[bytes]:
    """For text with a newline put before it. The last group that matched is the defined name."""
    return _compiled(_family(path))


def imports_for(path: str) -> re.Pattern[bytes]:
    """What a file says it needs: a module, a path, a header; the last group that matched.

    Python has a pattern of its own: its code and its prose begin many lines with the words of the others.
    """
    return _compiled(_PYTHON_IMPORT if _family(path) is _PYTHON else _IMPORT)


def _family(path: str) -> bytes:
    name = path.rpartition("/")[2].lower()
    return _NAMED.get(name) or _FAMILIES.get("." + name.rpartition(".")[2], _OTHER)


@functools.cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    """When a file of the family is met: compiling all of them would cost a start more than all else here."""
    return re.compile(pattern)
