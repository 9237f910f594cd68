"""The real CLIs, end to end, from an agent's file to the result; only their model is a stub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

import pytest

from retinue.executors.cli.cli_launch import NO_SANDBOX_NOTE
from retinue.executors.executor_module import WEB_IS_OFF
from tests.clis.conftest import ECHO, World
from tests.clis.echo_server import fingerprint
from tests.clis.replies import Fail, Reply, Say, Use
from tests.clis.words import ALL, ASKING, CLAUDE, CODEX, ECHO_KEY, GEMINI, KEY, OPENCODE, Words
from tests.executors.test_worktree import git

pytestmark = [pytest.mark.anyio, pytest.mark.clis, pytest.mark.timeout(300)]

MakeWorld = Callable[..., AbstractAsyncContextManager[World]]
every_cli = pytest.mark.parametrize("words", ALL, ids=lambda words: words.name)
asking_cli = pytest.mark.parametrize("words", ASKING, ids=lambda words: words.name)


def allowing(*rules: str) -> str:
    return f"permissions:\n  allow: {list(rules)}\n"


@every_cli
async def test_prompt_is_answered_by_the_model_that_the_result_names_P8(
    words: Words, make_world: MakeWorld
) -> None:
    async with make_world(words, [Say("the answer")]) as world:
        outcome = await world.run("what is it?")
        assert (outcome["status"], outcome["result"]) == ("success", "the answer")
        assert outcome["model"] == words.model
        assert "what is it?" in world.stub.seen
        assert "You are the worker." in world.stub.seen
        usage = world.runs.status(outcome["run_id"])["usage"]
        assert usage["tokens"] == 18
        assert usage["steps"] == 1


@every_cli
async def test_settings_of_an_untrusted_project_are_not_loaded_P1(
    words: Words, make_world: MakeWorld
) -> None:
    async with make_world(words, [Say("done")]) as world:
        for name in ("CLAUDE.md", "AGENTS.md", "GEMINI.md"):
            (world.workspace / name).write_text("PLANTED-INSTRUCTION", encoding="utf-8")
        planted = '{"mcpServers": {"planted": {"command": "touch", "args": ["planted-ran"]}}}'
        for name in (".mcp.json", ".gemini/settings.json"):
            (world.workspace / name).parent.mkdir(exist_ok=True)
            (world.workspace / name).write_text(planted, encoding="utf-8")
        assert (await world.run())["status"] == "success"
        assert "PLANTED" not in world.stub.seen
        assert not (world.workspace / "planted-ran").exists()


@every_cli
async def test_command_that_a_rule_allows_runs_unasked(words: Words, make_world: MakeWorld) -> None:
    script = [words.command("echo tool-ran-$((40+2))" if not words.asks else "echo tool-ran-42"), Say("done")]
    header = allowing("Bash(echo:*)") if words.asks else ""
    async with make_world(words, script, header) as world:
        outcome = await world.run()
        assert (outcome["status"], outcome["result"]) == ("success", "done")
        assert "tool-ran-42" in world.stub.seen
        assert outcome.get("denials", []) == []


@every_cli
async def test_mcp_server_gets_its_secret_and_nobody_else_does_P6(
    words: Words, make_world: MakeWorld
) -> None:
    show = words.command("cat /proc/self/environ | tr '\\0' '\\n'")
    script = [Use(words.echo, {"text": "hello"}), show, Say(f"the key is {ECHO_KEY}")]
    header = ECHO + allowing("mcp__echo__echo", *(["Bash"] if words.asks else []))
    async with make_world(words, script, header) as world:
        outcome = await world.run()
        assert outcome["status"] == "success"
        assert f"echoed hello, key {fingerprint(ECHO_KEY)}" in world.stub.seen
        assert "RETINUE_RUN_ID" in world.stub.seen or words.name in ("codex", "gemini")
        tools = [text for text in world.stub.seen.split("\\n") if "=" in text]
        assert not [text for text in tools if ECHO_KEY in text], "a command saw the server's secret"
        if words.name != "opencode":  # it passes on all it has
            assert not [text for text in tools if KEY in text], "a command saw the model's key"
        assert ECHO_KEY not in str(outcome) + world.log(outcome["run_id"])


@asking_cli
async def test_denied_permission_is_told_to_the_agent_and_audited_P7(
    words: Words, make_world: MakeWorld
) -> None:
    async with make_world(words, [words.command("touch forbidden"), Say("gave up")]) as world:
        outcome = await world.run_answering("deny: not today")
        assert not (world.workspace / "forbidden").exists()
        assert outcome["denials"] == ["Bash(touch forbidden)"]
        if words.name == "claude":  # the others have no place for a reason
            assert "not today" in world.stub.seen
        [event] = world.events(outcome["run_id"], "permission")
        assert event == {"tool": "Bash", "subject": "touch forbidden", "allowed": False, "by": "answer"}
        if words.name != "opencode":  # it ends when it is denied something
            assert (outcome["status"], outcome["result"]) == ("success", "gave up")


@asking_cli
@pytest.mark.parametrize("command", ["FOO=1 touch forbidden", "env touch forbidden", "t\\ouch forbidden"])
async def test_rewritten_command_is_denied_by_the_rule_P7(
    words: Words, make_world: MakeWorld, command: str
) -> None:
    """All other commands are allowed, so the CLI must not decide by itself."""
    header = "permissions:\n  allow: [Bash]\n  deny: ['Bash(touch:*)']\n"
    async with make_world(words, [words.command(command), Say("gave up")], header) as world:
        outcome = await world.run()
        assert outcome["denials"] == [f"Bash({command})"]
        assert not (world.workspace / "forbidden").exists()


@pytest.mark.parametrize(("path", "is_read"), [("public", True), ("x/../secrets/key", False)])
async def test_opencode_reads_what_no_rule_denies_P6_P7(
    make_world: MakeWorld, path: str, is_read: bool
) -> None:
    header = "permissions:\n  deny: ['Read(secrets/**)']\n"
    async with make_world(OPENCODE, [Use("read", {"filePath": path}), Say("done")], header) as world:
        (world.workspace / "secrets").mkdir()
        for name in ("public", "secrets/key"):
            (world.workspace / name).write_text("the-text-of-the-file\n", encoding="utf-8")
        outcome = await world.run()
        assert ("the-text-of-the-file" in world.stub.seen) is is_read
        assert bool(outcome.get("denials")) is not is_read


@asking_cli
async def test_permission_granted_by_answer_lets_the_command_run(words: Words, make_world: MakeWorld) -> None:
    async with make_world(words, [words.command("touch allowed"), Say("done")]) as world:
        outcome = await world.run_answering("allow")
        assert (outcome["status"], outcome["result"]) == ("success", "done")
        assert (world.workspace / "allowed").exists()
        assert [event["by"] for event in world.events(outcome["run_id"], "permission")] == ["answer"]


async def test_claude_asks_too_when_a_command_in_the_background_calls_it_back_P7(
    make_world: MakeWorld,
) -> None:
    """It has told a result by then, and goes on with another turn, which counts as well (P2)."""
    behind = Use("Bash", {"command": "sleep 1", "description": "waits", "run_in_background": True})
    script = [
        CLAUDE.command("touch denied"),
        behind,
        Say("it goes on"),
        CLAUDE.command("touch late"),
        Say("done"),
    ]
    async with make_world(CLAUDE, script, allowing("Bash(sleep:*)")) as world:
        run_id = await world.start()
        for answer in ("deny", "allow"):
            [asked] = (await world.result(run_id))["questions"]
            await world.runs.reply(run_id, asked["messageId"], answer)
        outcome = await world.result(run_id)
        assert (outcome["status"], outcome["result"]) == ("success", "done")
        assert (world.workspace / "late").exists()
        assert outcome["denials"] == ["Bash(touch denied)"]
        usage = world.runs.status(run_id)["usage"]
        assert (usage["steps"], usage["tokens"]) == (5, 5 * 18)
        # A machine without bubblewrap says so, and a closed door to the web; nothing else is worth a note.
        notes = [note for note in outcome.get("notes", ()) if note != NO_SANDBOX_NOTE]
        assert [note for note in notes if WEB_IS_OFF not in note] == []


async def test_codex_sees_no_mcp_tool_without_a_rule_P7(make_world: MakeWorld) -> None:
    codex = ALL[1]
    script: Sequence[Reply] = [Use(codex.echo, {"text": "hello"}), Say("done")]
    async with make_world(codex, script, ECHO) as world:
        outcome = await world.run()
        assert "echoed hello" not in world.stub.seen
        assert "no rule allows the tools of the MCP server echo" in str(outcome["notes"])


@every_cli
async def test_limit_of_steps_ends_the_run_and_says_so_P2(words: Words, make_world: MakeWorld) -> None:
    header = (allowing("Bash(echo:*)") if words.asks else "") + "max_turns: 3\n"
    script = [words.command(f"echo again-{number}") for number in range(20)]
    async with make_world(words, script, header) as world:
        outcome = await world.run()
        assert outcome["status"] == "error"
        assert outcome["error"]["code"] in ("limit_exceeded", "budget_exceeded")
        assert len(world.stub.requests) <= 4


@pytest.mark.parametrize("words", [CLAUDE, CODEX, GEMINI], ids=lambda words: words.name)
async def test_budget_of_tokens_ends_the_run_and_says_so_P2(words: Words, make_world: MakeWorld) -> None:
    """claude in the middle of its turn, the others when it has ended: they tell no sooner."""
    header = (allowing("Bash(echo:*)") if words.asks else "") + "budget:\n  tokens: 40\n"
    script = [*(words.command(f"echo again-{number}") for number in range(5)), Say("done")]
    async with make_world(words, script, header) as world:
        outcome = await world.run()
        assert outcome["status"] == "error"
        assert outcome["error"]["code"] in ("limit_exceeded", "budget_exceeded")
        assert outcome["error"]["data"]["kind"] == "tokens"
        assert outcome["error"]["data"]["limit"] == 40
        assert world.runs.status(outcome["run_id"])["usage"]["tokens"] > 40
        assert words.name != "claude" or len(world.stub.requests) < 6


@every_cli
async def test_error_of_the_model_api_is_an_error_of_the_run_P8(words: Words, make_world: MakeWorld) -> None:
    async with make_world(words, [Fail(400, "the stub refuses this")]) as world:
        outcome = await world.run()
        assert outcome["status"] == "error"
        assert outcome["error"]["code"] == "model_failed"
        assert "the stub refuses this" in outcome["error"]["message"]


@every_cli
async def test_cancel_in_the_middle_of_a_tool_leaves_nothing_alive_P5(
    words: Words, make_world: MakeWorld
) -> None:
    started = "touch started; setsid sleep 1000 & sleep 1000"
    header = allowing("Bash") if words.asks else ""
    async with make_world(words, [words.command(started), Say("never")], header) as world:
        run_id = await world.start()
        while not (world.workspace / "started").exists():
            await world.runs.next_change(0.05)
        await world.runs.cancel_and_wait(run_id, 20.0)
        assert world.runs.status(run_id)["status"] == "canceled"
        assert world.processes(run_id) == []


@every_cli
async def test_mcp_server_that_cannot_live_is_told_P8(words: Words, make_world: MakeWorld) -> None:
    dead = "mcp_servers:\n  - name: dead\n    command: /bin/false\n"
    async with make_world(words, [Say("done")], dead) as world:
        outcome = await world.run()
        assert (outcome["status"], outcome["result"]) == ("success", "done")
        told = [note for note in outcome["notes"] if "MCP server dead" in note]
        assert len(told) == 1, outcome["notes"]


async def test_codex_does_not_begin_without_a_server_that_a_rule_allows_P8(make_world: MakeWorld) -> None:
    dead = "mcp_servers:\n  - name: dead\n    command: /bin/false\n"
    async with make_world(CODEX, [Say("never")], dead + allowing("mcp__dead")) as world:
        outcome = await world.run()
        assert outcome["error"]["code"] == "program_failed"
        assert "dead" in outcome["error"]["message"]


@every_cli
async def test_session_goes_on_where_the_last_run_ended(words: Words, make_world: MakeWorld) -> None:
    script = [Say("the first answer"), Say("the second answer"), Say("the third answer")]
    async with make_world(words, script, "session: true\n") as world:
        first = await world.run("the first question")
        second = await world.run("the second question")
        assert (second["status"], second["result"]) == ("success", "the second answer")
        assert second["session_id"] == first["session_id"]
        assert "the first answer" in str(world.stub.requests[-1])
        third = await world.run("the third question")
        assert (third["result"], third["session_id"]) == ("the third answer", first["session_id"])
        last = str(world.stub.requests[-1])
        assert "the first answer" in last and "the second answer" in last
        usage = world.runs.status(third["run_id"])["usage"]
        assert usage["tokens"] <= 54
        assert usage["steps"] == 1


@every_cli
async def test_session_of_a_worktree_goes_on_in_the_next_one(words: Words, make_world: MakeWorld) -> None:
    script = [words.command("touch made-by-it"), Say("the first answer"), Say("the second answer")]
    header = (allowing("Bash") if words.asks else "") + "session: true\nisolation: worktree\n"
    async with make_world(words, script, header) as world:
        (world.workspace / "a.txt").write_text("one\n", encoding="utf-8")
        for arguments in (("init", "--quiet"), ("add", "a.txt"), ("commit", "--quiet", "-m", "first")):
            git(world.workspace, *arguments)
        first = await world.run("the first question")
        assert "made-by-it" in first["diff"]
        second = await world.run("the second question")
        assert (second["status"], second["result"]) == ("success", "the second answer"), second
        assert second["session_id"] == first["session_id"]
        assert "the first answer" in str(world.stub.requests[-1])
        [kept] = world.service.agents.state.sessions()["sessions"]
        assert kept["folder"] == str(world.workspace)


@every_cli
async def test_answer_under_a_schema_is_asked_for(words: Words, make_world: MakeWorld) -> None:
    schema = "output_schema:\n  type: object\n  properties:\n    n: {type: integer}\n  required: [n]\n"
    script: Sequence[Reply] = [Say('{"n": 7}')]
    if words.name == "claude":
        script = [Use("StructuredOutput", {"n": 7}), Say("done")]
    async with make_world(words, script, schema) as world:
        outcome = await world.run()
        assert outcome["status"] == "success"
        assert outcome["result"] == {"n": 7}
        assert '"n"' in str(world.stub.requests[0]).replace("'", '"')


@every_cli
async def test_answer_that_does_not_fit_goes_back_with_what_is_wrong(
    words: Words, make_world: MakeWorld
) -> None:
    """Without `session`: all of them can still go on, or get the whole task again."""
    header = (
        "output_schema:\n  type: object\n  properties:\n    n: {type: integer, maximum: 9}\n  required: [n]\n"
    )
    script: Sequence[Reply] = [Say("it is seven"), Say('{"n": 70}'), Say('{"n": 7}')]
    async with make_world(words, script, header) as world:
        outcome = await world.run()
        assert (outcome["status"], outcome.get("result")) == ("success", {"n": 7}), outcome
        last = str(world.stub.requests[-1])
        assert "That is not a valid answer" in last
        assert "70" in last, "it sees what it said"
        assert "it is seven" in last, "it went on in its session"


async def test_question_of_claude_reaches_the_parent_and_its_answer_the_model(make_world: MakeWorld) -> None:
    options = [{"label": "red", "description": "like fire"}, {"label": "blue", "description": "like ice"}]
    question = {"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": False}
    script = [Use("AskUserQuestion", {"questions": [question]}), Say("done")]
    async with make_world(CLAUDE, script, "tools: [Read, ask_parent]\n") as world:
        run_id = await world.start()
        asked = (await world.result(run_id))["questions"][0]
        assert asked["question"].startswith("Which colour?")
        assert "- red: like fire" in asked["question"]
        await world.runs.reply(run_id, asked["messageId"], "the green one")
        assert (await world.result(run_id))["result"] == "done"
        assert "the green one" in str(world.stub.requests[-1])


@pytest.mark.parametrize("words", [CLAUDE, CODEX], ids=lambda words: words.name)
async def test_agent_that_does_not_need_our_server_is_not_given_it_P1(
    words: Words, make_world: MakeWorld
) -> None:
    async with make_world(words, [Say("done")]) as world:
        assert (await world.run())["result"] == "done"
        assert "retinue" not in str(world.stub.requests[0]["tools"])


@pytest.mark.parametrize("words", [CLAUDE, CODEX], ids=lambda words: words.name)
async def test_agent_that_names_our_server_asks_through_it(words: Words, make_world: MakeWorld) -> None:
    script: Sequence[Reply] = [Use("mcp__retinue__ask_parent", {"question": "which?"}), Say("done")]
    async with make_world(words, script, allowing("mcp__retinue")) as world:
        assert (await world.run_answering("the green one"))["result"] == "done"
        assert "the green one" in str(world.stub.requests[-1])


@pytest.mark.parametrize("words", [CLAUDE, CODEX], ids=lambda words: words.name)
async def test_agent_with_sessions_can_note_what_it_learned(words: Words, make_world: MakeWorld) -> None:
    script = [Use("mcp__retinue__append_memory", {"note": "the sky is green"}), Say("done"), Say("again")]
    async with make_world(words, script, "session: true\n") as world:
        assert (await world.run())["result"] == "done"
        assert (await world.run())["result"] == "again"
        assert "the sky is green" in str(world.stub.requests[-1])


@every_cli
async def test_receipt_has_the_command_that_the_cli_ran_P8(words: Words, make_world: MakeWorld) -> None:
    async with make_world(words, [words.command("echo hello"), Say("it prints hello")]) as world:
        outcome = await world.run_answering("allow")
        assert (outcome["status"], outcome["result"]) == ("success", "it prints hello")
        (ran,) = outcome["receipt"]["commands"]
        assert "echo hello" in ran["command"]
        assert ran["exit_code"] in ((0,) if words is not GEMINI else (0, None))
        assert sum(outcome["receipt"]["tool_calls"].values()) == 1
        assert outcome["receipt"]["model"] == words.model
        assert "unverified" not in outcome


@every_cli
async def test_answer_without_a_look_is_unverified_P8(words: Words, make_world: MakeWorld) -> None:
    async with make_world(words, [Say("In src/retry.py:12, MAX_TRIES is 5.")]) as world:
        outcome = await world.run("Where is the limit of retries?")
        assert outcome["receipt"]["tool_calls"] == {}
        assert "src/retry.py" in outcome["unverified"]


async def test_claude_cannot_read_secret_files_P6(make_world: MakeWorld) -> None:
    """Neither with its tools nor with commands, and nobody is asked."""
    secret = "hunter2-hunter2-hunter2"
    header = "sandbox: none\n" + allowing("Bash(cat:*)", "Read")
    script: list[Reply] = [Say("later")]
    async with make_world(CLAUDE, script, header) as world:
        (world.workspace / ".env").write_text(f"KEY={secret}\n")
        (world.workspace / "open.txt").write_text("open words\n")
        world.stub.script[:] = [
            Use("Read", {"file_path": str(world.workspace / ".env")}),
            Use("Grep", {"pattern": "KEY", "path": str(world.workspace), "output_mode": "content"}),
            CLAUDE.command("cat .env"),
            Use("Read", {"file_path": str(world.workspace / "open.txt")}),
            Say("done"),
        ]
        outcome = await world.run("look around")
        assert (outcome["status"], outcome["result"]) == ("success", "done"), outcome
        assert secret not in world.stub.seen
        assert "open words" in world.stub.seen
        assert outcome["receipt"]["files_read"] == ["open.txt"]


@pytest.mark.parametrize("tools", ["", "tools: [Read]\n"], ids=["writer", "reader"])
async def test_codex_cannot_read_secret_files_P6(tools: str, make_world: MakeWorld) -> None:
    secret = "hunter2-hunter2-hunter2"
    async with make_world(CODEX, [Say("later")], f"sandbox: none\n{tools}") as world:
        for name in (".env", "a [1]*.pem", ".ssh/id_rsa"):
            (world.workspace / name).parent.mkdir(exist_ok=True)
            (world.workspace / name).write_text(f"KEY={secret}\n")
        (world.workspace / "open.txt").write_text("open words\n")
        world.stub.script[:] = [
            CODEX.command("cat .env *.pem .ssh/*"),
            CODEX.command("grep -r KEY . ; cp .env other; cat other; ln .env hard; mv .ssh here; cat here/*"),
            CODEX.command("cat open.txt; echo new > made.txt"),
            Say("done"),
        ]
        outcome = await world.run("look around")
        assert (outcome["status"], outcome["result"]) == ("success", "done"), outcome
        assert secret not in world.stub.seen
        assert "open words" in world.stub.seen
        assert (world.workspace / "made.txt").exists() == (not tools)
        assert not [note for note in outcome.get("notes", ()) if "secret" in note]


@pytest.mark.parametrize("command", ["cat open.txt", "cat open.txt | head -1"])
async def test_gemini_asks_before_commands_that_only_read_P7(command: str, make_world: MakeWorld) -> None:
    async with make_world(GEMINI, [GEMINI.command(command), Say("done")]) as world:
        run_id = await world.start()
        outcome = await world.result(run_id)
        assert command in outcome["questions"][0]["question"], outcome


async def test_gemini_cannot_read_secret_files_P6(make_world: MakeWorld) -> None:
    secret = "hunter2-hunter2-hunter2"
    header = "sandbox: none\n" + allowing("Bash(cat:*)")
    async with make_world(GEMINI, [Say("later")], header) as world:
        for name in (".env", 'a [1]"b.pem', ".ssh/id_rsa"):
            (world.workspace / name).parent.mkdir(exist_ok=True)
            (world.workspace / name).write_text(f"KEY={secret}\n")
        (world.workspace / "open.txt").write_text("open words for the environment\n")
        world.stub.script[:] = [
            *(
                Use("read_file", {"file_path": path})
                for path in (".env", str(world.workspace / ".ssh" / "id_rsa"), 'a [1]"b.pem', "x/../.env")
            ),
            Use("grep_search", {"pattern": "KEY"}),
            Use("grep_search", {"pattern": "KEY", "include_pattern": ".env", "no_ignore": True}),
            Use("read_many_files", {"include": ["**/*", ".env"]}),
            Use("replace", {"file_path": ".env", "old_string": "KEY", "new_string": "k", "instruction": "k"}),
            Use("read_file", {"file_path": "open.txt"}),
            GEMINI.command("cat .env"),
            Say("done"),
        ]
        outcome = await world.run("look around")
        assert (outcome["status"], outcome["result"]) == ("success", "done"), outcome
        assert secret not in world.stub.seen
        assert "open words" in world.stub.seen
        assert outcome["denials"] == ["Bash(cat .env)"]
        assert [note for note in outcome["notes"] if "are denied to gemini" in note]


async def test_opencode_cannot_read_secret_files_in_a_repository_P6(make_world: MakeWorld) -> None:
    secret = "hunter2-hunter2-hunter2"
    header = "sandbox: none\n" + allowing("Bash(cat:*)")
    script: list[Reply] = [Say("later")]
    async with make_world(OPENCODE, script, header) as world:
        (world.workspace / ".git").mkdir()
        for name in ("objects", "refs"):
            (world.workspace / ".git" / name).mkdir()
        (world.workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (world.workspace / ".env").write_text(f"KEY={secret}\n")
        (world.workspace / "open.txt").write_text("open words for KEY\n")
        world.stub.script[:] = [
            Use("read", {"filePath": str(world.workspace / ".env")}),
            Use("grep", {"pattern": "KEY"}),
            Use("read", {"filePath": "open.txt"}),
            OPENCODE.command("cat .env"),
        ]
        outcome = await world.run("look around")
        assert secret not in world.stub.seen
        assert "open words" in world.stub.seen
        assert outcome["denials"] == ["Bash(cat .env)"]
        assert not [note for note in outcome["notes"] if "secret" in note]
