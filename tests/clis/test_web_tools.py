"""The real CLIs and the web: their own tools for it exist only while the user's door is open."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from retinue.config import user_settings_file
from retinue.core import RunId
from tests.clis.conftest import World
from tests.clis.replies import Say, Use
from tests.clis.words import ALL, CLAUDE, GEMINI, Words

pytestmark = [pytest.mark.anyio, pytest.mark.clis, pytest.mark.timeout(300)]

MakeWorld = Callable[..., AbstractAsyncContextManager[World]]
every_cli = pytest.mark.parametrize("words", ALL, ids=lambda words: words.name)
WEB_TOOLS = {
    "claude": ("WebFetch", "WebSearch"),
    "codex": ("web_search",),
    "gemini": ("web_fetch", "google_web_search"),
    "opencode": ("webfetch",),
}
"""What each CLI offers its model for the web by default. Opencode searches only with its own provider."""


def set_door(text: str) -> None:
    file = user_settings_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"[network]\n{text}\n", encoding="utf-8")


def offered(request: dict[str, Any]) -> str:
    """Return the tools that a model is offered. Claude names those that it loads later in its messages."""
    return json.dumps([request["tools"], request.get("messages") if "system" in request else None])


@every_cli
@pytest.mark.parametrize(
    "door", ["web = false", 'web = true\ndeny_hosts = ["example.org"]'], ids=["closed", "some-hosts"]
)
async def test_closed_door_takes_the_tools_of_the_web_from_the_model_P6_P7(
    words: Words, make_world: MakeWorld, door: str
) -> None:
    set_door(door)
    async with make_world(words, [Say("done")]) as world:
        outcome = await world.run()
        assert outcome["status"] == "success"
        shown = offered(world.stub.requests[0])
        assert [tool for tool in WEB_TOOLS[words.name] if f'"{tool}"' in shown or f"{tool}\\n" in shown] == []
        (note,) = [note for note in outcome["notes"] if WEB_TOOLS[words.name][0] in note]
        assert "settings file" in note


@every_cli
async def test_open_door_leaves_the_tools_of_the_web_to_the_model(
    words: Words, make_world: MakeWorld
) -> None:
    set_door("web = true")
    async with make_world(words, [Say("done")]) as world:
        outcome = await world.run()
        shown = offered(world.stub.requests[0])
        for tool in WEB_TOOLS[words.name]:
            assert tool in shown
        assert not [note for note in outcome.get("notes", ()) if "network" in note]


async def test_claude_cannot_call_what_a_closed_door_withholds_though_a_rule_allows_it_P7(
    make_world: MakeWorld,
) -> None:
    """Claude opens the documentation of well-known projects unasked, so asking alone would not hold."""
    fetch = Use("WebFetch", {"url": "https://docs.python.org/3/", "prompt": "what is new?"})
    header = "tools: [Read, WebFetch]\npermissions:\n  allow: [WebFetch]\n"
    async with make_world(CLAUDE, [fetch, Say("gave up")], header) as world:
        outcome = await world.run()
        assert "No such tool available: WebFetch" in world.stub.seen
        assert "no WebFetch: the web is off" in str(outcome["notes"])


async def test_gemini_with_the_users_settings_loses_its_web_tools_too_P7(make_world: MakeWorld) -> None:
    async with make_world(GEMINI, [Say("done")], "settings: [user]\n") as world:
        outcome = await world.run()
        assert outcome["status"] == "success", outcome
        shown = json.dumps(world.stub.requests[0]["tools"])
        assert "web_fetch" not in shown and "google_web_search" not in shown


async def test_search_of_the_web_by_gemini_is_told_apart_from_a_search_of_files_P7(
    make_world: MakeWorld,
) -> None:
    """Both are searches in its protocol. A run that has read the web asks for permissions with a warning."""
    set_door("web = true")
    search = Use("google_web_search", {"query": "what is new in Python"})
    script = [search, Say("a page says: run it"), Use("grep_search", {"pattern": "x"}), Say("done")]
    async with make_world(GEMINI, script) as world:
        outcome = await world.run()
        assert outcome["receipt"]["tool_calls"] == {"WebSearch": 1, "Grep": 1}, outcome
        assert world.runs.supervisor.has_read_web(RunId.parse(outcome["run_id"]))
