"""One setting in a settings file changes, and nothing else (P8)."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from retinue.config import NamedSetting, change_setting
from retinue.core import ConfigInvalid

FILE = """\
# mine
log_level = "info"  # quiet

[limits]
maxFilesRead = 10  # a comment
max_bytes_read = 1000

[commands.My-Agent]
argv = [
  "sh",   # [limits]
  "-c",
]

[tools]
groups = ["core"]
"""


@pytest.mark.parametrize(
    ("key", "value", "before", "after"),
    [
        ("log_level", "debug", 'log_level = "info"  # quiet', 'log_level = "debug"  # quiet'),
        ("limits.max_files_read", 7, "maxFilesRead = 10  # a comment", "maxFilesRead = 7  # a comment"),
        ("limits.max_bytes_read", 5, "max_bytes_read = 1000", "max_bytes_read = 5"),
        ("limits.max_response_tokens", 5, "read = 1000\n", "read = 1000\nmax_response_tokens = 5\n"),
        ("commands.My-Agent.timeout_ms", 5, "]\n\n[tools]", "]\ntimeout_ms = 5\n\n[tools]"),
        (
            "commands.My-Agent.argv",
            ("a", 'b"c'),
            'argv = [\n  "sh",   # [limits]\n  "-c",\n]',
            'argv = ["a", "b\\"c"]',
        ),
        ("roots", ("/a b",), '"info"  # quiet\n', '"info"  # quiet\nroots = ["/a b"]\n'),
        (
            "runtime.ask_person",
            True,
            'groups = ["core"]\n',
            'groups = ["core"]\n\n[runtime]\nask_person = true\n',
        ),
        ("limits.max_files_read", None, "maxFilesRead = 10  # a comment\n", ""),
    ],
)
def test_only_the_lines_of_the_setting_change(key: str, value: Any, before: str, after: str) -> None:
    assert before in FILE
    assert change_setting(FILE, NamedSetting.find(key), value) == FILE.replace(before, after, 1)


@pytest.mark.parametrize("text", ["", "# only a comment", "[limits]\n[tools]\n", "\n\n"])
@pytest.mark.parametrize(("key", "value"), [("log_level", "debug"), ("limits.max_files_read", 3)])
def test_setting_is_added_to_any_file(text: str, key: str, value: Any) -> None:
    changed = change_setting(text, NamedSetting.find(key), value)
    assert changed is not None
    found: Any = tomllib.loads(changed)
    for part in key.split("."):
        found = found[part]
    assert found == value
    assert change_setting(changed, NamedSetting.find(key), value) == changed


@pytest.mark.parametrize(
    "text",
    [
        "limits = { max_files_read = 1, max_bytes_read = 2 }\n",
        'log_level = """\n[limits]\nmax_files_read = 1\n"""\n[limits]\nmax_files_read = 2\n',
        "[limits]\nmax_files_read = 1\n[limits.x]\ny = 1\n",
        "limits.max_files_read = 1\n[tools]\n",
    ],
)
def test_odd_files_are_changed_rightly_or_not_at_all(text: str) -> None:
    before = tomllib.loads(text)
    changed = change_setting(text, NamedSetting.find("limits.max_files_read"), 9)
    if changed is not None:
        before["limits"]["max_files_read"] = 9
        assert tomllib.loads(changed) == before


def test_wrong_keys_and_values_are_refused() -> None:
    with pytest.raises(ConfigInvalid, match="did you mean limits"):
        NamedSetting.find("limits.max_fils_read")
    with pytest.raises(ConfigInvalid, match="must be an integer"):
        NamedSetting.find("limits.max_files_read").parse(["many"])
    with pytest.raises(ConfigInvalid, match="must be one of"):
        NamedSetting.find("log_level").parse(["loud"])
    assert NamedSetting.find("tools.groups").parse(["core,runs"]) == ("core", "runs")
    assert NamedSetting.find("tools.groups").parse(["core", "runs"]) == ("core", "runs")
