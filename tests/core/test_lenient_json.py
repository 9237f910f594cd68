"""JSON in the output of models and programs is parsed leniently, or refused with a reason."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from retinue.core import (
    NotJson,
    any_value,
    embedded_values,
    first_value,
    objects_in,
    parse_lenient,
    parse_lenient_object,
    stated_values,
)
from retinue.core.lenient_json import MAX_ATTEMPTS


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('{"a": 1,}', {"a": 1}),
        ("{'a': True, 'b': None}", {"a": True, "b": None}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
    ],
)
def test_almost_json_is_parsed(text: str, value: object) -> None:
    assert parse_lenient_object(text) == value


@pytest.mark.parametrize(
    "text",
    [
        '["a.py"\n "b.py"]',
        "['a.py' 'b.py']",
        "['a.py' \\\r'b.py',\r'c.py']",
        "{'paths': ['a.py', # first\n 'b.py'\n # last\n 'c.py']}",
        '{"a": "one"\n "two"}',
    ],
)
def test_strings_without_a_comma_between_them_are_not_joined_P3(text: str) -> None:
    with pytest.raises(NotJson):
        parse_lenient(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': \"it's\", 'b': ['', 'c', '',], }", {"a": "it's", "b": ["", "c", ""]}),
        ("{'a': \"\"\"two \\n'lines'\"\"\", 'b': r'c'}", {"a": "two \n'lines'", "b": "c"}),
        ("['a', # 'first'\n 'b']", ["a", "b"]),
    ],
)
def test_python_strings_of_every_kind_are_read(text: str, value: object) -> None:
    assert parse_lenient(text) == value


@pytest.mark.parametrize(
    "text", ["", "[1]", "4", '{"a": ', "{" * 100, '{"a": ' * 70, "x" * 70_000, "nothing"]
)
def test_text_that_is_not_an_object_is_refused_with_a_one_line_reason(text: str) -> None:
    with pytest.raises(NotJson) as told:
        parse_lenient_object(text)
    assert str(told.value) and "\n" not in str(told.value)


def test_values_in_fences_are_found_in_any_prose() -> None:
    said = 'Here:\n```json\n{"a": 1}\n```\nand\n```\n[2,]\n```\nDone.'
    assert stated_values(said) == [{"a": 1}, [2]]
    with pytest.raises(NotJson):
        stated_values('The answer is {"a": 1}.')


def test_values_in_prose_are_found_unless_a_bracket_stays_open() -> None:
    assert embedded_values('First {"a": 1}, then [2].') == [{"a": 1}, [2]]
    assert embedded_values('{"whole": [{"a": 1}, {"b": 2}') == []


def test_doubled_braces_around_an_object_are_read_as_one() -> None:
    assert any_value('{{"a": {"b": 1}}}') == {"a": {"b": 1}}
    assert first_value('So: {{"a": 1}}.') == ({"a": 1}, 14)


BROKEN = [
    pytest.param('{"answer": "no"\n "evidence": {"path": "a.py"}}', id="a comma is missing"),
    pytest.param('{"answer": "no", // as found\n "evidence": {"path": "a.py"}}', id="a comment"),
    pytest.param('{answer: "no", evidence: {"path": "a.py"}}', id="keys without quotes"),
    pytest.param('{"answer": "a } b {" "evidence": {"path": "a.py"}}', id="brackets in a string"),
    pytest.param('{"answer": "say \\"}\\" {" "evidence": {"path": "a.py"}}', id="quotes in a string"),
    pytest.param('{"items": [{"path": "a.py"} {"path": "b.py"}]}', id="in a list"),
    pytest.param('[{"path": "a.py"} {"path": "b.py"}]', id="a list"),
    pytest.param('{{"path": "a.py"} {"path": "b.py"}}', id="two objects in braces"),
    pytest.param('{"items": [{"path": "a.py"}, {"path": "b', id="cut off"),
]


@pytest.mark.parametrize("said", ["{}", "So I say:\n{}\nDone.", "```json\n{}\n```", "As in [x]: {}"])
@pytest.mark.parametrize("broken", BROKEN)
def test_object_that_cannot_be_parsed_is_not_replaced_by_a_part_P3(said: str, broken: str) -> None:
    text = said.replace("{}", broken)
    with pytest.raises(NotJson):
        any_value(text)
    assert embedded_values(text) == []
    assert first_value(text) is None


@pytest.mark.parametrize("broken", BROKEN[:-1])
def test_object_behind_one_that_cannot_be_parsed_is_found(broken: str) -> None:
    text = f'First {broken}, no: {{"n": 7}}.'
    assert any_value(text) == {"n": 7}
    assert first_value(text) == ({"n": 7}, len(text) - 1)


def test_first_value_is_given_with_its_end() -> None:
    said = 'x {"a": 1} y {"b": 2}'
    assert first_value(said) == ({"a": 1}, said.index(" y"))
    assert first_value(said, said.index(" y")) == ({"b": 2}, len(said))
    assert first_value("{" * 100) is None


def test_every_object_is_found_in_fences_lists_and_prose() -> None:
    said = 'So:\n```json\n{"a": 1,}\n```\n[{"b": 2}] and {\'c\': 3}, {x}'
    found = objects_in(said)
    assert found.objects == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert said[found.ends[-1] :] == ", {x}"
    assert objects_in("no object, [1], 2").objects == []


@pytest.mark.parametrize(
    "broken",
    [
        '{"a": {"b": 2}, c}',
        '{"a": {"b": 2}',
        "{'a': {\"b\": 2}, 'c'}",
        '{a: [{"b": 2}]}',
        '{"a": "}", {"b": 2}}',
        "{",
    ],
)
def test_part_of_a_broken_object_is_not_found(broken: str) -> None:
    """P3: what stands inside an object is not what the object says."""
    found = objects_in(f'see {{"ok": 1}}, then {broken}')
    assert (found.objects, found.words) == ([{"ok": 1}], f"see , then {broken}")


def test_object_after_a_large_value_is_found() -> None:
    """Brackets inside a value that was parsed do not count as attempts."""
    large = json.dumps([{"n": number} for number in range(2 * MAX_ATTEMPTS)])
    assert embedded_values(f'{large} so {{"a": 1}}')[-1] == {"a": 1}
    nested = json.dumps({"all": json.loads(large)})
    assert objects_in(f'{nested} so {{"a": 1}}').objects[-1] == {"a": 1}


def test_object_after_a_long_text_is_found() -> None:
    assert objects_in("word " * 50_000 + '{"a": 1}').objects == [{"a": 1}]


@pytest.mark.parametrize(
    "text",
    [
        *("{" * 30_000, '["' * 15_000, '{"a":[' * 5_000, "```json\n" * 4_000, "```\n" * 9_000),
        *("{" + '\\"' * 29_000 + "\\", "[x]" * 20_000, "{x " * 20_000, "['a' " * 60 + "'a' " * 14_000),
    ],
)
def test_hostile_text_is_parsed_quickly(text: str) -> None:
    began = time.process_time()
    embedded_values(text)
    first_value(text)
    objects_in(text)
    with suppress(NotJson):
        stated_values(text)
    assert time.process_time() - began < 1.0


@given(st.text(alphabet="{}[]\"':,`\\ \nab1", max_size=300))
def test_any_text_raises_nothing_but_not_json(text: str) -> None:
    embedded_values(text)
    first_value(text)
    objects_in(text)
    with suppress(NotJson):
        parse_lenient(text)
    with suppress(NotJson):
        any_value(text)
