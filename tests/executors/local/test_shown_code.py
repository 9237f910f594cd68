"""Code that a model was shown is named, shortened and quoted by its places."""

from __future__ import annotations

import pytest

from retinue.core import estimate_tokens
from retinue.executors.local.shown_code import definition_of, fit_excerpts, lines_around, may_also_be
from retinue.tools import CodeExcerpt


def code_at(path: str, line: int, symbol: str, inside: int = 0) -> CodeExcerpt:
    lines = tuple((number, f"step_{number}()") for number in range(line, line + 5))
    return CodeExcerpt(path, line, lines, symbol, line + 40, inside)


def test_likeliest_rival_is_named_though_a_less_likely_block_of_it_comes_last() -> None:
    likeliest, last = code_at("long.py", 15, "shrink", 1), code_at("long.py", 30, "shrink", 1)
    others = [likeliest, code_at("a.py", 1, "grow"), code_at("b.py", 1, "turn"), last]
    assert may_also_be(others) == "It may also be long.py:15 (shrink) or a.py:1 (grow)."


@pytest.mark.parametrize("cited", [1, 20, 40])
def test_cited_line_stays_in_lines_that_do_not_fit(cited: int) -> None:
    lines = tuple((number, f"step_{number}(retry, option)") for number in range(1, 41))
    [around] = lines_around(f"a.py:{cited}", [CodeExcerpt("a.py", 1, lines, "retry", 40)])
    [fitting] = fit_excerpts([around], 90)
    assert cited in dict(fitting.lines) and len(fitting.lines) < len(around.lines)
    assert estimate_tokens(str(fitting)) <= 90


def test_no_line_is_shown_twice_in_one_request() -> None:
    first, second = code_at("a.py", 1, "grow"), code_at("a.py", 3, "turn")
    together = fit_excerpts([first, second, code_at("b.py", 1, "shrink"), first], 999)
    assert [[number for number, _ in one.lines] for one in together] == [
        [1, 2, 3, 4, 5],
        [6, 7],
        [1, 2, 3, 4, 5],
    ]
    assert fit_excerpts([second], 999) == (second,)


def test_excerpts_that_overlap_keep_their_own_lines_if_not_all_lines_fit() -> None:
    """A method is shown with its class. Shortened, the class no longer has the first line of the method."""
    lines = tuple((number, f"step_{number}(retry, option)") for number in range(1, 25))
    whole, method = (
        CodeExcerpt("a.py", 1, lines[:18], "Retry", 24),
        CodeExcerpt("a.py", 10, lines[9:], "wait"),
    )
    for tokens in (999, 300, 250, 200):
        fitting = fit_excerpts([whole, method], tokens)
        assert {1, 10} <= {number for one in fitting for number, _ in one.lines}


def test_definition_is_shortened_from_its_end() -> None:
    lines = tuple((number, f"step_{number}(retry, option)") for number in range(1, 25))
    [fitting] = fit_excerpts([CodeExcerpt("a.py", 4, lines, "retry", 24)], 120)
    assert fitting.lines == lines[: len(fitting.lines)] != lines


@pytest.mark.parametrize("line", ["RETRIES=3", "RETRIES = 3", "RETRIES: int = 3", "#define RETRIES 3"])
def test_definition_of_a_number_is_found_however_it_is_written(line: str) -> None:
    shown = [CodeExcerpt("src/a.py", 1, ((1, "# RETRIES"), (2, line)))]
    assert definition_of(["RETRIES"], shown, r"\d") == ("src/a.py:2", line)


@pytest.mark.parametrize("line", ["if tries != 0:", "while (tries >= 3) {", "tries == 3", "tries(1) <= 3"])
def test_comparison_gives_no_value(line: str) -> None:
    assert definition_of(["tries"], [CodeExcerpt("src/a.py", 1, ((1, line),))], r"\d") is None
