"""An agent calls what it was given, and nothing else (P1, P7, P8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core import ASK_PARENT, OWN_TOOLS, TOOL_SYNONYMS, Canceled, ToolSpec
from retinue.redaction import SecretRedactor
from retinue.tools import Tool, Toolbox, select_tools
from retinue.tools.file_tools import FILE_TOOLS
from retinue.tools.toolbox import Arguments, parameters
from tests.tools.tool_support import answer, file_toolbox

pytestmark = pytest.mark.anyio


def echo(name: str = "echo") -> Tool:
    async def act(given: Arguments, tokens: int) -> str:
        return given.text("text")

    return Tool(ToolSpec(name, "Say it again.", parameters(("text",), text=("string", "it"))), act)


def test_an_agents_list_is_narrowed_to_what_exists_and_is_allowed() -> None:
    chosen = select_tools(
        ["Read", "Grep", "Bash", "telepathy", "LS"], FILE_TOOLS, lambda name: name != "list_folder"
    )
    assert chosen.names == ("read_file", "search")
    assert {tool.name: tool.reason for tool in chosen.withheld} == {
        "Bash": "the local executor does not have it",
        "telepathy": "there is no such tool",
        "LS": "it is not allowed",
    }
    assert "no Bash: " in chosen.describe_withheld()


def test_none_asks_for_everything_and_nothing_left_leaves_read_file() -> None:
    assert select_tools(None, FILE_TOOLS).names == FILE_TOOLS
    assert select_tools([], FILE_TOOLS).names == ("read_file",)
    assert select_tools(["Write", "Edit"], FILE_TOOLS).names == ("read_file",)


def test_the_fallback_does_not_overrule_a_prohibition() -> None:
    """P7"""
    assert select_tools(["Write"], FILE_TOOLS, lambda name: False).names == ()


def test_a_permission_for_a_part_does_not_become_one_for_the_whole() -> None:
    """P7: `Read(src/**)` would otherwise let an agent read everything."""
    chosen = select_tools(["Read(src/**)", "Grep"], FILE_TOOLS)
    assert chosen.names == ("search",)
    assert "some of its uses" in chosen.withheld[0].reason


async def test_a_call_of_a_tool_that_was_not_given_is_refused_in_one_line(tmp_path: Path) -> None:
    box = file_toolbox(tmp_path, {"a.py": ""})
    got = await box.call("Bash", {"command": "rm -rf /"}, 500)
    assert got.failed and "there is no tool 'Bash'" in got.text and "\n" not in got.text
    assert "did you mean read_file?" in await answer(box, "read_fil", path="a.py")


async def test_every_call_is_checked_at_its_own_moment(tmp_path: Path) -> None:
    allowed = {"read_file"}
    box = file_toolbox(tmp_path, {"a.py": "hello\n"}, allows=lambda name: name in allowed)
    assert "hello" in await answer(box, "read_file", path="a.py")
    allowed.clear()
    got = await box.call("read_file", {"path": "a.py"}, 500)
    assert got.failed and got.text == "error: read_file is not allowed"


async def test_what_leaves_is_redacted_and_fits() -> None:
    """P4, P6"""
    box = Toolbox([echo()], SecretRedactor(["hunter2-secret"]))
    assert "hunter2-secret" not in await answer(box, "echo", text="it is hunter2-secret")
    said = await answer(box, "echo", tokens=100, text="a line of words\n" * 300)
    assert "[cut:" in said and "of 301 lines" in said


async def test_a_servers_tool_is_found_without_its_prefix() -> None:
    box = Toolbox([echo("mcp__calc__add"), echo("mcp__calc__sub")], SecretRedactor())
    assert await answer(box, "add", text="1") == "1"


async def test_what_ends_the_run_is_not_told_to_the_model() -> None:
    async def act(given: Arguments, tokens: int) -> str:
        raise Canceled("the run was canceled")

    box = Toolbox([Tool(ToolSpec("slow", "", {}), act)], SecretRedactor())
    with pytest.raises(Canceled):
        await box.call("slow", {}, 100)


async def test_an_empty_box_says_so() -> None:
    assert "no tools" in await answer(Toolbox([], SecretRedactor()), "read_file", path="a")


def test_the_names_that_files_are_checked_against_are_those_of_the_tools() -> None:
    assert (*FILE_TOOLS, ASK_PARENT) == OWN_TOOLS
    assert set(TOOL_SYNONYMS.values()) <= set(OWN_TOOLS)
