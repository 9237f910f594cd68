"""What a coding CLI is started with: environment, state, servers and flags."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import cast

import pytest

from retinue.core import (
    Budget,
    ConfigInvalid,
    McpServer,
    Permissions,
    ToolRequest,
    Unavailable,
    Verdict,
)
from retinue.executors import AcpProgram, ClaudeCli, CliExecutor, CodexCli, WebAccess
from retinue.executors.cli.cli_restrictions import UNKNOWN_WEB_TOOLS_NOTE, check_enforceable
from retinue.executors.cli.gemini import GeminiCli
from retinue.executors.cli.opencode import OpencodeCli
from tests.executors.cli.recorded_events import given_to_cli, play_recording
from tests.executors.cli_fakes import TASK, Stage, worker

pytestmark = pytest.mark.anyio


def claude(stage: Stage, **more: object) -> CliExecutor:
    return CliExecutor(ClaudeCli(), worker("claude", **more), stage.launcher())


async def test_missing_folder_of_the_agent_is_noted_P8(stage: Stage) -> None:
    play_recording(stage, "claude", "claude-tool")
    there = stage.folder / "there"
    there.mkdir()
    gone = str(stage.folder / "gone")
    outcome = await claude(stage, folders=(str(there), gone)).run(TASK, stage.context())
    assert outcome.notes[-1] == f"the agent's folder {gone} does not exist"
    assert str(there) not in str(outcome.notes)


@pytest.mark.skipif(sys.platform != "linux", reason="files in memory are handed on Linux alone")
async def test_arguments_and_environment_of_claude_have_no_secrets_P6(stage: Stage) -> None:
    play_recording(stage, "claude", "claude-tool")
    stage.env |= {"ANTHROPIC_API_KEY": "sk-model-secret", "ECHO_KEY": "sk-server-secret"}
    server = McpServer(name="echo", argv=("echo-server",), env={"ECHO_KEY": "${ECHO_KEY}"})
    await claude(stage, mcp_servers=(server,)).run(TASK, stage.context())
    given = given_to_cli(stage)
    assert "sk-server-secret" in str(given["mcp"])
    assert given["key"] == "sk-model-secret"
    assert "-secret" not in f"{given['argv']}{given['env']}"
    assert set(stage.hidden) == {"sk-model-secret", "sk-server-secret"}
    state = [file.read_text("utf-8", "replace") for file in stage.folder.rglob("*") if file.is_file()]
    assert not [text for text in state if "sk-server-secret" in text and '"argv"' not in text]


async def test_arguments_of_codex_name_the_secrets_of_its_servers_P6(stage: Stage) -> None:
    play_recording(stage, "codex", "codex-tool")
    stage.env |= {"ECHO_KEY": "sk-server-secret"}
    server = McpServer(name="echo", argv=("echo-server",), env={"ECHO_KEY": "${ECHO_KEY}", "PLAIN": "1"})
    agent = worker("codex", mcp_servers=(server,), permissions=Permissions(allow=("mcp__echo",)))
    outcome = await CliExecutor(CodexCli(), agent, stage.launcher()).run(TASK, stage.context())
    assert outcome.error is None
    arguments = str(given_to_cli(stage)["argv"])
    assert "sk-server-secret" not in arguments
    assert '"env_vars" = ["ECHO_KEY"]' in arguments


async def test_missing_program_is_named(stage: Stage) -> None:
    stage.env["PATH"] = "/nonexistent"
    with pytest.raises(Unavailable, match="claude cannot start"):
        await CliExecutor(ClaudeCli(), worker("claude"), stage.launcher()).run(TASK, stage.context())


async def test_user_settings_are_ignored_unless_the_agent_wants_them_P1(stage: Stage) -> None:
    play_recording(stage, "claude", "claude-tool")
    await claude(stage).run(TASK, stage.context())
    own = given_to_cli(stage)
    await claude(stage, settings=("user",)).run(TASK, stage.context())
    users = given_to_cli(stage)
    assert "CLAUDE_CONFIG_DIR" in str(own["env"])
    assert "CLAUDE_CONFIG_DIR" not in str(users["env"])
    assert "'--setting-sources', 'user'" in str(users["argv"])


async def test_user_login_is_linked_into_the_agents_own_state(stage: Stage) -> None:
    play_recording(stage, "claude", "claude-tool")
    login = stage.folder / "home" / ".claude" / ".credentials.json"
    login.parent.mkdir()
    login.write_text("{}", encoding="utf-8")
    await claude(stage).run(TASK, stage.context())
    link = stage.folder / "state" / "claude" / "worker" / ".credentials.json"
    assert link.readlink() == login


@pytest.mark.parametrize(
    ("cli", "more", "message"),
    [
        ("codex", {"budget": Budget(cost_micros=5)}, "a cost limit cannot be enforced"),
        ("codex", {"permissions": Permissions(allow=("Bash(curl:*)",))}, "cannot be enforced"),
        ("codex", {"permissions": Permissions(deny=("mcp__a__b",))}, "cannot be enforced"),
        ("codex", {"permissions": Permissions(mode="plan")}, "no permission modes"),
    ],
)
async def test_limits_and_rules_that_a_cli_cannot_enforce_are_refused_P7(
    stage: Stage, cli: str, more: dict[str, object], message: str
) -> None:
    play_recording(stage, cli, "codex-tool")
    with pytest.raises(ConfigInvalid, match=message):
        await CliExecutor(CodexCli(), worker(cli, **more), stage.launcher()).run(TASK, stage.context())


def test_gemini_is_refused_rules_about_reading_because_it_reads_unasked_P6_P7() -> None:
    denied = worker("gemini", permissions=Permissions(deny=("Grep(secrets/**)",)))
    with pytest.raises(ConfigInvalid, match="reads files unasked"):
        check_enforceable(denied, GeminiCli.traits)
    check_enforceable(
        worker("gemini", permissions=Permissions(deny=("Edit(src/**)", "Read"))), GeminiCli.traits
    )


@pytest.mark.parametrize(
    ("permissions", "given_to_claude"),
    [
        (Permissions(allow=("Bash", "mcp__a")), ["Bash", "mcp__a"]),
        (Permissions(allow=("Bash(curl:*)", "Edit(src/**)", "Read")), ["Read"]),
        (Permissions(allow=("Bash", "mcp__a"), deny=("Bash(rm:*)",)), ["mcp__a"]),
        (Permissions(allow=("Bash", "mcp__a"), deny=("Edit",)), ["Bash", "mcp__a"]),
        (Permissions(allow=("Bash(curl:*)",), mode="dontAsk"), ["Bash(curl:*)"]),
    ],
    ids=str,
)
async def test_claude_asks_about_calls_that_rules_must_look_into_P7(
    stage: Stage, permissions: Permissions, given_to_claude: list[str]
) -> None:
    play_recording(stage, "claude", "claude-tool")
    await claude(stage, permissions=permissions).run(TASK, stage.context())
    given = cast("list[str]", given_to_cli(stage)["argv"])
    assert given[given.index("--allowedTools") + 1].split(",") == given_to_claude


@pytest.mark.parametrize(
    "taken_away",
    [{"denied_tools": ("ask_parent",)}, {"permissions": Permissions(deny=("ask_parent",))}],
    ids=str,
)
async def test_claude_has_no_question_tool_if_the_agent_may_not_ask_P7(
    stage: Stage, taken_away: dict[str, object]
) -> None:
    play_recording(stage, "claude", "claude-tool")
    await claude(stage, **taken_away).run(TASK, stage.context())
    given = cast("list[str]", given_to_cli(stage)["argv"])
    assert "AskUserQuestion" in given[given.index("--disallowedTools") + 1].split(",")


@pytest.mark.parametrize("settings", [(), ("project",)])
def test_cli_looks_for_skills_itself_only_if_the_agent_uses_the_settings_of_the_project_P1(
    stage: Stage, settings: tuple[str, ...]
) -> None:
    """Skills of a project that nobody approved would reach the model past Retinue."""
    for name in ("codex", "opencode"):
        stage.program(name, "")
    launcher, context = stage.launcher(), stage.context()
    with launcher.prepare(CodexCli(), worker("codex", settings=settings), context) as codex:
        assert ("skills.include_instructions=false" in codex.program.argv) is not bool(settings)
    with launcher.prepare(OpencodeCli(), worker("opencode", settings=settings), context) as opencode:
        assert ("OPENCODE_DISABLE_EXTERNAL_SKILLS" in opencode.program.env) is not bool(settings)


CLOSED = WebAccess()
SOME_HOSTS = WebAccess(is_open=True, allow_hosts=("docs.python.org",))
OPEN = WebAccess(is_open=True)
RESEARCH = ("Read", "Grep", "WebFetch", "WebSearch")


def flag(given: dict[str, object], name: str) -> list[str]:
    """Return the comma-separated values of a flag that the CLI was given."""
    argv = cast("list[str]", given["argv"])
    return argv[argv.index(name) + 1].split(",") if name in argv else []


@pytest.mark.parametrize(
    ("door", "reason"), [(CLOSED, "only `web = true` under `[network]`"), (SOME_HOSTS, "network.allow_hosts")]
)
@pytest.mark.parametrize("tools", [None, RESEARCH])
async def test_claude_loses_its_web_tools_and_the_result_says_how_to_open_the_door_P7_P8(
    stage: Stage, door: WebAccess, reason: str, tools: tuple[str, ...] | None
) -> None:
    play_recording(stage, "claude", "claude-tool")
    stage.web_access = door
    rules = Permissions(allow=("WebFetch", "WebSearch"))
    outcome = await claude(stage, tools=tools, permissions=rules).run(TASK, stage.context())
    given = given_to_cli(stage)
    assert {"WebFetch", "WebSearch"} <= {*flag(given, "--disallowedTools")}
    assert flag(given, "--tools") == ([] if tools is None else ["Read", "Grep"])
    (note,) = [note for note in outcome.notes if "WebFetch" in note]
    assert note.startswith("no WebFetch, WebSearch: ") and reason in note


@pytest.mark.parametrize("tools", [None, RESEARCH])
async def test_claude_keeps_its_web_tools_while_the_door_is_open(
    stage: Stage, tools: tuple[str, ...] | None
) -> None:
    play_recording(stage, "claude", "claude-tool")
    stage.web_access = OPEN
    outcome = await claude(stage, tools=tools).run(TASK, stage.context())
    given = given_to_cli(stage)
    assert "WebFetch" not in flag(given, "--disallowedTools")
    assert flag(given, "--tools") == list(tools or ())
    assert not [note for note in outcome.notes if "Web" in note]


@pytest.mark.parametrize(
    "more",
    [
        {"tools": ("Read",)},
        {"denied_tools": ("WebFetch", "WebSearch")},
        {"permissions": Permissions(deny=("WebFetch", "WebSearch"))},
    ],
)
async def test_agent_that_had_no_web_tools_hears_nothing_of_them(
    stage: Stage, more: dict[str, object]
) -> None:
    play_recording(stage, "claude", "claude-tool")
    stage.web_access = CLOSED
    outcome = await claude(stage, **more).run(TASK, stage.context())
    assert not [note for note in outcome.notes if "web" in note]


@pytest.mark.parametrize(
    ("door", "tools", "is_off"),
    [
        (CLOSED, None, True),
        (CLOSED, ("Read", "WebSearch"), True),
        (SOME_HOSTS, None, True),
        (OPEN, ("Read",), True),
        (OPEN, None, False),
        (OPEN, ("Read", "WebSearch"), False),
    ],
)
async def test_codex_searches_only_if_door_and_agent_let_it_P7(
    stage: Stage, door: WebAccess, tools: tuple[str, ...] | None, is_off: bool
) -> None:
    play_recording(stage, "codex", "codex-tool")
    stage.web_access = door
    executor = CliExecutor(CodexCli(), worker("codex", tools=tools), stage.launcher())
    outcome = await executor.run(TASK, stage.context())
    argv = cast("list[str]", given_to_cli(stage)["argv"])
    assert ('web_search="disabled"' in argv) is is_off
    assert any("earch: the web is off" in note for note in outcome.notes) is (door is CLOSED)


@pytest.mark.parametrize(
    ("cli", "place"),
    [(GeminiCli(), ("web_fetch", "google_web_search")), (OpencodeCli(), ("webfetch", "websearch"))],
    ids=["gemini", "opencode"],
)
def test_settings_of_gemini_and_opencode_deny_their_web_tools_P7(
    stage: Stage, cli: GeminiCli | OpencodeCli, place: tuple[str, ...]
) -> None:
    name = cli.traits.name
    stage.program(name, "")
    for door in (CLOSED, OPEN):
        stage.web_access = door
        with stage.launcher().prepare(cli, worker(name), stage.context()) as prepared:
            given = prepared.program.env
            if name == "gemini":
                file = Path(given["GEMINI_CLI_HOME"]) / ".gemini" / "settings.json"
                denied = json.loads(file.read_text(encoding="utf-8"))["tools"]["exclude"]
            else:
                rules = json.loads(given["OPENCODE_CONFIG_CONTENT"])["agent"]["retinue"]["permission"]
                denied = [tool for tool, rule in rules.items() if rule == "deny"]
            assert set(place).issubset(denied) is (door is CLOSED)
            assert any(place[0] in note for note in prepared.notes) is (door is CLOSED)


@pytest.mark.parametrize("tool", ["WebFetch", "WebSearch", "web_fetch", "google_web_search"])
async def test_call_that_a_cli_asks_about_is_denied_while_the_door_is_closed_P7(
    stage: Stage, tool: str
) -> None:
    """An ACP program that Retinue does not know may have such tools. It is told what Retinue cannot do."""
    stage.program("other", "")
    agent = worker("acp", command=("other",))

    async def allow(request: ToolRequest) -> Verdict:
        return Verdict(True, "the agent's rules allow it")

    for door, allowed in ((CLOSED, False), (SOME_HOSTS, False), (OPEN, True)):
        stage.web_access = door
        with stage.launcher().prepare(AcpProgram(), agent, stage.context(permit=allow)) as prepared:
            verdict = await prepared.permit(ToolRequest.of(tool, {"url": "https://example.org/"}))
            assert verdict.allowed is allowed
            assert (UNKNOWN_WEB_TOOLS_NOTE in prepared.notes) is not allowed
