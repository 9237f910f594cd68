"""What a call acts on is taken from the arguments of its tool."""

from __future__ import annotations

import pytest

from retinue.core.tool_arguments import find_subjects

FOLDER = "/work/project"


@pytest.mark.parametrize(
    ("tool", "arguments", "targets", "suspects"),
    [
        ("Bash", {"command": "ls", "timeout": 5, "description": "d"}, ("ls",), ()),
        ("Bash", {"command": "ls", "workdir": FOLDER}, ("ls",), ()),
        ("Bash", {"command": "ls", "workdir": "/etc"}, ("ls",), ("workdir", "/etc")),
        ("Bash", {"command": ["rm", "x"]}, (), ("x", "rm")),
        ("Bash", {"cmd": "ls", "command": "rm"}, ("rm", "ls"), ()),
        ("Edit", {"filePath": "a", "oldString": "b", "newString": "c"}, ("a",), ()),
        ("Edit", {"file_path": "a", "x": None}, ("a",), ()),
        ("Edit", {"file_path": "a", "x": True}, ("a",), ("x",)),
        ("Edit", {"file_path": "a", "x": {"y": ["b c"]}}, ("a",), ("x", "b c", "b", "c", "y")),
        ("Grep", {"pattern": "x"}, (".",), ()),
        ("Glob", {"pattern": "src/a/*.py"}, (".", "src/a"), ()),
        ("Glob", {"pattern": "/etc/*"}, (".", "/etc"), ()),
        ("Glob", {"pattern": "*/../../x", "path": "src"}, ("src", "/"), ()),
        ("WebFetch", {"prompt": "see a.org"}, (), ("url", "see a.org", "see", "a.org")),
        ("Task", {"subagent_type": "reviewer", "prompt": "p"}, ("reviewer",), ()),
    ],
)
def test_subjects_of_a_call(
    tool: str, arguments: dict[str, object], targets: tuple[str, ...], suspects: tuple[str, ...]
) -> None:
    found = find_subjects(tool, arguments, FOLDER)
    assert found is not None
    assert set(found.targets) == set(targets)
    assert found.targets[:1] == targets[:1]
    assert set(found.suspects) == set(suspects)


def test_tool_that_is_not_in_the_table_has_no_subjects() -> None:
    assert find_subjects("mcp__a__b", {"path": "x"}, FOLDER) is None
