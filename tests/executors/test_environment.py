"""A child process gets only allowed variables, the agent's own variables and the run id."""

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


def test_only_allowed_variables_and_the_run_id_are_inherited() -> None:
    """P1, P6."""
    assert child_environment(SERVER, run_id="r1") == {
        "PATH": "/bin",
        "HOME": "/home/me",
        "LC_ALL": "C.UTF-8",
        "Path": "C:\\Windows",  # the spelling of Windows
        RUN_ID_VARIABLE: "r1",
    }


def test_a_variable_that_the_agent_names_is_inherited_and_patterns_work() -> None:
    """P1."""
    environment = child_environment(SERVER, run_id="r1", inherit=("openai_*",))
    assert environment["OPENAI_API_KEY"] == "sk-1"
    assert "AWS_SECRET_ACCESS_KEY" not in environment


def test_variables_of_other_clis_are_never_inherited_whatever_is_allowed() -> None:
    """P1: the server's own settings are not inherited either."""
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


def test_an_agent_sets_its_own_variables_from_those_of_the_server() -> None:
    """P1: an agent passes a secret by referring to it, under any name."""
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
    """P6: the value of a variable is data."""
    environment = child_environment(
        {"OUTER": "${INNER}", "INNER": "secret"}, run_id="r1", explicit={"V": "${OUTER}"}
    )
    assert environment["V"] == "${INNER}"


def test_the_error_for_a_missing_variable_names_it_and_shows_no_value() -> None:
    """P6, P8."""
    with pytest.raises(ConfigInvalid, match="KEY needs the environment variable ABSENT") as caught:
        child_environment(SERVER, run_id="r1", explicit={"KEY": "${OPENAI_API_KEY}${ABSENT}"})
    assert "sk-1" not in str(caught.value.as_dict())


@pytest.mark.parametrize(("name", "value"), [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "secret\0")])
def test_an_invalid_variable_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigInvalid, match="not a valid environment variable") as caught:
        child_environment({}, run_id="r1", explicit={name: value})
    assert "secret" not in str(caught.value.as_dict())


def test_an_agent_cannot_set_the_run_id() -> None:
    """P5: `end_processes` relies on it."""
    assert child_environment({}, run_id="r1", explicit={RUN_ID_VARIABLE: "another"}) == {
        RUN_ID_VARIABLE: "r1"
    }
