"""Rule matching: `deny` wins, more rules never weaken it, and a remembered answer allows nothing else."""

from __future__ import annotations

import os
from random import Random

from retinue.core import ToolRequest, decide_by_rules, exact_rule
from tests.attacks.rewriting import rewrite_path

NAME = "rules"
SHARE = 3
FOLDER = "/nowhere/project"
PARTS = ("src", "secrets", "key", "a.py", "..", ".", "", "etc", "Secrets", "~", "x y", "k*y", "[k]ey", "a\nb")
FILE_TOOLS = ("Edit", "Write", "MultiEdit", "Read", "Grep", "LS", "Glob")
RULES = (
    *(
        "Edit",
        "Read",
        "Bash",
        "Edit(src/**)",
        "Read(secrets/*)",
        "Edit(secrets/**)",
        "Read(//etc/**)",
        "Read(~/x)",
    ),
    *(
        "Bash(cat:*)",
        "Bash(git push:*)",
        "Bash(rm -rf:*)",
        "WebFetch(domain:a.org)",
        "mcp__a",
        "mcp__a__b",
        "*",
    ),
    *("Read(*.py)", "Edit(/src)", "Bash(cat secrets/key)", "Task(reviewer)", "Grep", "Write(src/a.py)"),
)
OTHERS: tuple[tuple[str, dict[str, object]], ...] = (
    ("Bash", {"command": "cat secrets/key"}),
    ("Bash", {"command": "git -C x push"}),
    ("Bash", {"command": "rm -r -f x", "timeout": 5}),
    ("Bash", {"command": "cat $X", "more": "rm -rf x"}),
    ("WebFetch", {"url": "https://a.org/"}),
    ("mcp__a__b", {"path": "secrets/key"}),
    ("Task", {"subagent_type": "reviewer"}),
)


def run_case(random: Random) -> None:
    if random.random() < 0.3:
        check_denied_file(random)
        return
    asked = random_call(random)
    allow, deny = (random.sample(RULES, random.randrange(4)) for _ in range(2))
    verdict = decide_by_rules(asked, allow, deny)
    if verdict is None or not verdict.allowed:
        more = decide_by_rules(asked, allow, [*deny, random.choice(RULES)])
        assert more is None or not more.allowed, "another rule that denies must not allow"
    if verdict is not None and not verdict.allowed:
        more = decide_by_rules(asked, RULES, deny)
        assert more is not None
        assert not more.allowed, "no rule that allows may outweigh one that denies"
    check_remembered(random, asked)


def random_call(random: Random) -> ToolRequest:
    if random.random() < 0.3:
        tool, arguments = random.choice(OTHERS)
        return ToolRequest.of(tool, arguments, FOLDER)
    start = random.choice(["", "", "/", f"{FOLDER}/", "~/", "./"])
    path = start + "/".join(random.choices(PARTS, k=random.randrange(1, 6)))
    name = random.choice(["file_path", "file_path", "filePath", "path", "pattern", "command"])
    arguments: dict[str, object] = {name: path}
    if random.random() < 0.2:
        arguments[random.choice(["content", "path", "target", "filePath"])] = random.choice(PARTS)
    return ToolRequest.of(random.choice(FILE_TOOLS), arguments, FOLDER)


def check_remembered(random: Random, asked: ToolRequest) -> None:
    rule = exact_rule(asked)
    if rule is None:
        return
    verdict = decide_by_rules(asked, [rule], [])
    assert verdict is not None, rule
    assert verdict.allowed, rule
    other = random_call(random)
    verdict = decide_by_rules(other, [rule], [])
    if verdict is not None and other.tool not in ("Grep", "LS", "Glob"):
        wanted, found = (os.path.normpath(f"{FOLDER}/{each.subject}") for each in (asked, other))
        is_same = asked.subject == other.subject or wanted == found or found.startswith(f"{wanted}/")
        is_absolute = "/" in (asked.subject[:1], other.subject[:1])
        assert is_same or is_absolute, f"{rule} also allows {other}"


def check_denied_file(random: Random) -> None:
    tool = random.choice(["Read", "Edit", "Write", "Bash", "Grep"])
    path = rewrite_path(random, FOLDER, random.choice(["secrets/key", "secrets/deep/key"]))
    argument = {"Bash": "command", "Grep": "path"}.get(tool, "file_path")
    value = f"{random.choice(['cat', 'head -n1', 'env cp', 'dd bs=1'])} {path}" if tool == "Bash" else path
    rule = "Edit(secrets/**)" if tool in ("Edit", "Write") else "Read(secrets/**)"
    verdict = decide_by_rules(ToolRequest.of(tool, {argument: value}, FOLDER), [tool, "Bash"], [rule])
    assert verdict is not None, value
    assert not verdict.allowed, value
