"""Describes each language: regular expressions for its outline, and tree-sitter queries.

The regular expressions find lines that look like definitions in UTF-8 bytes; they do not parse. Every pattern
starts with the newline before its line, which the regex engine finds as fast as a plain byte search. Every
repetition is bounded and unambiguous, so that hostile text takes no longer than ordinary text. Repetitions
of blanks, and of names that something else must follow, are possessive (`}+`): otherwise a line that defines
nothing is tried once for each blank or letter, which doubled the total time.

The queries need the extra `code`. Nothing here imports a grammar.
"""

from __future__ import annotations

import functools
import re
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import NamedTuple

_GAP = r"[ \t]{1,8}+"
_INDENT = r"[ \t]{0,64}+"
_NAME = r"(\w{1,120}+)"
_TO_BRACE = r"[ \t]{0,8}+\([^;\n]{0,300}\{[ \t]{0,8}+(?=\n)"
_TO_END = r"[ \t]{0,8}+\([^;\n]{0,300}+(?=\n)"
_TO_END_OR_BRACE = "(?:" + _TO_END + "|" + _TO_BRACE + ")"
_PARAMETERS_BELOW = (
    r"\((?=\n(?:[^;{}\n]{1,200}\n){1,16}?[ \t]{0,64}\)[ \t]{0,8}+(?::[^;=\n]{0,120})?\{\}?[ \t]{0,8}+\n)"
)
"""Parameters on lines of their own."""
_PARAMETERS_AND_ARROW = r"[ \t]{0,8}+\([^;{\n]{0,300}?\)[ \t]{0,8}+=>"
"""Parameters of a method whose whole body follows an arrow."""
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
_MODIFIERS = (
    r"(?:(?:export|default|declare|abstract|public|private|protected|internal|static|final|async|unsafe|extern|"
    r"sealed|partial|override|virtual|readonly|open|data|inline|pub|const|suspend|case)" + _GAP + r"){0,6}"
)
_TYPE_WORDS = (
    r"(?:class|interface|enum|record|struct|trait|object|protocol|extension|namespace|module|union|"
    r"@interface)"
)


def _line_pattern(first: str, *alternatives: str) -> bytes:
    """Return a pattern for lines that define something.

    `first` is the set of characters that such a line can begin with, after its indentation.
    """
    ahead = rf"\n(?={_INDENT}[{first}])"
    joined = ahead + "(?:" + "|".join(f"(?:{alternative})" for alternative in alternatives) + ")"
    return _with_unicode_words(joined).encode()


def _with_unicode_words(pattern: str) -> str:
    """Let `\\w` match letters beyond ASCII, which are two or more bytes from 0x80 on."""
    in_class = pattern.replace(r"[\w", r"[\w\x80-\xff")
    return re.sub(r"(?<!\[)\\w", lambda _: r"[\w\x80-\xff]", in_class)


_PYTHON_DEFINITION = _line_pattern(
    "acdA-Z",
    _INDENT + r"(?:async" + _GAP + r")?(?:def|class|cdef class|cpdef)" + _GAP + _NAME,
    r"([A-Z][A-Z0-9_]{2,80})(?:[ \t]{0,8}+:[^=\n]{0,80})?[ \t]{0,8}+=[^=]",
)
_SCRIPT_DEFINITION = _line_pattern(
    r"\w$#*",
    _INDENT + _MODIFIERS + r"(?:function\*?|class|interface|type|enum|namespace)" + _GAP + r"([\w$]{1,120})",
    _INDENT
    + r"(?:export"
    + _GAP
    + r")?(?:(?:let|var|const|static|public|private|readonly)"
    + _GAP
    + r"){0,3}([\w$.]{1,120}+)[ \t]{0,8}+(?::[^=\n]{0,120})?[=:][ \t]{0,8}+"
    + r"(?:async[ \t]{0,8}+)?(?:function\b|\([^)\n]{0,200}+\)[^=\n]{0,80}+=>|\w{1,60}+[ \t]{0,8}+=>)",
    r"(?:export" + _GAP + r")?const" + _GAP + r"([\w$]{1,120}+)[ \t]{0,8}+(?::[^=\n]{0,120})?=",
    _INDENT
    + r"(?:(?:public|private|protected|static|async|get|set|override|readonly)"
    + _GAP
    + r"){0,4}\*?"
    + _NO_CALL
    + r"(#?[\w$]{1,120}+)[ \t]{0,8}+(?:<[^>\n]{0,80}+>)?(?:"
    + _TO_BRACE
    + "|"
    + _PARAMETERS_BELOW
    + ")",
)
_GO_DEFINITION = _line_pattern(
    r"\w",
    r"func" + _GAP + r"(?:\([^)\n]{0,120}\)[ \t]{0,8}+)?" + _NAME,
    r"(?:type|var|const)" + _GAP + _NAME,
    r"\t" + _NAME + r"[ \t]{1,40}+(?:struct|interface)\b",
)
_RUST_DEFINITION = _line_pattern(
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
_CURLY_DEFINITION = _line_pattern(
    r"\w@\[",
    _INDENT
    + _MODIFIERS
    + rf"(?:{_TYPE_WORDS}{_GAP}|(?:fun|func|def|init|val|var){_GAP}"
    + r"(?:<[^>\n]{0,80}>[ \t]{0,8}+)?(?:\w{1,80}\.)?)"
    + _NAME,
    r"[ \t]{1,64}+"
    + _TYPED
    + _NAME
    + r"(?:<[^>(\n]{0,80}+>)?(?:"
    + "|".join((_TO_END, _TO_BRACE, _PARAMETERS_AND_ARROW))
    + ")",
)
_TYPE_ABOVE = _NO_CALL + r"[A-Za-z_][\w \t*&:<>,]{0,120}+(?<=[\w*&>])\n" + _NO_CALL
"""A line with only a type, as many C projects write it above the name of a function."""
_TO_BRACE_BELOW = r"[ \t]{0,8}+\((?=[^;{}\n]{0,300}+(?:\n[ \t)][^;{}\n]{0,200}+){0,16}+(?<=[\w) \t])\n?\{)"
"""Parameters on one or more lines, and a brace behind them or on a line of its own."""
_C_NAME = r"((?:\w{1,80}+::){0,4}~?\w{1,120}+)"
_C_TABLE = _NAME + r"(?:\[[^\]\n]{0,80}+\]){0,3}[ \t]{0,8}+=[ \t]{0,8}+\{?(?=\n)"
_C_DEFINITION = _line_pattern(
    r"\w#",
    r"[ \t]{0,16}+(?:(?:typedef|static|const)"
    + _GAP
    + r"){0,2}(?:class|struct|union|enum(?:[ \t]{1,8}+class)?|namespace)"
    + _GAP
    + rf"(?:\w{{1,80}}+{_GAP}(?!final\b)(?=\w))?"  # a macro such as `API`
    + _NAME
    + r"(?:<[^;\n]{0,120}>)?(?:[ \t]{1,8}+final\b)?[ \t]{0,8}+(?=[:{]|//|/\*|\n[ \t]{0,16}[:{])",
    r'(?:extern[ \t]{1,8}"C"[ \t]{1,8})?' + _TYPED + _C_NAME + _TO_END_OR_BRACE,
    _TYPE_ABOVE + _C_NAME + _TO_BRACE_BELOW,
    _NO_CALL + r"\w{1,60}+\([^();\n]{1,60}+\)[ \t]{1,8}+" + _C_NAME + _TO_END_OR_BRACE,
    r"((?:\w{1,80}+::){1,4}~?\w{1,120}+)" + _TO_END_OR_BRACE,  # constructors
    r"[ \t]{2,16}+" + _TYPED + _NAME + _TO_BRACE,
    r"(?=[^(;=\n]{1,200}=[ \t]{0,8}\{?\n)" + _NO_CALL + rf"(?:{_TYPE}[ \t*]{{1,8}}+){{1,6}}" + _C_TABLE,
    r"[ \t]{0,8}+#[ \t]{0,8}+define" + _GAP + _NAME,
)
_RUBY_DEFINITION = _line_pattern(
    "dcmA-Z",
    _INDENT + r"(?:def|class|module)" + _GAP + r"(?:self\.)?([\w:?!]{1,120}|\[\]=?|[<=>+*/%~^&|-]{1,3})",
    r"[ \t]{0,16}+([A-Z][A-Z0-9_]{2,80})[ \t]{0,8}+=",
)
_PHP_DEFINITION = _line_pattern(
    "a-z",
    _INDENT
    + r"(?:(?:abstract|final|public|private|protected|static|readonly)"
    + _GAP
    + r"){0,5}(?:function|class|interface|trait|enum|const)"
    + _GAP
    + r"&?"
    + _NAME,
)
_SHELL_DEFINITION = _line_pattern(
    r"\w", r"(?:function" + _GAP + r")?([\w-]{1,120})[ \t]{0,8}+\(\)", r"([\w./-]{1,120}):(?!=)"
)
_MARKDOWN_HEADING = _line_pattern("#", r"#{1,6}" + _GAP + r"([^\n]{1,200})")
_RST_HEADING = _line_pattern(r"\S", r"(\S[^\n]{0,200}+)\n[=\-~^\"'`#*+]{3,200}+(?=\n)")
_CONFIG_KEY = _line_pattern(r"\w\[", r"\[{1,2}([^\]\n]{1,120})\]", r"([\w.-]{1,120}):")
_OTHER_DEFINITION = _line_pattern(
    "a-z",
    _INDENT
    + r"(?:(?:pub|public|private|local|export|static|async)"
    + _GAP
    + r"){0,3}(?:def|defp|defmodule|defmacro|function|func|fun|fn|class|module|sub|proc|struct|interface|"
    + r"trait|type|let|protocol|object)"
    + _GAP
    + r"([\w.:]{1,120})",
)

_DEFINITIONS_BY_SUFFIX = {
    suffix: pattern
    for suffixes, pattern in (
        (".py .pyi .pyx .pxd", _PYTHON_DEFINITION),
        (".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte", _SCRIPT_DEFINITION),
        (".go", _GO_DEFINITION),
        (".rs", _RUST_DEFINITION),
        (".java .cs .kt .kts .scala .swift .dart .groovy", _CURLY_DEFINITION),
        (".c .h .cc .cpp .cxx .hpp .hh .hxx .m .mm .cu", _C_DEFINITION),
        (".rb .rake", _RUBY_DEFINITION),
        (".php", _PHP_DEFINITION),
        (".sh .bash .zsh .mk", _SHELL_DEFINITION),
        (".md .markdown .mdx", _MARKDOWN_HEADING),
        (".rst .txt", _RST_HEADING),
        (".toml .ini .cfg .conf .yaml .yml .properties", _CONFIG_KEY),
    )
    for suffix in suffixes.split()
}
_DEFINITIONS_BY_NAME = {"makefile": _SHELL_DEFINITION, "dockerfile": _CONFIG_KEY}

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


def definition_pattern(path: str) -> re.Pattern[bytes]:
    """Return the pattern that finds definitions in a file of this language.

    The text must start with an extra newline. The last group that matched is the defined name.
    """
    return _compile(_definition_source(path))


def import_pattern(path: str) -> re.Pattern[bytes]:
    """Return the pattern that finds imports. The last group that matched is a module, a path or a header.

    Python has its own pattern: many lines of its code and docstrings begin with the keywords of other
    languages.
    """
    return _compile(_PYTHON_IMPORT if _definition_source(path) is _PYTHON_DEFINITION else _IMPORT)


def _definition_source(path: str) -> bytes:
    name = path.rpartition("/")[2].lower()
    return _DEFINITIONS_BY_NAME.get(name) or _DEFINITIONS_BY_SUFFIX.get(
        "." + name.rpartition(".")[2], _OTHER_DEFINITION
    )


@functools.cache
def _compile(pattern: bytes) -> re.Pattern[bytes]:
    """Compile a pattern when it is first needed: compiling all of them would slow down every start."""
    return re.compile(pattern)


class Grammar(NamedTuple):
    """A tree-sitter grammar, and the query that finds definitions with it."""

    module: str
    """The package of the grammar."""
    function: str
    """The function of the package that returns the language."""
    query: str
    """`@name` captures the defined name. The other capture is the whole definition, named by its kind."""


_PYTHON_QUERY = """
(class_definition name: (_) @name) @type
(function_definition name: (_) @name) @function
(module (expression_statement
  (assignment left: (identifier) @name) @value (#match? @name "^[A-Z][A-Z0-9_]{2,}$")))
"""
_JAVASCRIPT_QUERY = """
(class_declaration name: (_) @name) @type
(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(method_definition name: (_) @name) @function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @function
(assignment_expression left: (_) @name right: [(arrow_function) (function_expression)]) @function
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @function
(program (lexical_declaration "const" (variable_declarator name: (identifier) @name) @value))
(export_statement (lexical_declaration "const" (variable_declarator name: (identifier) @name) @value))
"""
_TYPESCRIPT_QUERY = (
    _JAVASCRIPT_QUERY
    + """
(abstract_class_declaration name: (_) @name) @type
(interface_declaration name: (_) @name) @type
(type_alias_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @type
(internal_module name: (_) @name) @module
(abstract_method_signature name: (_) @name) @function
(public_field_definition name: (_) @name value: (arrow_function)) @function
"""
)
_GO_QUERY = """
(function_declaration name: (_) @name) @function
(method_declaration name: (_) @name) @function
(type_spec name: (_) @name) @type
(source_file (const_declaration (const_spec name: (_) @name) @value))
(source_file (var_declaration (var_spec name: (_) @name) @value))
"""
_RUST_QUERY = """
(function_item name: (_) @name) @function
(function_signature_item name: (_) @name) @function
(macro_definition name: (_) @name) @function
(struct_item name: (_) @name) @type
(enum_item name: (_) @name) @type
(union_item name: (_) @name) @type
(trait_item name: (_) @name) @type
(type_item name: (_) @name) @type
(impl_item type: [(type_identifier) @name (generic_type type: (_) @name)]) @type
(mod_item name: (_) @name) @module
(static_item name: (_) @name) @value
(const_item name: (_) @name) @value
"""
_JAVA_QUERY = """
(class_declaration name: (_) @name) @type
(interface_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @type
(record_declaration name: (_) @name) @type
(annotation_type_declaration name: (_) @name) @type
(method_declaration name: (_) @name) @function
(constructor_declaration name: (_) @name) @function
"""
_C_QUERY = """
(function_declarator declarator: (identifier) @name) @named
(struct_specifier name: (_) @name body: (_)) @type
(union_specifier name: (_) @name body: (_)) @type
(enum_specifier name: (_) @name body: (_)) @type
(type_definition declarator: (type_identifier) @name) @type
(preproc_def name: (_) @name) @value
(preproc_function_def name: (_) @name) @function
"""
_CPP_QUERY = (
    _C_QUERY
    + """
(function_declarator declarator: [(field_identifier) (qualified_identifier) (destructor_name)] @name) @named
(class_specifier name: (_) @name body: (_)) @type
(namespace_definition name: (_) @name) @module
"""
)
_C_SHARP_QUERY = """
(class_declaration name: (_) @name) @type
(interface_declaration name: (_) @name) @type
(struct_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @type
(record_declaration name: (_) @name) @type
(delegate_declaration name: (_) @name) @type
(namespace_declaration name: (_) @name) @module
(method_declaration name: (_) @name) @function
(constructor_declaration name: (_) @name) @function
(property_declaration name: (_) @name) @value
"""
_RUBY_QUERY = """
(class name: (_) @name) @type
(module name: (_) @name) @module
(method name: (_) @name) @function
(singleton_method name: (_) @name) @function
(assignment left: (constant) @name) @value
"""
_PHP_QUERY = """
(class_declaration name: (_) @name) @type
(interface_declaration name: (_) @name) @type
(trait_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @type
(function_definition name: (_) @name) @function
(method_declaration name: (_) @name) @function
(const_element . (name) @name) @value
"""

_GRAMMARS_BY_SUFFIX: dict[str, Grammar] = {
    suffix: grammar
    for suffixes, grammar in (
        (".py .pyi", Grammar("tree_sitter_python", "language", _PYTHON_QUERY)),
        (".js .jsx .mjs .cjs", Grammar("tree_sitter_javascript", "language", _JAVASCRIPT_QUERY)),
        (".ts .mts .cts", Grammar("tree_sitter_typescript", "language_typescript", _TYPESCRIPT_QUERY)),
        (".tsx", Grammar("tree_sitter_typescript", "language_tsx", _TYPESCRIPT_QUERY)),
        (".go", Grammar("tree_sitter_go", "language", _GO_QUERY)),
        (".rs", Grammar("tree_sitter_rust", "language", _RUST_QUERY)),
        (".java", Grammar("tree_sitter_java", "language", _JAVA_QUERY)),
        (".c", Grammar("tree_sitter_c", "language", _C_QUERY)),
        (".h .cc .cpp .cxx .hpp .hh .hxx", Grammar("tree_sitter_cpp", "language", _CPP_QUERY)),
        (".cs", Grammar("tree_sitter_c_sharp", "language", _C_SHARP_QUERY)),
        (".rb .rake", Grammar("tree_sitter_ruby", "language", _RUBY_QUERY)),
        (".php", Grammar("tree_sitter_php", "language_php", _PHP_QUERY)),
    )
    for suffix in suffixes.split()
}


def grammar_for(path: str) -> Grammar | None:
    """Return the grammar for a file, or None if its language has none."""
    return _GRAMMARS_BY_SUFFIX.get(PurePosixPath(path).suffix.lower())


def missing_parsers() -> list[str]:
    """Return the packages of the extra `code` that are not installed."""
    wanted = {"tree_sitter"} | {grammar.module for grammar in _GRAMMARS_BY_SUFFIX.values()}
    return sorted(name for name in wanted if find_spec(name) is None)
