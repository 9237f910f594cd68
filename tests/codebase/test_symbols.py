"""Outline and grammar agree; the grammar knows ends and owners, and no text makes it hang."""

from __future__ import annotations

import sys
import time

import pytest

from retinue.codebase import MAX_SEARCHED_BYTES, Symbol, exact_symbols, outline_text
from retinue.codebase.parse import symbols
from retinue.codebase.parse.languages import grammar_for

FILES = {
    "a.py": (
        "LIMIT = 3\n\n@cached\nclass Pool:\n    async def get(self):\n        def inner():\n"
        "            pass\n\ndef run():\n    pass\n"
    ),
    "a.js": (
        "const load = async () => {}\nclass Box {\n  size(n) {\n    return n\n  }\n}\n"
        "module.exports.run = function () {}\nfunction main() {\n}\n"
    ),
    "a.ts": (
        "export interface Shape {\n}\nexport const area = (s: Shape) => 1\nclass Box {\n  size(): number {\n"
        "    if (x) {\n    }\n  }\n}\nexport abstract class Lid {}\nenum Kind { A }\ntype Name = string\n"
        "function main() {}\n"
    ),
    "a.go": (
        "package a\n\ntype Pool struct {\n}\n\nfunc (p *Pool) Get() int {\n}\nfunc main() {\n}\n"
        "const Limit = 3\nvar Seen = 1\n"
    ),
    "a.rs": (
        "pub struct Pool;\nimpl Drop for Pool {\n    fn drop(&mut self) {}\n}\npub(crate) async fn run() {}\n"
        "const LIMIT: u8 = 3;\nmod inner {\n}\ntrait Shape {\n    fn area(&self) -> u8;\n}\nenum Kind { A }\n"
        "macro_rules! twice {\n    () => {};\n}\n"
    ),
    "A.java": (
        "package a;\npublic class Pool {\n    private final int get(String key) {\n        return f(key);"
        "\n    }\n    interface Shape {\n    }\n    enum Kind { A }\n}\n"
    ),
    "a.c": (
        "#define LIMIT 3\nstruct pool {\n    int n;\n};\nstatic int pool_get(int key)\n{\n    return f(key);"
        "\n}\nchar *name_of(int k) {\n}\n"
    ),
    "a.cpp": (
        "namespace app {\nclass Pool {\n  int size() {\n    return 1;\n  }\n};\n}\nint Pool::get(int key) {\n"
        "  return 1;\n}\n"
    ),
    "A.cs": (
        "namespace App {\n    public sealed class Pool {\n        public async Task<int> Get(string key) {\n"
        "        }\n    }\n    interface IShape {\n    }\n}\n"
    ),
    "a.rb": (
        "module App\n  LIMIT = 3\n  class Pool\n    def self.get(key)\n    end\n    def size\n    end\n"
        "  end\nend\n"
    ),
    "a.php": (
        "<?php\nfinal class Pool {\n    const LIMIT = 3;\n    public static function get($key) {\n    }\n}\n"
        "function run() {\n}\ninterface Shape {\n}\n"
    ),
}


def exact(path: str, text: str) -> dict[str, Symbol]:
    found = exact_symbols(path, text.encode())
    assert found is not None
    return {symbol.name: symbol for symbol in found}


@pytest.mark.parametrize("path", FILES)
def test_the_outline_and_the_grammar_find_the_same_names_on_the_same_lines(path: str) -> None:
    data = FILES[path].encode()
    outlined = [(chunk.name, chunk.line) for chunk in outline_text(path, data).chunks if chunk.name]

    found = exact_symbols(path, data)

    assert found is not None
    assert [(symbol.name, symbol.line) for symbol in found] == outlined


@pytest.mark.parametrize(
    ("path", "name", "lines", "owner"),
    [
        ("a.py", "get", (5, 7), "Pool"),
        ("a.js", "size", (3, 5), "Box"),
        ("a.ts", "size", (5, 8), "Box"),
        ("a.go", "Get", (6, 7), "Pool"),
        ("a.rs", "drop", (3, 3), "Pool"),
        ("A.java", "get", (3, 5), "Pool"),
        ("a.c", "pool_get", (5, 8), None),
        ("a.cpp", "size", (3, 5), "Pool"),
        ("A.cs", "Get", (3, 4), "Pool"),
        ("a.rb", "get", (4, 5), "Pool"),
        ("a.php", "get", (4, 5), "Pool"),
    ],
)
def test_a_method_has_its_lines_and_its_type(
    path: str, name: str, lines: tuple[int, int], owner: str | None
) -> None:
    symbol = exact(path, FILES[path])[name]

    assert (symbol.top, symbol.end) == lines
    assert symbol.owner == owner
    assert symbol.kind == "function"
    assert not symbol.is_local


def test_decorators_belong_to_a_definition_and_inner_functions_are_local() -> None:
    found = exact("a.py", FILES["a.py"])

    assert (found["Pool"].top, found["Pool"].line, found["Pool"].kind) == (3, 4, "type")
    assert found["inner"].is_local
    assert found["LIMIT"].kind == "value"


@pytest.mark.parametrize("path", ["a.md", "Makefile", "a.unknown", ""])
def test_a_file_without_grammar_has_no_symbols(path: str) -> None:
    assert exact_symbols(path, b"# Title\n") is None


def test_without_the_extra_there_are_no_symbols_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_python", None)
    symbols.load_grammar.cache_clear()
    try:
        assert exact_symbols("a.py", b"def f(): pass\n") is None
        assert exact_symbols("a.go", b"package a\n") is not None
    finally:
        symbols.load_grammar.cache_clear()


def test_text_that_is_too_large_is_not_parsed() -> None:
    assert exact_symbols("a.py", b"x = 1\n" * MAX_SEARCHED_BYTES) is None


@pytest.mark.parametrize(
    ("path", "piece"),
    [("a.py", b"("), ("a.js", b"\"`'"), ("a.ts", b"def f():\n "), ("a.cpp", b"template<class T ")],
)
def test_hostile_text_is_parsed_within_seconds(path: str, piece: bytes) -> None:
    """Without a time limit, the parser needs minutes for some of these.

    The limit here is generous on purpose.
    """
    data = (piece * 200_000)[:200_000]
    before = time.process_time()

    exact_symbols(path, data)

    assert time.process_time() - before < 5


def test_bytes_that_are_no_text_do_not_fail() -> None:
    noise = bytes(range(256)) * 40

    for path in FILES:
        assert exact_symbols(path, noise) is not None
        assert grammar_for(path) is not None


def test_macro_that_unbalances_braces_does_not_swallow_the_functions_below_it() -> None:
    """C has no functions inside functions, whatever its macros look like to the parser."""
    text = (
        b"static int walk_all(struct list *all, int depth) {\n#ifdef FAST\n  if (all) {\n#else\n"
        b"  if (depth) {\n#endif\n    each(all, one) {\n      depth++;\n    }\n  }\n  return depth;\n}\n\n"
        b"int count_all(struct list *all) {\n  return walk_all(all, 0);\n}\n\n"
        b"int twice(int x)\n{\n  return 2 * x;\n}\n"
    )
    found = {one.name: one for one in exact_symbols("a.c", text) or ()}
    assert (found["walk_all"].line, found["walk_all"].end) == (1, 12)
    assert (found["count_all"].line, found["count_all"].end) == (14, 16)
    assert (found["twice"].line, found["twice"].end) == (18, 21)
    assert not any(one.is_local for one in found.values())
