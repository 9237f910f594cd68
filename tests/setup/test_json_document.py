"""A host's JSON file is edited to the byte: only our own entry changes (P8)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from retinue.setup import json_document as editor
from retinue.setup.document import DocumentUnreadable

PLACE = ("mcpServers", "retinue")
VALUE: dict[str, object] = {"command": "/opt/retinue", "args": ["serve"], "timeout": 600000}


def added(text: str) -> str:
    after = editor.put(text, PLACE, VALUE)
    assert editor.own(after, PLACE) == VALUE
    assert editor.others(after, PLACE) == editor.others(text, PLACE)
    return after


def test_entry_is_added_after_the_others_in_their_style() -> None:
    text = '{\n\t"mcpServers": {\n\t\t"a": {"command": "x"}\n\t},\n\t"z": 1\n}\n'
    assert added(text) == (
        '{\n\t"mcpServers": {\n\t\t"a": {"command": "x"},\n'
        '\t\t"retinue": {\n\t\t\t"command": "/opt/retinue",\n\t\t\t"args": [\n\t\t\t\t"serve"\n\t\t\t],\n'
        '\t\t\t"timeout": 600000\n\t\t}\n\t},\n\t"z": 1\n}\n'
    )


def test_comment_on_the_last_entrys_line_stays_on_that_line() -> None:
    text = '{"mcpServers": {\n  "a": 1 // mine\n  // later\n}}'
    assert added(text).startswith('{"mcpServers": {\n  "a": 1, // mine\n  "retinue": {')
    assert added(text).endswith("}\n  // later\n}}")


def test_trailing_comma_is_kept_as_the_files_own_habit() -> None:
    after = added('{\n  "mcpServers": {\n    "a": 1,\n  },\n}')
    assert after.endswith("    },\n  },\n}")


def test_line_endings_of_the_file_are_used() -> None:
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
def test_missing_or_empty_container_is_made_and_left_empty(text: str, after_removal: str) -> None:
    assert editor.take(added(text), PLACE) == after_removal


def test_existing_entry_is_replaced_where_it_stands() -> None:
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
def test_entry_put_there_by_hand_is_taken_out_with_nothing_else(text: str, after: str) -> None:
    assert editor.take(text, PLACE) == after
    assert editor.own(after, PLACE) is None
    assert editor.others(after, PLACE) == editor.others(text, PLACE)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[1]", "not an object"),
        ('{"mcpServers": []}', "not an object"),
        ('{"mcpServers": null}', "not an object"),
        ('{"a": 1, "a": 2}', "line 1: the same key stands twice"),
        ('{"mcpServers": {}, "x": {\n"a": 1,\n"a": 2}}', "line 3: the same key"),
        ('{"a": 1', "line 1"),
        ('{"a" 1}', "expected ':'"),
        ('{"a": 1 "b": 2}', "expected ','"),
        ('{"a": [1 2]}', "expected ','"),
        ("{'a': 1}", "double quotes"),
        ('{"a": "x\ny"}', "double quotes"),
        ('{"a": "\\x"}', "does not know"),
        ('{"a": NaN}', "expected a value"),
        ('{"a": 01}', "does not know"),
        ('{"a": 1} {}', "follows the end"),
        ('{"a": /* open', "expected a value"),
        ('{,"a": 1}', "double quotes"),
        ('{"a": [' * 300 + "]}" * 300, "too deeply"),
        ("{" * 100_000, "line 1"),
    ],
)
def test_file_that_does_not_parse_is_refused_with_the_line(text: str, complaint: str) -> None:
    for attempt in (lambda: editor.put(text, PLACE, VALUE), lambda: editor.take(text, PLACE)):
        with pytest.raises(DocumentUnreadable, match=complaint):
            attempt()


def test_values_and_comments_of_others_are_hidden_when_shown() -> None:
    """P6: a neighbour's token must not get into a diff."""
    text = (
        '{"a": {"env": {"KEY": "sk-\\"secret"}, "args": ["--token=s3cr3t"]}, // pw: hunter2\n'
        ' /* x */ "b": "serve"}'
    )
    shown = editor.masked(text, {"serve"})
    assert shown == '{"a": {"env": {"KEY": "…"}, "args": ["…"]}, // …\n /* … */ "b": "serve"}'


trivia = st.lists(
    st.sampled_from([" ", "\n", "\r\n", "\t", "  ", "/* c, } */", '// l " {\n', "/**/", "\n    "]),
    max_size=3,
).map("".join)
keys = st.text(max_size=6).filter(lambda key: key not in PLACE).map(lambda key: json.dumps(key))
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)).map(json.dumps)


@st.composite
def objects(draw: st.DrawFn, values: st.SearchStrategy[str], least: int = 0) -> str:
    """An object's text, with odd space, comments and perhaps a trailing comma."""
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
    """A whole file with the servers' object somewhere among other keys."""
    before = [f"{key}:{draw(values)}" for key in draw(st.lists(keys, unique=True, max_size=2))]
    member = f'"mcpServers"{draw(trivia)}:{draw(trivia)}{draw(servers)}{draw(trivia)}'
    inside = f"{draw(trivia)},{draw(trivia)}".join([*before, member])
    comma = draw(st.sampled_from(["", ","]))
    return f"{draw(trivia)}{{{draw(trivia)}{inside}{comma}{draw(trivia)}}}{draw(trivia)}"


@settings(deadline=None)  # a busy machine is no failure
@given(documents(objects(values, least=1)))
def test_adding_and_taking_out_gives_back_every_byte_of_any_file(text: str) -> None:
    assert editor.take(added(text), PLACE) == text


@settings(deadline=None)
@given(documents(objects(values)) | objects(values) | trivia)
def test_adding_and_taking_out_changes_no_other_value_of_any_file(text: str) -> None:
    after = editor.take(added(text), PLACE)
    assert editor.own(after, PLACE) is None
    assert editor.others(after, PLACE) == editor.others(text, PLACE)


@settings(deadline=None)
@given(st.text(alphabet='{}[]",: /*\\ant1\n', max_size=40))
def test_any_text_is_either_edited_faithfully_or_refused(text: str) -> None:
    try:
        after = added(text)
    except DocumentUnreadable:
        return
    assert editor.others(editor.take(after, PLACE), PLACE) == editor.others(text, PLACE)
