"""Names of one file are told apart by scope: calls, types, bindings and imports (P3, P8)."""

from __future__ import annotations

import pytest

from retinue.codebase import CodeImport, ParsedCode, parse_code
from retinue.codebase.parse import Definition, LocalName


def parsed(path: str, text: str) -> ParsedCode:
    code = parse_code(path, text.encode())
    assert code is not None
    return code


def calls(path: str, text: str, function: str) -> list[str]:
    """Return what the body of a function calls, with receivers."""
    code = parsed(path, text)
    symbol = next(one.symbol for one in code.definitions if one.symbol.name == function)
    return [
        f"{site.receiver_text}.{site.name}" if site.receiver_text else site.name
        for site in code.calls_in(symbol)
    ]


def meaning(path: str, text: str, name: str, line: int) -> str:
    """Return what a name stands for where it is used on a line: its role, and what the scopes say."""
    code = parsed(path, text)
    site = next(
        one for one in code.sites(name) if one.line == line and one.role not in ("binding", "definition")
    )
    bound = code.lookup(name, site.node)
    kinds = {Definition: "definition", CodeImport: "import", LocalName: "local", type(None): "free"}
    return f"{site.role}, {kinds[type(bound)]}"


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.py", "def f(x):\n    if (x): g(x)\n    return 'h(1)'  # k(2)\n", ["g"]),
        ("a.ts", "function f(x: T) {\n  if (x) { a.g<T>(x); }\n  return `h(1)` // k(2)\n}\n", ["a.g"]),
        ("a.go", 'package a\nfunc f(x int) {\n\tif (x > 1) { a.G(x) }\n\t_ = "h(1)" // k(2)\n}\n', ["a.G"]),
        (
            "a.rs",
            'fn f(x: T) {\n    let (a, b) = g(x);\n    println!("{}", h(1));\n    a.k::<u8>();\n}\n',
            ["g", "a.k"],
        ),
        (
            "A.java",
            "class A {\n  void f(B x) {\n    if (x.g()) { h(); }\n    new C(1);\n  }\n}\n",
            ["x.g", "h"],
        ),
        ("a.c", "int f(int x) {\n  if (x) g(x); /* h(1) */\n  return sizeof(x);\n}\n", ["g"]),
    ],
)
def test_only_call_nodes_are_calls(path: str, text: str, expected: list[str]) -> None:
    """Keywords, strings, comments, macros and constructors are no calls."""
    assert calls(path, text, "f") == expected


@pytest.mark.parametrize(
    ("path", "text", "name", "line"),
    [
        ("a.py", "def clip(): ...\ndef f(clip):\n    clip()\n", "clip", 3),
        ("a.py", "def clip(): ...\ndef f(x):\n    for clip in x:\n        clip()\n", "clip", 4),
        ("a.py", "def clip(): ...\ndef f(x):\n    return [clip() for clip in x]\n", "clip", 3),
        ("a.py", "def clip(): ...\ndef f(x):\n    with x as clip:\n        clip()\n", "clip", 4),
        ("a.py", "def clip(): ...\ndef f(clip):\n    def g():\n        clip()\n", "clip", 4),
        ("a.py", "def clip(): ...\ndef f(x):\n    if (clip := x):\n        clip()\n", "clip", 4),
        ("a.ts", "function clip() {}\nfunction f({ clip }: T) {\n  clip();\n}\n", "clip", 3),
        ("a.ts", "function clip() {}\nconst f = (clip) => {\n  clip();\n}\n", "clip", 3),
        ("a.js", "function clip() {}\nfunction f() {\n  const clip = g;\n  clip();\n}\n", "clip", 4),
        ("a.go", "package a\nfunc clip() {}\nfunc f(clip func()) {\n\tclip()\n}\n", "clip", 4),
        ("a.go", "package a\nfunc clip() {}\nfunc f() {\n\tclip := g\n\tclip()\n}\n", "clip", 5),
        ("a.rs", "fn clip() {}\nfn f(clip: T) {\n    clip();\n}\n", "clip", 3),
        (
            "a.rs",
            "fn clip() {}\nfn f(x: T) {\n    match x {\n        Ok(clip) => clip(),\n    }\n}\n",
            "clip",
            4,
        ),
        ("a.rs", "fn clip() {}\nfn f(x: T) {\n    g(|clip| {\n        clip()\n    });\n}\n", "clip", 4),
        (
            "a.c",
            "int clip(int x) { return x; }\nint f(int (*clip)(int)) {\n  return clip(1);\n}\n",
            "clip",
            3,
        ),
    ],
)
def test_name_that_is_bound_locally_never_means_a_global_function(
    path: str, text: str, name: str, line: int
) -> None:
    assert meaning(path, text, name, line) == "call, local"


@pytest.mark.parametrize(
    ("path", "text", "line", "expected"),
    [
        ("a.py", "from core.words import clip\ndef f():\n    clip()\n", 3, "call, import"),
        ("a.py", "from words import cut as clip\nclip()\n", 2, "call, import"),
        ("a.py", "def clip(): ...\ndef f():\n    g(clip)\n", 3, "value, definition"),
        ("a.py", "class clip: ...\ndef f(x: clip): ...\n", 2, "type, definition"),
        ("a.py", "class A:\n    def clip(self): ...\n    def f(self):\n        clip()\n", 4, "call, free"),
        ("a.ts", "import { cut as clip } from './a';\nclip();\n", 2, "call, import"),
        ("a.js", "const { clip } = require('./a');\nclip();\n", 2, "call, import"),
        ("a.ts", "class A {\n  clip() {}\n  f() {\n    clip();\n  }\n}\n", 4, "call, free"),
        ("a.go", "package a\nfunc (s S) clip() {}\nfunc f() {\n\tclip()\n}\n", 4, "call, free"),
        ("a.rs", "use crate::a::{clip, b};\nfn f() {\n    clip();\n}\n", 3, "call, import"),
        ("a.rs", "fn clip() {}\nmod tests {\n    fn f() {\n        clip();\n    }\n}\n", 4, "call, free"),
        ("a.c", "int clip(int x);\nint f() {\n  return clip(1);\n}\n", 3, "call, free"),
    ],
)
def test_name_means_what_its_scope_says(path: str, text: str, line: int, expected: str) -> None:
    assert meaning(path, text, "clip", line) == expected


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "def f():\n    return {'clip': 1}, g(clip=2), 'clip'  # clip\n"),
        ("a.ts", "const x = { clip: 1 }; // clip\ninterface T { clip: string }\n"),
        ("a.go", 'package a\nvar x = T{clip: "clip"} // clip\n'),
        ("a.rs", 'struct S { clip: u8 }\nfn f() { println!("clip {}", clip); }\n'),
        ("a.c", "struct s { int clip; }; // clip\nint clip(int x);\n"),
    ],
)
def test_fields_strings_comments_and_prototypes_are_no_uses(path: str, text: str) -> None:
    assert [site.role for site in parsed(path, text).sites("clip")] == []


def test_names_of_other_languages_are_found_but_not_resolved() -> None:
    assert parsed("a.rb", "def f\nend\n").family == ""
