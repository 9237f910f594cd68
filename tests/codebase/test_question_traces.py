"""Stack traces of many languages are parsed."""

from __future__ import annotations

import time

import pytest

from retinue.codebase.parse.question import StackFrame, find_stack_frames


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('  File "/lib/pool.py", line 12, in get\n', StackFrame("/lib/pool.py", 12, "get")),
        ("    at Pool.get (/app/src/pool.js:12:5)", StackFrame("/app/src/pool.js", 12, "get")),
        ("    at async get (file:///app/pool.mjs:12:5)", StackFrame("/app/pool.mjs", 12, "get")),
        ("    at /app/src/pool.ts:12:5", StackFrame("/app/src/pool.ts", 12, "")),
        ("\tat com.acme.Pool.get(Pool.java:12)", StackFrame("Pool.java", 12, "get")),
        (
            "   at Acme.Pool.Get(String key) in C:\\src\\Pool.cs:line 12",
            StackFrame("C:\\src\\Pool.cs", 12, "Get"),
        ),
        ("\t/go/src/acme/pool.go:12 +0x1d", StackFrame("/go/src/acme/pool.go", 12, "")),
        ("thread 'main' panicked at src/pool.rs:12:5:", StackFrame("src/pool.rs", 12, "")),
        ("lib/pool.rb:12:in `get'", StackFrame("lib/pool.rb", 12, "get")),
        ("#0 /app/Pool.php(12): Acme\\Pool->get()", StackFrame("/app/Pool.php", 12, "get")),
        ("PHP Fatal error: no in /app/Pool.php on line 12", StackFrame("/app/Pool.php", 12, "")),
        ("src/pool.c:12:5: error: expected ';'", StackFrame("src/pool.c", 12, "")),
    ],
)
def test_a_line_of_a_trace_is_parsed(text: str, expected: StackFrame) -> None:
    assert find_stack_frames(text) == [expected]


def test_the_outermost_call_comes_first_in_every_language() -> None:
    java = "at com.acme.Pool.get(Pool.java:12)\nat com.acme.Main.main(Main.java:3)\n"

    assert [frame.path for frame in find_stack_frames(java)] == ["Main.java", "Pool.java"]


def test_frames_keep_their_order_and_appear_once() -> None:
    text = 'File "b.py", line 2, in two\nFile "a.py", line 1, in one\nb.py:2: again\n'

    assert [frame.path for frame in find_stack_frames(text)] == ["b.py", "a.py"]


@pytest.mark.parametrize(
    "text", ["at 12:30 we met", "version 1.2:3", "http://localhost:8080/a", "a ratio of 3:1"]
)
def test_ordinary_text_has_no_frames(text: str) -> None:
    assert find_stack_frames(text) == []


@pytest.mark.parametrize("piece", ["a.b", "at (", "a/", ".a:1", 'File "'])
def test_no_text_makes_parsing_slow(piece: str) -> None:
    before = time.process_time()

    find_stack_frames((piece * 20_000)[:20_000])

    assert time.process_time() - before < 2
