"""One phase: an agent on a handoff, with the rules for its trouble.

- no answer in time: once more with a simpler handoff; then what there is, and a question to the user
- an answer that is no response: once more with the reason; then the phase counts as blocked
- CLARIFY: the questions to the user, then the same phase with the answers
- STOP: halts; the chain decides whether somebody can mend it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from retinue.core import Decision, HandoffRequest, HandoffResponse, Progress, Step, estimate_tokens
from retinue.workflows.acceptance import accept
from retinue.workflows.handoff_messages import (
    Unreadable,
    plain_task,
    prompt_again,
    prompt_for,
    read_reply,
    request_for,
    shortened,
    simplified,
    with_short_summary,
)
from retinue.workflows.steps import AgentCall, AgentResult, ContextSeen, Done, Given, Steps

MOST_CLARIFICATIONS = 3
MOST_QUESTIONS = 10
QUESTION_TOKENS = 300
PARTIAL_TOKENS = 200
HURRY = "An earlier attempt ran out of time. Do only the essential part."


async def run_step(steps: Steps, step: Step, path: str, given: Given) -> Done:
    """From what the step is given to its response: PROCEED or STOP."""
    visit = None if step.agent is None else _Visit(steps, step, step.agent, path)
    if visit is not None and not step.checks:
        return await visit.settle(given)
    checked = await accept(steps, step, path)
    if visit is None or checked.decision is Decision.STOP:
        # No tokens for what a command has already refused.
        return Done(checked, checked.context_summary)
    done = await visit.settle(given.remarked(checked.context_summary))
    findings = done.response.findings | checked.findings
    issues = (*done.response.issues, *checked.issues)
    return Done(
        done.response.model_copy(update={"findings": findings, "issues": issues}), done.text, done.seen
    )


class _TimedOut(Exception):
    def __init__(self, left: str) -> None:
        super().__init__(left)
        self.left = left


@dataclass
class _Visit:
    """One visit to a step. Its calls are numbered, so that each has a key of its own."""

    steps: Steps
    step: Step
    agent: str
    path: str
    numbers: count[int] = field(default_factory=lambda: count(1))
    seen: list[ContextSeen] = field(default_factory=list[ContextSeen])

    async def settle(self, given: Given) -> Done:
        """Try until there is a response that needs nobody's help."""
        clarifications = 0
        while True:
            try:
                response, text = await self._attempt(given)
            except _TimedOut as late:
                advice = await self._ask_about_time(late.left)
                if is_stop(advice):
                    return self._done(self._blocked("it ran out of time twice", late.left), late.left)
                given = given.remarked(f"The user says: {advice}")
                continue
            if response.decision is not Decision.CLARIFY:
                await self._decided(response.decision, reason=_reason(response))
                return self._done(response, text)
            questions = questions_of(response)
            clarifications += 1
            if clarifications > MOST_CLARIFICATIONS:
                blocked = self._blocked(f"it asked again after {MOST_CLARIFICATIONS} answers", *questions)
                await self._decided(blocked.decision, reason=_reason(blocked))
                return self._done(blocked, text)
            await self._decided(response.decision, then="ask the user", questions=len(questions))
            answers = await self.steps.ask(self._key("ask"), [f"{self.path}: {each}" for each in questions])
            told = [f"Asked: {q} Answered: {a}" for q, a in zip(questions, answers, strict=True)]
            given = given.remarked(*told)

    async def _attempt(self, given: Given) -> tuple[HandoffResponse, str]:
        if self.step.plain:
            return await self._plain_attempt(given)
        request = request_for(self.step, self.path, given)
        result = await self._call(prompt_for(request, self.step), given.summary)
        if result.status == "timeout":
            await self._decided("timeout", then="try again with a simpler handoff")
            request = simplified(request)
            result = await self._call(prompt_for(request, self.step), given.summary)
        self._refuse_late(result)
        if result.status != "success":
            return self._blocked(result.reason, result.output), result.output
        return await self._read(request, result, given)

    async def _plain_attempt(self, given: Given) -> tuple[HandoffResponse, str]:
        task = plain_task(self.step, given)
        result = await self._call(task, given.text)
        if result.status == "timeout":
            await self._decided("timeout", then="try again with a simpler task")
            result = await self._call(f"{HURRY}\n\n{task}", given.text)
        self._refuse_late(result)
        if result.status != "success" or not result.output.strip():
            reason = result.reason or "the agent answered with nothing"
            return self._blocked(reason, result.output), result.output
        response = HandoffResponse(
            task_id=self.path,
            phase=self.step.phase,
            status=Progress.COMPLETE,
            decision=Decision.PROCEED,
            findings={},
            context_summary=result.output,
            tokens_used=result.tokens,
        )
        return with_short_summary(response), result.output

    async def _read(
        self, request: HandoffRequest, result: AgentResult, given: Given
    ) -> tuple[HandoffResponse, str]:
        try:
            return read_reply(result.output, request, self.step.finding, result.tokens), result.output
        except Unreadable as error:
            reason = str(error)
        await self._decided("unreadable", then="ask the agent again", reason=reason)
        prompt = prompt_again(prompt_for(request, self.step), result.output, reason)
        again = await self._call(prompt, given.summary)
        self._refuse_late(again)
        if again.status != "success":
            return self._blocked(again.reason, again.output), again.output
        try:
            return read_reply(again.output, request, self.step.finding, again.tokens), again.output
        except Unreadable as error:
            return self._blocked(f"its answer could not be used, twice: {error}"), again.output

    async def _call(self, prompt: str, handed: str | None) -> AgentResult:
        key = self._key("agent")
        call = AgentCall(
            agent=self.agent,
            prompt=prompt,
            timeout_s=self.step.timeout_s,
            idempotent=self.step.idempotent,
        )
        result = await self.steps.agent(key, call)
        self.seen.append(ContextSeen(key, result.tokens, estimate_tokens(handed or ""), result.metered))
        return result

    def _refuse_late(self, result: AgentResult) -> None:
        if result.status == "timeout":
            raise _TimedOut(shortened(result.output, PARTIAL_TOKENS))

    async def _ask_about_time(self, left: str) -> str:
        await self._decided("timeout", then="ask the user")
        partial = f" What it left:\n{left}" if left.strip() else " It left nothing."
        question = (
            f"{self.path}: {self.agent} ran out of time twice.{partial}\n"
            "Answer `stop` to end the workflow; anything else is advice, with which the step is tried again."
        )
        return (await self.steps.ask(self._key("ask"), [question]))[0]

    async def _decided(self, decision: str, **more: str | int) -> None:
        await self.steps.event(
            self._key("decision"), "decision", {"step": self.path, "decision": decision, **more}
        )

    def _key(self, kind: str) -> str:
        return f"{self.path}:{kind}:{next(self.numbers)}"

    def _blocked(self, reason: str, *more: str) -> HandoffResponse:
        summary = f"{self.path} is blocked: {reason}"
        return HandoffResponse(
            task_id=self.path,
            phase=self.step.phase,
            status=Progress.BLOCKED,
            decision=Decision.STOP,
            findings={"reason": reason},
            context_summary=shortened(summary, PARTIAL_TOKENS),
            tokens_used=sum(each.tokens for each in self.seen),
            issues=tuple(shortened(each, PARTIAL_TOKENS) for each in (reason, *more) if each.strip()),
        )

    def _done(self, response: HandoffResponse, text: str) -> Done:
        return Done(response, text, tuple(self.seen))


def is_stop(answer: str) -> bool:
    return answer.strip().strip("`.!\"'").lower() == "stop"


def questions_of(response: HandoffResponse) -> Sequence[str]:
    """What a response asks; one that names no questions asks with its issues, or its summary."""
    named = response.findings.get("questions")
    asked = [each for each in named if isinstance(each, str)] if isinstance(named, list) else []  # pyright: ignore[reportUnknownVariableType]
    found = asked or list(response.issues) or [response.context_summary]
    return [shortened(each, QUESTION_TOKENS) for each in found[:MOST_QUESTIONS]]


def _reason(response: HandoffResponse) -> str:
    reason = response.findings.get("reason")
    return shortened(str(reason) if reason else response.context_summary, 60)
