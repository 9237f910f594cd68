"""A reader on the real claude works freely: it looks several times, and its answer is checked."""

from __future__ import annotations

import pytest

from tests.clis.replies import Say, Use
from tests.clis.test_every_cli import MakeWorld
from tests.clis.words import CLAUDE

pytestmark = [pytest.mark.anyio, pytest.mark.clis, pytest.mark.timeout(300)]

ANSWER = "`retry` in app.py:4 waits DELAY, which is 42 (wait.py:1)."
QUESTION = "How long does a retry wait, and where is that set?"


@pytest.mark.parametrize("looks", [True, False])
async def test_reader_on_claude_looks_at_several_files_before_it_answers_P3_P8(
    make_world: MakeWorld, looks: bool
) -> None:
    script = [Use("Read", {"file_path": name}) for name in ("app.py", "wait.py")] if looks else []
    async with make_world(CLAUDE, [*script, Say(ANSWER)], "tools: [Read, Grep, Glob]\n") as world:
        (world.workspace / "app.py").write_text(
            "from wait import DELAY\n\n\ndef retry():\n    sleep(DELAY)\n", encoding="utf-8"
        )
        (world.workspace / "wait.py").write_text("DELAY = 42\n", encoding="utf-8")
        outcome = await world.run(QUESTION)
    assert (outcome["status"], outcome["result"]) == ("success", ANSWER)
    assert ("DELAY = 42" in world.stub.seen) is looks
    assert ("unverified" in str(outcome)) is not looks
