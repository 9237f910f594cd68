"""Editing a host's JSON file changes only our entry, to the byte (P8)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from retinue.setup import json_editor as editor
from retinue.setup.document_editor import DocumentUnreadable

PLACE = ("mcpServers", "retinue")
VALUE: dict[str, object] = {"command": "/opt/retinue", "args": ["serve"], "timeout": 600000}


def added(text: str) -> str:
    after = editor.set_entry(text, PLACE, VALUE)
    assert editor.read_entry(after, PLACE) == VALUE
    assert editor.read_everything_else(after, PLACE) == editor.read_everything_else(text, PLACE)
    return after


def test_entry_is_added_last_in_the_style_of_the_others() -> None:
    text = '{\n\t"mcpServers": {\n\t\t"a": {"command": "x"}\n\t},\n\t"z": 1\n}\n'
    assert added(text) == (
        '{\n\t"mcpServers": {\n\t\t"a": {"command": "x"},\n'
        '\t\t"retinue": {\n\t\t\t"command": "/opt/retinue",\n\t\t\t"args": [\n\t\t\t\t"serve"\n\t\t\t],\n'
        '\t\t\t"timeout": 600000\n\t\t}\n\t},\n\t"z": 1\n}\n'
    )


def test_comment_after_the_last_entry_stays_on_its_line() -> None:
    text = '{"mcpServers": {\n  "a": 1 // mine\n  // later\n}}'
    assert added(text).startswith('{"mcpServers": {\n  "a": 1, // mine\n  "retinue": {')
    assert added(text).endswith("}\n  // later\n}}")


def test_trailing_comma_style_is_kept() -> None:
    after = added('{\n  "mcpServers": {\n    "a": 1,\n  },\n}')
    assert after.endswith("    },\n  },\n}")


def test_line_endings_of_the_file_are_kept() -> None:
    after = added('{\r\n  "mcpServers": {\r\n    "a": 1\r\n  }\r\n}')
    assert "\n" not in after.replace("\r\n", "")


def test_file_on_one_line_stays_on_one_line() -> None:
    assert added('{"mcpServers":{"a":{}}}').count("\n") == 0


@pytest.mark.parametrize(
    ("text", "after_removal"),
    [
        ('{"mcpServers": {}}', '{"mcpServers": {}}'),
        ('{\n  "mcpServers": {\n  }\n}\n', '{\n  "mcpServers": {}\n}\n'),
        ("{}", '{\n  "mcpServers": {}\n}'),
        ('{"z": [1, 2]}', '{"z": [1, 2], "mcpServers": {}}'),
        ('{\n    "z": 1\n}', '{\n    "z": 1,\n    "mcpServers": {}\n}'),
        ("", '{\n  "mcpServers": {}\n}\n'),
        (" \n", ' \n{\n  "mcpServers": {}\n}\n'),
        ("// only a comment", '// only a comment\n{\n  "mcpServers": {}\n}\n'),
        ('{"mcpServers": { /* none yet */ }}', '{"mcpServers": { /* none yet */ }}'),
        ('{"mcpServers": { // none yet\n}}', '{"mcpServers": { // none yet\n}}'),
    ],
)
def test_missing_container_is_created_and_stays_empty_after_removal(text: str, after_removal: str) -> None:
    assert editor.remove_entry(added(text), PLACE) == after_removal


def test_existing_entry_is_replaced_in_place() -> None:
    text = '{"mcpServers": {\n  "retinue": {"command": "old"}, // ours\n  "b": 2\n}}'
    after = added(text)
    assert after.startswith('{"mcpServers": {\n  "retinue": {\n    "command": "/opt/retinue"')
    assert after.endswith('}, // ours\n  "b": 2\n}}')
    assert added(after) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"mcpServers": {"retinue": 1, "b": 2}}', '{"mcpServers": { "b": 2}}'),
        (
            '{"mcpServers": {\n  "a": 1, // note\n  "retinue": 0, "b": 2\n}}',
            '{"mcpServers": {\n  "a": 1, // note\n   "b": 2\n}}',
        ),
        (
            '{"mcpServers": {\n  "a": 1, // note\n  "retinue": 0 }}',
            '{"mcpServers": {\n  "a": 1 // note\n   }}',
        ),
        (
            '{"mcpServers": {\n  "a": 1,\n  "retinue": 0 /* kept */ ,\n  "b": 2\n}}',
            '{"mcpServers": {\n  "a": 1, /* kept */ \n  "b": 2\n}}',
        ),
        ('{"mcpServers": {\n  "retinue": null\n}}', '{"mcpServers": {}}'),
        ('{"mcpServers": {"a": 1}}', '{"mcpServers": {"a": 1}}'),
        ("{}", "{}"),
        ("", ""),
    ],
)
def test_removing_a_handwritten_entry_changes_nothing_else(text: str, after: str) -> None:
    assert editor.remove_entry(text, PLACE) == after
    assert editor.read_entry(after, PLACE) is None
    assert editor.read_everything_else(after, PLACE) == editor.read_everything_else(text, PLACE)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[1]", "not an object"),
        ('{"mcpServers": []}', "not an object"),
        ('{"mcpServers": null}', "not an object"),
        ('{"a": 1, "a": 2}', "line 1: duplicate key in an object"),
        ('{"mcpServers": {}, "x": {\n"a": 1,\n"a": 2}}', "line 3: duplicate key"),
        ('{"a": 1', "line 1"),
        ('{"a" 1}', "expected ':'"),
        ('{"a": 1 "b": 2}', "expected ','"),
        ('{"a": [1 2]}', "expected ','"),
        ("{'a': 1}", "double quotes"),
        ('{"a": "x\ny"}', "double quotes"),
        ('{"a": "\\x"}', "not a valid JSON value"),
        ('{"a": NaN}', "expected a value"),
        ('{"a": 01}', "not a valid JSON value"),
        ('{"a": 1} {}', "unexpected text after the end"),
        ('{"a": /* open', "expected a value"),
        ('{,"a": 1}', "double quotes"),
        ('{"a": [' * 300 + "]}" * 300, "too deeply"),
        ("{" * 100_000, "line 1"),
    ],
)
def test_file_that_does_not_parse_is_refused_with_the_line_number(text: str, complaint: str) -> None:
    for attempt in (lambda: editor.set_entry(text, PLACE, VALUE), lambda: editor.remove_entry(text, PLACE)):
        with pytest.raises(DocumentUnreadable, match=complaint):
            attempt()


def test_masking_hides_values_and_comments_of_others() -> None:
    """P6: another server's token must not appear in a diff."""
    text = (
        '{"a": {"env": {"KEY": "sk-\\"secret"}, "args": ["--token=s3cr3t"]}, // pw: hunter2\n'
        ' /* x */ "b": "serve"}'
    )
    shown = editor.mask_values(text, {"serve"})
    assert shown == '{"a": {"env": {"KEY": "…"}, "args": ["…"]}, // …\n /* … */ "b": "serve"}'


trivia = st.lists(
    st.sampled_from([" ", "\n", "\r\n", "\t", "  ", "/* c, } */", '// l " {\n', "/**/", "\n    "]),
    max_size=3,
).map("".join)
keys = st.text(max_size=6).filter(lambda key: key not in PLACE).map(lambda key: json.dumps(key))
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)).map(json.dumps)


@st.composite
def objects(draw: st.DrawFn, values: st.SearchStrategy[str], least: int = 0) -> str:
    """The text of an object with irregular space, comments and maybe a trailing comma."""
    names = draw(st.lists(keys, unique=True, min_size=least, max_size=3))
    members = [
        f"{draw(trivia)}{name}{draw(trivia)}:{draw(trivia)}{draw(values)}{draw(trivia)}" for name in names
    ]
    tail = f",{draw(trivia)}" if members and draw(st.booleans()) else draw(trivia) if not members else ""
    return "{" + ",".join(members) + tail + "}"


values = st.recursive(
    scalars,
    lambda inner: objects(inner) | st.lists(inner, max_size=2).map(lambda i: f"[{','.join(i)}]"),
    max_leaves=6,
)


@st.composite
def documents(draw: st.DrawFn, servers: st.SearchStrategy[str]) -> str:
    """A whole file with the servers' object among other keys."""
    before = [f"{key}:{draw(values)}" for key in draw(st.lists(keys, unique=True, max_size=2))]
    member = f'"mcpServers"{draw(trivia)}:{draw(trivia)}{draw(servers)}{draw(trivia)}'
    inside = f"{draw(trivia)},{draw(trivia)}".join([*before, member])
    comma = draw(st.sampled_from(["", ","]))
    return f"{draw(trivia)}{{{draw(trivia)}{inside}{comma}{draw(trivia)}}}{draw(trivia)}"


@settings(deadline=None)  # must not fail on a busy machine
@given(documents(objects(values, least=1)))
def test_adding_and_removing_restores_every_byte_of_any_file(text: str) -> None:
    assert editor.remove_entry(added(text), PLACE) == text


@settings(deadline=None)
@given(documents(objects(values)) | objects(values) | trivia)
def test_adding_and_removing_changes_no_other_value_of_any_file(text: str) -> None:
    after = editor.remove_entry(added(text), PLACE)
    assert editor.read_entry(after, PLACE) is None
    assert editor.read_everything_else(after, PLACE) == editor.read_everything_else(text, PLACE)


@settings(deadline=None)
@given(st.text(alphabet='{}[]",: /*\\ant1\n', max_size=40))
def test_any_text_is_edited_correctly_or_refused(text: str) -> None:
    try:
        after = added(text)
    except DocumentUnreadable:
        return
    assert editor.read_everything_else(
        editor.remove_entry(after, PLACE), PLACE
    ) == editor.read_everything_else(text, PLACE)
