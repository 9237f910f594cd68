"""Lets a model explain what the search found, beside the search's own results.

The reader (`answers/reader.py`) shows the model the code of the places that the report names, and checks what
it says. If that answers nothing and there is time, it searches once more with names that the model proposes;
what that finds in addition is listed with the explanation.

Everything happens within the time that the request has left: from the model's speed, `plan_request` decides
how much code it is shown, or that it is not asked at all. The rest of the report does not depend on the
model. A note says once what it did, or why it did nothing (P8).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from retinue.answers import CodeAnswer, CodeFinder, CodeReader, ReadingLimits, RoleContext
from retinue.core import (
    UNMETERED,
    BudgetKind,
    Canceled,
    DeadlineExceeded,
    Endpoint,
    Intent,
    Model,
    ModelExplanation,
    ModelFacts,
    ModelFailed,
    ModelSkills,
    ModelSpeed,
    Outcome,
    OutputLine,
    Prompt,
    Reference,
    Reply,
    RetinueError,
    RunContext,
    RunId,
    RunLimits,
    RunSpec,
    RunStatus,
    Spending,
    Task,
    clip,
    counted,
    estimate_tokens,
    run_in_thread,
)
from retinue.runtime import PreparedRun, Supervisor

EXPLAINED_INTENTS: tuple[Intent, ...] = ("how", "where", "options", "error")
"""The intents whose answers a model explains. The others are answered by complete lists."""
ANALYZER_FIRST: tuple[Intent, ...] = ("options", "error")
"""The intents for which the first places of the analyzer are shown before those of the locator."""
FURTHER_PLACES = 5
"""How many places are listed that only the second search finds."""
CONTEXT_SHARE = 0.5
"""The share of the loaded context that a prompt may take."""
TIME_SHARE = 0.9
"""The share of the remaining time that the model gets; the rest is for building the report."""
SEARCH_S = 2.0
"""The time that is set aside for the second search."""
MIN_SECONDS = 1.0
FILLED_REPLY = 0.6
"""The part of the allowed reply that a model usually writes. A reply that is cut keeps whole sentences."""
NOTE_SPEED_S = 1.0
UNBEGUN_SHARE = 0.5
"""The share of its highest possible speed that counts for a model that did not begin to answer."""
MIN_MEASURED_TOKENS = 100
"""A prompt with fewer tokens is too short to measure the speed of a model."""


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """How much a model is asked, so that it answers in time."""

    code_tokens: int
    reply_tokens: int
    checks: bool = False
    """Whether it is asked if the code around its line really answers."""
    searches_again: bool = False


PLANS = (
    RequestPlan(1_500, 200, checks=True, searches_again=True),
    RequestPlan(1_500, 200, checks=True),
    RequestPlan(700, 180, checks=True),
    RequestPlan(700, 180),
    RequestPlan(400, 160),
    RequestPlan(120, 80),
)
"""Best first."""
USUAL_PLAN = PLANS[3]
PROMPT_TOKENS, CHECK_TOKENS = 200, 350
"""Tokens of a prompt without its code, and of a check."""
WORDS_PROMPT_TOKENS, WORDS_REPLY_TOKENS = 130, 70
NO_TIME = "there was no time to check it"


def plan_request(speed: ModelSpeed | None, seconds: float) -> RequestPlan | None:
    """Return the best plan that fits into the time, or None. A model of unknown speed gets the usual one."""
    if speed is None:
        return USUAL_PLAN if seconds >= MIN_SECONDS else None
    shortest = PLANS[-1] if speed.is_old and seconds >= MIN_SECONDS else None
    return next((plan for plan in PLANS if _seconds_for(plan, speed) <= seconds), shortest)


def _seconds_for(plan: RequestPlan, speed: ModelSpeed) -> float:
    read = PROMPT_TOKENS + plan.code_tokens + CHECK_TOKENS * plan.checks
    written = FILLED_REPLY * plan.reply_tokens
    rest = 0.0
    if plan.searches_again:
        read = 2 * read + WORDS_PROMPT_TOKENS
        written = 2 * written + FILLED_REPLY * WORDS_REPLY_TOKENS
        rest = SEARCH_S
    return read / speed.prompt_tokens_s + written / speed.reply_tokens_s + rest


class ResearchModels(Protocol):
    """Where the model of research comes from, and what is known about it."""

    def client_for(self, name: str = ...) -> Model:
        """Return the model, or raise an error if it cannot be used."""
        ...

    def known_skills(self, facts: ModelFacts) -> ModelSkills | None:
        """Return what a model can do; None if it was not asked yet."""
        ...

    def speed(self, facts: ModelFacts) -> ModelSpeed | None:
        """Return the measured speed of a model."""
        ...

    def note_speed(self, facts: ModelFacts, read: float | None, written: float | None) -> None:
        """Remember how many tokens a second a model has read and written."""
        ...


@dataclass(frozen=True, slots=True)
class FoundPlaces:
    """The findings of the search, for a model to explain."""

    context: RoleContext
    references: tuple[Reference, ...]
    """The places that answer the question, best first."""
    known: frozenset[str]
    """All places that the report names already."""


@dataclass(frozen=True, slots=True)
class Explained:
    """The outcome of asking a model to explain."""

    explanation: ModelExplanation | None
    note: str


class Explainer(Protocol):
    """Asks a model to explain found places within some seconds. Raises `RetinueError` if it cannot."""

    async def __call__(self, found: FoundPlaces, seconds: float) -> Explained: ...


async def explain_findings(
    explainer: Explainer, found: FoundPlaces, intent: Intent, seconds: float
) -> tuple[ModelExplanation | None, str | None]:
    """Return the model's explanation, and a note on what it did or why it did nothing."""
    if not found.references:
        return None, None
    if intent not in EXPLAINED_INTENTS:
        return None, "Without the model: this answer is a list that needs no explanation."
    try:
        explained = await explainer(found, seconds * TIME_SHARE)
    except RetinueError as error:
        return None, f"Without the model: {clip(error.message, 160)}."
    return explained.explanation, explained.note


@dataclass(slots=True, kw_only=True)
class ReportReading:
    """One model's work on one question."""

    models: ResearchModels
    model: Model
    found: FoundPlaces
    deadline: float
    """When the work must be done, in seconds of the monotonic clock."""
    spending: Spending = UNMETERED
    log: Callable[[str], Awaitable[None]]
    """Writes a line to the log of the run."""
    name: str = ""
    tokens: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())

    async def explain(self) -> Explained:
        """Ask the model as far as the time allows. Raises `RetinueError` if it says nothing usable."""
        facts = await self.model.facts()
        self.name = facts.model
        skills = self.models.known_skills(facts)
        if skills is not None and not skills.judges_code:
            raise ModelFailed(f"{self.name} cannot tell which code answers a question")
        speed = self.models.speed(facts)
        plan = plan_request(speed, self.seconds_left)
        if plan is None:
            raise DeadlineExceeded(_too_slow(facts.model, speed, self.seconds_left))
        context = self.found.context
        finder = CodeFinder(
            context=context,
            spending=self.spending,
            references=self.found.references,
            known=self.found.known,
        )
        reader = CodeReader(
            question=context.request.question,
            finder=finder,
            ask=partial(self._reply, facts),
            log=self.log,
            limits=ReadingLimits(
                code_tokens=min(plan.code_tokens, round(facts.context * CONTEXT_SHARE)),
                reply_tokens=plan.reply_tokens,
                may_search_again=plan.searches_again and context.question.intent != "error",
                unchecked="" if plan.checks else NO_TIME,
            ),
        )
        answer = await reader.read()
        if not finder.shown:
            raise ModelFailed("the places that were found have no code to show")
        return self._explained(answer, reader.words, tuple(finder.further[:FURTHER_PLACES]))

    def _explained(
        self, answer: CodeAnswer | None, words: tuple[str, ...], further: tuple[Reference, ...]
    ) -> Explained:
        """Return the explanation with its note. Raises `ModelFailed` if there is none."""
        used = f"{time.monotonic() - self.began:.0f} s, {counted(self.tokens, 'token')}"
        if answer is None and not further:
            raise ModelFailed(f"{self.name} takes none of the code that was found for the answer ({used})")
        made = ModelExplanation(
            model=self.name,
            sentences=() if answer is None else (answer.sentence,),
            searched=words if further else (),
            references=further,
        )
        doubt = f" It is not certain: {answer.doubt}." if answer is not None and answer.doubt else ""
        return Explained(
            made, f"The explanation is by {self.name} ({used}).{doubt} All else was found without a model."
        )

    async def _reply(self, facts: ModelFacts, prompt: Prompt) -> Reply:
        """Send a prompt within the time and the budget (P2). Return what came before the deadline."""
        size = sum(estimate_tokens(turn.text) for turn in prompt.turns)
        received: list[tuple[float, str]] = []

        async def note_piece(text: str) -> None:
            received.append((time.monotonic(), text))

        reply: Reply | None = None
        steps = int(not prompt.alternatives)  # a yes or no counts by its tokens only
        async with (
            self.spending.reserving(BudgetKind.STEPS, steps) as step,
            self.spending.reserving(BudgetKind.TOKENS, size + prompt.max_tokens) as tokens,
        ):
            step.settle(steps)
            started = time.monotonic()
            try:
                async with asyncio.timeout(self.seconds_left):
                    reply = await self.model.reply(prompt, note_piece)
            except TimeoutError:
                pass
            text = reply.text if reply is not None else "".join(piece for _, piece in received)
            read = (reply and reply.prompt_tokens) or size
            written = (reply and reply.reply_tokens) or estimate_tokens(text)
            tokens.settle(read + written)
        self.tokens += read + written
        if reply is not None:
            self.name = reply.model
            return reply
        await self._note_delay(facts, read, started, received[0][0] if received else None)
        if not text:
            waited = time.monotonic() - started
            raise DeadlineExceeded(f"{self.name} did not answer within {waited:.1f} seconds")
        return Reply(text=text, finish="length", model=self.name)

    async def _note_delay(self, facts: ModelFacts, tokens: int, started: float, began: float | None) -> None:
        """Remember that the model was cut at the deadline. If it did not begin, it was slower than this."""
        read = tokens / max(MIN_SECONDS / 10, (began or time.monotonic()) - started)
        if began is None:
            read *= UNBEGUN_SHARE
        known = self.models.speed(facts)
        if tokens >= MIN_MEASURED_TOKENS and (began or known is None or read < known.prompt_tokens_s):
            note = partial(self.models.note_speed, facts, round(read, 2), None)
            await run_in_thread(lambda _: note(), NOTE_SPEED_S)


def _too_slow(model: str, speed: ModelSpeed | None, seconds: float) -> str:
    if speed is None:
        return f"only {seconds:.1f} s were left for {model}"
    return (
        f"{model} reads {speed.prompt_tokens_s:.0f} and writes {speed.reply_tokens_s:.0f} tokens a second, "
        f"too slow for the {seconds:.0f} s that were left"
    )


@dataclass(frozen=True, slots=True)
class ModelExplainer:
    """Asks a model in a separate run, which waits for a free slot at the model's endpoint."""

    supervisor: Supervisor
    parent: RunId
    cwd: Path
    models: Callable[[], ResearchModels]

    async def __call__(self, found: FoundPlaces, seconds: float) -> Explained:
        deadline = time.monotonic() + seconds
        models = self.models()
        model = models.client_for()
        try:
            async with asyncio.timeout(seconds):
                facts = await model.facts()
        except TimeoutError:
            raise _timeout_error(seconds) from None
        speed, left = models.speed(facts), max(0.0, deadline - time.monotonic())
        if plan_request(speed, left) is None:  # no run, and no request
            raise DeadlineExceeded(_too_slow(facts.model, speed, left))
        spec = RunSpec(
            agent="explanation",
            task=found.context.request.question,
            executor="local",
            caller="research",
            parent=self.parent,
            model=facts.model,
            limits=RunLimits(queue_s=left, run_s=left + 1.0),
            endpoint=Endpoint(facts.endpoint, facts.slots),
        )
        work = ExplanationRun(models, model, found, deadline)
        performed = await self.supervisor.perform(PreparedRun(spec, work, self.cwd))
        if performed.outcome is not None:
            return performed.outcome.result
        if performed.run.status is RunStatus.TIMEOUT:
            raise _timeout_error(seconds)
        match performed.run.error:
            case {"message": str() as message} if performed.run.status is RunStatus.ERROR:
                raise ModelFailed(message)
            case _:
                raise Canceled("the request to the model was canceled")


def _timeout_error(seconds: float) -> DeadlineExceeded:
    return DeadlineExceeded(f"it did not answer within {seconds:.1f} seconds")


@dataclass(frozen=True, slots=True)
class ExplanationRun:
    """The executor of a run that asks a model; `result` of its outcome is `Explained`."""

    models: ResearchModels
    model: Model
    found: FoundPlaces
    deadline: float

    async def run(self, task: Task, ctx: RunContext) -> Outcome:
        async def log(text: str) -> None:
            await ctx.emit(OutputLine("stdout", text))

        work = ReportReading(
            models=self.models,
            model=self.model,
            found=self.found,
            deadline=self.deadline,
            spending=ctx.spending,
            log=log,
        )
        explained = await work.explain()
        sentences = explained.explanation.sentences if explained.explanation else ()
        for sentence in sentences:
            await log(sentence)
        return Outcome(" ".join(sentences), result=explained)
