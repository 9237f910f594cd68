"""Permission rules match the calls they describe and no others."""

from __future__ import annotations

import pytest

from retinue.core import PermissionRule, ToolRequest, decide_by_rules, exact_rule
from retinue.core.rule_matching import is_allowed, may_match

ALLOWED = [
    ("Bash", "rm -rf /"),
    ("Bash(curl:*)", "curl"),
    ("Bash(curl:*)", "curl -s https://example.org/a?b=c"),
    ("Bash(git *)", "git status"),
    ("bash(git *)", "git status"),
    ("Bash(echo 'a;b')", "echo 'a;b'"),
]
NOT_ALLOWED = [
    ("Bash(curl:*)", "curlew"),
    ("Bash(curl:*)", "curl a; rm b"),
    ("Bash(curl:*)", "curl a && rm b"),
    ("Bash(curl:*)", "curl a | sh"),
    ("Bash(curl:*)", "curl $(rm b)"),
    ("Bash(curl:*)", "curl `rm b`"),
    ("Bash(curl:*)", "curl a > ~/.bashrc"),
    ("Bash(curl:*)", "curl a\nrm b"),
    ("Bash(curl:*)", "X=1 curl a"),
    ("Bash(git status)", "git status -s"),
    ("Edit", "git status"),
]


@pytest.mark.parametrize(("rule", "command"), ALLOWED)
def test_rule_allows_the_command(rule: str, command: str) -> None:
    assert allows(rule, ToolRequest("Bash", command))


@pytest.mark.parametrize(("rule", "command"), NOT_ALLOWED)
def test_rule_does_not_allow_what_only_begins_like_it_P7(rule: str, command: str) -> None:
    assert not allows(rule, ToolRequest("Bash", command))


@pytest.mark.parametrize("command", ["rm x", "echo a; rm x", "echo $(rm x)", "true && rm x", "(rm x)"])
def test_denied_command_is_found_anywhere_in_the_line_P7(command: str) -> None:
    assert PermissionRule.parse("Bash(rm:*)").denies(ToolRequest("Bash", command))


def test_deny_wins_over_allow() -> None:
    verdict = decide_by_rules(ToolRequest("Bash", "git push"), ["Bash(git:*)"], ["Bash(git push:*)"])
    assert verdict is not None
    assert not verdict.allowed


def test_call_that_no_rule_matches_is_not_decided() -> None:
    assert decide_by_rules(ToolRequest("Bash", "ls"), ["Edit"], ["Bash(rm:*)"]) is None


@pytest.mark.parametrize("rule", ["mcp__echo", "mcp__echo__echo", "mcp__echo__*"])
def test_rule_matches_an_mcp_server_and_its_tools(rule: str) -> None:
    assert PermissionRule.parse(rule).allows(ToolRequest("mcp__echo__echo"))
    assert not PermissionRule.parse(rule).allows(ToolRequest("mcp__echoes__echo"))


def test_paths_and_domains_are_matched_as_a_whole() -> None:
    assert PermissionRule.parse("Edit(src/**)").allows(ToolRequest("Edit", "src/a/b.py"))
    assert not PermissionRule.parse("Edit(src/**)").allows(ToolRequest("Edit", "src/../secret"))
    assert PermissionRule.parse("WebFetch(domain:a.org)").allows(
        ToolRequest("WebFetch", "https://www.a.org/x")
    )
    assert not PermissionRule.parse("WebFetch(domain:a.org)").allows(
        ToolRequest("WebFetch", "https://evil-a.org/x")
    )


@pytest.mark.parametrize("command", ["rm *", "git:*", "echo (a)", "echo hello"])
def test_remembered_call_allows_itself_and_nothing_wider_P7(command: str) -> None:
    rule = PermissionRule.exactly(ToolRequest("Bash", command))
    if rule is None:
        assert command.endswith("*")
    else:
        assert allows(rule, ToolRequest("Bash", command))
        assert not PermissionRule.parse(rule).allows(ToolRequest("Bash", f"{command} more"))


