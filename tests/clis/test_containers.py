"""Real CLIs in a container of Podman, made of this machine's files: they work, ask, and leave nothing."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager

import pytest

from tests.clis.conftest import World
from tests.clis.install import FOLDER, PROGRAMS
from tests.clis.replies import Say
from tests.clis.words import CLAUDE, CODEX, Words
from tests.executors.images import image, run

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.clis,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="containers of Linux"),
]

IMAGE = "localhost/retinue-clis:latest"
HEADER = f"container: {IMAGE}\nnetwork: host\n"
"""The stub listens on this machine's loopback."""
MakeWorld = Callable[..., AbstractAsyncContextManager[World]]
contained_cli = pytest.mark.parametrize("words", [CLAUDE, CODEX], ids=lambda words: words.name)


@pytest.fixture(scope="module", autouse=True)
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    codex = next(FOLDER.glob("node_modules/@openai/codex-linux-*/vendor/*/bin/codex"))
    files = {"usr/bin/claude": (PROGRAMS / "claude").resolve(), "usr/bin/codex": codex}
    with image(IMAGE, tmp_path_factory.mktemp("image"), "bash", "dirname", "tr", files=files) as engine:
        yield engine


@contained_cli
async def test_cli_in_a_container_answers_and_works_in_the_workspace_P1(
    words: Words, make_world: MakeWorld
) -> None:
    script = [words.command("touch made; ls /work /root /home"), Say("done")]
    rules = "permissions:\n  allow: [Bash]\n" if words.asks else ""
    async with make_world(words, script, HEADER + rules) as world:
        outcome = await world.run("what is it?")
        assert (outcome["status"], outcome["result"]) == ("success", "done"), outcome
        assert outcome["isolation"] == "podman"
        assert (world.workspace / "made").exists()
        assert "what is it?" in world.stub.seen
        assert "cannot ask" not in str(outcome.get("notes"))


@pytest.mark.parametrize("answer", ["allow", "deny: not today"])
async def test_claude_in_a_container_asks_and_does_as_it_is_told_P7(
    make_world: MakeWorld, answer: str
) -> None:
    async with make_world(CLAUDE, [CLAUDE.command("touch made"), Say("done")], HEADER) as world:
        outcome = await world.run_answering(answer)
        assert (outcome["status"], outcome["result"]) == ("success", "done"), outcome
        [event] = world.events(outcome["run_id"], "permission")
        assert (event["subject"], event["by"]) == ("touch made", "answer")
        assert (world.workspace / "made").exists() == event["allowed"] == (answer == "allow")
        assert answer == "allow" or "not today" in world.stub.seen


@contained_cli
async def test_cancel_in_the_middle_of_a_tool_leaves_no_container_P5(
    words: Words, make_world: MakeWorld
) -> None:
    rules = "permissions:\n  allow: [Bash]\n" if words.asks else ""
    script = [words.command("touch started; setsid sleep 1000 & sleep 1000"), Say("never")]
    async with make_world(words, script, HEADER + rules) as world:
        run_id = await world.start()
        while not (world.workspace / "started").exists():
            await world.runs.next_change(0.05)
        await world.runs.cancel_and_wait(run_id, 30.0)
        assert world.runs.status(run_id)["status"] == "canceled"
        assert world.processes(run_id) == []
    assert str(run_id) not in run(str(shutil.which("podman")), "ps", "--all", "--format", "{{.Names}}").stdout


@contained_cli
async def test_session_goes_on_in_the_next_container(words: Words, make_world: MakeWorld) -> None:
    script = [Say("the first answer"), Say("the second answer")]
    async with make_world(words, script, f"{HEADER}session: true\n") as world:
        first = await world.run("the first question")
        second = await world.run("the second question")
        assert (second["status"], second["result"]) == ("success", "the second answer"), second
        assert second["session_id"] == first["session_id"]
        assert "the first answer" in str(world.stub.requests[-1])
