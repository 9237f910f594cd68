"""Every program that a command line may run is found, and what it certainly runs is known."""

from __future__ import annotations

import pytest

from retinue.core.programs_run import plain_commands, possible_commands
from retinue.core.shell_command import SPLIT, UNKNOWN


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("sudo -u a b c", ("b", "c")),
        ("sh -c 'a b' c", ("a", "b")),
        ("env X=1 bash -ec 'a; b'", ("b",)),
        ("xargs -0 -n 1 a b", ("a", "b", SPLIT)),
        ("xargs -I % a % b", ("a", UNKNOWN, "b", SPLIT)),
        ("find . -name x -exec a {} +", ("a", UNKNOWN, "+", SPLIT)),
        ("eval a 'b c'", ("a", "b", "c")),
        ("bash <<E\na b\nE", ("a", "b")),
        ("cat x | bash", (SPLIT,)),
        ('sh -c "a $B"', (SPLIT,)),
    ],
)
def test_command_inside_another_is_found(text: str, command: tuple[str, ...]) -> None:
    assert command in possible_commands(text)


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("a b && c | d", (("a", "b"), ("c",), ("d",))),
        ("timeout 5m nice nohup a", (("a",),)),
        ("timeout --help", (("timeout", "--help"),)),
        ("a >/dev/null 2>&1", (("a",),)),
        ("a > b", None),
        ("a < b", None),
        ("a <<< b", None),
        ("X=1 a", None),
        ("X=1", None),
        ("a $B", None),
        ("(a)", None),
        ("! a", None),
        ("", None),
    ],
)
def test_plain_commands_are_those_whose_whole_effect_is_known_P7(
    text: str, commands: tuple[tuple[str, ...], ...] | None
) -> None:
    assert plain_commands(text) == commands
