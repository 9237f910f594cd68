"""Frontmatter is split from the body and parsed; problems are reported with their lines."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from retinue.definitions import MalformedDefinition
from retinue.definitions.frontmatter import MAX_BYTES, MAX_HEADER_CHARS, MarkdownDocument, parse_markdown
from retinue.definitions.yaml_tree import (
    MAX_DEPTH,
    MAX_VALUES,
    ListNode,
    ScalarNode,
    TableNode,
    read_yaml,
    to_json,
)


def document(*lines: str, lenient: bool = False) -> MarkdownDocument:
    return parse_markdown("\n".join(lines).encode(), lenient=lenient)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("name", "a-b", "true", "x_1")),
            st.text("abcTrueNo:#'\"-[]{}!&*?|>%@`, .0123/\\~=\t\x85é", max_size=12),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_simple_header_means_the_same_as_yaml_says(pairs: list[tuple[str, str]]) -> None:
    lines = [f"{key}: {value}" for key, value in pairs]
    try:
        expected = read_yaml("\n".join(lines), 2)
    except MalformedDefinition:
        with pytest.raises(MalformedDefinition):
            document("---", *lines, "---")
        return
    if isinstance(expected, TableNode):
        assert document("---", *lines, "---").header == expected


def malformed(data: bytes, *, lenient: bool = False) -> tuple[int, str]:
    with pytest.raises(MalformedDefinition) as raised:
        parse_markdown(data, lenient=lenient)
    return raised.value.problem.line, str(raised.value.problem)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
def test_header_and_body_are_split_for_any_line_ending(newline: str, mark: bytes) -> None:
    text = newline.join(["---", "name: a", "list: [x, y]", "---", "", "One.", "Two.", ""])
    found = parse_markdown(mark + text.encode())
    assert to_json(found.header) == {"name": "a", "list": ["x", "y"]}
    assert found.body == "One.\nTwo."
    assert found.body_line == 5
    assert found.header.entries["list"].line == 3


@pytest.mark.parametrize(
    ("data", "line", "says"),
    [
        (b"", 1, "there is no header"),
        (b"Just a text.\n", 1, "there is no header"),
        (b"\n---\nname: a\n---\n", 1, "there is no header"),
        (b"---\nname: a\n", 1, "the header is not closed"),
        (b"---\nname: a\nname: b\n---\n", 3, "the key 'name' appears twice; the first is in line 2"),
        (b"---\na:\n  b: 1\n  b: 2\n---\n", 4, "the key 'b' appears twice"),
        (b"---\na: &x [1]\nb: *x\n---\n", 3, "an alias"),
        (b"---\na: 1\ndescription: one: two\n---\n", 3, "quote a value that contains `: `"),
        (b"---\na: [1\n---\n", 3, "not valid YAML"),
        (b"---\na: 1\n\tb: 2\n---\n", 3, "not valid YAML"),
        (b"---\n- a\n- b\n---\n", 2, "must consist of `key: value`"),
        (b"---\n[a]: 1\n---\n", 2, "a key must be plain text"),
        (b"---\na: 1\n--- b\n---\n", 3, "a second YAML document"),
        (b"---\na: 1\nb: \xff\n---\n", 3, "not UTF-8"),
        (b"---\na: 1\nb: '\x00'\n---\n", 3, "does not allow"),
    ],
)
def test_broken_file_is_reported_with_its_line(data: bytes, line: int, says: str) -> None:
    found, message = malformed(data)
    assert says in message
    assert found == line


def test_yaml_bombs_are_refused() -> None:
    """P2: aliases, depth, number of values and file size are limited."""
    laughs = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 9))
    assert "an alias" in malformed(f"---\nl0: &l0 [ha]\n{laughs}\n---\n".encode())[1]
    assert f"more than {MAX_DEPTH} levels deep" in malformed(b"---\na: " + b"[" * 20_000 + b"\n---\n")[1]
    assert f"more than {MAX_VALUES} values" in malformed(b"---\na: [" + b"1," * 6_000 + b"]\n---\n")[1]
    assert (
        "more than 65,536 characters"
        in malformed(b"---\na: " + b"x" * (MAX_HEADER_CHARS + 1) + b"\n---\n")[1]
    )
    assert "larger than" in malformed(b"---\nname: a\n---\n" + b"x" * MAX_BYTES)[1]


def test_scalars_keep_their_text() -> None:
    header = document("---", "on: yes", "no: [off, 007, 1e3, 12:30, ~]", "---").header
    assert header.entries["on"].value == ScalarNode("yes", "bool", 2)
    values = header.entries["no"].value
    assert isinstance(values, ListNode)
    assert [item.text for item in values.items if isinstance(item, ScalarNode)] == [
        "off",
        "007",
        "1e3",
        "12:30",
        "~",
    ]
    assert to_json(values) == [False, "007", "1e3", "12:30", None]


def test_header_may_be_empty() -> None:
    assert document("---", "---", "body").header == TableNode({}, 2)
    assert document("---", "# nothing", "---").header == TableNode({}, 2)


def test_header_that_is_not_quite_yaml_is_read_leniently_with_a_warning() -> None:
    lines = ["---", "name: a", "description: Use when: asked. <example>user: hi</example>", "---"]
    found = document(*lines, lenient=True)
    assert to_json(found.header) == {
        "name": "a",
        "description": "Use when: asked. <example>user: hi</example>",
    }
    [warning] = found.warnings
    assert (warning.line, warning.fatal) == (3, False)
    assert malformed("\n".join(lines).encode())[0] == 3


def test_broken_header_stays_an_error_in_lenient_mode() -> None:
    assert malformed(b"---\nname: a\ntools: [Read\n---\n", lenient=True)[0] == 4
