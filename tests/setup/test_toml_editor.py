"""Editing a host's TOML file changes only our entry, to the byte (P8)."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings, strategies as st

from retinue.setup import toml_editor as editor
from retinue.setup.document_editor import DocumentUnreadable

PLACE = ("mcp_servers", "retinue")
VALUE: dict[str, object] = {
    "command": "/opt/ü retinue",
    "args": ["serve", "--root", 'C:\\code "x"'],
    "env": {"A B": "c\x7fd"},
    "tool_timeout_sec": 600,
    "enabled": True,
}


def added(text: str) -> str:
    after = editor.set_entry(text, PLACE, VALUE)
    assert editor.read_entry(after, PLACE) == VALUE
    assert editor.read_everything_else(after, PLACE) == editor.read_everything_else(text, PLACE)
    return after


def test_entry_is_added_as_a_table_at_the_end() -> None:
    assert editor.set_entry('model = "x"\n', PLACE, {"command": "/r", "args": ["serve"]}) == (
        'model = "x"\n\n[mcp_servers.retinue]\ncommand = "/r"\nargs = ["serve"]\n'
    )


@pytest.mark.parametrize(
    "text",
    [
        'model = "x" # mine\n',
        '[mcp_servers.other]\ncommand = "x"\nargs = [\n  "[mcp_servers.retinue]", # no table\n]\n',
        "# only a comment\n",
        'a = """\n[mcp_servers.retinue]\ncommand = "no"\n"""\r\nb = 1\r\n',
        "a = '''\n[mcp_servers.retinue]\n'''\n",
        '"quoted key".\'x\' = {y = [1, 2], z = "}"}\n[[list]]\na = 2026-01-01\n[[list]]\n',
        'a = "\\\\" # "\nb = \'#\'\n',
    ],
)
def test_adding_and_removing_restores_every_byte(text: str) -> None:
    assert editor.remove_entry(added(text), PLACE) == text


def test_table_in_the_middle_is_replaced_in_place_with_its_sub_tables() -> None:
    head = "a = 1\n\n"
    own = '[mcp_servers.retinue] # old\ncommand = "old"\n# within\nargs = []\n'
    own += '[mcp_servers.retinue.env]\nA = "b"\n'
    tail = '\n# about the next one\n[mcp_servers.other]\ncommand = "x"\n'
    more = '[mcp_servers."retinue".tools.locate]\napproval_mode = "approve"\n'
    after = added(head + own + tail + more)
    assert after.startswith(head + "[mcp_servers.retinue]\n") and after.endswith(tail)
    assert editor.remove_entry(head + own + tail + more, PLACE) == head + tail


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a = ", "line 1"),
        ('a = 1\nb = "hunter2\n', "line 2"),
        ("mcp_servers = 1\n", "not a table"),
        ("mcp_servers = {}\n", "cannot be edited safely"),
        ("a = 1\na = 2\n", "not valid TOML"),
    ],
)
def test_text_that_cannot_be_edited_is_refused_without_repeating_it(text: str, complaint: str) -> None:
    """P6, P7."""
    with pytest.raises(DocumentUnreadable, match=complaint) as refusal:
        editor.set_entry(text, PLACE, VALUE)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    ['mcp_servers = {retinue = {command = "x"}}\n', '[mcp_servers]\nretinue.command = "x"\n'],
)
def test_entry_that_is_no_table_of_its_own_is_not_removed(text: str) -> None:
    with pytest.raises(DocumentUnreadable, match="by hand"):
        editor.remove_entry(text, PLACE)


def test_values_and_comments_of_others_are_masked() -> None:
    """P6."""
    text = (
        '# token hunter2\na = "hunter2" # hunter2\n["q hunter".x]\nb = ["hunter2", """\nhunter2"""]\n'
        "c = 'hunter2'\nd = 5\n# hunter2\n"
    )
    shown = editor.mask_values(text, ("/opt/retinue",))
    assert "hunter2" not in shown and '["q hunter".x]' in shown and "d = 5" in shown
    ours = editor.set_entry("", PLACE, {"command": "/opt/retinue"})
    assert 'command = "/opt/retinue"' in editor.mask_values(ours, ("/opt/retinue",))


KEYS = st.text("ab-_", min_size=1, max_size=4).filter(lambda key: key.strip("-_"))
SCALARS = st.one_of(
    st.integers(-9, 9),
    st.booleans(),
    st.text("a\\\"'#[]{}=\n\té", max_size=8),
    st.lists(st.text('x]#"', max_size=3)),
)


def _dump(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[\n  # ] comment\n  " + ", ".join(map(_dump, value)) + "\n]"  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, str):
        plain = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"""{plain}"""' if "\n" in value else f'"{plain}"'.replace("\t", "\\t")
    return str(value)


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(KEYS, SCALARS, max_size=4),
    st.dictionaries(KEYS, st.dictionaries(KEYS, SCALARS, max_size=3), max_size=3),
)
def test_generated_files_come_back_to_the_byte(
    top: dict[str, object], servers: dict[str, dict[str, object]]
) -> None:
    lines = [f"{key} = {_dump(value)} # c" for key, value in top.items()]
    for name, pairs in servers.items():
        lines += ["", f"[mcp_servers.{name}]", *(f"{key} = {_dump(value)}" for key, value in pairs.items())]
    text = "\n".join(lines) + "\n"
    tomllib.loads(text)
    assert editor.remove_entry(added(text), PLACE) == text
