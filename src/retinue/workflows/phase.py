"""Runs one phase: an agent works on a handoff. Handles timeouts, unusable answers and questions.

- Timeout: run the agent again with a simpler handoff; then ask the user, with what the agent left.
- An answer that is not a response: ask the agent again with the reason; then the phase is blocked.
- CLARIFY: ask the user the agent's questions, then run the phase again with the answers.
- STOP: the phase ends; the chain decides whether a writer can fix it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from retinue.core import Decision, HandoffRequest, HandoffResponse, Progress, Step, estimate_tokens
from retinue.workflows.acceptance import run_checks
from retinue.workflows.handoff_messages import (
    InvalidHandoffReply,
    build_plain_task,
    build_prompt,
    build_request,
    build_retry_prompt,
    questions_in,
    read_reply,
    shorten,
    shorten_summary,
    simplify_request,
)
from retinue.workflows.steps import AgentCall, AgentResult, ContextUsage, StepInput, StepResult, Steps

MAX_CLARIFICATIONS = 3
MAX_QUESTIONS = 10
QUESTION_TOKENS = 300
PARTIAL_TOKENS = 200
RETRY_INSTRUCTION = "An earlier attempt ran out of time. Do only the essential part."


def is_stop_answer(answer: str) -> bool:
    return answer.strip().strip("`.!\"'").lower() == "stop"


def _reason(response: HandoffResponse) -> str:
    reason = response.findings.get("reason")
    return shorten(str(reason) if reason else response.context_summary, 60)


async def run_step(steps: Steps, step: Step, path: str, step_input: StepInput) -> StepResult:
    """Run a step: its checks, then its agent. The decision of the result is PROCEED or STOP."""
    phase = None if step.agent is None else _PhaseExecution(steps, step, step.agent, path)
    if phase is not None and not step.checks:
        return await phase.run(step_input)
    checked = await run_checks(steps, step, path)
    if phase is None or checked.decision is Decision.STOP:
        # Spend no tokens if a check has failed.
        return StepResult(checked, checked.context_summary)
    result = await phase.run(step_input.with_remarks(checked.context_summary))
    findings = result.response.findings | checked.findings
    issues = (*result.response.issues, *checked.issues)
    return StepResult(
        result.response.model_copy(update={"findings": findings, "issues": issues}),
        result.text,
        result.contexts,
    )


class _TimedOut(Exception):
    """Raised after the second timeout of an agent."""

    def __init__(self, partial_output: str) -> None:
        super().__init__(partial_output)
        self.partial_output = partial_output


@dataclass
class _PhaseExecution:
    """One execution of a step's agent. Its calls are numbered, so that each has a unique key."""

    steps: Steps
    step: Step
    agent: str
    path: str
    numbers: count[int] = field(default_factory=lambda: count(1))
    contexts: list[ContextUsage] = field(default_factory=list[ContextUsage])

    async def run(self, step_input: StepInput) -> StepResult:
        """Repeat the phase until its response is PROCEED or STOP."""
        clarifications = 0
        while True:
            try:
                response, text = await self._attempt(step_input)
            except _TimedOut as late:
                advice = await self._ask_after_timeout(late.partial_output)
                if is_stop_answer(advice):
                    blocked = self._blocked("it ran out of time twice", late.partial_output)
                    return self._result(blocked, late.partial_output)
                step_input = step_input.with_remarks(f"The user says: {advice}")
                continue
            if response.decision is not Decision.CLARIFY:
                await self._record_decision(response.decision, reason=_reason(response))
                return self._result(response, text)
            questions = [shorten(each, QUESTION_TOKENS) for each in questions_in(response)[:MAX_QUESTIONS]]
            clarifications += 1
            if clarifications > MAX_CLARIFICATIONS:
                blocked = self._blocked(f"it asked again after {MAX_CLARIFICATIONS} answers", *questions)
                await self._record_decision(blocked.decision, reason=_reason(blocked))
                return self._result(blocked, text)
            await self._record_decision(response.decision, then="ask the user", questions=len(questions))
            answers = await self.steps.ask(self._key("ask"), [f"{self.path}: {each}" for each in questions])
            remarks = [f"Asked: {q} Answered: {a}" for q, a in zip(questions, answers, strict=True)]
            step_input = step_input.with_remarks(*remarks)

    async def _attempt(self, step_input: StepInput) -> tuple[HandoffResponse, str]:
        """Run the agent on the handoff, again with a simpler one after a timeout."""
        if self.step.plain:
            return await self._plain_attempt(step_input)
        request = build_request(self.step, self.path, step_input)
        result = await self._call(build_prompt(request, self.step), step_input.summary)
        if result.status == "timeout":
            await self._record_decision("timeout", then="try again with a simpler handoff")
            request = simplify_request(request)
            result = await self._call(build_prompt(request, self.step), step_input.summary)
        self._raise_if_timed_out(result)
        if result.status != "success":
            return self._blocked(result.reason, result.output), result.output
        return await self._read_or_retry(request, result, step_input)

    async def _plain_attempt(self, step_input: StepInput) -> tuple[HandoffResponse, str]:
        """Run the agent on plain text instead of a handoff."""
        task = build_plain_task(self.step, step_input)
        result = await self._call(task, step_input.text)
        if result.status == "timeout":
            await self._record_decision("timeout", then="try again with a simpler task")
            result = await self._call(f"{RETRY_INSTRUCTION}\n\n{task}", step_input.text)
        self._raise_if_timed_out(result)
        if result.status != "success" or not result.output.strip():
            reason = result.reason or "the agent's answer is empty"
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
        return shorten_summary(response), result.output

    async def _read_or_retry(
        self, request: HandoffRequest, result: AgentResult, step_input: StepInput
    ) -> tuple[HandoffResponse, str]:
        """Parse the answer. If it is invalid, ask the agent once more."""
        try:
            return read_reply(result.output, request, self.step.finding, result.tokens), result.output
        except InvalidHandoffReply as error:
            reason = str(error)
        await self._record_decision("unreadable", then="ask the agent again", reason=reason)
        prompt = build_retry_prompt(build_prompt(request, self.step), result.output, reason)
        again = await self._call(prompt, step_input.summary)
        self._raise_if_timed_out(again)
        if again.status != "success":
            return self._blocked(again.reason, again.output), again.output
        try:
            return read_reply(again.output, request, self.step.finding, again.tokens), again.output
        except InvalidHandoffReply as error:
            return self._blocked(f"its answer could not be used, twice: {error}"), again.output

    async def _call(self, prompt: str, inherited: str | None) -> AgentResult:
        key = self._key("agent")
        call = AgentCall(
            agent=self.agent,
            prompt=prompt,
            timeout_s=self.step.timeout_s,
            idempotent=self.step.idempotent,
        )
        result = await self.steps.agent(key, call)
        self.contexts.append(
            ContextUsage(key, result.tokens, estimate_tokens(inherited or ""), result.metered)
        )
        return result

    def _raise_if_timed_out(self, result: AgentResult) -> None:
        if result.status == "timeout":
            raise _TimedOut(shorten(result.output, PARTIAL_TOKENS))

    async def _ask_after_timeout(self, partial_output: str) -> str:
        await self._record_decision("timeout", then="ask the user")
        partial = (
            f" Its partial output:\n{partial_output}" if partial_output.strip() else " It has no output."
        )
        question = (
            f"{self.path}: {self.agent} ran out of time twice.{partial}\n"
            "Answer `stop` to end the workflow; the step runs again with any other answer as advice."
        )
        return (await self.steps.ask(self._key("ask"), [question]))[0]

    async def _record_decision(self, decision: str, **more: str | int) -> None:
        await self.steps.event(
            self._key("decision"), "decision", {"step": self.path, "decision": decision, **more}
        )

    def _key(self, kind: str) -> str:
        return f"{self.path}:{kind}:{next(self.numbers)}"

    def _blocked(self, reason: str, *more: str) -> HandoffResponse:
        """A STOP response with the reason."""
        summary = f"{self.path} is blocked: {reason}"
        return HandoffResponse(
            task_id=self.path,
            phase=self.step.phase,
            status=Progress.BLOCKED,
            decision=Decision.STOP,
            findings={"reason": reason},
            context_summary=shorten(summary, PARTIAL_TOKENS),
            tokens_used=sum(each.tokens for each in self.contexts),
            issues=tuple(shorten(each, PARTIAL_TOKENS) for each in (reason, *more) if each.strip()),
        )

    def _result(self, response: HandoffResponse, text: str) -> StepResult:
        return StepResult(response, text, tuple(self.contexts))
