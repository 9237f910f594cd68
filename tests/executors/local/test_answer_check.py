"""An answer counts only with evidence, with references that hold, and in the promised form (P3, P8)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retinue.core import Unverified
from retinue.executors.local.answer_check import (
    NOT_FOUND,
    NOT_OPENED,
    NOT_THERE,
    NOTHING_SEEN,
    AnswerCheck,
    InvalidAnswer,
    places_as_text,
)
from retinue.executors.wrappers import OutputSchema, ReferenceVerdict
from retinue.tools import SeenCode

pytestmark = pytest.mark.anyio

FORM = OutputSchema(
    {
        "type": "object",
        "properties": {"file": {"type": "string"}, "line": {"type": "integer"}},
        "required": ["file", "line"],
    }
)


def check_of(**options: Any) -> AnswerCheck:
    """Return the check of an agent that has seen lines 1 and 2 of a.py, a file of three lines."""
    resolved = options.pop("resolved", {})
    seen = SeenCode()
    seen.add_lines("a.py", [(1, "def count_zebras():"), (2, "    return 3")])

    async def references(text: str) -> ReferenceVerdict:
        wrong = frozenset(place for place in ("a.py:9", "b.py:1") if place in text)
        return ReferenceVerdict(held=1, wrong=wrong, resolved=resolved)

    defaults: dict[str, Any] = {
        "task": "Where are zebras counted?",
        "seen": seen,
        "check_references": references,
        "looks_at_code": True,
    }
    return AnswerCheck(**(defaults | options))


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ("In count_zebras (a.py:1).", True),
        ("In the ZebraCounter of zebras/counter.py.", False),
        ("Zebras are counted.", False),
        ("Not found in the code.", True),
        ("Not found, but decision: PROCEED", False),
    ],
)
def test_answer_needs_something_that_was_seen(answer: str, holds: bool) -> None:
    assert check_of().has_evidence(answer) is holds


def test_not_found_needs_a_look() -> None:
    assert not check_of(seen=SeenCode()).has_evidence("Not found.")
    assert check_of(seen=SeenCode(), has_looked=True).has_evidence("Not found."), "a search found nothing"


@pytest.mark.parametrize("option", ["writes", "used_other_tools"])
def test_work_and_other_sources_need_no_line_of_code(option: str) -> None:
    assert check_of(**{option: True}).has_evidence("It is done.")


async def test_wrong_and_unopened_places_are_marked_P3() -> None:
    check = check_of()
    text = await check.checked_text("See a.py:1, a.py:3 and b.py:1.")
    assert (
        text.startswith("See a.py:1, a.py:3 [not opened] and ") and text != "See a.py:1, a.py:3 and b.py:1."
    )
    assert any("b.py:1" in note for note in check.notes) and any("a.py:3" in note for note in check.notes)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("no JSON", "it is not JSON"),
        ('{"file": "a.py"}', "line"),
        ('{"file": "b.py", "line": 1}', NOTHING_SEEN),
        ('{"file": "a.py", "line": 9}', NOT_THERE),
        ('{"file": "a.py", "line": 3}', NOT_OPENED),
    ],
)
async def test_json_is_refused_with_its_reason_P3(answer: str, problem: str) -> None:
    with pytest.raises(InvalidAnswer, match=problem):
        await check_of(answers_json=True, schema=FORM).checked_json(answer)


def test_only_missing_evidence_makes_an_answer_unverified() -> None:
    check = check_of()
    assert isinstance(check.unverified(), Unverified)
    assert isinstance(check.unverified(f"{NOT_OPENED}: a.py:3"), Unverified)
    assert check.unverified("it is not JSON") is None
    nothing = check_of(seen=SeenCode()).unverified()
    assert nothing is not None and nothing.message == "the model answered without looking at any code"


@pytest.mark.parametrize(
    ("found", "is_refused"),
    [
        ("It is in count_zebras (a.py:1).", False),
        ("It is in count_zebras (a.py:2).", True),
        ("It is in count_zebras (a.py:12).", True),
        ("Not found in the code that was read: a.py:1.", True),
    ],
)
async def test_form_names_only_places_of_the_answer_that_was_judged_P3(found: str, is_refused: bool) -> None:
    check = check_of(answers_json=True, schema=FORM, found=found)
    if is_refused:
        with pytest.raises(InvalidAnswer, match=NOT_FOUND) as refused:
            await check.checked_json('{"file": "a.py", "line": 1}')
        assert isinstance(check.unverified(str(refused.value)), Unverified)
    else:
        assert await check.checked_json('{"file": "a.py", "line": 1}')


async def test_field_with_the_end_of_a_path_gets_the_whole_path_P3() -> None:
    resolved = {"b/a.py:2": "src/b/a.py:2", "a.py:1": "src/b/a.py:1"}
    check = check_of(resolved=resolved, looks_at_code=False)
    shown = await check.checked_json('{"found": [{"file": "b/a.py", "line": 2}], "at": "a.py:1"}')
    assert shown == '{"found": [{"file": "src/b/a.py", "line": 2}], "at": "src/b/a.py:1"}'


def test_places_in_two_fields_are_read() -> None:
    value = {"found": [{"file": "a.py", "line": 3}, {"path": "b/c.ts", "line_number": "7"}], "line": True}
    assert places_as_text(value) == "a.py:3\nb/c.ts:7"


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("4-9", "a.py:4-9"),
        ("L4", "a.py:4"),
        ("lines 4 to 9", "a.py:4-9"),
        (4.0, "a.py:4"),
        ("04", "a.py:4"),
        (4.5, ""),
        ("somewhere", ""),
    ],
)
def test_line_of_a_place_is_read_however_it_is_written(line: str | float, place: str) -> None:
    assert places_as_text({"file": "a.py", "line": line}) == place


@pytest.mark.parametrize(("lines", "is_refused"), [("1-2", False), ("9-12", True), ("3-4", True)])
async def test_range_of_lines_in_a_form_is_checked_by_its_first_line_P3(lines: str, is_refused: bool) -> None:
    """The answer that the form is filled in from has `a.py:1`."""
    check = check_of(found="It is a.py:1.", schema=None)
    answer = json.dumps({"file": "a.py", "line": lines, "what": "count_zebras"})
    if is_refused:
        with pytest.raises(InvalidAnswer, match=NOT_FOUND):
            await check.checked_json(answer)
    else:
        assert await check.checked_json(answer) == answer


@pytest.mark.parametrize("line", [0, -1, 0.0, "0", "L0", "0-2", "1-0", 12_345_678])
async def test_line_that_no_file_has_is_refused_P3(line: str | float) -> None:
    """Such a place looks like none to what opens the files again."""
    answer = json.dumps({"file": "a.py", "line": line, "what": "count_zebras"})
    with pytest.raises(InvalidAnswer, match=f"{NOT_THERE}: a.py:"):
        await check_of(answers_json=True).checked_json(answer)


@pytest.mark.parametrize("file", ["N/A", "none", ""])
async def test_form_without_a_place_may_say_so_with_line_0(file: str) -> None:
    """An honest "not found" is an answer, also in a form that requires a line."""
    answer = json.dumps({"file": file, "line": 0, "what": "not found in count_zebras"})
    assert await check_of(answers_json=True).checked_json(answer) == answer
