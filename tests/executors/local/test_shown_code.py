"""Code that a model was shown is named, shortened and quoted by its places."""

from __future__ import annotations

from retinue.executors.local.shown_code import may_also_be
from retinue.tools import CodeExcerpt


def code_at(path: str, line: int, symbol: str, inside: int = 0) -> CodeExcerpt:
    lines = tuple((number, f"step_{number}()") for number in range(line, line + 5))
    return CodeExcerpt(path, line, lines, symbol, line + 40, inside)


def test_likeliest_rival_is_named_though_a_less_likely_block_of_it_comes_last() -> None:
    likeliest, last = code_at("long.py", 15, "shrink", 1), code_at("long.py", 30, "shrink", 1)
    others = [likeliest, code_at("a.py", 1, "grow"), code_at("b.py", 1, "turn"), last]
    assert may_also_be(others) == "It may also be long.py:15 (shrink) or a.py:1 (grow)."
