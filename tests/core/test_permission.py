"""Permission rules are read, and requests are built from the arguments that tools act on."""

from __future__ import annotations

import pytest

from retinue.core import ConfigInvalid, PermissionRule, ToolRequest, deny_all


@pytest.mark.parametrize("text", ["", "Bash(", "Bash) x", "a b", "(x)"])
def test_malformed_rule_is_refused(text: str) -> None:
    with pytest.raises(ConfigInvalid, match="not a permission rule"):
        PermissionRule.parse(text)


@pytest.mark.anyio
async def test_call_is_denied_if_nobody_can_be_asked_P7() -> None:
    assert not (await deny_all(ToolRequest("Bash", "ls"))).allowed


@pytest.mark.parametrize(
    ("tool", "arguments", "subject", "details"),
    [
        ("Bash", {"command": "ls"}, "ls", ""),
        ("Bash", {"command": "ls", "timeout": 5}, "ls", '{"timeout": 5}'),
        ("Write", {"file_path": "a", "content": "größe"}, "a", '{"content": "größe"}'),
        ("mcp__hub__read", {"path": "a"}, "", '{"path": "a"}'),
        ("Task", {}, "", ""),
    ],
)
def test_other_arguments_are_kept_for_the_person_who_decides(
    tool: str, arguments: dict[str, object], subject: str, details: str
) -> None:
    asked = ToolRequest.of(tool, arguments)
    assert (asked.subject, asked.details) == (subject, details)
    assert asked == ToolRequest(tool, subject)
