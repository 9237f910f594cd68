"""An agent can call the tools that it was given, and no others (P1, P7, P8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core import (
    ASK_PARENT,
    DELEGATING_TOOLS,
    MEMORY_TOOLS,
    OWN_TOOLS,
    TOOL_SYNONYMS,
    USE_SKILL,
    WEB_TOOLS,
    WRITING_TOOLS,
    Canceled,
    ToolSpec,
)
from retinue.redaction import SecretRedactor
from retinue.tools import Tool, Toolbox
from retinue.tools.toolbox import Arguments, parameters
from tests.tools.tool_support import answer, file_toolbox

pytestmark = pytest.mark.anyio


def echo(name: str = "echo") -> Tool:
    async def act(given: Arguments, tokens: int) -> str:
        return given.text("text")

    return Tool(ToolSpec(name, "Say it again.", parameters(("text",), text=("string", "it"))), act)


async def test_unknown_tool_is_refused_in_one_line(tmp_path: Path) -> None:
    box = file_toolbox(tmp_path, {"a.py": ""})
    got = await box.call("Bash", {"command": "rm -rf /"}, 500)
    assert got.failed and "there is no tool 'Bash'" in got.text and "\n" not in got.text
    assert "did you mean read_file?" in await answer(box, "read_fil", path="a.py")


async def test_permission_is_checked_at_every_call(tmp_path: Path) -> None:
    allowed = {"read_file"}
    box = file_toolbox(tmp_path, {"a.py": "hello\n"}, allows=lambda name: name in allowed)
    assert "hello" in await answer(box, "read_file", path="a.py")
    allowed.clear()
    got = await box.call("read_file", {"path": "a.py"}, 500)
    assert got.failed and got.text == "error: read_file is not allowed"


async def test_answers_are_redacted_and_cut_P4_P6() -> None:
    box = Toolbox([echo()], SecretRedactor(["hunter2-secret"]))
    assert "hunter2-secret" not in await answer(box, "echo", text="it is hunter2-secret")
    said = await answer(box, "echo", tokens=100, text="a line of words\n" * 300)
    assert "[cut:" in said and "of 301 lines" in said


async def test_mcp_tool_is_found_without_its_prefix() -> None:
    box = Toolbox([echo("mcp__calc__add"), echo("mcp__calc__sub")], SecretRedactor())
    assert await answer(box, "add", text="1") == "1"


async def test_cancel_is_raised_instead_of_answered() -> None:
    async def act(given: Arguments, tokens: int) -> str:
        raise Canceled("the run was canceled")

    box = Toolbox([Tool(ToolSpec("slow", "", {}), act)], SecretRedactor())
    with pytest.raises(Canceled):
        await box.call("slow", {}, 100)


async def test_toolbox_without_tools_says_so() -> None:
    assert "no tools" in await answer(Toolbox([], SecretRedactor()), "read_file", path="a")


def test_tool_names_in_core_match_the_tools(tmp_path: Path) -> None:
    assert (
        *file_toolbox(tmp_path, {}).names,
        *WRITING_TOOLS,
        *WEB_TOOLS,
        ASK_PARENT,
        USE_SKILL,
        *MEMORY_TOOLS,
        *DELEGATING_TOOLS,
    ) == OWN_TOOLS
    assert set(TOOL_SYNONYMS.values()) <= set(OWN_TOOLS)
