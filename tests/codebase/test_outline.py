"""Definitions are found in many languages, and no text makes that slow."""

from __future__ import annotations

import time

import pytest

from retinue.codebase import outline_text
from retinue.codebase.parse.outline import CHUNK_BYTES, MAX_CHUNKS, Chunk


def names(path: str, text: str) -> list[str]:
    return [chunk.name for chunk in outline_text(path, text.encode()).chunks if chunk.name]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "a.py",
            "LIMIT = 3\n\nclass Pool:\n    async def get(self):\n        pass\n",
            ["LIMIT", "Pool", "get"],
        ),
        (
            "a.ts",
            "export interface Shape {\n}\nexport const area = (s: Shape) => 1\nclass Box {\n"
            "  size(): number {\n    if (x) {\n    }\n  }\n  async #grow(n) {\n  }\n"
            "  constructor(\n    private readonly it: It,\n  ) {}\n"
            "  protected fill(\n    key: string,\n    size = limit(3),\n  ): Promise<void> {\n"
            "    call(\n      key,\n    ).then((it) => {\n    })\n"
            "    if (\n      key\n    ) {\n    }\n  }\n}\nfunction main() {}\n",
            ["Shape", "area", "Box", "size", "#grow", "constructor", "fill", "main"],
        ),
        (
            "a.js",
            "const load = async () => {}\nmodule.exports.run = function () {}\n",
            ["load", "module.exports.run"],
        ),
        (
            "a.go",
            "type Pool struct {\n}\nfunc (p *Pool) Get() int {\n}\nfunc main() {\n}\n",
            ["Pool", "Get", "main"],
        ),
        (
            "a.rs",
            "pub struct Pool;\nimpl Drop for Pool {\n    fn drop(&mut self) {}\n}\n"
            "pub(crate) async fn run() {}\n",
            ["Pool", "Pool", "drop", "run"],
        ),
        (
            "A.java",
            "public class Pool {\n    private final int get(String key) {\n        return f(key);\n"
            "    }\n}\n",
            ["Pool", "get"],
        ),
        (
            "a.c",
            "#define LIMIT 3\nstruct pool {\n};\nstatic int pool_get(int key)\n{\n    return f(key);\n}\n",
            ["LIMIT", "pool", "pool_get"],
        ),
        ("a.cpp", "class Pool {\n};\nint Pool::get(int key) {\n}\n", ["Pool", "Pool::get"]),
        (
            "a.c",
            "static struct pool *\npool_get(int key)\n{\n    if (key)\n        f(key);\n}\n\n"
            "int\npool_put (int key,\n          int value)\n{\n}\n\nPyObject*\npool_new(void) {\n}\n"
            "enum size\npool_size(\n    int key,\n    void (*then)(int)\n) {\n}\n",
            ["pool_get", "pool_put", "pool_new", "pool_size"],
        ),
        (
            "a.cpp",
            "void\nPool::put(int key)\n{\n}\nPool::Pool(int n) : n(n) {\n}\nPool::~Pool()\n{\n}\n"
            'extern "C" void on_end(void *pool) {\n}\n',
            ["Pool::put", "Pool::Pool", "Pool::~Pool", "on_end"],
        ),
        (
            "a.c",
            "struct pool *pool_new(void)\n{\n}\nstatic const struct pool pools[2][N_KEYS] =\n{\n};\n"
            "struct pool one = {\n};\nint pool_set(int key,\n             enum size_e size)\n{\n"
            "    int keys[] = {\n    };\n}\nenum size_e  /* sizes */\n{\n};\nstatic struct free_s {\n};\n",
            ["pool_new", "pools", "one", "pool_set", "size_e", "free_s"],
        ),
        (
            "a.cpp",
            "class API Pool final : public Base {\n};\nstruct Key final {\n};\nstruct hash<Key> {\n};\n"
            "namespace app::net {\n}\nenum class Size : int {\n};\n",
            ["Pool", "Key", "hash", "app", "Size"],
        ),
        (
            "a.c",
            "int\npool_get(int key);\nint\npool_put(int key,\n         int value);\n/*\nThe pool\n"
            "pool_get(key) returns a value.\n*/\n",
            [],
        ),
        (
            "A.cs",
            "namespace App {\n    public sealed class Pool {\n"
            "        public async Task<int> Get(string key) {\n        }\n"
            "        public T Find<T>(string key)\n        {\n        }\n"
            "        public override int Count(int n) => n + 1;\n        int n = Sum(x => x);\n"
            "    }\n}\n",
            ["App", "Pool", "Get", "Find", "Count"],
        ),
        (
            "a.rb",
            "module App\n  class Pool\n    def self.get(key)\n    end\n    def []=(key, value)\n    end\n"
            "    def <=>(other)\n    end\n  end\nend\n",
            ["App", "Pool", "get", "[]=", "<=>"],
        ),
        (
            "a.php",
            "<?php\nfinal class Pool {\n    public static function get($key) {\n    }\n}\n",
            ["Pool", "get"],
        ),
        ("a.md", "# Title\n\ntext\n\n## Part two\n", ["Title", "Part two"]),
        ("a.toml", "[project]\nname = 1\n[tool.x]\n", ["project", "tool.x"]),
        ("a.yaml", "jobs:\n  a: 1\non:\n", ["jobs", "on"]),
        ("Makefile", "test: build\n\tpytest\n", ["test"]),
        ("a.kt", "data class Pool(val n: Int)\nfun Pool.get(): Int = 1\n", ["Pool", "get"]),
        ("a.ex", "defmodule App.Pool do\n  def get(key) do\n", ["App.Pool", "get"]),
    ],
)
def test_definitions_are_named_in_each_language(path: str, text: str, expected: list[str]) -> None:
    assert names(path, text) == expected


def test_chunks_cover_the_whole_text_in_order() -> None:
    data = b"import x\n\n# about f\n@deco\ndef f():\n    pass\n\n\ndef g():\n    pass"
    found = outline_text("a.py", data).chunks
    assert b"".join(data[chunk.start : chunk.end] for chunk in found) == data
    assert found == [Chunk(0, 10, 1, ""), Chunk(10, 46, 5, "f"), Chunk(46, len(data), 9, "g")]


def test_a_long_definition_is_split_and_keeps_its_name() -> None:
    data = b"def f():\n" + b"    call(1)\n" * 1_000
    found = outline_text("a.py", data).chunks
    assert len(found) > 3
    assert {chunk.name for chunk in found} == {"f"}
    assert all(chunk.end - chunk.start <= CHUNK_BYTES for chunk in found)
    assert [chunk.line for chunk in found] == sorted(chunk.line for chunk in found)


def test_the_later_parts_of_a_long_definition_have_their_own_first_line() -> None:
    data = b"import x\n\n# about f\n@deco\ndef f():\n" + b"    call(1)\n" * 1_000
    found = outline_text("a.py", data).chunks
    assert [chunk.line for chunk in found[:2]] == [1, 5]
    assert [chunk.line for chunk in found[2:]] == [
        data.count(b"\n", 0, chunk.start) + 1 for chunk in found[2:]
    ]


def test_name_below_its_type_has_its_own_line_and_the_comment_above_the_type() -> None:
    data = b"#define A 1\n\n/* Empties it. */\nstatic int\npool_clear(void)\n{\n}\n\nint\nlast(void)\n{\n}\n"
    first, clear, last = outline_text("a.c", data).chunks
    assert (first.name, clear.name, clear.line, last.name, last.line) == ("A", "pool_clear", 5, "last", 10)
    assert data[clear.start : clear.end].startswith(b"/* Empties it. */\nstatic int\npool_clear")


def test_imports_are_found_in_each_language() -> None:
    assert outline_text("a.py", b"from app.net import pool\nimport os.path\n").imports == [
        "app.net",
        "os.path",
    ]
    assert outline_text("a.ts", b"import { a } from './net/pool'\n").imports == ["./net/pool"]
    assert outline_text("a.c", b'#include "net/pool.h"\n').imports == ["net/pool.h"]
    assert outline_text("a.rs", b"use crate::net::pool;\n").imports == ["crate::net::pool"]
    assert outline_text("A.java", b"import com.acme.Pool;\n").imports == ["com.acme.Pool"]


def test_empty_and_huge_files_have_bounded_outlines() -> None:
    assert outline_text("a.py", b"").chunks == []
    assert len(outline_text("a.py", b"def f(): pass\n" * 20_000).chunks) <= MAX_CHUNKS + 1


def test_the_last_chunk_of_a_huge_file_contains_exactly_the_rest() -> None:
    """Otherwise an index, which counts words by chunk, would count some twice."""
    data = b"def f(): pass\n" * (MAX_CHUNKS + 500)
    found = outline_text("a.py", data).chunks
    assert b"".join(data[chunk.start : chunk.end] for chunk in found) == data
    assert found[-1].line == len(found)


HOSTILE = [
    b"*" * 50_000,
    b"a " * 25_000,
    b"a* " * 20_000,
    b" " * 50_000,
    b"x<" * 25_000 + b"(",
    b"(" * 50_000,
    b"a.b." * 12_000 + b"\n",
    (b"\t" * 60 + b"static public " * 20 + b"\n") * 300,
    (b"a" * 300 + b" (" + b"b" * 400 + b"\n") * 100,
    b"const x: " + b"y" * 50_000,
    b"int\nf(a,\n" * 6_000,
    (b"t" * 110 + b"\nf(" + b"a" * 290 + b"\n") * 120,
    (b"x" * 100 + b"(\n" + (b"y" * 150 + b"\n") * 15) * 40,
    b"  public a b<" + b"c(" * 20_000,
]


@pytest.mark.parametrize(
    "suffix", ["py", "ts", "go", "rs", "java", "c", "rb", "php", "sh", "md", "rst", "toml", "xyz"]
)
def test_hostile_text_costs_no_more_than_ordinary_text(suffix: str) -> None:
    """P2: a file cannot make the outline hang."""
    before = time.process_time()
    for data in HOSTILE:
        outline_text(f"a.{suffix}", data)
    assert time.process_time() - before < 5
