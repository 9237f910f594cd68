"""Prompts give hosts slash commands, also in hosts that split what a person types."""

from __future__ import annotations

import pytest
from mcp import Client, MCPError

from tests.server.conftest import host

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("commands")]


async def prompt(client: Client, called: str, /, **arguments: str) -> str:
    [message] = (await client.get_prompt(called, arguments)).messages
    return message.content.model_dump()["text"]


async def test_whole_arguments_are_passed_on_as_they_are() -> None:
    async with host() as client:
        text = await prompt(client, "research", question="how are cookies merged?")
        assert text.endswith("\n\nhow are cookies merged?")
        text = await prompt(client, "agent", name="echo", task="say hello twice")
        assert "agent_name='echo'" in text
        assert text.endswith("\n\nsay hello twice")


async def test_a_single_word_tells_the_model_where_the_others_are() -> None:
    """Claude Code passes one word to each argument, and shows the whole line as command-args."""
    async with host() as client:
        text = await prompt(client, "research", question="how")
        assert "If command-args above have more words, the question is all of them." in text
        text = await prompt(client, "team", name="review", task="check")
        assert "If command-args above have more words, the task is all of them after the name." in text


async def test_lists_name_agents_and_teams() -> None:
    async with host() as client:
        assert "- echo (" in await prompt(client, "agents")
        assert "list of teams" in await prompt(client, "teams")
        listed = (await client.list_prompts()).prompts
    assert {each.name for each in listed} >= {"agents", "agent", "teams", "team", "research"}
    assert all(each.title and each.icons for each in listed)


async def test_wrong_prompts_are_errors_of_the_caller() -> None:
    async with host() as client:
        with pytest.raises(MCPError, match="did you mean research") as raised:
            await prompt(client, "reserch", question="x")
        assert raised.value.error.code == -32602
        with pytest.raises(MCPError, match="the prompt agent needs name and task"):
            await prompt(client, "agent")
