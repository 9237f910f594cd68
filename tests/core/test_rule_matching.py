"""Permission rules match the calls they describe and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core import PermissionRule, ToolRequest, decide_by_rules, exact_rule
from retinue.core.rule_matching import is_allowed, may_match

FOLDER = "/work/project"

ALLOWED = [
    ("Bash", "rm -rf /"),
    ("Bash(*)", "rm -rf /"),
    ("Bash(curl:*)", "curl"),
    ("Bash(curl:*)", "curl -s https://example.org/a?b=c"),
    ("Bash(git *)", "git status"),
    ("bash(git *)", "git status"),
    ("Bash(echo 'a;b')", "echo 'a;b'"),
    ("Bash(git status)", "git  status"),
    ("Bash(git:*)", "git status && git diff | git apply; git log &"),
    ("Bash(git:*)", "git log 2>&1 >/dev/null"),
    ("Bash(pytest:*)", "timeout 60 pytest -x"),
    ("Bash(pytest:*)", "nice -n 5 nohup pytest -x"),
    ("Bash(ls:*)", "ls *.py"),
    ("Bash(echo:*)", "echo 'a; $(b)' \"c|d\""),
    ("Bash(find:*)", "find . -name '*.py'"),
    ("Bash(sudo apt:*)", "sudo apt update"),
    ("Bash(bash:*)", "bash build.sh"),
    ("Bash(touch x > y)", "touch x > y"),
    ("Bash(git * main)", "git push origin main"),
    ("Bash(npm run test*)", "npm run test:unit --watch"),
    ("Bash(ls '*')", "ls '*'"),
]
NOT_ALLOWED = [
    ("Bash(curl:*)", "curlew"),
    ("Bash(curl:*)", "./curl"),
    ("Bash(curl:*)", "/tmp/curl"),
    ("Bash(curl:*)", "curl a; rm b"),
    ("Bash(curl:*)", "curl a && rm b"),
    ("Bash(curl:*)", "curl a | sh"),
    ("Bash(curl:*)", "curl $(rm b)"),
    ("Bash(curl:*)", "curl `rm b`"),
    ("Bash(curl:*)", "curl $SECRET"),
    ("Bash(curl:*)", "curl a > ~/.bashrc"),
    ("Bash(curl:*)", "curl a < key"),
    ("Bash(curl:*)", "curl a\nrm b"),
    ("Bash(curl:*)", "X=1 curl a"),
    ("Bash(curl:*)", "curl() { rm b; }; curl"),
    ("Bash(curl:*)", "curl 'a"),
    ("Bash(git status)", "git status -s"),
    ("Bash(git:*)", "timeout 60 rm x"),
    ("Bash(find:*)", "find . -exec rm {} \\;"),
    ("Bash(find:*)", "find . -delete"),
    ("Bash(xargs:*)", "xargs rm"),
    ("Bash(env:*)", "env rm x"),
    ("Bash(sudo:*)", "sudo rm x"),
    ("Bash(bash:*)", "bash -c 'rm x'"),
    ("Bash(bash:*)", "bash"),
    ("Bash(bash:*)", "bash /dev/stdin"),
    ("Bash(sudo apt:*)", "sudo -u bob apt"),
    ("Bash(:*)", "rm x"),
    ("Bash(git * main)", "git push origin main --force"),
    ("Bash(git * main)", "git push; rm main"),
    ("Bash(env * x)", "env rm x"),
    ("Bash(l*)", "ls"),
    ("Bash(ls '*')", "ls x"),
    ("Bash(ls a?)", "ls ab"),
    ("Bash(cat src/*)", "cat src/../secrets/key"),
    ("Edit", "git status"),
]


def allows(rule: str, asked: ToolRequest) -> bool:
    return is_allowed(asked, [PermissionRule.parse(rule)])


def denies(rule: str, asked: ToolRequest) -> bool:
    return may_match(PermissionRule.parse(rule), asked)


@pytest.mark.parametrize(("rule", "command"), ALLOWED)
def test_rule_allows_the_command(rule: str, command: str) -> None:
    assert allows(rule, ToolRequest("Bash", command))


@pytest.mark.parametrize(("rule", "command"), NOT_ALLOWED)
def test_rule_does_not_allow_what_only_begins_like_it_P7(rule: str, command: str) -> None:
    assert not allows(rule, ToolRequest("Bash", command))


def test_several_rules_allow_the_parts_of_a_command() -> None:
    asked = ToolRequest("Bash", "git pull && make test")
    assert decide_by_rules(asked, ["Bash(git:*)"], []) is None
    verdict = decide_by_rules(asked, ["Bash(git:*)", "Bash(make:*)"], [])
    assert verdict is not None
    assert verdict.allowed


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("Bash(git push:*)", "git -C x push"),
        ("Bash(git push:*)", "git -c a=b --no-pager push origin"),
        ("Bash(git push:*)", "git $WHAT"),
        ("Bash(git push)", "git push -v"),
        ("Bash(git push*)", "git push-all"),
        ("Bash(git * main)", "git push origin main"),
        ("Bash(rm -rf:*)", "rm -r -f x"),
        ("Bash(rm -rf:*)", "rm x -fR"),
        ("Bash(rm -rf:*)", "rm --recursive --force x"),
        ("Bash(rm -rf /)", "rm -rf //"),
        ("Bash(RM:*)", "rm x"),
        ("Bash(curl * | sh)", "curl a | sh"),
        ("Bash(*)", "ls"),
        ("bash(*)", "echo 'unfinished"),
    ],
)
def test_rule_denies_other_forms_of_the_command_P7(rule: str, command: str) -> None:
    assert denies(rule, ToolRequest("Bash", command))


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("Bash(rm:*)", "ls rm"),
        ("Bash(rm:*)", "rmdir x"),
        ("Bash(rm:*)", "git rm x"),
        ("Bash(rm:*)", "echo 'rm x' >> notes"),
        ("Bash(rm:*)", "find . -exec grep x {} \\;"),
        ("Bash(rm:*)", "ls | xargs -I{} echo {}"),
        ("Bash(git push:*)", "git commit -m push"),
        ("Bash(git push)", "git push origin main"),
        ("Bash(rm -rf:*)", "rm x"),
    ],
)
def test_rule_does_not_deny_other_commands(rule: str, command: str) -> None:
    assert not denies(rule, ToolRequest("Bash", command, folder=FOLDER))


def test_deny_wins_over_allow() -> None:
    verdict = decide_by_rules(ToolRequest("Bash", "git push"), ["Bash(git:*)"], ["Bash(git push:*)"])
    assert verdict is not None
    assert not verdict.allowed


def test_call_that_no_rule_matches_is_not_decided() -> None:
    assert decide_by_rules(ToolRequest("Bash", "ls"), ["Edit"], ["Bash(rm:*)"]) is None


@pytest.mark.parametrize("rule", ["mcp__echo", "mcp__echo__echo", "mcp__echo__*"])
def test_rule_matches_an_mcp_server_and_its_tools(rule: str) -> None:
    assert allows(rule, ToolRequest("mcp__echo__echo"))
    assert not allows(rule, ToolRequest("mcp__echoes__echo"))
    assert denies(rule, ToolRequest("mcp__Echo__echo"))
    assert not denies(rule, ToolRequest("mcp__echoes__echo"))


@pytest.mark.parametrize(
    ("rule", "tool", "path"),
    [
        ("Edit(src/**)", "Edit", "src/a/b.py"),
        ("Edit(src/**)", "Write", f"{FOLDER}/src/a/b.py"),
        ("Edit(src)", "MultiEdit", "src/a/b.py"),
        ("Edit(src/*.py)", "Edit", "./src/../src/a.py"),
        ("Edit(/src/**)", "Edit", "src/a.py"),
        ("Read(//etc/hosts)", "Read", "/etc/hosts"),
        ("Read(src/**)", "Grep", "src/a"),
        ("Read(*.md)", "Read", "a.md"),
    ],
)
def test_rule_allows_the_file(rule: str, tool: str, path: str) -> None:
    assert allows(rule, ToolRequest(tool, path, folder=FOLDER))


@pytest.mark.parametrize(
    ("rule", "tool", "path"),
    [
        ("Edit(src/**)", "Edit", "src/../secret"),
        ("Edit(src/**)", "Edit", "/etc/src/a.py"),
        ("Edit(src/**)", "Edit", "~/src/a.py"),
        ("Edit(src/*.py)", "Edit", "src/a/b.py"),
        ("Edit(src/**)", "Edit", "Src/a.py"),
        ("Edit(src/**)", "Edit", "src\\a.py"),
        ("Edit(src/**)", "Edit", "src/a\n.py"),
        ("Edit(/etc/**)", "Edit", "/etc/passwd"),
        ("Write(src/**)", "Edit", "src/a.py"),
        ("Edit(src/**)", "Read", "src/a.py"),
        ("Read(src/**)", "Grep", "."),
        ("Read(//proc/**)", "Read", "/proc/self/root/etc/passwd"),
    ],
)
def test_rule_does_not_allow_another_file_P7(rule: str, tool: str, path: str) -> None:
    assert not allows(rule, ToolRequest(tool, path, folder=FOLDER))


def test_rule_for_paths_allows_nothing_if_the_folder_is_not_known_P7() -> None:
    assert not allows("Edit(src/**)", ToolRequest("Edit", "src/a.py"))
    assert denies("Edit(secrets/**)", ToolRequest("Edit", "/work/project/secrets/key"))


def test_domain_rule_matches_the_domain_and_those_below_it() -> None:
    assert allows("WebFetch(domain:a.org)", ToolRequest("WebFetch", "https://www.a.org/x"))
    assert allows("WebFetch(domain:A.org)", ToolRequest("WebFetch", "https://a.org./x"))
    assert not allows("WebFetch(domain:a.org)", ToolRequest("WebFetch", "https://evil-a.org/x"))
    assert not allows("WebFetch(domain:a.org)", ToolRequest("WebFetch", "ftp://a.org/x"))


def test_search_above_denied_files_is_a_question_P7() -> None:
    asked = ToolRequest("Grep", ".", folder=FOLDER)
    assert decide_by_rules(asked, ["Grep"], ["Read(secrets/*)"]) is None
    below = decide_by_rules(ToolRequest("Grep", "src", folder=FOLDER), ["Grep"], ["Read(secrets/*)"])
    assert below is not None
    assert below.allowed


def test_rule_on_arguments_that_are_not_known_denies_and_never_allows_P7() -> None:
    assert not allows("TodoWrite(x)", ToolRequest.of("TodoWrite", {"todos": "x"}))
    assert denies("TodoWrite(y)", ToolRequest.of("TodoWrite", {"todos": "x"}))
    assert allows("TodoWrite", ToolRequest.of("TodoWrite", {"todos": "x"}))


@pytest.mark.parametrize("command", ["rm *", "git:*", "echo (a)", "echo hello", "ls a* b*", "a | b"])
def test_remembered_command_allows_itself_and_nothing_wider_P7(command: str) -> None:
    rule = exact_rule(ToolRequest("Bash", command))
    if rule is None:
        assert command.endswith("*")
    else:
        assert allows(rule, ToolRequest("Bash", command))
        assert not allows(rule, ToolRequest("Bash", f"{command} more"))
        assert not allows(rule, ToolRequest("Bash", f"{command}; more"))


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        (ToolRequest("Edit", "./src/../a.py", folder=FOLDER), "Edit(a.py)"),
        (ToolRequest("Edit", f"{FOLDER}/src/a.py", folder=FOLDER), "Edit(src/a.py)"),
        (ToolRequest("Edit", "/etc/hosts", folder=FOLDER), "Edit(//etc/hosts)"),
        (ToolRequest("Edit", "a[1].py", folder=FOLDER), None),
        (ToolRequest("Edit", "~/a.py", folder=FOLDER), None),
        (ToolRequest("Edit", "a.py"), None),
        (ToolRequest("Edit", "a.py", folder=FOLDER, also=("b.py",)), None),
        (ToolRequest("WebFetch", "https://a.org/x"), "WebFetch(https://a.org/x)"),
        (ToolRequest("WebFetch", "domain:a.org"), None),
        (ToolRequest("WebFetch", "https://b.org@a.org/x"), None),
        (ToolRequest("Bash", "touch x", suspects=("y",)), None),
        (ToolRequest("mcp__a__b"), "mcp__a__b"),
        (ToolRequest("Task", "reviewer"), "Task(reviewer)"),
    ],
)
def test_remembered_rule_is_written_in_canonical_form_P7(asked: ToolRequest, rule: str | None) -> None:
    assert exact_rule(asked) == rule
    if rule is not None:
        assert allows(rule, asked)


def test_remembered_link_is_allowed_only_once_P7(tmp_path: Path) -> None:
    """The link may lead elsewhere the next time."""
    (tmp_path / "link").symlink_to("/etc/hosts")
    assert exact_rule(ToolRequest("Edit", "link", folder=str(tmp_path))) is None
