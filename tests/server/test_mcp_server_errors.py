"""Tool errors have one shape and contain no internal details (P6, P8)."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from mcp import Client

from retinue.core import errors
from retinue.server import build_server
from retinue.wiring import build_service, lifetime, read_settings

pytestmark = pytest.mark.anyio


async def crash(path: str) -> dict[str, object]:
    raise OSError(f"cannot open {path} with key hunter2")


async def refuse(path: str) -> dict[str, object]:
    raise errors.PathDenied(f"{path} is denied", hint="ask for another file", path=path)


async def add(first: int, second: int = 0) -> dict[str, object]:
    return {"sum": first + second}


async def negate(number: int) -> int:
    return -number


async def call(tool: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
    loaded = read_settings({})
    server = build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
    for function in (crash, refuse, add):
        server.add_tool(function, description="For this test.")
    async with Client(server) as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is not None
    assert json.loads(result.content[0].model_dump()["text"]) == result.structured_content
    return result.structured_content["error"], result.model_dump_json()


@pytest.mark.parametrize(
    ("tool", "given", "same"),
    [
        ("run_subagent", {"agent": "nobody", "task": "x"}, {"agent_name": "nobody", "prompt": "x"}),
        ("spawn_agent", {"agent_name": "nobody", "prompt": "x"}, {"agent": "nobody", "task": "x"}),
        ("check_subagent_status", {"run_id": "x"}, {"runId": "x"}),
        ("check_subagent_status", {"run_ids": ["x"]}, {"runId": "x"}),
        ("wait_for_runs", {"runId": "x"}, {"run_ids": ["x"]}),
        ("wait_for_runs", {"runIds": '["x"]'}, {"run_ids": ["x"]}),
        ("reply_subagent", {"run_id": "x", "message_id": "y", "answers": ["z"]}, {"runId": "x"}),
        ("create_handoff", {"open": ["x"], "question": ""}, {"still_open": ["x"]}),
        ("research_codebase", {"query": "x"}, {"question": "x"}),
        ("recall", {"question": "x"}, {"query": "x"}),
    ],
)
async def test_names_that_our_tools_have_for_the_same_argument_are_accepted_by_all(
    tool: str, given: dict[str, Any], same: dict[str, Any]
) -> None:
    """The host gets the same answer, so the arguments arrived."""
    missing = {"messageId": "y", "answer": "z"} if tool == "reply_subagent" else {}
    loaded = read_settings({})
    async with Client(build_server(build_service(loaded), ["all"], lifetime(loaded))) as client:
        answers = [await client.call_tool(tool, arguments) for arguments in (given, {**same, **missing})]
    assert answers[0].structured_content == answers[1].structured_content
    assert "no such argument" not in answers[0].model_dump_json()


async def test_two_names_for_one_argument_with_different_values_are_refused() -> None:
    error, _ = await call("check_subagent_status", {"runId": "a", "run_id": "b"})
    assert error["code"] == "invalid_input"
    assert "both mean runId" in error["message"]


async def test_a_wrong_tool_name_is_answered_with_near_ones() -> None:
    error, _ = await call("run_subagnt", {})
    assert "run_subagent" in error["hint"]
    error, _ = await call("zzz", {})
    assert "list_agents" in error["hint"]


@pytest.mark.parametrize("arguments", [{"number": "many"}, {"number": 1, "nubmer": 1}])
async def test_error_of_a_tool_with_output_fields_has_no_structured_content(
    arguments: dict[str, Any],
) -> None:
    """P9: clients check the structured content of errors too, and would report the mismatch instead."""
    loaded = read_settings({})
    server = build_server(build_service(loaded), loaded.settings.tools.groups, lifetime(loaded))
    server.add_tool(negate, description="For this test.")
    async with Client(server) as client:
        result = await client.call_tool("negate", arguments)
    assert result.is_error
    assert result.structured_content is None
    assert json.loads(result.content[0].model_dump()["text"])["error"]["code"] == "invalid_input"


async def test_details_of_a_crash_stay_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        error, everything = await call("crash", {"path": "/home/someone/secret.txt"})
    assert error["code"] == "internal_error"
    for inside in ("hunter2", "/home/someone", "Traceback", "OSError"):
        assert inside not in everything
    assert "hunter2" in caplog.text


async def test_retinue_error_arrives_with_code_hint_and_data() -> None:
    error, _ = await call("refuse", {"path": "a.py"})
    assert error == {
        "code": "path_denied",
        "message": "a.py is denied",
        "hint": "ask for another file",
        "data": {"path": "a.py"},
    }


@pytest.mark.parametrize(
    ("arguments", "argument", "problem"),
    [
        ({}, "first", "Field required"),
        ({"first": "many"}, "first", "valid integer"),
        ({"first": 1, "secnod": 2}, "secnod", "no such argument"),
        ({"first": None}, "first", "valid integer"),
    ],
)
async def test_wrong_argument_is_named(arguments: dict[str, Any], argument: str, problem: str) -> None:
    error, everything = await call("add", arguments)
    assert error["code"] == "invalid_input"
    assert error["data"]["arguments"][0]["argument"] == argument
    assert problem in error["data"]["arguments"][0]["problem"]
    assert "pydantic" not in everything


def test_every_error_has_its_own_code_and_is_in_the_tree() -> None:
    def tree(kind: type[errors.RetinueError]) -> list[type[errors.RetinueError]]:
        return [kind, *(below for child in kind.__subclasses__() for below in tree(child))]

    kinds = [kind for kind in tree(errors.RetinueError) if kind.__module__ == errors.__name__]
    assert len({kind.code for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert kind.__name__ in str(errors.__doc__)
