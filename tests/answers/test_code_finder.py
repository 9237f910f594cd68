"""A model is shown the code of the first places: redacted, within the budget (P2, P6)."""

from __future__ import annotations

from pathlib import Path

from retinue.answers import (
    ReadBudget,
)
from retinue.answers.code_finder import show_code
from retinue.core import Reference, Stop
from tests.answers.conftest import ContextFor

RETRY = Reference("src/shop/retry.py", 19)


def test_definition_is_shown_from_its_beginning_with_its_name(context_for: ContextFor) -> None:
    [shown] = show_code(context_for("how are calls retried?"), [RETRY], 3, 30, (), Stop())
    assert shown.symbol == "with_retry"
    assert shown.line_at(18) == "def with_retry(call, policy):"
    assert shown.holds(RETRY.path, 19)


def test_long_definition_is_shown_around_the_place(context_for: ContextFor, project: Path) -> None:
    body = "\n".join(f"    value_{number} = {number}" for number in range(100))
    (project / "src/shop/long.py").write_text(f"def long():\n{body}\n")
    [shown] = show_code(context_for("x"), [Reference("src/shop/long.py", 80)], 3, 30, (), Stop())
    assert shown.first <= 80 <= shown.last
    assert len(shown.lines) == 30


def test_tests_come_last_unless_the_question_is_about_them(context_for: ContextFor, project: Path) -> None:
    (project / "tests").mkdir(exist_ok=True)
    (project / "tests/test_x.py").write_text("def test_x():\n    assert True\n")
    places = [Reference("tests/test_x.py", 1), RETRY]
    assert [
        one.path for one in show_code(context_for("how are calls retried?"), places, 1, 30, (), Stop())
    ] == [RETRY.path]
    [first] = show_code(context_for("how do the tests check retries?"), places, 1, 30, (), Stop())
    assert first.path == "tests/test_x.py"


def test_tests_inside_a_file_of_code_are_left_out(context_for: ContextFor, project: Path) -> None:
    (project / "size.rs").write_text(
        "fn size() {\n}\n#[cfg(test)]\nmod tests {\n    fn size_works() {\n    }\n}\n"
    )
    places = [Reference("size.rs", 5), Reference("size.rs", 1)]
    [shown] = show_code(context_for("how is the size made?"), places, 2, 2, (), Stop())
    assert shown.symbol == "size"


def test_declarations_come_after_code(context_for: ContextFor, project: Path) -> None:
    (project / "index.d.ts").write_text("export function retry(): void\n")
    places = [Reference("index.d.ts", 1), RETRY]
    shown = show_code(context_for("how are calls retried?"), places, 2, 30, (), Stop())
    assert [one.path for one in shown] == [RETRY.path, "index.d.ts"]


def test_place_that_is_shown_already_is_left_out(context_for: ContextFor) -> None:
    context = context_for("how are calls retried?")
    first = show_code(context, [RETRY], 1, 30, (), Stop())
    assert show_code(context, [RETRY], 1, 30, first, Stop()) == []


def test_missing_files_and_lines_are_skipped(context_for: ContextFor) -> None:
    gone = [Reference("src/shop/gone.py", 1), Reference("src/shop/retry.py", 9_999), Reference("../x.py", 1)]
    assert show_code(context_for("x"), gone, 3, 30, (), Stop()) == []


def test_secret_is_not_shown_P6(context_for: ContextFor, project: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    (project / "src/shop/login.py").write_text(f'def login():\n    token = "{secret}"\n    return token\n')
    [shown] = show_code(context_for("x"), [Reference("src/shop/login.py", 1)], 1, 30, (), Stop())
    assert secret not in shown.text


def test_budget_ends_the_reading_P2(context_for: ContextFor) -> None:
    assert show_code(context_for("x"), [RETRY], 1, 30, (), Stop(), ReadBudget(50, 10)) == []
