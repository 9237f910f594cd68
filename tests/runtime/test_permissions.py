"""The permission broker: decides by rules, else asks and gets an answer or denies."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from retinue.core import (
    NO_PERMISSIONS,
    Message,
    Permissions,
    PermissionWanted,
    RunId,
    RunStatus,
    ToolRequest,
    Verdict,
    escape_invisible_characters,
    strip_control_characters,
)
from retinue.redaction import SecretRedactor
from retinue.runtime import Changes, PermissionBroker, QuestionBroker
from retinue.runtime.permissions import QUESTION_CHARACTERS
from retinue.store import Store
from tests.runtime.runtime_support import DONE, PATIENCE_S, SPEC, server

pytestmark = pytest.mark.anyio

TOUCH = ToolRequest("Bash", "touch x")
HIDDEN = "only-this-server-knows-it"


@dataclass
class Desk:
    store: Store
    changes: Changes
    broker: PermissionBroker
    run_id: RunId
    verdicts: list[Verdict]

    async def decide(self, asked: ToolRequest = TOUCH, rules: Permissions = NO_PERMISSIONS) -> Verdict:
        verdict = await self.broker.decide(self.run_id, "worker", rules, asked)
        self.verdicts.append(verdict)
        return verdict

    async def question(self) -> Message:
        pending = await self.changes.until(
            lambda: self.store.messages.pending(self.run_id) or None, {self.run_id}, PATIENCE_S
        )
        assert pending
        return pending[0]

    async def answered(self, answer: str, asked: ToolRequest = TOUCH) -> Verdict:
        """Ask for a permission, answer the question and return the verdict."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.decide, asked)
            await self.store.write(self.store.messages.reply, (await self.question()).id, answer)
        return self.verdicts[-1]

    async def events(self) -> list[dict[str, object]]:
        await self.store.wait_posted()
        return [dict(event.data) for event in self.store.events.of_run(self.run_id, kind="permission")]


@asynccontextmanager
async def at_desk(folder: Path, wait_s: float = 30.0) -> AsyncGenerator[Desk]:
    async with server(folder) as up:
        run = await up.submit(SPEC)
        async with up.pool.slot(run.id):
            broker = PermissionBroker(
                up.store, QuestionBroker(up.store, up.changes), SecretRedactor([HIDDEN]), wait_s
            )
            yield Desk(up.store, up.changes, broker, run.id, [])
            await up.finish(run.id, DONE)


async def test_rules_decide_at_once_and_the_decision_becomes_an_event(tmp_path: Path) -> None:
    async with at_desk(tmp_path) as desk:
        assert (await desk.decide(rules=Permissions(allow=("Bash(touch:*)",)))).allowed
        assert not (await desk.decide(rules=Permissions(deny=("Bash",)))).allowed
        assert [(event["allowed"], event["by"]) for event in await desk.events()] == [
            (True, "policy"),
            (False, "policy"),
        ]
        assert desk.store.messages.of_run(desk.run_id) == []


@pytest.mark.parametrize("answer", ["allow", "Yes.", "ok, go on"])
async def test_plain_yes_allows_once(tmp_path: Path, answer: str) -> None:
    async with at_desk(tmp_path) as desk:
        assert (await desk.answered(answer)).allowed
        assert desk.store.permissions.rules_for("worker") == ()


@pytest.mark.parametrize("answer", ["deny: use the other", "perhaps", "", "not yes", "allowance?"])
async def test_answer_that_is_not_a_plain_yes_is_a_denial_with_its_text_P7(
    tmp_path: Path, answer: str
) -> None:
    async with at_desk(tmp_path) as desk:
        verdict = await desk.answered(answer)
        assert not verdict.allowed
        assert answer in verdict.reason


async def test_question_carries_the_request_and_its_timeout(tmp_path: Path) -> None:
    """A person who answers with a button must see the whole command, of which the text shows a part (P7)."""
    long = ToolRequest("Bash", "touch " + "x" * 2_000)
    async with at_desk(tmp_path, wait_s=20) as desk, anyio.create_task_group() as group:
        group.start_soon(desk.decide, long)
        message = await desk.question()
        assert message.permission == PermissionWanted(long, str(long), 20)
        assert len(message.question) < 1_500
        await desk.store.write(desk.store.messages.reply, message.id, "deny")


async def test_question_shows_everything_that_the_call_acts_on_P7(tmp_path: Path) -> None:
    """A decoy must not be all that a person sees."""
    decoy = {"file_path": "src/a.py", "filePath": "/etc/passwd", "target": "/etc/shadow"}
    async with at_desk(tmp_path) as desk:
        await desk.answered("always", ToolRequest.of("Edit", decoy, str(tmp_path)))
        [message] = desk.store.messages.of_run(desk.run_id)
        assert all(path in message.question for path in decoy.values())
        assert desk.store.permissions.rules_for("worker") == (), "it was allowed this once"


@pytest.mark.parametrize("hiding", ["\x1b]; rm -rf x\x07", "\u202e; rm -rf x", "\u200b; rm -rf x"], ids=ascii)
async def test_question_shows_control_characters_of_a_command_P7(tmp_path: Path, hiding: str) -> None:
    """Control characters could hide part of a command on a terminal, so they are made visible."""
    async with at_desk(tmp_path) as desk:
        await desk.answered("no", ToolRequest("Bash", f"echo{hiding}"))
        [message] = desk.store.messages.of_run(desk.run_id)
        assert f"echo{escape_invisible_characters(hiding)}" in strip_control_characters(message.question)


async def test_always_is_remembered_for_the_agent_in_a_readable_file(tmp_path: Path) -> None:
    async with at_desk(tmp_path) as desk:
        assert (await desk.answered("always")).allowed
        assert 'worker" = ["Bash(touch x)"]' in desk.store.permissions.path.read_text(encoding="utf-8")
        again = await desk.decide()
        assert (again.allowed, again.by) == (True, "remembered")
        other = await desk.answered("no", ToolRequest("Bash", "touch y"))
        assert not other.allowed


async def test_always_for_a_command_with_wildcards_allows_only_once_P7(tmp_path: Path) -> None:
    async with at_desk(tmp_path) as desk:
        assert (await desk.answered("always", ToolRequest("Bash", "rm *"))).allowed
        assert desk.store.permissions.rules_for("worker") == ()


async def test_no_answer_is_a_denial_and_the_run_continues_P7(tmp_path: Path) -> None:
    async with at_desk(tmp_path, wait_s=0.05) as desk:
        with anyio.fail_after(5):
            verdict = await desk.decide()
        assert (verdict.allowed, verdict.by) == (False, "silence")
        assert desk.store.runs.get(desk.run_id).status is RunStatus.RUNNING


async def test_cancelled_permission_request_withdraws_its_question_P7(tmp_path: Path) -> None:
    """Nobody would use the permission any more, and the run must not be shown as waiting."""
    async with at_desk(tmp_path) as desk:
        async with anyio.create_task_group() as group:
            group.start_soon(desk.decide)
            await desk.question()
            group.cancel_scope.cancel()
        await desk.store.wait_posted()
        assert desk.store.messages.pending(desk.run_id) == []
        status = await desk.changes.until(
            lambda: desk.store.runs.get(desk.run_id).status is RunStatus.RUNNING or None,
            {desk.run_id},
            PATIENCE_S,
        )
        assert status


async def test_unreadable_permissions_file_allows_nothing_P7(tmp_path: Path) -> None:
    async with at_desk(tmp_path) as desk:
        desk.store.permissions.path.write_text("[agents\n", encoding="utf-8")
        verdict = await desk.decide()
        assert not verdict.allowed
        assert "permissions.toml" in verdict.reason


async def test_secret_in_a_command_is_not_in_the_events_P6(tmp_path: Path) -> None:
    async with at_desk(tmp_path) as desk:
        secret = "ghp_" + "a1B2" * 9
        await desk.answered("no", ToolRequest("Bash", f"curl -H 'Authorization: token {secret}' x"))
        assert secret not in str(await desk.events())


@pytest.mark.parametrize(
    "asked",
    [
        ToolRequest("Bash", f"login --with {HIDDEN}"),
        ToolRequest("Bash", "x" * (QUESTION_CHARACTERS - 10) + HIDDEN),
        ToolRequest("mcp__a__b", details=f'{{"with": "{HIDDEN}"}}'),
        ToolRequest(f"a tool named {HIDDEN}"),
    ],
    ids=["whole", "where the question is cut", "in its details", "in its name"],
)
async def test_secret_in_a_request_is_neither_stored_nor_remembered_P6(
    tmp_path: Path, asked: ToolRequest
) -> None:
    """Other processes show the question, too, and do not know this process's secrets."""
    async with at_desk(tmp_path) as desk:
        verdict = await desk.answered("always", asked)
        assert verdict.allowed
        kept = str(desk.store.messages.of_run(desk.run_id)) + str(await desk.events())
        assert HIDDEN[:8] not in kept
        rules = () if HIDDEN in str(asked) else (str(asked),)
        assert desk.store.permissions.rules_for("worker") == rules, "it was allowed this once"


async def test_rules_that_two_processes_remember_are_all_kept(tmp_path: Path) -> None:
    async with at_desk(tmp_path) as desk:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                for number in range(8):
                    group.start_soon(
                        anyio.to_thread.run_sync, desk.store.permissions.add, "worker", f"Bash(echo {number})"
                    )
        assert len(desk.store.permissions.rules_for("worker")) == 8
