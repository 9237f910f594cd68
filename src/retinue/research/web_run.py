"""Performs web research inside a run: every request becomes an event of the run, and a line of its log.

`WebRun` is the executor of a `web_research` request, or of the role `web` in a report about code. With a
model, the passages are explained: each sentence names its passage, and is kept only if it holds against it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from retinue.core import (
    WEB_EVENT,
    DeadlineExceeded,
    Json,
    ModelExplanation,
    Outcome,
    OutputLine,
    Redactor,
    RetinueError,
    RoleOutcome,
    RunContext,
    RunId,
    RunLimits,
    RunSpec,
    Task,
)
from retinue.research.explanation import ResearchModels
from retinue.research.role_runs import outcome_of_role, role_run_spec
from retinue.research.web_explanation import ROLE, WebExplainer
from retinue.research.web_research import WebFindings, WebQuestion, research_web
from retinue.runtime import Supervisor
from retinue.web import RequestNote, WebPages


def web_run_spec(
    question: str, limits: RunLimits, parent: RunId | None = None, caller: str = "host"
) -> RunSpec:
    """Describe a run that reads the web."""
    return replace(role_run_spec(ROLE, question, limits, parent, caller), tools=("web",))


@dataclass(slots=True, kw_only=True)
class WebRun:
    """The executor of a run that answers from the web. `outcome_of_role` is set when it has ended."""

    asked: WebQuestion
    open_web: Callable[[], WebPages]
    redactor: Redactor
    supervisor: Supervisor | None = None
    models: Callable[[], ResearchModels] | None = None
    """Returns where the model comes from that explains the passages; None to work without one."""
    findings: WebFindings | None = None
    explanation: ModelExplanation | None = None
    model_note: str | None = None
    """What the model did, or why it did nothing."""
    outcome_of_role: RoleOutcome | None = None
    error: RetinueError | None = None

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        began = time.monotonic()
        notes: list[RequestNote] = []

        def on_request(note: RequestNote) -> None:
            notes.append(note)
            ctx.event(WEB_EVENT, cast("Mapping[str, Json]", note.as_dict()))

        error: RetinueError | None = None
        try:
            async with asyncio.timeout(self.asked.seconds), self.open_web() as web:
                self.findings = await research_web(self.asked, web, on_request)
        except TimeoutError:
            error = DeadlineExceeded(f"no answer within {self.asked.seconds:g} seconds")
        except RetinueError as failure:
            error = failure
        for note in notes:
            await ctx.emit(OutputLine("event", str(note)))
        if self.findings is not None and not self.findings.query and not notes and not error:
            await ctx.emit(OutputLine("event", "web: nothing was sent"))
        if self.findings is not None and self.findings.passages and self.models and self.supervisor:
            explainer = WebExplainer(
                supervisor=self.supervisor, parent=RunId.parse(ctx.run_id), cwd=ctx.cwd, models=self.models
            )
            left = self.asked.seconds - (time.monotonic() - began)
            self.explanation, self.model_note = await explainer(
                self.asked.question, self.findings.passages, left
            )
        value = None if self.findings is None else self.findings.result()
        if value is not None:
            value = replace(
                value,
                summary=self.redactor.redact(value.summary),
                key_findings=tuple(map(self.redactor.redact, value.key_findings)),
                notes=value.notes and self.redactor.redact(value.notes),
            )
        self.error = error
        outcome = outcome_of_role(value, error, began)
        self.outcome_of_role = outcome.result
        for line in (value.summary, *value.key_findings) if value else ():
            await ctx.emit(OutputLine("stdout", line))
        return outcome
