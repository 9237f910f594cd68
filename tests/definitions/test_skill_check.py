"""The check of skills: agrees with the reference validator, and names file, line and remedy."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from skills_ref.validator import validate  # pyright: ignore[reportMissingTypeStubs]

from retinue.definitions import DefinitionProblem, check_skill

NAMES = (
    *("api-errors", "a", "x" * 64, "x" * 65, "Big", "two--hyphens", "-lead", "trail-", "under_score", "ünï"),
    *("日本語", "123", "with space", "dot.ted", "a-1-b", "''", '""', "ﬁle", "no", "~", "1.5", "é" * 64),
)
DESCRIPTIONS = (
    *("Does it.", "d" * 1_024, "d" * 1_025, "''", '"  "', "", "~", "42", '"a: b # c"', "true"),
    *(">-\n  folded\n  text", "|\n  kept\n  text", "[a, b]", "{a: b}", "\n  nested: no", "\n  - item"),
)
OTHERS = (
    *("license: MIT", "license: ''", "compatibility: Needs git", f"compatibility: {'c' * 500}"),
    *(f"compatibility: {'c' * 501}", "compatibility:\n  - list", "metadata:\n  author: me\n  triggers: a, b"),
    *(
        "metadata: {a: b}",
        "allowed-tools: Read Bash(git:*)",
        "allowed-tools: [Read]",
        "allowed-tools:\n  - Read",
    ),
    *("unknown: 1", "triggers: deploy", "Name: x", "version: 2", "license: *alias", "license: &anchor MIT"),
    *("license: !!str MIT", "metadata:\n  a: [b]", "license: 'open", "metadata:\n    a: b\n  c: d"),
)


def generate(random: Random) -> tuple[str, str]:
    """A folder's name and a SKILL.md, right or wrong in one or two places."""
    name = random.choice(NAMES) if random.random() < 0.5 else "good-name"
    folder = name.strip("'\"") if random.random() < 0.85 else "other"
    lines = [f"name: {name}", f"description: {random.choice(DESCRIPTIONS[:2])}"]
    if random.random() < 0.4:
        lines[1] = f"description: {random.choice(DESCRIPTIONS)}"
    lines += random.sample(OTHERS, random.choice((0, 0, 1, 1, 2)))
    if random.random() < 0.1:
        lines.pop(random.randrange(2))
    if random.random() < 0.5:
        random.shuffle(lines)
    ending = random.choice(("\n", "\r\n"))
    fences = random.choice((("---", "---"),) * 8 + (("", ""), ("---", "")))
    text = "\n".join((fences[0], *lines, fences[1], "# Steps", "1. Do it."))
    return folder or "other", text.replace("\n", ending)


def test_reference_validator_agrees_on_200_generated_skills(tmp_path: Path) -> None:
    random = Random(18)  # noqa: S311 - no secrets
    verdicts: list[bool] = []
    for number in range(200):
        folder, text = generate(random)
        path = tmp_path / str(number) / folder
        path.mkdir(parents=True)
        (path / "SKILL.md").write_bytes(text.encode())
        theirs = validate(path)
        ours = [each for each in check_skill(text.encode(), folder, is_folder=True) if each.fatal]
        assert bool(ours) == bool(theirs), f"{folder}\n{text}\ntheirs: {theirs}\nours: {ours}"
        verdicts.append(not theirs)
    assert 40 < sum(verdicts) < 160, "too few skills of one kind to compare"


def problems_of(text: str, name: str = "mine", *, is_folder: bool = True) -> list[DefinitionProblem]:
    return check_skill(text.encode(), name, is_folder=is_folder)


@pytest.mark.parametrize(
    ("header", "line", "message"),
    [
        ("name: Mine\ndescription: d", 2, "'Mine' is not a valid name"),
        ("name: mine\ndescription:", 3, "description: expected text"),
        ("name: yours\ndescription: d", 2, "the name 'yours' is not that of the folder, 'mine'"),
        ("name: mine\ndescription: d\nlicence: MIT", 4, "there is no key 'licence'"),
        ("name: mine\ndescription: d\nname: mine", 4, "the key 'name' appears twice"),
        ("name: mine\ndescription: 'a' b", 3, "not valid YAML"),
    ],
)
def test_each_problem_has_its_line(header: str, line: int, message: str) -> None:
    found = [each for each in problems_of(f"---\n{header}\n---\nDo it.\n") if each.fatal]
    assert [(each.line, each.message[: len(message)]) for each in found][:1] == [(line, message)]


def test_claude_keys_are_warnings_and_nearby_keys_are_suggested() -> None:
    found = problems_of("---\nname: mine\ndescription: d\nuser-invocable: true\nlicens: MIT\n---\nDo it.\n")
    assert [(each.line, each.fatal, each.hint) for each in found] == [
        (4, False, "ignored"),
        (5, True, "did you mean license?"),
    ]


def test_single_file_may_have_triggers_or_no_header() -> None:
    assert (
        problems_of("---\nname: mine\ndescription: d\ntriggers: a release\n---\nDo it.", is_folder=False)
        == []
    )
    (plain,) = problems_of("# How to release\nDo it.", is_folder=False)
    assert (plain.fatal, plain.message) == (False, "there is no header")


def test_short_trigger_invisible_text_and_long_body_are_warnings() -> None:
    text = (
        "---\nname: mine\ndescription: d\nmetadata:\n  triggers: go, release\n---\n"
        + "line\n" * 501
        + "a\u200bb"
    )
    found = [(each.line, each.message, each.fatal) for each in problems_of(text)]
    assert (5, "the trigger 'go' is too short", False) in found
    assert (508, "an invisible character", False) in found
    assert any(message.startswith("the instructions have 502 lines") for _, message, _ in found)
