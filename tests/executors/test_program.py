"""A command template is filled in argument by argument, and no value can become syntax."""

from __future__ import annotations

import pytest

from retinue.core import ConfigInvalid, InvalidInput
from retinue.executors import CommandTemplate
from retinue.executors.process.program import MAX_PROMPT_BYTES

VALUES = {"prompt": "do it; rm -rf $HOME {cwd} 'x' \"y\"\n--flag", "run_id": "r1", "cwd": "/w s"}


def test_values_replace_placeholders_and_stay_one_argument_each() -> None:
    """P1: no shell, no quoting, no second expansion."""
    template = CommandTemplate(("agent", "--id={run_id}", "{prompt}", "-C", "{cwd}", "a b"))
    assert template.fill(VALUES) == ("agent", "--id=r1", VALUES["prompt"], "-C", "/w s", "a b")
    assert template.takes_prompt


def test_doubled_braces_are_braces() -> None:
    template = CommandTemplate(("agent", '{{"id": "{run_id}"}}'))
    assert template.fill(VALUES) == ("agent", '{"id": "r1"}')
    assert not template.takes_prompt


@pytest.mark.parametrize(
    "argument",
    ["{secret}", "{}", "{0}", "{prompt.x}", "{prompt[0]}", "{prompt!r}", "{cwd:>9}", "{", "}", "a\0b"],
)
def test_a_wrong_placeholder_is_refused_when_the_configuration_is_read(argument: str) -> None:
    """P7."""
    with pytest.raises(ConfigInvalid) as caught:
        CommandTemplate(("agent", argument))
    assert caught.value.hint


@pytest.mark.parametrize("arguments", [(), ("",), (" ", "x"), ("{prompt}",), ("bin/{run_id}",)])
def test_a_command_needs_a_program_without_placeholders(arguments: tuple[str, ...]) -> None:
    """P1: the configuration chooses the program, never a value."""
    with pytest.raises(ConfigInvalid):
        CommandTemplate(arguments)


def test_a_prompt_too_long_for_an_argument_is_refused_with_a_hint() -> None:
    """P8: the limit counts bytes, not characters."""
    template = CommandTemplate(("agent", "{prompt}"))
    template.fill({**VALUES, "prompt": "x" * MAX_PROMPT_BYTES})
    for prompt in ("x" * (MAX_PROMPT_BYTES + 1), "ü" * (MAX_PROMPT_BYTES // 2 + 1)):
        with pytest.raises(InvalidInput, match="too long") as caught:
            template.fill({**VALUES, "prompt": prompt})
        assert caught.value.hint and "stdin" in caught.value.hint


def test_a_prompt_on_stdin_may_have_any_length() -> None:
    assert CommandTemplate(("agent",)).fill({**VALUES, "prompt": "x\0" * MAX_PROMPT_BYTES}) == ("agent",)


@pytest.mark.parametrize(
    ("program", "prompt"), [("agent", "a\0b"), ("agent.CMD", "calc"), ("c:/x/agent.bat", "x")]
)
def test_a_prompt_that_is_unsafe_as_an_argument_is_refused(program: str, prompt: str) -> None:
    """P1: NUL would end it early, and a shell reads the arguments of a batch file."""
    with pytest.raises(InvalidInput) as caught:
        CommandTemplate((program, "{prompt}")).fill({**VALUES, "prompt": prompt})
    assert caught.value.hint and "stdin" in caught.value.hint
