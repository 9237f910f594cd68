"""A name leads to its definition through scopes, imports and types, or nowhere (P3, P8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from retinue.codebase import CodeFile, FileEntry, NameResolver, ParsedCode, Target, parse_code
from retinue.core import Root

HERE = Root.at(Path(__file__).parent)


class Files:
    """Files in memory."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def parsed(self, entry: FileEntry) -> ParsedCode | None:
        text = self.texts.get(entry.path)
        return None if text is None else parse_code(entry.path, text.encode())

    def text(self, entry: FileEntry) -> bytes | None:
        text = self.texts.get(entry.path)
        return None if text is None else text.encode()

    def defining(self, name: str, like: FileEntry, folder: str | None = None) -> Sequence[Target] | None:
        suffix = like.path.rpartition(".")[2]
        found: list[Target] = []
        for path in self.texts:
            code = self.parsed(FileEntry(HERE, path))
            if code is not None and (path.endswith(f".{suffix}") or suffix in ("c", "h")):
                found += [Target(FileEntry(HERE, path), code, one) for one in code.definitions]
        return [one for one in found if one.symbol.name == name and one.entry.path.startswith(folder or "")]


def target(texts: Mapping[str, str], path: str, name: str, line: int) -> str | None:
    """Return the place of the definition that a name on a line means."""
    files = Files(texts)
    code = files.parsed(FileEntry(HERE, path))
    assert code is not None
    site = next(
        one for one in code.sites(name) if one.line == line and one.role not in ("definition", "binding")
    )
    found = NameResolver(files).resolve(CodeFile(FileEntry(HERE, path), code), site)
    return None if found is None else f"{found.entry.path}:{found.symbol.line}"


PYTHON = {
    "src/app/__init__.py": "",
    "src/app/core/__init__.py": "from app.core.words import clip as clip\n",
    "src/app/core/words.py": "def clip(): ...\n\n\ndef wrap(): ...\n",
    "src/app/text.py": "def clip(): ...\n",
    "src/app/base.py": "class Base:\n    def save(self): ...\n",
    "src/app/use.py": (
        "import app.text\nfrom app.core import clip\nfrom .core.words import wrap as fold\n"
        "from .base import Base\nfrom app import text as words\nimport json\n\n\n"
        "class Child(Base):\n    def fit(self, other, known: Base):\n        clip()\n        fold()\n"
        "        self.save()\n        super().save()\n        other.save()\n        known.save()\n"
        "        words.clip()\n        app.text.clip()\n        json.clip()\n        Base().save()\n"
    ),
}


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("clip", 11, "src/app/core/words.py:1"),
        ("fold", 12, "src/app/core/words.py:4"),
        ("save", 13, "src/app/base.py:2"),
        ("save", 14, "src/app/base.py:2"),
        ("save", 15, None),
        ("save", 16, "src/app/base.py:2"),
        ("clip", 17, "src/app/text.py:1"),
        ("clip", 18, "src/app/text.py:1"),
        ("clip", 19, None),
        ("save", 20, "src/app/base.py:2"),
    ],
)
def test_python_imports_come_before_namesakes(name: str, line: int, expected: str | None) -> None:
    assert target(PYTHON, "src/app/use.py", name, line) == expected


@pytest.mark.parametrize(
    ("texts", "path", "name", "line", "expected"),
    [
        pytest.param(
            {
                "src/a.ts": "export function clip() {}\n",
                "src/b.ts": "export function clip() {}\n",
                "src/index.ts": "export { clip as cut } from './b';\n",
                "src/use.ts": "import { cut } from './index';\ncut();\n",
            },
            "src/use.ts",
            "cut",
            2,
            "src/b.ts:1",
            id="script re-export",
        ),
        pytest.param(
            {
                "a.ts": "export class Box {\n  open() {}\n}\nexport class Lid {\n  open() {}\n}\n",
                "use.ts": "import { Box } from './a.js';\nfunction f(box: Box, lid) {\n  box.open();\n}\n",
            },
            "use.ts",
            "open",
            3,
            "a.ts:2",
            id="script type",
        ),
        pytest.param(
            {
                "go.mod": "module example.com/app\n",
                "words/words.go": "package words\n\nfunc Clip() {}\n",
                "text/text.go": "package text\n\nfunc Clip() {}\n",
                "main.go": (
                    'package main\n\nimport "example.com/app/words"\n\nfunc main() {\n\twords.Clip()\n}\n'
                ),
            },
            "main.go",
            "Clip",
            6,
            "words/words.go:3",
            id="go package",
        ),
        pytest.param(
            {
                "go.mod": "module example.com/app\n",
                "words/words.go": "package words\n\nfunc Clip() {}\n",
                "main.go": 'package main\n\nimport "strings/words"\n\nfunc main() {\n\twords.Clip()\n}\n',
            },
            "main.go",
            "Clip",
            6,
            None,
            id="go library",
        ),
        pytest.param(
            {
                "go.mod": "module example.com/app\n",
                "errors/errors.go": "package errors\n\ntype Lost struct{}\n",
                "main.go": (
                    'package main\n\nimport "example.com/app/errors"\n\ntype Lost struct{}\n\n'
                    "func f() any {\n\treturn &errors.Lost{}\n}\n"
                ),
            },
            "main.go",
            "Lost",
            8,
            "errors/errors.go:3",
            id="go type of another package",
        ),
        pytest.param(
            {
                "a.go": "package a\ntype Store struct{}\ntype Cache struct{}\nfunc (s *Store) Load() {}\n",
                "b.go": "package a\n\nfunc (c *Cache) Load() {}\n",
                "use.go": "package a\n\nfunc f(c *Cache) {\n\tc.Load()\n}\n",
            },
            "use.go",
            "Load",
            4,
            "b.go:3",
            id="go receiver",
        ),
        pytest.param(
            {
                "src/lib.rs": "mod words;\nmod text;\nfn clip() {}\n",
                "src/words.rs": "pub fn clip() {}\n",
                "src/text.rs": "use crate::words::clip;\nfn f() {\n    clip();\n}\n",
            },
            "src/text.rs",
            "clip",
            3,
            "src/words.rs:1",
            id="rust use",
        ),
        pytest.param(
            {
                "src/lib.rs": (
                    "struct A;\nstruct B;\nimpl A {\n    fn new() -> A { A }\n}\n"
                    "impl B {\n    fn new() -> B { B }\n}\nfn f() {\n    let x = B::new();\n}\n"
                )
            },
            "src/lib.rs",
            "new",
            10,
            "src/lib.rs:7",
            id="rust type",
        ),
        pytest.param(
            {"src/lib.rs": "fn clip() {}\nmod tests {\n    use super::*;\n    fn t() {\n clip();\n}\n}\n"},
            "src/lib.rs",
            "clip",
            5,
            "src/lib.rs:1",
            id="rust glob",
        ),
        pytest.param(
            {
                "a/Base.java": "package a;\nclass Base {\n  void save() {}\n  void save(int n) {}\n}\n",
                "b/Base.java": "package b;\nclass Base {\n  void save() {}\n}\n",
                "b/Use.java": (
                    "package b;\nimport a.Base;\nclass Use extends Base {\n void f() {\n save(1);\n }\n}\n"
                ),
            },
            "b/Use.java",
            "save",
            5,
            "a/Base.java:4",
            id="java inherited overload",
        ),
        pytest.param(
            {
                "a.c": "static int clip(int x) { return x; }\nint f(void) {\n  return clip(1);\n}\n",
                "b.c": "int clip(int x) { return x; }\n",
            },
            "a.c",
            "clip",
            3,
            "a.c:1",
            id="c static first",
        ),
        pytest.param(
            {
                "a.c": "int f(void) {\n  return clip(1);\n}\n",
                "b.c": "static int clip(int x) { return x; }\n",
            },
            "a.c",
            "clip",
            2,
            None,
            id="c static elsewhere",
        ),
        pytest.param(
            {
                "a.c": "int f(void) {\n  return clip(1);\n}\n",
                "b.c": "int clip(int x) { return x; }\n",
                "tests/mock.c": "int clip(int x) { return 0; }\n",
                "b.h": "int clip(int x);\n",
            },
            "a.c",
            "clip",
            2,
            "b.c:1",
            id="c definition, not prototype nor mock",
        ),
        pytest.param(
            {
                "a.c": "int f(void) {\n  return clip(1);\n}\n",
                "b.c": "int clip(int x) { return x; }\n",
                "c.c": "int clip(int x) { return 1; }\n",
            },
            "a.c",
            "clip",
            2,
            None,
            id="c ambiguous",
        ),
    ],
)
def test_name_leads_to_the_definition_that_the_language_means(
    texts: Mapping[str, str], path: str, name: str, line: int, expected: str | None
) -> None:
    assert target(texts, path, name, line) == expected


def test_imports_in_a_circle_end() -> None:
    texts = {"a.py": "from b import clip\nclip()\n", "b.py": "from a import clip\n"}
    assert target(texts, "a.py", "clip", 2) is None
