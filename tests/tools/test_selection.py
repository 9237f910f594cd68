"""Which tools an agent gets (P7, P8)."""

from __future__ import annotations

from retinue.tools import add_server_tools, select_tools

FILE_TOOLS = ("read_file", "search", "find_files", "list_folder", "outline")


def test_agent_gets_the_requested_tools_that_exist_and_are_allowed() -> None:
    chosen = select_tools(
        ["Read", "Grep", "Bash", "TodoWrite", "telepathy", "LS"],
        FILE_TOOLS,
        lambda name: name != "list_folder",
        {"run_command": "it needs a sandbox"},
    )
    assert chosen.names == ("read_file", "search")
    assert {tool.name: tool.reason for tool in chosen.withheld} == {
        "Bash": "it needs a sandbox",
        "TodoWrite": "the local executor does not have it",
        "telepathy": "there is no such tool",
        "LS": "it is not allowed",
    }
    assert "no Bash: " in chosen.describe_withheld()


def test_none_requests_everything_and_an_agent_that_gets_none_of_its_tools_gets_read_file() -> None:
    assert select_tools(None, FILE_TOOLS).names == FILE_TOOLS
    assert select_tools(["Write", "Edit"], FILE_TOOLS).names == ("read_file",)


def test_agent_that_requests_no_tools_gets_none() -> None:
    assert select_tools([], FILE_TOOLS).names == ()


def test_read_file_is_no_fallback_if_it_is_not_allowed_P7() -> None:
    assert select_tools(["Write"], FILE_TOOLS, lambda name: False).names == ()


def test_request_for_some_uses_of_a_tool_does_not_grant_the_whole_tool_P7() -> None:
    """`Read(src/**)` would otherwise let an agent read everything."""
    chosen = select_tools(["Read(src/**)", "Grep"], FILE_TOOLS)
    assert chosen.names == ("search",)
    assert "some of its uses" in chosen.withheld[0].reason


def test_all_tools_of_mcp_servers_are_added_unless_the_agent_names_some() -> None:
    offered = ["mcp__calc__add", "mcp__calc__sub", "mcp__echo__say"]
    assert add_server_tools(None, offered) is None
    assert add_server_tools(["Read"], offered) == ["Read", *offered]
    assert add_server_tools(["Read", "mcp__calc"], offered) == ["Read", "mcp__calc__add", "mcp__calc__sub"]
    assert add_server_tools(["mcp__echo__say", "mcp__gone"], offered) == ["mcp__echo__say", "mcp__gone"]
