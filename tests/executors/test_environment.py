"""A child sees an allowlisted environment and nothing else."""

from __future__ import annotations

import pytest

from retinue.core import ConfigInvalid
from retinue.executors.process import RUN_ID_VARIABLE, child_environment

SERVER = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_ALL": "C.UTF-8",
    "Path": "C:\\Windows",
    "OPENAI_API_KEY": "sk-1",
    "AWS_SECRET_ACCESS_KEY": "aws-2",
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "CLAUDE_PID": "7",
    "CLAUDE_EFFORT": "high",
    "AI_AGENT": "yes",
    "CODEX_HOME": "/codex",
    "GEMINI_CLI": "1",
    "OPENCODE_PERMISSION": "{}",
    "RETINUE_DATA_DIR": "/data",
    "RETINUE_CHILD_TOKEN": "t-3",
}


def test_only_the_allowlist_and_the_mark_of_the_run_are_passed_on() -> None:
    """P1, P6."""
    assert child_environment(SERVER, run_id="r1") == {
        "PATH": "/bin",
        "HOME": "/home/me",
        "LC_ALL": "C.UTF-8",
        "Path": "C:\\Windows",  # Windows spells it so
        RUN_ID_VARIABLE: "r1",
    }


def test_a_variable_that_the_agent_names_is_passed_on_and_patterns_work() -> None:
    """P1."""
    environment = child_environment(SERVER, run_id="r1", inherit=("openai_*",))
    assert environment["OPENAI_API_KEY"] == "sk-1"
    assert "AWS_SECRET_ACCESS_KEY" not in environment


def test_variables_that_nest_a_cli_in_itself_are_never_inherited_whatever_is_allowed() -> None:
    """P1: neither those nor the server's own settings."""
    environment = child_environment(SERVER, run_id="r1", inherit=("*",))
    assert set(environment) == {*SERVER, RUN_ID_VARIABLE} - {
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_PID",
        "CLAUDE_EFFORT",
        "AI_AGENT",
        "CODEX_HOME",
        "GEMINI_CLI",
        "OPENCODE_PERMISSION",
        "RETINUE_DATA_DIR",
        "RETINUE_CHILD_TOKEN",
    }


def test_an_agent_sets_its_own_variables_and_refers_to_the_servers() -> None:
    """P1: a secret is passed by naming it, under the name the program wants."""
    explicit = {
        "KEY": "Bearer ${OPENAI_API_KEY}",
        "CODEX_HOME": "/own",
        "PATH": "/opt/bin:${PATH}",
        "PRICE": "$$5 and $6 and $${PATH}",
    }
    environment = child_environment(SERVER, run_id="r1", explicit=explicit)
    assert environment["KEY"] == "Bearer sk-1"
    assert environment["CODEX_HOME"] == "/own"
    assert environment["PATH"] == "/opt/bin:/bin"
    assert environment["PRICE"] == "$5 and $6 and ${PATH}"


def test_a_value_is_not_expanded_twice() -> None:
    """P6: what a variable holds is data."""
    environment = child_environment(
        {"OUTER": "${INNER}", "INNER": "secret"}, run_id="r1", explicit={"V": "${OUTER}"}
    )
    assert environment["V"] == "${INNER}"


def test_a_missing_variable_is_named_and_no_value_is_shown() -> None:
    """P6, P8."""
    with pytest.raises(ConfigInvalid, match="KEY needs the environment variable ABSENT") as caught:
        child_environment(SERVER, run_id="r1", explicit={"KEY": "${OPENAI_API_KEY}${ABSENT}"})
    assert "sk-1" not in str(caught.value.as_dict())


@pytest.mark.parametrize(("name", "value"), [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "secret\0")])
def test_what_cannot_be_a_variable_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigInvalid, match="not a valid environment variable") as caught:
        child_environment({}, run_id="r1", explicit={name: value})
    assert "secret" not in str(caught.value.as_dict())


def test_the_mark_cannot_be_set_by_an_agent() -> None:
    """P5: a sweep relies on it."""
    assert child_environment({}, run_id="r1", explicit={RUN_ID_VARIABLE: "another"}) == {
        RUN_ID_VARIABLE: "r1"
    }
