"""How definitions look in each family of languages: a table of regular expressions over UTF-8 bytes.

They read lines that look like definitions; they do not parse. Every pattern starts with the newline before
the line, which the regex engine finds at the speed of a plain byte search, and every repetition is bounded
and unambiguous, so that hostile text costs no more than ordinary text.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath


_LETTER = re.compile(r"(?<!\[)\\w")
"""Outside a character class; a letter beyond ASCII is two or more bytes from 0x80 on."""


def _pattern(*alternatives: str) -> re.Pattern[bytes]:
    joined = "|".join(f"(?:{alternative})" for alternative in alternatives)
    return re.compile(
        _LETTER.sub(r"[\\w\\x80-\\xff]", joined.replace(r"[\w", r"[\w\x80-\xff")).encode(), re.MULTILINE
    )


_MODIFIERS = r"^[ \t]{0,64}(?:(?:export|default|declare|abstract|public|private|protected|internal|static|final|async|unsafe|extern|sealed|partial|override|virtual|readonly|open|data|inline|pub(?:\([^)\n]{0,40}\))?|const)[ \t]{1,8}){0,6}"
_TYPE_WORDS = r"(?:class|interface|enum|record|struct|trait|object|protocol|extension|namespace|module|union|@interface)"
_NOT_CALLS = r"(?!(?:if|for|while|switch|catch|return|else|do|new|throw|function|await|typeof|using|lock|sizeof|defined)\b)"
_ARGS = r"[ \t]*\([^;\n]{0,300}(?:\{|$)"
_TYPED = r"(?:[\w:@<>\[\],.?]{1,80}[ \t*&]{1,8}){1,6}"

_PYTHON = _pattern(
    r"^[ \t]{0,64}(?:async[ \t]{1,8})?(?:def|class|cdef class|cpdef)[ \t]{1,8}(\w{1,120})",
    r"^([A-Z][A-Z0-9_]{2,80})(?:[ \t]{0,8}:[^=\n]{0,80})?[ \t]{0,8}=[^=]",
)
_SCRIPT = _pattern(
    _MODIFIERS + r"(?:function\*?|class|interface|type|enum|namespace)[ \t]{1,8}([\w$]{1,120})",
    _MODIFIERS
    + r"(?:let|var|const)?[ \t]{0,8}([\w$]{1,120})[ \t]{0,8}(?::[^=\n]{0,120})?[=:][ \t]{0,8}(?:async[ \t]{0,8})?(?:function\b|\([^)\n]{0,200}\)[^=\n]{0,80}=>|\w{1,60}[ \t]{0,8}=>)",
    r"^(?:export[ \t]{1,8})?const[ \t]{1,8}([\w$]{1,120})[ \t]{0,8}(?::[^=\n]{0,120})?=",
    r"^[ \t]{1,64}(?:(?:public|private|protected|static|async|get|set|override|readonly)[ \t]{1,8}){0,4}[*#]?"
    + _NOT_CALLS
    + r"([\w$]{1,120})[ \t]{0,8}(?:<[^>\n]{0,80}>)?\([^;\n]{0,300}\{[ \t]{0,8}$",
)
_GO = _pattern(
    r"^func[ \t]{1,8}(?:\([^)\n]{0,120}\)[ \t]{0,8})?(\w{1,120})",
    r"^(?:type|var|const)[ \t]{1,8}(\w{1,120})",
    r"^\t(\w{1,120})[ \t]{1,40}(?:struct|interface)\b",
)
_RUST = _pattern(
    r'^[ \t]{0,64}(?:pub(?:\([^)\n]{0,40}\))?[ \t]{1,8})?(?:(?:async|const|unsafe|default|extern(?:[ \t]{1,8}"[^"\n]{0,20}")?)[ \t]{1,8}){0,4}(?:fn|struct|enum|trait|type|mod|union|static|const|macro_rules!)[ \t]{1,8}(?:mut[ \t]{1,8})?(\w{1,120})',
    r"^[ \t]{0,64}impl(?:<[^>\n]{0,120}>)?[ \t]{1,8}(?:[^{\n]{0,160}[ \t]for[ \t]{1,8})?(\w{1,120})",
)
_CURLY = _pattern(
    _MODIFIERS + _TYPE_WORDS + r"[ \t]{1,8}(\w{1,120})",
    r"^[ \t]{1,64}" + _NOT_CALLS + _TYPED + _NOT_CALLS + r"(\w{1,120})" + _ARGS,
    _MODIFIERS
    + r"(?:fun|func|def|init|val|var)[ \t]{1,8}(?:<[^>\n]{0,80}>[ \t]{0,8})?(?:\w{1,80}\.)?(\w{1,120})",
)
_C = _pattern(
    r"^[ \t]{0,16}(?:typedef[ \t]{1,8})?(?:class|struct|union|enum(?:[ \t]{1,8}class)?|namespace)[ \t]{1,8}(?:[A-Z_]{3,40}[ \t]{1,8})?(\w{1,120})[^;\n]{0,200}$",
    r"^" + _NOT_CALLS + _TYPED + _NOT_CALLS + r"((?:\w{1,80}::){0,4}~?\w{1,120})" + _ARGS,
    r"^[ \t]{2,16}" + _NOT_CALLS + _TYPED + _NOT_CALLS + r"(\w{1,120})[ \t]*\([^;\n]{0,300}\{[ \t]{0,8}$",
    r"^[ \t]{0,8}#[ \t]{0,8}define[ \t]{1,8}(\w{1,120})",
)
_RUBY = _pattern(
    r"^[ \t]{0,64}(?:def|class|module)[ \t]{1,8}(?:self\.)?([\w:?!]{1,120})",
    r"^[ \t]{0,16}([A-Z][A-Z0-9_]{2,80})[ \t]{0,8}=",
)
_PHP = _pattern(
    r"^[ \t]{0,64}(?:(?:abstract|final|public|private|protected|static|readonly)[ \t]{1,8}){0,5}(?:function|class|interface|trait|enum|const)[ \t]{1,8}&?(\w{1,120})"
)
_SHELL = _pattern(r"^(?:function[ \t]{1,8})?([\w-]{1,120})[ \t]{0,8}\(\)", r"^([\w./-]{1,120}):(?!=)")
_MARKDOWN = _pattern(r"^#{1,6}[ \t]{1,8}([^\n]{1,200})")
_RST = _pattern(r"^(\S[^\n]{0,200})\n[=\-~^\"'`#*+]{3,200}$")
_CONFIG = _pattern(r"^\[{1,2}([^\]\n]{1,120})\]", r"^([\w.-]{1,120}):")
_OTHER = _pattern(
    r"^[ \t]{0,64}(?:(?:pub|public|private|local|export|static|async)[ \t]{1,8}){0,3}(?:def|defp|defmodule|defmacro|function|func|fun|fn|class|module|sub|proc|struct|interface|trait|type|let|protocol|object)[ \t]{1,8}([\w.:]{1,120})"
)

_FAMILIES: dict[str, re.Pattern[bytes]] = {
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


def pattern_for(path: str) -> re.Pattern[bytes]:
    name = PurePosixPath(path).name.lower()
    return _NAMED.get(name) or _FAMILIES.get(PurePosixPath(name).suffix, _OTHER)
