"""Describes each language: the suffixes of its files, its tree-sitter grammar and its queries.

A query is a file in `queries`. What is below its line "; Bindings" or "; Uses" runs only where a wanted name
occurs, so a file costs little more than its parse. The captures say what a node is:

- `@definition.KIND` with `@name`: a definition. `type`, `function`, `macro`, `value` and `module` bind their
  name where they stand; `method` and `extension` (an `impl` of Rust) do not. `@owner` is the type of a method
  that stands outside it, `@wrapper` a node around definitions that belongs to them, such as decorators.
- `@scope`: what is bound inside is not visible outside. `scope.block` does not hold hoisted names,
  `scope.type` only the code directly in it, and `scope.module` hides the names around it.
- `@binding`: a parameter or a variable. `@binding.hoisted` belongs to the function around, `@binding.global`
  to the file. `@field` is a member of a type. `@type_of`, `@value` and `@origin` are the declared type, the
  value, and what a `with` opens; `@returns` is the result of a function, `@base` a type that another extends.
- `@call`, `@create`, `@type`, `@member` and `@value`: uses of a name, `@receiver` what is before the dot.
  `@ignored` is a name that refers to nothing, and `@opaque` a part whose names mean nothing, such as the text
  of a macro.
- `@import` is a statement; `imports` reads the captures `import.*` and `export*`.

Nothing here imports a grammar before it is used.
"""

from __future__ import annotations

import functools
import importlib
import re
import time
import warnings
from importlib import resources
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from retinue.codebase.parse.file_kinds import MAX_SEARCHED_BYTES

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar, Node, Query, QueryCursor

_STEP_MICROSECONDS = 500_000
"""Time limit for parsing and for the query. Hostile text can take minutes, ordinary text a few milliseconds.
"""
_NAMES = re.compile(r"^; (?:Bindings|Uses)$", re.MULTILINE)
"""Where the second part of a query begins, which runs only where a wanted name occurs."""
_MAX_MATCHES = 4_000
"""How many matches the query may follow at once."""

Captures = dict[str, "list[Node]"]
Matches = list[tuple[int, Captures]]


class Language(NamedTuple):
    """One language."""

    name: str
    suffixes: str
    """Separated by spaces."""
    module: str
    """The package of the grammar."""
    queries: str
    """The files in `queries`, separated by spaces."""
    function: str = "language"
    """The function of the package that returns the grammar."""
    family: str = ""
    """The language whose modules `names` can follow. Empty if names are not resolved."""


LANGUAGES = (
    Language("Python", ".py .pyi", "tree_sitter_python", "python", family="python"),
    Language(
        "JavaScript",
        ".js .jsx .mjs .cjs",
        "tree_sitter_javascript",
        "ecmascript javascript",
        family="script",
    ),
    Language(
        "TypeScript",
        ".ts .mts .cts",
        "tree_sitter_typescript",
        "ecmascript typescript",
        "language_typescript",
        "script",
    ),
    Language("TSX", ".tsx", "tree_sitter_typescript", "ecmascript typescript", "language_tsx", "script"),
    Language("Go", ".go", "tree_sitter_go", "go", family="go"),
    Language("Rust", ".rs", "tree_sitter_rust", "rust", family="rust"),
    Language("Java", ".java", "tree_sitter_java", "java", family="java"),
    Language("C", ".c", "tree_sitter_c", "c", family="c"),
    Language("C++", ".h .cc .cpp .cxx .hpp .hh .hxx .cu", "tree_sitter_cpp", "c cpp", family="c"),
    Language("C#", ".cs", "tree_sitter_c_sharp", "csharp"),
    Language("Ruby", ".rb .rake", "tree_sitter_ruby", "ruby"),
    Language("PHP", ".php", "tree_sitter_php", "php", "language_php"),
    Language("Kotlin", ".kt .kts", "tree_sitter_kotlin", "kotlin"),
    Language("Swift", ".swift", "tree_sitter_swift", "swift"),
    Language("Scala", ".scala .sc", "tree_sitter_scala", "scala"),
    Language("Lua", ".lua", "tree_sitter_lua", "lua"),
    Language("Bash", ".sh .bash .zsh", "tree_sitter_bash", "bash"),
    Language("Elixir", ".ex .exs", "tree_sitter_elixir", "elixir"),
    Language("Zig", ".zig", "tree_sitter_zig", "zig"),
)
_BY_SUFFIX = {suffix: language for language in LANGUAGES for suffix in language.suffixes.split()}


class SyntaxTree:
    """A parsed file, and what the queries of its language capture."""

    def __init__(self, root: Node, language: Language, structure: Matches, grammar: LoadedGrammar) -> None:
        self.root = root
        self.language = language
        self.structure = structure
        """What the first part of the query captures: definitions, scopes and imports."""
        self._grammar = grammar

    @functools.cached_property
    def _cursor(self) -> QueryCursor:
        return self._grammar.cursor(self._grammar.names)

    def names(self, start: int, end: int) -> Matches:
        """Return what the second part captures in a part of the text. The matches may reach further."""
        self._cursor.set_byte_range(start, end)
        return self._cursor.matches(self.root)


def language_of(path: str) -> Language | None:
    """Return the language of a file, or None if there is no grammar for it."""
    return _BY_SUFFIX.get(PurePosixPath(path).suffix.lower())


def missing_parsers() -> list[str]:
    """Return the packages of grammars that are not installed."""
    wanted = {"tree_sitter"} | {language.module for language in LANGUAGES}
    return sorted(name for name in wanted if find_spec(name) is None)


class LoadedGrammar:
    """A grammar with its query. The second part is compiled when it is first needed."""

    def __init__(self, grammar: Grammar, structure: Query, names: str) -> None:
        self.grammar = grammar
        self.structure = structure
        self._names = names

    @functools.cached_property
    def names(self) -> Query:
        from tree_sitter import Query

        return Query(self.grammar, self._names)

    def cursor(self, query: Query) -> QueryCursor:
        """Return a cursor with the limits of time and effort."""
        from tree_sitter import QueryCursor

        with warnings.catch_warnings():
            # The newer progress callback crashes the process. This way is deprecated, so the version is
            # pinned.
            warnings.simplefilter("ignore", DeprecationWarning)
            return QueryCursor(  # pyright: ignore[reportDeprecated]
                query, match_limit=_MAX_MATCHES, timeout_micros=_STEP_MICROSECONDS
            )


@functools.lru_cache(maxsize=32)
def load_grammar(language: Language) -> LoadedGrammar | None:
    """Load a grammar with its query.

    Returns None if it is not installed, or if its version does not fit the library or the query.
    """
    folder = resources.files(__package__ or "") / "queries"
    texts = [(folder / f"{name}.scm").read_text("utf-8") for name in language.queries.split()]
    parts = [re.split(_NAMES, text, maxsplit=1) for text in texts]
    try:
        import tree_sitter

        load = getattr(importlib.import_module(language.module), language.function)
        grammar = tree_sitter.Language(load())  # pyright: ignore[reportDeprecated]
        structure, names = ("\n".join(part[number] for part in parts) for number in (0, 1))
        return LoadedGrammar(grammar, tree_sitter.Query(grammar, structure), names)
    except (ImportError, AttributeError, ValueError, TypeError):
        return None


def parse_tree(path: str, data: bytes) -> SyntaxTree | None:
    """Parse a file and run the first part of the query of its language.

    Returns None if there is no grammar, or if that takes too long.
    """
    language = language_of(path)
    loaded = load_grammar(language) if language is not None and len(data) <= MAX_SEARCHED_BYTES else None
    if language is None or loaded is None:
        return None
    from tree_sitter import Parser

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        parser = Parser(loaded.grammar, timeout_micros=_STEP_MICROSECONDS)  # pyright: ignore[reportDeprecated]
    try:
        tree = parser.parse(data)
    except ValueError:
        return None
    started = time.monotonic()
    matches = loaded.cursor(loaded.structure).matches(tree.root_node)
    if (time.monotonic() - started) * 1e6 >= _STEP_MICROSECONDS:
        return None  # the query stopped without an error, and its matches are incomplete
    return SyntaxTree(tree.root_node, language, matches, loaded)
