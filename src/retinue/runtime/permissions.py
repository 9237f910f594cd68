"""Decides whether a run may use a tool that its CLI does not allow by itself: by rule, or by asking.

The question goes to the run's parent or a person. If nobody answers in time, the request is denied (P7).
Every decision becomes an event of the run. Knows nothing of MCP or of any CLI.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from retinue.core import (
    MessageStatus,
    PermissionAnswer,
    Permissions,
    PermissionWanted,
    Redactor,
    RetinueError,
    RunId,
    ToolRequest,
    Verdict,
    clip,
    counted,
    escape_invisible_characters,
)
from retinue.runtime.questions import QuestionBroker
from retinue.store import Store

QUESTION_CHARACTERS = 1_000
"""Maximum number of characters of a command that a question shows."""
READ_WEB = "This run has read pages of the web before: a page may have told it to ask for this."
EVENT_CHARACTERS = 300
"""Maximum number of characters of a command that is kept in the run's events."""


class PermissionBroker:
    """Answers the permission requests of runs."""

    def __init__(
        self,
        store: Store,
        questions: QuestionBroker,
        redactor: Redactor,
        wait_s: float,
        has_read_web: Callable[[RunId], bool] = lambda run_id: False,
    ) -> None:
        """`has_read_web` tells whether strangers may have told a run what to ask for."""
        self._has_read_web = has_read_web
        self._store = store
        self._questions = questions
        self._remembered = store.permissions
        self._redactor = redactor
        self._wait_s = wait_s

    async def decide(self, run_id: RunId, agent: str, rules: Permissions, request: ToolRequest) -> Verdict:
        """Decide by the rules, or ask. If asking fails, the request is denied."""
        try:
            verdict = await asyncio.to_thread(self._decide_by_rules, agent, rules, request)
            if verdict is None:
                verdict = await self._decide_by_asking(run_id, agent, request)
        except RetinueError as error:
            verdict = Verdict(False, f"denied, because nobody could be asked: {error.message}")
        self._record(run_id, request, verdict)
        return verdict

    def _decide_by_rules(self, agent: str, rules: Permissions, request: ToolRequest) -> Verdict | None:
        """Apply the agent's rules, then the rules that people granted permanently; None if none matches."""
        from retinue.core import decide_by_rules  # here, so that servers start sooner

        verdict = decide_by_rules(request, rules.allow, rules.deny)
        if verdict is not None:
            return verdict
        remembered = self._remembered.rules_for(agent)
        if remembered and decide_by_rules(request, (*rules.allow, *remembered), rules.deny):
            return Verdict(True, "allowed permanently by an earlier answer", "remembered")
        return None

    async def _decide_by_asking(self, run_id: RunId, agent: str, request: ToolRequest) -> Verdict:
        shown, rule = self._redact(request), self._rule_to_remember(request)
        warning = READ_WEB if self._has_read_web(run_id) else ""
        wanted = PermissionWanted(shown, rule, self._wait_s, warning)
        silence = f"deny: nobody answered within {counted(self._wait_s, 'second')}"
        question = permission_question(agent, shown, warning)
        reply = await self._questions.ask_once(run_id, question, self._wait_s, wanted, silence)
        if reply.status is not MessageStatus.ACKNOWLEDGED:
            return Verdict(False, "the run ended before an answer came", "silence")
        if reply.timed_out:
            return Verdict(False, silence, "silence")
        return await self._decide_by_answer(agent, rule, PermissionAnswer.parse(reply.answer or ""))

    def _rule_to_remember(self, request: ToolRequest) -> str | None:
        """The rule that `always` stores; None if it would put a secret into a file (P6)."""
        from retinue.core import exact_rule  # here, so that servers start sooner

        rule = exact_rule(request)
        return rule if rule is not None and self._redactor.redact(rule) == rule else None

    def _redact(self, request: ToolRequest) -> ToolRequest:
        """Remove secrets here, because other processes show the request and do not know them (P6)."""
        redact = self._redactor.redact
        return replace(
            request,
            tool=redact(request.tool),
            subject=redact(request.subject),
            details=redact(request.details),
            also=tuple(map(redact, request.also)),
            suspects=tuple(map(redact, request.suspects)),
        )

    async def _decide_by_answer(self, agent: str, rule: str | None, answer: PermissionAnswer) -> Verdict:
        if answer.consent == "no":
            return Verdict(False, clip(answer.reason, 500) or "denied", "answer")
        if answer.consent == "always" and rule is not None:
            await asyncio.to_thread(self._remembered.add, agent, rule)
            return Verdict(True, "allowed permanently", "answer")
        return Verdict(True, "allowed this once", "answer")

    def _record(self, run_id: RunId, request: ToolRequest, verdict: Verdict) -> None:
        shown = self._redact(request)
        subject = clip(shown.subject, EVENT_CHARACTERS)
        data = {"tool": shown.tool, "subject": subject, "allowed": verdict.allowed, "by": verdict.by}
        self._store.post(self._store.events.add, run_id, "permission", data)


def permission_question(agent: str, request: ToolRequest, warning: str = "") -> str:
    """The text of the question to the parent or a person."""
    subject = request.subject or request.details
    text = f"{request.tool}: {_cut(subject)}" if subject else request.tool
    if request.also:
        text += f"\nalso on: {_cut(', '.join(request.also))}"
    if request.suspects and request.subject and request.details:
        text += f"\nwith arguments that Retinue does not know: {_cut(request.details)}"
    shown = escape_invisible_characters(text)
    warned = f"{shown}\n{warning}" if warning else shown
    return (
        f"The agent {agent} asks for a permission that it does not have.\n{warned}\n"
        "Answer `allow` for this once, `always` to remember it for this agent, "
        "or `deny` with a reason. Anything else is a denial."
    )


def _cut(text: str) -> str:
    """Cut redacted text anywhere, unlike `clip`: as much of a command as fits has to be seen."""
    left_out = len(text) - QUESTION_CHARACTERS
    more = f"… ({counted(left_out, 'more character')} not shown)"
    return text if left_out <= 0 else text[:QUESTION_CHARACTERS] + more
