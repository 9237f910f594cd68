"""Editing a host's YAML file changes only our entry, to the byte (P8)."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from retinue.setup import yaml_editor as editor
from retinue.setup.document_editor import DocumentUnreadable

PLACE = ("extensions", "retinue")
VALUE: dict[str, object] = {"enabled": True, "cmd": "/opt/retinue", "args": ["serve"], "timeout": 600}


def added(text: str) -> str:
    after = editor.set_entry(text, PLACE, VALUE)
    assert editor.read_entry(after, PLACE) == VALUE
    assert editor.read_everything_else(after, PLACE) == editor.read_everything_else(text, PLACE)
    assert yaml.safe_load(after)["extensions"]["retinue"] == VALUE
    return after


def test_entry_is_added_as_a_block_with_the_indentation_of_the_file() -> None:
    text = (
        "GOOSE_MODEL: 'qwen' # local\nextensions: # mine\n    # tools\n"
        "    developer:\n        enabled: true\n"
    )
    assert added(text) == (
        "GOOSE_MODEL: 'qwen' # local\nextensions: # mine\n    retinue:\n        enabled: true\n"
        "        cmd: /opt/retinue\n        args:\n        - serve\n        timeout: 600\n"
        "    # tools\n    developer:\n        enabled: true\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "extensions:\n  developer:\n    enabled: true\n",
        "extensions:\n  developer:\n    enabled: true",
        "a: 1\nextensions:\n\n  # c\n\n  developer: {enabled: true}\n# end\nb: |\n  extensions:\n    x: 1\n",
        'note: "two\n  extensions:\n  lines"\nextensions:\n  developer:\n    x: 1\n',
        "extensions:\r\n  developer:\r\n    enabled: true\r\nb: 2\r\n",
        "extensions: {}\n",
        "extensions: {} # none yet\nb: 2\n",
        "--- # start\nextensions:\n  developer: &d\n    x: 1\n  other: *d\n...\n",
        "'extensions':\n  developer:\n    x: 1\n",
        "extensions:\n  developer:\n    text: |+\n      kept\n\n\nb: 1\n",
    ],
)
def test_adding_and_removing_restores_every_byte(text: str) -> None:
    assert editor.remove_entry(added(text), PLACE) == text


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", "extensions: {}\n"),
        ("# nothing yet\n", "# nothing yet\nextensions: {}\n"),
        ("a: 1\n", "a: 1\nextensions: {}\n"),
        ("a: 1", "a: 1\nextensions: {}\n"),
        ("extensions:\n", "extensions: {}\n"),
        ("extensions:", "extensions: {}\n"),
        ("extensions: {}", "extensions: {}\n"),
        ("extensions: # none\nb: 1\n", "extensions: {} # none\nb: 1\n"),
    ],
)
def test_missing_container_is_created_and_stays_empty_after_removal(text: str, after: str) -> None:
    assert editor.remove_entry(added(text), PLACE) == after


def test_existing_entry_is_replaced_in_place() -> None:
    text = (
        "extensions:\n  a:\n    x: 1\n  retinue:\n    cmd: old # c\n    # inside\n    env: |\n      t\n"
        "  # b's\n  b: 2\n"
    )
    after = added(text)
    assert after.startswith("extensions:\n  a:\n    x: 1\n  retinue:\n    enabled: true\n")
    assert after.endswith("    timeout: 600\n  # b's\n  b: 2\n")
    assert added(after) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("extensions:\n  retinue: *x\n  b: 1\nx: 1\n", None),
        ("x: &x {a: 1}\nextensions:\n  retinue: *x\n  b: 1\n", "x: &x {a: 1}\nextensions:\n  b: 1\n"),
        ("extensions:\n  retinue:\n  b: 1\n", "extensions:\n  b: 1\n"),
        ("extensions:\n  retinue: {a: [1,\n    2]}\n  b: 1\n", "extensions:\n  b: 1\n"),
        ("extensions:\n  retinue:\n  - 1\n  - - 2\n    - 3\n  b: 1\n", "extensions:\n  b: 1\n"),
        ("extensions:\n  b: 1\n", "extensions:\n  b: 1\n"),
        ("b: 1\n", "b: 1\n"),
    ],
)
def test_removing_a_handwritten_entry_changes_nothing_else(text: str, after: str | None) -> None:
    if after is None:
        with pytest.raises(DocumentUnreadable):
            editor.remove_entry(text, PLACE)
        return
    assert editor.remove_entry(text, PLACE) == after
    assert editor.read_everything_else(after, PLACE) == editor.read_everything_else(text, PLACE)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- 1\n", "not a mapping"),
        ("just words\n", "not a mapping"),
        ("{extensions: {}}\n", "indented block"),
        ("a: 1\nextensions: {developer: {enabled: true}}\n", "line 2: .*indented block"),
        ("x: &x {a: 1}\nextensions: *x\n", "line 2: .*indented block"),
        ("? extensions\n: a: 1\n", "indented block"),
        ("extensions: [1]\n", "not a mapping"),
        ("extensions: text\n", "not a mapping"),
        ("extensions: null\n", "not a mapping"),
        ("a: 1\na: 2\n", "line 2: duplicate key in a mapping"),
        ("extensions:\n  a:\n    x: 1\n    x: 2\n", "line 4: duplicate key"),
        ("a: [1\n", "line"),
        ("a:\n\t- 1\n", "line 2"),
        ("a: 1\n---\nb: 2\n", "line"),
        ("a: \x07\n", "not valid"),
        ("a: " + "[" * 1_000, "not valid"),
        ("a: " + "x" * 300_000, "too large"),
    ],
)
def test_file_that_cannot_be_edited_safely_is_refused_with_the_line_number(text: str, complaint: str) -> None:
    for attempt in (lambda: editor.set_entry(text, PLACE, VALUE), lambda: editor.remove_entry(text, PLACE)):
        with pytest.raises(DocumentUnreadable, match=complaint):
            attempt()


def test_nested_aliases_do_not_blow_up_the_comparison() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    assert editor.read_everything_else(
        editor.set_entry(bomb, PLACE, VALUE), PLACE
    ) == editor.read_everything_else(bomb, PLACE)


def test_masking_hides_values_and_comments_of_others() -> None:
    """P6: another server's token must not appear in a diff."""
    text = (
        "a: sk-secret\n# pw hunter2\nb:\n  - tok1\n  - KEY: tok2\n  - serve\n"
        'c: |\n  free text\n"d": 5\ne: {x: tok3}\nf:\n  "quoted key": tok4\n'
    )
    assert editor.mask_values(text, {"serve"}) == (
        'a: …\n# …\nb:\n  - …\n  - KEY: …\n  - serve\nc: …\n…\n"d": 5\ne: …\nf:\n  "quoted key": …\n'
    )


names = st.text("abcxyz_", min_size=1, max_size=5).filter(lambda name: name not in (*PLACE, "y"))
data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A file as PyYAML dumps it in one of several styles, with comments between the top-level keys."""
    top = draw(st.dictionaries(names, data, max_size=3))
    neighbours = draw(st.dictionaries(names, data, min_size=1, max_size=3))
    indent = draw(st.sampled_from([2, 3, 4, 8]))
    pieces = [({key: value}) for key, value in top.items()]
    pieces.insert(draw(st.integers(0, len(pieces))), {"extensions": neighbours})
    comment = st.sampled_from(["", "# c\n", "\n", "\n  # odd\n\n"])
    written = [
        draw(comment) + yaml.safe_dump(piece, indent=indent, allow_unicode=True, default_flow_style=False)
        for piece in pieces
    ]
    return "".join(written) + draw(comment)


@settings(max_examples=40, deadline=None)  # PyYAML is slow
@given(documents(), st.booleans())
def test_adding_and_removing_restores_every_byte_of_any_file(text: str, windows: bool) -> None:
    text = text.replace("\n", "\r\n") if windows else text
    assert editor.remove_entry(added(text), PLACE) == text
