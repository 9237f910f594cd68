"""Command lines are parsed as shells do."""

from __future__ import annotations

import pytest

from retinue.core.shell_command import SPLIT, UNKNOWN, UnclearCommand, parse_command


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("git status", [("git", "status")]),
        ("a 'b c' \"d e\" f\\ g", [("a", "b c", "d e", "f g")]),
        ("a 'it'\\''s'", [("a", "it's")]),
        ("a $'x\\ty'", [("a", "x\ty")]),
        ("a $'\\u00e9\\x41\\102'", [("a", "éAB")]),
        ("a;b&c|d&&e||f\ng", [(letter,) for letter in "abcdefg"]),
        ("a # b\nc", [("a",), ("c",)]),
        ("a b#c", [("a", "b#c")]),
        ("a >b 2>&1 <c &>d", [("a",)]),
        ("A=1 B='x y' c", [("c",)]),
        ('a $B "$C" $(d)', [("d",), ("a", SPLIT, UNKNOWN, SPLIT)]),
        ('a "x${y}z" *.py {1,2}', [("a", f"x{UNKNOWN}z", f"{SPLIT}.py", SPLIT)]),
        ("if a; then b; elif c; then d; else e; fi", [(letter,) for letter in "abcde"]),
        ("for x in 1 2; do a; done; while b; do c; done", [("a",), ("b",), ("c",)]),
        ("case x in (a|b) c;; *) d;; esac; e", [("c",), ("d",), ("e",)]),
        ("f() { a; }; function g { b; }", [("a",), ("b",)]),
        ("[[ a < b && c =~ d ]] && e", [("e",)]),
        ("[ -f a ] && b", [("[", "-f", "a", "]"), ("b",)]),
        ("a <<E\nb\nE\nc", [("a",), ("c",)]),
        ("a <<-'E'\n\t$(b)\n\tE\nc", [("a",), ("c",)]),
        ("a <<E <<F\n$(b)\nE\n`c`\nF\nd", [("a",), ("b",), ("c",), ("d",)]),
        ("a `b \\`c\\``", [("c",), ("b", SPLIT), ("a", SPLIT)]),
        ("git stash@{0} a{b}c {}", [("git", "stash@{0}", "a{b}c", "{}")]),
        ("x=(a b); c", [("c",)]),
        ("", []),
    ],
)
def test_command_line_is_parsed(text: str, commands: list[tuple[str, ...]]) -> None:
    assert [command.words for command in parse_command(text).commands if command.words] == commands


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a 'b",
            'a "b',
            "a `b",
            "a $(b",
            "a ${b",
            "(a",
            "a)",
            "a \\",
            "a <",
            "a <<E\nb",
            "case a in",
            "[[ a",
        ),
        *("a\x00b", "a\rb", "a\u00a0b", "a $[1]", "a $'\\'' 'b'", "for x (a) b", "a (b)", "a <<E\nb\\\nE\nE"),
        *('a "${b:-\'}"', "a $((1<<2))", "x" * 40_000, "(" * 100),
    ],
)
def test_command_line_that_shells_read_differently_is_unclear_P7(text: str) -> None:
    with pytest.raises(UnclearCommand):
        parse_command(text)
