"""Decides what a run may do beyond what its CLI allows by itself: by rule at once, else by asking.

A question goes the way of all questions, to the parent or a person, and ends in a denial when nobody answers
in time (P7). Every decision is an event of the run. Knows nothing of MCP, nor of any CLI.
"""

from __future__ import annotations

import asyncio

from retinue.core import (
    MessageStatus,
    PermissionAnswer,
    PermissionRule,
    Permissions,
    PermissionWanted,
    Redactor,
    RetinueError,
    RunId,
    ToolRequest,
    Verdict,
    clip,
    counted,
    decide_by_rules,
    escape_invisible_characters,
)
from retinue.runtime.mailroom import Mailroom
from retinue.store import Store

SHOWN_CHARS = 1_000
"""Characters of a command that a question shows."""
KEPT_CHARS = 300
"""Characters of a command that the run's events keep."""


class PermissionBroker:
    def __init__(self, store: Store, mailroom: Mailroom, redactor: Redactor, wait_s: float) -> None:
        self._store = store
        self._mailroom = mailroom
        self._remembered = store.permissions
        self._redactor = redactor
        self._wait_s = wait_s

    async def decide(self, run_id: RunId, agent: str, rules: Permissions, asked: ToolRequest) -> Verdict:
        """A verdict in any case; what goes wrong on the way to it is a denial."""
        try:
            verdict = self._by_rule(agent, rules, asked) or await self._by_asking(run_id, agent, asked)
        except RetinueError as error:
            verdict = Verdict(False, f"denied, because nobody could be asked: {error.message}")
        self._note(run_id, asked, verdict)
        return verdict

    def _by_rule(self, agent: str, rules: Permissions, asked: ToolRequest) -> Verdict | None:
        verdict = decide_by_rules(asked, rules.allow, rules.deny)
        if verdict is not None:
            return verdict
        if decide_by_rules(asked, self._remembered.of(agent), ()):
            return Verdict(True, "it was allowed for good before", "remembered")
        return None

    async def _by_asking(self, run_id: RunId, agent: str, asked: ToolRequest) -> Verdict:
        shown, rule = self._without_secrets(asked), self._rule(asked)
        wanted = PermissionWanted(shown, rule, self._wait_s)
        silence = f"deny: nobody answered within {counted(self._wait_s, 'second')}"
        reply = await self._mailroom.ask_once(run_id, question(agent, shown), self._wait_s, wanted, silence)
        if reply.status is not MessageStatus.ACKNOWLEDGED:
            return Verdict(False, "the run ended before an answer came", "silence")
        if reply.timed_out:
            return Verdict(False, silence, "silence")
        return await self._by_answer(agent, rule, PermissionAnswer.parse(reply.answer or ""))

    def _rule(self, asked: ToolRequest) -> str | None:
        """What `always` may remember: a file holds it, so there can be no secret in it (P6)."""
        rule = PermissionRule.exactly(asked)
        return rule if rule is not None and self._redactor.redact(rule) == rule else None

    def _without_secrets(self, asked: ToolRequest) -> ToolRequest:
        """Other processes show it too, and do not know what this one has to hide (P6)."""
        return ToolRequest(*map(self._redactor.redact, (asked.tool, asked.subject, asked.details)))

    async def _by_answer(self, agent: str, rule: str | None, answer: PermissionAnswer) -> Verdict:
        if answer.consent == "no":
            return Verdict(False, clip(answer.reason, 500) or "denied", "answer")
        if answer.consent == "always" and rule is not None:
            await asyncio.to_thread(self._remembered.add, agent, rule)
            return Verdict(True, "allowed for good", "answer")
        return Verdict(True, "allowed this once", "answer")

    def _note(self, run_id: RunId, asked: ToolRequest, verdict: Verdict) -> None:
        shown = self._without_secrets(asked)
        subject = clip(shown.subject, KEPT_CHARS)
        data = {"tool": shown.tool, "subject": subject, "allowed": verdict.allowed, "by": verdict.by}
        self._store.post(self._store.events.add, run_id, "permission", data)


def question(agent: str, asked: ToolRequest) -> str:
    """What is asked of the parent or a person."""
    about = asked.subject or asked.details
    what = escape_invisible_characters(f"{asked.tool}: {clip(about, SHOWN_CHARS)}" if about else asked.tool)
    return (
        f"The agent {agent} asks for a permission that it does not have.\n{what}\n"
        "Answer `allow` for this once, `always` to remember it for this agent, "
        "or `deny` with a reason. Anything else is a denial."
    )
